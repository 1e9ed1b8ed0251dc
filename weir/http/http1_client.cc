#include "weir/http/http1_client.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string>
#include <utility>

#include "weir/base/assert.h"
#include "weir/base/text.h"
#include "weir/wire/http1.h"

namespace weir::http {
namespace {

// "Keep-Alive: timeout=5, max=100".
Duration keep_alive_of(const ResponseHead& head) noexcept {
  const HttpHeader* const field = head.headers.find("keep-alive");
  if (field == nullptr) return Duration::max();
  constexpr std::string_view kTimeout = "timeout=";
  const std::size_t at = field->value.find(kTimeout);
  if (at == field->value.npos) return Duration::max();
  const std::string_view digits = field->value.substr(at + kTimeout.size());
  std::uint32_t seconds = 0;
  const auto [rest, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), seconds);
  return fault == std::errc{} ? std::chrono::seconds{seconds} : Duration::max();
}

// A body where there must be none (RFC 9110 §15.3.5): if the server sends one, the next response begins inside it.
bool announces_forbidden_body(const ResponseHead& head) noexcept {
  if (head.status != 204) return false;
  return head.content_length.value_or(0) > 0 || head.headers.find("transfer-encoding") != nullptr;
}

}  // namespace

void Http1Client::begin(CallState& call, Time now) {
  WEIR_ASSERT(can_begin());
  call_ = &call;
  call.place = this;
  call.waits_since = Time::max();
  call.progress = now;
  phase_ = Phase::head;
  first_byte_ = written_;
  searched_ = 0;
  interim_left_ = bounds::http_interim_responses_max;
  reusable_ = peer_done_ = bad_length_ = false;
  request_done_ = false;
  unsent_parts_.clear();
  const std::size_t before = out_.bytes.size();
  write_head(call);
  written_ += out_.bytes.size() - before;
  call.body_sent = 0;
  const std::size_t uncredited = call.body.size() - std::min(call.credited, call.body.size());
  write_body(call, {call.body, call.body_last, {}}, uncredited);
  out_.touch();
}

void Http1Client::write_head(const CallState& call) {
  const CallText& head = call.head;
  std::string& out = out_.bytes;
  out.append(head.method()).append(1, ' ').append(head.path()).append(" HTTP/1.1\r\nHost: ").append(head.authority());
  out.append("\r\n").append(head.lines());
  const bool whole = call.body_last && call.trailers.empty();
  if (!head.upgrade().empty()) out.append("Connection: Upgrade\r\nUpgrade: ").append(head.upgrade()).append("\r\n");
  if (head.length() || whole) {
    framing_ = RequestFraming::length;
    length_left_ = head.length().value_or(call.body.size());
    // A method that usually has content sends the length even if it is 0 (RFC 9110 §8.6).
    const std::string_view method = head.method();
    if (head.length() || length_left_ > 0 || method == "POST" || method == "PUT" || method == "PATCH") {
      out += "Content-Length: ";
      append_integer(static_cast<std::int64_t>(length_left_), out);
      out += "\r\n";
    }
  } else if (!head.upgrade().empty()) {
    framing_ = RequestFraming::none;  // what is written belongs to the tunnel
  } else {
    framing_ = RequestFraming::chunked;
    out += "Transfer-Encoding: chunked\r\n";
  }
  if (head.expects_continue()) out += "Expect: 100-continue\r\n";
  out += "\r\n";
}

// `uncredited`: how many of the bytes are to be reported as drained.
void Http1Client::write_body(CallState& call, BodyPart part, std::size_t uncredited) {
  std::string& out = out_.bytes;
  const std::size_t before = out.size();
  switch (framing_) {
    case RequestFraming::none:
      return;
    case RequestFraming::length:
      bad_length_ = part.bytes.size() > length_left_ || (part.last && part.bytes.size() < length_left_);
      if (bad_length_) return;
      length_left_ -= part.bytes.size();
      out.append(part.bytes);
      break;
    case RequestFraming::chunked:
      write_chunk(part.bytes, out);
      if (part.last) out.append("0\r\n").append(call.trailers).append("\r\n");
      break;
    case RequestFraming::raw:
      out.append(part.bytes);
      break;
  }
  request_done_ = part.last;
  written_ += out.size() - before;
  if (uncredited == 0) return;
  if (unsent_parts_.size() < bounds::http_unsent_parts_max) {
    unsent_parts_.push_back({written_, uncredited});
  } else {
    unsent_parts_.back().end = written_;
    unsent_parts_.back().bytes += uncredited;
  }
}

