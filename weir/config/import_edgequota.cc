#include "weir/config/import_edgequota.h"

#include <array>
#include <set>
#include <utility>

#include "weir/base/ascii.h"
#include "weir/base/text.h"
#include "weir/config/document.h"
#include "weir/config/yaml.h"

namespace weir::config {
namespace {

// Quotes a scalar so that YAML reads back the same text.
std::string quoted_scalar(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

// Maps a value's path in EdgeQuota's configuration to the one in Weir's.
struct Move {
  std::string_view from;
  std::string_view to;
  std::string_view before = {};  // what else Weir needs in that place
};

constexpr auto kRedisMoves = std::to_array<Move>({
    {"endpoints", "endpoints"},
    {"mode", "mode"},
    {"master_name", "master_name"},
    {"username", "username"},
    {"password", "password"},
    {"db", "db"},
    {"pool_size", "pool_size"},
    {"tls.enabled", "tls.enabled"},
});

constexpr auto kExternalMoves = std::to_array<Move>({
    {"enabled", "enabled"},
    {"timeout", "timeout"},
    {"cache_ttl", "cache_ttl"},
    {"max_concurrent_requests", "max_concurrent_requests"},
    {"http.url", "http.url"},
    {"grpc.address", "grpc.address", "method: /edgequota.ratelimit.v1.RateLimitService/GetLimits, codec: json"},
    {"grpc.tls.enabled", "grpc.tls.enabled"},
    {"grpc.tls.ca_file", "grpc.tls.ca_file"},
    {"grpc.tls.server_name", "grpc.tls.server_name"},
    {"header_filter.allow_list", "header_filter.allow_list"},
    {"header_filter.deny_list", "header_filter.deny_list"},
});

class Importer {
 public:
  explicit Importer(const std::string& name) : file_(document_.add_file(name)), complaints_(document_), name_(name) {}

  std::variant<Imported, Problems> run(std::string_view text) {
    root_ = read_yaml(text, file_, document_, complaints_);
    if (root_ != kNoNode && !document_.is(root_, NodeKind::map)) complaints_.add(root_, "not a map of settings");
    if (!complaints_.empty()) return complaints_.sorted();
    result_.yaml = "# Imported from " + name_ + " by `weir config import edgequota`.\n";
    write_listeners();
    write_backend();
    write_limit();
    write_redis();
    write_moves("cache_redis", "cache_redis", kRedisMoves);
    write_external();
    write_rest();
    if (!complaints_.empty()) return complaints_.sorted();
    note_unread(root_, "");
    return std::move(result_);
  }

 private:
  void line(std::string_view text) { result_.yaml.append(text).append("\n"); }

  // Returns the node at a dotted path, or kNoNode, and marks it as read.
  NodeId find(std::string_view path) {
    NodeId id = root_;
    for (std::string_view rest = path; id != kNoNode && !rest.empty();) {
      const std::size_t dot = rest.find('.');
      id = document_.find(id, rest.substr(0, dot));
      rest = dot == rest.npos ? std::string_view() : rest.substr(dot + 1);
    }
    if (id != kNoNode) read_.insert(id);
    return id;
  }
  std::string text(std::string_view path, std::string_view otherwise = {}) {
    const NodeId id = find(path);
    return std::string(id == kNoNode ? otherwise : document_.value(id));
  }
  // Returns the first value that is not empty.
  std::string first(std::initializer_list<std::string_view> paths, std::string_view otherwise = {}) {
    for (const std::string_view path : paths) {
      if (std::string value = text(path); !value.empty()) return value;
    }
    return std::string(otherwise);
  }

  // Prints a scalar with its type: text stays text, and true stays a flag.
  std::string scalar(NodeId id) const {
    const std::string_view value = document_.value(id);
    const bool plain = value.find_first_not_of("0123456789abcdefghijklmnopqrstuvwxyz") == value.npos;
    return plain && !value.empty() && !document_.node(id).quoted ? std::string(value) : quoted_scalar(value);
  }
  // Prints a scalar or a list of scalars in flow style.
  std::string flow(NodeId id) {
    if (!document_.is(id, NodeKind::sequence)) return scalar(id);
    std::string all = "[";
    for (const NodeId item : document_.children(id)) {
      if (all.size() > 1) all += ", ";
      all += scalar(item);
      read_.insert(item);
    }
    return all + "]";
  }

  // Writes the values below `from` as one flow map below `to`.
  template <std::size_t count>
  void write_moves(std::string_view from, std::string_view to, const std::array<Move, count>& moves,
                   std::string_view more = {}) {
    if (find(from) == kNoNode) return;
    std::string all(more);
    std::string open;  // the nested map that is being written
    for (const Move& move : moves) {
      const NodeId id = find(std::string(from) + "." + std::string(move.from));
      if (id == kNoNode) continue;
      const std::size_t dot = move.to.rfind('.');
      const std::string parent(dot == move.to.npos ? std::string_view() : move.to.substr(0, dot));
      nest(open, parent, all);
      if (!move.before.empty()) all += separator(all) + std::string(move.before);
      all += separator(all) + std::string(move.to.substr(dot == move.to.npos ? 0 : dot + 1)) + ": " + flow(id);
    }
    nest(open, {}, all);
    line(std::string(to) + ": {" + all + "}");
  }
  static std::string separator(const std::string& all) { return all.empty() || all.ends_with('{') ? "" : ", "; }
  // Closes and opens flow maps so that `all` continues inside `wanted`.
  static void nest(std::string& open, const std::string& wanted, std::string& all) {
    while (!open.empty() && open != wanted && !wanted.starts_with(open + ".")) {
      all += "}";
      const std::size_t dot = open.rfind('.');
      open = dot == open.npos ? std::string() : open.substr(0, dot);
    }
    while (open != wanted) {
      const std::size_t begin = open.empty() ? 0 : open.size() + 1;
      const std::string word = wanted.substr(begin, wanted.find('.', begin) - begin);
      all += separator(all) + word + ": {";
      open += (open.empty() ? "" : ".") + word;
    }
  }

  static std::string full_address(const std::string& address) {
    return address.starts_with(':') ? "0.0.0.0" + address : address;
  }

  void write_listeners() {
    std::string proxy =
        "  - {address: " + quoted_scalar(full_address(text("server.address", ":8080"))) + ", speak: proxy";
    if (text("server.tls.enabled") == "true") {
      proxy += ", tls: {cert: " + quoted_scalar(text("server.tls.cert_file")) +
               ", key: " + quoted_scalar(text("server.tls.key_file")) + "}";
    }
    const std::string admin = text("admin.address", ":9090");
    line("listen:");
    line(proxy + "}");
    line("  - {address: " + quoted_scalar("127.0.0.1:" + admin.substr(admin.rfind(':') + 1)) + ", speak: admin}");
    if (!admin.starts_with("127.") && !admin.starts_with("localhost")) {
      result_.notes.push_back(name_ + ": admin.address " + quote(admin) +
                              " became loopback: other addresses need admin.read_token and admin.write_token");
    }
  }

  void write_backend() {
    const std::string url =
        first({"rate_limit.static.backend_url", "backend.url", "rate_limit.external.fallback.backend_url"});
    if (url.empty()) {
      result_.notes.push_back(name_ + ": there is no backend.url: add backend to the result");
    } else {
      line("backend: " + quoted_scalar(url));
    }
    std::string proxy;
    const auto add = [&](std::string_view name, const std::string& value) {
      if (!value.empty()) proxy += separator(proxy) + std::string(name) + ": " + value;
    };
    add("response_timeout", text("backend.timeout"));
    add("body_max", text("backend.max_request_body_size"));
    add("connect_timeout", text("backend.transport.dial_timeout"));
    const std::string at_once = text("server.max_concurrent_requests");
    if (at_once != "0") add("max_concurrent_requests", at_once);
    add("idle_timeout", text("server.idle_timeout"));
    if (!proxy.empty()) line("proxy: {" + proxy + "}");
    if (const std::string drain = text("server.drain_timeout"); !drain.empty()) line("drain_timeout: " + drain);
  }

  // Returns a number of the limit from whichever of three paths has it.
  std::string number(std::string_view name, std::string_view otherwise) {
    const std::string suffix(name);
    return first({"rate_limit.static." + suffix, "rate_limit." + suffix, "rate_limit.external.fallback." + suffix},
                 otherwise);
  }

  std::string key() {
    for (const std::string_view where :
         {"rate_limit.static.key_strategy", "rate_limit.key_strategy", "rate_limit.external.fallback.key_strategy"}) {
      const NodeId id = find(where);
      if (id == kNoNode) continue;
      const std::string base(where);
      const std::string type = to_lower(text(base + ".type", "clientip"));
      const std::string header = "header:" + to_lower(text(base + ".header_name"));
      const bool path = text(base + ".path_prefix") == "true";
      if (const NodeId trusted = find(base + ".trusted_proxies"); trusted != kNoNode) {
        trusted_ = flow(trusted);
      }
      if (type == "clientip") return "ip";
      if (type == "global") return "global";
      if (header == "header:" && (type == "header" || type == "composite")) {
        complaints_.add(id, "header_name is required for type " + quote(type));
        return "ip";
      }
      if (type == "header") return quoted_scalar(header);
      if (type == "composite") return path ? "[" + quoted_scalar(header) + ", \"path:1\"]" : quoted_scalar(header);
      complaints_.add(id, "key_strategy.type " + quote(type) + " must be clientIP, header, composite or global");
    }
    return "ip";
  }

  void write_limit() {
    const std::string key_text = key();
    line("limits:");
    line("  edge:");
    line("    key: " + key_text);
    // EdgeQuota answers 500 if the header is missing. The closest that Weir has is to reject the request.
    if (key_text != "ip" && key_text != "global") line("    missing: reject");
    line("    average: " + number("average", "0"));
    const std::string burst = number("burst", "1");
    line("    burst: " + (burst == "0" ? std::string("1") : burst));
    line("    period: " + number("period", "1s"));
    if (!trusted_.empty()) line("access: {trusted_proxies: " + trusted_ + "}");
    if (const std::string policy = text("rate_limit.failure_policy"); !policy.empty())
      line("failure_policy: " + policy);
    const std::string code = text("rate_limit.failure_code");
    if (!code.empty() && code != "0") line("failure_code: " + code);
  }

  void write_external() {
    if (text("rate_limit.external.enabled") != "true") return;
    write_moves("rate_limit.external", "external", kExternalMoves, "limit: edge");
    if (find("rate_limit.external.grpc.address") != kNoNode) {
      result_.notes.push_back(name_ +
                              ": external.grpc: codec is json, as EdgeQuota documents; remove it if the service speaks "
                              "protobuf");
    }
  }

  void write_redis() {
    if (find("redis") == kNoNode) return;
    const std::string prefix = text("rate_limit.key_prefix");
    write_moves("redis", "redis", kRedisMoves, prefix.empty() ? "" : "key_prefix: " + quoted_scalar(prefix + ":"));
    line("store: redis");
  }

  void write_rest() {
    const std::string level = text("logging.level");
    const std::string format = text("logging.format");
    std::string log;
    if (!level.empty()) log += "level: " + level;
    if (!format.empty()) log += separator(log) + "format: " + format;
    if (text("logging.access_log_enabled") == "true") log += separator(log) + "access: json";
    if (!log.empty()) line("log: {" + log + "}");
    text("metrics.enabled");  // marks it as read: Weir's metrics are always on
  }

  // Notes every value that was not read.
  void note_unread(NodeId parent, const std::string& path) {
    for (const NodeId id : document_.children(parent)) {
      const std::string name = path + std::string(document_.key(id));
      if (document_.is(id, NodeKind::map)) {
        note_unread(id, name + ".");
      } else if (!read_.contains(id)) {
        result_.notes.push_back(document_.where(document_.key_mark(id)) + ": " + name +
                                " has no counterpart and is left out");
      }
    }
  }

  Document document_;
  FileId file_;
  Complaints complaints_;
  std::string name_;
  NodeId root_ = kNoNode;
  std::set<NodeId> read_;
  std::string trusted_;
  Imported result_;
};

}  // namespace

std::variant<Imported, Problems> import_edgequota(std::string_view text, const std::string& name) {
  return Importer(name).run(text);
}

}  // namespace weir::config
