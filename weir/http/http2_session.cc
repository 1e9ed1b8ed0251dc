#include "weir/http/http2_session.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "weir/base/assert.h"
#include "weir/base/bounds.h"
#include "weir/http/error_reply.h"
#include "weir/protocol/bad_request.h"

namespace weir::http {
namespace {

// The wire layer does not know the listener's bounds. RFC 9113 §6.5.2 defines the size of a list of fields.
HttpProblem check_size(std::span<const HttpHeader> fields, const HttpLimits& limits) noexcept {
  std::size_t bytes = 0;
  for (const HttpHeader& field : fields) {
    bytes += field.name.size() + field.value.size() + 32;
    if (field.name == ":path" && field.value.size() > limits.line_bytes_max) return limits.line_too_long();
  }
  return bytes > limits.head_bytes_max ? limits.head_too_long() : HttpProblem{};
}

constexpr HttpProblem kNoTunnels{405, "CONNECT is not supported"};
constexpr HttpProblem kHeadTooLarge{431, "the head is longer than 64 KiB, or there are more than 100 headers"};

constexpr Http2Event::Kind kHead = Http2Event::Kind::head;
constexpr Http2Event::Kind kData = Http2Event::Kind::data;
constexpr Http2Event::Kind kEnd = Http2Event::Kind::end;

}  // namespace

Http2Session::Http2Session(HttpShared& shared, Handler& handler, const NewConnection& connection)
    : host_(shared, handler, connection.output, connection.peer, connection.tls),
      idle_timeout_(connection.idle_timeout),
      max_age_(connection.max_age),
      http2_(Http2::Role::server, shared.http2, *this) {}

Http2Session::~Http2Session() {
  lost();
}

// --- In ---

Result<std::size_t> Http2Session::receive(std::string_view bytes, Queries& queries, Now now) {
  const ExchangeHost::Asking asking(host_, queries, now);
  if (idle_since_ == Time::max() && streams_.empty()) idle_since_ = now.time;
  if (old_at_ == Time::max() && max_age_ > Duration::zero()) old_at_ = now.time + max_age_;
  std::vector<Http2Event>& events = host_.shared.http2_events;
  std::size_t used = 0;
  while (used < bytes.size() && !queries.full() && reading()) {
    const std::string_view part = bytes.substr(used, bounds::http2_receive_bytes_max);
    events.clear();
    const Result<void> result =
        used == 0 ? http2_.receive(part, now.time, events) : http2_.receive_more(part, now.time, events);
    used += part.size();
    if (!result) {
      failed_ = true;
      log_bad_request(host_.shared.log, host_.peer, result.error().detail);
      events.clear();
      http2_.fill(host_.output.bytes, host_.output.bytes.size() + bounds::http_window_bytes, events);
      host_.output.touch();
      return result.error();
    }
    collect(events);
    dispatch(events);
  }
  touch();
  return used;
}

// Opens an exchange for every new stream and notes what else arrived with its head.
void Http2Session::collect(std::span<const Http2Event> events) {
  for (const Http2Event& event : events) {
    if (event.kind == kHead) {
      Http2Exchange* const exchange =
          buffered_ < bounds::http_response_bytes_max ? host_.shared.exchanges->take<Http2Exchange>(host_) : nullptr;
      if (exchange == nullptr) {
        http2_.reset(event.stream, Http2Code::refused_stream);
        continue;
      }
      exchange->start(*this, event.stream);
      streams_.insert(event.stream) = exchange;
      continue;
    }
    if (event.kind == Http2Event::Kind::settings || event.stream == 0) continue;
    Http2Exchange* const exchange = find(event.stream);
    if (exchange == nullptr || exchange->begun_) continue;
    switch (event.kind) {
      case kData:
        if (exchange->first_parts_++ == 0) exchange->first_bytes_ = event.bytes;
        break;
      case Http2Event::Kind::trailers:
        exchange->trailers_ = event.fields;
        break;
      case kEnd:
        exchange->first_end_ = true;
        break;
      case Http2Event::Kind::reset:
        finish(*exchange, Ending::canceled);
        break;
      default:
        break;
    }
  }
}

void Http2Session::dispatch(std::span<const Http2Event> events) {
  for (const Http2Event& event : events) {
    if (event.kind == Http2Event::Kind::refused) {
      refuse(event.stream, event.code == 405 ? kNoTunnels : kHeadTooLarge);
      continue;
    }
    if (event.kind == Http2Event::Kind::pong) {
      if (shutdown_ == Shutdown::announced) finish_shutdown();
      continue;
    }
    if (event.stream == 0) continue;
    Http2Exchange* const exchange = find(event.stream);
    if (exchange == nullptr) continue;
    switch (event.kind) {
      case kHead:
        begin(*exchange, event.fields);
        break;
      case kData:
        if (std::exchange(exchange->first_parts_, 0) > 0) break;  // begin() has it
        deliver_body(*exchange, {event.bytes, false});
        break;
      case Http2Event::Kind::trailers:
        exchange->trailers_ = event.fields;
        break;
      case kEnd:
        if (!exchange->request_done_) deliver_body(*exchange, {{}, true, exchange->trailers_});
        break;
      case Http2Event::Kind::reset:
      case Http2Event::Kind::closed:
        finish(*exchange, event.kind == Http2Event::Kind::closed ? Ending::complete
                          : exchange->aborted_                   ? Ending::aborted
                                                                 : Ending::canceled);
        break;
      default:
        break;
    }
  }
}

void Http2Session::begin(Http2Exchange& exchange, std::span<const HttpHeader> fields) {
  exchange.begun_ = true;
  idle_since_ = Time::max();
  const bool whole = exchange.first_end_ && exchange.first_parts_ <= 1;
  const bool has_body = !exchange.first_end_ || exchange.first_parts_ > 0;
  RequestHead& head = host_.shared.head;
  if (const HttpProblem problem = check_size(fields, host_.shared.limits)) return answer(exchange, problem, false);
  if (const HttpProblem problem = check_request(fields, has_body, head)) return answer(exchange, problem, false);
  head.scheme = host_.secure ? "https" : "http";
  exchange.to_head_ = head.method == "HEAD";
  exchange.expects_continue_ = head.expects_continue;
  exchange.request_done_ = whole;
  exchange.unconsumed_ = exchange.first_bytes_.size();
  if (!whole) expect_body(exchange);
  const BodyPart first{exchange.first_bytes_, whole, whole ? exchange.trailers_ : std::span<const HttpHeader>{}};
  exchange.deliver([&](Receiver&) { host_.handler.begin(exchange, head, first); });
  exchange.blocked_ = exchange.unconsumed_ > 0;
  if (whole && !exchange.responded_) http2_.waits_since(exchange.stream_, host_.now.time);
}

void Http2Session::deliver_body(Http2Exchange& exchange, BodyPart part) {
  if (exchange.sealed_ || exchange.discards_) {
    drop_body(exchange, part.bytes.size());
    exchange.request_done_ = exchange.request_done_ || part.last;
    return;
  }
  exchange.unconsumed_ += part.bytes.size();
  exchange.request_done_ = part.last;
  if (part.bytes.size() >= exchange.window_left_) {
    expect_body(exchange);
  } else {
    exchange.window_left_ -= part.bytes.size();
  }
  exchange.deliver([&](Receiver& receiver) { receiver.body(exchange, part); });
  exchange.blocked_ = exchange.unconsumed_ > 0;
  if (part.last && !exchange.responded_) http2_.waits_since(exchange.stream_, host_.now.time);
}

// Restarts the deadline for the next window of the request's body.
void Http2Session::expect_body(Http2Exchange& exchange) {
  exchange.blocked_ = false;
  exchange.window_left_ = host_.shared.limits.body_progress_bytes;
  exchange.body_progress_ = now();
  watch(exchange.body_progress_ + host_.shared.limits.body_time_max);
}

void Http2Session::drop_body(Http2Exchange& exchange, std::size_t bytes) {
  exchange.unconsumed_ -= std::min(bytes, exchange.unconsumed_);
  http2_.consumed(exchange.stream_, bytes);
  touch();
}

void Http2Session::refuse(std::int32_t stream, const HttpProblem& problem) {
  Http2Exchange* const exchange = host_.shared.exchanges->take<Http2Exchange>(host_, ExchangeTable::Use::refusal);
  if (exchange == nullptr) return http2_.reset(stream, Http2Code::refused_stream);
  exchange->start(*this, stream);
  exchange->begun_ = true;
  idle_since_ = Time::max();
  streams_.insert(stream) = exchange;
  answer(*exchange, problem, false);
}

// Answers a request with a problem. `known`: its receiver knows the exchange. From here on it belongs to the session.
void Http2Session::answer(Http2Exchange& exchange, const HttpProblem& problem, bool known) {
  log_bad_request(host_.shared.log, host_.peer, problem.sentence);
  exchange.discard();
  exchange.deliver([&](Receiver& receiver) { receiver.refused(exchange, problem); });
  if (!exchange.sealed_) exchange.abort();
  exchange.silent_ = true;
  if (known) exchange.end(Ending::canceled);
}

void Http2Session::resume(Queries& queries, Now now) {
  const ExchangeHost::Asking asking(host_, queries, now);
  host_.let_ask();
}

void Http2Session::reply(std::uint64_t token, const Result<Answer>& answer) {
  --host_.owed;
  auto* const exchange = static_cast<Http2Exchange*>(host_.shared.exchanges->find(token, host_));
  if (exchange == nullptr || exchange->silent_) return;
  exchange->deliver([&](Receiver& receiver) { receiver.answered(*exchange, ExchangeToken::question(token), answer); });
}

bool Http2Session::reading() const noexcept {
  return !failed_ && host_.owed < bounds::http_checks_max;
}

void Http2Session::end_of_input(Now now) {
  input_ended_ = true;
  host_.now = now;
  // Requests that are not complete never will be.
  std::vector<Http2Exchange*> cut;
  streams_.for_each([&](std::int32_t, Http2Exchange* exchange) {
    if (!exchange->request_done_ && !exchange->silent_) cut.push_back(exchange);
  });
  for (Http2Exchange* const exchange : cut) cancel(*exchange);
  touch();
}

void Http2Session::lost() {
  lost_ = true;
  std::vector<Http2Exchange*> open;
  open.reserve(streams_.size());
  streams_.for_each([&](std::int32_t, Http2Exchange* exchange) { open.push_back(exchange); });
  for (Http2Exchange* const exchange : open) finish(*exchange, Ending::lost);
}

// --- Out ---

void Http2Session::touch() {
  host_.output.wants_fill = true;
  host_.output.touch();
}

void Http2Session::fill(std::size_t unsent) {
  if (lost_) return;
  const std::size_t room = bounds::http_window_bytes - std::min(bounds::http_window_bytes, unsent);
  const std::size_t bytes_max = host_.output.bytes.size() + room;
  std::vector<Http2Event>& events = host_.shared.http2_events;
  events.clear();
  http2_.fill(host_.output.bytes, bytes_max, events);
  host_.output.wants_fill = host_.output.bytes.size() >= bytes_max;
  report_drained();
  dispatch(events);
  if (expiry_stale_) find_expiry();
}

Http2::Source::Body Http2Session::waiting(std::int32_t stream) {
  Http2Exchange* const exchange = find(stream);
  if (exchange == nullptr) return {{}, true};
  const std::string_view rest = std::string_view(exchange->body_).substr(exchange->body_sent_);
  exchange->sleeps_ = rest.empty() && !exchange->last_;
  return {rest, exchange->last_};
}

void Http2Session::sent(std::int32_t stream, std::size_t bytes) {
  Http2Exchange* const exchange = find(stream);
  if (exchange == nullptr) return;
  exchange->body_sent_ += bytes;
  buffered_ -= bytes;
  if (exchange->unsent() > 0) exchange->write_progress_ = now();
  // After the last part, only an attached receiver wants drained().
  if (exchange->last_ && !exchange->attached()) return;
  if (exchange->drained_ == 0 && bytes > 0) drained_.push_back(stream);
  exchange->drained_ += bytes;
}

void Http2Session::report_drained() {
  for (std::size_t i = 0; i < drained_.size(); ++i) {
    Http2Exchange* const exchange = find(drained_[i]);
    if (exchange == nullptr || exchange->silent_) continue;
    const std::size_t bytes = std::exchange(exchange->drained_, 0);
    if (!exchange->last_ && exchange->unsent() == 0) http2_.waits_since(exchange->stream_, now());
    exchange->deliver([&](Receiver& receiver) { receiver.drained(*exchange, bytes); });
  }
  drained_.clear();
}

void Http2Session::send_head(Http2Exchange& exchange, const Response& head, const BodyPart& first) {
  std::array<HttpHeader, 3> own;
  std::size_t count = 0;
  std::array<char, 20> digits;
  if (!head.content_type.empty()) own[count++] = {"content-type", head.content_type};
  // Without content, the length is not that of nothing: a response to HEAD describes what GET would give.
  const bool whole = first.last && first.trailers.empty() && !(exchange.bodiless_ && first.bytes.empty());
  const std::optional<std::uint64_t> length = head.length ? head.length
                                              : whole     ? std::optional<std::uint64_t>(first.bytes.size())
                                                          : std::nullopt;
  if (length && head.status != 204 && (head.status != 304 || head.length)) {
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), *length).ptr;
    own[count++] = {"content-length", {digits.data(), static_cast<std::size_t>(end - digits.data())}};
  }
  constexpr std::string_view kDate = "Date: ";
  const Now turn = host_.shared.now(host_.now);
  const std::string_view date = host_.shared.date(turn.wall);
  if (!date.empty() && !head.has_date) {
    own[count++] = {"date", date.substr(kDate.size(), date.size() - kDate.size() - 2)};
  }
  const bool has_body = !exchange.bodiless_ && (!first.last || !first.bytes.empty() || !first.trailers.empty());
  if (!has_body) exchange.sealed_ = true;
  http2_.respond(exchange.stream_, head.status, head.fields, has_body, std::span(own).first(count));
  http2_.waited_until(exchange.stream_, turn.time);
}

