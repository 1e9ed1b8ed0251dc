#include "weir/server/connection.h"

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>

#include "weir/base/bounds.h"

namespace weir {
namespace {

// Session::fill() is called while fewer bytes than this are unsent.
constexpr std::size_t kFillBytes = 64 << 10;
// Calls of fill() in one turn, so that other connections get theirs.
constexpr int kFillsMax = 16;
// Deadlines are checked about once a second. A nearer one gets a timer of its own.
constexpr Duration kNear = std::chrono::seconds{1};
// A connection that is idle for this long gives its buffers back.
constexpr Duration kTrimAfter = std::chrono::seconds{1};
// While draining, how long a new connection may take to send its first request.
constexpr Duration kFirstRequestTime = std::chrono::milliseconds{500};

}  // namespace

Duration ConnectionGroup::draw_age() {
  const std::int64_t tenth = times.max_age.count() / 10;
  return times.max_age + Duration{std::uniform_int_distribution<std::int64_t>(-tenth, tenth)(random)};
}

Connection::Connection(ConnectionShared& shared, ConnectionGroup& group, Accepted accepted,
                       std::unique_ptr<TlsChannel> channel)
    : shared_(shared),
      group_(group),
      transport_(shared.loop, *this, std::move(accepted.socket), std::move(channel), group.transport),
      peer_(std::move(accepted.peer)),
      last_active_(shared.loop.reading().time) {
  shared_.metrics.connections[static_cast<std::size_t>(group_.protocol)].add();
  transport_.start();
}

Connection::~Connection() {
  unlink();
  Loop::forget(static_cast<Settler&>(*this));
  shared_.loop.cancel(alarm_);
  if (owed_ > 0) shared_.pipeline.forget(*this);
  shared_.metrics.connections[static_cast<std::size_t>(group_.protocol)].subtract();
}

std::size_t Connection::received(std::string_view bytes) {
  output_.touch();
  if (over_ || closing_) return bytes.size();
  Now now = shared_.loop.reading();
  if (session_ == nullptr && !choose_session(bytes, now)) return 0;
  const std::size_t used = decode(bytes, now);
  // Pause now, not when the turn settles: bytes read until then would have to be buffered.
  if (must_stop()) transport_.pause();
  return used;
}

// If a session is chosen late, from an incomplete beginning, sets `now` back to when those bytes arrived, so that the
// peer does not get the time for its first message twice.
bool Connection::choose_session(std::string_view bytes, Now& now) {
  shared_.pipeline.refresh();  // a new session starts with the configuration in force
  NewConnection fresh{output_,
                      peer_,
                      transport_.application_protocol(),
                      bytes,
                      transport_.is_secure(),
                      group_.times.idle_timeout,
                      group_.draw_age()};
  session_ = group_.sessions(fresh);
  if (session_ == nullptr && choose_now_) {
    fresh.complete = true;
    session_ = group_.sessions(fresh);
    now.time = std::min(now.time, choose_by_ - bounds::http_head_time_max);
  }
  if (session_ == nullptr) {
    undecided_ = true;
    closing_ = choose_now_;
    if (choose_by_ == Time::max()) choose_by_ = now.time + bounds::http_head_time_max;
    return false;
  }
  undecided_ = false;
  choose_by_ = Time::max();
  std::string().swap(peer_);
  return true;
}

// Passes the undecided bytes again, so that the peer gets an answer: the choice must now be made with them.
void Connection::choose_now() {
  if (!undecided_ || closing_) return;
  choose_now_ = true;
  transport_.resume();
}

// Passes the questions that the session has just added to the pipeline. Returns how many there were.
std::size_t Connection::ask_all(Now now) {
  Queries& queries = shared_.queries;
  const std::size_t count = queries.all().size();
  owed_ += count;
  for (const Asked& asked : queries.all()) shared_.pipeline.ask(asked.token, asked.query, *this, now);
  queries.clear();
  return count;
}

// Decodes `bytes` and returns how many were consumed.
std::size_t Connection::decode(std::string_view bytes, Now now) {
  const std::size_t size = bytes.size();
  blocked_ = false;
  while (!bytes.empty() && !session_->finished()) {
    if (must_stop()) {
      blocked_ = true;
      break;
    }
    shared_.pipeline.refresh();
    const std::size_t written = transport_.out().size();
    const auto taken = session_->receive(bytes, shared_.queries, now);
    const std::size_t asked = ask_all(now);
    if (!taken) {
      closing_ = true;
      return size;
    }
    bytes.remove_prefix(*taken);
    if (*taken == 0 && asked == 0 && transport_.out().size() == written) break;
    // More queries than a batch: answer these first, so that the number of owed answers stays bounded.
    if (asked >= bounds::queries_per_turn_max) shared_.pipeline.flush(now);
    if (session_->has_more()) resume_session(now);
    if (!bytes.empty()) now = shared_.loop.now();
  }
  return session_->finished() ? size : size - bytes.size();
}

// Lets the session ask what found no room in the last batch.
void Connection::resume_session(Now now) {
  while (!over_bounds() && session_->has_more()) {
    shared_.pipeline.flush(now);
    shared_.pipeline.refresh();
    session_->resume(shared_.queries, now);
    if (ask_all(now) == 0) return;
  }
}

void Connection::answered(std::uint64_t token, const Result<Answer>& answer) {
  --owed_;
  session_->reply(token, answer);
  output_.touch();
}

bool Connection::over_bounds() const noexcept {
  // After a pause for a slow reader, resume only when most of the output is sent.
  const std::size_t unsent_max = transport_.paused() ? kFillBytes : bounds::unsent_bytes_max;
  return transport_.unsent() > unsent_max || owed_ > bounds::owed_max || must_wait();
}

bool Connection::must_stop() const noexcept {
  return over_bounds() || (session_ != nullptr && !session_->reading());
}

void Connection::settle() {
  output_.settled();
  if (over_) return;
  last_active_ = shared_.loop.reading().time;
  move_before(group_.by_activity);
  if (session_ != nullptr) settle_session();
  const bool was_full = transport_.unsent() >= kFillBytes;
  transport_.flush();
  // The session was not asked to fill a full output; if the kernel took it at once, nothing else would ask again.
  if (was_full && output_.wants_fill && transport_.unsent() < kFillBytes) output_.touch();
  if (std::exchange(output_.half_close, false)) transport_.half_close();
  if (is_done()) {
    abandon();
    return transport_.finish();
  }
  control_reading();
  if (session_ != nullptr) arm_deadline();
}

void Connection::settle_session() {
  const Now now = shared_.loop.reading();
  if (session_->has_more()) resume_session(now);
  // Input that waits is decoded first, unless it waits for a response without an end.
  if (draining_ && !drained_ && (!blocked_ || (owed_ == 0 && !session_->reading()))) {
    drained_ = true;
    session_->drain(now.time);
  }
  if (eof_ && !end_reported_ && !blocked_) {
    end_reported_ = true;
    session_->end_of_input(now);
  }
  if (output_.wants_fill) fill();
}

// Alternates filling and writing, because fill() also tells the session how much is still unsent.
void Connection::fill() {
  for (int i = 0; i < kFillsMax; ++i) {
    const std::size_t unsent = transport_.unsent();
    if (!output_.wants_fill || unsent >= kFillBytes) return;
    const std::uint64_t taken = transport_.taken();
    output_.wants_fill = false;
    session_->fill(unsent);
    transport_.flush();
    if (transport_.taken() == taken && transport_.unsent() == unsent) return;
  }
  if (output_.wants_fill) output_.touch();
}

// True if the connection is to be closed once its output is written.
bool Connection::is_done() const noexcept {
  if (session_ == nullptr) return closing_ || (eof_ && !undecided_) || (draining_ && choose_by_ == Time::max());
  if (session_->finished()) return !output_.wants_fill || transport_.unsent() < kFillBytes;
  return (closing_ || (end_reported_ && !session_->busy())) && owed_ == 0;
}

void Connection::control_reading() {
  if (closing_ || must_stop()) {
    if (unread_since_ == Time::max()) unread_since_ = shared_.loop.reading().time;
    if (transport_.unsent() > bounds::unsent_bytes_max) unread_since_ = Time::max();  // the peer is behind, not we
    transport_.pause();
  } else if (blocked_ || transport_.paused()) {
    blocked_ = false;
    const Time since = std::exchange(unread_since_, Time::max());
    if (session_ != nullptr && since != Time::max()) session_->was_unread(since, shared_.loop.reading().time);
    transport_.resume();
  }
}

void Connection::arm_deadline() {
  const Time due = session_->deadline();
  if (due >= alarm_at_ || due - last_active_ >= kNear) return;
  shared_.loop.cancel(alarm_);
  alarm_at_ = due;
  alarm_ = shared_.loop.at(due, [this] {
    alarm_ = 0;
    alarm_at_ = Time::max();
    expire(shared_.loop.now().time);
  });
}

void Connection::expire(Time now) {
  if (over_ || session_->deadline() > now) return;
  session_->expire(now);
  output_.touch();
}

void Connection::check_deadline(Time now) {
  if (over_) return;
  if (now - last_active_ > kTrimAfter) transport_.trim();
  if (session_ != nullptr) expire(now);
  const Duration idle_timeout = group_.times.idle_timeout;
  const bool idle_too_long = idle_timeout > Duration::zero() && idle() && now - last_active_ > idle_timeout;
  if (session_ != nullptr && idle_too_long && !drained_) {
    // HTTP/2 says goodbye first; the others are finished at once.
    drained_ = true;
    session_->drain(now);
    output_.touch();
  } else if (idle_too_long || now >= choose_by_) {
    if (undecided_) return choose_now();
    closing_ = true;
    output_.touch();
  }
}

bool Connection::idle() const noexcept {
  if (over_) return true;
  return owed_ == 0 && transport_.unsent() == 0 && !output_.touched() && (session_ == nullptr || !session_->busy());
}

void Connection::drain() {
  if (over_) return;
  draining_ = true;
  // The first request of a new connection may be on its way; one that was silent for longer is closed.
  const Time now = shared_.loop.reading().time;
  if (session_ == nullptr) choose_by_ = now - last_active_ < kFirstRequestTime ? now + kFirstRequestTime : Time::max();
  // Reads what the peer sent before the drain started; this connection settles after that.
  Loop::forget(static_cast<Settler&>(*this));
  output_.settled();
  transport_.poll();
  output_.touch();
}

void Connection::ended() {
  eof_ = true;
  choose_now();
  output_.touch();
}

// The session gets no more calls.
void Connection::abandon() {
  over_ = true;
  if (owed_ > 0) shared_.pipeline.forget(*this);
  owed_ = 0;
  if (session_ != nullptr && !session_->finished()) session_->lost();
}

void Connection::failed(const Error&) {
  if (!over_) abandon();
  shared_.ended(*this);
}

void Connection::finished() {
  shared_.ended(*this);
}

void Connection::close() {
  transport_.close();
  if (!over_) abandon();
  shared_.ended(*this);
}

}  // namespace weir
