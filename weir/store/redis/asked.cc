#include "weir/store/redis/asked.h"

#include <algorithm>
#include <charconv>
#include <chrono>

#include "weir/algorithm/calendar.h"
#include "weir/algorithm/gcra.h"
#include "weir/base/ascii.h"
#include "weir/base/assert.h"
#include "weir/base/text.h"

namespace weir::redis {
namespace {

// A command's numbers share one string; views point into it, so it must not reallocate.
constexpr std::size_t kNumberBytes = 20;
constexpr std::size_t kNumbersPerBucket = 8;
constexpr std::size_t kNumbersPerCommand = 8;
constexpr std::size_t kReplyHead = 3;  // seconds, microseconds, forgotten

std::string_view print(Mode mode) {
  switch (mode) {
    case Mode::spend:
      return "spend";
    case Mode::peek:
      return "peek";
    case Mode::look:
      return "look";
    case Mode::refund:
      return "refund";
    case Mode::reset:
      break;
  }
  return "reset";
}

}  // namespace

Result<void> check_window(std::string_view limit_name, const Limit& limit) {
  if (limit.window() <= bounds::redis_window_max) return {};
  const std::string whose = limit_name.empty() ? "" : "limit " + quote(limit_name) + ": ";
  return Error{Fault::invalid, whose + "refilling from empty takes " + print_duration(limit.window()) +
                                   "; the maximum on Redis is " + print_duration(bounds::redis_window_max)};
}

void append_key(std::string_view prefix, std::string_view hash_tag, Key key, std::string& out) {
  out += prefix;
  if (!hash_tag.empty()) out.append("{").append(hash_tag).append("}");
  if (key.text.starts_with(kOwnPrefix)) {
    out.append("a:").append(key.text.substr(kOwnPrefix.size()));
    return;
  }
  out.append(key.kind == Kind::quota ? "w:" : "b:").append(key.text);
}

Result<void> Asked::begin(const Question& question, const Keys& keys) {
  WEIR_ASSERT(question.charges.size() <= bounds::charges_max);
  mode_ = question.mode;
  entries_size_ = parts_size_ = charges_size_ = first_part_ = end_part_ = forgotten_ = 0;
  denied_ = has_alternatives_ = false;
  keys_.clear();
  const std::size_t buckets = std::max(list_.size(), 2 * question.charges.size());
  list_.resize(buckets);
  parts_.resize(buckets);
  charges_.resize(buckets / 2);
  for (std::size_t i = 0; i < question.charges.size(); ++i) {
    const bool apart = question.order == Order::in_order && mode_ == Mode::spend;
    if (auto added = add(question.charges[i], apart ? i : 0, keys); !added) return added;
  }
  plan(question.order, keys);
  identify(question.order);
  return {};
}

Result<void> Asked::add(const Charge& charge, std::size_t group, const Keys& keys) {
  Asking& asking = charges_[charges_size_];
  asking = {kNone, kNone, group, charge.role()};
  has_alternatives_ |= charge.role() == Role::alternative;
  Entry fresh;
  fresh.cost = charge.cost;
  fresh.role = charge.role();
  fresh.peeks = charge.peeks;
  fresh.charge = charges_size_++;
  fresh.group = group;
  if (charge.rate) {
    if (auto fits = check_window(charge.limit_name, charge.rate->limit); !fits) return fits;
    fresh.limit = charge.rate->shared_limit();
    asking.rate = add({charge.rate->key, Kind::bucket}, fresh, keys);
  }
  if (charge.quota) {
    fresh.quota = charge.quota->quota;
    asking.quota = add({charge.quota->key, Kind::quota}, fresh, keys);
  }
  return {};
}

// A bucket that occurs twice is charged once with the summed cost.
std::size_t Asked::add(Key key, const Entry& fresh, const Keys& keys) {
  const std::size_t at = keys_.size();
  append_key(keys.prefix, keys.hash_tag, key, keys_);
  const std::string_view written = std::string_view(keys_).substr(at);
  for (std::size_t i = 0; i < entries_size_; ++i) {
    if (this->key(i) != written) continue;
    keys_.resize(at);
    list_[i].cost = saturating_sum(list_[i].cost, fresh.cost);
    list_[i].role = stricter(list_[i].role, fresh.role);
    list_[i].peeks &= fresh.peeks;
    return i;
  }
  Entry& entry = list_[entries_size_];
  entry = fresh;
  entry.key_at = at;
  entry.key_size = written.size();
  entry.kind = key.kind;
  return entries_size_++;
}

void Asked::plan(Order order, const Keys& keys) {
  std::size_t stage = 0;
  std::size_t stage_begin = 0;  // its first part
  for (std::size_t i = 0; i < entries_size_; ++i) {
    Entry& entry = list_[i];
    const int slot = keys.slot_of ? keys.slot_of(key(i)) : 0;
    const bool next_group = order == Order::in_order && i > 0 && entry.group != list_[i - 1].group;
    if (next_group) {
      // Consecutive groups that lie in one slot are one script.
      bool together = parts_size_ - stage_begin == 1 && parts_[stage_begin].slot == slot;
      for (std::size_t j = i + 1; j < entries_size_ && list_[j].group == entry.group; ++j) {
        together = together && (!keys.slot_of || keys.slot_of(key(j)) == slot);
      }
      if (!together) {
        ++stage;
        stage_begin = parts_size_;
      }
    }
    std::size_t part = stage_begin;
    while (part < parts_size_ && parts_[part].slot != slot) ++part;
    if (part == parts_size_) {
      parts_[parts_size_++] = {};
      parts_[part].slot = slot;
      parts_[part].stage = stage;
    }
    entry.part = part;
  }
  while (end_part_ < parts_size_ && parts_[end_part_].stage == 0) ++end_part_;
}

void Asked::identify(Order order) {
  identity_.assign(order == Order::together ? "t" : "o");
  for (std::size_t i = 0; i < entries_size_; ++i) {
    const Entry& entry = list_[i];
    if (i > 0 && entry.group != list_[i - 1].group) identity_ += '+';
    identity_.append(key(i)).append(entry.enforces() ? " " : "\t");
    if (entry.peeks) identity_ += '-';
    const bool quota = entry.kind == Kind::quota;
    for (const std::int64_t number :
         {entry.cost, quota ? entry.quota.size : entry.limit.interval().count(),
          quota ? entry.quota.window.end.time_since_epoch().count() : entry.limit.burst()}) {
      append_integer(number, identity_);
      identity_ += ' ';
    }
  }
}

std::string_view Asked::key(std::size_t entry) const noexcept {
  return std::string_view(keys_).substr(list_[entry].key_at, list_[entry].key_size);
}

std::string_view Asked::first_key(std::size_t part) const noexcept {
  std::size_t i = 0;
  while (list_[i].part != part) ++i;
  return key(i);
}

std::size_t Asked::keys(std::size_t part) const noexcept {
  std::size_t count = 0;
  for (std::size_t i = 0; i < entries_size_; ++i) count += list_[i].part == part ? 1 : 0;
  return count;
}

// A spend of several parts may be undone. That needs the time of the spend, which only the long form returns.
bool Asked::is_one_bucket(std::size_t part) const noexcept {
  if (mode_ != Mode::spend && mode_ != Mode::peek && mode_ != Mode::refund) return false;
  if (end_part_ - first_part_ > 1 || keys(part) != 1) return false;
  std::size_t i = 0;
  while (list_[i].part != part) ++i;
  return list_[i].kind == Kind::bucket;
}

void Asked::push_number(std::int64_t number, std::vector<std::string_view>& words) {
  const std::size_t at = numbers_.size();
  WEIR_ASSERT(numbers_.capacity() - at >= kNumberBytes);
  append_integer(number, numbers_);
  words.push_back(std::string_view(numbers_).substr(at));
}

void Asked::begin_numbers() {
  numbers_.clear();
  numbers_.reserve((kNumbersPerCommand + kNumbersPerBucket * entries_size_) * kNumberBytes);
}

void Asked::push_head(std::size_t keys, const Script& script) {
  begin_numbers();
  command_.clear();
  command_.push_back("EVALSHA");
  command_.push_back(script.sha);
  push_number(static_cast<std::int64_t>(keys), command_);
}

void Asked::push_price(const Entry& entry, Mode mode, std::vector<std::string_view>& words) {
  if (mode == Mode::refund) {
    // Capped: no bucket's TAT on Redis is further ahead than this.
    push_number(std::min(entry.limit.worth(entry.cost), bounds::redis_window_max).count(), words);
  } else {
    push_number(entry.cost > entry.limit.burst() ? -1 : entry.limit.price(entry.cost).count(), words);
  }
  push_number(entry.limit.window().count(), words);
}

void Asked::push_entry(const Entry& entry, Mode mode, Joint joint, std::vector<std::string_view>& words) {
  // The word is the marks, then the letter. If the stage has several parts, an alternative is sent as a shadow: it is
  // charged on its own, and undone if the question is denied.
  const bool fixed = entry.kind == Kind::quota && entry.quota.every != Duration::zero();
  const bool together = end_part_ - first_part_ == 1;
  const bool alternative = entry.role == Role::alternative && together;
  const std::size_t at = numbers_.size();
  WEIR_ASSERT(numbers_.capacity() - at >= kNumberBytes);
  if (joint != Joint::same_group) numbers_ += joint == Joint::next_group ? '+' : '=';
  if (alternative) numbers_ += '?';
  if (entry.peeks) numbers_ += '-';
  const char letter = entry.kind == Kind::bucket ? 'b' : fixed ? 'f' : 'w';
  numbers_ += entry.enforces() || alternative ? letter : to_upper(letter);
  words.push_back(std::string_view(numbers_).substr(at));
  if (entry.kind == Kind::bucket) return push_price(entry, mode, words);
  push_number(std::min<Count>(entry.cost, bounds::quota_max + 1), words);
  push_number(entry.quota.size, words);
  if (fixed) {
    push_number(entry.quota.every / std::chrono::seconds{1}, words);
    push_number(std::chrono::ceil<std::chrono::seconds>(entry.quota.window.end).time_since_epoch().count(), words);
    return;
  }
  push_number(quota::to_minutes(entry.quota.window.start), words);
  push_number(quota::to_minutes(entry.quota.window.end), words);
  push_number(quota::to_minutes(entry.quota.next_end), words);
}

void Asked::push_time(const Wall* time) {
  if (time == nullptr) return;
  const std::int64_t microseconds = time->time_since_epoch() / std::chrono::microseconds{1};
  push_number(microseconds / 1'000'000, command_);
  push_number(microseconds % 1'000'000, command_);
}

void Asked::append_keys(std::size_t part, std::vector<std::string_view>& words) const {
  for (std::size_t i = 0; i < entries_size_; ++i) {
    if (list_[i].part == part) words.push_back(key(i));
  }
}

void Asked::append_arguments(std::size_t part, std::vector<std::string_view>& words) {
  begin_numbers();
  push_arguments(part, words);
}

void Asked::push_arguments(std::size_t part, std::vector<std::string_view>& words) {
  const bool one_bucket = is_one_bucket(part);
  if (!one_bucket) words.push_back(print(mode_));
  if (!one_bucket) push_number(static_cast<std::int64_t>(keys(part)), words);
  const Entry* before = nullptr;
  for (std::size_t i = 0; i < entries_size_; ++i) {
    const Entry& entry = list_[i];
    if (entry.part != part) continue;
    if (one_bucket) {
      words.push_back(print(entry.peeks && mode_ == Mode::spend ? Mode::peek : mode_).substr(0, 1));
      return push_price(entry, mode_, words);
    }
    Joint joint = before != nullptr && entry.group != before->group ? Joint::next_group : Joint::same_group;
    const bool own = before != nullptr && !entry.enforces() && !before->enforces();
    if (own && entry.charge == before->charge) joint = Joint::same_limit;
    push_entry(entry, mode_, joint, words);
    before = &entry;
  }
}

std::span<const std::string_view> Asked::command(std::size_t part, const Script& script, const Wall* time) {
  push_head(keys(part), script);
  append_keys(part, command_);
  push_arguments(part, command_);
  push_time(time);
  return command_;
}

// The undo identifies a quota's window by its end. The reply to the spend gave that end relative to the time of the
// spend.
std::span<const std::string_view> Asked::undo_command(std::size_t part, const Script& script, const Wall* time) {
  const Part& spent = parts_[part];
  const auto is_spent = [part](const Entry& entry) { return entry.part == part && entry.must_undo; };
  const std::span<const Entry> entries(list_.data(), entries_size_);
  const auto keys = static_cast<std::size_t>(std::ranges::count_if(entries, is_spent));
  if (keys == 0) return {};
  push_head(keys, script);
  for (std::size_t i = 0; i < entries_size_; ++i) {
    if (is_spent(list_[i])) command_.push_back(key(i));
  }
  command_.push_back("undo");
  push_number(spent.seconds, command_);
  push_number(spent.microseconds, command_);
  push_number(static_cast<std::int64_t>(keys), command_);
  const Wall spent_at{std::chrono::seconds{spent.seconds} + std::chrono::microseconds{spent.microseconds}};
  for (Entry entry : entries) {
    if (!is_spent(entry)) continue;
    if (entry.kind == Kind::quota) entry.quota.window.end = spent_at + entry.decision.reset_after;
    push_entry(entry, Mode::refund, Joint::same_group, command_);
  }
  push_time(time);
  return command_;
}

// The script returns the backlog it left in the bucket, negative if it denied; gcra.h turns that into a decision.
// Returns false if our script cannot have left the bucket like this.
bool Asked::absorb_bucket(Entry& entry, std::int64_t backlog) noexcept {
  const bool allowed = backlog >= 0;
  const Duration owed{allowed ? backlog : -1 - backlog};
  if (owed > entry.limit.window()) return false;
  // Of several buckets, one that would allow is not charged if another denies.
  const bool charged = allowed && mode_ == Mode::spend && is_one_bucket(entry.part) && !entry.peeks;
  if (charged && owed < entry.limit.price(entry.cost)) return false;
  entry.decision = gcra::spend(entry.limit, Time{owed}, allowed ? 0 : entry.cost, Time{}).decision;
  return entry.decision.allowed == allowed;
}

bool Asked::absorb_quota(Entry& entry, std::int64_t used, std::int64_t end, Wall now) noexcept {
  const bool allowed = used >= 0;
  const bool fixed = entry.quota.every != Duration::zero();
  if (end < 0 || end > (fixed ? quota::kSecondsMax : quota::kMinutesMax)) return false;
  const quota::Usage usage{fixed ? end : end * 60, allowed ? used : -1 - used};
  if (usage.used > bounds::quota_max) return false;
  const Duration wait = std::max(quota::to_wall(usage.end) - now, Duration::zero());
  const Duration never_or_wait = entry.cost > entry.quota.size ? kNever : wait;
  entry.decision = quota::answer(entry.quota, usage, allowed, allowed ? Duration::zero() : never_or_wait, now);
  return true;
}

Result<void> Asked::absorb(std::size_t part, std::span<const resp::Reply::Value> values) {
  const auto is_integer = [](const resp::Reply::Value& value) { return value.type == resp::Type::integer; };
  const bool one_bucket = is_one_bucket(part);
  const bool array = values.front().type == resp::Type::array;
  if (!one_bucket) values = values.subspan(1);
  const bool whole = one_bucket ? values.size() == 1 : array && values.size() > kReplyHead;
  if (!whole || !std::ranges::all_of(values, is_integer)) {
    return Error{Fault::unavailable, "Redis sent an unexpected reply to the script"};
  }
  Wall now{};
  if (!one_bucket) {
    parts_[part].seconds = values[0].integer;
    parts_[part].microseconds = values[1].integer;
    forgotten_ += static_cast<std::size_t>(values[2].integer);
    now = Wall{std::chrono::seconds{values[0].integer} + std::chrono::microseconds{values[1].integer}};
    values = values.subspan(kReplyHead);
  }
  for (std::size_t i = 0; i < entries_size_ && !values.empty(); ++i) {
    Entry& entry = list_[i];
    if (entry.part != part) continue;
    const std::size_t size = entry.kind == Kind::quota ? 2 : 1;
    if (values.size() < size) break;
    const bool possible = entry.kind == Kind::quota ? absorb_quota(entry, values[0].integer, values[1].integer, now)
                                                    : absorb_bucket(entry, values[0].integer);
    if (!possible) return Error{Fault::unavailable, "Redis reported an impossible bucket state"};
    entry.answered = true;
    if (!entry.decision.allowed && entry.enforces() && mode_ == Mode::spend) denied_ = true;
    values = values.subspan(size);
  }
  if (values.empty()) return {};
  return Error{Fault::unavailable, "Redis sent a reply of the wrong length to the script"};
}

bool Asked::denies(std::size_t entry) const noexcept {
  return list_[entry].answered && list_[entry].enforces() && !list_[entry].decision.allowed;
}

void Asked::abandon() noexcept {
  denied_ = true;
}

bool Asked::lacks_alternative() const noexcept {
  const auto is_out = [this](const Asking& charge) {
    const auto has_room = [this](std::size_t i) { return i == kNone || list_[i].decision.allowed; };
    return charge.role != Role::alternative || !has_room(charge.rate) || !has_room(charge.quota);
  };
  return has_alternatives_ && std::ranges::all_of(std::span(charges_.data(), charges_size_), is_out);
}

bool Asked::advance() noexcept {
  if (mode_ == Mode::spend && lacks_alternative()) denied_ = true;
  if (mode_ == Mode::spend && end_part_ - first_part_ > 1) {
    if (denied_) undo_enforcing();
    if (denied_) undo_alternatives();
    undo_shadows();
  }
  if (denied_ || end_part_ == parts_size_) return false;
  first_part_ = end_part_;
  while (end_part_ < parts_size_ && parts_[end_part_].stage == parts_[first_part_].stage) ++end_part_;
  return true;
}

// If another part of this stage denied, marks the spends of the parts that did not.
void Asked::undo_enforcing() noexcept {
  const std::span<Entry> entries(list_.data(), entries_size_);
  for (std::size_t part = first_part_; part < end_part_; ++part) {
    bool denied = false;
    for (std::size_t i = 0; i < entries_size_; ++i) denied |= list_[i].part == part && denies(i);
    if (denied) continue;
    for (Entry& entry : entries) {
      entry.must_undo |= entry.part == part && entry.enforces() && entry.answered && !entry.peeks;
    }
  }
}

// Alternatives with room were charged, whatever the rest of their part decided.
void Asked::undo_alternatives() noexcept {
  for (Entry& entry : std::span(list_.data(), entries_size_)) {
    const bool spent = entry.answered && entry.decision.allowed && !entry.peeks;
    entry.must_undo |= entry.role == Role::alternative && spent;
  }
}

// Undoes half-charged shadow limits: a shadow's rate and quota are also charged both or not at all.
void Asked::undo_shadows() noexcept {
  for (const Asking& charge : std::span(charges_.data(), charges_size_)) {
    if (charge.rate == kNone || charge.quota == kNone) continue;
    Entry& rate = list_[charge.rate];
    Entry& quota = list_[charge.quota];
    const bool in_stage = rate.part >= first_part_ && rate.part < end_part_ && rate.charge == quota.charge;
    if (rate.enforces() || quota.enforces() || rate.part == quota.part || !in_stage) continue;
    const auto spent = [](const Entry& entry) { return entry.answered && entry.decision.allowed && !entry.peeks; };
    rate.must_undo |= spent(rate) && !spent(quota);
    quota.must_undo |= spent(quota) && !spent(rate);
  }
}

bool Asked::must_undo(std::size_t part) const noexcept {
  return std::ranges::any_of(std::span(list_.data(), entries_size_),
                             [part](const Entry& entry) { return entry.part == part && entry.must_undo; });
}

// Returns what the decision of a spent entry becomes once the spend is undone.
Decision Asked::as_it_stands(const Entry& entry) noexcept {
  Decision decision = entry.decision;
  if (entry.kind == Kind::quota) {
    decision.remaining = std::min(saturating_sum(decision.remaining, entry.cost), entry.quota.size);
    if (decision.remaining == entry.quota.size) decision.reset_after = Duration::zero();
    return decision;
  }
  decision.reset_after = std::max(decision.reset_after - entry.limit.price(entry.cost), Duration::zero());
  decision.remaining = (entry.limit.window() - decision.reset_after) / entry.limit.interval();
  return decision;
}

Decision Asked::decision(std::size_t entry) const noexcept {
  const Entry& of = list_[entry];
  return of.must_undo ? as_it_stands(of) : of.decision;
}

Verdict Asked::verdict() const noexcept {
  // In order, the groups after the one that denied were not asked.
  std::size_t last_group = 0;
  for (std::size_t i = 0; i < entries_size_; ++i) {
    if (list_[i].answered) last_group = std::max(last_group, list_[i].group);
  }
  Decisions decisions;
  for (std::size_t i = 0; i < charges_size_; ++i) {
    if (denied_ && charges_[i].group > last_group) break;
    const Asking& charge = charges_[i];
    if (charge.rate != kNone && charge.quota != kNone) {
      decisions.push_back({decision(charge.rate), decision(charge.quota)});
    } else if (charge.rate != kNone) {
      decisions.push_back(decision(charge.rate));
    } else {
      decisions.push_back({decision(charge.quota), Kind::quota});
    }
  }
  Verdict verdict = conclude(decisions, [&](std::size_t i) { return charges_[i].role; });
  verdict.forgotten = forgotten_;
  return verdict;
}

bool Asked::is_denied_for_all() const noexcept {
  if (mode_ != Mode::spend || !denied_) return false;
  for (std::size_t i = 0; i < entries_size_; ++i) {
    if (!list_[i].enforces() || list_[i].peeks) return false;
    if (list_[i].answered && list_[i].group != 0) return false;
  }
  return true;
}

void Asked::recall(std::span<const Decision> decisions, Duration later) noexcept {
  denied_ = true;
  for (std::size_t i = 0; i < entries_size_ && i < decisions.size(); ++i) {
    Entry& entry = list_[i];
    // In order, the first group denied, so the others were not asked (is_denied_for_all()).
    if (entry.group != 0) continue;
    entry.answered = true;
    entry.decision = decisions[i];
    Decision& decision = entry.decision;
    if (decision.retry_after != kNever) {
      decision.retry_after = std::max(decision.retry_after - later, Duration::zero());
    }
    decision.reset_after = std::max(decision.reset_after - later, Duration::zero());
    if (entry.kind == Kind::bucket) {
      decision.remaining = (entry.limit.window() - decision.reset_after) / entry.limit.interval();
    }
  }
}

}  // namespace weir::redis
