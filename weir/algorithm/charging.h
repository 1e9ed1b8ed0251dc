// Charges one request to its buckets, together or in order. In: the charges and access to the buckets. Out: the
// verdict. Used wherever this process keeps the buckets: the memory table, the fallback's table and a replay's map. On
// Redis, gcra.lua follows the same rules.
//
// together: peeks at every bucket first and spends only if no enforcing bucket denies, so a denial takes nothing.
// Spends in hash order, so that two requests cannot make each other fail; a lost race undoes what was spent.
// in_order: charges one limit after another and stops at the first denial; later buckets are untouched.
// A limit's rate and quota are always charged together, in either mode.
// Alternatives that have enough tokens are charged along with the enforcing limits. If none has enough, the request is
// denied.
// A shadow limit is charged independently of the others, if all its own buckets allow it; it never denies.
// A bucket that appears twice is charged once with the summed cost.
//
// `Buckets` accesses the buckets at the request's single reading of the clock:
//   std::uint64_t hash(Key key)                         equal only for the same bucket
//   Decision spend(const ChargedBucket&)                decides, and takes the cost if allowed
//   Decision peek(const ChargedBucket&)                 decides, but takes nothing
//   Decision look(const ChargedBucket&)                 a peek that never writes
//   Decision refund(const ChargedBucket&)               returns the cost
//   bool reset(const ChargedBucket&)                    forgets the bucket; false if it was already full
//   void undo(const ChargedBucket&, const Decision&)    takes back a spend that returned this decision
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "weir/base/assert.h"
#include "weir/base/bounds.h"
#include "weir/core/charge.h"
#include "weir/core/key.h"
#include "weir/core/limit.h"
#include "weir/core/query.h"
#include "weir/core/verdict.h"

namespace weir {

// One bucket of a request.
struct ChargedBucket {
  const Charge* charge = nullptr;  // the first charge that names it
  Kind kind = Kind::bucket;
  std::uint64_t hash = 0;
  Count cost = 0;              // sum over all charges that name it
  Role role = Role::enforces;  // the strictest of those charges
  bool peeks = false;          // all of those charges peek

  Key key() const noexcept { return {is_quota() ? charge->quota->key : charge->rate->key, kind}; }
  bool is_quota() const noexcept { return kind == Kind::quota; }
  const RateCharge& rate() const noexcept { return *charge->rate; }
  const Quota& quota() const noexcept { return charge->quota->quota; }
};

template <class Buckets>
class Charging {
 public:
  // REQUIRES: charges.size() <= bounds::charges_max, costs >= 0, every charge has a rate or a quota.
  Charging(Buckets& buckets, std::span<const Charge> charges) noexcept : buckets_(buckets), charges_(charges) {
    for (std::size_t i = 0; i < charges.size(); ++i) {
      first_[i] = count_;
      if (charges[i].rate) halves_[i].rate = add(charges[i], Kind::bucket);
      if (charges[i].quota) halves_[i].quota = add(charges[i], Kind::quota);
    }
    first_[charges.size()] = count_;
  }

  Verdict spend(Order order) noexcept {
    std::size_t asked = 0;
    for (bool allowed = true; allowed && asked < charges_.size();) {
      const std::size_t end = order == Order::together ? charges_.size() : asked + 1;
      allowed = spend_limits(asked, end);
      asked = end;
    }
    return conclude_first(asked);
  }

  // Any other mode: handles each bucket independently.
  Verdict visit(Mode mode) noexcept {
    std::size_t forgotten = 0;
    for (std::size_t i = 0; i < count_; ++i) {
      if (mode == Mode::reset) forgotten += buckets_.reset(list_[i]) ? 1 : 0;
      if (mode == Mode::refund) {
        found_[i] = buckets_.refund(list_[i]);
      } else {
        found_[i] = mode == Mode::look ? buckets_.look(list_[i]) : buckets_.peek(list_[i]);
      }
    }
    Verdict verdict = conclude_first(charges_.size());
    verdict.forgotten = forgotten;
    return verdict;
  }

 private:
  // Indexes of buckets.
  struct Chosen {
    std::array<std::size_t, bounds::charged_buckets_max> at;
    std::size_t size = 0;

    void add(std::size_t index) noexcept { at[size++] = index; }
    std::span<std::size_t> all() noexcept { return {at.data(), size}; }
    std::span<const std::size_t> all() const noexcept { return {at.data(), size}; }
  };
  struct Halves {
    std::size_t rate = 0;
    std::size_t quota = 0;
  };

  // Returns the index of the charge's bucket.
  std::size_t add(const Charge& charge, Kind kind) noexcept {
    ChargedBucket bucket{&charge, kind, 0, charge.cost, charge.role(), charge.peeks};
    bucket.hash = buckets_.hash(bucket.key());
    for (std::size_t i = 0; i < count_; ++i) {
      if (list_[i].hash != bucket.hash) continue;
      list_[i].cost = saturating_sum(list_[i].cost, bucket.cost);
      list_[i].role = stricter(list_[i].role, bucket.role);
      list_[i].peeks &= bucket.peeks;
      return i;
    }
    list_[count_] = bucket;
    return count_++;
  }

