#include "weir/config/external.h"

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "weir/base/ascii.h"
#include "weir/base/text.h"
#include "weir/config/check.h"
#include "weir/config/fields.h"
#include "weir/config/values.h"
#include "weir/identify/digest.h"
#include "weir/identify/ip.h"
#include "weir/identify/quote.h"
#include "weir/net/resolve.h"
#include "weir/policy/limits_service.h"

namespace weir::config {
namespace {

// Request headers that Weir sets itself or that belong to the connection.
constexpr std::array<std::string_view, 12> kOwnFields = {
    "connection", "content-length",   "content-type", "expect",  "grpc-timeout",      "host",
    "keep-alive", "proxy-connection", "te",           "trailer", "transfer-encoding", "upgrade"};

bool is_header_name(std::string_view text) {
  return check_key_source("header:" + std::string(text)).has_value();
}

std::string not_a_header(std::string_view field, std::string_view name) {
  return std::string(field) + ": " + quote(name) + " is not a header's name";
}

// "backend.internal", "10.0.0.7", "::1", "[::1]".
bool is_host(std::string_view text) {
  if (IpAddress::parse(text)) return true;
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return is_letter(c) || is_digit(c) || c == '.' || c == '-' || c == '_';
  });
}

// As URLs have it: in lower case, an IPv6 address without brackets.
std::string plain_host(std::string_view text) {
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  return to_lower(text);
}

// "/package.Service/Method".
bool is_method(std::string_view text) {
  const std::size_t slash = text.find('/', 1);
  const auto is_name = [](std::string_view name) {
    return !name.empty() && std::ranges::all_of(name, [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_';
    });
  };
  return text.starts_with('/') && slash != text.npos && is_name(text.substr(1, slash - 1)) &&
         is_name(text.substr(slash + 1));
}

class ExternalCheck {
 public:
  ExternalCheck(const Document& document, NodeId section, Complaints& complaints)
      : document_(document), section_(section), complaints_(complaints) {}

  // Returns true if the section must be complete: it is not empty and the service is not disabled.
  bool is_meant() const {
    const NodeId enabled = document_.find(section_, "enabled");
    const bool off = enabled != kNoNode && document_.value(enabled) == "false";
    return document_.node(section_).child != kNoNode && !off;
  }

  void check_service() {
    const NodeId http = document_.find(section_, "http");
    const NodeId grpc = document_.find(section_, "grpc");
    if (http != kNoNode && grpc != kNoNode) {
      complaints_.add_at_key(grpc, "external must have only one of http and grpc");
    } else if (http == kNoNode && grpc == kNoNode && is_meant() && !document_.node(section_).refused) {
      complaints_.add(section_, "external needs http: {url: ...} or grpc: {address: ...}");
    }
    check_value(http, "url", [](std::string_view text) { return check_url(text); });
    check_value(grpc, "address", [](std::string_view text) -> Result<void> {
      const Result<Target> target = Target::parse(text);
      if (!target) return target.error();
      if (target->path.empty() && target->port == 0)
        return Error{Fault::invalid, "address " + quote(text) + " must not have port 0"};
      return {};
    });
    check_value(grpc, "method", [](std::string_view text) -> Result<void> {
      if (is_method(text)) return {};
      return Error{Fault::invalid, "method " + quote(text) + " must read like /weir.limits.v1.LimitService/GetLimits"};
    });
    check_fields(http, "headers");
    check_fields(grpc, "metadata");
    check_files(http, "http");
    check_files(document_.find(grpc, "tls"), "tls");
    const NodeId filter = document_.find(section_, "header_filter");
    for (const std::string_view list : {"allow_list", "deny_list"}) {
      for (const NodeId item : document_.items(filter, list)) {
        const std::string_view name = document_.value(item);
        if (!is_header_name(name)) complaints_.add(item, not_a_header(list, name));
      }
    }
    for (const NodeId item : document_.items(section_, "allowed_hosts")) {
      const std::string_view host = document_.value(item);
      if (is_host(plain_host(host))) continue;
      complaints_.add(item, "allowed_hosts: " + quote(host) + " must be a host or an address, without scheme and port");
    }
  }

 private:
  template <class Check>
  void check_value(NodeId service, std::string_view name, Check check) {
    if (!document_.is(service, NodeKind::map)) return;
    const NodeId at = document_.find(service, name);
    if (at == kNoNode || document_.node(at).refused) return;
    if (const auto good = check(document_.value(at)); !good) {
      complaints_.add(at, "external: " + good.error().detail);
    }
  }

