// A cache of answers that several servers share. If it is unavailable, only the sharing is lost: it reports no errors.
//
// Thread-safe. No function blocks.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "weir/external/answer_cache.h"

namespace weir::external {

class SharedAnswers {
 public:
  virtual ~SharedAnswers() = default;

  // Reads the fresh copy, else the stale one, of this service. Calls `done` exactly once, on any thread, possibly
  // before it returns: with nullopt if there is none, if the cache is unavailable, or after
  // bounds::shared_read_time_max.
  using Done = std::function<void(std::optional<KeptAnswer> answer)>;
  virtual void read(std::string_view limit, std::string_view key, std::string_view service, Done done) = 0;
  // Stores an answer that just came from the service. REQUIRES: its stale_until is in the future.
  virtual void write(std::string_view limit, std::string_view key, const KeptAnswer& answer) = 0;
  // Removes both copies and notifies all servers, this one included, within a second. Calls `done` once, on any thread,
  // with true if all servers that share the cache will be notified.
  virtual void forget(std::string_view limit, std::string_view key, std::function<void(bool shared)> done) = 0;

  // Called on any thread when some server forgot an answer: drop it from this process's cache. An empty limit means
  // that the connection was lost for too long: drop everything. Set it before the first call.
  using Forgotten = std::function<void(std::string_view limit, std::string_view key)>;
  virtual void on_forgotten(Forgotten forgotten) = 0;

  virtual bool is_up() const noexcept = 0;
};

}  // namespace weir::external
