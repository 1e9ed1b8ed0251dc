// One connection: a socket, optional TLS, and its session. Reads what the kernel has, lets the session decode it,
// passes queries to the pipeline, and writes all replies of a turn with one write.
//
// Holds no buffer while nothing is pending, so that an idle connection costs little. Stops reading while the peer does
// not read its replies, while too many answers are owed, or while too many queries wait for a busy store, so that a
// peer cannot make it grow.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/time.h"
#include "weir/net/loop.h"
#include "weir/net/socket.h"
#include "weir/net/tls_channel.h"
#include "weir/observe/metrics.h"
#include "weir/protocol/session.h"
#include "weir/server/pipeline.h"

namespace weir {

// What the connections of one loop share.
struct ConnectionShared {
  Loop& loop;
  Pipeline& pipeline;
  LoopMetrics& metrics;
  Queries queries;                   // of the session that is decoding
  std::string scratch;               // bytes just read
  std::string plain;                 // the same bytes decrypted, with TLS
  std::vector<std::uint64_t> dirty;  // ids of connections to write to or to close
};

class Connection final : public Loop::Handler, public Asker {
 public:
  // `channel` is null without TLS.
  Connection(std::uint64_t id, ConnectionShared& shared, Socket socket, std::unique_ptr<TlsChannel> channel,
             std::unique_ptr<Session> session, Protocol protocol);
  ~Connection() override;

  std::uint64_t id() const noexcept { return id_; }
  Protocol protocol() const noexcept { return protocol_; }

  void ready(std::uint32_t events) override;
  void answered(std::uint64_t sequence, const Result<Answer>& answer) override;

  // Called at the end of the turn: writes. Returns false if the connection is done and must be destroyed.
  bool finish_turn();
  // Call it about once a second. Ends a peer that is too slow, or idle for longer than `idle_timeout` unless that is
  // zero.
  void check_deadline(Time now, Duration idle_timeout);
  // True if no answer is owed and no work is pending: closing it now loses no answer.
  bool idle() const noexcept;
  // When it last read, wrote or answered something.
  Time last_active() const noexcept { return last_active_; }
  // The server shuts down: answers what has arrived, then reads no more.
  void drain();

 private:
  // State of a connection with TLS.
  struct TlsState {
    std::unique_ptr<TlsChannel> channel;
    std::string encrypted;  // not written yet
    Time deadline;          // of the handshake
  };

  void read();
  std::string_view decrypt(std::string_view bytes);
  bool write();
  bool encrypt();
  std::size_t decode(std::string_view bytes);
  void decode_held();
  void drain_session();
  bool linger();
  bool paused() const noexcept;
  bool may_read() const noexcept;
  const std::string& unsent() const noexcept { return tls_ ? tls_->encrypted : out_; }
  void watch();
  void set_alarm();
  void wake();
  void mark_dirty();

  std::uint64_t id_;
  ConnectionShared& shared_;
  Socket socket_;
  std::unique_ptr<TlsState> tls_;
  std::unique_ptr<Session> session_;
  Protocol protocol_;
  std::string in_;        // not decoded yet
  std::string out_;       // not written yet or, with TLS, not encrypted yet
  std::size_t owed_ = 0;  // queries without an answer
  std::uint32_t watching_ = 0;
  Loop::TimerId alarm_ = 0;  // for the session's own timer, wake_at()
  Time last_progress_{};     // when bytes were last written, while some are waiting
  Time last_active_{};
  bool unread_ = false;        // the socket may have more bytes
  bool eof_ = false;           // the peer sends no more
  bool closing_ = false;       // close once out_ is written
  bool dead_ = false;          // close now
  bool lingering_ = false;     // our side is closed; input is read and discarded
  bool draining_ = false;      // drain() was called
  bool drained_ = false;       // the session was told
  bool eof_reported_ = false;  // the session was told of eof_
  bool dirty_ = false;
};

}  // namespace weir
