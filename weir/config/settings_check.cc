#include <string>
#include <string_view>

#include "weir/base/bounds.h"
#include "weir/base/text.h"
#include "weir/config/settings_reader.h"
#include "weir/net/resolve.h"

namespace weir::config {
namespace {

// Checks the endpoints of `redis` or `cache_redis`.
void check_endpoints(const Document& document, NodeId redis, Complaints& complaints) {
  const NodeId endpoints = document.find(redis, "endpoints");
  if (!document.is(endpoints, NodeKind::sequence)) return;
  const std::size_t size = document.count(endpoints);
  for (const NodeId item : document.children(endpoints)) {
    if (document.node(item).refused) continue;
    const Result<Target> target = Target::parse(document.value(item));
    if (!target) {
      complaints.add(item, "endpoints: " + target.error().detail);
    } else if (target->path.empty() && target->port == 0) {
      complaints.add(item, "endpoints: address " + quote(document.value(item)) + " needs a port from 1 to 65535");
    }
  }
  if (size == 0) complaints.add(endpoints, "endpoints: at least one is needed");
  if (size > bounds::redis_probes_max) {
    complaints.add(endpoints, "endpoints: at most " + std::to_string(bounds::redis_probes_max) +
                                  " are allowed; other nodes of a cluster are discovered");
  }
}

// Checks a section whose Redis is used.
void check_store(const Document& document, NodeId redis, const Redis& settings, Complaints& complaints) {
  if (settings.mode == "single" && settings.endpoints.size() > 1) {
    complaints.add(document.find(redis, "endpoints"),
                   "endpoints: " + std::to_string(settings.endpoints.size()) +
                       " are listed but mode single takes one; for several use mode replication, sentinel or cluster");
  }
  if (settings.mode == "sentinel" && settings.master_name.empty()) {
    complaints.add(document.find(redis, "mode"),
                   "mode sentinel needs master_name: sentinels must be asked for a master by its name");
  }
  if (settings.mode == "cluster" && settings.db != 0) {
    complaints.add(document.find(redis, "db"),
                   "db " + std::to_string(settings.db) + " must be 0: a cluster has no other database");
  }
  if (settings.hash_tag.find_first_of("{}") != std::string::npos) {
    complaints.add(document.find(redis, "hash_tag"),
                   "hash_tag " + quote(settings.hash_tag) + " must be written without braces");
  }
  if (settings.tls.enabled && settings.tls.cert_file.empty() != settings.tls.key_file.empty()) {
    complaints.add(document.find(redis, "tls"), "tls needs both cert_file and key_file, or neither");
  }
}

}  // namespace

void check_settings(const Document& document, NodeId root, const Settings& settings, Complaints& complaints) {
  const NodeId redis = document.find(root, "redis");
  check_endpoints(document, redis, complaints);
  const NodeId cache = document.find(root, "cache_redis");
  check_endpoints(document, cache, complaints);
  if (settings.has_cache_redis) check_store(document, cache, settings.cache_redis, complaints);
  if (settings.store == StoreKind::redis) {
    check_store(document, redis, settings.redis, complaints);
  } else if (!settings.state.live.empty() && settings.state.live == settings.state.snapshot) {
    const NodeId snapshot = document.find(document.find(root, "state"), "snapshot");
    complaints.add(snapshot,
                   "snapshot " + quote(settings.state.snapshot) + " is the same file as live; they need a file each");
  }
}

}  // namespace weir::config
