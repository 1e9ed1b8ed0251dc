#include "weir/app/redis_admin.h"

#include <future>
#include <utility>

#include "weir/external/redis_answers.h"

namespace weir::app {

// One loop's access to the bucket scan on the admin thread.
class RedisAdmin::LoopBucketScan final : public BucketScan {
 public:
  LoopBucketScan(RedisAdmin& redis_admin, Loop& loop) : redis_admin_(redis_admin), loop_(loop) {}

  void visit(std::string_view cursor, Look look, Now now, const Visit& visit, const Done& done) override {
    redis_admin_.loop_->post([&redis_admin = redis_admin_, cursor = std::string(cursor), look, now, visit,
                              done = back(done)] { redis_admin.bucket_scan_->visit(cursor, look, now, visit, done); });
  }

  void forget(std::string_view cursor, Now now, const Done& done) override {
    redis_admin_.loop_->post([&redis_admin = redis_admin_, cursor = std::string(cursor), now, done = back(done)] {
      redis_admin.bucket_scan_->forget(cursor, now, [&redis_admin, done](const Result<Step>& step) {
        redis_admin.denials_->forget_all();
        done(step);
      });
    });
  }

 private:
  // Makes `done` run on the loop's thread.
  Done back(const Done& done) {
    return [&loop = loop_, done](const Result<Step>& step) { loop.post([done, step] { done(step); }); };
  }

  RedisAdmin& redis_admin_;
  Loop& loop_;
};

Result<std::unique_ptr<RedisAdmin>> RedisAdmin::make(redis::RedisStore::Options options,
                                                     const redis::MakeTopology& make_topology) {
  auto clock = std::make_unique<BootClock>();
  auto loop = Loop::make(*clock);
  if (!loop) return loop.error();
  return std::unique_ptr<RedisAdmin>(
      new RedisAdmin(std::move(clock), std::move(*loop), std::move(options), make_topology));
}

RedisAdmin::RedisAdmin(std::unique_ptr<BootClock> clock, std::unique_ptr<Loop> loop, redis::RedisStore::Options options,
                       const redis::MakeTopology& make_topology)
    : clock_(std::move(clock)), loop_(std::move(loop)), denials_(options.denials), key_prefix_(options.key_prefix) {
  options.script = redis::kSharedHashScript;
  options.decides = false;
  const redis::RedisBucketScan::Options listing{options.key_prefix, options.hash_tag, options.denial_key};
  store_ = std::make_unique<redis::RedisStore>(*loop_, std::move(options), silent_, make_topology);
  bucket_scan_ = std::make_unique<redis::RedisBucketScan>(*loop_, *store_, listing);
  hash_key_ = std::make_unique<RedisHashKey>(*loop_, *store_, key_prefix_);
  thread_ = std::thread([this] { loop_->run(); });
}

RedisAdmin::~RedisAdmin() {
  stop();
}

bool RedisAdmin::share(KnownKeeper& keeper, RedisKnown::Log log, Duration at_most) {
  known_ = std::make_unique<RedisKnown>(*loop_, *store_, key_prefix_, keeper, std::move(log));
  keeper.share_with(*known_);
  return known_->wait(at_most);
}

Result<RedisHashKey::Found> RedisAdmin::wait_for_hash_key(Duration at_most) {
  using Found = Result<RedisHashKey::Found>;
  const auto promise = std::make_shared<std::promise<Found>>();
  std::future<Found> found = promise->get_future();
  loop_->post([this, promise, at_most] {
    hash_key_->ask({}, loop_->now().time + at_most, [promise](const Found& key) { promise->set_value(key); });
  });
  if (found.wait_for(at_most) == std::future_status::ready) return found.get();
  return Error{Fault::unavailable, "Redis did not reply in time"};
}

void RedisAdmin::ask_hash_key(const std::string& known, RedisHashKey::Done done) {
  loop_->post([this, known, done = std::move(done)] { hash_key_->ask(known, loop_->now().time, done); });
}

std::unique_ptr<external::SharedAnswers> RedisAdmin::answers(const Clock& clock, Duration window_max,
                                                             redis::Health::Log log) {
  return std::make_unique<external::RedisAnswers>(
      *loop_, *store_, external::RedisAnswers::Options{key_prefix_, window_max, &clock, std::move(log)});
}

void RedisAdmin::stop() {
  loop_->stop();
  if (thread_.joinable()) thread_.join();
}

std::unique_ptr<BucketScan> RedisAdmin::bucket_scan(Loop& loop) {
  return std::make_unique<LoopBucketScan>(*this, loop);
}

}  // namespace weir::app
