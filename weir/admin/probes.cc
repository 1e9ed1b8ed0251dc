// The probes, with the same answers as in the decision API.
#include <memory>

#include "weir/admin/calls.h"
#include "weir/wire/http.h"

namespace weir::admin {
namespace {

Reply probe_reply(bool good, std::string_view yes, std::string_view no) {
  Reply reply;
  reply.status = good ? 200 : 503;
  reply.content = "{\"status\":\"" + std::string(good ? yes : no) + "\"}";
  return reply;
}

// Queries the store, which answers within its timeout.
class DeepProbe final : public Work {
 public:
  std::span<const Query> questions() const override { return {&query_, 1}; }
  void answered(std::size_t, const Result<Answer>& answer) override { decided_ = bool(answer); }
  std::optional<Outcome> advance(Now, const Wake&) override {
    return probe_reply(decided_, "ready", "store unavailable");
  }

 private:
  const Query query_{StoreProbe{}};
  bool decided_ = false;
};

}  // namespace

Outcome healthz(AdminShared&, const Request&) {
  return probe_reply(true, "alive", {});
}

Outcome readyz(AdminShared& shared, const Request& request) {
  const Health& health = shared.health;
  const bool deep = health.store_up && query_value(request.query, "deep") == "true";
  if (!deep || !health.ready) return probe_reply(health.ready, "ready", "not ready");
  if (!health.store_up()) return probe_reply(false, {}, "store unavailable");
  return std::make_unique<DeepProbe>();
}

Outcome startz(AdminShared& shared, const Request&) {
  return probe_reply(shared.health.started, "started", "starting");
}

}  // namespace weir::admin
