// The client side of HTTP on one connection, without the connection: bytes in, events to the owners of its calls, bytes
// out. It does no I/O and reads no clock.
//
//   begin()             starts a call if can_begin()
//   receive()           decodes the response and calls the call's owner
//   fill(), sent()      write to the output, and learn how much of it has left
//   take_unprocessed()  calls that the server certainly did not process; the pool may begin them elsewhere
//
// Http1Client carries one call at a time, Http2Client many. Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/base/result.h"
#include "weir/base/time.h"
#include "weir/http/call_state.h"
#include "weir/wire/http.h"
#include "weir/wire/http2.h"

namespace weir::http {

// What the clients of one loop share. Must outlive them.
struct ClientShared {
  Http2Shared http2;
  ResponseHead head;  // scratch
};

// What the connection must do when calls() is 0 or the output is written.
enum class ClientEnd : unsigned char {
  open,    // nothing
  finish,  // write the rest of the output, then close
  close,   // close now
};

class HttpClient : public CallPlace {
 public:
  virtual ~HttpClient() = default;

  // True if one more call can begin now.
  virtual bool can_begin() const noexcept = 0;
  // Writes the head and what the call holds of its body. REQUIRES: can_begin().
  virtual void begin(CallState& call, Time now) = 0;
  virtual std::size_t calls() const noexcept = 0;

  // Returns how many bytes it consumed; the rest must be passed again, with more after it.
  virtual std::size_t receive(std::string_view bytes, Time now) = 0;
  // The server sends nothing more.
  virtual void end_of_input(Time now) = 0;
  // The connection is broken.
  virtual void lost(const Error& why) = 0;

  // Adds output. Called at the end of a turn; `unsent` is what was written earlier and not accepted by the kernel.
  virtual void fill(std::size_t unsent, Time now) { (void)unsent, (void)now; }
  // `taken` bytes of the output have left since the connection was opened. Call it after each flush, and before
  // end_of_input() and lost().
  virtual void sent(std::uint64_t taken, Time now) = 0;

  // False while the client wants no bytes: the connection stops reading.
  virtual bool reading() const noexcept { return true; }
  // True once our direction has ended while the other goes on: half-close the connection.
  virtual bool half_closed() const noexcept { return false; }
  virtual ClientEnd end() const noexcept = 0;

  // Begins no more calls, and tells the server so if the HTTP version can. REQUIRES: calls() is 0.
  virtual void shut_down() = 0;

  // When to call expire(), up to a second late.
  virtual Time deadline() const noexcept { return Time::max(); }
  virtual void expire(Time now) { (void)now; }
  // How long the server keeps an idle connection, if it says so.
  virtual Duration keep_alive() const noexcept { return Duration::max(); }

  // Returns the calls to give to another place, or to fail.
  std::vector<CallState*> take_unprocessed() noexcept { return std::exchange(unprocessed_, {}); }

 protected:
  std::vector<CallState*> unprocessed_;
};

}  // namespace weir::http
