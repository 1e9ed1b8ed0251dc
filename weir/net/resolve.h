// Names to addresses without making a loop wait: the system's resolver (/etc/hosts, DNS, whatever the machine is told
// to use) may take many seconds and can only be asked blocking, so a few threads of its own ask it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/result.h"
#include "weir/net/loop.h"
#include "weir/net/socket.h"

namespace weir {

// Somewhere to connect to, as people write it: an Address whose host may be a name.
struct Target {
  std::string host;  // a name or a literal IP address; empty for a UNIX socket
  std::uint16_t port = 0;
  std::string path;  // of a UNIX socket

  // "redis.example.com:6379", "10.0.0.1:6379", "[::1]:6379" or "unix:/run/x.sock".
  static Result<Target> parse(std::string_view text);
  // If nothing has to be looked up.
  std::optional<Address> literal() const;
  std::string print() const;

  friend bool operator==(const Target&, const Target&) = default;
};

// What the system says a target's addresses are, best first, at most bounds::resolved_addresses_max. Blocks.
Result<std::vector<Address>> look_up(const Target& target);

// Thread safety: any loop's thread may ask. A loop must outlive its Lookups.
class Resolver {
 public:
  using Function = std::function<Result<std::vector<Address>>(const Target&)>;
  using Done = std::function<void(const Result<std::vector<Address>>&)>;

  // One question. Destroyed, in its loop's thread, it is taken back: `done` is not called any more.
  class Lookup;

  explicit Resolver(Function function = look_up);
  // Waits for nobody: a thread that the system does not answer ends when it does.
  ~Resolver();

  // `done` is called in the loop's thread, in a later turn. Sets no deadline: who tires of waiting destroys the Lookup.
  // Beyond bounds::lookups_max questions that wait, the answer is `unavailable`.
  std::unique_ptr<Lookup> resolve(Loop& loop, Target target, Done done);

 private:
  struct Shared;
  static void work(const std::shared_ptr<Shared>& shared);

  std::shared_ptr<Shared> shared_;
};

struct LookupState;

class Resolver::Lookup {
 public:
  explicit Lookup(std::shared_ptr<LookupState> state) noexcept : state_(std::move(state)) {}
  Lookup(const Lookup&) = delete;
  Lookup& operator=(const Lookup&) = delete;
  ~Lookup();

 private:
  std::shared_ptr<LookupState> state_;
};

}  // namespace weir
