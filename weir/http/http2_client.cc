#include "weir/http/http2_client.h"

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

using Kind = Http2Event::Kind;

// Unsent bytes beyond which no more are written: the rest stays with the calls.
constexpr std::size_t kOutputBytes = 64u << 10;

// nghttp2 has checked the pseudo-fields.
bool read_head(std::span<const HttpHeader> fields, bool has_content, ResponseHead& head) {
  head.status = 0;
  head.reason = {};
  head.content_length.reset();
  head.framing = {};
  head.headers.clear();
  for (const HttpHeader& field : fields) {
    const char* const end = field.value.data() + field.value.size();
    if (field.name == ":status") {
      const auto [rest, fault] = std::from_chars(field.value.data(), end, head.status);
      if (fault != std::errc{} || rest != end) return false;
      continue;
    }
    if (head.headers.full()) return false;
    head.headers.push_back(field);
    if (field.name != "content-length") continue;
    std::uint64_t length = 0;
    const auto [rest, fault] = std::from_chars(field.value.data(), end, length);
    if (fault != std::errc{} || rest != end) return false;
    head.content_length = length;
  }
  if (has_content) head.framing.content = head.content_length ? HttpContent::length : HttpContent::chunked;
  head.framing.length = head.content_length.value_or(0);
  return head.status >= 100 && head.status != 101;
}

}  // namespace

Http2Client::Http2Client(Output& out, ClientShared& shared)
    : out_(out), shared_(shared), http2_(Http2::Role::client, shared.http2, *this) {
  want_fill();
}

bool Http2Client::can_begin() const noexcept {
  const std::size_t allowed = has_settings_ ? http2_.streams_max() : bounds::http2_streams_before_settings;
  // Streams that we reset count until nghttp2 has closed them.
  return end_ == ClientEnd::open && !going_away_ && http2_.streams() < std::min(allowed, bounds::http2_streams_max);
}

void Http2Client::begin(CallState& call, Time now) {
  WEIR_ASSERT(can_begin());
  call.place = this;
  call.waits_since = Time::max();
  call.progress = now;
  call.body_sent = 0;
  call.position = kNotWritten;
  if (streams_.empty()) {
    heard_ = now;
    pinged_ = false;
  }
  if (!call.head.upgrade().empty()) {
    call.why = {Fault::invalid, "HTTP/2 has no Upgrade"};
    unprocessed_.push_back(&call);
    return;
  }
  std::string length;
  HttpHeader extra[3];
  std::size_t extras = 0;
  if (call.head.length()) {
    append_integer(static_cast<std::int64_t>(*call.head.length()), length);
    extra[extras++] = {"content-length", length};
  }
  if (call.head.expects_continue()) extra[extras++] = {"expect", "100-continue"};
  if (call.head.accepts_trailers()) extra[extras++] = {"te", "trailers"};
  const Result<std::int32_t> stream = http2_.request({call.head.method(),
                                                      call.head.scheme(),
                                                      call.head.authority(),
                                                      call.head.path(),
                                                      {call.head.lines(), {extra, extras}},
                                                      call.has_body()});
  if (!stream) {
    if (stream.error().fault == Fault::unavailable) going_away_ = true;
    call.why = stream.error();
    unprocessed_.push_back(&call);
    out_.touch();
    return;
  }
  call.stream = *stream;
  streams_.emplace(*stream, &call);
  not_written_.push_back(*stream);
  if (!call.trailers.empty()) http2_.trailers(*stream, {call.trailers, {}});
  want_fill();
}

void Http2Client::write(CallState& call, BodyPart part) {
  call.hold(part);
  if (find(call.stream) != &call) return;
  if (part.last && !call.trailers.empty()) http2_.trailers(call.stream, {call.trailers, {}});
  http2_.wake(call.stream);
  want_fill();
}

void Http2Client::consumed(CallState& call, std::size_t bytes) {
  http2_.consumed(call.stream, bytes);
  want_fill();
}

