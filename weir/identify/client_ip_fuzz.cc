// X-Forwarded-For, one line per line of the input; the first is X-Real-IP. Lines from an untrusted peer are ignored,
// and with a trusted peer the client is the peer or an address that parse_hop() reads in them.
#include <string_view>
#include <vector>

#include "weir/base/assert.h"
#include "weir/identify/client_ip.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weir;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  std::vector<std::string_view> lines;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    lines.push_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  const std::string_view real_ip = lines.empty() ? std::string_view{} : lines.front();
  if (!lines.empty()) lines.erase(lines.begin());

  static const TrustedProxies trusted = *TrustedProxies::make({*IpPrefix::parse("10.0.0.0/8")});
  const IpAddress proxy = *IpAddress::parse("10.0.0.1");
  const IpAddress stranger = *IpAddress::parse("192.0.2.1");
  WEIR_ASSERT(client_ip(stranger, lines, real_ip, trusted) == stranger);

  const IpAddress client = client_ip(proxy, lines, real_ip, trusted);
  bool named = client == proxy || parse_hop(real_ip) == client;
  for (const std::string_view line : lines) {
    for (std::size_t at = 0; at <= line.size();) {
      const std::size_t comma = std::min(line.find(',', at), line.size());
      named = named || parse_hop(line.substr(at, comma - at)) == client;
      at = comma + 1;
    }
  }
  WEIR_ASSERT(named);
  return 0;
}
