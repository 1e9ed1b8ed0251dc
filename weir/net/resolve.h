// Resolves host names without blocking an event loop. The system resolver (/etc/hosts, DNS, …) is blocking and can take
// many seconds, so a few dedicated threads call it.
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

struct addrinfo;

namespace weir {

// A destination to connect to: an Address whose host may be a name.
struct Target {
  std::string host;  // a name or a literal IP address; empty for a UNIX socket
  std::uint16_t port = 0;
  std::string path;  // of a UNIX socket

  // "redis.example.com:6379", "10.0.0.1:6379", "[::1]:6379" or "unix:/run/x.sock".
  static Result<Target> parse(std::string_view text);
  // Returns the address if the host is a literal IP address or this is a UNIX socket.
  std::optional<Address> literal() const;
  std::string print() const;

  friend bool operator==(const Target&, const Target&) = default;
};

// Returns the first bounds::resolved_addresses_max distinct addresses of the system resolver's list.
std::vector<Address> distinct_addresses(const addrinfo* list, std::uint16_t port);

// Returns the target's addresses in the order of the system resolver. Blocks.
Result<std::vector<Address>> look_up(const Target& target);

// Thread safety: resolve() may be called on any loop's thread. A loop must outlive its Lookups.
class Resolver {
 public:
  using Function = std::function<Result<std::vector<Address>>(const Target&)>;
  using Done = std::function<void(const Result<std::vector<Address>>&)>;

  // One pending lookup. Destroying it, on its loop's thread, cancels it: `done` is no longer called.
  class Lookup;

  explicit Resolver(Function function = look_up);
  // Does not wait for running lookups: their threads end when the system resolver returns.
  ~Resolver();

  // Calls `done` on the loop's thread in a later turn. Has no timeout: to give up, destroy the Lookup. Fails with
  // `unavailable` when bounds::lookups_max lookups are already waiting.
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
