// TLS for one connection, without I/O: ciphertext in, plaintext out, and the reverse. Client and server sides use the
// same class; TlsClient and TlsServer (net/tls.h) create it. No header exposes OpenSSL.
//
// Thread safety: none; a channel belongs to one loop.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "weir/base/result.h"

struct ssl_st;

namespace weir {

class TlsChannel {
 public:
  // Takes ownership of `ssl`, which is already set to client or server mode, and keeps `needs` alive as long as the
  // channel.
  TlsChannel(ssl_st* ssl, std::shared_ptr<const void> needs);
  TlsChannel(const TlsChannel&) = delete;
  TlsChannel& operator=(const TlsChannel&) = delete;
  ~TlsChannel();

  // Consumes all of `bytes`, in pieces of any size. Appends the decrypted bytes to `plain`, which grows by less than
  // `bytes.size()`, and handshake or alert records to `out`. A client starts with empty `bytes`. After an Error, send
  // `out`, which ends with an alert; the channel then refuses all input.
  Result<void> receive(std::string_view bytes, std::string& plain, std::string& out);

  // Encrypts `plain` and appends it to `out`. Requires established().
  Result<void> send(std::string_view plain, std::string& out);

  // Appends a close_notify alert to `out` if the handshake is done. Nothing can be sent after it.
  void close(std::string& out);

  // True once the handshake is done and the peer is verified.
  bool established() const noexcept { return established_; }
  // True once the peer has sent close_notify. A connection that ends without it was truncated.
  bool peer_closed() const noexcept { return peer_closed_; }
  // Returns the negotiated ALPN protocol ("http/1.1"), or an empty view.
  std::string_view application_protocol() const noexcept;

 private:
  // The buffers that the SSL reads from and writes to during a call.
  struct Ends {
    std::string_view in;
    std::string* out = nullptr;
  };
  struct Bridge;

  Result<void> fail(int result);

  ssl_st* ssl_;
  std::shared_ptr<const void> needs_;
  Ends ends_;
  bool established_ = false;
  bool peer_closed_ = false;
  bool closed_ = false;
  bool failed_ = false;
};

// Returns OpenSSL's reason for the last failure and clears its error queue.
std::string tls_reason();

}  // namespace weir
