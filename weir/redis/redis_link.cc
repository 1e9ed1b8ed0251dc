#include "weir/redis/redis_link.h"

#include <algorithm>
#include <utility>

#include "weir/base/bounds.h"
#include "weir/base/text.h"

namespace weir::redis {
namespace {

// A connection that lasted this long was working: its loss is a new event, and the next attempt starts at once.
constexpr Duration kStableAfter = std::chrono::seconds{1};

// Pause after replicas did not confirm in time, so that a lost replica does not slow every command down.
constexpr Duration kReplicasRest = std::chrono::seconds{1};

// Largest single write. The kernel takes no more at once.
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
  options_.transport.open_timeout = options_.connect_timeout;
}

RedisLink::~RedisLink() {
  loop_.cancel(timer_);
  loop_.cancel(retry_);
}

void RedisLink::start() {
  if (transport_ == nullptr && retry_ == 0) connect();
}

void RedisLink::connect() {
  transport_ = std::make_unique<Transport>(loop_, static_cast<Transport::Owner&>(*this), options_.transport);
  written_ = 0;
  handshake_by_ = loop_.now().time + options_.connect_timeout;
  set_timer(handshake_by_);
  transport_->connect(options_.target);
}

void RedisLink::opened() {
  client_.open();
  flush();
}

std::size_t RedisLink::received(std::string_view bytes) {
  heard_at_ = loop_.now().time;
  receiving_ = true;
  const auto taken = client_.receive(bytes);
  receiving_ = false;
  if (const std::size_t answered = take_answered(); answered != 0) window_->answered(answered, heard_at_);
  if (!taken || !reset_why_.empty()) {
    const std::string why = taken ? std::exchange(reset_why_, {}) : taken.error().detail;
    fail(why);
    return bytes.size();
  }
  if (client_.is_ready() && ready_since_ == Time{}) {
    ready_since_ = loop_.now().time;
    handshake_by_ = Time::max();
  }
  stalled_ = false;
  waiting_since_ = client_.is_ready() && client_.unanswered() > 0 ? heard_at_ : Time::max();
  flush();
  update();
  return bytes.size();
}

void RedisLink::ended() {
  fail(options_.target.print() + " closed the connection");
}

void RedisLink::failed(const Error& why) {
  fail(why.detail);
}

bool RedisLink::queue(bool queued, Time deadline) {
  if (!queued) return false;
  if (waiting_since_ == Time::max()) {
    waiting_since_ = loop_.now().time;
    set_timer(waiting_since_ + options_.timeout);
  }
  set_timer(deadline);
  count_sent();
  return true;
}

void RedisLink::count_sent() noexcept {
  if (window_ == nullptr) return;
  const std::uint64_t before = std::exchange(counted_sent_, client_.buckets_sent());
  window_->sent(static_cast<std::size_t>(counted_sent_ - before), loop_.now().time);
}

std::size_t RedisLink::take_answered() noexcept {
  if (window_ == nullptr) return 0;
  // A command that was repeated after loading the script counts as sent twice.
  count_sent();
  const std::uint64_t before = std::exchange(counted_answered_, client_.buckets_answered());
  return static_cast<std::size_t>(counted_answered_ - before);
}

bool RedisLink::send(Tag tag, std::span<const std::string_view> arguments, Time deadline, Effect effect) {
  return queue(client_.send(tag, arguments, deadline, effect), deadline);
}

bool RedisLink::send_encoded(Tag tag, std::string_view bytes, Time deadline, bool asking) {
  return queue(client_.send_encoded(tag, bytes, deadline, asking), deadline);
}

void RedisLink::unreplicated() {
  waits_from_ = loop_.now().time + kReplicasRest;
  owner_.unreplicated(*this);
}

void RedisLink::flush() {
  if (transport_ == nullptr) return;
  const Time now = loop_.now().time;
  client_.add_wait(now, now >= waits_from_ ? options_.replicas_timeout : Duration::zero());
  // Usually one iteration. If Redis does not read, the rest waits in the client until Redis replies or its deadline
  // passes.
  for (std::string_view bytes = client_.unwritten(); !bytes.empty(); bytes = client_.unwritten()) {
    bytes = bytes.substr(0, kPieceBytes);
    if (transport_->unsent() + bytes.size() > bounds::redis_unsent_bytes_max) return;
    transport_->out().append(bytes);
    transport_->flush();
    written_ += bytes.size();
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
  if (transport_ == nullptr) return;
  // With TLS some of the unsent bytes are encrypted and cannot be mapped to commands, so all of them count as received
  // by Redis.
  const std::uint64_t unsent = options_.transport.tls == nullptr ? written_ - transport_->taken() : 0;
  transport_->close();
  loop_.retire(std::move(transport_));
  handshake_by_ = Time::max();
  stalled_ = false;
  waiting_since_ = Time::max();
  const Time now = loop_.now().time;
  const bool was_stable = ready_since_ != Time{} && now - ready_since_ >= kStableAfter;
  ready_since_ = Time{};
  // Set before the senders are notified, so that they do not send on this link again.
  const bool was_up = std::exchange(up_, false);
  const bool was_reconnecting = std::exchange(reconnecting_, was_stable);
  client_.close(static_cast<std::size_t>(unsent));
  if (const std::size_t lost = take_answered(); lost != 0) window_->lost(lost);
  if (was_stable) backoff_ = kBackoffMin;
  Duration wait = Duration::zero();
  if (!was_stable) {
    wait = Duration{std::uniform_int_distribution<std::int64_t>(0, backoff_.count())(random_)};
    backoff_ = std::min(backoff_ * 2, kBackoffMax);
  }
  retry_ = loop_.at(now + wait, [this] {
    retry_ = 0;
    connect();
  });
  const bool new_reason = failed_why_ != why;
  failed_why_ = why;
  if (was_up || was_reconnecting || !std::exchange(reported_, true)) {
    owner_.changed(*this, failed_why_);
  } else if (new_reason) {
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
  reported_ = true;
  if (up) reconnecting_ = false;
  owner_.changed(*this, up ? std::string() : no_reply());
}

void RedisLink::set_timer(Time when) {
  if (when >= timer_at_) return;
  loop_.cancel(timer_);
  timer_at_ = when;
  timer_ = loop_.at(when, [this] {
    // Runs a turn later: this turn still reads replies that have arrived. Redis is not late because this loop is.
    timer_ = loop_.at(loop_.now().time, [this] {
      timer_ = 0;
      timer_at_ = Time::max();
      check();
    });
  });
}

// Timers run before sockets are read: the second check, a turn later, has seen every reply that arrived in time.
void RedisLink::check() {
  const Time now = loop_.now().time;
  if (!std::exchange(checked_, true)) return set_timer(now);
  checked_ = false;
  if (now >= handshake_by_) {
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
  Time next = std::min(client_.deadline(), handshake_by_);
  if (waiting_since_ != Time::max()) {
    next = std::min(next, waiting_since_ + options_.timeout + (stalled_ ? kStallMax : Duration::zero()));
  }
  if (next != Time::max()) set_timer(next);
}

}  // namespace weir::redis
