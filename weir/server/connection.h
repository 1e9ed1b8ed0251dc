// One connection: a transport and its session. Lets the session decode what arrives, passes its queries to the
// pipeline, and sends everything that a turn has written at once.
//
// It starts without a session: ALPN or the first bytes decide which one it gets. It stops reading while the peer does
// not read its replies, while too many answers are owed, or while too many queries wait for a busy store, so that a
// peer cannot grow its memory.
//
// Thread safety: none; it belongs to one loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <string_view>

#include "weir/base/result.h"
#include "weir/base/time.h"
#include "weir/net/loop.h"
#include "weir/net/socket.h"
#include "weir/net/tls_channel.h"
#include "weir/net/transport.h"
#include "weir/observe/metrics.h"
#include "weir/protocol/session.h"
#include "weir/server/pipeline.h"

namespace weir {

class Connection;

// What the connections of one loop share.
struct ConnectionShared {
  Loop& loop;
  Pipeline& pipeline;
  LoopMetrics& metrics;
  // Called once, when the connection is over. The receiver must not destroy it but pass it to Loop::retire().
  std::function<void(Connection&)> ended;
  Queries queries;  // of the session that is decoding
};

// A link in a circular list.
struct ActivityLink {
  ActivityLink() = default;
  ActivityLink(const ActivityLink&) = delete;
  ActivityLink& operator=(const ActivityLink&) = delete;

  void unlink() noexcept {
    previous->next = next;
    next->previous = previous;
    previous = next = this;
  }
  void move_before(ActivityLink& other) noexcept {
    unlink();
    previous = other.previous;
    next = &other;
    previous->next = other.previous = this;
  }

  ActivityLink* previous = this;
  ActivityLink* next = this;
};

// How long the connections of a listener live. Zero: no bound.
struct ConnectionTimes {
  Duration idle_timeout{};  // closes connections that are idle for longer (Connection::idle())
  Duration max_age{};       // HTTP/2 connections of about this age (±10 %) are shut down
};

// The connections of one listener on one loop.
struct ConnectionGroup {
  Sessions sessions;
  Protocol protocol = Protocol::http;
  Transport::Options transport = {};
  ConnectionTimes times = {};
  std::string address;            // that it listens on
  ActivityLink by_activity = {};  // all connections, longest idle first
  std::size_t size = 0;
  std::minstd_rand random{std::random_device{}()};

  // times.max_age ±10 %, so that clients that connected together do not all come back together.
  Duration draw_age();
};

class Connection final : public Retired, public Asker, public ActivityLink, private Transport::Owner, private Settler {
 public:
  // `channel` is null without TLS.
  Connection(ConnectionShared& shared, ConnectionGroup& group, Accepted accepted, std::unique_ptr<TlsChannel> channel);
  ~Connection() override;

  ConnectionGroup& group() noexcept { return group_; }
  // Call it about once a second. Ends a peer that is too slow, or idle for too long.
  void check_deadline(Time now);
  // True if no answer is owed and no work is pending: closing it now loses no answer.
  bool idle() const noexcept;
  // When it last read, wrote or answered something.
  Time last_active() const noexcept { return last_active_; }
  // The server shuts down: answers what has arrived, then lets the session finish.
  void drain();
  // Closes now.
  void close();

  void answered(std::uint64_t token, const Result<Answer>& answer) override;

  std::size_t index = 0;  // where the server keeps it

 private:
  class SessionOutput final : public Output {
   public:
    explicit SessionOutput(Connection& connection) noexcept
        : Output(connection.transport_.out()), connection_(connection) {}
    std::size_t unsent() const noexcept override { return connection_.transport_.unsent(); }
    bool touched() const noexcept { return touched_; }
    void settled() noexcept { touched_ = false; }

   private:
    void wake() override { connection_.shared_.loop.settle_later(connection_); }
    Connection& connection_;
  };

  void opened() override {}
  std::size_t received(std::string_view bytes) override;
  void ended() override;
  void writable() override { output_.touch(); }
  void failed(const Error& why) override;
  void finished() override;
  void settle() override;

  bool choose_session(std::string_view bytes, Now& now);
  void choose_now();
  std::size_t decode(std::string_view bytes, Now now);
  std::size_t ask_all(Now now);
  void resume_session(Now now);
  void settle_session();
  void fill();
  void control_reading();
  void arm_deadline();
  void expire(Time now);
  bool over_bounds() const noexcept;
  bool must_stop() const noexcept;
  bool is_done() const noexcept;
  void abandon();

  ConnectionShared& shared_;
  ConnectionGroup& group_;
  Transport transport_;
  SessionOutput output_{*this};
  std::string peer_;  // until there is a session
  std::unique_ptr<Session> session_;
  std::size_t owed_ = 0;  // queries without an answer
  Loop::TimerId alarm_ = 0;
  Time alarm_at_ = Time::max();   // for a deadline of the session that is near
  Time choose_by_ = Time::max();  // a session must be chosen then
  Time last_active_;
  Time unread_since_ = Time::max();  // input waits because answers are owed
  bool undecided_ = false;           // bytes have arrived, but no session is chosen yet
  bool choose_now_ = false;          // choose with the bytes that are there
  bool blocked_ = false;             // input waits until must_stop() is false
  bool eof_ = false;                 // the peer has closed its side
  bool end_reported_ = false;        // the session was told
  bool closing_ = false;             // close once all answers are written
  bool draining_ = false;            // drain() was called
  bool drained_ = false;             // the session was told
  bool over_ = false;                // the session is no longer used
};

}  // namespace weir