// --- The end ---

Http2Exchange* Http2Session::find(std::int32_t stream) noexcept {
  Http2Exchange** const exchange = streams_.find(stream);
  return exchange == nullptr ? nullptr : *exchange;
}

void Http2Session::finish(Http2Exchange& exchange, Ending ending) {
  buffered_ -= exchange.unsent();
  expiry_stale_ = expiry_stale_ || exchange.expiry() != Time::max();
  streams_.erase(exchange.stream_);
  if (streams_.empty()) idle_since_ = now();
  exchange.sealed_ = true;
  if (exchange.begun_ && !exchange.silent_) exchange.end(ending);
  empty_spare_text(exchange.body_);
  host_.shared.exchanges->release(exchange);
}

// Ends the exchange for its receiver while the stream is still open.
void Http2Session::take_over(Http2Exchange& exchange, Ending ending) {
  exchange.sealed_ = true;
  if (!std::exchange(exchange.silent_, true)) exchange.end(ending);
}

void Http2Session::cancel(Http2Exchange& exchange) {
  http2_.reset(exchange.stream_, Http2Code::cancel);
  exchange.aborted_ = true;
  take_over(exchange, Ending::canceled);
  touch();
}

bool Http2Session::finished() const noexcept {
  return failed_ || lost_ || (input_ended_ && streams_.empty() && !host_.output.wants_fill) || http2_.finished();
}

