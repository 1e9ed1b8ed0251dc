// Any bytes in place of a handshake message or a record, in pieces of any size, give an error or wait for more input,
// never plaintext that was not sent. The first byte selects the state of the conversation and the size of the pieces.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "weir/base/assert.h"
#include "weir/net/certificates_test.h"
#include "weir/net/tls.h"
#include "weir/net/tls_channel.h"

namespace {

struct Sides {
  Sides() {
    const weir::Authority authority;
    server = std::move(*weir::TlsServer::make({{folder.write("fuzz", authority.issue("DNS:weir.test"))}, {}, {}}));
    client = std::move(*weir::TlsClient::make({folder.write("ca.pem", authority.cert()), {}, {}}));
  }
  weir::CertificateFolder folder;
  std::unique_ptr<weir::TlsServer> server;
  std::unique_ptr<weir::TlsClient> client;
};

// Feeds bytes to one side. Returns false if the channel failed.
bool give(weir::TlsChannel& channel, std::string_view bytes, std::size_t piece, std::string& out) {
  std::string plain;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size()))) {
    const bool lost = !channel.receive(bytes.substr(0, piece), plain, out);
    WEIR_ASSERT(plain.empty());
    WEIR_ASSERT(out.size() < 1 << 20);
    if (lost) return false;
  }
  return true;
}

void shake_hands(weir::TlsChannel& client, weir::TlsChannel& server) {
  std::string to_server;
  std::string to_client;
  std::string plain;
  WEIR_ASSERT(client.receive({}, plain, to_server));
  while (!client.established() || !server.established()) {
    WEIR_ASSERT(give(server, std::exchange(to_server, {}), 1 << 20, to_client));
    WEIR_ASSERT(give(client, std::exchange(to_client, {}), 1 << 20, to_server));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Sides sides;
  if (size == 0) return 0;
  const unsigned choice = data[0];
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto server = sides.server->accept();
  const auto client = std::move(*sides.client->connect("weir.test"));
  if ((choice & 1) != 0) shake_hands(*client, *server);
  weir::TlsChannel& target = (choice & 2) != 0 ? *client : *server;
  std::string out;
  std::string plain;
  if (&target == client.get() && !target.established()) WEIR_ASSERT(target.receive({}, plain, out));
  give(target, bytes, (choice >> 2) + 1, out);
  target.close(out);
  return 0;
}
