// Services without a network: calls that a test answers when it likes, loops that run when it says so, and a cache that
// two servers share.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/external/services.h"

namespace weir::external {

inline ServiceReply reply_of(Count average, Count burst, Duration period = std::chrono::seconds{1}) {
  ServiceReply reply;
  if (average > 0) reply.answer.numbers = *Limit::make(average, period, burst);
  return reply;
}

// Work of one loop. Any thread may post; one thread runs it.
class FakeLoop {
 public:
  LoopServices::Post post() {
    return [this](std::function<void()> work) {
      const std::lock_guard lock(mutex_);
      work_.push_back(std::move(work));
    };
  }
  // Until nothing is left. Returns whether there was anything.
  bool run() {
    bool any = false;
    while (auto work = take()) {
      work();
      any = true;
    }
    return any;
  }

 private:
  std::function<void()> take() {
    const std::lock_guard lock(mutex_);
    if (work_.empty()) return {};
    std::function<void()> first = std::move(work_.front());
    work_.pop_front();
    return first;
  }

  std::mutex mutex_;
  std::deque<std::function<void()>> work_;
};

// The calls of all loops, in the order made.
struct FakeCalls {
  struct Made {
    std::string key;
    ServiceQuestion question;
    Caller::Done done;
  };
  std::deque<Made> open;
  std::size_t made = 0;
  std::size_t most = 0;  // open at once

  // Ends the oldest.
  void answer(const ServiceReply& reply, Duration fresh = std::chrono::seconds{60}, bool keep_stale = true) {
    end({reply, {fresh, keep_stale}});
  }
  void fail(std::string_view word = "unavailable") { end({Error{Fault::unavailable, "no", 0, word}, {}}); }

 private:
  void end(CallOutcome outcome) {
    Made first = std::move(open.front());
    open.pop_front();
    first.done(std::move(outcome));
  }
};

class FakeCaller final : public Caller {
 public:
  explicit FakeCaller(FakeCalls& calls) : calls_(calls) {}
  void call(std::shared_ptr<const LimitsService>, const ServiceQuestion& question, Done done) override {
    ++calls_.made;
    calls_.open.push_back({question.key, question, std::move(done)});
    calls_.most = std::max(calls_.most, calls_.open.size());
  }

 private:
  FakeCalls& calls_;
};

class FakeShared final : public SharedAnswers {
 public:
  void read(std::string_view limit, std::string_view key, std::string_view service, Done done) override {
    ++reads;
    const auto found = kept.find(std::string(limit) + ":" + std::string(key));
    if (found == kept.end() || found->second.service != service) return done({});
    KeptAnswer copy = found->second;
    copy.shared = true;
    done(std::move(copy));
  }
  void write(std::string_view limit, std::string_view key, const KeptAnswer& answer) override {
    kept[std::string(limit) + ":" + std::string(key)] = answer;
  }
  void forget(std::string_view limit, std::string_view key, std::function<void(bool)> done) override {
    kept.erase(std::string(limit) + ":" + std::string(key));
    for (const Forgotten& one : record) {
      if (one) one(limit, key);
    }
    done(true);
  }
  void on_forgotten(Forgotten forgotten) override {
    if (forgotten) record.push_back(std::move(forgotten));
  }
  bool is_up() const noexcept override { return true; }

  std::map<std::string, KeptAnswer> kept;
  std::vector<Forgotten> record;
  int reads = 0;
};

}  // namespace weir::external
