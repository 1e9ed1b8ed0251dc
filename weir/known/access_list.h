// Who passes without a look at any limit, and who is refused before any: the allow and the deny list. Entries come from
// the configuration, from operators at run time, and from automatic blocks; each of these is an AccessList of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "weir/base/result.h"
#include "weir/base/siphash.h"
#include "weir/base/time.h"
#include "weir/identify/ip.h"
#include "weir/identify/prefix_map.h"

namespace weir {

struct AccessEntry {
  enum class List : unsigned char { allow, deny };

  List list = List::deny;
  // Whom it is about: exactly one of an address prefix, an API key, or a limit and an id of it. The id is canonical, or
  // its keyed hash: as it stands in the bucket's key (Policy::bucket_id). Key and id are in clear, or, of an entry made
  // by handle, the key's full handle (identify/handle.h).
  std::optional<IpPrefix> ip;
  std::string apikey;
  std::string limit;
  std::string id;

  std::string reason;           // for operators, never for the client
  std::optional<Wall> expires;  // absent: it never ends
  std::string added_by;
  std::string hash_mark;  // Policy::hash_mark() when the id was hashed; empty: it is not hashed, or nobody noted it

  bool live(Wall now) const noexcept { return !expires || *expires > now; }

  friend bool operator==(const AccessEntry&, const AccessEntry&) = default;
};

// "allow", "deny".
std::string_view print(AccessEntry::List list) noexcept;

// Exactly one kind of client, and texts within their bounds. The Error names the field and the rule.
Result<void> check(const AccessEntry& entry);

// The list and whom the entry is about, as one text: two entries with the same text replace one another.
std::string selector_of(const AccessEntry& entry);

// A limit's name and an id as in the bucket's key. A view.
struct BucketName {
  std::string_view limit;
  std::string_view id;

  friend bool operator==(const BucketName&, const BucketName&) = default;
};

// Keyed, because ids are chosen by strangers.
struct BucketNameHash {
  HashKey key = HashKey{0, 0};
  std::size_t operator()(const BucketName& name) const noexcept {
    return siphash13(key, name.id) + 31 * siphash13(key, name.limit);
  }
};

// A key that nobody outside this process knows.
HashKey random_hash_key();

// Both lists of one origin, ready to be asked. Immutable once built, so any thread may read it.
class AccessList {
 public:
  AccessList() = default;  // empty
  AccessList(AccessList&&) = default;
  AccessList& operator=(AccessList&&) = default;
  AccessList(const AccessList&) = delete;  // the indexes point into the entries
  AccessList& operator=(const AccessList&) = delete;

  // REQUIRES: each passes check(). Two with the same selector_of() are an error, and so are more than
  // bounds::prefixes_max.
  static Result<AccessList> build(std::vector<AccessEntry> entries);

  // The entry of that list that covers the whole client and has not ended, or null; of several the last to end. Valid
  // as long as the list.
  const AccessEntry* find_ip(AccessEntry::List list, const IpPrefix& client, Wall now) const noexcept;
  const AccessEntry* find_apikey(AccessEntry::List list, std::string_view apikey, Wall now) const noexcept;
  const AccessEntry* find_id(AccessEntry::List list, const BucketName& name, Wall now) const noexcept;

  // Entries made by handle: whether there are any, and the one about the key itself. Those about a limit and an id are
  // found by find_id().
  bool has_handles() const noexcept { return has_handles_; }
  const AccessEntry* find_handle(AccessEntry::List list, std::string_view full_handle, Wall now) const noexcept;

  bool empty() const noexcept { return entries_.empty(); }
  const std::vector<AccessEntry>& entries() const noexcept { return entries_; }

 private:
  // Of allow and of deny. An API key is a name without a limit, its handle one under a name that no limit has: nobody
  // can send a handle as a key.
  struct Side {
    PrefixMap<std::uint32_t> prefixes;
    std::unordered_map<BucketName, std::uint32_t, BucketNameHash> names;
  };

  const Side& side(AccessEntry::List list) const noexcept { return sides_[static_cast<std::size_t>(list)]; }

  std::vector<AccessEntry> entries_;
  Side sides_[2];
  bool has_handles_ = false;
};

}  // namespace weir
