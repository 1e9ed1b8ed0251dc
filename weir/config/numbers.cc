#include "weir/config/numbers.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <string>

#include "weir/base/nearest.h"
#include "weir/base/text.h"

namespace weir::config {
namespace {

// All keys that set a count, a period or a burst.
constexpr std::array<std::string_view, 7> kNumbers{"count",   "period",   "burst",     "rate",
                                                   "average", "capacity", "addTokenMs"};

std::string print(Count count) {
  return std::to_string(count);
}

std::string print(Duration duration) {
  return print_duration(duration);
}

// Stores a number, or complains if an earlier spelling gave a different one.
template <class T>
void set(const Document& document, Written::Given<T>& given, T value, NodeId at, std::string_view what,
         Complaints& complaints) {
  if (given.value && *given.value != value) {
    complaints.add(at, std::string(document.key(at)) + " gives a " + std::string(what) + " of " + print(value) +
                           ", but " + std::string(document.key(given.at)) + " gives " + print(*given.value));
    return;
  }
  if (!given.value) given = {value, at};
}

}  // namespace

bool has_refused_word(const Document& document, NodeId section, std::span<const std::string_view> words) {
  if (!document.node(section).refused) return false;
  for (const NodeId entry : document.children(section)) {
    if (!document.node(entry).refused) continue;
    const std::string_view key = document.key(entry);
    if (std::ranges::find(words, key) != words.end() || !nearest_word(words, key).empty()) return true;
  }
  return false;
}

Written read_numbers(const Document& document, NodeId section, Complaints& complaints) {
  Written written;
  written.has_refused = has_refused_word(document, section, kNumbers);
  NodeId zero_average = kNoNode;
  for (const NodeId entry : document.children(section)) {
    if (document.node(entry).refused) continue;
    const std::string_view key = document.key(entry);
    const std::string_view text = document.value(entry);
    if (key == "count") {
      set(document, written.count, *parse_integer(text), entry, "count", complaints);
    } else if (key == "period") {
      set(document, written.period, *parse_duration(text), entry, "period", complaints);
    } else if (key == "burst" || key == "capacity") {
      set(document, written.burst, *parse_integer(text), entry, "burst", complaints);
    } else if (key == "rate") {
      const Rate rate = *parse_rate(text);
      set(document, written.count, rate.count, entry, "count", complaints);
      set(document, written.period, rate.period, entry, "period", complaints);
    } else if (key == "average" && *parse_integer(text) == 0) {
      zero_average = entry;
    } else if (key == "average") {
      set(document, written.count, *parse_integer(text), entry, "count", complaints);
    } else if (key == "addTokenMs") {
      set(document, written.count, Count{1}, entry, "count", complaints);
      set(document, written.period, Duration{std::chrono::milliseconds{*parse_integer(text)}}, entry, "period",
          complaints);
    } else if (key == "maximumTimeBeforeTokenExpiry") {
      written.idle = std::chrono::seconds{*parse_integer(text)};
    }
  }
  if (zero_average == kNoNode) return written;
  written.unlimited = true;
  if (written.count.value) {
    complaints.add(zero_average, "average 0 means unlimited, but " + std::string(document.key(written.count.at)) +
                                     " gives a count of " + print(*written.count.value));
  }
  return written;
}

Written inherit(const Written& under, const Written& over, NodeId inheritor) {
  Written merged = over;
  merged.has_refused = under.has_refused || over.has_refused;
  merged.inheritor = inheritor;
  const auto take = [](const auto& from, auto& into) {
    if (into.value) return;
    into = from;
    into.inherited = true;
  };
  take(under.count, merged.count);
  take(under.period, merged.period);
  take(under.burst, merged.burst);
  return merged;
}

std::optional<Limit> make_limit(const Document& document, const Written& written, Complaints& complaints) {
  if (written.unlimited || !written.any()) return std::nullopt;
  const auto lacks = [&](NodeId at, std::string_view what) {
    if (!written.has_refused) {
      complaints.add(at, std::string(document.key(at)) + " needs " + std::string(what));
    }
    return std::nullopt;
  };
  if (!written.count.value && !written.period.value) return lacks(written.burst.at, "count and period, or rate");
  if (!written.period.value) return lacks(written.count.at, "a period");
  if (!written.count.value) return lacks(written.period.at, "a count");
  const Result<Limit> limit =
      Limit::make(*written.count.value, *written.period.value, written.burst.value.value_or(*written.count.value));
  std::string detail;
  if (!limit) {
    detail = limit.error().detail;
  } else if (limit->window() > document.window_max()) {
    detail = "burst " + print(limit->burst()) + " takes " + print(limit->window()) +
             " to refill at this rate, and on Redis at most " + print(document.window_max()) + " is possible";
  } else {
    return *limit;
  }
  // `detail` begins with the field at fault. If the burst was not given, it equals the count, so the period is at
  // fault.
  NodeId at = written.count.at;
  bool inherited = written.count.inherited;
  if (detail.starts_with("period")) {
    at = written.period.at;
    inherited = written.period.inherited;
  }
  if (detail.starts_with("burst") && written.burst.value) {
    at = written.burst.at;
    inherited = written.burst.inherited;
  } else if (detail.starts_with("burst")) {
    at = written.period.at;
    inherited = written.period.inherited;
    const bool period = document.key(at) == "period";
    detail = std::string(document.key(at)) + " " + std::string(document.value(at)) +
             (period ? " is too long: at most " : " is too slow: a period of at most ") + print(document.window_max()) +
             (document.window_max() < bounds::window_max ? " is possible on Redis" : " is possible");
  }
  complaints.add(inherited ? written.inheritor : at, detail);
  return std::nullopt;
}

}  // namespace weir::config
