// How long answers take at a constant rate: open_loop PORT throttle|get|check|http RATE SECONDS [CONNECTIONS].
//
// Open loop: question number i is due at i / RATE whatever became of the ones before it, and its latency is counted
// from then. A client that waits for an answer before it asks again would ask less while the server is slow, and
// measure least when there is most to measure. Prints one line of JSON, in microseconds; for `check` also how many
// answers had which burst. Spins, so give it a core of its own.
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/clock.h"
#include "weir/wire/http1.h"
#include "weir/wire/resp.h"

namespace weir::bench {
namespace {

constexpr std::size_t kKeys = 100'000;
constexpr std::size_t kTenants = 10'000;
// Nobody answers for this long: the run is over and failed.
constexpr Duration kPatience = std::chrono::seconds{10};

[[noreturn]] void give_up(const char* what) {
  std::fprintf(stderr, "open_loop: %s: %s\n", what, errno != 0 ? std::strerror(errno) : "unexpected");
  std::exit(1);
}

// Question and answer of one protocol.
struct Speech {
  std::string (*ask)(std::size_t key);
  bool http;
};

std::string command(std::initializer_list<std::string_view> words) {
  std::string out;
  resp::write_command(std::span(words.begin(), words.size()), out);
  return out;
}

std::string post(std::string_view target, std::string_view content) {
  return "POST " + std::string(target) +
         " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: " +
         std::to_string(content.size()) + "\r\n\r\n" + std::string(content);
}

Speech speech_of(std::string_view name) {
  if (name == "throttle") {
    return {[](std::size_t key) {
              return command({"CL.THROTTLE", "key:" + std::to_string(key), "999999", "1000000", "1"});
            },
            false};
  }
  if (name == "get") return {[](std::size_t key) { return command({"GET", "key:" + std::to_string(key)}); }, false};
  if (name == "check") {  // of as many tenants as bench/external_bench.py has
    return {[](std::size_t key) {
              return command({"WEIR.CHECK", "per-tenant", "tenant:" + std::to_string(key % kTenants)});
            },
            false};
  }
  if (name == "http") {
    return {[](std::size_t key) {
              return post("/v1/throttle", "{\"key\":\"user:" + std::to_string(key) +
                                              "\",\"burst\":1000000,\"count\":1000000,\"period\":\"1s\"}");
            },
            true};
  }
  give_up("the second argument must be throttle, get, check or http");
}

class Connection {
 public:
  Connection(std::uint16_t port, bool http) : fd_(socket(AF_INET, SOCK_STREAM, 0)), http_(http) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int one = 1;
    if (connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) give_up("connect");
    (void)setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  }
  ~Connection() { close(fd_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  int fd() const noexcept { return fd_; }
  std::size_t owed() const noexcept { return due_.size(); }
  const std::map<std::int64_t, std::size_t>& bursts() const noexcept { return bursts_; }

  // A question of a few hundred bytes always fits the socket's buffer, unless the server has stopped reading.
  void ask(std::string_view question, Duration due) {
    due_.push_back(due);
    const ssize_t sent = send(fd_, question.data(), question.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent != static_cast<ssize_t>(question.size())) give_up("send");
  }

  // Reads what is there; `each` is told when the answered questions were due.
  template <class Each>
  void read(Each each) {
    std::array<char, 65536> room;
    const ssize_t got = recv(fd_, room.data(), room.size(), MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN)) give_up("recv");
    if (got < 0) return;
    held_.append(room.data(), static_cast<std::size_t>(got));
    std::size_t used = 0;
    while (const std::size_t size = take(std::string_view(held_).substr(used))) {
      used += size;
      each(due_.front());
      due_.pop_front();
    }
    held_.erase(0, used);
  }

 private:
  // The size of the first answer; 0: it is not whole.
  std::size_t take(std::string_view bytes) {
    if (bytes.empty()) return 0;
    if (!http_) {
      const resp::Parsed parsed = reply_.parse(bytes);
      if (parsed == resp::Parsed::more) return 0;
      if (parsed == resp::Parsed::broken || reply_.root().type == resp::Type::error) give_up("an answer is an error");
      if (reply_.values().size() > 2) ++bursts_[reply_.values()[2].integer];  // allowed, burst, …
      return reply_.size();
    }
    const HeadResult head = parse_response_head(bytes, false, head_);
    if (head.problem || head_.framing.content == HttpContent::chunked) give_up("an answer is not as expected");
    if (head.size == 0 || bytes.size() < head.size + head_.framing.length) return 0;
    if (head_.status != 200) give_up("an answer is not 200");
    return head.size + static_cast<std::size_t>(head_.framing.length);
  }

  int fd_;
  bool http_;
  std::deque<Duration> due_;
  std::string held_;
  resp::Reply reply_;
  ResponseHead head_;
  std::map<std::int64_t, std::size_t> bursts_;
};

struct Measured {
  std::vector<Duration> latencies;
  std::vector<Duration> lags;  // how late the client itself was
  std::map<std::int64_t, std::size_t> bursts;
};

Measured run(std::uint16_t port, const Speech& speech, std::int64_t rate, std::int64_t seconds, std::size_t many) {
  const BootClock clock;
  const auto total = static_cast<std::size_t>(rate * seconds);
  std::vector<std::string> questions;
  for (std::size_t key = 0; key < kKeys; ++key) questions.push_back(speech.ask(key));
  std::vector<std::unique_ptr<Connection>> connections;
  const int epoll = epoll_create1(0);
  for (std::size_t i = 0; i < many; ++i) {
    connections.push_back(std::make_unique<Connection>(port, speech.http));
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.ptr = connections.back().get();
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, connections.back()->fd(), &event) != 0) give_up("epoll_ctl");
  }
  Measured measured;
  measured.latencies.reserve(total);
  measured.lags.reserve(total);
  std::size_t asked = 0;
  std::uint32_t random = 1;
  const Time start = clock.time() + std::chrono::milliseconds{10};
  const auto due_at = [&](std::size_t i) { return Duration(static_cast<std::int64_t>(i) * 1'000'000'000 / rate); };
  while (measured.latencies.size() < total) {
    const Duration now = clock.time() - start;
    if (now > std::chrono::seconds{seconds} + kPatience) give_up("answers are missing");
    for (; asked < total && due_at(asked) <= now; ++asked) {
      random = random * 1'664'525 + 1'013'904'223;
      connections[asked % many]->ask(questions[random % kKeys], due_at(asked));
      measured.lags.push_back(clock.time() - start - due_at(asked));
    }
    std::array<epoll_event, 64> events;
    const int ready = epoll_wait(epoll, events.data(), static_cast<int>(events.size()), 0);
    for (int i = 0; i < ready; ++i) {
      auto* const connection = static_cast<Connection*>(events[static_cast<std::size_t>(i)].data.ptr);
      connection->read([&](Duration due) { measured.latencies.push_back(clock.time() - start - due); });
    }
  }
  close(epoll);
  for (const auto& connection : connections) {
    for (const auto& [burst, count] : connection->bursts()) measured.bursts[burst] += count;
  }
  return measured;
}

// {"1000": 5}; empty for questions without a burst.
std::string print_bursts(const Measured& measured) {
  std::string out;
  for (const auto& [burst, count] : measured.bursts) {
    out += (out.empty() ? "\"" : ", \"") + std::to_string(burst) + "\": " + std::to_string(count);
  }
  return "{" + out + "}";
}

double quantile_us(std::vector<Duration>& sorted, double part) {
  const auto index = static_cast<std::size_t>(part * static_cast<double>(sorted.size()));
  return static_cast<double>(sorted[std::min(index, sorted.size() - 1)].count()) / 1e3;
}

int main_of(int count, char** words) {
  if (count < 5) {
    std::fprintf(stderr, "usage: open_loop PORT throttle|get|check|http RATE SECONDS [CONNECTIONS]\n");
    return 2;
  }
  const auto port = static_cast<std::uint16_t>(std::atoi(words[1]));
  const std::int64_t rate = std::atoll(words[3]);
  const std::int64_t seconds = std::atoll(words[4]);
  const std::int64_t connections = count > 5 ? std::atoll(words[5]) : 50;
  if (port == 0 || rate < 1 || seconds < 1 || connections < 1) give_up("every number must be at least 1");
  Measured measured = run(port, speech_of(words[2]), rate, seconds, static_cast<std::size_t>(connections));
  std::sort(measured.latencies.begin(), measured.latencies.end());
  std::sort(measured.lags.begin(), measured.lags.end());
  std::printf(
      "{\"asked\": %zu, \"p50\": %.1f, \"p99\": %.1f, \"p99.9\": %.1f, \"p99.99\": %.1f, \"max\": %.1f, "
      "\"client_lag_p99.9\": %.1f, \"bursts\": %s}\n",
      measured.latencies.size(), quantile_us(measured.latencies, 0.5), quantile_us(measured.latencies, 0.99),
      quantile_us(measured.latencies, 0.999), quantile_us(measured.latencies, 0.9999),
      quantile_us(measured.latencies, 1), quantile_us(measured.lags, 0.999), print_bursts(measured).c_str());
  return 0;
}

}  // namespace
}  // namespace weir::bench

int main(int count, char** words) {
  return weir::bench::main_of(count, words);
}
