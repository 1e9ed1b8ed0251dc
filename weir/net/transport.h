// One connection's bytes: a non-blocking socket with optional TLS, accepted or outgoing. Knows no protocol.
//
//   in:   received() gives what arrived; pause() stops reading, so that a slow owner slows its peer down
//   out:  append to out(), then flush(); writable() says when there is room again
//   end:  half_close() sends our end; finish() also waits for the peer's, so that it reads our last bytes; close()
//   drops
//
// An outgoing transport resolves the name, tries each address, and does the TLS handshake within one timeout. A
// Transport is one connection; to retry, create another one.
//
// Thread safety: none; use it on its loop's thread. The owner is called by the loop only, never from inside a call of
// the transport. After failed(), finish() or close() the owner is not called any more. To destroy a transport inside
// one of its own callbacks, call close() and pass it to Loop::retire().
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

class Transport final : public Retired, private Loop::Handler {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    // Connected, the TLS handshake is done, ALPN is known.
    virtual void opened() = 0;
    // Returns how many bytes it consumed; the rest is passed again with more after it, or after resume(). `bytes` is
    // valid during the call.
    virtual std::size_t received(std::string_view bytes) = 0;
    // The peer sends nothing more: FIN or, with TLS, close_notify. (A bare FIN under TLS is failed().)
    virtual void ended() = 0;
    // unsent() fell below Options::low_water after it was above.
    virtual void writable() = 0;
    // The last call. The fault is `timeout` if opening took too long or the peer does not read, `unknown` if the name
    // does not exist, `too_large` if the owner left more than Options::unread_bytes_max, otherwise `unavailable`.
    virtual void failed(const Error& why) = 0;
  };

  struct Options {
    // Limit for name lookup, connecting and the TLS handshake together.
    Duration open_timeout = std::chrono::seconds{5};
    // The peer must accept some bytes within this time while any are unsent.
    Duration write_timeout = std::chrono::seconds{30};
    // Received bytes that the owner did not consume.
    std::size_t unread_bytes_max = 128u << 10;
    std::size_t low_water = 32u << 10;
    // Required to connect to a host name. Must outlive the transport.
    Resolver* resolver = nullptr;
    // Outgoing; null means no TLS.
    std::shared_ptr<const TlsClient> tls = nullptr;
    // The name that the peer's certificate must match. Empty means the host of the target.
    std::string server_name = {};
    // Called with every resolved address; those it refuses are not tried. Empty: all may be dialed.
    std::function<bool(const Address&)> may_dial = {};
  };

  // Outgoing: call connect() next. Loop and owner must outlive the transport.
  Transport(Loop& loop, Owner& owner, Options options);
  // Accepted. `channel` is null without TLS. Call start() next.
  Transport(Loop& loop, Owner& owner, Socket accepted, std::unique_ptr<TlsChannel> channel, Options options);
  // Closes without calling the owner.
  ~Transport() override;

  // Call one of them, once. Every failure is reported through failed().
  void connect(Target target);
  void start();

  // Plaintext for the peer. Append, then flush(): at once, or at the end of the turn. Before opened() it is kept.
  std::string& out() noexcept;
  // Writes as much as the kernel accepts.
  void flush();
  // Bytes not accepted by the kernel, plaintext or ciphertext.
  std::size_t unsent() const noexcept;
  // How many bytes of plaintext were ever passed to the kernel or the cipher.
  std::uint64_t taken() const noexcept;

  // Stops and continues reading. A reset is noticed while paused.
  void pause() noexcept;
  void resume() noexcept;
  bool paused() const noexcept;

  // Sends our end (FIN, close_notify) after what is unsent. Reading goes on.
  void half_close();
  // Writes what is unsent, then half_close(), discards input for up to 2 seconds, and closes.
  void finish();
  // Closes now.
  void close() noexcept;
  bool closed() const noexcept;

  bool is_open() const noexcept;
  // Negotiated by ALPN; empty: none.
  std::string_view application_protocol() const noexcept;

 private:
  void ready(std::uint32_t events) override;
};

}  // namespace weir
