#include "weir/known/shared_snapshot.h"

#include <utility>
#include <variant>

#include "weir/base/bounds.h"
#include "weir/base/text.h"
#include "weir/known/known_line.h"

namespace weir {
namespace {

void skip(SharedSnapshot& snapshot, const std::string& name, std::string_view why) {
  if (snapshot.skipped++ == 0) snapshot.first_skipped = quote(name) + ": " + std::string(why);
}

Wall expiry_of(const Adjustment& adjustment) {
  return adjustment.expires;
}
Wall expiry_of(const AccessEntry& entry) {
  return entry.expires.value_or(Wall::max());
}

template <class Value>
void take(SharedSnapshot& snapshot, std::map<std::string, Value>& all, std::size_t max, const std::string& name,
          std::string key, Value value, Wall now) {
  if (!value.live(now)) {
    snapshot.expired.push_back({name, expiry_of(value)});
  } else if (all.size() >= max) {
    skip(snapshot, name, "there are too many items");
  } else {
    all.emplace(std::move(key), std::move(value));
  }
}

}  // namespace

// Limit names contain no ':', so the result is unique.
std::string adjustment_name(std::string_view limit, std::string_view id) {
  return std::string(limit).append(":").append(id);
}

std::string block_name(const AccessEntry& entry) {
  return "block " + selector_of(entry);
}

SharedSnapshot read_shared_snapshot(KnownShare::Part part, const KnownShare::Texts& all, Wall now) {
  constexpr std::string_view kMisnamed = "its name does not match its content";
  SharedSnapshot snapshot;
  for (const auto& [name, text] : all) {
    Result<KnownLine> line = parse_line(text);
    if (!line) {
      skip(snapshot, name, line.error().detail);
    } else if (auto* one = std::get_if<Adjustment>(&line->what)) {
      std::string key = adjustment_name(one->limit, one->id);
      if (part != KnownShare::Part::adjustments || key != name) {
        skip(snapshot, name, kMisnamed);
        continue;
      }
      take(snapshot, snapshot.adjustments, bounds::adjustments_max, name, std::move(key), std::move(*one), now);
    } else {
      AccessEntry& entry = std::get<AccessEntry>(line->what);
      std::string key = selector_of(entry);
      if (part != KnownShare::Part::entries || name != (line->block ? block_name(entry) : key)) {
        skip(snapshot, name, kMisnamed);
        continue;
      }
      const std::size_t max = line->block ? bounds::blocks_max : bounds::access_entries_max;
      take(snapshot, line->block ? snapshot.blocks : snapshot.entries, max, name, std::move(key), std::move(entry),
           now);
    }
  }
  return snapshot;
}

}  // namespace weir
