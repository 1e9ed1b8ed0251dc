#include "weir/app/redis_desk.h"

#include <future>
#include <utility>

namespace weir::app {

// A loop's side of the desk's roster.
class RedisDesk::LoopRoster final : public Roster {
 public:
  LoopRoster(RedisDesk& desk, Loop& loop) : desk_(desk), loop_(loop) {}

  void visit(std::string_view cursor, Look look, Now now, const Visit& visit, const Done& done) override {
    desk_.loop_->post([&desk = desk_, cursor = std::string(cursor), look, now, visit, done = back(done)] {
      desk.roster_->visit(cursor, look, now, visit, done);
    });
  }

  void forget(std::string_view cursor, Now now, const Done& done) override {
    desk_.loop_->post([&desk = desk_, cursor = std::string(cursor), now, done = back(done)] {
      desk.roster_->forget(cursor, now, [&desk, done](const Result<Step>& step) {
        desk.denials_->forget_all();
        done(step);
      });
    });
  }

 private:
  // Calls it in the loop's thread.
  Done back(const Done& done) {
    return [&loop = loop_, done](const Result<Step>& step) { loop.post([done, step] { done(step); }); };
  }

  RedisDesk& desk_;
  Loop& loop_;
};

Result<std::unique_ptr<RedisDesk>> RedisDesk::make(redis::RedisStore::Options options,
                                                   const redis::MakeTopology& make_topology) {
  auto clock = std::make_unique<BootClock>();
  auto loop = Loop::make(*clock);
  if (!loop) return loop.error();
  return std::unique_ptr<RedisDesk>(
      new RedisDesk(std::move(clock), std::move(*loop), std::move(options), make_topology));
}

RedisDesk::RedisDesk(std::unique_ptr<BootClock> clock, std::unique_ptr<Loop> loop, redis::RedisStore::Options options,
                     const redis::MakeTopology& make_topology)
    : clock_(std::move(clock)), loop_(std::move(loop)), denials_(options.denials), key_prefix_(options.key_prefix) {
  options.script = redis::kSharedHashScript;
  options.decides = false;
  const redis::RedisRoster::Options listing{options.key_prefix, options.hash_tag, options.denial_key};
  store_ = std::make_unique<redis::RedisStore>(*loop_, std::move(options), silent_, make_topology);
  roster_ = std::make_unique<redis::RedisRoster>(*loop_, *store_, listing);
  hash_key_ = std::make_unique<RedisHashKey>(*loop_, *store_, key_prefix_);
  thread_ = std::thread([this] { loop_->run(); });
}

RedisDesk::~RedisDesk() {
  stop();
}

bool RedisDesk::share(KnownKeeper& keeper, RedisKnown::Log log, Duration at_most) {
  known_ = std::make_unique<RedisKnown>(*loop_, *store_, key_prefix_, keeper, std::move(log));
  keeper.share_with(*known_);
  return known_->wait(at_most);
}

Result<RedisHashKey::Found> RedisDesk::wait_for_hash_key(Duration at_most) {
  using Found = Result<RedisHashKey::Found>;
  const auto promise = std::make_shared<std::promise<Found>>();
  std::future<Found> found = promise->get_future();
  loop_->post([this, promise, at_most] {
    hash_key_->ask({}, loop_->now().time + at_most, [promise](const Found& key) { promise->set_value(key); });
  });
  if (found.wait_for(at_most) == std::future_status::ready) return found.get();
  return Error{Fault::unavailable, "Redis did not reply in time"};
}

void RedisDesk::ask_hash_key(const std::string& known, RedisHashKey::Done done) {
  loop_->post([this, known, done = std::move(done)] { hash_key_->ask(known, loop_->now().time, done); });
}

void RedisDesk::stop() {
  loop_->stop();
  if (thread_.joinable()) thread_.join();
}

std::unique_ptr<Roster> RedisDesk::roster(Loop& loop) {
  return std::make_unique<LoopRoster>(*this, loop);
}

}  // namespace weir::app
