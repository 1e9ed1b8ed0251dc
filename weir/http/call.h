// The client's side of an exchange: one request and its response, over a connection of a ClientPool.
//
// The same rules as for exchanges: no function of a Call calls its owner before it returns; views are valid during the
// callback; what you pass in is copied or written before the call returns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "weir/base/result.h"
#include "weir/base/time.h"
#include "weir/http/exchange.h"
#include "weir/net/resolve.h"
#include "weir/net/socket.h"
#include "weir/net/tls.h"
#include "weir/wire/http.h"

namespace weir::http {

class CallState;

// Why a call ended without a complete response. The fault says whose failure it is:
//   unavailable  no connection, or it broke             unknown   the host name does not exist
//   timeout      connecting, the response or the call took too long, or the server went silent
//   overloaded   too many calls to this origin; nothing was sent
//   invalid      the response breaks the rules of HTTP, or the request cannot be sent this way
//   too_large    the server does not accept so large a request head; nothing was sent
struct CallFailure {
  Error error;
  bool sent = false;            // false: the request was certainly not processed
  bool response_begun = false;  // the owner has the head
};

struct CallHead {
  std::string_view method = "GET";
  std::string_view scheme = "http";
  std::string_view authority;
  std::string_view path = "/";
  HttpFields fields;
  std::optional<std::uint64_t> length;  // of the body, if known; a request that is complete at once needs none
  // The value of Upgrade; empty: none. Such a request has no body: what is written goes into the tunnel after the 101,
  // so the first part is usually empty and not the last. HTTP/1 only; over HTTP/2 the call fails with `invalid`.
  std::string_view upgrade;
  bool expect_continue = false;
  bool accepts_trailers = false;  // HTTP/2 only: `TE: trailers`, without which gRPC servers refuse a call
};

// Move-only handle. Destroying it cancels the call; allowed anywhere, even in a callback.
class Call {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    // An interim response: 1xx except 101.
    virtual void informed(const ResponseHead& head) { (void)head; }
    // The response. After a 101 both directions carry raw bytes: `last` is the end of one direction, and the call ends
    // when both have ended; drained() may follow the server's last part.
    virtual void head(const ResponseHead& head, BodyPart first) = 0;
    // Return the credit with Call::consumed(), for the first part too.
    virtual void body(BodyPart part) = 0;
    // `bytes` of the request body left. At most once per turn.
    virtual void drained(std::size_t bytes) { (void)bytes; }
    // The last callback, unless a part with `last` was. In an upgraded call, `last` ends one direction, and the other
    // may still fail.
    virtual void failed(const CallFailure& failure) = 0;
  };

  Call() = default;
  Call(Call&& other) noexcept;
  Call& operator=(Call&& other) noexcept;
  ~Call();

  // True until the last callback or cancel(). Afterwards the functions below do nothing.
  explicit operator bool() const noexcept;
  // More of the request body; takes all of it. Stay within room().
  void write(BodyPart part);
  std::size_t room() const noexcept;
  // Returns credit for response body bytes.
  void consumed(std::size_t bytes);
  void cancel() noexcept;

 private:
  friend class CallState;
  explicit Call(CallState& state) noexcept : state_(&state) {}
  CallState* state_ = nullptr;
};

enum class HttpVersion : unsigned char {
  http1,      // HTTP/1.1
  http2,      // HTTP/2: over TLS with ALPN, without TLS by prior knowledge
  negotiate,  // over TLS what ALPN selects, HTTP/2 preferred; HTTP/1.1 without TLS
};

// Where calls go. Connections are pooled per origin; all members count.
struct Origin {
  Target target;
  HttpVersion version = HttpVersion::http1;
  std::shared_ptr<const TlsClient> tls = nullptr;  // null: no TLS
  std::string server_name = {};
  // Only public addresses may be dialed (CallOptions::may_dial checks them). Such an origin never shares a connection
  // with one that may dial any address.
  bool public_only = false;
};

struct CallOptions {
  Duration connect_timeout = std::chrono::seconds{5};
  // From the last request byte that left until the response head. Counts only while we wait for the server: for room
  // for the rest of the request, or for the response.
  Duration response_timeout = std::chrono::seconds{60};
  Duration idle_timeout = std::chrono::minutes{5};  // no byte either way once the response has begun
  Time deadline = Time::max();                      // of the whole call
  std::function<bool(const Address&)> may_dial = {};
};

}  // namespace weir::http
