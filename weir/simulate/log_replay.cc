#include "weir/simulate/log_replay.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "weir/base/assert.h"
#include "weir/core/identifier.h"
#include "weir/identify/handle.h"
#include "weir/policy/explain.h"
#include "weir/simulate/state.h"

namespace weir::simulate {
namespace {

// Determines which limits the log can judge. If Weir logged what it counted, a limit that a line does not name did not
// apply, or an earlier limit denied.
std::vector<Applies> judged_limits(const Policy& policy, const std::vector<Lack>& lacks) {
  std::vector<Applies> applies(policy.limits().size(), Applies::always);
  for (const Lack& lack : lacks) {
    if (lack.what != Lack::What::limit && lack.what != Lack::What::counted) continue;
    const auto index = static_cast<std::size_t>(policy.find(lack.name) - policy.limits().data());
    applies[index] = lack.what == Lack::What::limit ? Applies::never : Applies::if_known;
  }
  return applies;
}

// The routes without the conditions that the log cannot decide.
std::vector<Route> without_conditions(std::span<const Route> routes, std::span<const Lack* const> lacks) {
  std::vector<Route> wider(routes.begin(), routes.end());
  for (std::size_t i = 0; i < wider.size(); ++i) {
    if (lacks[i] == nullptr) continue;
    Match& match = wider[i].match;
    const auto lacking = [&](std::string_view source) {
      return std::ranges::find(lacks[i]->sources, source) != lacks[i]->sources.end();
    };
    if (lacking("method")) match.methods.clear();
    if (lacking("host")) match.host = {};
    std::erase_if(match.headers, [&](const auto& header) { return lacking(header.first); });
  }
  return wider;
}

}  // namespace

// The clients at one instant, for algorithm/charging.h. A bucket's hash is its client's place, so it is looked up once.
class LogReplay::Buckets {
 public:
  Buckets(ClientTable& clients, Now now) noexcept : clients_(clients), now_(now) {}

  std::uint64_t hash(Key key) const noexcept {
    return std::uint64_t{clients_.find_or_add(key.text, now_)} << 1 | (key.kind == Kind::quota ? 1 : 0);
  }
  Decision spend(const ChargedBucket& bucket) noexcept { return simulate::spend(load(bucket), bucket, now_); }
  Decision peek(const ChargedBucket& bucket) noexcept {
    return simulate::peek(load(bucket), bucket, bucket.cost, now_);
  }
  // A replay only spends and never loses a race, so it does not use these.
  Decision look(const ChargedBucket& bucket) noexcept { return peek(bucket); }
  Decision refund(const ChargedBucket& bucket) noexcept { return peek(bucket); }
  bool reset(const ChargedBucket&) noexcept { return false; }
  void undo(const ChargedBucket&, const Decision&) noexcept { WEIR_ASSERT(false); }

 private:
  State& load(const ChargedBucket& bucket) noexcept {
    State& state = clients_[static_cast<std::uint32_t>(bucket.hash >> 1)].state;
    settle(state, bucket, now_);
    return state;
  }

