// The allow list and the deny list: clients that skip all limits, and clients that are denied before any limit is
// checked. There is one AccessList per origin: the configuration, operators at run time, and automatic blocks.
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
  // The client: exactly one of an address prefix, an API key, or a limit with an id. The id is canonical or its keyed
  // hash, as in the bucket's key (Policy::bucket_id). Key and id are plain text or, in an entry made by handle, the
  // key's full handle (identify/handle.h).
  std::optional<IpPrefix> ip;
  std::string apikey;
  std::string limit;
  std::string id;

  std::string reason;           // for operators, never for the client
  std::optional<Wall> expires;  // absent: never
  std::string added_by;
  std::string hash_mark;  // Policy::hash_mark() when the id was hashed; empty: not hashed, or unknown

  bool live(Wall now) const noexcept { return !expires || *expires > now; }

  friend bool operator==(const AccessEntry&, const AccessEntry&) = default;
};

// "allow", "deny".
std::string_view print(AccessEntry::List list) noexcept;

// Checks that the entry names exactly one kind of client and that its texts are within their limits. The Error names
// the field and the rule.
Result<void> check(const AccessEntry& entry);

// Returns the list and the client as one text. Entries with the same text replace each other.
std::string selector_of(const AccessEntry& entry);

// A limit's name and an id as in the bucket's key. Does not own its texts.
struct BucketName {
  std::string_view limit;
  std::string_view id;

  friend bool operator==(const BucketName&, const BucketName&) = default;
};

// Keyed, because clients choose ids.
struct BucketNameHash {
  HashKey key = HashKey{0, 0};
  std::size_t operator()(const BucketName& name) const noexcept {
    return siphash13(key, name.id) + 31 * siphash13(key, name.limit);
  }
};

// Returns a random key, known only to this process.
HashKey random_hash_key();

// An index of both lists of one origin. Immutable once built, so any thread may read it.
class AccessList {
 public:
  AccessList() = default;  // empty
  AccessList(AccessList&&) = default;
  AccessList& operator=(AccessList&&) = default;
  AccessList(const AccessList&) = delete;  // the indexes point into the entries
  AccessList& operator=(const AccessList&) = delete;

  // REQUIRES: each passes check(). Fails if two have the same selector_of(), or there are more than
  // bounds::prefixes_max.
  static Result<AccessList> build(std::vector<AccessEntry> entries);

  // Returns the unexpired entry of that list that covers the whole client, or null; if several do, the one that expires
  // last. Valid as long as the list.
  const AccessEntry* find_ip(AccessEntry::List list, const IpPrefix& client, Wall now) const noexcept;
  const AccessEntry* find_apikey(AccessEntry::List list, std::string_view apikey, Wall now) const noexcept;
  const AccessEntry* find_id(AccessEntry::List list, const BucketName& name, Wall now) const noexcept;

  // True if any entry was made by handle. find_handle() finds an entry for the key itself; find_id() finds those for a
  // limit and an id.
  bool has_handles() const noexcept { return has_handles_; }
  const AccessEntry* find_handle(AccessEntry::List list, std::string_view full_handle, Wall now) const noexcept;

  bool empty() const noexcept { return entries_.empty(); }
  const std::vector<AccessEntry>& entries() const noexcept { return entries_; }

 private:
  // The index of one list. An API key is stored under an empty limit name, its handle under a name that no limit can
  // have, so that a client cannot send a handle as a key.
  struct ListIndex {
    PrefixMap<std::uint32_t> prefixes;
    std::unordered_map<BucketName, std::uint32_t, BucketNameHash> names;
  };

  const ListIndex& index(AccessEntry::List list) const noexcept { return indexes_[static_cast<std::size_t>(list)]; }

  std::vector<AccessEntry> entries_;
  ListIndex indexes_[2];
  bool has_handles_ = false;
};

}  // namespace weir
