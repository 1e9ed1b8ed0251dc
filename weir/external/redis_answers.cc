#include "weir/external/redis_answers.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <map>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "weir/base/bounds.h"
#include "weir/external/stored_answer.h"
#include "weir/redis/shared_hash.h"
#include "weir/redis/targets.h"

namespace weir::external {
namespace {

using redis::SharedHash;
using Reply = Result<const resp::Reply*>;

constexpr Duration kPollEvery = std::chrono::milliseconds{400};
// A server forgets an answer a second time after this delay: a call that began before the others saw the first
// announcement may have brought the old answer back. All see the second one within a second of the first.
constexpr Duration kAgainAfter = std::chrono::milliseconds{500};
// How long an announcement is kept. A server that could not poll for longer drops its whole cache.
constexpr Duration kAnnouncedFor = std::chrono::hours{1};
constexpr Duration kCleanEvery = std::chrono::minutes{1};
// How long connecting to Redis may take before it is logged as unavailable.
constexpr Duration kConnectingMax = std::chrono::seconds{2};
// How long sharing must work before its recovery is logged.
constexpr Duration kHealthyFor = std::chrono::seconds{1};
constexpr std::size_t kFieldsAtOnce = 500;

std::string milliseconds(Duration d) {
  return std::to_string(std::chrono::ceil<std::chrono::milliseconds>(d).count());
}

std::string print_seconds_of(Wall wall) {
  return std::to_string(std::chrono::ceil<std::chrono::seconds>(wall.time_since_epoch()).count());
}

// The name of an announcement. Unambiguous, because limit names have no ':'.
std::string name_of(std::string_view limit, std::string_view key) {
  return std::string(limit).append(":").append(key);
}

}  // namespace

// Used on the loop's thread unless a member says otherwise. Reply handlers share ownership, so it outlives them.
class RedisAnswers::Parts : public std::enable_shared_from_this<Parts> {
 public:
  Parts(Loop& loop, redis::Commands& commands, Options options)
      : loop_(loop),
        commands_(commands),
        options_(std::move(options)),
        forgotten_hash_(commands, options_.key_prefix + "extcache:forgotten") {
    std::random_device device;
    random_.seed(std::uint64_t{device()} << 32 | device());
  }
  Loop& loop() noexcept { return loop_; }
  bool is_up() const noexcept { return up_.load(std::memory_order_relaxed); }  // any thread

  void start();
  // Makes no more callbacks, except for reads in progress. Later replies still find this object alive.
  void stop() {
    loop_.cancel(std::exchange(timer_, 0));
    stopped_ = true;
    forgotten_ = nullptr;
  }
  void on_forgotten(Forgotten forgotten) { forgotten_ = std::move(forgotten); }
  void read(std::string limit, std::string key, std::string service, Done done);
  void write(const std::string& limit, const std::string& key, const KeptAnswer& answer);
  void forget(const std::string& limit, const std::string& key, std::function<void(bool)> done);

 private:
  // One read: of the fresh copy, or of the stale one if there is no fresh one.
  struct Reading {
    std::string limit;
    std::string key;
    std::string service;
    Done done;  // empty once called
    Loop::TimerId timer = 0;
    bool stale = false;
    std::optional<std::string> text;
    std::optional<std::int64_t> left_ms;
    int missing = 0;  // replies
  };
  using ReadingPointer = std::shared_ptr<Reading>;

  std::string fresh_key(std::string_view limit, std::string_view key) const {
    return options_.key_prefix + "extcache:" + name_of(limit, key);
  }
  std::string stale_key(std::string_view limit, std::string_view key) const {
    return options_.key_prefix + "extcache:stale:" + name_of(limit, key);
  }

