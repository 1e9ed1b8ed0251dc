// The answers that several servers share. Its absence loses sharing and nothing else: no error leaves it.
//
// Thread-safe; no function waits.
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

  // Reads the fresh copy, else the stale one, of this service. Calls `done` exactly once, in any thread, possibly
  // before it returns: with nothing if there is none, if the cache is unavailable, or after
  // bounds::shared_read_time_max.
  using Done = std::function<void(std::optional<KeptAnswer> answer)>;
  virtual void read(std::string_view limit, std::string_view key, std::string_view service, Done done) = 0;
  // An answer that just came from the service. REQUIRES: it is fresh.
  virtual void write(std::string_view limit, std::string_view key, const KeptAnswer& answer) = 0;
  // Removes both copies and tells all servers, this one included, within a second. Calls `done` once, in any thread,
  // with whether all servers that share the cache will hear of it.
  virtual void forget(std::string_view limit, std::string_view key, std::function<void(bool shared)> done) = 0;

  // Called in any thread with what some server forgot: drop it from the cache of this process. An empty limit: anything
  // may have been forgotten (the connection was lost for too long to know), drop all. Set it before the first call.
  using Forgotten = std::function<void(std::string_view limit, std::string_view key)>;
  virtual void on_forgotten(Forgotten forgotten) = 0;

  virtual bool is_up() const noexcept = 0;
};

}  // namespace weir::external
