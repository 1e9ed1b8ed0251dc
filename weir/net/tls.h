// Who we are and whom we trust: what the TLS channels (tls_channel.h) of one listener, or of one service that we
// connect to, have in common. TLS 1.2 and 1.3, no compression, no renegotiation, resumption by tickets.
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

// PEM files: a certificate with its chain behind it, and its private key.
struct CertificateFiles {
  std::string cert;
  std::string key;
};

// Thread safety: all of it; the loops of a server share one for each listener.
class TlsServer {
 public:
  struct Options {
    // The first is for clients that name no server or one that none is for. At most bounds::listener_certificates_max.
    std::vector<CertificateFiles> certificates;
    // What may be spoken inside (ALPN), best first. A client that insists on something else is refused; with none,
    // nobody is asked.
    std::vector<std::string> protocols;
    // Told what an operator should know, one sentence each, in any thread.
    std::function<void(LogLevel, std::string_view)> log;
    // Certificates that may sign a client's; empty: clients are not asked for one. Of who shows one it must be good; of
    // who shows none `require_client` decides.
    std::string client_ca{};
    bool require_client = true;
    bool only_tls13 = false;
  };

  static Result<std::unique_ptr<TlsServer>> make(Options options);
  ~TlsServer();

  // For a connection that was just accepted. Reads no file, so a loop may call it.
  std::unique_ptr<TlsChannel> accept() const;

  // To be called often, in a thread that may wait for a disk. Looks, a few times a second at most, whether the files
  // have changed: new ones are for later connections, and ones that cannot be used leave the old in force and are told
  // of once.
  void look(Time now);
  // Reads the files now, changed or not. An Error: the old ones stay in force.
  Result<void> reload();

 private:
  struct Loaded;
  struct State;

  explicit TlsServer(Options options);
  Result<std::shared_ptr<const Loaded>> load() const;
  Result<void> read_again();

  std::unique_ptr<State> state_;
};

// Thread safety: all of it.
class TlsClient {
 public:
  struct Options {
    std::string ca_file;                 // who may sign the peer's certificate; empty: whom the system trusts
    CertificateFiles own;                // if the peer asks for ours; empty: none
    std::vector<std::string> protocols;  // ALPN, best first
  };

  static Result<std::unique_ptr<TlsClient>> make(const Options& options);
  ~TlsClient();

  // `server_name`, a host name or an IP address, must be in the peer's certificate.
  Result<std::unique_ptr<TlsChannel>> connect(const std::string& server_name) const;

 private:
  struct State;

  explicit TlsClient(std::shared_ptr<const State> state);

  std::shared_ptr<const State> state_;
};

}  // namespace weir
