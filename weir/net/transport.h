// The bytes of one connection: a non-blocking socket with optional TLS, accepted or outgoing. Independent of protocols.
//
//   in:   received() passes what arrived; pause() stops reading, so that a slow owner slows its peer down
//   out:  append to out(), then flush(); writable() reports that there is room again
//   end:  half_close() sends our end; finish() also waits for the peer's, so that it reads our last bytes; close()
//         closes at once
//
// An outgoing transport resolves the name, tries each address, and does the TLS handshake within one timeout. A
// Transport is one connection; to retry, create another one. While no bytes are pending, it holds no buffer.
//
// Thread safety: none; use it on its loop's thread. Only the loop calls the owner; calls to the transport never do. To
// destroy a transport inside one of its own callbacks, call close() and pass it to Loop::retire().
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/bounds.h"
#include "weir/base/result.h"
#include "weir/base/time.h"
#include "weir/net/loop.h"
#include "weir/net/resolve.h"
#include "weir/net/socket.h"
#include "weir/net/tls.h"

namespace weir {

class Transport final : public Retired, private Loop::Handler, private Settler {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    // Connected; the TLS handshake is done, and the ALPN protocol is known.
    virtual void opened() = 0;
    // Returns how many bytes it consumed. The rest is passed again when more arrive or after resume(). `bytes` is valid
    // during the call.
    virtual std::size_t received(std::string_view bytes) = 0;
    // The peer sends nothing more: FIN or, with TLS, close_notify. (A bare FIN under TLS is failed().) resume() still
    // passes bytes that the owner has not consumed.
    virtual void ended() = 0;
    // unsent() fell below Options::low_water after it was above, or everything is sent after a write had to wait for
    // the kernel.
    virtual void writable() = 0;
    // The last call; not called after finished() or close(). The fault is `timeout` if opening took too long or the
    // peer does not read, `unknown` if the name does not exist, `too_large` if the owner left more than
    // Options::unread_bytes_max, `invalid` if a retry would fail the same way, otherwise `unavailable`. When writing to
    // an outgoing connection fails, what the peer has sent is delivered first, because it may be the response that
    // explains the failure.
    virtual void failed(const Error& why) = 0;
    // finish() is complete: the peer has closed, or the time is up. The last call.
    virtual void finished() {}
  };

  struct Options {
    // Limit for name lookup, connecting and the TLS handshake together.
    Duration open_timeout = std::chrono::seconds{5};
    // The peer must accept some bytes within this time while any are unsent.
    Duration write_timeout = std::chrono::seconds{30};
    // Maximum of received bytes that the owner did not consume.
    std::size_t unread_bytes_max = 128u << 10;
    std::size_t low_water = 32u << 10;
    // Required to connect to a host name. Must outlive the transport.
    Resolver* resolver = nullptr;
    // For outgoing connections; null means no TLS.
    std::shared_ptr<const TlsClient> tls = nullptr;
    // The name that the peer's certificate must match. Empty means the host of the target.
    std::string server_name = {};
    // Called with every resolved address; those it refuses are not tried. Empty: all may be dialed.
    std::function<bool(const Address&)> may_dial = {};
  };

  // Outgoing: call connect() next. Loop and owner must outlive the transport.
  Transport(Loop& loop, Owner& owner, Options options);
  // Accepted. `channel` is null without TLS. Call start() next.
  Transport(Loop& loop, Owner& owner, Socket accepted, std::unique_ptr<TlsChannel> channel, const Options& options);
  // Closes without calling the owner.
  ~Transport() override;

  // Call one of these, once. Every failure is reported through failed().
  void connect(Target target);
  void start();

  // Plaintext for the peer. Append, then flush() at once or at the end of the turn. Kept until opened().
  std::string& out() noexcept { return out_; }
  // Writes as much as the kernel accepts.
  void flush();
  // Bytes not accepted by the kernel, plaintext or ciphertext.
  std::size_t unsent() const noexcept;
  // How many bytes of plaintext were passed to the kernel or the cipher so far.
  std::uint64_t taken() const noexcept { return taken_; }

  // Stop and resume reading. A reset is noticed even while paused; on an outgoing connection, only if nothing is left
  // to read. In this turn, resume() also passes the bytes again that the owner left.
  void pause() noexcept { paused_ = true; }
  void resume();
  bool paused() const noexcept { return paused_; }
  // Reads once at the end of this turn without waiting for the kernel to report bytes, unless paused.
  void poll();

  // Sends our end (FIN, close_notify) after the unsent bytes. Reading continues.
  void half_close();
  // Writes the unsent bytes, calls half_close(), discards input for up to 2 seconds, and closes. After this the owner
  // only gets finished().
  void finish();
  // Closes now. The owner gets no more calls.
  void close() noexcept;
  bool closed() const noexcept { return state_ == State::closed; }

