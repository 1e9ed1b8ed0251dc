// Keeps connections to other servers and makes calls on them. One per loop. Bounds per origin: connections, idle ones,
// waiting calls.
//
// A call is retried once, on a new connection, only if nothing of it was sent (HTTP/1: no byte was passed to the
// kernel; HTTP/2: REFUSED_STREAM or a GOAWAY below its stream, and its body is still held).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "weir/base/bounds.h"
#include "weir/base/time.h"
#include "weir/http/call.h"
#include "weir/net/loop.h"
#include "weir/net/resolve.h"

namespace weir::http {

class ClientPool {
 public:
  struct Options {
    std::size_t connections_max = 100;  // per origin
    std::size_t idle_max = 32;          // per origin
    std::size_t waiting_max = 1000;     // calls per origin that wait for a connection; more fail with `overloaded`
    Duration idle_time = std::chrono::seconds{55};
  };
  struct Counts {
    std::size_t connections = 0;
    std::size_t idle = 0;
    std::size_t calls = 0;      // open or waiting
    std::uint64_t retries = 0;  // since the pool was created
  };

  // Loop and resolver must outlive the pool.
  ClientPool(Loop& loop, Resolver& resolver, Options options);
  // Cancels all calls without calling their owners. Must not run inside a callback of one of its calls.
  ~ClientPool();

  // `owner` must outlive the call. The result is never empty; failures come through Call::Owner::failed().
  Call call(const Origin& origin, const CallHead& head, BodyPart first, Call::Owner& owner, const CallOptions& options);
  Counts counts() const noexcept;

 private:
  class Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace weir::http