  // Checks the headers that are sent with every request to the service. Their values are secret, so no message quotes
  // one.
  void check_fields(NodeId service, std::string_view name) {
    for (const NodeId entry : document_.children(document_.usable(service, name))) {
      const std::string key = to_lower(document_.key(entry));
      if (document_.node(entry).refused) continue;
      if (!is_header_name(key)) {
        complaints_.add_at_key(entry, not_a_header(name, document_.key(entry)));
      } else if (std::ranges::find(kOwnFields, key) != kOwnFields.end()) {
        complaints_.add_at_key(entry, std::string(name) + ": " + key + " is written by Weir itself");
      } else if (has_control(document_.value(entry))) {
        complaints_.add(entry, std::string(name) + ": the value of " + key + " must not have control characters");
      }
    }
  }

  void check_files(NodeId section, std::string_view name) {
    if (document_.text(section, "cert_file").empty() == document_.text(section, "key_file").empty()) return;
    complaints_.add(section, std::string(name) + " needs both cert_file and key_file, or neither");
  }

  const Document& document_;
  NodeId section_;
  Complaints& complaints_;
};

// The top-level section decides one limit, which must not have its own section.
void check_limit(const Document& document, NodeId root, NodeId section, bool needed, const Limits& limits,
                 Complaints& complaints) {
  const NodeId at = document.find(section, "limit");
  if (at == kNoNode && !needed) return;
  if (at == kNoNode) {
    return complaints.add(section, "external needs limit: the name of the limit whose numbers it decides");
  }
  if (document.node(at).refused || !limits.complete) return;
  const std::string_view name = document.value(at);
  if (!limits.by_name.contains(name)) {
    std::vector<std::string_view> names;
    for (const NamedLimit& limit : limits.made) names.push_back(limit.name);
    return complaints.add(at, "external: unknown limit " + quote(name) + did_you_mean(names, name));
  }
  const NodeId own = document.find(document.find(document.find(root, "limits"), name), "external");
  if (own == kNoNode) return;
  complaints.add(at, "external of limit " + quote(name) + " is also set in the limit itself, at " +
                         document.where(document.key_mark(own)));
}

// A section's values, with the defaults of the table.
class ExternalReader {
 public:
  ExternalReader(const Document& document, NodeId section) : document_(document), section_(section) {}

  bool is_enabled() const { return text("enabled") == "true"; }

  std::shared_ptr<const LimitsService> read() const {
    auto service = std::make_shared<LimitsService>();
    service->timeout = *parse_duration(text("timeout"));
    service->cache_ttl = *parse_duration(text("cache_ttl"));
    service->concurrent_max = static_cast<std::size_t>(*parse_integer(text("max_concurrent_requests")));
    service->waiting_max = static_cast<std::size_t>(*parse_integer(text("max_waiting")));
    service->backend_required = text("backend_required") == "true";
    for (const std::string& host : texts(section_, "allowed_hosts")) service->allowed_hosts.push_back(plain_host(host));
    const NodeId filter = document_.find(section_, "header_filter");
    service->allow_list = texts(filter, "allow_list");
    service->deny_list = texts(filter, "deny_list");
    if (document_.find(section_, "grpc") != kNoNode) {
      read_grpc(*service);
    } else {
      read_http(*service);
    }
    const std::string_view kind = service->protocol == LimitsService::Protocol::grpc ? "grpc" : "http";
    service->digest =
        sha256_hex(std::string(kind) + "\n" + service->address + "\n" + service->method).substr(0, kDigestBytes);
    return service;
  }

 private:
  static constexpr std::size_t kDigestBytes = 16;

  void read_http(LimitsService& service) const {
    const NodeId http = document_.find(section_, "http");
    service.protocol = LimitsService::Protocol::http;
    service.address = document_.text(http, "url");
    service.tls = service.address.starts_with("https://");
    service.fields = pairs(document_.find(http, "headers"));
    read_files(http, service);
  }

  void read_grpc(LimitsService& service) const {
    const NodeId grpc = document_.find(section_, "grpc");
    const std::span<const Field> fields = find_field(fields_of(), "grpc")->fields;
    service.protocol = LimitsService::Protocol::grpc;
    service.address = document_.text(grpc, "address");
    service.method = text_of(grpc, fields, "method");
    service.codec =
        text_of(grpc, fields, "codec") == "json" ? LimitsService::Codec::json : LimitsService::Codec::protobuf;
    service.fields = pairs(document_.find(grpc, "metadata"));
    const NodeId tls = document_.find(grpc, "tls");
    service.tls = document_.text(tls, "enabled") == "true";
    service.server_name = document_.text(tls, "server_name");
    read_files(tls, service);
  }

