// The state of a call, shared by its handle (Call), the pool and the client that carries it. A call is in one place at
// a time: it waits in the pool, or it is open on a client. The place delivers its events.
//
// Rules for a place: no callback inside write(), consumed() and cancel(). In every other function a callback may cancel
// this and any other call, so look a call up again after a callback instead of keeping a reference to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/bounds.h"
#include "weir/base/result.h"
#include "weir/base/time.h"
#include "weir/http/call.h"
#include "weir/wire/http.h"

namespace weir::http {

class CallState;
class CallStates;

class CallPlace {
 public:
  // The bytes are already counted in CallState::undrained.
  virtual void write(CallState& call, BodyPart part) = 0;
  virtual void consumed(CallState& call, std::size_t bytes) = 0;
  // Forgets the call.
  virtual void cancel(CallState& call) = 0;
  // Returns false if certainly nothing of it was processed.
  virtual bool has_sent(const CallState& call) const noexcept = 0;
  // Returns the error of a call that has taken too long.
  virtual Error timed_out(const CallState& call) const;

 protected:
  ~CallPlace() = default;
};

// Returns the error for a response that violates HTTP.
Error bad_response(std::string_view sentence);

// A CallHead that owns its text. Leaves out the fields that a client sets itself: framing fields, Host and Expect.
class CallText {
 public:
  void assign(const CallHead& head);
  void clear() noexcept { empty_spare_text(text_); }
  // Views of this object.
  std::string_view method() const noexcept { return piece(0, method_); }
  std::string_view scheme() const noexcept { return piece(method_, scheme_); }
  std::string_view authority() const noexcept { return piece(scheme_, authority_); }
  std::string_view path() const noexcept { return piece(authority_, path_); }
  std::string_view upgrade() const noexcept { return piece(path_, upgrade_); }
  std::string_view lines() const noexcept { return piece(upgrade_, text_.size()); }
  const std::optional<std::uint64_t>& length() const noexcept { return length_; }
  bool expects_continue() const noexcept { return expects_continue_; }
  bool accepts_trailers() const noexcept { return accepts_trailers_; }

 private:
  std::string_view piece(std::size_t from, std::size_t end) const noexcept {
    return std::string_view(text_).substr(from, end - from);
  }

  std::string text_;
  std::size_t method_ = 0, scheme_ = 0, authority_ = 0, path_ = 0, upgrade_ = 0;  // where each piece ends
  std::optional<std::uint64_t> length_;
  bool expects_continue_ = false;
  bool accepts_trailers_ = false;
};

class CallState {
 public:
  // Returns the handle. Call it once.
  Call handle() noexcept {
    has_handle_ = true;
    return Call(*this);
  }
  bool is_open() const noexcept { return place != nullptr; }

  // Keeps a part of the request body until it is sent. Bytes before `body_sent` stay, so that they can be sent again,
  // until the body would exceed a window.
  void hold(BodyPart part);
  // Frees the body: nothing of it will be sent again.
  void drop_body() noexcept;
  std::string_view waiting_body() const noexcept { return std::string_view(body).substr(body_sent); }
  // The whole request is in `head`, `body` and `trailers`: it can be sent (again) from its beginning.
  bool is_repeatable() const noexcept { return body_kept; }
  // True if there is, or may be, a body.
  bool has_body() const noexcept { return !body_last || !body.empty() || !trailers.empty(); }

  // Callbacks. The ones that end the call take it from its place first.
  void deliver_interim(const ResponseHead& response) { owner->informed(response); }
  // `response` is null after the first part.
  void deliver(const ResponseHead* response, BodyPart part);
  // The same for the last part of a tunnel's one direction: the call stays open.
  void deliver_open(BodyPart part) { owner->body(part); }
  void deliver_drained();
  void fail(CallFailure failure);
  // Takes it from its place without a callback.
  void leave() noexcept;

  // due() returns when the call times out if nothing happens before. That time may move earlier, but never to less than
  // shortest() from now.
  Time due() const noexcept;
  Duration shortest() const noexcept;

  Call::Owner* owner = nullptr;
  CallPlace* place = nullptr;  // null: over
  CallText head;
  CallOptions options;

  std::string body;
  std::size_t body_sent = 0;    // of `body`
  std::size_t undrained = 0;    // written by the owner and not reported as drained
  std::size_t left = 0;         // of those, what has left
  std::size_t credited = 0;     // bytes at the start of `body` that were reported in an earlier attempt
  std::string trailers;         // of the request, as lines
  bool body_kept = true;        // `body` has everything from the first byte
  bool body_last = false;       // the owner has written everything
  bool response_begun = false;  // the owner has the head
  bool retried = false;
  bool tunnel = false;
  std::size_t unconsumed = 0;  // response bytes that the owner has and did not return

  Error why{Fault::internal, {}};  // why the last attempt failed, if it may be repeated

  std::int32_t stream = 0;     // HTTP/2
  std::uint64_t position = 0;  // HTTP/2: its head is not before this byte of the connection's output
  Time waits_since{};          // for a connection
  Time progress{};             // of the last byte either way
  std::size_t live_index = 0;  // for CallStates

 private:
  friend class Call;
  friend class CallStates;
  CallState() = default;
  void release_handle() noexcept;
  void recycle() noexcept;

  bool has_handle_ = false;
  std::shared_ptr<CallStates*> home_;  // null inside once the pool is gone
};

// Creates calls and reuses their memory. Lists all open calls.
class CallStates {
 public:
  CallStates();
  // Ends every call without a callback. Handles may outlive it.
  ~CallStates();
  CallStates(const CallStates&) = delete;
  CallStates& operator=(const CallStates&) = delete;

  // Creates a call. Give it to a place next.
  CallState& take(const CallHead& head, BodyPart first, Call::Owner& owner, const CallOptions& options, Time now);
  const std::vector<CallState*>& live() const noexcept { return live_; }

 private:
  friend class CallState;
  std::shared_ptr<CallStates*> self_;
  std::vector<CallState*> live_;
  std::vector<std::unique_ptr<CallState>> spare_;
};

}  // namespace weir::http
