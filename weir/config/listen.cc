#include "weir/config/listen.h"

#include <map>
#include <set>

#include "weir/base/bounds.h"
#include "weir/base/text.h"
#include "weir/identify/ip.h"
#include "weir/net/socket.h"

namespace weir::config {
namespace {

// Returns true if other machines can connect to it.
bool is_reachable(std::string_view text) {
  const Result<Address> address = Address::parse(text);
  return address && !address->is_loopback();
}

// Checks the entries of `listen` one by one. Skips values that the table has refused.
class ListenerCheck {
 public:
  ListenerCheck(const Document& document, NodeId root, const Admin& tokens, Complaints& complaints)
      : document_(document), complaints_(complaints) {
    // A refused value counts as present: its own problem was reported.
    const NodeId admin = document.find(root, "admin");
    const auto is_refused = [&](NodeId id) { return id != kNoNode && document.node(id).refused; };
    tokens_ = !tokens.read_token.empty() || !tokens.write_token.empty() ||
              is_refused(document.find(admin, "read_token")) || is_refused(document.find(admin, "write_token"));
    const auto has_backend = [&](NodeId section) {
      const NodeId backend = document.find(section, "backend");
      return backend != kNoNode && (!document.is(backend, NodeKind::sequence) || document.count(backend) > 0);
    };
    backend_ = has_backend(root);
    for (const NodeId route : document.children(document.find(root, "routes"))) backend_ |= has_backend(route);
    const NodeId trusted = document.find(document.find(root, "access"), "trusted_proxies");
    trusts_ = trusted != kNoNode && (is_refused(trusted) || document.count(trusted) > 0);
  }

  void check_entry(NodeId item) {
    const NodeId address = find(item, "address");
    const NodeId speak = document_.find(item, "speak");
    if (address != kNoNode) check_address(address);
    if (speak != kNoNode) check_protocols(item, speak, address);
    const NodeId tls = find(item, "tls");
    if (tls == kNoNode) return;
    if (document_.node(tls).kind == NodeKind::sequence) check_certificates(tls);
    if (document_.node(tls).kind == NodeKind::map) check_client_auth(tls);
  }

 private:
  NodeId find(NodeId item, std::string_view key) const {
    const NodeId id = document_.usable(item, key);
    return document_.is(id, NodeKind::null) ? kNoNode : id;
  }

  void check_address(NodeId address) {
    const Result<std::string> place = canonical_address(document_.value(address));
    if (!place) return complaints_.add(address, place.error().detail);
    if (place->ends_with(":0")) return;
    const auto [first, is_new] = seen_.emplace(*place, address);
    if (is_new) return;
    complaints_.add(address, "address " + quote(document_.value(address)) + " is already used at " +
                                 document_.where(document_.mark(first->second)));
  }

  void check_protocols(NodeId item, NodeId speak, NodeId address) {
    const Node& node = document_.node(speak);
    std::set<std::string_view> words;
    if (node.kind == NodeKind::scalar && !node.refused) words.insert(document_.value(speak));
    for (const NodeId word : document_.children(node.kind == NodeKind::sequence ? speak : kNoNode)) {
      if (document_.node(word).refused) continue;
      if (words.insert(document_.value(word)).second) continue;
      complaints_.add(word, "speak: " + quote(document_.value(word)) + " is given twice");
    }
    if (words.empty() && !node.refused) complaints_.add(speak, "speak must name at least one protocol");
    const bool alone = words.contains("resp") || words.contains("admin") || words.contains("proxy");
    if (alone && words.size() > 1) {
      complaints_.add(speak, "speak: resp, admin and proxy need an address of their own");
    }
    if (words.contains("proxy") && !backend_) {
      complaints_.add(speak, "speak proxy needs a backend: of a route, or at the top level");
    }
    if (!node.refused) check_proxy_header(item, words);
    if (!node.refused) check_secrets(item, words);
    const NodeId age = find(item, "max_connection_age");
    if (age != kNoNode && words.contains("resp")) {
      complaints_.add(age, "max_connection_age has no effect here: only HTTP/2 connections have one");
    }
    if (words.contains("admin") && !tokens_ && address != kNoNode && is_reachable(document_.value(address))) {
      complaints_.add(address, "address " + quote(document_.value(address)) +
                                   " is not loopback: an admin listener there needs admin.read_token "
                                   "or admin.write_token");
    }
  }

