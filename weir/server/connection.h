// One connection: a socket, perhaps TLS, and the session that speaks on it. Reads what the kernel has, lets the session
// decode it, asks the pipeline, and writes replies at the end of the turn: one write for all of them.
//
// It holds no buffer while nothing is pending, so that an idle connection costs little. It reads no more while the peer
// does not take its replies, while too many answers are owed, or while too many questions wait for a busy store: nobody
// can make it grow.
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
struct Turn {
  Loop& loop;
  Pipeline& pipeline;
  LoopMetrics& metrics;
  Queries queries;                   // of the one session that is decoding
  std::string scratch;               // what was just read
  std::string plain;                 // what that says, if it was TLS
  std::vector<std::uint64_t> dirty;  // ids of connections with something to write or to close
};

class Connection final : public Loop::Handler, public Asker {
 public:
  // `channel` is null where the session speaks in the clear.
  Connection(std::uint64_t id, Turn& turn, Socket socket, std::unique_ptr<TlsChannel> channel,
             std::unique_ptr<Session> session, Protocol protocol);
  ~Connection() override;

  std::uint64_t id() const noexcept { return id_; }
  Protocol protocol() const noexcept { return protocol_; }

  void ready(std::uint32_t events) override;
  void answered(std::uint64_t sequence, const Result<Answer>& answer) override;

  // At the end of the turn: writes, and says whether the connection goes on.
  bool settle();
  // Once in a while: a peer that takes too long is told so, or cut off. So is one that is idle for longer than
  // `idle_timeout`; zero: it may be.
  void check_deadline(Time now, Duration idle_timeout);
  // Owes nothing and has nothing to do by itself: if it ends now, nobody loses an answer.
  bool idle() const noexcept;
  // When something was last read, written or decided.
  Time last_active() const noexcept { return last_active_; }
  // The server is going away: what has come by now is answered, then no more is read.
  void drain();

 private:
  // What only a connection with TLS needs.
  struct Secured {
    std::unique_ptr<TlsChannel> channel;
    std::string sealed;  // encrypted and not yet written
    Time deadline;       // of the handshake
  };

  void read();
  std::string_view unseal(std::string_view bytes);
  bool write();
  bool seal();
  std::size_t decode(std::string_view bytes);
  void decode_held();
  void drain_session();
  bool linger();
  bool paused() const noexcept;
  bool may_read() const noexcept;
  const std::string& unsent() const noexcept { return tls_ ? tls_->sealed : out_; }
  void watch();
  void set_alarm();
  void wake();
  void touch();

  std::uint64_t id_;
  Turn& turn_;
  Socket socket_;
  std::unique_ptr<Secured> tls_;
  std::unique_ptr<Session> session_;
  Protocol protocol_;
  std::string in_;        // not yet decoded
  std::string out_;       // not yet written, or not yet encrypted
  std::size_t owed_ = 0;  // questions without an answer
  std::uint32_t watching_ = 0;
  Loop::TimerId alarm_ = 0;  // of what the session does by itself
  Time last_progress_{};     // of writing, while something is to be written
  Time last_active_{};
  bool unread_ = false;      // the socket may hold more than was read
  bool hung_up_ = false;     // the peer will send no more
  bool broken_ = false;      // close as soon as out_ is gone
  bool dead_ = false;        // close now
  bool lingering_ = false;   // nothing more to say; what the peer still sends is not for us
  bool draining_ = false;    // the server is going away
  bool drained_ = false;     // and the session knows
  bool last_words_ = false;  // the session knows that the peer sends no more
  bool dirty_ = false;
};

}  // namespace weir
