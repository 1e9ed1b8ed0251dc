#include "weir/http/call.h"

#include <algorithm>
#include <utility>

#include "weir/base/assert.h"
#include "weir/base/bounds.h"
#include "weir/http/call_state.h"

namespace weir::http {

Call::Call(Call&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}

Call& Call::operator=(Call&& other) noexcept {
  if (this == &other) return *this;
  cancel();
  state_ = std::exchange(other.state_, nullptr);
  return *this;
}

Call::~Call() {
  cancel();
}

Call::operator bool() const noexcept {
  return state_ != nullptr && state_->is_open();
}

void Call::write(BodyPart part) {
  if (!*this) return;
  WEIR_ASSERT(!state_->body_last);
  state_->undrained += part.bytes.size();
  state_->place->write(*state_, part);
}

std::size_t Call::room() const noexcept {
  if (!*this) return 0;
  return bounds::http_window_bytes - std::min(bounds::http_window_bytes, state_->undrained);
}

void Call::consumed(std::size_t bytes) {
  if (!*this) return;
  WEIR_ASSERT(bytes <= state_->unconsumed);
  state_->unconsumed -= bytes;
  state_->place->consumed(*state_, bytes);
}

void Call::cancel() noexcept {
  CallState* const state = std::exchange(state_, nullptr);
  if (state == nullptr) return;
  if (state->is_open()) {
    state->place->cancel(*state);
    state->leave();
  }
  state->release_handle();
}

}  // namespace weir::http