void Http1Client::write(CallState& call, BodyPart part) {
  const bool holds = &call != call_ || framing_ == RequestFraming::none;
  if (holds || !has_sent(call)) {
    call.hold(part);
  } else {
    call.hold({{}, part.last, part.trailers});
  }
  if (holds) return;
  write_body(call, part, part.bytes.size());
  out_.touch();
}

void Http1Client::consumed(CallState& call, std::size_t bytes) {
  if (call.unconsumed + bytes >= bounds::http_window_bytes) out_.touch();
}

void Http1Client::cancel(CallState& call) {
  if (&call == call_) {
    release();
    end_ = ClientEnd::close;
    out_.touch();
  } else {
    std::erase(unprocessed_, &call);
  }
}

bool Http1Client::has_sent(const CallState& call) const noexcept {
  return &call == call_ && taken_ > first_byte_;
}

void Http1Client::sent(std::uint64_t taken, Time now) {
  if (taken == taken_) return;
  taken_ = taken;
  if (call_ == nullptr) return;
  call_->progress = now;
  if (framing_ != RequestFraming::none && call_->is_repeatable() && has_sent(*call_)) call_->drop_body();
  while (!unsent_parts_.empty() && unsent_parts_.front().end <= taken_) {
    call_->left += unsent_parts_.front().bytes;
    unsent_parts_.pop_front();
  }
  call_->deliver_drained();
}

void Http1Client::fill(std::size_t, Time) {
  if (call_ == nullptr) return;
  if (bad_length_) {
    fail({Fault::invalid, "the request body is not as long as announced"});
  } else if (phase_ == Phase::tunnel && request_done_ && peer_done_) {
    CallState* const call = release();
    end_ = ClientEnd::finish;
    call->leave();
  }
}

std::size_t Http1Client::credit() const noexcept {
  return bounds::http_window_bytes - std::min(bounds::http_window_bytes, call_->unconsumed);
}

bool Http1Client::reading() const noexcept {
  return call_ == nullptr || credit() > 0;
}

std::size_t Http1Client::receive(std::string_view bytes, Time now) {
  if (bytes.empty()) return 0;
  const std::size_t used = call_ == nullptr ? 0 : receive_call(bytes, now);
  left_over_ = used < bytes.size();
  if (call_ == nullptr) {  // no call is open
    if (left_over_) end_ = ClientEnd::close;
    return bytes.size();
  }
  if (input_ended_) finish_input();
  return used;
}

std::size_t Http1Client::receive_call(std::string_view bytes, Time now) {
  call_->progress = now;
  const ResponseHead* head = nullptr;
  std::size_t used = 0;
  if (phase_ == Phase::head) {
    bool complete = false;
    used = receive_head(bytes, complete);
    if (!complete) return used;
    head = &shared_.head;
  }
  bytes.remove_prefix(used);
  return used + (phase_ == Phase::tunnel ? receive_tunnel(bytes, head) : receive_body(bytes, head));
}

// Sets `complete` if shared_.head has the final response.
std::size_t Http1Client::receive_head(std::string_view bytes, bool& complete) {
  std::size_t used = 0;
  while (call_ != nullptr) {
    const std::string_view rest = bytes.substr(used);
    // A head that arrives byte by byte is not parsed for every byte.
    const bool no_new_line = searched_ > 0 && rest.find('\n', searched_) == rest.npos;
    if (no_new_line && rest.size() < bounds::http_request_line_bytes_max) {
      searched_ = rest.size();
      return used;
    }
    ResponseHead& head = shared_.head;
    const HeadResult parsed = parse_response_head(rest, call_->head.method() == "HEAD", head);
    if (parsed.problem) {
      refuse(parsed.problem.sentence);
      return used;
    }
    searched_ = parsed.size == 0 ? rest.size() : 0;
    if (parsed.size == 0) return used;
    used += parsed.size;
    if (head.status >= 200 || head.status == 101) {
      complete = begin_response(head);
      return used;
    }
    if (interim_left_-- == 0) {
      refuse("there are too many interim responses");
      return used;
    }
    call_->deliver_interim(head);
  }
  return used;
}

