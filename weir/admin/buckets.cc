// One client's buckets and the reset of buckets: GET /ratelimit/clients/{limit}/{id} and POST /ratelimit/reset/{id}.
// Both use the pipeline, so that they work on any store.
#include <algorithm>
#include <array>

#include "weir/admin/audit.h"
#include "weir/admin/body.h"
#include "weir/admin/calls.h"
#include "weir/admin/client_row.h"
#include "weir/admin/key_search.h"
#include "weir/admin/known_change.h"
#include "weir/admin/target.h"
#include "weir/base/text.h"
#include "weir/protocol/http/answer_json.h"

namespace weir::admin {
namespace {

// Returns the routes on which a limit may have buckets: none, and for a limit per route each of them.
std::vector<std::string_view> routes_of(const Policy& policy, const NamedLimit& limit) {
  std::vector<std::string_view> all{std::string_view{}};
  if (!limit.per_route) return all;
  for (const weir::Route& route : policy.routes()) all.push_back(route.name);
  return all;
}

// Returns the tiers of which a limit may have buckets: none, and each tier.
std::vector<std::string_view> tiers_of(const NamedLimit& limit) {
  std::vector<std::string_view> all{std::string_view{}};
  for (const Tier& tier : limit.tiers) all.push_back(tier.name);
  return all;
}

// Reads every bucket of one id of one limit. The strictest represents the client; of buckets in several tiers, one that
// is not full.
class ClientView final : public Work {
 public:
  // `full`: also describes a client of which nothing is known.
  ClientView(const AdminShared& shared, std::shared_ptr<const Policy> policy, Target target, bool full, Now now)
      : policy_(std::move(policy)), clients_(shared), target_(std::move(target)), full_(full) {
    external_ = clients_.answer_of(*target_.limit, target_.id, now);
    const ServiceAnswer* const answer = external_.answer.get();
    numbers_id_ = target_.id;
    adjustment_ = live_adjustment(now.wall);
    denied_by_ = policy_->denied_by(*target_.limit, target_.id, clients_.known(), now.wall);
    if (answer != nullptr && !answer->tenant_key.empty()) use_tenant(answer->tenant_key, now.wall);
    in_force_ = numbers_of({}, now);
    sourced_ = in_force_.source != Source::limit && in_force_.source != Source::schedule;
    const bool free = in_force_.standing == Standing::unlimited && target_.limit->tiers.empty();
    if (in_force_.standing == Standing::blocked || free) return;
    for (const std::string_view route : routes_of(*policy_, *target_.limit)) {
      const BucketOwner owner{target_.limit, route, target_.id};
      for (const std::string_view tier : tiers_of(*target_.limit)) {
        const Policy::InForce of_tier = numbers_of(tier, now);
        if (of_tier.standing != Standing::charged || !of_tier.numbers || of_tier.tier != tier) continue;
        look({owner.limit, owner.route, owner.id, tier}, of_tier,
             {Key{{}, Kind::bucket}, of_tier.numbers, clients_.since(of_tier, now), {}});
      }
      const auto quota = quota_of(*policy_, clients_.known(), owner, now);
      if (quota) look(owner, in_force_, {Key{{}, Kind::quota}, {}, {}, quota});
    }
    answers_.resize(queries_.size());
  }

  std::span<const Query> questions() const override { return queries_; }

  void answered(std::size_t index, const Result<Answer>& answer) override {
    if (!answer) {
      error_ = answer.error();
    } else if (answer->verdict.degraded) {
      // Decided without the store: these buckets were not read.
      error_ = Error{Fault::unavailable, "the store is unavailable"};
    } else if (!answer->verdict.all.empty()) {
      answers_[index] = answer->verdict.speaker();
    }
  }