  void check_proxy_header(NodeId item, const std::set<std::string_view>& words) {
    const NodeId header = find(item, "proxy_protocol");
    if (header == kNoNode || document_.value(header) != "true") return;
    if (!words.contains("proxy")) {
      complaints_.add(header, "proxy_protocol works on a listener that speaks proxy");
    } else if (!trusts_) {
      complaints_.add(header, "proxy_protocol needs access.trusted_proxies: other peers are closed");
    }
  }

  void check_secrets(NodeId item, const std::set<std::string_view>& words) {
    const bool decides = words.contains("http") || words.contains("grpc");
    const auto useless = [&](std::string_view field, bool is_used, std::string_view who) {
      const NodeId secret = find(item, field);
      const bool given =
          secret != kNoNode && (document_.node(secret).kind == NodeKind::sequence || !document_.value(secret).empty());
      if (!given || is_used) return;
      complaints_.add(secret, std::string(field).append(" has no effect here: only ").append(who).append(" for one"));
    };
    useless("password", words.contains("resp"), "resp asks");
    useless("write_password", words.contains("resp"), "resp asks");
    useless("token", decides, "http and grpc ask");
    useless("write_token", decides, "http and grpc ask");
    check_tokens(item);
  }

  void check_tokens(NodeId item) {
    const NodeId token = find(item, "token");
    const NodeId write = find(item, "write_token");
    if (token == kNoNode) return;
    const auto differs = [&](NodeId one) {
      if (write == kNoNode || document_.value(write).empty() || document_.value(one) != document_.value(write)) return;
      complaints_.add(write, "write_token must not be the token: everybody could write");
    };
    if (document_.node(token).kind == NodeKind::scalar) return differs(token);
    const std::size_t size = document_.count(token);
    for (const NodeId one : document_.children(token)) {
      if (document_.node(one).refused) continue;
      if (document_.value(one).empty()) complaints_.add(one, "token: one of a list must not be empty");
      differs(one);
    }
    if (size == 0 || size > bounds::listener_tokens_max) {
      complaints_.add(token, "token must be one or two, not " + std::to_string(size));
    }
  }

  // Checks the first certificate's section, or the only one.
  void check_client_auth(NodeId tls) {
    const NodeId mode = find(tls, "client_auth");
    const NodeId authority = find(tls, "client_ca");
    if (mode == kNoNode || (authority != kNoNode && !document_.value(authority).empty())) return;
    complaints_.add(mode, "client_auth needs client_ca, which says whose certificates are good");
  }

  void check_certificates(NodeId tls) {
    for (const NodeId item : document_.children(tls)) {
      if (item == document_.node(tls).child) {
        check_client_auth(item);
        continue;
      }
      for (const std::string_view field : {"client_ca", "client_auth", "min_version"}) {
        const NodeId found = find(item, field);
        if (found == kNoNode) continue;
        complaints_.add(found, std::string(field) +
                                   " belongs in the first entry of tls: it holds for "
                                   "the whole listener");
      }
    }
    const std::size_t size = document_.count(tls);
    if (size == 0) complaints_.add(tls, "tls must have at least one certificate");
    if (size > bounds::listener_certificates_max) {
      complaints_.add(tls, "tls has " + std::to_string(size) + " certificates, at most " +
                               std::to_string(bounds::listener_certificates_max) + " are possible");
    }
  }

  const Document& document_;
  Complaints& complaints_;
  bool tokens_ = false;   // the admin API requires a token
  bool backend_ = false;  // the proxy or some route has a backend
  bool trusts_ = false;   // access.trusted_proxies has an entry
  std::map<std::string, NodeId> seen_;
};

}  // namespace

Result<std::string> canonical_address(std::string_view text) {
  Result<Address> address = Address::parse(text);
  if (!address) return address.error();
  if (const Result<IpAddress> ip = IpAddress::parse(address->host)) address->host = ip->print();
  return address->print();
}

void check_listeners(const Document& document, NodeId root, const Admin& tokens, Complaints& complaints) {
  const NodeId listen = document.find(root, "listen");
  if (!document.is(listen, NodeKind::sequence)) return;
  if (document.node(listen).child == kNoNode) {
    complaints.add(listen, "listen must have at least one entry; leave it out for the default ones");
  }
  ListenerCheck check(document, root, tokens, complaints);
  for (const NodeId item : document.children(listen)) {
    if (document.node(item).kind == NodeKind::map) check.check_entry(item);
  }
}

}  // namespace weir::config
