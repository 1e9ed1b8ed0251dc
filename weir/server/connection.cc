#include "weir/server/connection.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "weir/base/bounds.h"

namespace weir {
namespace {

// Bytes read from one connection in one turn, so that others get their turn.
constexpr std::size_t kReadBytes = 64 << 10;
// Empty buffers larger than this are freed.
constexpr std::size_t kKeptBytes = 4 << 10;
// A peer that reads none of its replies for this long is disconnected.
constexpr Duration kWriteTimeout = std::chrono::seconds{30};

// Edge-triggered: the kernel reports each arrival once and does not recheck every socket in the next turn. unread_
// makes watch() re-arm the socket when reported bytes may be left.
constexpr std::uint32_t kAlways = EPOLLET;
constexpr std::uint32_t kToRead = EPOLLIN | EPOLLRDHUP;
constexpr std::uint32_t kEnds = EPOLLRDHUP | EPOLLHUP | EPOLLERR;

// How long a peer may keep sending after we have closed our side.
constexpr Duration kLingerTimeout = std::chrono::seconds{2};

void free_if_large(std::string& buffer) {
  if (buffer.empty() && buffer.capacity() > kKeptBytes) std::string().swap(buffer);
}

}  // namespace

Connection::Connection(std::uint64_t id, ConnectionShared& shared, Socket socket, std::unique_ptr<TlsChannel> channel,
                       std::unique_ptr<Session> session, Protocol protocol)
    : id_(id),
      shared_(shared),
      socket_(std::move(socket)),
      session_(std::move(session)),
      protocol_(protocol),
      last_active_(shared.loop.reading().time) {
  if (channel != nullptr) {
    const Time deadline = shared_.loop.now().time + bounds::tls_handshake_time_max;
    tls_ = std::make_unique<TlsState>(TlsState{std::move(channel), {}, deadline});
  }
  shared_.metrics.connections[static_cast<std::size_t>(protocol_)].add();
  watching_ = kAlways | kToRead;
  dead_ = !shared_.loop.watch(socket_.fd(), watching_, *this);
  if (dead_) mark_dirty();
}

Connection::~Connection() {
  shared_.loop.cancel(alarm_);
  shared_.loop.forget(socket_.fd(), *this);
  shared_.pipeline.forget(*this);
  shared_.metrics.connections[static_cast<std::size_t>(protocol_)].subtract();
}

void Connection::mark_dirty() {
  if (dirty_) return;
  dirty_ = true;
  shared_.dirty.push_back(id_);
}

bool Connection::paused() const noexcept {
  const std::size_t encrypted = tls_ ? tls_->encrypted.size() : 0;
  return out_.size() + encrypted > bounds::unsent_bytes_max || owed_ > bounds::owed_max || must_wait();
}

bool Connection::may_read() const noexcept {
  if (eof_) return false;
  return lingering_ || (!paused() && !closing_ && draining_ == drained_);
}

void Connection::ready(std::uint32_t events) {
  mark_dirty();
  if ((events & (EPOLLIN | kEnds)) == 0) return;
  if (may_read()) {
    read();
    // EOF is reported together with the last bytes, but is read separately.
    unread_ = unread_ || (events & kEnds) != 0;
    return;
  }
  unread_ = true;
  // The peer cannot receive anything any more, so owed answers are dropped.
  if ((events & (EPOLLHUP | EPOLLERR)) != 0) dead_ = true;
}

void Connection::read() {
  std::string& scratch = shared_.scratch;
  scratch.resize(kReadBytes);
  const ssize_t got = socket_.receive(scratch);
  unread_ = got == static_cast<ssize_t>(scratch.size()) || (got < 0 && errno == EINTR);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got < 0) {
    dead_ = true;
    return;
  }
  if (got == 0) {
    eof_ = true;
    return;
  }
  if (lingering_) return;  // discarded
  std::string_view fresh(scratch.data(), static_cast<std::size_t>(got));
  if (tls_) fresh = decrypt(fresh);
  if (in_.empty()) {
    const std::size_t used = decode(fresh);
    if (used < fresh.size()) in_.assign(fresh.substr(used));
  } else {
    in_.append(fresh);
    decode_held();
  }
}

std::string_view Connection::decrypt(std::string_view bytes) {
  shared_.plain.clear();
  if (!tls_->channel->receive(bytes, shared_.plain, tls_->encrypted)) {
    // Bytes decrypted before the damage are dropped too; the peer gets a TLS alert.
    shared_.plain.clear();
    closing_ = true;
  }
  eof_ = eof_ || tls_->channel->peer_closed();
  return shared_.plain;
}

// Does not copy the held bytes while none can be decoded: a request may arrive in a million pieces.
void Connection::decode_held() {
  std::string held = std::exchange(in_, {});
  const std::size_t used = decode(held);
  if (used != 0) held.erase(0, used);
  in_ = std::move(held);
}

// Decodes `bytes` and returns how many were consumed.
std::size_t Connection::decode(std::string_view bytes) {
  const std::size_t size = bytes.size();
  Now now = shared_.loop.reading();
  while (!bytes.empty() && !paused() && !session_->finished()) {
    Queries& queries = shared_.queries;
    queries.clear();
    shared_.pipeline.refresh();
    session_->at(now);
    const auto taken = session_->receive(bytes, queries, out_);
    owed_ += queries.all().size();
    for (const Asked& asked : queries.all()) shared_.pipeline.ask(asked.sequence, asked.query, *this, now);
    const bool more = queries.full();
    queries.clear();
    if (!taken) {
      closing_ = true;
      return size;
    }
    bytes.remove_prefix(*taken);
    if (*taken == 0 && !more) break;
    // More queries than a batch: answer these first, so that the number of owed answers stays bounded.
    if (more) shared_.pipeline.flush(now);
    if (!bytes.empty()) now = shared_.loop.now();
  }
  return session_->finished() ? size : size - bytes.size();
}