  std::optional<Outcome> advance(Now now, const Wake&) override {
    if (error_) return refuse(*error_);
    for (std::size_t i = 0; i < owners_.size(); ++i) {
      counted_.push_back(row_of(i, now).counters != nullptr);
    }
    std::size_t strictest = 0;
    bool touched = false;
    for (std::size_t i = 0; i < answers_.size(); ++i) {
      touched |= answers_[i].reset_after > Duration::zero();
      if (stricter(i, strictest)) strictest = i;
    }
    const BucketOwner plain{target_.limit, {}, target_.id};
    ClientRow row = owners_.empty() ? clients_.full_row(plain, Kind::bucket, in_force_, now) : row_of(strictest, now);
    if (!full_ && !touched && row.counters == nullptr && !sourced_ && denied_by_ == nullptr) {
      return refuse(404, "not_found", "client " + shown(*policy_, target_) + " is not known: its bucket is full");
    }
    if (!answers_.empty()) {
      row.remaining = answers_[strictest].remaining;
      row.reset_after = answers_[strictest].reset_after;
    }
    Reply reply;
    JsonWriter json(reply.content);
    begin_row(row, json);
    json.key("last_denials").begin_array();
    if (row.counters != nullptr) {
      for (const Wall denial : row.counters->denials) json.string(print_instant(denial));
    }
    json.end_array();
    write_kind(Kind::bucket, "rate", now, json);
    write_kind(Kind::quota, "quota", now, json);
    write_adjustment(json);
    write_block(json);
    if (target_.limit->service != nullptr) write_external(now, json);
    json.end_object();
    return reply;
  }

 private:
  const Adjustment* live_adjustment(Wall wall) const {
    const Adjustment* const found = policy_->adjustment_of(*target_.limit, target_.id, clients_.known());
    return found != nullptr && found->live(wall) ? found : nullptr;
  }

  Policy::InForce numbers_of(std::string_view tier, Now now) const {
    return policy_->in_force(*target_.limit, numbers_id_, clients_.known(), now.wall, tier, external_.answer.get());
  }

  ClientRow row_of(std::size_t index, Now now) const {
    return clients_.full_row(owners_[index], kind_of(index), numbers_[index], now);
  }

  // All ids of a tenant share the tenant's buckets. Overrides match the id itself; adjustments and access entries match
  // either, and of two adjustments the one that expires last counts.
  void use_tenant(const std::string& tenant, Wall wall) {
    Result<std::string> id = policy_->bucket_id(target_.limit->name, std::string(kTenantPrefix) + tenant);
    if (!id) return;
    target_.id = std::move(*id);
    if (denied_by_ == nullptr) denied_by_ = policy_->denied_by(*target_.limit, target_.id, clients_.known(), wall);
    const Adjustment* const own = live_adjustment(wall);
    if (own == nullptr || (adjustment_ != nullptr && adjustment_->expires >= own->expires)) return;
    adjustment_ = own;
    numbers_id_ = target_.id;
  }

  // The service's answer in force: what it says, how old it is, and where it came from.
  void write_external(Now now, JsonWriter& json) const {
    json.key("external");
    const external::KeptAnswer* const answer = external_.answer.get();
    if (answer == nullptr) {
      json.null();
      return;
    }
    json.begin_object().key("average").number(answer->numbers ? answer->numbers->count() : 0);
    if (answer->numbers) {
      json.key("burst").number(answer->numbers->burst());
      json.key("period").string(print_duration(answer->numbers->period()));
    }
    if (!answer->tenant_key.empty()) json.key("tenant_key").string(answer->tenant_key);
    if (answer->failure_policy) json.key("failure_policy").string(print(*answer->failure_policy));
    if (answer->failure_code) json.key("failure_code").number(*answer->failure_code);
    if (!answer->backend_url.empty()) json.key("backend_url").string(answer->backend_url);
    json.key("age").number(print_seconds(std::max(now.time - answer->answered, Duration::zero())));
    json.key("fresh").boolean(external_.fresh);
    json.key("source").string(answer->shared ? "shared" : "service").end_object();
  }

