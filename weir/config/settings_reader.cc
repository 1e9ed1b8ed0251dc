#include "weir/config/settings_reader.h"

#include <algorithm>
#include <string>
#include <utility>

#include "weir/base/ascii.h"
#include "weir/base/assert.h"
#include "weir/base/bounds.h"
#include "weir/base/text.h"
#include "weir/config/check.h"
#include "weir/config/fields.h"
#include "weir/config/values.h"

namespace weir::config {
namespace {

// One section's values, defaults filled in from the table.
class Section {
 public:
  Section(const Document& document, NodeId section, std::span<const Field> fields)
      : document_(document), section_(section), fields_(fields) {}

  Section section(std::string_view name) const {
    return {document_, document_.find(section_, name), field(name).fields};
  }

  std::string text(std::string_view name) const {
    const NodeId id = usable(name);
    return std::string(id == kNoNode ? field(name).fallback : document_.value(id));
  }
  bool flag(std::string_view name) const { return text(name) == "true"; }
  std::string choice(std::string_view name) const { return std::string(find_choice(field(name), text(name))); }
  std::int64_t integer(std::string_view name) const { return parse_integer(text(name)).value(); }
  std::int64_t size(std::string_view name) const { return parse_size(text(name)).value(); }
  Duration duration(std::string_view name) const { return parse_duration(text(name)).value(); }

  // A list, or one value as a list of one. The default is separated by commas.
  std::vector<std::string> texts(std::string_view name) const {
    std::vector<std::string> out;
    const NodeId id = usable(name);
    if (id != kNoNode && document_.node(id).kind == NodeKind::sequence) {
      for (const NodeId item : document_.children(id)) out.emplace_back(document_.value(item));
      return out;
    }
    if (field(name).type == Type::secret) return {text(name)};  // may hold a comma
    const std::string all = text(name);
    for (std::size_t at = 0; at < all.size();) {
      const std::size_t comma = std::min(all.find(',', at), all.size());
      out.push_back(all.substr(at, comma - at));
      at = comma + 1;
    }
    return out;
  }

  // The maps of a list of sections, or the one map that stands for it.
  std::vector<Section> sections(std::string_view name) const {
    std::vector<Section> out;
    const NodeId id = document_.find(section_, name);
    if (id != kNoNode && document_.node(id).kind == NodeKind::map) out.emplace_back(document_, id, field(name).fields);
    if (id == kNoNode || document_.node(id).kind != NodeKind::sequence) return out;
    for (const NodeId item : document_.children(id)) {
      if (!document_.node(item).refused) out.emplace_back(document_, item, field(name).fields);
    }
    return out;
  }

 private:
  const Field& field(std::string_view name) const {
    const Field* found = find_field(fields_, name);
    WEIR_ASSERT(found != nullptr);
    return *found;
  }

  NodeId usable(std::string_view name) const {
    const NodeId id = document_.find(section_, name);
    const bool none = id == kNoNode || document_.node(id).refused || document_.node(id).kind == NodeKind::null;
    return none ? kNoNode : id;
  }

