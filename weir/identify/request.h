// The identity and target of a request, from the attributes of a query:
//   {"ip", A}             the client, as given by the caller; otherwise
//   {"peer", A}           the peer of the connection; if it is trusted, X-Forwarded-For names the client; "unix" for a
//                         UNIX socket
//   {"method", M} {"path", target with its query} {"host", H}
//   {"header:NAME", V}    in lower case, once per occurrence
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

// Reuse one object: after a few requests it allocates nothing.
class Request {
 public:
  // Reads a new request. The attributes must outlive every later call except client(), apikey(), path(), host() and
  // method(). Errors: invalid (ip or peer is not an address, the path has a null character), too_large (more than
  // bounds::attributes_max attributes).
  Result<void> read(std::span<const Attribute> attributes, const TrustedProxies& trusted);

  // Resets to an empty request.
  void clear() noexcept;

  const std::optional<IpAddress>& client() const noexcept { return client_; }
  std::string_view apikey() const noexcept { return apikey_; }  // empty: none
  std::string_view method() const noexcept { return method_; }  // in upper case; empty: not given
  std::string_view host() const noexcept { return host_; }      // in lower case, without the port; empty: not given
  std::string_view path() const noexcept { return path_; }      // normalized (path.h); "/" if not given

  // Returns the first value of that name ("header:x-cost"), or null.
  const std::string_view* find(std::string_view name) const noexcept;
  // Calls `visit` with every value of that name, trimmed, until it returns an error.
  template <class Visit>
  Result<void> each(std::string_view name, Visit visit) const {
    for (const Attribute& attribute : attributes_) {
      if (attribute.name != name) continue;
      if (Result<void> done = visit(trim(attribute.value)); !done) return done;
    }
    return {};
  }
  // Returns the client's token from `header`, or else from `cookie`; if neither is named, the bearer token of
  // Authorization. Empty if there is none, or if the header occurs twice with different values.
  std::string_view token(std::string_view header, std::string_view cookie) const noexcept;
  // Sets the claims of a verified token; KeySource::segment is the index.
  void claim(std::shared_ptr<const std::vector<std::string>> claims) noexcept { claims_ = std::move(claims); }

  // Returns whether the source occurs several times with different values: Weir and a backend could use different ones.
  // Always false for descriptors, which may repeat.
  bool differs(const KeySource& source) const;
  // From here on the path is in lower case, for keys of a route that ignores its case.
  void ignore_path_case() noexcept;

  // Returns whether any value of that name, trimmed, equals `value`.
  bool has(std::string_view name, std::string_view value) const noexcept;

  // Appends the source's value as one part of an id: escaped (attribute.h), except for addresses; IPv6 as the prefix of
  // `ipv6_prefix` bits. Returns false and appends nothing if the value is missing or empty.
  bool append_part(const KeySource& source, int ipv6_prefix, std::string& id) const;
  // The same without escaping, for ids whose format is checked.
  bool append_value(const KeySource& source, int ipv6_prefix, std::string& id) const;

 private:
  Result<void> find_client(std::string_view ip, std::string_view peer, const TrustedProxies& trusted);
  void find_apikey();
  std::optional<std::string_view> cookie(std::string_view name) const noexcept;
  bool value_differs(std::string_view name) const noexcept;
  template <class Visit>
  void each_cookie(Visit visit) const;
  // Returns the value of any source except ip and query; empty if there is none.
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