Time Http2Session::now() const {
  return host_.shared.now(host_.now).time;
}

// --- Deadlines ---

void Http2Session::watch(Time when) noexcept {
  late_ = std::min(late_, when);
}

Time Http2Session::deadline() const noexcept {
  return std::min({host_.expiry, late_, shutdown_at(), pong_by_});
}

// When to begin the shutdown, if nothing changes until then.
Time Http2Session::shutdown_at() const noexcept {
  if (shutdown_ != Shutdown::none) return Time::max();
  const bool idles = idle_since_ != Time::max() && idle_timeout_ > Duration::zero();
  return idles ? std::min(old_at_, idle_since_ + idle_timeout_) : old_at_;
}

void Http2Session::expire(Time now) {
  host_.now.time = now;
  if (now >= host_.expiry || now >= late_) {
    std::vector<std::int32_t> open;
    open.reserve(streams_.size());
    streams_.for_each([&](std::int32_t id, Http2Exchange*) { open.push_back(id); });
    for (const std::int32_t id : open) {
      Http2Exchange* const exchange = find(id);
      if (exchange == nullptr) continue;
      if (now >= exchange->late_at()) {
        end_late(*exchange);
      } else if (!exchange->silent_) {
        exchange->expire(now);
      }
    }
    find_expiry();
  }
  if (now >= shutdown_at()) begin_shutdown(now);
  if (now >= pong_by_) finish_shutdown();
}

