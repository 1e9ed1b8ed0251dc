// What a request says of itself, found among the attributes of a query:
//   {"ip", A}             the client, by whoever asks for it; otherwise
//   {"peer", A}           who is at the other end of the connection: X-Forwarded-For tells more if the peer is trusted
//   {"method", M} {"path", target with its query} {"host", H}
//   {"header:NAME", V}    in lower case, as often as it was sent
//   {"form:FIELD", V} {"descriptor:KEY", V}
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/ascii.h"
#include "weir/base/result.h"
#include "weir/core/query.h"
#include "weir/identify/client_ip.h"
#include "weir/identify/key_source.h"

namespace weir {

// Meant to be used again and again: after a few requests it allocates nothing.
class Request {
 public:
  // Begins anew. The attributes must outlive every later call but client(), apikey(), path(), host() and method().
  // Errors: invalid (an ip or a peer that is no address), too_large (more than bounds::attributes_max attributes).
  Result<void> read(std::span<const Attribute> attributes, const TrustedProxies& trusted);

  // Nobody, nowhere.
  void clear() noexcept;

  const std::optional<IpAddress>& client() const noexcept { return client_; }
  std::string_view apikey() const noexcept { return apikey_; }  // empty: none
  std::string_view method() const noexcept { return method_; }  // in upper case; empty: not said
  std::string_view host() const noexcept { return host_; }      // in lower case, without the port; empty: not said
  std::string_view path() const noexcept { return path_; }      // normalised (path.h); "/" if it was not said

  // The first value under that name ("header:x-cost"), or null.
  const std::string_view* find(std::string_view name) const noexcept;
  // Every value under that name, trimmed, until one is refused.
  template <class Visit>
  Result<void> each(std::string_view name, Visit visit) const {
    for (const Attribute& attribute : attributes_) {
      if (attribute.name != name) continue;
      if (Result<void> done = visit(trim(attribute.value)); !done) return done;
    }
    return {};
  }
  // The token that says who asks: of that header, else of that cookie, else of neither the bearer token. Empty: none,
  // or its header occurs twice with different values, and nobody knows which one counts.
  std::string_view token(std::string_view header, std::string_view cookie) const noexcept;
  // What a verified token claims, by the places that the key sources name.
  void claim(std::shared_ptr<const std::vector<std::string>> claims) noexcept { claims_ = std::move(claims); }

  // Whether any value under that name, trimmed, is exactly this one.
  bool has(std::string_view name, std::string_view value) const noexcept;

  // Appends the source's value as one part of an id: escaped (attribute.h), but for addresses; IPv6 as the prefix of
  // `ipv6_prefix` bits. False, and nothing is appended: the request has no such value, or an empty one.
  bool append_part(const KeySource& source, int ipv6_prefix, std::string& id) const;
  // The same as it stands, for ids whose format is checked.
  bool append_value(const KeySource& source, int ipv6_prefix, std::string& id) const;

 private:
  Result<void> find_client(std::string_view ip, std::string_view peer, const TrustedProxies& trusted);
  void find_apikey();
  std::optional<std::string_view> cookie(std::string_view name) const noexcept;
  // The value of any source but ip and query; empty: none.
  std::string_view plain_value(const KeySource& source) const noexcept;

  std::span<const Attribute> attributes_;
  std::optional<IpAddress> client_;
  std::string_view target_;
  std::string apikey_;
  std::string method_;
  std::string host_;
  std::string path_;
  std::vector<std::string_view> forwarded_for_;
  std::shared_ptr<const std::vector<std::string>> claims_;  // null: none
};

}  // namespace weir
