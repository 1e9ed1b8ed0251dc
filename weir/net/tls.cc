#include "weir/net/tls.h"

#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <tuple>
#include <utility>

#include "weir/base/assert.h"
#include "weir/base/bounds.h"
#include "weir/net/socket.h"

namespace weir {
namespace {

// How often the files are checked for changes.
constexpr Duration kLookEvery = std::chrono::milliseconds{200};

template <auto function>
struct Free {
  template <class T>
  void operator()(T* value) const {
    function(value);
  }
};
void free_chain(STACK_OF(X509) * chain) {
  sk_X509_pop_free(chain, X509_free);
}
using Settings = std::unique_ptr<SSL_CTX, Free<SSL_CTX_free>>;
using Certificate = std::unique_ptr<X509, Free<X509_free>>;
using Chain = std::unique_ptr<STACK_OF(X509), Free<free_chain>>;
using PrivateKey = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;
using Bytes = std::unique_ptr<BIO, Free<BIO_free>>;

Error file_error(const std::string& file, const std::string& why) {
  return Error{Fault::invalid, file + ": " + why};
}

Result<std::string> read_file(const std::string& path) {
  const Socket file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) return file_error(path, std::strerror(errno));
  // Only regular files: reading a pipe could block forever, and its content is gone at the next reload.
  struct stat status {};
  if (fstat(file.fd(), &status) != 0) return file_error(path, std::strerror(errno));
  if (!S_ISREG(status.st_mode)) return file_error(path, "is not a regular file");
  std::string text(bounds::pem_bytes_max + 1, '\0');
  std::size_t size = 0;
  for (;;) {
    const ssize_t got = read(file.fd(), text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return file_error(path, std::strerror(errno));
    size += static_cast<std::size_t>(got);
    if (size > bounds::pem_bytes_max)
      return file_error(path, "is larger than " + std::to_string(bounds::pem_bytes_max) + " bytes");
    if (got == 0) break;
  }
  text.resize(size);
  return text;
}

Bytes view(const std::string& text) {
  return Bytes(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// Without this callback OpenSSL would prompt for a password on the terminal.
int no_password(char*, int, int, void* asked) {
  *static_cast<bool*>(asked) = true;
  return -1;
}

// Returns every certificate in the file, at least one.
Result<Chain> read_certificates(const std::string& file) {
  const auto text = read_file(file);
  if (!text) return text.error();
  ERR_clear_error();
  Chain chain(sk_X509_new_null());
  const Bytes from = view(*text);
  while (X509* const one = PEM_read_bio_X509(from.get(), nullptr, nullptr, nullptr)) sk_X509_push(chain.get(), one);
  // At the end of the file OpenSSL reports "no start line"; any other error is a malformed certificate.
  const bool ended = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  const std::string reason = tls_reason();
  if (!ended) return file_error(file, "contains a malformed certificate: " + reason);
  if (sk_X509_num(chain.get()) == 0) return file_error(file, "contains no PEM certificate");
  return chain;
}

struct Pair {
  Certificate certificate;
  Chain chain;
  PrivateKey key;
};

Result<Pair> read_pair(const CertificateFiles& files) {
  auto chain = read_certificates(files.cert);
  if (!chain) return chain.error();
  Pair pair;
  pair.chain = std::move(*chain);
  pair.certificate.reset(sk_X509_shift(pair.chain.get()));
  const auto text = read_file(files.key);
  if (!text) return text.error();
  bool asked = false;
  pair.key.reset(PEM_read_bio_PrivateKey(view(*text).get(), nullptr, no_password, &asked));
  if (pair.key == nullptr) {
    ERR_clear_error();
    return file_error(
        files.key, asked ? "the private key is encrypted; use one without a password" : "contains no PEM private key");
  }
  if (X509_check_private_key(pair.certificate.get(), pair.key.get()) != 1) {
    ERR_clear_error();
    return file_error(files.key, "is not the private key of the certificate in " + files.cert);
  }
  return pair;
}

Result<void> use_pair(SSL_CTX* settings, const Pair& pair, const CertificateFiles& files) {
  ERR_clear_error();
  if (SSL_CTX_use_cert_and_key(settings, pair.certificate.get(), pair.key.get(), pair.chain.get(), 1) == 1) return {};
  return file_error(files.cert, "cannot be used: " + tls_reason());
}

// Returns a warning about a certificate that loads but that clients will reject; empty if there is none.
std::string validity_warning(const X509* certificate, const std::string& file) {
  if (X509_cmp_current_time(X509_get0_notBefore(certificate)) > 0) return file + ": the certificate is not valid yet";
  if (X509_cmp_current_time(X509_get0_notAfter(certificate)) < 0) return file + ": the certificate has expired";
  return {};
}

// Returns the list in ALPN wire format: each name preceded by its length.
std::string alpn_list(const std::vector<std::string>& protocols) {
  std::string list;
  for (const std::string& name : protocols) {
    WEIR_ASSERT(!name.empty() && name.size() < 256);
    list += static_cast<char>(name.size());
    list += name;
  }
  return list;
}

Settings make_settings(const SSL_METHOD* method) {
  Settings settings(SSL_CTX_new(method));
  WEIR_ASSERT(settings != nullptr);
  SSL_CTX_set_min_proto_version(settings.get(), TLS1_2_VERSION);
  SSL_CTX_set_options(settings.get(),
                      SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  // Frees the record buffers of idle channels.
  SSL_CTX_set_mode(settings.get(), SSL_MODE_RELEASE_BUFFERS);
  return settings;
}

// Identifies a version of a file: changes when the file is written or replaced. Follows symbolic links.
using Stamp = std::tuple<dev_t, ino_t, off_t, long, long, long, long>;

Stamp stamp_of(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return {};
  return {status.st_dev,          status.st_ino,         status.st_size,        status.st_mtim.tv_sec,
          status.st_mtim.tv_nsec, status.st_ctim.tv_sec, status.st_ctim.tv_nsec};
}

std::vector<Stamp> stamps_of(const TlsServer::Options& options) {
  std::vector<Stamp> all;
  for (const CertificateFiles& pair : options.certificates) {
    all.push_back(stamp_of(pair.cert));
    all.push_back(stamp_of(pair.key));
  }
  if (!options.client_ca.empty()) all.push_back(stamp_of(options.client_ca));
  return all;
}

// HTTP/2 over TLS 1.2 needs an ephemeral key exchange and an AEAD cipher (RFC 9113 §9.2.2). TLS 1.3 has no others.
bool suits_http2(SSL* ssl) {
  if (SSL_version(ssl) >= TLS1_3_VERSION) return true;
  const SSL_CIPHER* const cipher = SSL_get_pending_cipher(ssl);
  return cipher != nullptr && SSL_CIPHER_get_kx_nid(cipher) == NID_kx_ecdhe && SSL_CIPHER_is_aead(cipher) == 1;
}

void trust(SSL_CTX* settings, const Chain& authorities) {
  for (int i = 0; i < sk_X509_num(authorities.get()); ++i)
    X509_STORE_add_cert(SSL_CTX_get_cert_store(settings), sk_X509_value(authorities.get(), i));
}

// Sets which clients may connect. It is the same for every certificate of a listener; otherwise a client could pick a
// less strict one with its server name.
void admit_clients(SSL_CTX* settings, const TlsServer::Options& options, const Chain& authorities) {
  if (options.only_tls13) SSL_CTX_set_min_proto_version(settings, TLS1_3_VERSION);
  if (options.client_ca.empty()) return;
  trust(settings, authorities);
  for (int i = 0; i < sk_X509_num(authorities.get()); ++i)
    SSL_CTX_add_client_CA(settings, sk_X509_value(authorities.get(), i));
  const int missing = options.require_client ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0;
  SSL_CTX_set_verify(settings, SSL_VERIFY_PEER | missing, nullptr);
  // Session tickets are valid only where the client's certificate was verified. OpenSSL refuses to resume without a
  // context name.
  constexpr std::string_view kWhere = "weir";
  SSL_CTX_set_session_id_context(settings, reinterpret_cast<const unsigned char*>(kWhere.data()), kWhere.size());
}

}  // namespace

// What was read from the files, one item per certificate. Channels share ownership of it.
struct TlsServer::Loaded {
  struct NamedCertificate {
    Settings settings;
    Certificate certificate;
  };
  std::vector<NamedCertificate> certificates;
  std::string protocols;
  std::string protocols_without_http2;

  // Picks the certificate by server name: exact matches before wildcards, then in the order of the list.
  static int choose(SSL* ssl, int*, void* argument) {
    const auto& loaded = *static_cast<const Loaded*>(argument);
    const char* const name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
    if (name == nullptr) return SSL_TLSEXT_ERR_NOACK;
    for (const unsigned flags : {X509_CHECK_FLAG_NO_WILDCARDS + 0u, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS + 0u}) {
      for (const NamedCertificate& candidate : loaded.certificates) {
        if (X509_check_host(candidate.certificate.get(), name, 0, flags, nullptr) != 1) continue;
        SSL_set_SSL_CTX(ssl, candidate.settings.get());
        return SSL_TLSEXT_ERR_OK;
      }
    }
    return SSL_TLSEXT_ERR_NOACK;
  }

  static int select_protocol(SSL* ssl, const unsigned char** out, unsigned char* size, const unsigned char* theirs,
                             unsigned count, void* argument) {
    const auto& loaded = *static_cast<const Loaded*>(argument);
    const std::string& ours = suits_http2(ssl) ? loaded.protocols : loaded.protocols_without_http2;
    const int found = SSL_select_next_proto(const_cast<unsigned char**>(out), size,
                                            reinterpret_cast<const unsigned char*>(ours.data()),
                                            static_cast<unsigned>(ours.size()), theirs, count);
    return found == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
  }
};

struct TlsServer::State {
  Options options;
  std::mutex mutex;  // protects `loaded`; held briefly
  std::shared_ptr<const Loaded> loaded;
  std::mutex looking;  // protects the members below; held while files are read
  Time next_look{};
  std::vector<Stamp> stamps;
};

TlsServer::TlsServer(Options options) : state_(std::make_unique<State>()) {
  state_->options = std::move(options);
  if (!state_->options.log) state_->options.log = [](LogLevel, std::string_view) {};
}

TlsServer::~TlsServer() = default;

Result<std::unique_ptr<TlsServer>> TlsServer::make(Options options) {
  if (options.certificates.empty()) return Error{Fault::invalid, "tls needs a certificate"};
  if (options.certificates.size() > bounds::listener_certificates_max) {
    return Error{Fault::too_large, "tls has more than " + std::to_string(bounds::listener_certificates_max) +
                                       " certificates on one listener"};
  }
  std::unique_ptr<TlsServer> server(new TlsServer(std::move(options)));
  if (auto loaded = server->reload(); !loaded) return loaded.error();
  return server;
}

Result<std::shared_ptr<const TlsServer::Loaded>> TlsServer::load() const {
  auto loaded = std::make_shared<Loaded>();
  loaded->protocols = alpn_list(state_->options.protocols);
  std::vector<std::string> others = state_->options.protocols;
  std::erase(others, "h2");
  loaded->protocols_without_http2 = alpn_list(others);
  Chain authorities;
  if (!state_->options.client_ca.empty()) {
    auto read = read_certificates(state_->options.client_ca);
    if (!read) return read.error();
    authorities = std::move(*read);
  }
  for (const CertificateFiles& files : state_->options.certificates) {
    auto pair = read_pair(files);
    if (!pair) return pair.error();
    Settings settings = make_settings(TLS_server_method());
    if (auto used = use_pair(settings.get(), *pair, files); !used) return used.error();
    admit_clients(settings.get(), state_->options, authorities);
    // Tickets contain what resumption needs, so the server keeps no session cache.
    SSL_CTX_set_session_cache_mode(settings.get(), SSL_SESS_CACHE_OFF);
    SSL_CTX_set_tlsext_servername_callback(settings.get(), Loaded::choose);
    SSL_CTX_set_tlsext_servername_arg(settings.get(), loaded.get());
    if (!loaded->protocols.empty()) SSL_CTX_set_alpn_select_cb(settings.get(), Loaded::select_protocol, loaded.get());
    if (const std::string warning = validity_warning(pair->certificate.get(), files.cert); !warning.empty())
      state_->options.log(LogLevel::warn, warning);
    loaded->certificates.push_back({std::move(settings), std::move(pair->certificate)});
  }
  return std::shared_ptr<const Loaded>(std::move(loaded));
}

Result<void> TlsServer::reload() {
  const std::lock_guard looking(state_->looking);
  return read_files();
}

Result<void> TlsServer::read_files() {
  // Taken before the files are read: a change during the read is noticed at the next check.
  state_->stamps = stamps_of(state_->options);
  auto loaded = load();
  if (!loaded) return loaded.error();
  const std::lock_guard lock(state_->mutex);
  state_->loaded = std::move(*loaded);
  return {};
}

void TlsServer::reload_if_changed(Time now) {
  const std::lock_guard looking(state_->looking);
  if (now < state_->next_look) return;
  state_->next_look = now + kLookEvery;
  const Options& options = state_->options;
  if (stamps_of(options) == state_->stamps) return;
  const auto read = read_files();
  if (read) {
    options.log(LogLevel::info, "TLS certificate reloaded: file=" + options.certificates.front().cert);
  } else {
    options.log(LogLevel::warn, "TLS certificate not reloaded, keeping the previous one: " + read.error().detail);
  }
}

std::unique_ptr<TlsChannel> TlsServer::accept() const {
  std::shared_ptr<const Loaded> loaded;
  {
    const std::lock_guard lock(state_->mutex);
    loaded = state_->loaded;
  }
  SSL* const ssl = SSL_new(loaded->certificates.front().settings.get());
  WEIR_ASSERT(ssl != nullptr);
  SSL_set_accept_state(ssl);
  return std::make_unique<TlsChannel>(ssl, std::move(loaded));
}

struct TlsClient::State {
  Settings settings;
};

TlsClient::TlsClient(std::shared_ptr<const State> state) : state_(std::move(state)) {}

TlsClient::~TlsClient() = default;

Result<std::unique_ptr<TlsClient>> TlsClient::make(const Options& options) {
  auto state = std::make_shared<State>();
  state->settings = make_settings(TLS_client_method());
  SSL_CTX* const settings = state->settings.get();
  SSL_CTX_set_verify(settings, SSL_VERIFY_PEER, nullptr);
  if (options.ca_file.empty()) {
    SSL_CTX_set_default_verify_paths(settings);
  } else {
    const auto trusted = read_certificates(options.ca_file);
    if (!trusted) return trusted.error();
    trust(settings, *trusted);
  }
  if (options.own.cert.empty() != options.own.key.empty())
    return Error{Fault::invalid, "a client certificate needs both cert_file and key_file"};
  if (!options.own.cert.empty()) {
    const auto pair = read_pair(options.own);
    if (!pair) return pair.error();
    if (auto used = use_pair(settings, *pair, options.own); !used) return used.error();
  }
  const std::string protocols = alpn_list(options.protocols);
  if (!protocols.empty()) {
    SSL_CTX_set_alpn_protos(settings, reinterpret_cast<const unsigned char*>(protocols.data()),
                            static_cast<unsigned>(protocols.size()));
  }
  ERR_clear_error();
  return std::unique_ptr<TlsClient>(new TlsClient(std::move(state)));
}

Result<std::unique_ptr<TlsChannel>> TlsClient::connect(const std::string& server_name) const {
  if (server_name.empty())
    return Error{Fault::invalid, "TLS needs the server name that the peer's certificate must match"};
  SSL* const ssl = SSL_new(state_->settings.get());
  WEIR_ASSERT(ssl != nullptr);
  SSL_set_connect_state(ssl);
  auto channel = std::make_unique<TlsChannel>(ssl, state_);
  if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), server_name.c_str()) == 1) return channel;
  ERR_clear_error();
  SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  // The SNI extension carries host names, never IP addresses (RFC 6066 §3).
  if (SSL_set1_host(ssl, server_name.c_str()) != 1 || SSL_set_tlsext_host_name(ssl, server_name.c_str()) != 1) {
    ERR_clear_error();
    return Error{Fault::invalid, "\"" + server_name + "\" is not a valid TLS server name"};
  }
  return channel;
}

}  // namespace weir
