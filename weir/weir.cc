#include "weir/weir.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/base/bounds.h"
#include "weir/limiter.h"

static_assert(WEIR_CHARGES_MAX == weir::bounds::charges_max);

namespace {

// The caller's clock. It has no wall clock, because the C interface has no calendar quotas.
class CallbackClock final : public weir::Clock {
 public:
  CallbackClock(int64_t (*clock_ns)(void*), void* context) noexcept : clock_ns_(clock_ns), context_(context) {}
  weir::Now now() const noexcept override { return {weir::Time{weir::Duration{clock_ns_(context_)}}, weir::Wall{}}; }

 private:
  int64_t (*clock_ns_)(void*);
  void* context_;
};

// The clock and options of the buckets. Each limiter shares ownership, because it may outlive the buckets' handle.
struct Home {
  explicit Home(const weir_options& chosen) {
    if (chosen.clock_ns != nullptr) options.clock = &clock.emplace(chosen.clock_ns, chosen.clock_context);
    if (chosen.max_buckets != 0) options.max_buckets = chosen.max_buckets;
    options.names = chosen.names;
  }

  std::optional<CallbackClock> clock;
  weir::Buckets::Options options;
};

std::shared_ptr<const Home> make_home(const weir_options* options) {
  return std::make_shared<Home>(options != nullptr ? *options : weir_options{});
}

std::string_view view(const char* text, size_t bytes) {
  return bytes == 0 ? std::string_view{} : std::string_view{text, bytes};
}

void write(weir_error* error, std::string_view text) {
  if (error == nullptr) return;
  const std::size_t bytes = std::min(text.size(), sizeof error->text - 1);
  std::memcpy(error->text, text.data(), bytes);
  error->text[bytes] = '\0';
}

weir_decision to_c(const weir::Decision& d) {
  const int64_t retry_after = d.retry_after == weir::kNever ? WEIR_NEVER : d.retry_after.count();
  return {d.allowed, d.burst, d.remaining, retry_after, d.reset_after.count()};
}

bool answer(const weir::Decision& decision, weir_decision* out) {
  if (out != nullptr) *out = to_c(decision);
  return decision.allowed;
}

void write(const weir::Buckets::Stats& stats, weir_stats* out) {
  *out = {stats.buckets, stats.bytes, stats.evicted, stats.lost_races};
}

weir::Result<weir::Limit> read(const weir_limit& numbers) {
  return weir::Limit::make(numbers.count, weir::Duration{numbers.period_ns}, numbers.burst);
}

// Returns the result of `make`. On failure returns null or false and writes a message. No exception crosses the C
// interface.
template <class Make>
auto guarded(weir_error* error, Make make) noexcept {
  using Made = std::remove_cvref_t<decltype(*make())>;
  write(error, "");
  try {
    weir::Result<Made> made = make();
    if (made) return *made;
    write(error, made.error().detail);
  } catch (const std::bad_alloc&) {
    write(error, "out of memory");
  }
  return Made{};
}

}  // namespace

struct weir_buckets {
  std::shared_ptr<const Home> home;
  weir::Buckets buckets;
};

struct weir_limiter {
  std::shared_ptr<const Home> home;
  weir::Limiter limiter;
};

namespace {

using Spend = weir::Buckets::Verdict (weir::Buckets::*)(std::span<const weir::Buckets::Charge>) noexcept;

weir::Result<bool> spend_several(weir_buckets* buckets, std::span<const weir_charge> charges, weir_decision* decisions,
                                 size_t* strictest, Spend spend) {
  if (charges.size() > WEIR_CHARGES_MAX) {
    return weir::Error{weir::Fault::too_large,
                       std::to_string(charges.size()) + " charges are more than " + std::to_string(WEIR_CHARGES_MAX)};
  }
  std::vector<weir::Buckets::Charge> ours;
  ours.reserve(charges.size());
  for (const weir_charge& charge : charges) {
    if (charge.limiter->home != buckets->home) {
      return weir::Error{weir::Fault::invalid,
                         "charge " + std::to_string(ours.size()) + " has a limiter that is not on these buckets"};
    }
    ours.push_back({charge.limiter->limiter, view(charge.key.text, charge.key.bytes), charge.cost});
  }
  const weir::Buckets::Verdict verdict = (buckets->buckets.*spend)(ours);
  if (strictest != nullptr) *strictest = verdict.strictest;
  for (size_t i = 0; decisions != nullptr && i < charges.size(); ++i) {
    decisions[i] = i < verdict.all.size() ? to_c(verdict.all[i]) : weir_decision{};
  }
  return verdict.allowed;
}

}  // namespace

