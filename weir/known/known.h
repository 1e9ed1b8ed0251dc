// Run-time state, separate from the policy: adjustments, access entries that operators made, automatic blocks.
// Immutable: a writer (known_keeper.h) builds and publishes a new value that shares the unchanged parts. Readers get it
// from a Published<Known>.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "weir/base/result.h"
#include "weir/base/time.h"
#include "weir/core/limit.h"
#include "weir/known/access_list.h"

namespace weir {

// Temporary numbers for one id of a limit. Overrides all other numbers for it. It is independent of the bucket, so it
// survives idle time, resets and, with an archive, restarts.
struct Adjustment {
  std::string limit;
  std::string id;  // as in the bucket's key (Policy::bucket_id), or a full handle (identify/handle.h)
  // An absent value is not changed.
  std::optional<Count> burst;
  std::optional<Count> count;
  std::optional<Duration> period;
  Wall expires{};
  std::string added_by;
  std::string hash_mark;  // as in AccessEntry

  bool live(Wall now) const noexcept { return expires > now; }

  friend bool operator==(const Adjustment&, const Adjustment&) = default;
};

// Returns the limit with the adjustment applied to `under`, the numbers without it. With a null `under`, count and
// period are required and the burst defaults to the count. The Error names the field and the rule.
Result<Limit> adjusted(const Adjustment& adjustment, const Limit* under);

// An index of adjustments. Immutable once built.
class Adjustments {
 public:
  Adjustments() = default;  // none
  // REQUIRES: no limit and id occurs twice.
  explicit Adjustments(std::vector<Adjustment> all);
  Adjustments(const Adjustments&) = delete;  // the index points into the adjustments
  Adjustments& operator=(const Adjustments&) = delete;

  // Returns null if there is none or it has expired. Valid as long as the Adjustments.
  const Adjustment* find(const BucketName& name, Wall now) const noexcept;
  // The same, including expired ones.
  const Adjustment* find(const BucketName& name) const noexcept;
  // True if any adjustment was made by handle: its id is a full handle.
  bool has_handles() const noexcept { return has_handles_; }
  const std::vector<Adjustment>& all() const noexcept { return all_; }

 private:
  std::vector<Adjustment> all_;
  std::unordered_map<BucketName, std::uint32_t, BucketNameHash> index_;
  bool has_handles_ = false;
};

class Known {
 public:
  struct Parts {
    std::shared_ptr<const Adjustments> adjustments = std::make_shared<const Adjustments>();
    std::shared_ptr<const AccessList> entries = std::make_shared<const AccessList>();  // operators'
    std::shared_ptr<const AccessList> blocks = std::make_shared<const AccessList>();   // automatic
    Time adjusted{};  // when the adjustments were last changed
  };

  Known() = default;  // empty
  // REQUIRES: no part is null.
  explicit Known(Parts parts) : parts_(std::move(parts)) {}

  const Adjustments& adjustments() const noexcept { return *parts_.adjustments; }
  const AccessList& entries() const noexcept { return *parts_.entries; }
  const AccessList& blocks() const noexcept { return *parts_.blocks; }
  Time adjusted() const noexcept { return parts_.adjusted; }

 private:
  Parts parts_;
};

}  // namespace weir
