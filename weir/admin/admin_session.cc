#include "weir/admin/admin_session.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "weir/base/assert.h"
#include "weir/base/bounds.h"
#include "weir/base/text.h"
#include "weir/protocol/http/fault_status.h"

namespace weir {

using admin::Outcome;
using admin::Reply;
using admin::RouteMatch;
using admin::Stream;
using admin::Work;

namespace {

// How often a stream checks for events, and its longest silence: a proxy may close a silent connection.
constexpr Duration kStreamEvery = std::chrono::milliseconds{50};
constexpr Duration kStreamSilence = std::chrono::seconds{15};
// Bytes a stream writes at once.
constexpr std::size_t kStreamBytes = 64 << 10;

}  // namespace

Result<std::size_t> AdminSession::receive(std::string_view bytes, Queries& queries, std::string& out) {
  std::size_t used = 0;
  while (!closing_ && work_ == nullptr && out.size() < bounds::unsent_bytes_max) {
    const RequestReader::ReadResult step = reader_.next(bytes.substr(used));
    used += step.consumed;
    switch (step.event) {
      case RequestReader::Event::more: {
        const bool waits = reader_.awaits_content() || is_begun_request(bytes.substr(used));
        since_ = !waits ? Time::max() : since_ == Time::max() ? now_ : since_;
        return used;
      }
      case RequestReader::Event::expect: {
        const RequestHead& head = reader_.head();
        if (auto refused = refuse_head(admin::find_route(head.method, head.path))) {
          pending_ = {head.framing.http11, false, false};
          write(*refused, out);
          break;
        }
        out += kHttpContinue;
        break;
      }
      case RequestReader::Event::request:
        since_ = Time::max();
        handle(queries, out);
        reader_.forget();
        break;
      case RequestReader::Event::problem: {
        const HttpProblem& problem = reader_.problem();
        pending_ = {true, false, false};
        write(admin::refuse(problem.status, code_of(problem.status), problem.sentence), out);
        return Error{Fault::invalid, std::string(problem.sentence)};
      }
    }
  }
  // Input after the last request or during a stream is ignored.
  return closing_ ? bytes.size() : used;
}

// Returns the refusal if the head alone is enough to refuse the request.
std::optional<Reply> AdminSession::refuse_head(const RouteMatch& found) const {
  const RequestHead& head = reader_.head();
  if (head.method == "OPTIONS" && (!found.allow.empty() || head.path == "*")) return {};
  if (found.allow.empty()) return admin::refuse(404, "not_found", "there is nothing at " + quote(head.path));
  if (found.route == nullptr) {
    Reply reply = admin::refuse(405, "method_not_allowed",
                                quote(head.path) + " takes " + found.allow + ", not " + quote(head.method));
    write_field("Allow", found.allow, reply.fields);
    return reply;
  }
  return admin::refusal(head, found.route->needs, shared_.reloader.current()->settings.admin, shared_.loopback);
}

Outcome AdminSession::call(const RouteMatch& found) {
  const RequestHead& head = reader_.head();
  if (auto refused = refuse_head(found)) return std::move(*refused);
  if (head.method == "OPTIONS") {
    Reply reply{204, {}, {}, {}};
    write_field("Allow", found.allow.empty() ? "GET, HEAD, POST, PUT, DELETE, OPTIONS" : found.allow, reply.fields);
    return reply;
  }
  if (found.bad_escape) return admin::refuse(400, "bad_value", "the path has an invalid escape; write '%' as %25");
  admin::Request request;
  request.method = head.method;
  request.parts = found.parts;
  request.query = head.query;
  request.content_type = media_type_of(head.content_type);
  request.content = reader_.content();
  request.peer = peer_;
  request.now = shared_.clock.now();
  if (!found.route->any_parameters) {
    auto parameters = admin::Parameters::read(head.query, found.route->parameters);
    if (!parameters) {
      const bool unknown = parameters.error().fault == Fault::unknown;
      return admin::refuse(400, unknown ? "unknown_field" : "bad_value", parameters.error().detail);
    }
    request.parameters = std::move(*parameters);
  }
  return found.route->call(shared_, request);
}

void AdminSession::handle(Queries& queries, std::string& out) {
  const RequestHead& head = reader_.head();
  pending_ = {head.framing.http11, head.framing.keep_alive, head.method == "HEAD"};
  Outcome outcome = call(admin::find_route(head.method, head.path));
  if (auto* reply = std::get_if<Reply>(&outcome)) return write(*reply, out);
  if (auto* stream = std::get_if<Stream>(&outcome)) return begin(*stream, out);
  begin(std::move(std::get<std::unique_ptr<Work>>(outcome)), queries, out);
}

void AdminSession::begin(std::unique_ptr<Work> work, Queries& queries, std::string& out) {
  work_ = std::move(work);
  first_sequence_ = next_sequence_;
  for (const Query& query : work_->questions()) {
    queries.add(next_sequence_++) = query;
    ++missing_;
  }
  if (missing_ == 0) advance(&queries, out);
}

void AdminSession::reply(std::uint64_t sequence, const Result<Answer>& answer, std::string& out) {
  if (work_ == nullptr || sequence < first_sequence_ || missing_ == 0) return;
  work_->answered(static_cast<std::size_t>(sequence - first_sequence_), answer);
  if (--missing_ == 0) advance(nullptr, out);
}

// `queries` is null where no query can be made: after answers.
void AdminSession::advance(Queries* queries, std::string& out) {
  const Now now = shared_.clock.now();
  std::optional<Outcome> outcome = work_->step(now);
  if (!outcome) {
    next_wake_ = now.time + work_->pause();
    return;
  }
  work_.reset();
  if (const auto* reply = std::get_if<Reply>(&*outcome)) return write(*reply, out);
  auto* const next = std::get_if<std::unique_ptr<Work>>(&*outcome);
  WEIR_ASSERT(next != nullptr && queries != nullptr);
  begin(std::move(*next), *queries, out);
}

// Server-sent events (WHATWG HTML §9.2), until either side closes. So there is no length and no further reply.
void AdminSession::begin(const Stream& stream, std::string& out) {
  out += "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\nConnection: close\r\n";
  write_date_field(std::chrono::floor<std::chrono::seconds>(shared_.clock.now().wall), out);
  out += "\r\n";
  closing_ = true;
  if (pending_.head_only) return;
  out += ": decisions as they happen\n\n";
  stream_ = stream.queue;
  last_sent_ = shared_.clock.now().time;
  next_wake_ = last_sent_ + kStreamEvery;
}

void AdminSession::send_events(std::string& out) {
  const Time now = shared_.clock.now().time;
  next_wake_ = now + kStreamEvery;
  if (out.size() >= kStreamBytes) return;  // a slow peer's events wait in the queue, which drops the excess
  const EventQueue::Taken taken = stream_->take(kStreamBytes);
  if (taken.dropped > 0) out += "event: dropped\ndata: {\"dropped\":" + std::to_string(taken.dropped) + "}\n\n";
  for (const std::string& event : taken.events) out.append("event: decision\ndata: ").append(event).append("\n\n");
  if (!taken.events.empty() || taken.dropped > 0) {
    last_sent_ = now;
  } else if (now - last_sent_ >= kStreamSilence) {
    out += ":\n\n";
    last_sent_ = now;
  }
}

Time AdminSession::wake_at() const noexcept {
  const bool busy = stream_ != nullptr || (work_ != nullptr && missing_ == 0);
  return busy ? next_wake_ : Time::max();
}

void AdminSession::wake(Time, Queries& queries, std::string& out) {
  if (stream_ != nullptr) return send_events(out);
  if (work_ != nullptr && missing_ == 0) advance(&queries, out);
}

void AdminSession::write(const Reply& reply, std::string& out) {
  std::string fields = reply.fields;
  write_date_field(std::chrono::floor<std::chrono::seconds>(shared_.clock.now().wall), fields);
  HttpResponse response;
  response.status = reply.status;
  response.content_type = reply.content_type;
  response.fields = fields;
  response.content = reply.content;
  response.head_only = pending_.head_only;
  response.keep_alive = pending_.keep_alive && !closing_;
  response.http11 = pending_.http11;
  write_response(response, out);
  closing_ |= !response.keep_alive;
}

Time AdminSession::deadline() const noexcept {
  if (since_ == Time::max() || closing_ || work_ != nullptr) return Time::max();
  return since_ + (reader_.awaits_content() ? bounds::http_body_time_max : bounds::http_head_time_max);
}

void AdminSession::expire(Time, std::string& out) {
  pending_ = {true, false, false};
  write(admin::refuse(408, code_of(408), "the request took too long to arrive"), out);
  since_ = Time::max();
}

void AdminSession::hang_up(std::string& out) {
  if (since_ == Time::max() || closing_) return;
  pending_ = {true, false, false};
  write(admin::refuse(400, code_of(400), "the connection ended in the middle of the request"), out);
  since_ = Time::max();
}

void AdminSession::drain(std::string&) {
  closing_ = true;
  stream_.reset();
}

}  // namespace weir