  const Document& document_;
  NodeId section_;
  std::span<const Field> fields_;
};

// Redis clients keep connections in pools and expect Redis's own default: an idle one stays open.
Duration default_idle_timeout(const std::vector<std::string>& speak) {
  const bool resp = std::ranges::find(speak, "resp") != speak.end();
  return resp ? Duration::zero() : bounds::http_idle_time_max;
}

std::vector<Listener> read_listeners(const Section& file) {
  std::vector<Listener> out;
  for (const Section& section : file.sections("listen")) {
    Listener listener;
    listener.address = section.text("address");
    listener.speak = section.texts("speak");
    listener.tokens = section.texts("token");
    std::erase(listener.tokens, "");
    listener.write_token = section.text("write_token");
    listener.password = section.text("password");
    listener.write_password = section.text("write_password");
    for (const Section& tls : section.sections("tls")) {
      listener.tls.push_back({tls.text("cert"), tls.text("key"), tls.text("client_ca"),
                              tls.text("client_auth") != "optional", tls.text("min_version") == "1.3"});
    }
    listener.proxy_protocol = section.flag("proxy_protocol");
    const std::string idle = section.text("idle_timeout");
    listener.idle_timeout = idle.empty() ? default_idle_timeout(listener.speak) : parse_duration(idle).value();
    out.push_back(std::move(listener));
  }
  return out;
}

Redis read_redis(const Section& section) {
  const Section tls = section.section("tls");
  return {.endpoints = section.texts("endpoints"),
          .mode = section.text("mode"),
          .username = section.text("username"),
          .password = section.text("password"),
          .db = section.integer("db"),
          .master_name = section.text("master_name"),
          .tls = {tls.flag("enabled"), tls.text("ca_file"), tls.text("cert_file"), tls.text("key_file"),
                  tls.text("server_name")},
          .pool_size = section.integer("pool_size"),
          .timeout = section.duration("timeout"),
          .key_prefix = section.text("key_prefix"),
          .hash_tag = section.text("hash_tag"),
          .fallback_buckets = section.size("fallback_buckets"),
          .wait_replicas = section.integer("wait_replicas"),
          .share = parse_share(section.text("share")).value()};
}

Proxy read_proxy(const Section& section) {
  return {.header_max = section.size("header_max"),
          .request_line_max = section.size("request_line_max"),
          .body_max = section.size("body_max"),
          .header_timeout = section.duration("header_timeout"),
          .connect_timeout = section.duration("connect_timeout"),
          .response_timeout = section.duration("response_timeout"),
          .idle_timeout = section.duration("idle_timeout"),
          .max_concurrent_requests = section.integer("max_concurrent_requests")};
}

FailurePolicy read_failure_policy(const Section& file) {
  const std::string word = file.choice("failure_policy");
  if (word == "failClosed") return FailurePolicy::fail_closed;
  return word == "inMemoryFallback" ? FailurePolicy::in_memory_fallback : FailurePolicy::pass_through;
}

}  // namespace

std::vector<Listener> default_listeners() {
  const auto listener = [](std::string address, std::vector<std::string> speak) {
    Listener made;
    made.address = std::move(address);
    made.idle_timeout = default_idle_timeout(speak);
    made.speak = std::move(speak);
    return made;
  };
  return {listener("127.0.0.1:8080", {"http", "grpc"}), listener("127.0.0.1:6380", {"resp"}),
          listener("127.0.0.1:9090", {"admin"})};
}

bool has_listeners(const Document& document, NodeId root) {
  const NodeId listen = document.find(root, "listen");
  return listen != kNoNode && document.node(listen).kind != NodeKind::null;
}

Settings read_settings(const Document& document, NodeId root) {
  const Section file(document, root, file_fields());
  const Section memory = file.section("memory");
  const Section state = file.section("state");
  const Section access = file.section("access");
  const Section headers = file.section("headers");
  const Section admin = file.section("admin");
  const Section log = file.section("log");
  Settings settings;
  settings.listen = has_listeners(document, root) ? read_listeners(file) : default_listeners();
  settings.threads = file.text("threads") == "auto" ? 0 : file.integer("threads");
  settings.store = file.text("store") == "redis" ? StoreKind::redis : StoreKind::memory;
  settings.memory = {memory.size("max_buckets"), memory.flag("names"), memory.duration("cleanup")};
  settings.state = {state.text("live"), state.text("snapshot"), state.duration("every")};
  settings.hash_key = file.text("hash_key");
  settings.redis = read_redis(file.section("redis"));
  const NodeId cache = document.find(root, "cache_redis");
  settings.has_cache_redis = cache != kNoNode && document.node(cache).child != kNoNode;
  settings.cache_redis = read_redis(file.section("cache_redis"));
  settings.failure_policy = read_failure_policy(file);
  settings.failure_code = static_cast<int>(file.integer("failure_code"));
  settings.ipv6_prefix = static_cast<int>(access.integer("ipv6_prefix"));
  settings.trusted_proxies = access.texts("trusted_proxies");
  const Section block = access.section("block");
  settings.block = {block.integer("after"), block.duration("within"), block.duration("for"), block.integer("times")};
  settings.proxy = read_proxy(file.section("proxy"));
  settings.drain_timeout = file.duration("drain_timeout");
  settings.drain_delay = file.duration("drain_delay");
  const Section jwt = file.section("jwt");
  settings.jwt = {jwt.text("keys"),     jwt.text("secret"),     jwt.text("issuer"),
                  jwt.text("audience"), jwt.duration("leeway"), jwt.texts("algorithms"),
                  jwt.text("header"),   jwt.text("cookie"),     jwt.flag("require_exp")};
  settings.jwt.header = to_lower(settings.jwt.header);
  settings.headers = {headers.texts("ratelimit"), headers.text("reset")};
  settings.admin = {admin.text("read_token"), admin.text("write_token")};
  settings.log = {log.text("level"), log.text("format")};
  return settings;
}

}  // namespace weir::config