  // Remaining tokens of two tiers do not compare: a used bucket says more than a full one, and of full ones the one
  // with requests.
  bool stricter(std::size_t a, std::size_t b) const {
    const auto known = [&](std::size_t i) {
      return answers_[i].reset_after > Duration::zero() ? 2 : counted_[i] ? 1 : 0;
    };
    if (owners_[a].tier != owners_[b].tier && known(a) != known(b)) return known(a) > known(b);
    return answers_[a].remaining < answers_[b].remaining;
  }

  // Writes the limit's rate or its quota: the numbers in force and the rest of the strictest such bucket.
  void write_kind(Kind kind, std::string_view name, Now now, JsonWriter& json) const {
    std::optional<std::size_t> strictest;
    for (std::size_t i = 0; i < answers_.size(); ++i) {
      if (kind_of(i) != kind) continue;
      if (!strictest || stricter(i, *strictest)) strictest = i;
    }
    json.key(name);
    if (!strictest) {
      json.null();
      return;
    }
    const ClientRow row = row_of(*strictest, now);
    json.begin_object().key("burst").number(row.burst).key("count").number(row.count);
    json.key("period").string(print_duration(row.period));
    json.key("remaining").number(answers_[*strictest].remaining);
    json.key("reset_after").number(print_seconds(answers_[*strictest].reset_after)).end_object();
  }

  void write_adjustment(JsonWriter& json) const {
    json.key("adjustment");
    if (adjustment_ == nullptr) {
      json.null();
      return;
    }
    json.begin_object().key("expires").string(print_instant(adjustment_->expires));
    json.key("added_by").string(adjustment_->added_by).end_object();
  }

  void write_block(JsonWriter& json) const {
    json.key("block");
    if (denied_by_ == nullptr) {
      json.null();
      return;
    }
    json.begin_object().key("reason").string(denied_by_->reason).key("expires");
    denied_by_->expires ? json.string(print_end(*denied_by_->expires)) : json.null();
    json.key("added_by").string(denied_by_->added_by).end_object();
  }

  Kind kind_of(std::size_t index) const {
    return queries_.empty() ? Kind::bucket : std::get<ExactBucket>(queries_[index].subject).key.kind;
  }

  // `bucket` has no key yet.
  void look(const BucketOwner& owner, const Policy::InForce& numbers, ExactBucket bucket) {
    if (queries_.size() >= bounds::queries_per_turn_max) return;
    keys_.push_back(std::make_unique<std::string>(bucket_key(*owner.limit, owner.route, owner.id, owner.tier)));
    bucket.key.text = *keys_.back();
    queries_.push_back({bucket, Mode::look});
    owners_.push_back(owner);
    numbers_.push_back(numbers);
  }