void Http2Session::end_late(Http2Exchange& exchange) {
  if (exchange.responded_) return cancel(exchange);
  answer(exchange, kContentTooSlow, true);
}

void Http2Session::find_expiry() noexcept {
  expiry_stale_ = false;
  host_.expiry = late_ = Time::max();
  streams_.for_each([&](std::int32_t, Http2Exchange* exchange) {
    host_.expiry = std::min(host_.expiry, exchange->expiry());
    watch(exchange->late_at());
  });
}

void Http2Session::drain(Time now) {
  host_.now.time = now;
  std::vector<Http2Exchange*> open;
  streams_.for_each([&](std::int32_t, Http2Exchange* exchange) {
    if (exchange != nullptr && !exchange->silent_) open.push_back(exchange);
  });
  for (Http2Exchange* const exchange : open) {
    exchange->deliver([&](Receiver& receiver) { receiver.draining(*exchange); });
  }
  begin_shutdown(now);
}

// Two steps (RFC 9113 §6.8): streams that the client opened before it heard of it are served.
void Http2Session::begin_shutdown(Time now) {
  if (shutdown_ != Shutdown::none) return;
  shutdown_ = Shutdown::announced;
  pong_by_ = now + bounds::http2_pong_time_max;
  http2_.announce_shutdown();
  touch();
}

void Http2Session::finish_shutdown() {
  shutdown_ = Shutdown::final;
  pong_by_ = Time::max();
  http2_.go_away();
  touch();
}

}  // namespace weir::http
