#include "weir/net/tls_channel.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

#include <algorithm>
#include <array>
#include <utility>

#include "weir/base/assert.h"

namespace weir {

// OpenSSL reads and writes through a BIO. Ours reads the caller's bytes in place and appends to the caller's string, so
// that nothing is copied twice and an idle channel holds no buffer.
struct TlsChannel::Bridge {
  static int read(BIO* bio, char* to, int size) {
    Ends& ends = *static_cast<Ends*>(BIO_get_data(bio));
    BIO_clear_retry_flags(bio);
    if (ends.in.empty()) {
      BIO_set_retry_read(bio);
      return -1;
    }
    const std::size_t count = std::min(ends.in.size(), static_cast<std::size_t>(size));
    std::copy_n(ends.in.data(), count, to);
    ends.in.remove_prefix(count);
    return static_cast<int>(count);
  }

  static int write(BIO* bio, const char* from, int size) {
    Ends& ends = *static_cast<Ends*>(BIO_get_data(bio));
    BIO_clear_retry_flags(bio);
    ends.out->append(from, static_cast<std::size_t>(size));
    return size;
  }

  static long control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

  static const BIO_METHOD* method() {
    // Created once and never freed: every channel of the process points to it.
    static const BIO_METHOD* const made = [] {
      BIO_METHOD* const fresh = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "channel");
      WEIR_ASSERT(fresh != nullptr);
      BIO_meth_set_read(fresh, read);
      BIO_meth_set_write(fresh, write);
      BIO_meth_set_ctrl(fresh, control);
      return fresh;
    }();
    return made;
  }
};

std::string tls_reason() {
  // The first error is the cause; later ones only describe how it was passed on.
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  const char* const reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  return reason == nullptr ? "unknown reason" : reason;
}

TlsChannel::TlsChannel(ssl_st* ssl, std::shared_ptr<const void> needs) : ssl_(ssl), needs_(std::move(needs)) {
  BIO* const bio = BIO_new(Bridge::method());
  WEIR_ASSERT(bio != nullptr);
  BIO_set_data(bio, &ends_);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_, bio, bio);
}

TlsChannel::~TlsChannel() {
  SSL_free(ssl_);
}

Result<void> TlsChannel::receive(std::string_view bytes, std::string& plain, std::string& out) {
  if (failed_) return Error{Fault::invalid, "the TLS connection has already failed"};
  if (peer_closed_) return {};  // bytes after close_notify are ignored
  ERR_clear_error();
  ends_ = {bytes, &out};
  if (!established_) {
    const int result = SSL_do_handshake(ssl_);
    if (result != 1) return fail(result);
    established_ = true;
  }
  std::array<char, SSL3_RT_MAX_PLAIN_LENGTH> record;
  for (;;) {
    const int result = SSL_read(ssl_, record.data(), static_cast<int>(record.size()));
    if (result <= 0) return fail(result);
    plain.append(record.data(), static_cast<std::size_t>(result));
  }
}

Result<void> TlsChannel::send(std::string_view plain, std::string& out) {
  WEIR_ASSERT(established_);
  if (failed_ || closed_) return Error{Fault::invalid, "the TLS connection is closed"};
  if (plain.empty()) return {};
  ERR_clear_error();
  ends_ = {{}, &out};
  std::size_t written = 0;
  if (SSL_write_ex(ssl_, plain.data(), plain.size(), &written) == 1) return {};
  failed_ = true;
  return Error{Fault::internal, "cannot encrypt: " + tls_reason()};
}

void TlsChannel::close(std::string& out) {
  if (!established_ || failed_ || std::exchange(closed_, true)) return;
  ERR_clear_error();
  ends_ = {{}, &out};
  SSL_shutdown(ssl_);
  ERR_clear_error();
}

// Returns no error if OpenSSL only needs more bytes or the peer has closed.
Result<void> TlsChannel::fail(int result) {
  const int kind = SSL_get_error(ssl_, result);
  if (kind == SSL_ERROR_WANT_READ) return {};
  if (kind == SSL_ERROR_ZERO_RETURN) {
    peer_closed_ = true;
    return {};
  }
  failed_ = true;
  const unsigned long code = ERR_peek_error();
  const int reason = ERR_GET_LIB(code) == ERR_LIB_SSL ? ERR_GET_REASON(code) : 0;
  const std::string words = tls_reason();
  if (reason == SSL_R_HTTP_REQUEST) return Error{Fault::invalid, "received plain HTTP instead of TLS"};
  if (reason == SSL_R_WRONG_VERSION_NUMBER && !established_)
    return Error{Fault::invalid, "received data that is not TLS"};
  if (const long verdict = SSL_get_verify_result(ssl_); !established_ && verdict != X509_V_OK)
    return Error{Fault::invalid, std::string("certificate rejected: ") + X509_verify_cert_error_string(verdict)};
  return Error{Fault::invalid, (established_ ? "TLS failed: " : "TLS handshake failed: ") + words};
}

std::string_view TlsChannel::application_protocol() const noexcept {
  const unsigned char* name = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(ssl_, &name, &size);
  return {reinterpret_cast<const char*>(name), size};
}

}  // namespace weir
