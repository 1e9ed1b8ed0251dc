#include "weir/net/resolve.h"

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "weir/base/bounds.h"
#include "weir/base/text.h"

namespace weir {
namespace {

// Resolver threads. More than one, so that a lookup that hangs does not block all others.
constexpr int kThreadsMax = 4;

}  // namespace

Result<Target> Target::parse(std::string_view text) {
  const auto bad = [&](std::string_view rule) {
    return Error{Fault::invalid, "address " + quote(text) + " " + std::string(rule)};
  };
  if (text.rfind(':') == 0) return bad("needs a host name or an IP address before the port");
  if (auto address = Address::parse(text)) {
    return Target{std::move(address->host), address->port, std::move(address->path)};
  } else if (text.starts_with("unix:") || text.starts_with('[') || text.find(':') != text.rfind(':')) {
    return address.error();
  }
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return bad("has no port: write host:port or unix:/path");
  const std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  Target target{std::string(host), 0, {}};
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), target.port);
  if (port.empty() || error != std::errc{} || end != port.data() + port.size())
    return bad("needs a port from 0 to 65535");
  const auto is_part = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
           c == '_';
  };
  if (host.empty() || host.size() > bounds::domain_bytes_max || !std::ranges::all_of(host, is_part))
    return bad("needs a host name or an IP address before the port");
  return target;
}

std::optional<Address> Target::literal() const {
  const auto address = Address::parse(print());
  if (!address) return std::nullopt;
  return *address;
}

std::string Target::print() const {
  return Address{host, port, path}.print();
}

std::vector<Address> distinct_addresses(const addrinfo* list, std::uint16_t port) {
  std::vector<Address> addresses;
  for (const addrinfo* one = list; one != nullptr && addresses.size() < bounds::resolved_addresses_max;
       one = one->ai_next) {
    char text[NI_MAXHOST] = {};
    if (getnameinfo(one->ai_addr, one->ai_addrlen, text, sizeof text, nullptr, 0, NI_NUMERICHOST) != 0) continue;
    const Address address{text, port, {}};
    if (std::ranges::find(addresses, address) == addresses.end()) addresses.push_back(address);
  }
  return addresses;
}

Result<std::vector<Address>> look_up(const Target& target) {
  if (auto literal = target.literal()) return std::vector<Address>{std::move(*literal)};
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG;
  addrinfo* found = nullptr;
  const int failure = getaddrinfo(target.host.c_str(), nullptr, &hints, &found);
  if (failure != 0) {
    const Fault fault = failure == EAI_NONAME ? Fault::unknown : Fault::unavailable;
    return Error{fault, "cannot resolve " + target.host + ": " + gai_strerror(failure)};
  }
  std::vector<Address> addresses = distinct_addresses(found, target.port);
  freeaddrinfo(found);
  if (addresses.empty()) return Error{Fault::unknown, "cannot resolve " + target.host + ": it has no address"};
  return addresses;
}

struct LookupState {
  LookupState(Loop& of, Target what, Resolver::Done then) : loop(of), target(std::move(what)), done(std::move(then)) {}

  Loop& loop;
  const Target target;
  const Resolver::Done done;
  // Held while posting to the loop and while canceling: once a lookup is canceled, nothing posts to its loop, which
  // may then be destroyed.
  std::mutex mutex;
  std::atomic<bool> cancelled{false};
};

namespace {

void post_result(const std::shared_ptr<LookupState>& state, Result<std::vector<Address>> result) {
  const std::lock_guard lock(state->mutex);
  if (state->cancelled) return;
  state->loop.post([state, result = std::move(result)] {
    if (!state->cancelled) state->done(result);
  });
}

}  // namespace

struct Resolver::Shared {
  Function function;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::shared_ptr<LookupState>> waiting;
  int threads = 0;
  int idle = 0;
  bool stopped = false;
};

Resolver::Lookup::~Lookup() {
  const std::lock_guard lock(state_->mutex);
  state_->cancelled = true;
}

Resolver::Resolver(Function function) : shared_(std::make_shared<Shared>()) {
  shared_->function = std::move(function);
}

Resolver::~Resolver() {
  const std::lock_guard lock(shared_->mutex);
  shared_->stopped = true;
  shared_->waiting.clear();
  shared_->changed.notify_all();
}

std::unique_ptr<Resolver::Lookup> Resolver::resolve(Loop& loop, Target target, Done done) {
  auto state = std::make_shared<LookupState>(loop, std::move(target), std::move(done));
  auto lookup = std::make_unique<Lookup>(state);
  const auto refuse = [&](const std::string& why) {
    post_result(state, Error{Fault::unavailable, "cannot resolve " + state->target.host + ": " + why});
  };
  const std::lock_guard lock(shared_->mutex);
  std::erase_if(shared_->waiting, [](const auto& one) { return one->cancelled.load(); });
  if (shared_->waiting.size() >= bounds::lookups_max) {
    refuse(std::to_string(bounds::lookups_max) + " lookups are already waiting");
    return lookup;
  }
  if (shared_->idle <= static_cast<int>(shared_->waiting.size()) && shared_->threads < kThreadsMax) {
    try {
      std::thread([shared = shared_] { work(shared); }).detach();
      ++shared_->threads;
    } catch (const std::system_error&) {
      if (shared_->threads == 0) {
        refuse("cannot start a resolver thread");
        return lookup;
      }
    }
  }
  shared_->waiting.push_back(std::move(state));
  shared_->changed.notify_one();
  return lookup;
}

void Resolver::work(const std::shared_ptr<Shared>& shared) {
  std::unique_lock lock(shared->mutex);
  for (;;) {
    ++shared->idle;
    shared->changed.wait(lock, [&] { return shared->stopped || !shared->waiting.empty(); });
    --shared->idle;
    if (shared->stopped) return;
    const std::shared_ptr<LookupState> state = std::move(shared->waiting.front());
    shared->waiting.pop_front();
    if (state->cancelled) continue;
    lock.unlock();
    post_result(state, shared->function(state->target));
    lock.lock();
  }
}

}  // namespace weir