extern "C" {

const char* weir_version(void) {
  return WEIR_VERSION;
}

weir_limiter* weir_limiter_create(const weir_limit* limit, const weir_options* options, weir_error* error) {
  return guarded(error, [&]() -> weir::Result<weir_limiter*> {
    const auto numbers = read(*limit);
    if (!numbers) return numbers.error();
    auto home = make_home(options);
    auto limiter = weir::Limiter::make(*numbers, home->options);
    if (!limiter) return limiter.error();
    return new weir_limiter{std::move(home), std::move(*limiter)};
  });
}

weir_limiter* weir_limiter_create_shared(weir_buckets* buckets, const char* name, const weir_limit* limit,
                                         weir_error* error) {
  return guarded(error, [&]() -> weir::Result<weir_limiter*> {
    const auto numbers = read(*limit);
    if (!numbers) return numbers.error();
    return new weir_limiter{buckets->home, weir::Limiter(buckets->buckets, name, *numbers)};
  });
}

void weir_limiter_destroy(weir_limiter* limiter) {
  delete limiter;
}

weir_buckets* weir_buckets_create(const weir_options* options, weir_error* error) {
  return guarded(error, [&]() -> weir::Result<weir_buckets*> {
    auto home = make_home(options);
    auto buckets = weir::Buckets::make(home->options);
    if (!buckets) return buckets.error();
    return new weir_buckets{std::move(home), std::move(*buckets)};
  });
}

void weir_buckets_destroy(weir_buckets* buckets) {
  delete buckets;
}

bool weir_spend(weir_limiter* limiter, const char* key, size_t key_bytes, int64_t cost, weir_decision* decision) {
  return answer(limiter->limiter.spend(view(key, key_bytes), cost), decision);
}

void weir_spend_batch(weir_limiter* limiter, const weir_key* keys, size_t count, int64_t cost,
                      weir_decision* decisions) {
  constexpr size_t kAtOnce = 64;
  std::array<std::string_view, kAtOnce> views;
  std::array<weir::Decision, kAtOnce> ours;
  for (size_t done = 0; done < count; done += kAtOnce) {
    const size_t some = std::min(kAtOnce, count - done);
    for (size_t i = 0; i < some; ++i) views[i] = view(keys[done + i].text, keys[done + i].bytes);
    limiter->limiter.spend_batch(std::span(views).first(some), ours, cost);
    for (size_t i = 0; i < some; ++i) decisions[done + i] = to_c(ours[i]);
  }
}

bool weir_peek(const weir_limiter* limiter, const char* key, size_t key_bytes, int64_t cost, weir_decision* decision) {
  return answer(limiter->limiter.peek(view(key, key_bytes), cost), decision);
}

void weir_refund(weir_limiter* limiter, const char* key, size_t key_bytes, int64_t cost, weir_decision* decision) {
  answer(limiter->limiter.refund(view(key, key_bytes), cost), decision);
}

bool weir_reset(weir_limiter* limiter, const char* key, size_t key_bytes) {
  return limiter->limiter.reset(view(key, key_bytes));
}

bool weir_spend_together(weir_buckets* buckets, const weir_charge* charges, size_t count, weir_decision* decisions,
                         size_t* strictest, weir_error* error) {
  return guarded(error, [&] {
    return spend_several(buckets, {charges, count}, decisions, strictest, &weir::Buckets::spend_together);
  });
}

bool weir_spend_in_order(weir_buckets* buckets, const weir_charge* charges, size_t count, weir_decision* decisions,
                         size_t* strictest, weir_error* error) {
  return guarded(error, [&] {
    return spend_several(buckets, {charges, count}, decisions, strictest, &weir::Buckets::spend_in_order);
  });
}

bool weir_set_override(weir_limiter* limiter, const char* key, size_t key_bytes, const weir_limit* limit,
                       weir_error* error) {
  return guarded(error, [&]() -> weir::Result<bool> {
    const auto numbers = read(*limit);
    if (!numbers) return numbers.error();
    if (auto set = limiter->limiter.set_override(view(key, key_bytes), *numbers); !set) return set.error();
    return true;
  });
}

bool weir_remove_override(weir_limiter* limiter, const char* key, size_t key_bytes) {
  return limiter->limiter.remove_override(view(key, key_bytes));
}

void weir_for_each(const weir_limiter* limiter,
                   void (*visit)(void* context, const char* key, size_t key_bytes, const weir_decision* standing),
                   void* context) {
  limiter->limiter.for_each([&](std::string_view key, const weir::Decision& standing) {
    const weir_decision ours = to_c(standing);
    visit(context, key.data(), key.size(), &ours);
  });
}

bool weir_limiter_maintain(weir_limiter* limiter) {
  return limiter->limiter.maintain();
}

bool weir_buckets_maintain(weir_buckets* buckets) {
  return buckets->buckets.maintain();
}

void weir_limiter_stats(const weir_limiter* limiter, weir_stats* stats) {
  write(limiter->limiter.stats(), stats);
}

void weir_buckets_stats(const weir_buckets* buckets, weir_stats* stats) {
  write(buckets->buckets.stats(), stats);
}

}  // extern "C"
