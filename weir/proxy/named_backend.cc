#include "weir/proxy/named_backend.h"

#include <algorithm>
#include <optional>

#include "weir/base/bounds.h"
#include "weir/identify/public_address.h"
#include "weir/net/http_url.h"
#include "weir/wire/http.h"

namespace weir::proxy {
namespace {

// A host as written, with an address in its canonical form: addresses have many spellings.
std::string canonical(std::string_view host) {
  const Result<IpAddress> ip = IpAddress::parse(host);
  return ip ? ip->print() : std::string(host);
}

// `localhost` counts as what was written and as the address that it stands for.
bool is_allowed(const HttpUrl& url, std::span<const std::string> allowed_hosts) {
  const std::string_view authority = url.authority;
  const std::string_view written = authority.substr(0, authority.find(':'));
  return std::ranges::any_of(allowed_hosts, [&](const std::string& host) {
    return canonical(host) == canonical(url.target.host) || (written == "localhost" && host == written);
  });
}

Error refuse_url(std::string_view reason, const std::string& detail) {
  return Error{Fault::invalid, detail, 0, reason};
}

}  // namespace

bool may_dial(const Address& address) {
  if (address.is_unix()) return false;
  const Result<IpAddress> ip = IpAddress::parse(address.host);
  return ip && is_public(*ip);
}

Result<Backend> make_named_backend(std::string_view url, std::span<const std::string> allowed_hosts,
                                   TlsClients& clients) {
  if (url.size() > bounds::backend_url_bytes_max) return refuse_url("bad_url", "the URL is too long");
  const Result<HttpUrl> parsed = HttpUrl::parse(url);
  const bool is_http = same_word(url.substr(0, 7), "http://") || same_word(url.substr(0, 8), "https://");
  if (!is_http) return refuse_url("bad_scheme", "the URL must begin with http:// or https://");
  if (!parsed) return refuse_url("bad_url", parsed.error().detail);
  const bool allowed = is_allowed(*parsed, allowed_hosts);
  if (const std::optional<Address> literal = parsed->target.literal(); literal && !allowed && !may_dial(*literal)) {
    return refuse_url("private_address", "the address " + parsed->target.host + " is not public");
  }
  Result<Backend> backend = make_backend(std::string(url), BackendTls{}, clients);
  if (!backend) return refuse_url("bad_url", backend.error().detail);
  backend->origin.public_only = !allowed;
  return backend;
}

}  // namespace weir::proxy
