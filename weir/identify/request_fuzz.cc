// Any attributes, "name=value" per line. The path is normalized, and different lists of parts never give the same id.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/assert.h"
#include "weir/identify/path.h"
#include "weir/identify/request.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weir;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  std::vector<Attribute> attributes;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, std::min(rest.find('\n'), rest.size()));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    const std::size_t equals = std::min(line.find('='), line.size());
    attributes.push_back({line.substr(0, equals), line.substr(std::min(equals + 1, line.size()))});
  }
  static const TrustedProxies trusted = *TrustedProxies::make({*IpPrefix::parse("10.0.0.0/8")});
  static Request request;
  if (!request.read(attributes, trusted)) return 0;
  const std::string path(request.path());
  WEIR_ASSERT(path.starts_with('/') && path.find("//") == std::string::npos);
  WEIR_ASSERT((path + "/").find("/../") == std::string::npos && (path + "/").find("/./") == std::string::npos);
  std::string again;
  normalize_path(path, again);
  WEIR_ASSERT(again == path);
  for (const std::string_view source :
       {"apikey", "header:a", "cookie:a", "query:a", "form:a", "path", "path:1", "path:2", "method", "host"}) {
    std::string id;
    const bool found = request.append_part(KeySource::of(source), 64, id);
    WEIR_ASSERT(found == !id.empty() && id.find(':') == std::string::npos);
  }
  return 0;
}
