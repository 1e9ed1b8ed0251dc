// Replays the requests of a log against one policy and decides them as a server with that policy would have: it runs
// the server's own code for routes, keys, lists, limits and automatic blocks, on the log's clock. In: requests ordered
// by time. Out: a PolicyReport.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/published.h"
#include "weir/core/query.h"
#include "weir/core/verdict.h"
#include "weir/known/known_keeper.h"
#include "weir/policy/policy.h"
#include "weir/server/denial_watch.h"
#include "weir/simulate/client_table.h"
#include "weir/simulate/needs.h"
#include "weir/simulate/report.h"
#include "weir/simulate/spool.h"

namespace weir::simulate {

struct LoggedRequest {
  std::span<const Attribute> attributes;
  std::string_view route;                // the route a Weir server chose; empty: unknown
  std::span<const NamedCharge> counted;  // what that server counted
};

struct ReplayOptions {
  std::size_t clients_max = 1'000'000;
  std::size_t hit_shown = 20;    // denied clients listed per limit
  double tolerated_percent = 0;  // share of a limit's requests that advice may deny
  bool advises = true;
};

class LogReplay {
 public:
  // The result of one request. Valid until the next.
  struct Outcome {
    enum class Kind : unsigned char { decided, unjudged, refused };
    Kind kind = Kind::decided;
    bool allowed = true;
    const Verdict* verdict = nullptr;  // null unless limits decided
  };

  LogReplay(std::string name, std::shared_ptr<const Policy> policy, const Sight& sight, const ReplayOptions& options);

  // REQUIRES: `time` is not before that of an earlier request.
  Outcome ask(const LoggedRequest& request, Wall time);

  std::span<const Lack> lacks() const noexcept { return lacks_; }
  // Returns the report. If `hit` is not null, fills it with every denied client, by identifier. Call it once, at the
  // end.
  using HitClients = std::map<std::string, HitClient, std::less<>>;
  PolicyReport finish(HitClients* hit = nullptr);

 private:
  class Buckets;
  struct LimitCount {
    std::uint64_t allowed = 0;
    std::uint64_t denied = 0;
    std::uint64_t shadow_denied = 0;
    std::optional<Wall> first_denied;
    std::optional<Wall> last_denied;
    Count demanded = 0;     // the burst that denies no request
    std::uint64_t own = 0;  // requests that its own numbers decided
    Timeline timeline;
    Spool spool;
  };

  bool is_doubtful(const LoggedRequest& request, std::vector<Attribute>& attributes);
  void count(const Verdict& verdict, Now now);
  void count_part(const Part& part, const Charge& charge, const LimitDecision& decision, Now now);
  void spool(LimitCount& count, std::uint32_t place, Count cost, Now now);
  void count_denial(const Verdict& verdict, Now now);
  LimitReport report_of(std::size_t index);
  HitClient describe(TrackedClient& client) const;
  bool is_own_advice(const NamedLimit& limit) const noexcept;

  std::string name_;
  ReplayOptions options_;
  std::vector<Lack> lacks_;
  std::shared_ptr<const Policy> policy_;
  std::vector<Applies> applies_;          // by limit
  RouteTable doubtful_;                   // the routes without conditions that the log cannot decide; may be empty
  std::vector<bool> lacks_cost_;          // by route: the log lacks the header with the cost
  std::vector<const Lack*> route_lacks_;  // by route; null: the log has what it matches on
  KnownKeeper keeper_;
  Reader<Known> known_;
  DenialWatch watch_;
  ClientTable clients_;
  Resolved resolved_;
  Request request_;
  Verdict verdict_;
  std::vector<Attribute> attributes_;
  std::vector<LimitCount> counts_;   // by limit
  std::vector<RouteReport> routes_;  // by route
  PolicyReport report_;
  std::string spool_failure_;
};

}  // namespace weir::simulate