  bool is_open() const noexcept { return state_ == State::open; }
  // True if it is open and the owner has consumed everything that was read.
  bool is_usable() const noexcept;
  // True if it is usable and the peer has sent neither unread bytes nor its end. Asks the kernel.
  bool is_quiet() const noexcept;
  // Frees buffers that are kept for the next bytes. For an idle connection.
  void trim() noexcept;
  bool is_secure() const noexcept { return secure_ != nullptr; }
  // The protocol negotiated by ALPN; empty if none.
  std::string_view application_protocol() const noexcept;

 private:
  enum class State : unsigned char { idle, resolving, connecting, handshaking, open, closed };
  // Only for outgoing connections.
  struct Dialing {
    Resolver* resolver;
    std::shared_ptr<const TlsClient> tls;
    std::string server_name;
    std::function<bool(const Address&)> may_dial;
    Target target = {};
    std::unique_ptr<Resolver::Lookup> lookup = nullptr;
    std::vector<Address> addresses = {};
    std::size_t next_address = 0;
    Time deadline{};
    Error last_failure{Fault::internal, {}};
  };
  // TLS. Ciphertext before `sent` is already sent.
  struct Secure {
    std::unique_ptr<TlsChannel> channel;
    std::string encrypted = {};
    std::size_t sent = 0;
  };

  void ready(std::uint32_t events) override;
  void settle() override;

  // Opening (transport_open.cc).
  void resolved(const Result<std::vector<Address>>& addresses);
  void try_next();
  void give_up_attempt(Error why);
  void attempt_ended();
  void begin_handshake();
  void connect_timed_out();
  void open_timed_out();
  void fail_later(Error why);
  void finish_opening();
  std::string peer() const;

  void read();
  void decrypt(std::string_view bytes);
  void tls_failed(const Error& why, std::string_view plain);
  void deliver(std::string_view fresh);
  void deliver_end();
  void end_of_stream();
  void lost(int error);
  void note_reset(std::uint32_t events);
  bool wants_input() const noexcept;

  void write();
  std::string_view next_plain() noexcept;
  std::string_view next_encrypted();
  void took_plain(std::size_t bytes) noexcept;
  bool send_end();
  void write_failed(Error why);
  void write_timed_out();
  void begin_linger();
  void linger_timed_out() { end_finish(); }

  void watch();
  void later() noexcept { loop_.settle_later(*this); }
  void set_timer(Time when, void (Transport::*run)());
  bool must_fail() const noexcept;
  bool finish_is_complete() const noexcept { return finishing_ && (write_broken_ || (half_closed_ && eof_)); }
  void fail(const Error& why);
  void fail_for_why();
  void end_finish();
  void release() noexcept;
  template <class Call>
  void call_owner(Call call) {
    in_callback_ = true;
    call();
    in_callback_ = false;
  }

  Loop& loop_;
  Owner& owner_;
  Socket socket_;
  State state_ = State::idle;
  bool paused_ = false;
  bool unread_ = false;         // the kernel may have more bytes and will not report them
  bool poll_ = false;           // read at the end of the turn
  bool redeliver_ = false;      // resume() was called and held_ is not empty
  bool eof_ = false;            // the peer sends nothing more
  bool end_reported_ = false;   // ended() was called
  bool opened_due_ = false;     // opened() must be called
  bool above_ = false;          // unsent() was above low_water_
  bool writable_due_ = false;   // writable() must be called
  bool half_closing_ = false;   // send our end after the unsent bytes
  bool half_closed_ = false;    // our end was sent
  bool finishing_ = false;      // finish() was called, or a TLS alert is being sent
  bool finished_due_ = false;   // finished() must be called although the transport is closed
  bool write_blocked_ = false;  // the kernel accepts no more for now
  bool was_blocked_ = false;    // it was write_blocked_, and unsent() has not been zero since
  bool write_broken_ = false;   // nothing can be sent anymore
  bool in_callback_ = false;
  std::uint32_t watching_ = 0;
  std::uint32_t unread_bytes_max_;
  std::uint32_t low_water_;
  Duration write_timeout_;
  Duration open_timeout_;
  std::string out_;      // plaintext from the owner
  std::string sending_;  // the same, from sent_ on, while the peer is slow; sent before out_
  std::size_t sent_ = 0;
  std::string held_;  // received, decrypted, and left by the owner
  std::uint64_t taken_ = 0;
  Time last_progress_{};  // when bytes were last sent, while some are unsent
  Loop::TimerId timer_ = 0;
  std::unique_ptr<Dialing> dialing_;
  std::unique_ptr<Secure> secure_;
  std::unique_ptr<Error> why_;  // a failure that was not reported yet
};

}  // namespace weir
