// Calls one server on a loop of its own, over connections that stay open between calls. Commands that make one call
// after another use ask(); live views use ask_later() and stream() on the loop.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "weir/base/clock.h"
#include "weir/base/result.h"
#include "weir/cli/remote.h"
#include "weir/http/client_pool.h"
#include "weir/net/loop.h"
#include "weir/net/resolve.h"

namespace weir::cli {

class RemoteSession {
 public:
  // Destroying it cancels the call. Allowed in the call's own callbacks.
  class Pending {
   public:
    virtual ~Pending() = default;
  };
  using Done = std::function<void(const Result<RemoteReply>& reply)>;
  using Bytes = std::function<void(std::string_view bytes)>;

  static Result<std::unique_ptr<RemoteSession>> make(Remote remote);

  const Remote& remote() const noexcept { return remote_; }
  Loop& loop() noexcept { return *loop_; }
  void wait_up_to(Duration time) noexcept { remote_.wait_up_to(time); }

  // Runs the loop until the response is complete. The Error says what to do about it.
  Result<RemoteReply> ask(std::string_view method, std::string_view path, std::string_view json = {});
  // Calls `done` once, in a later turn of the loop.
  std::unique_ptr<Pending> ask_later(std::string_view method, std::string_view path, std::string_view json, Done done);
  // Reads a response that streams: `bytes` gets the content as it arrives; `done` is called when the server ends it,
  // with the content if the status is not 200. After the head, the server may be silent for `silence`.
  std::unique_ptr<Pending> stream(std::string_view path, Duration silence, Bytes bytes, Done done);

 private:
  class Receiver;
  explicit RemoteSession(Remote remote) : remote_(std::move(remote)) {}
  void start(Receiver& receiver, std::string_view method, std::string_view path, std::string_view json,
             const http::CallOptions& options);

  Remote remote_;
  BootClock clock_;
  std::unique_ptr<Loop> loop_;
  Resolver resolver_;
  std::unique_ptr<http::ClientPool> pool_;
};

}  // namespace weir::cli
