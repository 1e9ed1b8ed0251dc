// One connection's TLS without the connection: ciphertext in, plaintext out, and back. Both sides of a conversation are
// this class; net/tls.h makes them. OpenSSL does the work and shows in no header.
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
  // Takes the SSL, which knows its side, and holds on to what that needs to live.
  TlsChannel(ssl_st* ssl, std::shared_ptr<const void> needs);
  TlsChannel(const TlsChannel&) = delete;
  TlsChannel& operator=(const TlsChannel&) = delete;
  ~TlsChannel();

  // Takes all of `bytes`, as the peer sent them and in any pieces; what they say goes behind `plain`, which grows by
  // less than `bytes` holds, and what has to be answered behind `out`. A client begins with empty `bytes`. An Error is
  // the end: `out` has the last words, and whatever comes is refused.
  Result<void> receive(std::string_view bytes, std::string& plain, std::string& out);

  // Once established(): all of `plain`, encrypted, behind `out`.
  Result<void> send(std::string_view plain, std::string& out);

  // Says goodbye, if the peer can understand it. Nothing can be sent after it.
  void close(std::string& out);

  // The handshake is done, and the peer is who it has to be.
  bool established() const noexcept { return established_; }
  // The peer has said that it sends no more. A connection that ends without it was cut.
  bool peer_closed() const noexcept { return peer_closed_; }
  // What both sides agreed to speak ("http/1.1"); empty if they did not.
  std::string_view application_protocol() const noexcept;

 private:
  // What the SSL reads from and writes to while a call lasts.
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

// Why OpenSSL refused, in its own words, and nothing left behind for the next call to find.
std::string tls_reason();

}  // namespace weir