void Connection::answered(std::uint64_t sequence, const Result<Answer>& answer) {
  --owed_;
  session_->reply(sequence, answer, out_);
  mark_dirty();
}

// Encrypts out_ once the previous bytes are written, so that neither buffer grows large. Returns false if the
// connection is lost.
bool Connection::encrypt() {
  if (!tls_->encrypted.empty() || out_.empty() || !tls_->channel->established()) return true;
  const bool sent = tls_->channel->send(out_, tls_->encrypted).has_value();
  out_.clear();
  return sent;
}

// Writes as much as the kernel accepts. Returns false if the connection is lost.
bool Connection::write() {
  std::string& bytes = tls_ ? tls_->encrypted : out_;
  for (;;) {
    if (tls_ && !encrypt()) return false;
    if (bytes.empty()) return true;
    const ssize_t sent = socket_.send(bytes);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno != EAGAIN) return false;
    if (sent < 0) {
      // The write timeout starts when the peer has something to read.
      if ((watching_ & EPOLLOUT) == 0) last_progress_ = shared_.loop.now().time;
      return true;
    }
    last_progress_ = shared_.loop.reading().time;
    if (static_cast<std::size_t>(sent) == bytes.size()) {
      bytes.clear();
    } else {
      bytes.erase(0, static_cast<std::size_t>(sent));
    }
  }
}

bool Connection::idle() const noexcept {
  const bool waits = owed_ == 0 && out_.empty() && unsent().empty() && !dirty_;
  return waits && !session_->working() && session_->wake_at() == Time::max();
}

bool Connection::finish_turn() {
  dirty_ = false;
  last_active_ = shared_.loop.reading().time;
  if (dead_ || !write()) return false;
  // Input that was held back while answers were owed or unsent can be decoded now.
  if (!in_.empty() && !paused() && out_.empty() && unsent().empty() && !closing_) {
    const std::size_t before = in_.size();
    decode_held();
    if (in_.size() != before || closing_ || !out_.empty()) mark_dirty();
  }
  if (draining_ && !drained_) drain_session();
  const bool over = closing_ || eof_ || session_->finished();
  const bool idle = !dirty_ && owed_ == 0 && unsent().empty() && !session_->working();
  if (idle && eof_ && !closing_ && !std::exchange(eof_reported_, true)) {
    session_->hang_up(out_);
    if (!out_.empty()) mark_dirty();
  }
  if (idle && over && !dirty_) {
    if (tls_) {
      out_.clear();  // not empty only if the handshake never finished
      tls_->channel->close(tls_->encrypted);
      if (!write()) return false;
    }
    if (unsent().empty() && !linger()) return false;
  }
  free_if_large(in_);
  free_if_large(out_);
  if (tls_) free_if_large(tls_->encrypted);
  watch();
  set_alarm();
  return true;
}

// Calls Session::drain() once everything decodable has been passed to the pipeline.
void Connection::drain_session() {
  const bool stuck = owed_ == 0 && out_.empty() && unsent().empty() && !dirty_;
  if (!in_.empty() && !stuck && !closing_) return;
  drained_ = true;
  session_->drain(out_);
  mark_dirty();
}

// Closing a socket with unread input makes the kernel drop bytes the peer has not received, including our last reply.
// So this closes our side only, then reads and discards input until the peer closes. Returns false if it has.
bool Connection::linger() {
  if (eof_) return false;
  if (!lingering_) {
    lingering_ = true;
    last_progress_ = shared_.loop.now().time;
    if (shutdown(socket_.fd(), SHUT_WR) != 0) return false;
  }
  in_.clear();
  return true;
}

void Connection::watch() {
  std::uint32_t wanted = kAlways;
  if (may_read()) wanted |= kToRead;
  if (!unsent().empty()) wanted |= EPOLLOUT;
  if (wanted == watching_ && !unread_) return;
  unread_ = false;
  watching_ = wanted;
  shared_.loop.change(socket_.fd(), watching_, *this);
}

void Connection::set_alarm() {
  if (alarm_ != 0 || lingering_) return;
  const Time when = session_->wake_at();
  if (when == Time::max()) return;
  alarm_ = shared_.loop.at(when, [this] {
    alarm_ = 0;
    wake();
  });
}

void Connection::wake() {
  const Now now = shared_.loop.now();
  Queries& queries = shared_.queries;
  queries.clear();
  shared_.pipeline.refresh();
  session_->wake(now.time, queries, out_);
  owed_ += queries.all().size();
  for (const Asked& asked : queries.all()) shared_.pipeline.ask(asked.sequence, asked.query, *this, now);
  queries.clear();
  mark_dirty();
}

void Connection::check_deadline(Time now, Duration idle_timeout) {
  if (lingering_) {
    dead_ = now - last_progress_ > kLingerTimeout;
    if (dead_) mark_dirty();
    return;
  }
  // Bytes written in this turn have not reached the peer yet; finish_turn() finds out whether they are accepted.
  const bool slow = (watching_ & EPOLLOUT) != 0 && now - last_progress_ > kWriteTimeout;
  if (slow || (tls_ && !tls_->channel->established() && now > tls_->deadline)) {
    dead_ = true;
    mark_dirty();
    return;
  }
  if (session_->deadline() <= now) {
    session_->expire(now, out_);
    mark_dirty();
  } else if (idle_timeout > Duration::zero() && idle() && now - last_active_ > idle_timeout) {
    closing_ = true;
    mark_dirty();
  }
}

void Connection::drain() {
  // Read what the peer sent before the drain started.
  if (may_read()) read();
  draining_ = true;
  mark_dirty();
}

}  // namespace weir