  std::shared_ptr<const Policy> policy_;
  Clients clients_;
  Target target_;
  std::string numbers_id_;  // the id whose override or adjustment counts; of a tenant, the id that was asked for
  bool full_;
  bool sourced_ = false;                    // an adjustment or an override exists for this id
  const Adjustment* adjustment_ = nullptr;  // in Known; live
  const AccessEntry* denied_by_ = nullptr;  // in the policy or in Known
  external::AnswerCache::Found external_;   // of the limit's service
  std::vector<std::unique_ptr<std::string>> keys_;
  std::vector<BucketOwner> owners_;
  std::vector<Policy::InForce> numbers_;  // of owners_
  Policy::InForce in_force_;              // without a tier
  std::vector<bool> counted_;             // whether requests of that bucket are tracked
  std::vector<Query> queries_;
  std::vector<Decision> answers_;
  std::optional<Error> error_;
};

// Returns every form in which the deny list may have the client of a target.
std::vector<AccessEntry> selectors_of(const std::vector<Target>& targets) {
  std::vector<AccessEntry> all;
  for (const Target& target : targets) {
    if (target.limit == nullptr) continue;
    AccessEntry& entry = all.emplace_back();
    entry.limit = target.limit->name;
    entry.id = target.id;
    if (target.limit->hashed || target.limit->key.size() != 1) continue;
    if (target.limit->key.front() == "apikey") all.emplace_back().apikey = target.id;
    if (target.limit->key.front() != "ip") continue;
    if (const Result<IpPrefix> ip = IpPrefix::parse(target.id)) all.emplace_back().ip = *ip;
  }
  return all;
}

// Removes automatic blocks together with a reset; keeps operators' entries.
class BlockRemoval {
 public:
  void begin(BackgroundTasks& background_tasks, std::function<void(const KnownKeeper::Done& done)> change) {
    const auto finish = [](bool changed, Now) {
      Reply reply;
      reply.content = changed ? "true" : "false";
      return reply;
    };
    change_ = std::make_unique<KnownChange>(background_tasks, std::move(change), finish);
  }
  // Returns true if it is done or was never requested; starts it if it was. `refused` is the reply if it failed.
  bool done(Now now, const Wake& wake, std::optional<Reply>& refused) {
    if (change_ == nullptr) return true;
    std::optional<Outcome> outcome = change_->advance(now, wake);
    if (!outcome) return false;
    change_.reset();
    Reply& reply = std::get<Reply>(*outcome);
    if (reply.status == 200) {
      found_ = reply.content;
    } else {
      refused = std::move(reply);
    }
    return true;
  }
  // Returns the reply of a reset.
  Reply reply(std::uint64_t forgotten) const {
    Reply reply;
    JsonWriter json(reply.content);
    json.begin_object().key("reset").number(static_cast<std::int64_t>(forgotten));
    if (!found_.empty()) json.key("unblocked").boolean(found_ == "true");
    json.end_object();
    return reply;
  }

 private:
  std::unique_ptr<KnownChange> change_;
  std::string found_;  // whether there was a block; empty: not requested
};

class BucketReset final : public Work {
 public:
  BucketReset(AdminShared& shared, std::string who, std::shared_ptr<const Policy> policy, std::vector<Target> targets)
      : shared_(shared), who_(std::move(who)), policy_(std::move(policy)), targets_(std::move(targets)) {
    for (const Target& target : targets_) {
      if (target.limit == nullptr) {
        forget(std::string(kOwnPrefix) + target.id, Kind::bucket);
        continue;
      }
      for (const std::string_view route : routes_of(*policy_, *target.limit)) {
        for (const std::string_view tier : tiers_of(*target.limit)) {
          forget(bucket_key(*target.limit, route, target.id, tier), Kind::bucket);
        }
        // An override or a tier may have a quota even if the limit has none.
        const bool quotas = target.limit->quota || target.limit->overrides.size() > 0 || !target.limit->tiers.empty();
        if (quotas) forget(bucket_key(*target.limit, route, target.id), Kind::quota);
      }
    }
  }

  bool too_many() const noexcept { return queries_.size() > bounds::queries_per_turn_max; }
  std::span<const Query> questions() const override { return queries_; }

  void answered(std::size_t, const Result<Answer>& answer) override {
    if (!answer) {
      error_ = answer.error();
    } else {
      forgotten_ += answer->verdict.forgotten;
    }
  }

  void unblock(Wall now) {
    block_removal_.begin(shared_.background_tasks,
                         [&keeper = shared_.keeper, selectors = selectors_of(targets_),
                          now](const KnownKeeper::Done& done) { keeper.unblock(selectors, now, done); });
  }

  std::optional<Outcome> advance(Now now, const Wake& wake) override {
    std::optional<Reply> refused;
    if (!block_removal_.done(now, wake, refused)) return {};
    if (error_) return refuse(*error_);
    if (refused) return refused;
    std::string names;
    for (const Target& target : targets_) names += (names.empty() ? "" : ", ") + shown(*policy_, target);
    Reply reply = block_removal_.reply(forgotten_);
    std::string before;
    JsonWriter(before).begin_object().key("buckets").number(static_cast<std::int64_t>(forgotten_)).end_object();
    audit(shared_, who_, now.wall, "reset", names, before, R"({"buckets":0})");
    return reply;
  }

