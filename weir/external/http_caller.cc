#include "weir/external/http_caller.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weir/base/bounds.h"
#include "weir/base/text.h"
#include "weir/http/call.h"
#include "weir/wire/grpc.h"
#include "weir/wire/http.h"

namespace weir::external {
namespace {

Error failure(Fault fault, std::string_view word, std::string detail) {
  return Error{fault, std::move(detail), 0, word};
}

std::string_view word_of(Fault fault) noexcept {
  if (fault == Fault::timeout) return "timeout";
  return fault == Fault::invalid ? "bad_body" : "unavailable";
}

// A service's address, taken apart.
struct Place {
  http::Origin origin;
  std::string_view scheme = "http";
  std::string authority;
  std::string path;
};

// The URL was checked with the configuration.
Result<Place> place_of(const LimitsService& service) {
  Place place;
  place.scheme = service.tls ? "https" : "http";
  if (service.protocol == LimitsService::Protocol::grpc) {
    place.authority = service.address;
    place.path = service.method;
    place.origin.version = http::HttpVersion::http2;
  } else {
    const std::string_view rest = std::string_view(service.address).substr(service.tls ? 8 : 7);
    const std::size_t end = std::min(rest.find_first_of("/?"), rest.size());
    place.authority = rest.substr(0, end);
    place.path = rest.substr(end);
    if (!place.path.starts_with('/')) place.path.insert(0, "/");
    place.origin.version = service.tls ? http::HttpVersion::negotiate : http::HttpVersion::http1;
  }
  const std::size_t bracket = place.authority.find(']');
  const bool has_port = place.authority.find(':', bracket == std::string::npos ? 0 : bracket) != std::string::npos;
  Result<Target> target = Target::parse(has_port ? place.authority : place.authority + (service.tls ? ":443" : ":80"));
  if (!target) return target.error();
  place.origin.target = std::move(*target);
  place.origin.server_name = service.server_name.empty() ? place.origin.target.host : service.server_name;
  return place;
}

std::string_view content_type_of(const LimitsService& service) noexcept {
  if (service.protocol == LimitsService::Protocol::http) return "application/json";
  return service.codec == LimitsService::Codec::json ? "application/grpc+json" : "application/grpc";
}

std::string write_question(const LimitsService& service, const ServiceQuestion& question) {
  std::string body;
  const bool grpc = service.protocol == LimitsService::Protocol::grpc;
  const std::size_t begun = grpc ? grpc::begin_message(body) : 0;
  if (grpc && service.codec == LimitsService::Codec::protobuf) {
    write_protobuf(question, body);
  } else {
    write_json(question, body);
  }
  if (grpc) grpc::end_message(begun, body);
  return body;
}

}  // namespace

// One call, from request to outcome. When it ends, it leaves the list and is destroyed later.
class HttpCaller::OneCall final : public http::Call::Owner, public Retired {
 public:
  OneCall(Parts& parts, std::uint64_t number, std::shared_ptr<const LimitsService> service, Done done)
      : parts_(parts), number_(number), service_(std::move(service)), done_(std::move(done)) {}

  void begin(const ServiceQuestion& question);
  // Fails without making the call, in a later turn.
  void refuse(Error error);

 private:
  void head(const ResponseHead& head, http::BodyPart first) override;
  void body(http::BodyPart part) override;
  void failed(const http::CallFailure& failure) override;

  bool is_grpc() const noexcept { return service_->protocol == LimitsService::Protocol::grpc; }
  void read_status(std::span<const HttpHeader> fields);
  void complete();
  CallOutcome read_http() const;
  CallOutcome read_grpc() const;
  void finish(CallOutcome outcome);

  Parts& parts_;
  std::uint64_t number_;
  std::shared_ptr<const LimitsService> service_;
  Done done_;
  http::Call call_;
  std::string content_;
  std::string grpc_status_;
  std::string grpc_message_;
  std::vector<std::pair<std::string, std::string>> fields_;  // of the response
};

struct HttpCaller::Parts {
  Parts(Loop& on, Resolver& resolver, Duration longest, TlsOf makes_tls)
      : loop(on),
        window_max(longest),
        tls_of(std::move(makes_tls)),
        pool(on, resolver, {.connections_max = bounds::service_connections_max}) {}

