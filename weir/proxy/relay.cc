#include "weir/proxy/relay.h"

#include <algorithm>
#include <array>
#include <utility>

#include "weir/base/ascii.h"
#include "weir/base/assert.h"
#include "weir/base/bounds.h"
#include "weir/identify/handle.h"
#include "weir/identify/path.h"
#include "weir/protocol/http/ratelimit_headers.h"
#include "weir/proxy/named_backend.h"
#include "weir/wire/http1.h"

namespace weir::proxy {
namespace {

// How long to wait for a backend's 100 before asking the client for its body anyway.
constexpr Duration kContinueAfter = std::chrono::seconds{1};

constexpr std::string_view kForm = "application/x-www-form-urlencoded";

// With any codec: "application/grpc", "application/grpc+json".
bool is_grpc(std::string_view content_type) noexcept {
  const std::string_view type = media_type_of(content_type);
  return same_word(type, "application/grpc") || same_word(type.substr(0, 17), "application/grpc+");
}

// Does not pass "h2c" on: limits would not see the requests after the 101.
std::string_view usable_upgrade(std::string_view upgrade) noexcept {
  return lists_word(upgrade, "h2c") ? std::string_view{} : upgrade;
}

// The store could not be asked.
bool says_nothing(const Error& error) noexcept {
  return error.fault == Fault::unavailable || error.fault == Fault::timeout || error.fault == Fault::overloaded;
}

UpstreamError kind_of(const http::CallFailure& failure) noexcept {
  if (failure.error.fault == Fault::overloaded) return UpstreamError::overloaded;
  if (!failure.sent) return UpstreamError::connect;
  if (failure.error.fault == Fault::timeout) return UpstreamError::timeout;
  return failure.error.fault == Fault::invalid ? UpstreamError::bad_answer : UpstreamError::reset;
}

}  // namespace

Relay::Relay(ProxyLoop& loop, http::Exchange& exchange) : loop_(loop), exchange_(exchange) {}

Relay::~Relay() = default;

// --- the request ---

void Relay::begin(const RequestHead& head, http::BodyPart first) {
  destinations_ = loop_.destinations;
  const Now now = exchange_.now();
  began_ = now.time;
  began_wall_ = now.wall;
  loop_.metrics.active.add();
  remember(head);
  if (refuse_head(head)) return;
  const Result<const Route*> route = find_route(head);
  if (!route)
    return respond_error({400, route.error().word.empty() ? "bad_request" : route.error().word, route.error().detail});
  destination_ = destinations_->find(*route);
  const std::uint64_t body_max =
      destination_ != nullptr ? destination_->body_max : static_cast<std::uint64_t>(destinations_->limits().body_max);
  if (body_max != 0 && head.content_length.value_or(0) > body_max) {
    return respond_error({413, "too_large", "The request body is larger than " + std::to_string(body_max) + " bytes."});
  }
  counted_ = true;
  if (loop_.gateway.active.fetch_add(1, std::memory_order_relaxed) >= destinations_->limits().max_concurrent_requests) {
    return respond_error({503, "overloaded", "Too many requests are in progress. Please try again later.", true});
  }
  if (destination_ == nullptr)
    return respond_error({404, "no_route", "No route or backend is configured for this request."});
  // A tunnel begins behind the head: a request with content has none (RFC 9110 §7.8 lets a server ignore Upgrade).
  if (!first.last || !first.bytes.empty()) upgrade_.clear();
  passes_ = destination_->preflight_passes && is_preflight(head);
  hold(first);
  if (exceeds_body_max()) return;
  if (destination_->form_fields.empty() || passes_) return ask();
  if (head.content_length.value_or(0) > bounds::proxy_form_bytes_max && form_body_) {
    return respond_error(
        {413, "too_large", "The form is larger than " + std::to_string(bounds::proxy_form_bytes_max) + " bytes."});
  }
  if (!form_body_ || body_complete_) {
    add_form_fields();
    return ask();
  }
  // The body is read before a backend is chosen, so none can be asked whether it wants it.
  stage_ = Stage::reading_form;
  expects_continue_ = false;
  exchange_.proceed();
  return_early(kept_.size());
}

void Relay::remember(const RequestHead& head) {
  method_ = head.method;
  const std::string_view target = origin_form(head.method, head.target);
  target_ = target.starts_with('?') ? "/" + std::string(target) : std::string(target);
  host_ = host_of(head);
  scheme_ = exchange_.secure() ? "https" : "http";
  protocol_ = head.version;
  upgrade_ = usable_upgrade(head.upgrade);
  length_ = head.content_length;
  expects_continue_ = head.expects_continue;
  accepts_trailers_ = takes_trailers(head);
  form_.grpc = is_grpc(head.content_type);
  form_.problem = accepts_exactly(head.accept, "application/problem+json");
  connection_options_ = connection_options(head.headers.all());
  form_body_ = same_word(media_type_of(head.content_type), kForm) && head.content_encoding.empty();
  client_ = exchange_.peer();
  if (const HttpHeader* const agent = head.headers.find("user-agent"); agent != nullptr) user_agent_ = agent->value;
  request_id_ = usable_request_id(head);
  if (request_id_.empty()) request_id_ = loop_.make_request_id();
}

bool Relay::refuse_head(const RequestHead& head) {
  if (head.method == "TRACE" || head.method == "CONNECT") {
    respond_error({405, "method_not_allowed", "The method " + method_ + " is not forwarded."});
    return true;
  }
  return false;
}

Result<const Route*> Relay::find_route(const RequestHead& head) {
  const Policy& policy = destinations_->policy();
  const std::string_view address = exchange_.peer();
  const std::string_view peer = address.empty() ? kUnixPeer : address;
  const Result<IpAddress> ip = address.empty() ? Result<IpAddress>(IpAddress::v4({})) : IpAddress::parse(address);
  const bool trusted = address.empty() ? policy.trusted().trusts_unix() : ip && policy.trusted().trusts(*ip);
  FieldList kept;
  keep_request_fields(head, trusted, destinations_->decisive_headers(), kept);
  make_attributes(head, kept, peer);
  Request& request = loop_.request;
  if (Result<void> read = request.read(attributes_, policy.trusted()); !read) return read.error();
  if (request.client()) client_ = request.client()->print();
  const std::span<const HttpHeader> fields(kept.begin(), kept.size());
  write_request_fields(fields, {address, scheme_, host_, request_id_}, lines_);
  return policy.route_of(request);
}

// Copies: a question that finds no room now is asked later, when the head is gone.
void Relay::make_attributes(const RequestHead& head, const FieldList& kept, std::string_view peer) {
  std::size_t bytes = peer.size() + head.method.size() + target_.size() + host_.size();
  for (const HttpHeader& header : kept) bytes += 7 + header.name.size() + header.value.size();
  attribute_text_.reserve(bytes);  // so that views into it stay
  attributes_.reserve(kept.size() + 4 + 2 * bounds::charges_max);
  const auto copy = [&](std::string_view text) {
    const std::size_t at = attribute_text_.size();
    attribute_text_ += text;
    return std::string_view(attribute_text_).substr(at);
  };
  attributes_.push_back({"peer", copy(peer)});
  attributes_.push_back({"method", copy(head.method)});
  attributes_.push_back({"path", copy(target_)});
  attributes_.push_back({"host", copy(host_)});
  for (const HttpHeader& header : kept) {
    const std::size_t at = attribute_text_.size();
    attribute_text_ += "header:";
    for (const char c : header.name) attribute_text_ += to_lower(c);
    const std::string_view name = std::string_view(attribute_text_).substr(at);
    attributes_.push_back({name, copy(header.value)});
  }
}

bool Relay::is_preflight(const RequestHead& head) const noexcept {
  return head.method == "OPTIONS" && head.headers.find("origin") != nullptr &&
         head.headers.find("access-control-request-method") != nullptr;
}

void Relay::hold(http::BodyPart part) {
  kept_ += part.bytes;
  bytes_in_ += part.bytes.size();
  loop_.metrics.bytes_in.add(part.bytes.size());
  if (!part.last) return;
  body_complete_ = true;
  for (const HttpHeader& field : keep_trailers(part.trailers, connection_options_, false)) {
    trailers_.emplace_back(field.name, field.value);
  }
}

// A body whose length was not announced.
bool Relay::exceeds_body_max() {
  if (destination_->body_max == 0 || bytes_in_ <= destination_->body_max || tunnel_) return false;
  call_.cancel();
  report(UpstreamOutcome::unknown);
  if (stage_ == Stage::responding) {
    exchange_.abort();
  } else {
    respond_error(
        {413, "too_large", "The request body is larger than " + std::to_string(destination_->body_max) + " bytes."});
  }
  return true;
}

void Relay::read_form(http::BodyPart part) {
  hold(part);
  if (exceeds_body_max()) return;
  if (kept_.size() > bounds::proxy_form_bytes_max) {
    return respond_error(
        {413, "too_large", "The form is larger than " + std::to_string(bounds::proxy_form_bytes_max) + " bytes."});
  }
  if (body_complete_) {
    add_form_fields();
    return ask();
  }
  return_early(part.bytes.size());
}

// Returns credit for bytes of a form that are kept: the client must be able to send more than the bound, to be told so,
// and whoever has credit and sends nothing is late.
void Relay::return_early(std::size_t bytes) {
  returned_early_ += bytes;
  exchange_.consumed(bytes);
}

// Adds the fields that limits count by: the first value, and another one that differs.
void Relay::add_form_fields() {
  if (!form_body_) return;
  std::vector<std::pair<std::string, std::string>> found;
  each_form_field(kept_, [&](const std::string& name, std::string value) {
    const std::string full = "form:" + name;
    if (std::ranges::find(destination_->form_fields, full) == destination_->form_fields.end()) return true;
    const auto same = [&](const auto& one) { return one.first == full; };
    const auto count = std::ranges::count_if(found, same);
    const bool repeats = std::ranges::any_of(found, [&](const auto& one) { return same(one) && one.second == value; });
    if (count < 2 && !repeats) found.emplace_back(full, std::move(value));
    return true;
  });
  // The views of before stay: those of the form have a text of their own.
  for (auto& [name, value] : found) {
    form_values_.push_back(std::make_unique<std::pair<std::string, std::string>>(std::move(name), std::move(value)));
    attributes_.push_back({form_values_.back()->first, form_values_.back()->second});
  }
}

void Relay::body(http::Exchange&, http::BodyPart part) {
  switch (stage_) {
    case Stage::reading_form:
      return read_form(part);
    case Stage::asking:
      hold(part);
      exceeds_body_max();
      return;
    case Stage::calling:
    case Stage::responding:
      break;
    case Stage::over:
      return;
  }
  bytes_in_ += part.bytes.size();
  loop_.metrics.bytes_in.add(part.bytes.size());
  if (part.last && tunnel_) client_done_ = true;
  if (part.last) body_complete_ = true;
  if (destination_->body_max != 0 && exceeds_body_max()) return;
  const std::vector<HttpHeader> trailers = keep_trailers(part.trailers, connection_options_, false);
  part.trailers = trailers;
  if (!anything_sent_ && stage_ == Stage::calling) {
    kept_ += part.bytes;
    for (const HttpHeader& field : trailers) trailers_.emplace_back(field.name, field.value);
  }
  call_.write(part);
  if (tunnel_ && client_done_ && backend_done_) finish_request();
}

// --- the question ---

void Relay::ask() {
  stage_ = Stage::asking;
  Query* const query = exchange_.ask();
  if (query == nullptr) return;  // can_ask() follows
  *query = {};
  query->mode = passes_ ? Mode::peek : Mode::spend;
  // A body that breaks the framing in the same read ends the relay before the question is asked, so what the question
  // points to belongs to the batch.
  Queries& kept = exchange_.queries();
  std::vector<Attribute> copies;
  copies.reserve(attributes_.size());
  for (const Attribute& one : attributes_) copies.push_back({kept.copy(one.name), kept.copy(one.value)});
  RequestFacts& facts = query->subject.emplace<RequestFacts>();
  facts.attributes = kept.copy(std::span<const Attribute>(copies));
  facts.caller = copies.front().value;  // the peer
  facts.wants_backend = true;
  if (!passes_) return;
  facts.cost = 1;
  facts.may_lack_keys = true;
}

void Relay::can_ask(http::Exchange&) {
  if (stage_ == Stage::asking) ask();
}

void Relay::answered(http::Exchange&, std::uint32_t, const Result<Answer>& answer) {
  if (stage_ != Stage::asking) return;
  if (!answer) {
    // A preflight takes no token, so it needs no store. But a service may know another backend for it.
    const bool needless = passes_ && says_nothing(answer.error()) && !destinations_->policy().has_services();
    if (needless) {
      decision_ = "preflight";
      return call();
    }
    decision_ = "error";
    return respond_error(reply_to(answer.error(), destinations_->policy().failure_code()));
  }
  const bool no_access = answer->access == Access::deny_listed;
  const bool denied = passes_ ? no_access : !answer->verdict.allowed;
  record(*answer);
  if (denied) {
    stage_ = Stage::over;
    status_ = form_.grpc ? 200 : no_access ? 403 : 429;
    decision_ = no_access ? "deny_listed" : "denied";
    return count_own(respond_denied(exchange_, *answer, form_, own_lines()));
  }
  if (answer->backend_unknown) {
    return respond_error({503, "backend_unknown", "The backend of this request is not known at the moment.", true});
  }
  if (!answer->backend_url.empty()) return use_backend_url(*answer);
  if (destination_->backends.empty()) {
    return respond_error({404, "no_route", "No route or backend is configured for this request."});
  }
  call();
}

void Relay::record(const Answer& answer) {
  degraded_ = answer.verdict.degraded;
  decision_ = answer.access == Access::allow_listed ? "allow_listed" : passes_ ? "preflight" : "allowed";
  if (!passes_) write_rate_headers(answer, answer.headers, rate_lines_);
  has_rate_headers_ = !rate_lines_.empty();
  if (degraded_) rate_lines_ += "X-RateLimit-Degraded: true\r\n";
  if (!loop_.gateway.access_log.enabled()) return;
  for (std::size_t i = 0; i < answer.verdict.all.size(); ++i) {
    const Label& label = answer.labels[i];
    if (label.limit.empty()) continue;  // a list knows the client itself
    limits_.push_back({std::string(label.limit), shown_id(label, answer.hash_key), answer.verdict.all[i].allowed(),
                       label.cost, std::string(label.tier)});
  }
}

// --- the call ---

void Relay::use_backend_url(const Answer& answer) {
  Result<Backend> backend = make_named_backend(answer.backend_url, answer.backend_hosts, loop_.gateway.tls);
  if (!backend) return refuse_backend(backend.error().word);
  named_ = std::make_unique<Backend>(std::move(*backend));
  call();
}

// Never another backend: it could be another tenant's.
void Relay::refuse_backend(std::string_view reason) {
  destination_->counters->failed(UpstreamError::refused);
  loop_.services.refuse_backend(reason);
  respond_error(reply_to(UpstreamError::refused));
}

void Relay::call() {
  const Time now = exchange_.now().time;
  if (named_ != nullptr) {
    backend_ = named_.get();
  } else {
    choice_ = destination_->group->choose(tried_, now);
    if (choice_.index == UpstreamGroup::kNone) {
      const UpstreamError kind = tried_ == 0 ? UpstreamError::none_left : UpstreamError::connect;
      if (tried_ == 0) destination_->counters->failed(kind);
      return respond_error(reply_to(kind));
    }
    if (tried_ != 0) loop_.metrics.retries.add();
    choosing_ = true;
    backend_ = &destination_->backends[choice_.index];
  }
  stage_ = Stage::calling;
  called_ = now;
  const bool own_host = destination_->backend_host || host_.empty();
  const std::string path = backend_->path.empty() || target_ == "*" ? target_ : backend_->path + target_;
  http::CallHead head;
  head.method = method_;
  head.scheme = backend_->scheme;
  head.authority = own_host ? backend_->authority : host_;
  head.path = path;
  head.fields.lines = lines_;
  head.length = length_;
  const bool upgrades = !upgrade_.empty() && backend_->takes_upgrades();
  if (upgrades) head.upgrade = upgrade_;
  head.expect_continue = expects_continue_;
  head.accepts_trailers = accepts_trailers_;
  const config::Proxy& limits = destinations_->limits();
  http::CallOptions options;
  options.connect_timeout = limits.connect_timeout;
  options.response_timeout = destination_->response_timeout;
  options.idle_timeout = destination_->stream_idle_timeout;
  if (backend_->origin.public_only) options.may_dial = may_dial;
  std::vector<HttpHeader> trailers;
  for (const auto& [name, value] : trailers_) trailers.push_back({name, value});
  // What the client sends behind an Upgrade belongs to the tunnel.
  const bool last = body_complete_ && !upgrades;
  const http::BodyPart first{kept_, last, trailers};
  call_ = upgrades ? loop_.pool.call(backend_->upgrade_origin(), head, first, *this, options)
                   : loop_.pool.call(backend_->origin, head, first, *this, options);
  if (expects_continue_) exchange_.expire_at(now + kContinueAfter);
}

void Relay::expired(http::Exchange&) {
  if (stage_ == Stage::calling && expects_continue_) exchange_.proceed();
}

void Relay::drained(std::size_t bytes) {
  if (!anything_sent_) {
    anything_sent_ = true;
    kept_.clear();
    kept_.shrink_to_fit();
  }
  const std::size_t early = std::min(returned_early_, bytes);
  returned_early_ -= early;
  if (bytes > early) exchange_.consumed(bytes - early);
}

// Reports the outcome of the chosen backend. `why` is the reason of a failure.
void Relay::report(UpstreamOutcome outcome, std::string_view why) {
  if (!std::exchange(choosing_, false)) return;
  const std::string& name = destination_->backends[choice_.index].name;
  switch (destination_->group->finished(choice_, outcome, exchange_.now().time)) {
    case UpstreamChange::none:
      return;
    case UpstreamChange::went_down:
      return loop_.gateway.log(LogLevel::warn, "backend unavailable: backend=" + name + " error=" + std::string(why));
    case UpstreamChange::came_back:
      return loop_.gateway.log(LogLevel::info, "backend available again: backend=" + name);
  }
}

bool Relay::retry(const http::CallFailure& failure) {
  if (failure.sent || anything_sent_ || named_ != nullptr || failure.error.fault == Fault::overloaded) return false;
  tried_ |= std::uint64_t{1} << choice_.index;
  if (destination_->group->size() < 2) return false;
  call();
  return true;
}

void Relay::failed(const http::CallFailure& failure) {
  // The request's own fault: no other backend would take it, and this one has not failed.
  if (failure.error.fault == Fault::too_large && !failure.sent) {
    report(UpstreamOutcome::unknown);
    return respond_error({431, "header_too_large", "The backend accepts no head of this size."});
  }
  const bool refused = backend_->origin.public_only && !failure.sent && failure.error.fault == Fault::invalid;
  if (refused && stage_ == Stage::calling) return refuse_backend("private_address");
  const UpstreamError kind = kind_of(failure);
  if (!tunnel_) destination_->counters->failed(kind);
  if (failure.response_begun || stage_ == Stage::responding) {
    report(UpstreamOutcome::unknown);
    return exchange_.abort();
  }
  report(kind == UpstreamError::overloaded ? UpstreamOutcome::unknown : UpstreamOutcome::failure, failure.error.detail);
  if (retry(failure)) return;
  upstream_time_ = exchange_.now().time - called_;
  respond_error(reply_to(kind));
}

// --- the response ---

void Relay::informed(const ResponseHead& head) {
  if (stage_ != Stage::calling) return;
  if (head.status == 100) return exchange_.proceed();
  std::string lines;
  write_response_fields(head, false, lines);
  exchange_.inform(head.status, {lines, {}});
}

void Relay::head(const ResponseHead& head, http::BodyPart first) {
  report(UpstreamOutcome::success);
  upstream_time_ = exchange_.now().time - called_;
  destination_->counters->upstream_seconds.add(upstream_time_);
  stage_ = Stage::responding;
  status_ = head.status;
  kept_.clear();
  response_connection_options_ = connection_options(head.headers.all());
  std::string lines;
  write_response_fields(head, has_rate_headers_, lines);
  lines += rate_lines_;
  write_field("X-Request-Id", request_id_, lines);
  const bool has_date = head.headers.find("date") != nullptr;
  http::Response response{head.status, {}, {lines, {}}, head.content_length, head.reason, has_date};
  if (head.status == 101) {
    const HttpHeader* const upgrade = head.headers.find("upgrade");
    const HttpHeader protocol{"Upgrade", upgrade != nullptr ? upgrade->value : std::string_view(upgrade_)};
    response.fields.list = {&protocol, 1};
    tunnel_ = true;
    body_complete_ = false;
    exchange_.upgrade(response);
    if (!first.bytes.empty() || first.last) write(first);
    return;
  }
  bytes_out_ += first.bytes.size();
  loop_.metrics.bytes_out.add(first.bytes.size());
  unconsumed_ += first.bytes.size();
  const std::vector<HttpHeader> trailers =
      keep_trailers(first.trailers, response_connection_options_, has_rate_headers_);
  first.trailers = trailers;
  exchange_.respond(response, first);
  if (first.last) finish_request();
}

void Relay::body(http::BodyPart part) {
  write(part);
}

void Relay::write(http::BodyPart part) {
  bytes_out_ += part.bytes.size();
  loop_.metrics.bytes_out.add(part.bytes.size());
  unconsumed_ += part.bytes.size();
  const std::vector<HttpHeader> trailers =
      keep_trailers(part.trailers, response_connection_options_, has_rate_headers_);
  part.trailers = trailers;
  exchange_.write(part);
  if (!part.last) return;
  if (!tunnel_) return finish_request();
  backend_done_ = true;
  if (client_done_) finish_request();
}

void Relay::finish_request() {
  stage_ = Stage::over;
  if (!body_complete_) exchange_.discard();
}

void Relay::drained(http::Exchange&, std::size_t bytes) {
  const std::size_t credit = std::min(bytes, unconsumed_);
  unconsumed_ -= credit;
  if (credit > 0 && call_) call_.consumed(credit);
}

std::string Relay::own_lines() const {
  std::string lines = rate_lines_;
  lines += destination_ != nullptr ? destination_->error_lines : destinations_->error_lines();
  write_field("X-Request-Id", request_id_, lines);
  return lines;
}

// The rest of the request cannot be read.
void Relay::refused(http::Exchange&, const HttpProblem& problem) {
  call_.cancel();
  report(UpstreamOutcome::unknown);
  respond_error(reply_to(problem));
}

void Relay::respond_error(const Reply& reply) {
  stage_ = Stage::over;
  if (decision_ == kUndecided) decision_ = "refused";
  status_ = form_.grpc ? 200 : reply.status;
  count_own(respond(exchange_, reply, form_, own_lines()));
}

// Content of a response that Weir makes itself.
void Relay::count_own(std::size_t bytes) {
  if (method_ == "HEAD") return;
  bytes_out_ += bytes;
  loop_.metrics.bytes_out.add(bytes);
}

// --- the end ---

void Relay::ended(http::Exchange&, http::Ending ending) {
  call_.cancel();
  report(UpstreamOutcome::unknown);
  if (counted_) loop_.gateway.active.fetch_sub(1, std::memory_order_relaxed);
  loop_.metrics.active.subtract();
  if (status_ == 0) status_ = ending == http::Ending::drained ? 503 : 499;  // the client did not wait
  ProxyRouteCounters& counters = destination_ != nullptr ? *destination_->counters : destinations_->no_route();
  counters.responded(status_);
  log();
}

void Relay::log() {
  AccessLog& out = loop_.gateway.access_log;
  if (!out.enabled()) return;
  AccessLine line;
  line.time = began_wall_;
  line.client = client_;
  line.method = method_;
  line.host = host_;
  line.target = target_;
  line.protocol = protocol_;
  line.status = status_;
  line.bytes_in = bytes_in_;
  line.bytes_out = bytes_out_;
  line.duration = exchange_.now().time - began_;
  if (backend_ != nullptr) line.upstream = backend_->name;
  line.upstream_time = upstream_time_;
  line.request_id = request_id_;
  line.user_agent = user_agent_;
  if (destination_ != nullptr) line.route = destination_->route;
  line.decision = decision_;
  line.limits = &limits_;
  out.write(line);
}

}  // namespace weir::proxy