  void read_files(NodeId section, LimitsService& service) const {
    service.ca_file = document_.text(section, "ca_file");
    service.cert_file = document_.text(section, "cert_file");
    service.key_file = document_.text(section, "key_file");
  }

  static std::span<const Field> fields_of() { return find_field(limit_fields(), "external")->fields; }

  std::string_view text_of(NodeId section, std::span<const Field> fields, std::string_view name) const {
    const NodeId at = document_.usable(section, name);
    return at == kNoNode || document_.node(at).kind == NodeKind::null ? find_field(fields, name)->fallback
                                                                      : document_.value(at);
  }
  std::string_view text(std::string_view name) const { return text_of(section_, fields_of(), name); }

  std::vector<std::string> texts(NodeId section, std::string_view name) const {
    std::vector<std::string> all;
    if (section == kNoNode) return all;
    for (const NodeId item : document_.items(section, name)) all.emplace_back(document_.value(item));
    return all;
  }

  std::vector<std::pair<std::string, std::string>> pairs(NodeId map) const {
    std::vector<std::pair<std::string, std::string>> all;
    if (!document_.is(map, NodeKind::map)) return all;
    for (const NodeId entry : document_.children(map)) {
      all.emplace_back(to_lower(document_.key(entry)), document_.value(entry));
    }
    return all;
  }

  const Document& document_;
  NodeId section_;
};

}  // namespace

Result<void> check_url(std::string_view url) {
  const auto refuse = [&](std::string_view rule) {
    return Error{Fault::invalid, "url " + quote(url) + " " + std::string(rule)};
  };
  const std::size_t scheme = url.starts_with("http://") ? 7 : url.starts_with("https://") ? 8 : 0;
  if (scheme == 0) return refuse("must begin with http:// or https://");
  if (std::ranges::any_of(url, [](char c) { return c <= ' ' || c >= 0x7f; })) {
    return refuse("must not have spaces, control characters or letters beyond ASCII");
  }
  const std::string_view rest = url.substr(scheme);
  const std::string_view authority = rest.substr(0, std::min(rest.find_first_of("/?#"), rest.size()));
  if (rest.find('#') != rest.npos) return refuse("must not have a fragment");
  if (authority.find('@') != authority.npos) return refuse("must not hold a user or a password; use headers");
  const std::size_t bracket = authority.find(']');  // an IPv6 address has colons of its own
  const bool port = authority.find(':', bracket == authority.npos ? 0 : bracket) != authority.npos;
  const Result<Target> target = Target::parse(port ? std::string(authority) : std::string(authority) + ":80");
  if (!target || authority.starts_with("unix"))
    return refuse("must name a host, and a port if it is not the usual one");
  if (target->port == 0) return refuse("must not have port 0");
  return {};
}

void check_external(const Document& document, NodeId root, const Limits& limits, Complaints& complaints) {
  const auto is_section = [&](NodeId id) { return document.is(id, NodeKind::map); };
  const NodeId top = document.find(root, "external");
  if (is_section(top)) {
    ExternalCheck check(document, top, complaints);
    check.check_service();
    check_limit(document, root, top, check.is_meant(), limits, complaints);
  }
  for (const NodeId limit : entries_of(document, root, "limits")) {
    const NodeId own = is_section(limit) ? document.find(limit, "external") : kNoNode;
    if (!is_section(own)) continue;
    ExternalCheck check(document, own, complaints);
    check.check_service();
    const NodeId named = document.find(own, "limit");
    if (named == kNoNode || document.node(named).refused || document.value(named) == document.key(limit)) continue;
    complaints.add(named, "limit of external is for the top level: inside limit " + quote(document.key(limit)) +
                              " it can only be that one");
  }
}

void read_external(const Document& document, NodeId root, Limits& limits) {
  const auto read = [&](NodeId section, std::string_view limit) {
    const auto found = limits.by_name.find(limit);
    if (!document.is(section, NodeKind::map) || found == limits.by_name.end()) return;
    const ExternalReader reader(document, section);
    if (reader.is_enabled()) limits.made[found->second].service = reader.read();
  };
  const NodeId top = document.find(root, "external");
  if (top != kNoNode) read(top, document.text(top, "limit"));
  for (const NodeId limit : entries_of(document, root, "limits")) {
    if (document.is(limit, NodeKind::map)) read(document.find(limit, "external"), document.key(limit));
  }
}

}  // namespace weir::config
