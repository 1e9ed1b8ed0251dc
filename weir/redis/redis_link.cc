#include "weir/redis/redis_link.h"

#include <algorithm>
#include <utility>

#include "weir/base/text.h"

namespace weir::redis {
namespace {

// A connection that has served this long was a good one: what ended it is news, and the next try need not wait.
constexpr Duration kGood = std::chrono::seconds{1};

// How long replicas are not waited for after they were too late: a replica that is gone must not slow everything down.
constexpr Duration kReplicasRest = std::chrono::seconds{1};

// Written at once. More is more than the kernel takes, and a stream refuses what it cannot keep whole.
constexpr std::size_t kPieceBytes = 1u << 20;

}  // namespace

std::string cause_at(const Target& target, std::string_view why) {
  const std::string address = target.print();
  return why.starts_with(address) ? std::string(why) : address + ": " + std::string(why);
}

RedisLink::RedisLink(Loop& loop, Owner& owner, Options options)
    : loop_(loop),
      owner_(owner),
      options_(std::move(options)),
      client_(options_.client, *this),
      random_(std::random_device{}()) {
  options_.stream.connect_timeout = options_.connect_timeout;
}

RedisLink::~RedisLink() {
  loop_.cancel(timer_);
  loop_.cancel(retry_);
}

void RedisLink::start() {
  if (stream_ == nullptr && retry_ == 0) connect();
}

void RedisLink::connect() {
  stream_ = std::make_unique<Stream>(loop_, static_cast<Stream::Owner&>(*this), options_.stream);
  agree_by_ = loop_.now().time + options_.connect_timeout;
  arm(agree_by_);
  stream_->connect(options_.target);
}

void RedisLink::connected() {
  client_.open();
  flush();
}

void RedisLink::received(std::string_view bytes) {
  heard_at_ = loop_.now().time;
  receiving_ = true;
  const auto taken = client_.receive(bytes);
  receiving_ = false;
  if (const std::size_t landed = take_landed(); landed != 0) window_->landed(landed, heard_at_);
  if (!taken || !reset_why_.empty()) {
    const std::string why = taken ? std::exchange(reset_why_, {}) : taken.error().detail;
    fail(why);
    return;
  }
  if (client_.is_ready() && ready_since_ == Time{}) {
    ready_since_ = loop_.now().time;
    agree_by_ = Time::max();
  }
  stalled_ = false;
  waiting_since_ = client_.is_ready() && client_.unanswered() > 0 ? heard_at_ : Time::max();
  flush();
  update();
}

void RedisLink::closed(const Error& why) {
  fail(why.detail);
}

bool RedisLink::queue(bool queued, Time deadline) {
  if (!queued) return false;
  if (waiting_since_ == Time::max()) {
    waiting_since_ = loop_.now().time;
    arm(waiting_since_ + options_.timeout);
  }
  arm(deadline);
  count_sent();
  return true;
}

void RedisLink::count_sent() noexcept {
  if (window_ == nullptr) return;
  const std::uint64_t before = std::exchange(counted_sent_, client_.buckets_sent());
  window_->sent(static_cast<std::size_t>(counted_sent_ - before), loop_.now().time);
}

std::size_t RedisLink::take_landed() noexcept {
  if (window_ == nullptr) return 0;
  // A script that was loaded and asked again on the way was sent once more.
  count_sent();
  const std::uint64_t before = std::exchange(counted_landed_, client_.buckets_landed());
  return static_cast<std::size_t>(counted_landed_ - before);
}

bool RedisLink::send(Tag tag, std::span<const std::string_view> arguments, Time deadline, Effect effect) {
  return queue(client_.send(tag, arguments, deadline, effect), deadline);
}

bool RedisLink::send_encoded(Tag tag, std::string_view bytes, Time deadline, bool asking) {
  return queue(client_.send_encoded(tag, bytes, deadline, asking), deadline);
}

void RedisLink::unreplicated() {
  seals_from_ = loop_.now().time + kReplicasRest;
  owner_.unreplicated(*this);
}

void RedisLink::flush() {
  if (stream_ == nullptr) return;
  const Time now = loop_.now().time;
  client_.seal(now, now >= seals_from_ ? options_.replicas_timeout : Duration::zero());
  // Usually one. Full: the rest waits in the client until Redis is heard again or its time is over.
  for (std::string_view bytes = client_.unwritten(); !bytes.empty(); bytes = client_.unwritten()) {
    bytes = bytes.substr(0, kPieceBytes);
    if (!stream_->write(bytes)) return;
    client_.wrote(bytes.size());
  }
}

void RedisLink::reset(std::string_view why) {
  if (receiving_) {
    reset_why_ = why;
  } else {
    fail(why);
  }
}

void RedisLink::fail(std::string_view why) {
  if (stream_ == nullptr) return;
  // Of sealed bytes nobody knows what they were: then all of it counts as seen.
  const std::size_t unsent = options_.stream.tls == nullptr ? stream_->unsent_bytes() : 0;
  stream_.reset();
  agree_by_ = Time::max();
  stalled_ = false;
  waiting_since_ = Time::max();
  const Time now = loop_.now().time;
  const bool good = ready_since_ != Time{} && now - ready_since_ >= kGood;
  ready_since_ = Time{};
  // Before those who sent hear of it, so that they do not send here again.
  const bool was_up = std::exchange(up_, false);
  const bool was_reconnecting = std::exchange(reconnecting_, good);
  client_.close(unsent);
  if (const std::size_t lost = take_landed(); lost != 0) window_->lost(lost);
  if (good) backoff_ = kBackoffMin;
  Duration wait = Duration::zero();
  if (!good) {
    wait = Duration{std::uniform_int_distribution<std::int64_t>(0, backoff_.count())(random_)};
    backoff_ = std::min(backoff_ * 2, kBackoffMax);
  }
  retry_ = loop_.at(now + wait, [this] {
    retry_ = 0;
    connect();
  });
  const bool other = failed_why_ != why;
  failed_why_ = why;
  if (was_up || was_reconnecting || !std::exchange(told_, true)) {
    owner_.changed(*this, failed_why_);
  } else if (other) {
    owner_.still_down(*this, failed_why_);
  }
}

std::string RedisLink::no_reply() const {
  return "no reply within " + print_duration(options_.timeout);
}

void RedisLink::update() {
  const bool up = client_.is_ready() && !stalled_;
  if (up == up_) return;
  up_ = up;
  told_ = true;
  if (up) reconnecting_ = false;
  owner_.changed(*this, up ? std::string() : no_reply());
}

void RedisLink::arm(Time when) {
  if (when >= timer_at_) return;
  loop_.cancel(timer_);
  timer_at_ = when;
  timer_ = loop_.at(when, [this] {
    // One turn later: this one reads the replies that have arrived. Redis is not late because this loop is.
    timer_ = loop_.at(loop_.now().time, [this] {
      timer_ = 0;
      timer_at_ = Time::max();
      check();
    });
  });
}

// Timers run before sockets are read: the second look, a turn later, has seen every reply that came in time.
void RedisLink::check() {
  const Time now = loop_.now().time;
  if (!std::exchange(checked_, true)) return arm(now);
  checked_ = false;
  if (now >= agree_by_) {
    fail("Redis handshake timed out after " + print_duration(options_.connect_timeout));
    return;
  }
  client_.expire(now);
  if (waiting_since_ != Time::max()) {
    if (now - waiting_since_ >= options_.timeout + kStallMax) {
      fail(no_reply());
      return;
    }
    stalled_ = stalled_ || now - waiting_since_ >= options_.timeout;
  }
  update();
  Time next = std::min(client_.deadline(), agree_by_);
  if (waiting_since_ != Time::max()) {
    next = std::min(next, waiting_since_ + options_.timeout + (stalled_ ? kStallMax : Duration::zero()));
  }
  if (next != Time::max()) arm(next);
}

}  // namespace weir::redis