 private:
  void forget(std::string key, Kind kind) {
    keys_.push_back(std::make_unique<std::string>(std::move(key)));
    queries_.push_back({ExactBucket{.key = {*keys_.back(), kind}}, Mode::reset});
  }

  AdminShared& shared_;
  std::string who_;
  std::shared_ptr<const Policy> policy_;
  std::vector<Target> targets_;
  std::vector<std::unique_ptr<std::string>> keys_;
  std::vector<Query> queries_;
  std::uint64_t forgotten_ = 0;
  std::optional<Error> error_;
  BlockRemoval block_removal_;
};

// Resets all buckets, a part at a time, so that requests continue in between.
class ResetAll final : public Work {
 public:
  ResetAll(AdminShared& shared, const Request& request, bool unblock)
      : shared_(shared), who_(caller(request)), progress_(std::make_shared<Progress>()) {
    if (!unblock) return;
    block_removal_.begin(shared.background_tasks,
                         [&keeper = shared.keeper, wall = request.now.wall](const KnownKeeper::Done& done) {
                           keeper.unblock_all(wall, done);
                         });
  }

  std::optional<Outcome> advance(Now now, const Wake& wake) override {
    std::optional<Reply> refused;
    if (!block_removal_.done(now, wake, refused)) return {};
    if (refused) return refused;
    if (!progress_->waiting && !progress_->over && !progress_->error) forget_more(now, wake);
    if (progress_->waiting) return {};
    if (progress_->error) return refuse(*progress_->error);
    if (!progress_->over) {
      wake();  // after other connections had their turn
      return {};
    }
    const auto forgotten = static_cast<std::int64_t>(progress_->forgotten);
    std::string before;
    JsonWriter(before).begin_object().key("buckets").number(forgotten).end_object();
    audit(shared_, who_, now.wall, "reset", "all", before, R"({"buckets":0})");
    return block_removal_.reply(progress_->forgotten);
  }

 private:
  struct Progress {
    std::string cursor;
    std::uint64_t forgotten = 0;
    std::optional<Error> error;
    bool waiting = false;
    bool calling = false;  // inside forget(): the answer needs no wake
    bool over = false;
  };

  void forget_more(Now now, const Wake& wake) {
    progress_->waiting = progress_->calling = true;
    const auto forgot = [progress = progress_, wake](const Result<BucketScan::Step>& step) {
      progress->waiting = false;
      if (!progress->calling) wake();
      if (!step) {
        progress->error = step.error();
        return;
      }
      progress->forgotten += step->forgotten;
      progress->cursor = step->cursor;
      progress->over = step->cursor.empty();
    };
    shared_.bucket_scan.forget(progress_->cursor, now, forgot);
    progress_->calling = false;
  }

