#include "weir/known/access_list.h"

#include <random>
#include <utility>

#include "weir/base/bounds.h"
#include "weir/base/text.h"
#include "weir/identify/handle.h"

namespace weir {
namespace {

constexpr std::string_view kHandles = "#";  // cannot be a limit's name

}  // namespace

std::string_view print(AccessEntry::List list) noexcept {
  return list == AccessEntry::List::allow ? "allow" : "deny";
}

Result<void> check(const AccessEntry& entry) {
  const int kinds = (entry.ip ? 1 : 0) + (entry.apikey.empty() ? 0 : 1) + (entry.limit.empty() ? 0 : 1);
  if (kinds != 1) {
    return Error{Fault::invalid, "an access entry needs one of ip, apikey, or limit with id"};
  }
  if (entry.limit.empty() != entry.id.empty()) {
    return Error{Fault::invalid, "an access entry needs both limit and id, or neither"};
  }
  const auto too_long = [](std::string_view field, std::size_t most) {
    return Error{Fault::too_large,
                 std::string(field) + " of an access entry has at most " + std::to_string(most) + " bytes"};
  };
  if (entry.apikey.size() > bounds::id_bytes_max) return too_long("apikey", bounds::id_bytes_max);
  if (entry.limit.size() > bounds::name_bytes_max) return too_long("limit", bounds::name_bytes_max);
  if (entry.id.size() > bounds::key_bytes_max) return too_long("id", bounds::key_bytes_max);
  if (entry.reason.size() > bounds::reason_bytes_max) return too_long("reason", bounds::reason_bytes_max);
  if (entry.added_by.size() > bounds::added_by_bytes_max) return too_long("added_by", bounds::added_by_bytes_max);
  return {};
}

std::string selector_of(const AccessEntry& entry) {
  std::string text(print(entry.list));
  if (entry.ip) return text + " ip " + entry.ip->print();
  if (!entry.apikey.empty()) return text + " apikey " + entry.apikey;
  return text + " " + entry.limit + ":" + entry.id;
}

HashKey random_hash_key() {
  std::random_device device;
  const auto word = [&] { return std::uint64_t{device()} << 32 | device(); };
  return HashKey{word(), word()};
}

Result<AccessList> AccessList::build(std::vector<AccessEntry> entries) {
  AccessList list;
  list.entries_ = std::move(entries);
  const BucketNameHash hash{random_hash_key()};
  for (ListIndex& index : list.indexes_) index.names = decltype(index.names)(0, hash);
  std::vector<std::pair<IpPrefix, std::uint32_t>> prefixes[2];
  for (std::uint32_t i = 0; i < list.entries_.size(); ++i) {
    const AccessEntry& entry = list.entries_[i];
    const auto which = static_cast<std::size_t>(entry.list);
    if (entry.ip) {
      prefixes[which].emplace_back(*entry.ip, i);
      continue;
    }
    const bool handle = is_full_handle(entry.limit.empty() ? entry.apikey : entry.id);
    list.has_handles_ |= handle;
    const std::string_view no_limit = handle ? kHandles : std::string_view{};
    const BucketName name =
        entry.limit.empty() ? BucketName{no_limit, entry.apikey} : BucketName{entry.limit, entry.id};
    if (!list.indexes_[which].names.emplace(name, i).second) {
      // The error does not show the API key: it is a secret.
      return Error{Fault::invalid, entry.limit.empty() ? std::string("an apikey is given twice")
                                                       : quote(entry.limit + ":" + entry.id) + " is given twice"};
    }
  }
  for (std::size_t which = 0; which < 2; ++which) {
    auto built = PrefixMap<std::uint32_t>::build(std::move(prefixes[which]));
    if (!built) return built.error();
    list.indexes_[which].prefixes = std::move(*built);
  }
  return list;
}

const AccessEntry* AccessList::find_ip(AccessEntry::List list, const IpPrefix& client, Wall now) const noexcept {
  // The entry that expires last decides Retry-After, so that no client returns too early. The most specific one may
  // have expired, or be narrower than a client that is itself a prefix.
  const AccessEntry* last = nullptr;
  (void)index(list).prefixes.find(client.address(), [&](std::uint32_t i) {
    const AccessEntry& entry = entries_[i];
    if (!entry.live(now) || !entry.ip->contains(client)) return false;
    const bool ends_later = last == nullptr || !entry.expires || (last->expires && *entry.expires > *last->expires);
    if (ends_later) last = &entry;
    return false;
  });
  return last;
}

const AccessEntry* AccessList::find_apikey(AccessEntry::List list, std::string_view apikey, Wall now) const noexcept {
  return find_id(list, BucketName{{}, apikey}, now);
}

const AccessEntry* AccessList::find_handle(AccessEntry::List list, std::string_view full_handle,
                                           Wall now) const noexcept {
  return find_id(list, BucketName{kHandles, full_handle}, now);
}

const AccessEntry* AccessList::find_id(AccessEntry::List list, const BucketName& name, Wall now) const noexcept {
  const auto& names = index(list).names;
  if (names.empty()) return nullptr;
  const auto found = names.find(name);
  if (found == names.end() || !entries_[found->second].live(now)) return nullptr;
  return &entries_[found->second];
}

}  // namespace weir
