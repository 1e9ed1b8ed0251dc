// DELETE /ratelimit/external/{limit}/{id}: forgets what a limits service answered, on all servers.
#include <memory>
#include <string>
#include <utility>

#include "weir/admin/audit.h"
#include "weir/admin/calls.h"
#include "weir/admin/key_search.h"
#include "weir/admin/known_change.h"
#include "weir/admin/target.h"
#include "weir/base/text.h"
#include "weir/policy/named_limit.h"

namespace weir::admin {
namespace {

Outcome forget_of(AdminShared& shared, const Policy& policy, const Target& target, std::string who) {
  if (target.limit->service == nullptr || shared.services == nullptr) {
    return refuse(400, "bad_value", "limit " + quote(target.limit->name) + " has no external service");
  }
  // Other servers may know the tenant under ids that this one never saw.
  if (target.id.starts_with(kTenantPrefix)) {
    return refuse(
        400, "bad_id",
        quote(target.id) + " is a tenant that the service named; answers are forgotten by the id that was asked for");
  }
  const auto change = [services = shared.services, limit = target.limit->name,
                       id = target.id](const KnownKeeper::Done& done) {
    services->forget(limit, id, [done](bool reached_all) {
      done(reached_all ? Result<bool>(true)
                       : Error{Fault::unavailable, "forgotten on this server; other servers could not be told"});
    });
  };
  const auto finish = [&shared, who = std::move(who), name = shown(policy, target)](bool, Now now) {
    audit(shared, who, now.wall, "external forget", name, {}, {});
    Reply reply;
    reply.content = R"({"forgotten":true})";
    return reply;
  };
  return std::make_unique<KnownChange>(shared.background_tasks, change, finish);
}

}  // namespace

Outcome forget_answer(AdminShared& shared, const Request& request) {
  std::shared_ptr<const Policy> policy = shared.reloader.policy();
  std::string who(caller(request));
  if (auto named = named_by_handle(*policy, request.parts[1], request.parts[0]); named && named->limit != nullptr) {
    const NamedLimit* const limit = named->limit;
    return find_key(shared, policy, std::move(*named), request.now, [&shared, policy, limit, who](const KnownKey& key) {
      return forget_of(shared, *policy, Target{limit, key.id}, who);
    });
  }
  auto target = target_of(*policy, request.parts[0], request.parts[1]);
  if (auto* reply = std::get_if<Reply>(&target)) return std::move(*reply);
  return forget_of(shared, *policy, std::get<Target>(target), std::move(who));
}

}  // namespace weir::admin