  // Charges [begin, end). Returns false if an enforcing limit denied, or all alternatives did.
  bool spend_limits(std::size_t begin, std::size_t end) noexcept {
    Chosen enforcing;
    bool alternatives = false;
    for (std::size_t i = first_[begin]; i < first_[end]; ++i) {
      if (list_[i].role == Role::enforces) enforcing.add(i);
      alternatives |= list_[i].role == Role::alternative;
    }
    const bool alone = first_[end] - first_[begin] == 1;
    const bool allowed = alternatives ? spend_with_alternatives(begin, end, enforcing) : spend_all(enforcing, alone);
    for (std::size_t limit = begin; limit < end; ++limit) {
      Chosen shadows;
      for (std::size_t i = first_[limit]; i < first_[limit + 1]; ++i) {
        if (list_[i].role == Role::shadow) shadows.add(i);
      }
      (void)spend_all(shadows, shadows.size == 1);
    }
    return allowed;
  }

  // Spends from the enforcing limits and every alternative that has enough tokens. If another request empties an
  // alternative meanwhile, the next turn skips it, so the loop ends.
  bool spend_with_alternatives(std::size_t begin, std::size_t end, const Chosen& enforcing) noexcept {
    for (std::size_t turn = begin; turn <= end; ++turn) {
      Chosen chosen = enforcing;
      bool any = false;
      for (std::size_t limit = begin; limit < end; ++limit) {
        if (charges_[limit].role() != Role::alternative) continue;
        Chosen buckets;
        bool room = true;
        for (std::size_t i = first_[limit]; i < first_[limit + 1]; ++i) {
          found_[i] = buckets_.peek(list_[i]);
          if (list_[i].role != Role::alternative) continue;
          buckets.add(i);
          room &= found_[i].allowed;
        }
        any |= room;
        for (std::size_t n = 0; room && n < buckets.size; ++n) chosen.add(buckets.at[n]);
      }
      if (!any) {
        for (const std::size_t i : enforcing.all()) found_[i] = buckets_.peek(list_[i]);
        return false;
      }
      if (spend_all(chosen, false)) return true;
      for (const std::size_t i : enforcing.all()) {
        if (!found_[i].allowed) return false;
      }
    }
    return false;
  }

  // Spends from all or none; returns false if one denied. `alone`: skip the peek, because there is only one bucket and
  // a denied spend takes nothing.
  bool spend_all(Chosen& all, bool alone) noexcept {
    const std::span<std::size_t> chosen = all.all();
    bool allowed = true;
    for (const std::size_t i : chosen) {
      if (alone && !list_[i].peeks) break;
      found_[i] = buckets_.peek(list_[i]);
      allowed &= found_[i].allowed;
    }
    if (!allowed) return false;
    std::ranges::sort(chosen, {}, [this](std::size_t i) { return list_[i].hash; });
    for (std::size_t n = 0; n < chosen.size(); ++n) {
      if (list_[chosen[n]].peeks) continue;
      found_[chosen[n]] = buckets_.spend(list_[chosen[n]]);
      if (found_[chosen[n]].allowed) continue;
      for (const std::size_t i : chosen.first(n)) {
        if (list_[i].peeks) continue;
        buckets_.undo(list_[i], found_[i]);
        found_[i] = buckets_.peek(list_[i]);
      }
      return false;
    }
    return true;
  }

  // Returns the verdict of the first `asked` charges.
  Verdict conclude_first(std::size_t asked) const noexcept {
    Decisions decisions;
    for (std::size_t i = 0; i < asked; ++i) {
      const Charge& charge = charges_[i];
      if (charge.rate && charge.quota) {
        decisions.push_back({found_[halves_[i].rate], found_[halves_[i].quota]});
      } else if (charge.rate) {
        decisions.push_back(found_[halves_[i].rate]);
      } else {
        decisions.push_back({found_[halves_[i].quota], Kind::quota});
      }
    }
    return conclude(decisions, [&](std::size_t i) { return charges_[i].role(); });
  }

  Buckets& buckets_;
  const std::span<const Charge> charges_;
  std::array<ChargedBucket, bounds::charged_buckets_max> list_;  // in the order of first mention
  std::array<Decision, bounds::charged_buckets_max> found_;      // decisions, indexed like list_
  std::array<std::size_t, bounds::charges_max + 1>
      first_{};                                     // charge i is the first to name [first_[i], first_[i + 1])
  std::array<Halves, bounds::charges_max> halves_;  // indexes into list_ of each charge's buckets
  std::size_t count_ = 0;
};

// The entry point. REQUIRES: as for the constructor of Charging.
template <class Buckets>
Verdict charge(Buckets& buckets, std::span<const Charge> charges, Mode mode, Order order) noexcept {
  WEIR_ASSERT(charges.size() <= bounds::charges_max);
  // The common case: with one bucket there is nothing to order or to undo.
  if (charges.size() == 1 && mode == Mode::spend && charges[0].buckets() == 1) {
    const Charge& only = charges[0];
    ChargedBucket bucket{&only, only.rate ? Kind::bucket : Kind::quota, 0, only.cost, only.role(), only.peeks};
    bucket.hash = buckets.hash(bucket.key());
    Verdict verdict;
    verdict.all.emplace_back([&] { return bucket.peeks ? buckets.peek(bucket) : buckets.spend(bucket); }, bucket.kind);
    verdict.allowed = only.shadow || verdict.all[0].allowed();
    return verdict;
  }
  Charging<Buckets> charging(buckets, charges);
  return mode == Mode::spend ? charging.spend(order) : charging.visit(mode);
}

}  // namespace weir