  AdminShared& shared_;
  std::string who_;
  std::shared_ptr<Progress> progress_;
  BlockRemoval block_removal_;
};

// The arguments of a reset.
struct ResetArguments {
  std::string id;
  std::string limit;  // empty: every limit the id can belong to
  std::string confirm;
  bool block = false;  // also remove automatic blocks
};

Outcome forget(AdminShared& shared, std::string who, std::shared_ptr<const Policy> policy, std::vector<Target> targets,
               bool block, Wall wall) {
  auto work = std::make_unique<BucketReset>(shared, std::move(who), std::move(policy), std::move(targets));
  if (!work->too_many()) {
    if (block) work->unblock(wall);
    return work;
  }
  return refuse(413, "too_large",
                "that id may have more than " + std::to_string(bounds::queries_per_turn_max) +
                    " buckets; name one limit with ?limit=");
}

Outcome reset(AdminShared& shared, const Request& request, const ResetArguments& asked) {
  const auto& [id, limit, confirm, block] = asked;
  if (id == "all" && limit.empty()) {
    if (confirm != "all") return refuse(400, "bad_value", "a reset of all buckets needs confirm=all");
    return std::make_unique<ResetAll>(shared, request, block);
  }
  // Without `confirm`, a client of that limit may be called "all".
  if (id == "all" && !confirm.empty()) {
    return refuse(400, "bad_value", "confirm=all resets the buckets of every limit; it cannot be combined with limit");
  }
  std::shared_ptr<const Policy> policy = shared.reloader.policy();
  std::string who(caller(request));
  const Wall wall = request.now.wall;
  if (auto named = named_by_handle(*policy, id, limit)) {
    const NamedLimit* const one = named->limit;
    return find_key(shared, policy, std::move(*named), request.now,
                    [&shared, policy, one, who, wall, unblock = asked.block](const KnownKey& key) {
                      if (one != nullptr) return forget(shared, who, policy, {{one, key.id}}, unblock, wall);
                      auto targets = targets_of(*policy, "apikey:" + key.id, {});
                      if (auto* reply = std::get_if<Reply>(&targets)) return Outcome(std::move(*reply));
                      return forget(shared, who, policy, std::get<std::vector<Target>>(std::move(targets)), unblock,
                                    wall);
                    });
  }
  auto targets = targets_of(*policy, id, limit);
  if (auto* reply = std::get_if<Reply>(&targets)) return std::move(*reply);
  return forget(shared, std::move(who), std::move(policy), std::get<std::vector<Target>>(std::move(targets)), block,
                wall);
}

// A parameter that is true or false; false if it is absent.
Result<bool> flag(const Parameters& given, std::string_view name) {
  const std::string_view value = given[name];
  if (!given.has(name) || value == "false") return false;
  if (value == "true") return true;
  return Error{Fault::invalid, std::string(name) + " " + quote(value) + " must be true or false"};
}

}  // namespace

Outcome show_client(AdminShared& shared, const Request& request) {
  const auto full = flag(request.parameters, "full");
  if (!full) return refuse(400, "bad_value", full.error().detail);
  std::shared_ptr<const Policy> policy = shared.reloader.policy();
  if (auto named = named_by_handle(*policy, request.parts[1], request.parts[0]); named && named->limit != nullptr) {
    const NamedLimit* const limit = named->limit;
    return find_key(shared, policy, std::move(*named), request.now,
                    [&shared, policy, limit, full = *full, now = request.now](const KnownKey& key) -> Outcome {
                      return std::make_unique<ClientView>(shared, policy, Target{limit, key.id}, full, now);
                    });
  }
  auto target = target_of(*policy, request.parts[0], request.parts[1]);
  if (auto* reply = std::get_if<Reply>(&target)) return std::move(*reply);
  return std::make_unique<ClientView>(shared, std::move(policy), std::get<Target>(std::move(target)), *full,
                                      request.now);
}

Outcome reset_in_path(AdminShared& shared, const Request& request) {
  const Parameters& given = request.parameters;
  const auto block = flag(given, "block");
  if (!block) return refuse(400, "bad_value", block.error().detail);
  return reset(shared, request, {request.parts[0], std::string(given["limit"]), std::string(given["confirm"]), *block});
}

Outcome reset_in_body(AdminShared& shared, const Request& request) {
  static constexpr std::array<std::string_view, 4> kFields = {"id", "limit", "confirm", "block"};
  std::optional<JsonValue> object;
  if (auto refused = read_object(shared, request, kFields, object)) return std::move(*refused);
  std::array<std::string, 3> texts;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    auto text = text_field(*object, kFields[i]);
    if (!text) return refuse(400, "bad_value", text.error().detail);
    texts[i] = std::move(*text).value_or("");
  }
  if (texts[0].empty()) return refuse(400, "bad_value", "id is required: the client whose buckets to reset");
  const auto block = object->find("block");
  const bool blocks = block && !block->is(JsonKind::null);
  if (blocks && !block->is(JsonKind::boolean)) return refuse(400, "bad_value", "block must be true or false");
  return reset(shared, request, {texts[0], texts[1], texts[2], blocks && block->boolean()});
}

}  // namespace weir::admin
