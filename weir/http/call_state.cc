#include "weir/http/call_state.h"

#include <algorithm>
#include <utility>

#include "weir/base/assert.h"
#include "weir/base/text.h"
#include "weir/wire/http1.h"

namespace weir::http {
namespace {

// True for fields that the client sets itself or takes from CallHead.
bool is_decided_by_client(std::string_view name) noexcept {
  return is_framing_field(name) || same_word(name, "host") || same_word(name, "expect");
}

std::string milliseconds(Duration duration) {
  std::string text;
  append_integer(std::chrono::ceil<std::chrono::milliseconds>(duration).count(), text);
  return text + " ms";
}

}  // namespace

Error bad_response(std::string_view sentence) {
  return {Fault::invalid, "bad response: " + std::string(sentence), 0, "bad_backend_answer"};
}

void CallText::assign(const CallHead& head) {
  text_.assign(head.method);
  method_ = text_.size();
  scheme_ = text_.append(head.scheme).size();
  authority_ = text_.append(head.authority).size();
  path_ = text_.append(head.path.empty() ? std::string_view("/") : head.path).size();
  upgrade_ = text_.append(head.upgrade).size();
  for (std::string_view lines = head.fields.lines; !lines.empty();) {
    const std::size_t end = std::min(lines.find("\r\n"), lines.size());
    const std::string_view line = lines.substr(0, end);
    lines.remove_prefix(std::min(end + 2, lines.size()));
    if (!is_decided_by_client(line.substr(0, line.find(':')))) text_.append(line).append("\r\n");
  }
  for (const HttpHeader& field : head.fields.list) {
    if (!is_decided_by_client(field.name)) write_field(field.name, field.value, text_);
  }
  length_ = head.length;
  expects_continue_ = head.expect_continue;
  accepts_trailers_ = head.accepts_trailers;
}

void CallState::hold(BodyPart part) {
  if (body.size() + part.bytes.size() > bounds::http_window_bytes && body_sent > 0) {
    body.erase(0, body_sent);
    credited -= std::min(credited, body_sent);
    body_sent = 0;
    body_kept = false;
  }
  body.append(part.bytes);
  if (!part.last) return;
  body_last = true;
  for (const HttpHeader& field : part.trailers) {
    if (!is_decided_by_client(field.name)) write_field(field.name, field.value, trailers);
  }
}

void CallState::drop_body() noexcept {
  body_kept = false;
  body_sent = credited = 0;
  empty_spare_text(body);
}

void CallState::deliver(const ResponseHead* response, BodyPart part) {
  Call::Owner& to = *owner;
  unconsumed += part.bytes.size();
  response_begun = true;
  if (part.last) leave();
  if (response != nullptr) {
    to.head(*response, part);
  } else {
    to.body(part);
  }
}

void CallState::deliver_drained() {
  const std::size_t bytes = std::exchange(left, 0);
  if (bytes == 0) return;
  WEIR_ASSERT(bytes <= undrained);
  undrained -= bytes;
  owner->drained(bytes);
}

void CallState::fail(CallFailure failure) {
  Call::Owner& to = *owner;
  failure.response_begun = response_begun;
  leave();
  to.failed(failure);
}

void CallState::leave() noexcept {
  if (place == nullptr) return;
  place = nullptr;
  owner = nullptr;
  CallStates& all = **home_;
  all.live_[live_index] = all.live_.back();
  all.live_[live_index]->live_index = live_index;
  all.live_.pop_back();
  if (!has_handle_) recycle();
}

void CallState::release_handle() noexcept {
  has_handle_ = false;
  if (place == nullptr) recycle();
}

void CallState::recycle() noexcept {
  CallStates* const all = *home_;
  std::unique_ptr<CallState> self(this);
  if (all == nullptr || all->spare_.size() >= bounds::http_spare_calls_max) return;
  options = {};
  head.clear();
  empty_spare_text(body);
  empty_spare_text(trailers);
  all->spare_.push_back(std::move(self));
}

Time CallState::due() const noexcept {
  const auto after = [](Time since, Duration time) { return time >= Time::max() - since ? Time::max() : since + time; };
  Time when = Time::max();
  if (waits_since != Time::max()) {
    when = after(waits_since, options.connect_timeout);
  } else if (response_begun) {
    when = after(progress, options.idle_timeout);
  } else if (body_last || undrained > 0 || !head.upgrade().empty()) {
    when = after(progress, options.response_timeout);
  }
  return std::min(when, options.deadline);
}

Duration CallState::shortest() const noexcept {
  return std::min({options.connect_timeout, options.response_timeout, options.idle_timeout});
}

Error CallPlace::timed_out(const CallState& call) const {
  const CallOptions& options = call.options;
  if (call.due() == options.deadline) return {Fault::timeout, "the call took longer than its deadline allows"};
  if (call.response_begun) return {Fault::timeout, "no byte for " + milliseconds(options.idle_timeout)};
  return {Fault::timeout, "no response within " + milliseconds(options.response_timeout)};
}

CallStates::CallStates() : self_(std::make_shared<CallStates*>(this)) {}

CallStates::~CallStates() {
  while (!live_.empty()) live_.back()->leave();
  *self_ = nullptr;
}

CallState& CallStates::take(const CallHead& head, BodyPart first, Call::Owner& owner, const CallOptions& options,
                            Time now) {
  std::unique_ptr<CallState> state;
  if (spare_.empty()) {
    state.reset(new CallState);
    state->home_ = self_;
  } else {
    state = std::move(spare_.back());
    spare_.pop_back();
  }
  CallState& call = *state.release();
  call.owner = &owner;
  call.head.assign(head);
  call.options = options;
  call.body_sent = call.left = call.credited = call.unconsumed = 0;
  call.body_kept = true;
  call.body_last = call.response_begun = call.retried = call.tunnel = false;
  call.undrained = first.bytes.size();
  call.stream = 0;
  call.waits_since = call.progress = now;
  call.hold(first);
  call.live_index = live_.size();
  live_.push_back(&call);
  return call;
}

}  // namespace weir::http
