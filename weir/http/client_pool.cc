#include "weir/http/client_pool.h"

#include <algorithm>
#include <functional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weir/http/client_origin.h"

namespace weir::http {
namespace {

struct OriginHash {
  std::size_t operator()(const Origin& origin) const noexcept {
    const std::hash<std::string_view> text;
    const std::size_t place = text(origin.target.host) ^ text(origin.target.path) * 3 ^ origin.target.port;
    return (place * 31 + static_cast<std::size_t>(origin.version)) ^ std::hash<const void*>{}(origin.tls.get());
  }
};

struct SameOrigin {
  bool operator()(const Origin& a, const Origin& b) const noexcept {
    return a.target == b.target && a.version == b.version && a.tls == b.tls && a.server_name == b.server_name &&
           a.public_only == b.public_only;
  }
};

// A timer is not set more often than this.
constexpr Duration kTickMin = std::chrono::milliseconds{1};

}  // namespace

class ClientPool::Parts final : private Settler {
 public:
  Parts(Loop& loop, Resolver& resolver, const Options& options)
      : shared_{loop, resolver, options, std::make_shared<ClientShared>(), 0, this} {}
  ~Parts() {
    Loop::forget(*this);
    shared_.loop.cancel(timer_);
  }

  Call call(const Origin& origin, const CallHead& head, BodyPart first, Call::Owner& owner,
            const CallOptions& options) {
    const Time now = shared_.loop.reading().time;
    CallState& state = calls_.take(head, first, owner, options, now);
    Call handle = state.handle();
    auto at = origins_.find(origin);
    if (at == origins_.end()) at = origins_.emplace(origin, std::make_unique<ClientOrigin>(origin, shared_)).first;
    at->second->add(state);
    arm(std::min(state.due(), now + state.shortest()));
    return handle;
  }

  Counts counts() const noexcept {
    Counts counts{0, 0, calls_.live().size(), shared_.retries};
    for (const auto& [key, origin] : origins_) {
      counts.connections += origin->connections();
      counts.idle += origin->idle();
    }
    return counts;
  }

 private:
  void settle() override {
    for (ClientOrigin* const origin : all_origins()) origin->settle();
    std::erase_if(origins_, [](const auto& item) { return item.second->is_empty(); });
  }

  // A callback may add an origin, so loops iterate over a copy. Only settle() removes origins.
  std::vector<ClientOrigin*> all_origins() const {
    std::vector<ClientOrigin*> all;
    for (const auto& [key, origin] : origins_) all.push_back(origin.get());
    return all;
  }

  void arm(Time when) {
    if (when >= timer_at_) return;
    shared_.loop.cancel(timer_);
    timer_at_ = when;
    timer_ = shared_.loop.at(when, [this] { tick(); });
  }

  // Ends what has taken too long. The next tick is never later than a call that is open now can be due.
  void tick() {
    timer_ = 0;
    timer_at_ = Time::max();
    const Time now = shared_.loop.now().time;
    // Once more if one was due: a callback may have moved others in the list.
    if (expire_calls(now)) expire_calls(now);
    Time next = Time::max();
    for (const CallState* const call : calls_.live()) next = std::min({next, call->due(), now + call->shortest()});
    for (ClientOrigin* const origin : all_origins()) next = std::min(next, origin->expire(now));
    if (next != Time::max()) arm(std::max(next, now + kTickMin));
  }

  // Returns whether one was due.
  bool expire_calls(Time now) {
    bool any = false;
    for (std::size_t i = 0; i < calls_.live().size();) {
      CallState& call = *calls_.live()[i];
      if (call.due() > now) {
        ++i;
        continue;
      }
      any = true;
      const bool was_sent = call.place->has_sent(call);
      Error why = call.place->timed_out(call);
      call.place->cancel(call);
      call.fail({std::move(why), was_sent, false});
    }
    return any;
  }

  ClientOrigin::Shared shared_;
  CallStates calls_;
  std::unordered_map<Origin, std::unique_ptr<ClientOrigin>, OriginHash, SameOrigin> origins_;
  Loop::TimerId timer_ = 0;
  Time timer_at_ = Time::max();
};

ClientPool::ClientPool(Loop& loop, Resolver& resolver, Options options)
    : parts_(std::make_unique<Parts>(loop, resolver, options)) {}

ClientPool::~ClientPool() = default;

Call ClientPool::call(const Origin& origin, const CallHead& head, BodyPart first, Call::Owner& owner,
                      const CallOptions& options) {
  return parts_->call(origin, head, first, owner, options);
}

ClientPool::Counts ClientPool::counts() const noexcept {
  return parts_->counts();
}

}  // namespace weir::http
