#include "weir/config/forwarding.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "weir/base/ascii.h"
#include "weir/base/bounds.h"
#include "weir/base/text.h"
#include "weir/config/values.h"
#include "weir/identify/quote.h"
#include "weir/net/http_url.h"

namespace weir::config {
namespace {

// Fields that the proxy writes itself, or that frame a message.
constexpr std::array<std::string_view, 13> kReserved = {
    "connection",       "content-length", "content-type",      "date",    "grpc-message", "grpc-status", "keep-alive",
    "proxy-connection", "retry-after",    "transfer-encoding", "trailer", "upgrade",      "x-request-id"};

void read_backends(const Document& document, NodeId section, Forwarding& forwarding, Complaints& complaints) {
  const NodeId backend = document.find(section, "backend");
  for (const NodeId item : document.items(section, "backend")) {
    std::string text(document.value(item));
    if (const Result<HttpUrl> url = HttpUrl::parse(text); !url) {
      complaints.add(item, "backend: " + url.error().detail);
    } else if (std::ranges::find(forwarding.backends, text) != forwarding.backends.end()) {
      complaints.add(item, "backend " + quote(text) + " is given twice");
    }
    forwarding.backends.push_back(std::move(text));
  }
  if (forwarding.backends.size() > bounds::proxy_backends_max) {
    complaints.add(backend, "backend: " + std::to_string(forwarding.backends.size()) + " are given; at most " +
                                std::to_string(bounds::proxy_backends_max) + " are possible");
  }
}

void read_tls(const Document& document, NodeId section, Forwarding& forwarding, Complaints& complaints) {
  const NodeId node = document.find(section, "backend_tls");
  if (!document.is(node, NodeKind::map)) return;
  const auto text = [&](std::string_view key) { return std::string(document.text(node, key)); };
  BackendTls tls{text("ca_file"), text("cert_file"), text("key_file"), text("server_name")};
  if (tls.cert_file.empty() != tls.key_file.empty()) {
    complaints.add(node, "backend_tls needs both cert_file and key_file, or neither");
  }
  forwarding.tls = std::move(tls);
}

void read_error_headers(const Document& document, NodeId section, Forwarding& forwarding, Complaints& complaints) {
  const NodeId node = document.usable(section, "error_headers");
  for (const NodeId entry : document.children(node)) {
    const std::string name = to_lower(document.key(entry));
    const std::string_view value = document.value(entry);
    if (!check_key_source("header:" + name)) {
      complaints.add_at_key(entry, "error_headers: " + quote(document.key(entry)) + " is not a header's name");
    } else if (std::ranges::find(kReserved, name) != kReserved.end()) {
      complaints.add_at_key(entry, "error_headers: " + name + " is written by the proxy itself");
    }
    if (has_control(value)) {
      complaints.add(entry, "error_headers: the value of " + name + " must not have control characters");
    }
    forwarding.error_headers.emplace_back(name, value);
  }
  if (forwarding.error_headers.size() > bounds::proxy_error_headers_max) {
    complaints.add(node, "error_headers: at most " + std::to_string(bounds::proxy_error_headers_max) + " are possible");
  }
}

}  // namespace

Forwarding read_forwarding(const Document& document, NodeId section, Complaints& complaints) {
  Forwarding forwarding;
  read_backends(document, section, forwarding, complaints);
  read_tls(document, section, forwarding, complaints);
  read_error_headers(document, section, forwarding, complaints);
  const auto usable = [&](std::string_view key) { return document.usable(section, key) != kNoNode; };
  const auto duration = [&](std::string_view key) {
    return usable(key) ? std::optional(parse_duration(document.text(section, key)).value()) : std::nullopt;
  };
  forwarding.response_timeout = duration("response_timeout");
  forwarding.stream_idle_timeout = duration("stream_idle_timeout");
  if (usable("body_max")) forwarding.body_max = parse_size(document.text(section, "body_max")).value();
  forwarding.backend_host = document.text(section, "host") == "backend";
  if (usable("preflight")) forwarding.preflight_passes = document.text(section, "preflight") == "pass";
  return forwarding;
}

void check_unix_clients(const Document& document, NodeId root, std::span<const NamedLimit> limits,
                        const TrustedProxies& trusted, Complaints& complaints) {
  const auto counts_addresses = [](const NamedLimit& limit) {
    return std::ranges::find(limit.key, "ip") != limit.key.end();
  };
  if (trusted.trusts_unix()) return;
  const auto found = std::ranges::find_if(limits, counts_addresses);
  if (found == limits.end()) return;
  for (const NodeId item : document.children(document.find(root, "listen"))) {
    const NodeId speak = document.find(item, "speak");
    if (!document.text(item, "address").starts_with("unix:") || speak == kNoNode) continue;
    const auto words = document.items(item, "speak");
    const bool proxy = std::ranges::any_of(words, [&](NodeId word) { return document.value(word) == "proxy"; });
    if (!proxy) continue;
    complaints.add(document.find(item, "address"), "limit " + quote(found->name) +
                                                       " counts by ip, which a proxy on a UNIX socket learns from " +
                                                       "X-Forwarded-For only: add unix to access.trusted_proxies");
  }
}

}  // namespace weir::config
