// Temporary numbers for one id: GET, PUT and DELETE /ratelimit/adjust.
#include <array>
#include <functional>

#include "weir/admin/audit.h"
#include "weir/admin/background_reply.h"
#include "weir/admin/body.h"
#include "weir/admin/calls.h"
#include "weir/admin/key_search.h"
#include "weir/admin/known_change.h"
#include "weir/admin/target.h"
#include "weir/base/text.h"

namespace weir::admin {
namespace {

constexpr Duration kDefaultTime = std::chrono::hours{1};

Reply bad_value(const Error& error) {
  return error.fault == Fault::too_large ? refuse(error) : refuse(400, "bad_value", error.detail);
}

// Writes the numbers in force: those of the adjustment, and for missing ones those without it.
void write_adjustment(const Policy& policy, const Adjustment& adjustment, Wall wall, JsonWriter& json) {
  const NamedLimit* const limit = policy.find(adjustment.limit);
  json.begin_object().key("limit").string(adjustment.limit);
  json.key("id").string(policy.shown_id(limit, adjustment.id));
  std::optional<Limit> numbers;
  if (limit != nullptr) {
    const auto without = policy.in_force(*limit, adjustment.id, Known(), wall);
    const auto with = adjusted(adjustment, without.numbers ? &*without.numbers : nullptr);
    if (with) numbers = *with;
  }
  if (numbers) {
    json.key("burst").number(numbers->burst()).key("count").number(numbers->count());
    json.key("period").string(print_duration(numbers->period()));
  } else {
    json.key("burst").null().key("count").null().key("period").null();
  }
  json.key("expires").string(print_instant(adjustment.expires)).key("added_by").string(adjustment.added_by);
  if (policy.is_orphaned(adjustment.limit, adjustment.id, adjustment.hash_mark)) json.key("in_force").boolean(false);
  json.end_object();
}

std::string text_of(const Policy& policy, const Adjustment* adjustment, Wall wall) {
  std::string text;
  JsonWriter json(text);
  if (adjustment != nullptr) write_adjustment(policy, *adjustment, wall, json);
  return text;
}

// Reads the numbers of the body.
std::optional<Error> read_numbers(JsonValue object, Wall wall, Adjustment& adjustment) {
  const auto burst = count_field(object, "burst");
  if (!burst) return burst.error();
  const auto count = count_field(object, "count");
  if (!count) return count.error();
  const auto period = duration_field(object, "period");
  if (!period) return period.error();
  const auto rate = rate_field(object, "rate");
  if (!rate) return rate.error();
  const auto lasts = duration_field(object, "for");
  if (!lasts) return lasts.error();
  adjustment.burst = *burst;
  adjustment.count = *count;
  adjustment.period = *period;
  if (*rate) {
    if (*count || *period) return Error{Fault::invalid, "give either rate, or count and period, not both"};
    adjustment.count = (*rate)->count;
    adjustment.period = (*rate)->period;
  }
  if (!adjustment.burst && !adjustment.count && !adjustment.period) {
    return Error{Fault::invalid, "an adjustment needs rate, count, period or burst"};
  }
  const Duration time = lasts->value_or(kDefaultTime);
  if (time > bounds::window_max) return Error{Fault::invalid, "for must not be longer than 100 years"};
  adjustment.expires = std::chrono::ceil<std::chrono::milliseconds>(wall + time);
  return {};
}

const Adjustment* live_adjustment(const Policy& policy, const Target& target, const Known& known, Wall wall) {
  const Adjustment* const found = policy.adjustment_of(*target.limit, target.id, known);
  return found != nullptr && found->live(wall) ? found : nullptr;
}

// Applies the adjustment to one client, `id` as in bucket keys. The adjustment's own id is the form that it stores.
Outcome put_adjustment(AdminShared& shared, const std::shared_ptr<const Policy>& policy, const Target& target,
                       Adjustment adjustment, Wall wall) {
  const auto& [limit, id] = target;
  adjustment.hash_mark = policy->hash_mark(*limit);
  const auto without = policy->in_force(*limit, id, Known(), wall);
  if (limit->quota && !limit->numbers && limit->schedule.empty() && !without.numbers) {
    return bad_value({Fault::invalid, "limit " + quote(limit->name) + " has only a quota, and an adjustment " +
                                          "changes a rate and a burst; use an override to change a quota"});
  }
  const auto numbers = adjusted(adjustment, without.numbers ? &*without.numbers : nullptr);
  if (!numbers) return bad_value(numbers.error());
  if (numbers->window() > policy->window_max()) {
    return bad_value({Fault::invalid, "burst " + std::to_string(numbers->burst()) + " takes " +
                                          print_duration(numbers->window()) +
                                          " to refill at this rate, and on Redis at most " +
                                          print_duration(policy->window_max()) + " is possible"});
  }
  const std::shared_ptr<const Known> known = shared.keeper.known().current();
  const Adjustment* const old = live_adjustment(*policy, {limit, id}, *known, wall);
  if (old != nullptr) adjustment.id = old->id;  // one adjustment per client, however it is named
  const std::string before = text_of(*policy, old, wall);
  const std::string after = text_of(*policy, &adjustment, wall);
  return std::make_unique<KnownChange>(
      shared.background_tasks,
      [&keeper = shared.keeper, adjustment, wall](const KnownKeeper::Done& done) {
        keeper.adjust(adjustment, wall, done);
      },
      [&shared, who = adjustment.added_by, name = shown(*policy, target), before, after](bool, Now now) {
        audit(shared, who, now.wall, "adjust", name, before, after);
        Reply reply;
        reply.content = after;
        return reply;
      });
}

// An adjustment as it is stored: its limit may be gone.
struct StoredAdjustment {
  std::string limit;
  std::string id;
  std::string shown;  // the client, for operators
  std::string text;   // empty: there is none
};

Outcome end_adjustment(AdminShared& shared, const StoredAdjustment& stored, const std::string& who, Wall wall) {
  return std::make_unique<KnownChange>(
      shared.background_tasks,
      [&keeper = shared.keeper, limit = stored.limit, id = stored.id, wall](const KnownKeeper::Done& done) {
        keeper.unadjust(limit, id, wall, done);
      },
      [&shared, who, name = stored.shown, before = stored.text](bool found, Now now) {
        if (!found) return refuse(404, "not_found", "there is no adjustment for " + name);
        audit(shared, who, now.wall, "unadjust", name, before, {});
        Reply reply;
        reply.content = R"({"removed":1})";
        return reply;
      });
}

// Calls `act` with the client of limit and id, and with the form that an adjustment stores.
Outcome with_target(AdminShared& shared, const Request& request, std::string_view limit, std::string_view id,
                    std::function<Outcome(const std::shared_ptr<const Policy>&, const Target&, std::string)> act) {
  const std::shared_ptr<const Policy> policy = shared.reloader.policy();
  if (auto named = named_by_handle(*policy, id, limit); named && named->limit != nullptr) {
    const NamedLimit* const one = named->limit;
    return find_key(shared, policy, std::move(*named), request.now, [policy, one, act](const KnownKey& key) {
      return act(policy, Target{one, key.id}, key.stored);
    });
  }
  auto target = target_of(*policy, limit, id);
  if (auto* reply = std::get_if<Reply>(&target)) return std::move(*reply);
  std::string stored = std::get<Target>(target).id;
  return act(policy, std::get<Target>(target), std::move(stored));
}

Outcome adjust(AdminShared& shared, const Request& request, JsonValue object, std::string_view limit,
               std::string_view id) {
  const Wall wall = request.now.wall;
  Adjustment adjustment;
  adjustment.limit = limit;
  adjustment.added_by = caller(request);
  const std::optional<Error> error = read_numbers(object, wall, adjustment);
  return with_target(shared, request, limit, id,
                     [&shared, adjustment, error, wall](const std::shared_ptr<const Policy>& policy,
                                                        const Target& target, std::string stored) mutable -> Outcome {
                       if (error) return bad_value(*error);
                       adjustment.id = std::move(stored);
                       return put_adjustment(shared, policy, target, std::move(adjustment), wall);
                     });
}

StoredAdjustment find_stored(AdminShared& shared, const Policy& policy, const Target& target, Wall wall) {
  const std::shared_ptr<const Known> known = shared.keeper.known().current();
  const Adjustment* const old = live_adjustment(policy, target, *known, wall);
  return {target.limit->name, old == nullptr ? target.id : old->id, shown(policy, target), text_of(policy, old, wall)};
}

// The adjustment of a limit that was removed. Nothing is known of the limit's ids, so the id is as stored or as shown.
std::optional<StoredAdjustment> find_of_removed(AdminShared& shared, const Policy& policy, std::string_view limit,
                                                std::string_view id, Wall wall) {
  if (policy.find(limit) != nullptr) return {};
  for (const Adjustment& one : shared.keeper.adjustments(wall)) {
    const std::string label = policy.shown_id(nullptr, one.id);
    if (one.limit != limit || (one.id != id && label != id)) continue;
    return StoredAdjustment{one.limit, one.id, one.limit + ":" + label, text_of(policy, &one, wall)};
  }
  return {};
}

Outcome unadjust(AdminShared& shared, const Request& request, std::string_view limit, std::string_view id) {
  const Wall wall = request.now.wall;
  const auto removed = find_of_removed(shared, *shared.reloader.policy(), limit, id, wall);
  if (removed) return end_adjustment(shared, *removed, std::string(caller(request)), wall);
  return with_target(shared, request, limit, id,
                     [&shared, who = std::string(caller(request)), wall](const std::shared_ptr<const Policy>& policy,
                                                                         const Target& target, const std::string&) {
                       return end_adjustment(shared, find_stored(shared, *policy, target, wall), who, wall);
                     });
}

// The limit and the id in a body.
struct LimitAndId {
  std::string limit;
  std::string id;
};
std::variant<LimitAndId, Reply> read_named(JsonValue object) {
  auto limit = text_field(object, "limit");
  if (!limit) return bad_value(limit.error());
  auto id = text_field(object, "id");
  if (!id) return bad_value(id.error());
  if (!*limit || !*id) return refuse(400, "bad_value", "limit and id are required");
  return LimitAndId{std::move(**limit), std::move(**id)};
}

}  // namespace

Outcome list_adjustments(AdminShared& shared, const Request& request) {
  const auto write = [policy = shared.reloader.policy(), &keeper = shared.keeper, wall = request.now.wall] {
    Reply reply;
    JsonWriter json(reply.content);
    json.begin_object().key("adjustments").begin_array();
    for (const Adjustment& adjustment : keeper.adjustments(wall)) write_adjustment(*policy, adjustment, wall, json);
    json.end_array().end_object();
    return reply;
  };
  return std::make_unique<BackgroundReply>(shared.background_tasks, write);
}

Outcome adjust_in_path(AdminShared& shared, const Request& request) {
  static constexpr std::array<std::string_view, 5> kFields = {"rate", "burst", "count", "period", "for"};
  std::optional<JsonValue> object;
  if (auto refused = read_object(shared, request, kFields, object)) return std::move(*refused);
  return adjust(shared, request, *object, request.parts[0], request.parts[1]);
}

Outcome adjust_in_body(AdminShared& shared, const Request& request) {
  static constexpr std::array<std::string_view, 7> kFields = {"limit", "id", "rate", "burst", "count", "period", "for"};
  std::optional<JsonValue> object;
  if (auto refused = read_object(shared, request, kFields, object)) return std::move(*refused);
  auto named = read_named(*object);
  if (auto* reply = std::get_if<Reply>(&named)) return std::move(*reply);
  const auto& [limit, id] = std::get<LimitAndId>(named);
  return adjust(shared, request, *object, limit, id);
}

Outcome unadjust_in_path(AdminShared& shared, const Request& request) {
  return unadjust(shared, request, request.parts[0], request.parts[1]);
}

Outcome unadjust_in_body(AdminShared& shared, const Request& request) {
  static constexpr std::array<std::string_view, 2> kFields = {"limit", "id"};
  std::optional<JsonValue> object;
  if (auto refused = read_object(shared, request, kFields, object)) return std::move(*refused);
  auto named = read_named(*object);
  if (auto* reply = std::get_if<Reply>(&named)) return std::move(*reply);
  const auto& [limit, id] = std::get<LimitAndId>(named);
  return unadjust(shared, request, limit, id);
}

}  // namespace weir::admin
