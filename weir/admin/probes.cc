// The probes, as the decision API answers them too.
#include "weir/admin/calls.h"

namespace weir::admin {
namespace {

Reply tell(bool good, std::string_view yes, std::string_view no) {
  Reply reply;
  reply.status = good ? 200 : 503;
  reply.content = "{\"status\":\"" + std::string(good ? yes : no) + "\"}";
  return reply;
}

}  // namespace

Outcome healthz(Front&, const Request&) {
  return tell(true, "alive", {});
}

Outcome readyz(Front& front, const Request& request) {
  const bool deep = query_value(request.query, "deep") == "true";
  if (deep) front.health.deep_probes.fetch_add(1, std::memory_order_relaxed);
  if (!front.health.ready) return tell(false, {}, "not ready");
  return tell(!deep || front.health.store_reachable, "ready", "store unavailable");
}

Outcome startz(Front& front, const Request&) {
  return tell(front.health.started, "started", "starting");
}

}  // namespace weir::admin