bool Http1Client::begin_response(const ResponseHead& head) {
  if (head.status == 101) {
    if (call_->head.upgrade().empty()) {
      refuse("status 101 to a request without Upgrade");
      return false;
    }
    phase_ = Phase::tunnel;
    framing_ = RequestFraming::raw;
    call_->tunnel = true;
    write_body(*call_, {call_->body, call_->body_last, {}}, call_->body.size());
    call_->drop_body();
    out_.touch();
    return true;
  }
  if (head.framing.content == HttpContent::length && head.framing.length == std::numeric_limits<std::uint64_t>::max()) {
    refuse("Content-Length is too large");
    return false;
  }
  phase_ = Phase::body;
  body_ = HttpBody(head.framing, std::numeric_limits<std::uint64_t>::max());
  reusable_ = head.framing.keep_alive && !announces_forbidden_body(head);
  keep_alive_ = keep_alive_of(head);
  return true;
}

// Holds one part back, so that the last one is known to be the last.
std::size_t Http1Client::receive_body(std::string_view bytes, const ResponseHead* head) {
  std::size_t used = 0;
  BodyPart held;
  while (!body_.done()) {
    const std::size_t room = credit() - held.bytes.size();
    if (room == 0) break;
    const HttpBody::BodyPiece piece = body_.next(bytes.substr(used), room);
    if (piece.problem) {
      // What came before is delivered, so that the result does not depend on how the bytes were split.
      if ((head == nullptr && held.bytes.empty()) || deliver(head, held)) refuse(piece.problem.sentence);
      return used;
    }
    if (piece.consumed == 0) break;
    used += piece.consumed;
    if (piece.content.empty()) continue;
    if (!held.bytes.empty() && !deliver(head, held)) return used;
    held.bytes = piece.content;
  }
  if (body_.done()) {
    const std::vector<HttpHeader> trailers = body_.trailers();
    deliver(head, {held.bytes, true, trailers});
  } else if (head != nullptr || !held.bytes.empty()) {
    deliver(head, held);
  }
  return used;
}

std::size_t Http1Client::receive_tunnel(std::string_view bytes, const ResponseHead* head) {
  const std::string_view part = bytes.substr(0, credit());
  if (head != nullptr || !part.empty()) deliver(head, {part, false, {}});
  return part.size();
}

// Returns false if the call is over.
bool Http1Client::deliver(const ResponseHead*& head, BodyPart part) {
  CallState& call = *call_;
  if (part.last) release();
  call.deliver(std::exchange(head, nullptr), part);
  return call_ != nullptr;
}

void Http1Client::end_of_input(Time) {
  input_ended_ = true;
  finish_input();
}

void Http1Client::finish_input() {
  if (call_ == nullptr) {
    end_ = ClientEnd::close;
    return;
  }
  if (left_over_ && credit() == 0) return;  // the owner must consume that first
  const ResponseHead* no_head = nullptr;
  switch (phase_) {
    case Phase::idle:
    case Phase::head:
      fail({Fault::unavailable, "the server closed the connection before it responded"});
      return;
    case Phase::body:
      if (body_.complete_at_close() && !left_over_) {
        deliver(no_head, {{}, true, {}});
      } else {
        fail({Fault::unavailable, "the server closed the connection within the response"});
      }
      return;
    case Phase::tunnel:
      if (std::exchange(peer_done_, true)) return;
      if (request_done_) {
        deliver(no_head, {{}, true, {}});
        end_ = ClientEnd::finish;
      } else {
        call_->deliver_open({{}, true, {}});
      }
      return;
  }
}

void Http1Client::lost(const Error& why) {
  end_ = ClientEnd::close;
  if (call_ != nullptr) fail(why);
}

void Http1Client::fail(Error why) {
  const bool was_sent = has_sent(*call_);
  CallState& call = *release();
  end_ = ClientEnd::close;
  if (!was_sent && call.is_repeatable() && !bad_length_) {
    call.why = std::move(why);
    unprocessed_.push_back(&call);
  } else {
    call.fail({std::move(why), was_sent, false});
  }
}

void Http1Client::refuse(std::string_view sentence) {
  CallState& call = *release();
  end_ = ClientEnd::close;
  call.fail({bad_response(sentence), true, false});
}

// The call is over; decides whether another one may begin.
CallState* Http1Client::release() noexcept {
  const bool complete =
      request_done_ || framing_ == RequestFraming::none || (framing_ == RequestFraming::length && length_left_ == 0);
  if (!reusable_ || !complete || input_ended_ || out_.unsent() > 0) end_ = ClientEnd::close;
  phase_ = Phase::idle;
  unsent_parts_.clear();
  return std::exchange(call_, nullptr);
}

}  // namespace weir::http