void Http2Client::cancel(CallState& call) {
  if (find(call.stream) == &call) {
    stop(call, Http2Code::cancel);
  } else {
    std::erase(unprocessed_, &call);
  }
}

bool Http2Client::has_sent(const CallState& call) const noexcept {
  return find(call.stream) == &call && call.position != kNotWritten && taken_ > call.position;
}

Http2::Source::Body Http2Client::waiting(std::int32_t stream) {
  const CallState* const call = find(stream);
  if (call == nullptr) return {{}, false};  // canceled: a reset follows, and no end that looks like a complete request
  return {call->waiting_body(), call->body_last};
}

void Http2Client::sent(std::int32_t stream, std::size_t bytes) {
  CallState* const call = find(stream);
  if (call == nullptr) return;
  call->body_sent += bytes;
  if (call->body_sent <= call->credited) return;  // reported in an earlier attempt
  if (call->left == 0) drained_.push_back(stream);
  call->left += call->body_sent - call->credited;
  call->credited = call->body_sent;
}

void Http2Client::sent(std::uint64_t taken, Time) {
  taken_ = taken;
}

CallState* Http2Client::find(std::int32_t stream) const noexcept {
  const auto at = streams_.find(stream);
  return at == streams_.end() ? nullptr : at->second;
}

void Http2Client::want_fill() {
  out_.wants_fill = true;
  out_.touch();
}

void Http2Client::fill(std::size_t unsent, Time now) {
  if (end_ == ClientEnd::close || unsent >= kOutputBytes) return;
  const std::size_t before = out_.bytes.size();
  const std::size_t bytes_max = before + kOutputBytes - unsent;
  Events events;
  events.swap(events_);
  events.clear();
  http2_.fill(out_.bytes, bytes_max, events);
  for (const std::int32_t stream : std::exchange(not_written_, {})) {
    if (CallState* const call = find(stream)) call->position = written_;
  }
  written_ += out_.bytes.size() - before;
  out_.wants_fill = out_.bytes.size() >= bytes_max;
  dispatch(events, now);
  for (const std::int32_t stream : std::exchange(drained_, {})) {
    CallState* const call = find(stream);
    if (call == nullptr) continue;
    call->progress = now;
    call->deliver_drained();
  }
  events_.swap(events);
  if (!http2_.finished() || end_ != ClientEnd::open) return;
  end_ = ClientEnd::finish;  // after a GOAWAY: ours, because the server broke a rule, or the server's
  fail_all(bad_response("the server broke a rule of HTTP/2"));
}

std::size_t Http2Client::receive(std::string_view bytes, Time now) {
  heard_ = now;
  pinged_ = false;
  Events events;
  events.swap(events_);
  for (std::string_view rest = bytes; !rest.empty() && end_ == ClientEnd::open;) {
    const std::string_view part = rest.substr(0, bounds::http2_receive_bytes_max);
    rest.remove_prefix(part.size());
    events.clear();
    const Result<void> read = http2_.receive(part, now, events);
    dispatch(events, now);
    if (read) continue;
    end_ = ClientEnd::finish;
    fail_all(bad_response(read.error().detail));
  }
  events_.swap(events);
  want_fill();
  return bytes.size();
}

void Http2Client::dispatch(const Events& events, Time now) {
  for (std::size_t i = 0; i < events.size(); ++i) {
    const Http2Event& event = events[i];
    if (event.kind == Kind::settings) has_settings_ = true;
    if (event.kind == Kind::goaway) going_away_ = true;
    CallState* const call = event.stream == 0 ? nullptr : find(event.stream);
    if (call == nullptr || event.kind == Kind::goaway) continue;
    call->progress = now;
    if (event.kind == Kind::reset) {
      fail_stream(*call, event.code);
    } else if (event.kind != Kind::closed) {
      i = dispatch_response(events, i, *call);
    }
  }
}

