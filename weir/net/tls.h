// TLS settings (certificates and trusted authorities) shared by the TLS channels (tls_channel.h) of one listener or of
// one service that we connect to. TLS 1.2 and 1.3, no compression, no renegotiation, resumption by tickets.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/log.h"
#include "weir/base/result.h"
#include "weir/base/time.h"
#include "weir/net/tls_channel.h"

namespace weir {

// PEM files: a certificate followed by its chain, and its private key.
struct CertificateFiles {
  std::string cert;
  std::string key;
};

// Thread-safe; the loops of a server share one per listener.
class TlsServer {
 public:
  struct Options {
    // The first is the default, for clients that send no server name or one that matches no certificate. At most
    // bounds::listener_certificates_max.
    std::vector<CertificateFiles> certificates;
    // ALPN protocols, best first. A client that offers only others is refused. Empty means no ALPN. "h2" is
    // selected only with a cipher that suits it (RFC 9113 §9.2.2).
    std::vector<std::string> protocols;
    // Receives log messages. Called from any thread.
    std::function<void(LogLevel, std::string_view)> log;
    // File with the authorities that may sign client certificates; empty means that none is requested. A certificate
    // that a client presents must be valid; `require_client` decides whether it must present one.
    std::string client_ca{};
    bool require_client = true;
    bool only_tls13 = false;
  };

  static Result<std::unique_ptr<TlsServer>> make(Options options);
  ~TlsServer();

  // Creates the channel of an accepted connection. Does no file I/O, so it may be called on a loop.
  std::unique_ptr<TlsChannel> accept() const;

  // Reloads the files if they have changed. Call it often, on a thread that may block on disk I/O; it checks at most a
  // few times a second. New files apply to later connections. Files that cannot be used are logged once, and the
  // previous ones stay in use.
  void reload_if_changed(Time now);
  // Reloads the files unconditionally. On error the previous ones stay in use.
  Result<void> reload();

 private:
  struct Loaded;
  struct State;

  explicit TlsServer(Options options);
  Result<std::shared_ptr<const Loaded>> load() const;
  Result<void> read_files();

  std::unique_ptr<State> state_;
};

// Thread-safe.
class TlsClient {
 public:
  struct Options {
    std::string ca_file;                 // authorities that may sign the peer's certificate; empty: the system's
    CertificateFiles own;                // our client certificate; empty: none
    std::vector<std::string> protocols;  // ALPN, best first
  };

  static Result<std::unique_ptr<TlsClient>> make(const Options& options);
  ~TlsClient();

  // The peer's certificate must match `server_name`, a host name or an IP address.
  Result<std::unique_ptr<TlsChannel>> connect(const std::string& server_name) const;

 private:
  struct State;

  explicit TlsClient(std::shared_ptr<const State> state);

  std::shared_ptr<const State> state_;
};

}  // namespace weir