  Loop& loop;
  Duration window_max;
  TlsOf tls_of;
  http::ClientPool pool;
  std::uint64_t next = 0;
  std::unordered_map<std::uint64_t, std::unique_ptr<OneCall>> calls;  // before the pool is destroyed
};

void HttpCaller::OneCall::begin(const ServiceQuestion& question) {
  Result<Place> place = place_of(*service_);
  if (!place) return refuse(failure(Fault::invalid, "unavailable", place.error().detail));
  if (service_->tls) {
    auto tls = parts_.tls_of(*service_);
    if (!tls) return refuse(failure(Fault::unavailable, "unavailable", tls.error().detail));
    place->origin.tls = std::move(*tls);
  }
  const std::string content = write_question(*service_, question);
  constexpr std::int64_t kTimeoutMax = 99'999'999;  // eight digits
  const std::int64_t milliseconds =
      std::clamp<std::int64_t>(service_->timeout / std::chrono::milliseconds{1}, 1, kTimeoutMax);
  const std::string timeout = std::to_string(milliseconds) + "m";
  std::vector<HttpHeader> fields = {{"content-type", content_type_of(*service_)}};
  if (is_grpc()) {
    fields.push_back({"te", "trailers"});
    fields.push_back({"grpc-timeout", timeout});
  } else {
    fields.push_back({"accept", "application/json"});
  }
  for (const auto& [name, value] : service_->fields) fields.push_back({name, value});
  http::CallHead head;
  head.method = "POST";
  head.scheme = place->scheme;
  head.authority = place->authority;
  head.path = place->path;
  head.fields.list = fields;
  http::CallOptions options;
  options.connect_timeout = options.response_timeout = options.idle_timeout = service_->timeout;
  options.deadline = parts_.loop.now().time + service_->timeout;
  call_ = parts_.pool.call(place->origin, head, {content, true, {}}, *this, options);
}

void HttpCaller::OneCall::refuse(Error error) {
  parts_.loop.at(parts_.loop.now().time, [&parts = parts_, number = number_, error = std::move(error)] {
    const auto found = parts.calls.find(number);
    if (found != parts.calls.end()) found->second->finish({error, {}});
  });
}

void HttpCaller::OneCall::read_status(std::span<const HttpHeader> fields) {
  for (const HttpHeader& field : fields) {
    if (same_word(field.name, "grpc-status")) grpc_status_ = field.value;
    if (same_word(field.name, "grpc-message")) grpc_message_ = field.value;
  }
}

void HttpCaller::OneCall::head(const ResponseHead& head, http::BodyPart first) {
  if (head.status != 200) {
    return finish({failure(Fault::invalid, "bad_status", "status " + std::to_string(head.status)), {}});
  }
  if (is_grpc()) {
    read_status(head.headers.all());
  } else {
    for (const HttpHeader& field : head.headers.all()) fields_.emplace_back(field.name, field.value);
  }
  body(first);
}

void HttpCaller::OneCall::body(http::BodyPart part) {
  const std::size_t prefix = is_grpc() ? grpc::kPrefixBytes : 0;
  if (content_.size() + part.bytes.size() > bounds::service_reply_bytes_max + prefix) {
    return finish({failure(Fault::too_large, "bad_body",
                           "the answer is larger than " + std::to_string(bounds::service_reply_bytes_max) + " bytes"),
                   {}});
  }
  content_ += part.bytes;
  call_.consumed(part.bytes.size());
  if (!part.last) return;
  read_status(part.trailers);
  finish(is_grpc() ? read_grpc() : read_http());
}

void HttpCaller::OneCall::failed(const http::CallFailure& failed) {
  finish({failure(failed.error.fault, word_of(failed.error.fault), failed.error.detail), {}});
}

CallOutcome HttpCaller::OneCall::read_http() const {
  Result<ServiceReply> reply = parse_json_reply(content_, parts_.window_max);
  if (!reply) return {reply.error(), {}};
  std::vector<HttpHeader> fields;
  for (const auto& [name, value] : fields_) fields.push_back({name, value});
  const Freshness freshness = http_freshness(fields, *reply, service_->cache_ttl, parts_.loop.now().wall);
  return {std::move(reply), freshness};
}

CallOutcome HttpCaller::OneCall::read_grpc() const {
  if (grpc_status_ != "0") {
    const std::string status = grpc_status_.empty() ? "missing" : grpc_status_;
    return {failure(Fault::invalid, grpc_status_ == "4" ? "timeout" : "bad_status",
                    "grpc-status " + status + (grpc_message_.empty() ? "" : ": " + grpc_message_)),
            {}};
  }
  grpc::Message message;
  const bool whole = grpc::parse(content_, bounds::service_reply_bytes_max, message) == grpc::Parsed::whole;
  if (!whole || message.compressed || message.bytes.size() + grpc::kPrefixBytes != content_.size()) {
    return {failure(Fault::invalid, "bad_body", "the answer is not one uncompressed gRPC message"), {}};
  }
  Result<ServiceReply> reply = service_->codec == LimitsService::Codec::json
                                   ? parse_json_reply(message.bytes, parts_.window_max)
                                   : parse_protobuf_reply(message.bytes, parts_.window_max);
  if (!reply) return {reply.error(), {}};
  const Freshness freshness = grpc_freshness(*reply, service_->cache_ttl);
  return {std::move(reply), freshness};
}

// Cancels the call if it is still running. This object is destroyed at the end of the turn.
void HttpCaller::OneCall::finish(CallOutcome outcome) {
  if (!done_) return;
  call_.cancel();
  Done done = std::exchange(done_, {});
  const auto found = parts_.calls.find(number_);
  std::unique_ptr<OneCall> self = std::move(found->second);
  parts_.calls.erase(found);
  parts_.loop.retire(std::move(self));
  done(std::move(outcome));
}

HttpCaller::HttpCaller(Loop& loop, Resolver& resolver, Duration window_max, TlsOf tls_of)
    : parts_(std::make_unique<Parts>(loop, resolver, window_max, std::move(tls_of))) {}

HttpCaller::~HttpCaller() = default;

void HttpCaller::call(std::shared_ptr<const LimitsService> service, const ServiceQuestion& question, Done done) {
  const std::uint64_t number = parts_->next++;
  auto made = std::make_unique<OneCall>(*parts_, number, std::move(service), std::move(done));
  OneCall& one = *made;
  parts_->calls.emplace(number, std::move(made));
  one.begin(question);
}

}  // namespace weir::external