  void ask_copy(const ReadingPointer& reading);
  void take_reply(const ReadingPointer& reading, const Reply& reply);
  void end_copy(const ReadingPointer& reading);
  void finish(const ReadingPointer& reading, std::optional<KeptAnswer> answer);
  void remove(const std::string& limit, const std::string& key, std::function<void(bool)> done);
  void announce(std::string name, std::function<void(bool)> done);
  void poll();
  void take_announcements(const Result<SharedHash::ReadResult>& result);
  void remove_old_announcements();
  void log_failure(std::string_view why);
  void log_recovery();

  Loop& loop_;
  redis::Commands& commands_;
  const Options options_;
  SharedHash forgotten_hash_;
  SharedHash::Texts announced_;  // as of the last look
  Forgotten forgotten_;
  bool stopped_ = false;
  std::mt19937_64 random_;
  Loop::TimerId timer_ = 0;
  bool polling_ = false;
  bool started_ = false;  // a server without limits services asks Redis nothing
  Time started_at_{};
  std::optional<Time> looked_at_;  // the last successful poll; empty: none yet
  Time clean_at_{};
  std::atomic<bool> up_{false};
  bool failing_ = false;  // logged
  Time healthy_since_{};  // Time{}: not
};

// Starts polling before the first answer is read. Announcements found by the first poll are news, too: while Redis was
// unreachable, this server may have cached answers that were forgotten since.
void RedisAnswers::Parts::start() {
  if (std::exchange(started_, true)) return;
  started_at_ = loop_.now().time;
  poll();
}

// ---- One answer ----

void RedisAnswers::Parts::read(std::string limit, std::string key, std::string service, Done done) {
  start();
  if (!commands_.is_up()) return done(std::nullopt);
  auto reading = std::make_shared<Reading>();
  reading->limit = std::move(limit);
  reading->key = std::move(key);
  reading->service = std::move(service);
  reading->done = std::move(done);
  reading->timer = loop_.at(loop_.now().time + bounds::shared_read_time_max, [self = shared_from_this(), reading] {
    reading->timer = 0;
    self->finish(reading, std::nullopt);
  });
  ask_copy(reading);
}

// GET and PTTL go out together. If the copy expires in between, PTTL says so.
void RedisAnswers::Parts::ask_copy(const ReadingPointer& reading) {
  const std::string key =
      reading->stale ? stale_key(reading->limit, reading->key) : fresh_key(reading->limit, reading->key);
  reading->text.reset();
  reading->left_ms.reset();
  reading->missing = 2;
  for (const std::string_view word : {"GET", "PTTL"}) {
    const std::array<std::string_view, 2> command = {word, key};
    commands_.ask(key, command,
                  [self = shared_from_this(), reading](const Reply& reply) { self->take_reply(reading, reply); });
  }
}

void RedisAnswers::Parts::take_reply(const ReadingPointer& reading, const Reply& reply) {
  if (reply && redis::is_text((*reply)->root())) reading->text = std::string((*reply)->root().text);
  if (reply && (*reply)->root().type == resp::Type::integer) reading->left_ms = (*reply)->root().integer;
  if (--reading->missing == 0) end_copy(reading);
}

void RedisAnswers::Parts::end_copy(const ReadingPointer& reading) {
  if (!reading->done) return;
  if (reading->text && reading->left_ms && *reading->left_ms > 0) {
    constexpr std::int64_t kLeftMax =
        std::chrono::duration_cast<std::chrono::milliseconds>(bounds::service_ttl_max + bounds::stale_time).count();
    const Duration left = std::chrono::milliseconds{std::min(*reading->left_ms, kLeftMax)};
    auto answer = parse_stored_answer({*reading->text, reading->limit, reading->service, left, reading->stale},
                                      options_.window_max, options_.clock->now());
    // Another service's answer, or one of another version of Weir, is as good as none.
    if (answer) return finish(reading, std::move(*answer));
  }
  if (reading->stale) return finish(reading, std::nullopt);
  reading->stale = true;
  ask_copy(reading);
}

void RedisAnswers::Parts::finish(const ReadingPointer& reading, std::optional<KeptAnswer> answer) {
  loop_.cancel(std::exchange(reading->timer, 0));
  if (const Done done = std::exchange(reading->done, nullptr)) done(std::move(answer));
}

void RedisAnswers::Parts::write(const std::string& limit, const std::string& key, const KeptAnswer& answer) {
  if (!commands_.is_up()) return;
  const Now now = options_.clock->now();
  const std::string text = print_stored_answer(limit, answer, now);
  const auto set = [&](const std::string& at, Duration left) {
    if (left <= Duration::zero()) return;
    const std::string life = milliseconds(left);
    const std::array<std::string_view, 5> command = {"SET", at, text, "PX", life};
    commands_.ask(at, command, [self = shared_from_this()](const Reply& reply) {
      if (!reply && self->commands_.is_up()) self->log_failure(reply.error().detail);
    });
  };
  set(fresh_key(limit, key), answer.fresh_until - now.time);
  if (answer.stale_until > answer.fresh_until) set(stale_key(limit, key), answer.stale_until - now.time);
}

// ---- What was forgotten ----

void RedisAnswers::Parts::forget(const std::string& limit, const std::string& key, std::function<void(bool)> done) {
  start();
  loop_.at(loop_.now().time + kAgainAfter, [self = shared_from_this(), limit, key] {
    if (!self->stopped_) self->remove(limit, key, [](bool) {});
  });
  remove(limit, key, std::move(done));
}

// Removes the answer here, then on Redis, and only then announces it: otherwise other servers could read it again.
void RedisAnswers::Parts::remove(const std::string& limit, const std::string& key, std::function<void(bool)> done) {
  if (forgotten_) forgotten_(limit, key);
  struct Removal {
    int missing = 2;
    bool failed = false;
  };
  const auto removal = std::make_shared<Removal>();
  const auto removed = [self = shared_from_this(), removal, limit, key, done = std::move(done)](const Reply& reply) {
    removal->failed |= !reply;
    if (--removal->missing > 0) return;
    // A read that was under way may have put it back.
    if (self->forgotten_) self->forgotten_(limit, key);
    if (removal->failed) return done(false);
    self->announce(name_of(limit, key), done);
  };
  for (const std::string& at : {fresh_key(limit, key), stale_key(limit, key)}) {
    const std::array<std::string_view, 2> command = {"DEL", at};
    commands_.ask(at, command, removed);
  }
}

// The text differs from every earlier announcement of the same name.
void RedisAnswers::Parts::announce(std::string name, std::function<void(bool)> done) {
  std::string text = print_seconds_of(options_.clock->now().wall + kAnnouncedFor) + "." + std::to_string(random_());
  announced_.insert_or_assign(name, text);  // not news to us
  forgotten_hash_.change(SharedHash::Change::put, {std::move(name), std::move(text)},
                         [self = shared_from_this(), done = std::move(done)](const Result<std::size_t>& count) {
                           done(count.has_value());
                         });
}

void RedisAnswers::Parts::poll() {
  if (stopped_) return;
  const Time now = loop_.now().time;
  timer_ = loop_.at(now + kPollEvery, [this] { poll(); });  // stop() cancels it
  if (!commands_.is_up()) {
    up_.store(false, std::memory_order_relaxed);
    if (looked_at_ || now - started_at_ >= kConnectingMax) log_failure("Redis unavailable");
    return;
  }
  if (std::exchange(polling_, true)) return;
  forgotten_hash_.read([self = shared_from_this()](const Result<SharedHash::ReadResult>& result) {
    self->polling_ = false;
    self->take_announcements(result);
  });
}

void RedisAnswers::Parts::take_announcements(const Result<SharedHash::ReadResult>& result) {
  up_.store(result.has_value(), std::memory_order_relaxed);
  if (!result) {
    if (commands_.is_up()) log_failure(result.error().detail);
    return;
  }
  log_recovery();
  const Time now = loop_.now().time;
  const bool late = now - looked_at_.value_or(started_at_) >= kAnnouncedFor;
  looked_at_ = now;
  if (late && forgotten_) forgotten_({}, {});
  if (result->changed) {
    const SharedHash::Texts before = std::exchange(announced_, result->texts);
    for (const auto& [name, text] : announced_) {
      const auto known = before.find(name);
      const std::size_t colon = name.find(':');
      const bool is_news = !late && (known == before.end() || known->second != text);
      if (is_news && colon != name.npos && forgotten_) {
        forgotten_(std::string_view(name).substr(0, colon), std::string_view(name).substr(colon + 1));
      }
    }
  }
  remove_old_announcements();
}

// Redis compares with its own clock, so that one server whose clock is ahead removes none early.
void RedisAnswers::Parts::remove_old_announcements() {
  const Now now = options_.clock->now();
  if (now.time < clean_at_) return;
  clean_at_ = now.time + kCleanEvery;
  std::vector<std::string> words;
  for (const auto& [name, text] : announced_) {
    const std::string seconds = text.substr(0, text.find('.'));
    const bool is_number =
        !seconds.empty() && seconds.size() <= 12 && seconds.find_first_not_of("0123456789") == seconds.npos;
    // Weir did not write text of another form: remove it.
    const std::string until = is_number ? seconds : "0";
    if (std::chrono::seconds{std::stoll(until)} > now.wall.time_since_epoch()) continue;
    words.insert(words.end(), {name, text, until});
    if (words.size() == 3 * kFieldsAtOnce) break;  // the rest a minute later
  }
  if (!words.empty()) {
    forgotten_hash_.change(SharedHash::Change::finish, std::move(words),
                           [self = shared_from_this()](const Result<std::size_t>&) {});
  }
}

void RedisAnswers::Parts::log_failure(std::string_view why) {
  healthy_since_ = Time{};
  if (std::exchange(failing_, true) || !options_.log) return;
  options_.log(LogLevel::warn,
               "external answers not shared: " + std::string(why) + "; each server asks the service by itself");
}

void RedisAnswers::Parts::log_recovery() {
  if (!failing_) return;
  const Time now = loop_.now().time;
  if (healthy_since_ == Time{}) healthy_since_ = now;
  if (now - healthy_since_ < kHealthyFor) return;
  failing_ = false;
  if (options_.log) options_.log(LogLevel::info, "external answers shared again");
}

// ---- In any thread ----

RedisAnswers::RedisAnswers(Loop& loop, redis::Commands& commands, Options options)
    : parts_(std::make_shared<Parts>(loop, commands, std::move(options))) {}

RedisAnswers::~RedisAnswers() {
  parts_->loop().post([parts = parts_] { parts->stop(); });
}

void RedisAnswers::read(std::string_view limit, std::string_view key, std::string_view service, Done done) {
  parts_->loop().post([parts = parts_, limit = std::string(limit), key = std::string(key),
                       service = std::string(service), done = std::move(done)]() mutable {
    parts->read(std::move(limit), std::move(key), std::move(service), std::move(done));
  });
}

void RedisAnswers::write(std::string_view limit, std::string_view key, const KeptAnswer& answer) {
  parts_->loop().post([parts = parts_, limit = std::string(limit), key = std::string(key), answer] {
    parts->write(limit, key, answer);
  });
}

void RedisAnswers::forget(std::string_view limit, std::string_view key, std::function<void(bool shared)> done) {
  parts_->loop().post([parts = parts_, limit = std::string(limit), key = std::string(key),
                       done = std::move(done)]() mutable { parts->forget(limit, key, std::move(done)); });
}

void RedisAnswers::on_forgotten(Forgotten forgotten) {
  parts_->loop().post(
      [parts = parts_, forgotten = std::move(forgotten)]() mutable { parts->on_forgotten(std::move(forgotten)); });
}

bool RedisAnswers::is_up() const noexcept {
  return parts_->is_up();
}

}  // namespace weir::external