  ClientTable& clients_;
  const Now now_;
};

LogReplay::LogReplay(std::string name, std::shared_ptr<const Policy> policy, const Sight& sight,
                     const ReplayOptions& options)
    : name_(std::move(name)),
      options_(options),
      lacks_(find_lacks(*policy, sight)),
      policy_(std::move(policy)),
      applies_(judged_limits(*policy_, lacks_)),
      known_(keeper_.known()),
      watch_(keeper_),
      clients_(options.clients_max, policy_->limits().size()),
      counts_(policy_->limits().size()) {
  const std::span<const Route> routes = policy_->routes();
  lacks_cost_.resize(routes.size());
  route_lacks_.resize(routes.size());
  for (std::size_t i = 0; i < routes.size(); ++i) {
    routes_.push_back({routes[i].name});
    for (const Lack& lack : lacks_) {
      if (lack.name != routes[i].name) continue;
      if (lack.what == Lack::What::cost) lacks_cost_[i] = true;
      if (lack.what == Lack::What::route) route_lacks_[i] = &lack;
    }
  }
  if (std::ranges::any_of(route_lacks_, [](const Lack* lack) { return lack != nullptr; })) {
    doubtful_ = RouteTable(without_conditions(routes, route_lacks_));
  }
}

// Returns whether the log lacks what decides the request's route. If Weir logged the route, it is known; then the
// headers that it matches on are added to `attributes`.
bool LogReplay::is_doubtful(const LoggedRequest& request, std::vector<Attribute>& attributes) {
  if (doubtful_.empty() || !request_.read(request.attributes, {})) return false;
  const Route* const found = doubtful_.find(request_);
  if (found == nullptr) return false;
  const auto index = static_cast<std::size_t>(found - doubtful_.all().data());
  const Lack* const lack = route_lacks_[index];
  if (lack == nullptr) return false;
  if (request.route.empty()) return true;
  if (request.route != found->name) return false;
  attributes.assign(request.attributes.begin(), request.attributes.end());
  for (const auto& [name, value] : policy_->routes()[index].match.headers) {
    if (std::ranges::find(lack->sources, name) != lack->sources.end()) attributes.push_back({name, value});
  }
  return false;
}

LogReplay::Outcome LogReplay::ask(const LoggedRequest& request, Wall time) {
  const Now now{Time{time.time_since_epoch()}, time};
  ++report_.requests;
  attributes_.clear();
  const bool doubtful = is_doubtful(request, attributes_);
  RequestFacts facts{attributes_.empty() ? request.attributes : std::span<const Attribute>(attributes_)};
  facts.counted = request.counted;
  facts.applies = applies_;
  if (!request.counted.empty()) facts.cost = request.counted.front().cost;
  const Result<void> resolved = policy_->resolve({facts, Mode::spend}, *known_.get(), now, resolved_, Time{});
  const auto route = resolved_.route() == nullptr
                         ? routes_.size()
                         : static_cast<std::size_t>(resolved_.route() - policy_->routes().data());
  // An access list can decide before a route is chosen.
  const bool by_list = resolved_.route() == nullptr && (resolved_.deny_listed() || resolved_.allow_listed());
  if ((doubtful && !by_list) || (route < routes_.size() && lacks_cost_[route])) {
    ++report_.unjudged;
    return {Outcome::Kind::unjudged, true, nullptr};
  }
  if (!resolved) {
    ++report_.refused;
    return {Outcome::Kind::refused, false, nullptr};
  }
  clients_.begin();
  Buckets buckets(clients_, now);
  // If a cost can never pass, only peek: nothing else is charged.
  verdict_ = resolved_.impossible() ? peek_in_order(buckets, resolved_.charges())
                                    : charge(buckets, resolved_.charges(), Mode::spend, resolved_.order());
  count(verdict_, now);
  const bool allowed = verdict_.allowed && !resolved_.deny_listed() && resolved_.blocked() == nullptr;
  if (!allowed) count_denial(verdict_, now);
  report_.timeline.add(time, allowed);
  ++(allowed ? report_.allowed : report_.denied);
  if (route < routes_.size()) ++(allowed ? routes_[route].allowed : routes_[route].denied);
  return {Outcome::Kind::decided, allowed, &verdict_};
}

// Counts every limit that was asked, like observe/metrics.h.
void LogReplay::count(const Verdict& verdict, Now now) {
  if (resolved_.deny_listed()) ++report_.deny_listed;
  if (resolved_.allow_listed()) ++report_.allow_listed;
  const std::span<const Charge> charges = resolved_.charges();
  for (const Part& part : resolved_.parts()) {
    if (part.charge < verdict.all.size()) {
      count_part(part, charges[part.charge], verdict.all[part.charge], now);
    } else if (part.standing == Standing::unlimited && verdict.all.size() == charges.size()) {
      LimitCount& counted = counts_[static_cast<std::size_t>(part.limit - policy_->limits().data())];
      ++counted.allowed;
      counted.timeline.add(now.wall, true);
    }
  }
  const Part* const blocked = resolved_.blocked();
  if (blocked == nullptr || !verdict.allowed) return;
  LimitCount& counted = counts_[static_cast<std::size_t>(blocked->limit - policy_->limits().data())];
  ++counted.denied;
  counted.timeline.add(now.wall, false);
}

void LogReplay::count_part(const Part& part, const Charge& charge, const LimitDecision& decision, Now now) {
  const auto index = static_cast<std::size_t>(part.limit - policy_->limits().data());
  LimitCount& counted = counts_[index];
  const std::string_view key = charge.rate ? charge.rate->key : charge.quota->key;
  const std::uint32_t place = clients_.find_or_add(key, now);
  TrackedClient& client = clients_[place];
  client.limit = static_cast<std::uint32_t>(index);
  client.id_offset = static_cast<std::uint32_t>(key.size() - part.id.size());
  const bool allowed = decision.allowed();
  if (allowed) {
    ++counted.allowed;
    ++client.counts.allowed;
  } else {
    ++(charge.shadow ? counted.shadow_denied : counted.denied);
    if (client.counts.denied++ == 0) client.first_denied = now.time;
    client.last_denied = now.time;
    if (!counted.first_denied) counted.first_denied = now.wall;
    counted.last_denied = now.wall;
  }
  counted.timeline.add(now.wall, allowed);
  if (!charge.rate || charge.rate->source != Source::limit || charge.cost == 0) return;
  const Limit& limit = charge.rate->limit;
  ++counted.own;
  // Capped far above any bucket that can be configured.
  const Duration worth = std::min(limit.worth(charge.cost), bounds::window_max);
  client.demand = std::min(std::max(client.demand, now.time) + worth, now.time + bounds::window_max);
  const Duration ahead = client.demand - now.time;
  if (ahead > limit.interval() * counted.demanded) counted.demanded = (ahead - Duration{1}) / limit.interval() + 1;
  if (options_.advises) spool(counted, place, charge.cost, now);
}

void LogReplay::spool(LimitCount& counted, std::uint32_t place, Count cost, Now now) {
  TrackedClient& client = clients_[place];
  SpooledRequest request{now.time.time_since_epoch().count(), place, 0};
  Result<void> added;
  if (client.succeeds_another) added = counted.spool.add(request);
  client.succeeds_another = false;
  request.cost = static_cast<std::uint32_t>(std::min<Count>(cost, std::numeric_limits<std::uint32_t>::max()));
  if (added) added = counted.spool.add(request);
  if (!added) spool_failure_ = added.error().detail;
}

// Counts the denial towards automatic blocks, like a server.
void LogReplay::count_denial(const Verdict& verdict, Now now) {
  if (!policy_->blocks()) return;
  Answer answer;
  answer.now = now;
  answer.verdict = verdict;
  explain(*policy_, resolved_, Mode::spend, answer);
  if (answer.access == Access::deny_listed) return;
  watch_.denied(*policy_, answer);
  keeper_.tick(now.wall);
  known_.refresh();
}

HitClient LogReplay::describe(TrackedClient& client) const {
  const NamedLimit& limit = policy_->limits()[client.limit];
  Label label;
  label.limit = limit.name;
  label.id = client.id();
  label.key = limit.key.size() == 1 ? std::string_view(limit.key.front()) : std::string_view{};
  HitClient hit;
  hit.limit = limit.name;
  hit.id = limit.holds_api_key() ? policy_->shown_id(&limit, client.id()) : std::string(client.id());
  hit.identifier = identifier_of(label, hit.id);
  hit.counts = client.counts;
  hit.first_denied = Wall{client.first_denied.time_since_epoch()};
  hit.last_denied = Wall{client.last_denied.time_since_epoch()};
  return hit;
}

LimitReport LogReplay::report_of(std::size_t index) {
  const NamedLimit& limit = policy_->limits()[index];
  LimitCount& counted = counts_[index];
  LimitReport report;
  report.name = limit.name;
  for (const std::string& source : limit.key) report.key += (report.key.empty() ? "" : " + ") + source;
  report.mode = print(limit.mode);
  report.numbers = limit.numbers;
  report.judged = std::ranges::none_of(
      lacks_, [&](const Lack& lack) { return lack.what == Lack::What::limit && lack.name == limit.name; });
  report.allowed = counted.allowed;
  report.denied = counted.denied;
  report.shadow_denied = counted.shadow_denied;
  report.first_denied = counted.first_denied;
  report.last_denied = counted.last_denied;
  report.timeline = counted.timeline;
  report.rest = clients_.rest(index);
  report.clients = report.rest.clients;
  if (!options_.advises || !report.judged || !limit.numbers || counted.own == 0) return report;
  if (!limit.schedule.empty()) {
    report.advice.none = "its numbers change by schedule";
  } else if (!spool_failure_.empty()) {
    report.advice.none = spool_failure_;
  } else {
    const auto tolerated =
        static_cast<std::uint64_t>(static_cast<double>(counted.own) * options_.tolerated_percent / 100);
    report.advice = advise(*limit.numbers, counted.spool, clients_.size(), tolerated, counted.demanded);
  }
  report.advice.requests = counted.own;
  return report;
}

PolicyReport LogReplay::finish(HitClients* hit) {
  report_.name = name_;
  report_.lacks = lacks_;
  report_.forgotten = clients_.forgotten();
  for (const auto& [limit, blocks] : keeper_.blocks_made()) report_.blocks += blocks;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    if (!policy_->limits()[i].sources.empty())
      report_.limits.push_back(report_of(i));
    else
      report_.limits.emplace_back();
  }
  std::vector<std::vector<std::uint32_t>> denied(counts_.size());
  for (std::uint32_t place = 0; place < clients_.size(); ++place) {
    TrackedClient& client = clients_[place];
    if (client.counts.allowed + client.counts.denied == 0) continue;  // a quota, counted at the place of its rate
    LimitReport& limit = report_.limits[client.limit];
    ++limit.clients;
    if (client.counts.denied == 0) continue;
    ++limit.clients_denied;
    denied[client.limit].push_back(place);
    if (hit == nullptr) continue;
    HitClient one = describe(client);
    const auto [at, fresh] = hit->try_emplace(one.identifier, one);
    if (!fresh) at->second.counts.add(one.counts);
  }
  for (std::size_t i = 0; i < denied.size(); ++i) {
    const std::size_t shown = std::min(denied[i].size(), options_.hit_shown);
    const auto more = [&](std::uint32_t a, std::uint32_t b) {
      const std::uint64_t many = clients_[a].counts.denied;
      const std::uint64_t other = clients_[b].counts.denied;
      return many != other ? many > other : clients_[a].key() < clients_[b].key();
    };
    std::ranges::partial_sort(denied[i], denied[i].begin() + static_cast<std::ptrdiff_t>(shown), more);
    for (std::size_t n = 0; n < shown; ++n) report_.limits[i].hit.push_back(describe(clients_[denied[i][n]]));
  }
  std::erase_if(report_.limits, [](const LimitReport& limit) { return limit.name.empty(); });
  report_.routes = routes_;
  return std::move(report_);
}

}  // namespace weir::simulate