// Passes events[at] on, together with those behind it that belong to the same part. Returns the last of them.
std::size_t Http2Client::dispatch_response(const Events& events, std::size_t at, CallState& call) {
  const auto follows = [&](Kind kind) {
    return at + 1 < events.size() && events[at + 1].kind == kind && events[at + 1].stream == call.stream;
  };
  const Http2Event* const head = events[at].kind == Kind::head ? &events[at] : nullptr;
  if (head != nullptr && follows(Kind::data)) ++at;
  BodyPart part;
  if (events[at].kind == Kind::data) part.bytes = events[at].bytes;
  if (events[at].kind != Kind::trailers && follows(Kind::trailers)) ++at;
  if (events[at].kind == Kind::trailers) part.trailers = events[at].fields;
  if (events[at].kind != Kind::end && follows(Kind::end)) ++at;
  part.last = events[at].kind == Kind::end;

  if (head != nullptr && !read_head(head->fields, !part.last, shared_.head)) {
    stop(call, Http2Code::protocol_error);
    call.fail({bad_response("the head is not valid"), true, false});
    return at;
  }
  if (head != nullptr && shared_.head.status < 200) {
    call.deliver_interim(shared_.head);
    return at;
  }
  if (part.last) {
    // A server may respond before it has read the request: the rest of that is not wanted (RFC 9113 §8.1).
    const bool request_complete = call.body_last && call.waiting_body().empty();
    if (request_complete) {
      streams_.erase(call.stream);
    } else {
      stop(call, Http2Code::cancel);
    }
  }
  call.deliver(head != nullptr ? &shared_.head : nullptr, part);
  return at;
}

void Http2Client::stop(const CallState& call, Http2Code code) {
  http2_.reset(call.stream, code);
  streams_.erase(call.stream);
  want_fill();
}

void Http2Client::fail_stream(CallState& call, std::uint32_t code) {
  if (code == static_cast<std::uint32_t>(Http2Code::refused_stream)) {
    give_up(call, {Fault::unavailable, "the server refused the stream"}, false);
    return;
  }
  std::string sentence = "the stream was reset with code ";
  append_integer(code, sentence);
  const bool broke_rules = code == static_cast<std::uint32_t>(Http2Code::protocol_error) ||
                           code == static_cast<std::uint32_t>(Http2Code::no_error);
  give_up(call, broke_rules ? bad_response(sentence) : Error{Fault::unavailable, sentence}, true);
}

void Http2Client::give_up(CallState& call, const Error& why, bool was_sent) {
  streams_.erase(call.stream);
  if (!was_sent && call.is_repeatable() && !call.response_begun) {
    call.why = why;
    unprocessed_.push_back(&call);
  } else {
    call.fail({why, was_sent, false});
  }
}

void Http2Client::fail_all(const Error& why) {
  std::vector<std::int32_t> open;
  for (const auto& [stream, call] : streams_) open.push_back(stream);
  for (const std::int32_t stream : open) {
    CallState* const call = find(stream);
    if (call != nullptr) give_up(*call, why, has_sent(*call));
  }
}

void Http2Client::end_of_input(Time) {
  end_ = ClientEnd::close;
  fail_all({Fault::unavailable, "the server closed the connection"});
}

void Http2Client::lost(const Error& why) {
  end_ = ClientEnd::close;
  fail_all(why);
}

Time Http2Client::deadline() const noexcept {
  if (streams_.empty() || end_ != ClientEnd::open) return Time::max();
  return heard_ + (pinged_ ? bounds::http2_ping_time_max : bounds::http2_silence_max);
}

void Http2Client::expire(Time now) {
  if (now < deadline()) return;
  if (pinged_) {
    end_ = ClientEnd::close;
    fail_all({Fault::timeout, "the server does not answer a PING"});
    out_.touch();
    return;
  }
  pinged_ = true;
  heard_ = now;
  http2_.ping();
  want_fill();
}

void Http2Client::shut_down() {
  WEIR_ASSERT(streams_.empty());
  going_away_ = true;
  http2_.go_away();
  want_fill();
}

}  // namespace weir::http
