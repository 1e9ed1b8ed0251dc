// A RedisStore on a real Redis for tests: its loop runs in its own thread, and the test sets its time.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "weir/net/loop_thread_test.h"
#include "weir/store/redis/redis_store.h"
#include "weir/store/redis/timed_script_test.h"
#include "weir/store/testing/redis_server.h"
#include "weir/store/testing/subject.h"

namespace weir::redis {

// For tests of anything but timeouts: a busy machine is not an outage.
inline RedisStore::Options patient(std::size_t links = 2) {
  RedisStore::Options options;
  options.link.timeout = std::chrono::seconds{20};
  options.pool_size = links;
  return options;
}

// Collects the answers of one batch; another thread waits for them. Tickets are replaced by indices.
class Collected final : public Answers {
 public:
  explicit Collected(std::size_t count) : results_(count, Error{Fault::internal, "no answer"}), missing_(count) {}
  void answer(Ticket ticket, const Result<Verdict>& verdict) override {
    const std::lock_guard lock(mutex_);
    results_.at(ticket) = verdict;
    if (--missing_ == 0) changed_.notify_one();
  }
  std::vector<Result<Verdict>> wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return missing_ == 0; });
    return std::move(results_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Result<Verdict>> results_;
  std::size_t missing_;
};

class StoreOnRedis {
 public:
  explicit StoreOnRedis(std::uint16_t port, RedisStore::Options options = patient())
      : StoreOnRedis(
            [port](Loop&, const MakeNode& make_node) {
              return std::make_unique<SingleTopology>(make_node, Target{"127.0.0.1", port, {}});
            },
            std::move(options)) {}
  StoreOnRedis(const MakeTopology& make_topology, RedisStore::Options options) : options_(std::move(options)) {
    thread_.run([&] { store_ = std::make_unique<RedisStore>(thread_.loop(), options_, health_, make_topology); });
  }
  ~StoreOnRedis() {
    thread_.run([&] { store_.reset(); });
  }

  // `now`: the time at which it counts as asked.
  std::vector<Result<Verdict>> ask(std::span<const Question> batch, std::optional<Now> now = {}) {
    std::vector<Question> questions(batch.begin(), batch.end());
    for (std::size_t i = 0; i < questions.size(); ++i) questions[i].ticket = i;
    Collected collected(questions.size());
    if (questions.empty()) return {};
    thread_.run([&] { store_->charge(questions, now.value_or(thread_.loop().now()), collected); });
    return collected.wait();
  }
  void wait_until(bool up) {
    while (health_.is_up() != up) std::this_thread::sleep_for(std::chrono::milliseconds{1});
  }
  Health& health() noexcept { return health_; }
  LoopThread& thread() noexcept { return thread_; }
  RedisStore& store() noexcept { return *store_; }
  std::vector<std::string> log() {
    const std::lock_guard lock(log_mutex_);
    return log_;
  }

 private:
  std::mutex log_mutex_;
  std::vector<std::string> log_;
  Health health_{[this](LogLevel, std::string_view line) {
    const std::lock_guard lock(log_mutex_);
    log_.emplace_back(line);
  }};
  RedisStore::Options options_;
  LoopThread thread_;
  std::unique_ptr<RedisStore> store_;
};

// Time stands still until the test advances it. Flushes Redis first.
class RedisSubject final : public Subject {
 public:
  explicit RedisSubject(RedisServer& server) : text_(timed_script()) {
    server.ask({"FLUSHALL"});
    sha_ = server.ask({"SCRIPT", "LOAD", text_});
    RedisStore::Options options = patient(1);  // one link keeps the order of questions
    options.script = {text_, sha_};
    options.test_time = [this] { return next_time(); };
    store_ = std::make_unique<StoreOnRedis>(server.port(), std::move(options));
    store_->wait_until(true);
  }
  std::vector<Result<Verdict>> ask(std::span<const Question> batch) override { return store_->ask(batch); }
  void advance(Duration by) override { wall_ += by; }
  Wall wall() const override { return wall_; }
  // Sets the times of the next questions, one each.
  void schedule(std::deque<Wall> times) { times_ = std::move(times); }

 private:
  Wall next_time() {
    if (times_.empty()) return wall_;
    wall_ = times_.front();
    times_.pop_front();
    return wall_;
  }

  std::string text_;
  std::string sha_;
  Wall wall_{std::chrono::seconds{600'000'000}};
  std::deque<Wall> times_;
  std::unique_ptr<StoreOnRedis> store_;
};

}  // namespace weir::redis
