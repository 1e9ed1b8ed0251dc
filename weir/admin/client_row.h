// One client of one limit as lists show it: its current bucket, the numbers in force and their source, and its counters
// if it is tracked.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

#include "weir/admin/admin_shared.h"
#include "weir/admin/bucket_owner.h"
#include "weir/core/decision.h"
#include "weir/observe/clients.h"
#include "weir/store/bucket_scan.h"

namespace weir::admin {

struct ClientRow {
  std::string limit;
  std::string id;          // for display: of an API key its handle
  std::string identifier;  // for display
  std::string bucket;      // for display
  std::string tier;        // of the bucket; empty: the limit's own
  Kind kind = Kind::bucket;
  bool numbered = false;  // the next three are set; only the caller knows those of its own bucket
  Count burst = 0;
  Count count = 0;
  Duration period{};
  std::string_view source;
  std::optional<Count> remaining;
  Duration reset_after{};
  const ClientCounters* counters = nullptr;  // null: not tracked

  std::uint64_t requests() const noexcept {
    return counters == nullptr ? 0 : counters->allowed + counters->denied + counters->shadow_denied;
  }
  std::uint64_t denied() const noexcept { return counters == nullptr ? 0 : counters->denied; }
};

// A snapshot of what is known about all clients.
class Clients {
 public:
  explicit Clients(const AdminShared& shared);

  // Returns nullopt if the limit no longer exists or the bucket has no key.
  std::optional<ClientRow> row(const StoredBucket& bucket, Now now) const;
  // The row of a client without a bucket, which means a full one, with the numbers in force for it. `owner.limit` must
  // not be null.
  ClientRow full_row(const BucketOwner& owner, Kind kind, const Policy::InForce& in_force, Now now) const;

  const BucketOwners& owners() const noexcept { return owners_; }
  const Known& known() const noexcept { return *known_; }
  // What the limit's service last answered for that id, as in bucket keys. No answer: it has no service, or none is
  // known.
  external::AnswerCache::Found answer_of(const NamedLimit& limit, std::string_view id, Now now) const;
  // Returns since when these numbers may have been in force (Charge::since).
  Time since(const Policy::InForce& in_force, Now now) const;

 private:
  // `in_force` is null if only the caller knows the numbers.
  ClientRow describe(const BucketOwner& owner, const StoredBucket& bucket, const Policy::InForce* in_force,
                     Now now) const;

  BucketOwners owners_;
  std::shared_ptr<const Known> known_;
  Time published_;  // when the policy was published
  const Clock& clock_;
  const external::Services* services_;
  std::unordered_map<std::string, ClientCounters> tracked_;
  bool shared_;  // the store leases tokens, and the bucket does not include those on lease
};

// Returns the quota in force for that id, if the limit has one.
std::optional<Quota> quota_of(const Policy& policy, const Known& known, const BucketOwner& owner, Now now);

// Starts the JSON object of a row; the caller may add fields and ends it.
void begin_row(const ClientRow& row, JsonWriter& json);

// The heavy hitters as a JSON array, most first; of an API key its handle.
void write_top(AdminShared& shared, TopBy by, std::size_t count, JsonWriter& json);
std::string_view name_of(TopBy by) noexcept;

}  // namespace weir::admin
