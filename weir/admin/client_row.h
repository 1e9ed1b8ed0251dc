// One client of one limit as lists show it: its bucket as of now, under the numbers in force and where they come from,
// and its counters where it has any.
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
  std::string id;          // shown: of an API key its handle
  std::string identifier;  // the same
  std::string bucket;      // the same
  std::string tier;        // whose bucket it is; empty: the limit's own
  Kind kind = Kind::bucket;
  bool numbered = false;  // the next three mean something; not so of a bucket whose numbers only its caller knows
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

// What is known of all clients at one moment.
class Clients {
 public:
  explicit Clients(const AdminShared& shared);

  // Nothing: a bucket of a limit that is gone, or without a key.
  std::optional<ClientRow> row(const StoredBucket& bucket, Now now) const;
  // Without a bucket: it is full. `owner.limit` is not null.
  ClientRow full_row(const BucketOwner& owner, Kind kind, Now now) const;

  const BucketOwners& owners() const noexcept { return owners_; }
  const Known& known() const noexcept { return *known_; }
  // Since when these numbers may have been in force (Charge::since).
  Time since(const Policy::InForce& in_force, Now now) const;

 private:
  ClientRow describe(const BucketOwner& owner, const StoredBucket& bucket, Now now) const;

  BucketOwners owners_;
  std::shared_ptr<const Known> known_;
  Time published_;  // the policy
  const Clock& clock_;
  std::unordered_map<std::string, ClientCounters> tracked_;
  bool shared_;  // the store leases: what may be out on lease is not in the bucket
};

// The quota in force for that id, if the limit has one.
std::optional<Quota> quota_of(const Policy& policy, const Known& known, const BucketOwner& owner, Now now);

// As an object whose end is left open, for more to be added.
void begin_row(const ClientRow& row, JsonWriter& json);

}  // namespace weir::admin
