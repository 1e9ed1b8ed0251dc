#include "weir/net/name_cache.h"

#include <algorithm>
#include <utility>

#include "weir/base/bounds.h"

namespace weir {
namespace {

constexpr Duration kKeptFor = std::chrono::seconds{5};

}  // namespace

std::vector<Address> NameCache::rotated(Known& known) {
  std::vector<Address> addresses = known.addresses;
  if (addresses.empty()) return addresses;
  const std::size_t first = known.next++ % addresses.size();
  std::rotate(addresses.begin(), addresses.begin() + static_cast<std::ptrdiff_t>(first), addresses.end());
  return addresses;
}

Result<std::vector<Address>> NameCache::find(const Target& target) {
  const std::string name = target.print();
  {
    const std::lock_guard lock(mutex_);
    const auto known = names_.find(name);
    if (known != names_.end() && clock_.time() - known->second.since < kKeptFor) return rotated(known->second);
  }
  // Without the lock: a lookup may take long, and lookups of other names must not wait for it.
  Result<std::vector<Address>> found = look_up_(target);
  const std::lock_guard lock(mutex_);
  if (!found) {
    const auto known = names_.find(name);
    if (known == names_.end()) return found.error();
    known->second.since = clock_.time();
    return rotated(known->second);
  }
  if (names_.size() >= bounds::names_cached_max && !names_.contains(name)) names_.clear();
  Known& known = names_[name];
  known.addresses = std::move(*found);
  known.since = clock_.time();
  return rotated(known);
}

}  // namespace weir
