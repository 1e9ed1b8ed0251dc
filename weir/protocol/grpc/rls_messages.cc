#include "weir/protocol/grpc/rls_messages.h"

#include <google/protobuf/arena.h>
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <vector>

#include <proto/envoy/service/ratelimit/v3/rls.pb.h>
#include <proto/grpc/health/v1/health.pb.h>
#include "weir/base/bounds.h"
#include "weir/protocol/grpc/rls_status.h"

namespace weir::rls {
namespace {

namespace pb = google::protobuf;
using envoy::service::ratelimit::v3::RateLimitRequest;
using envoy::service::ratelimit::v3::RateLimitResponse;
using PbDescriptor = envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;

Refusal too_many(std::string_view what, int given, std::size_t most) {
  return {grpc::Status::resource_exhausted,
          std::to_string(given) + " " + std::string(what) + " are given; at most " + std::to_string(most) + " can be"};
}

Count to_cost(std::uint64_t hits) noexcept {
  return static_cast<Count>(std::min<std::uint64_t>(hits, std::numeric_limits<Count>::max()));
}

// Of envoy.type.v3.RateLimitUnit; nothing: unknown.
std::optional<Duration> period_of(int unit) noexcept {
  using namespace std::chrono;
  constexpr Duration kPeriods[] = {seconds{1}, minutes{1}, hours{1}, days{1}, days{30}, days{365}};
  if (unit < 1 || unit > static_cast<int>(std::size(kPeriods))) return {};
  return kPeriods[unit - 1];
}

std::optional<Refusal> read_descriptor(const PbDescriptor& from, std::uint32_t hits, Queries& queries, Descriptor& to) {
  if (from.entries_size() > static_cast<int>(bounds::descriptor_entries_max)) {
    return too_many("entries of a descriptor", from.entries_size(), bounds::descriptor_entries_max);
  }
  InlineList<Attribute, bounds::descriptor_entries_max> entries;
  for (const PbDescriptor::Entry& entry : from.entries()) {
    entries.push_back({queries.copy(entry.key()), queries.copy(entry.value())});
  }
  to.entries = queries.copy(std::span<const Attribute>(entries.begin(), entries.size()));
  to.cost = hits == 0 ? 1 : Count{hits};
  if (from.has_hits_addend()) {
    to.peeks = from.hits_addend().value() == 0;
    to.cost = to.peeks ? 1 : to_cost(from.hits_addend().value());
  }
  if (!from.has_limit()) return {};
  const std::optional<Duration> period = period_of(from.limit().unit());
  if (!period) {
    return Refusal{grpc::Status::invalid_argument,
                   "the limit of a descriptor has the unknown unit " + std::to_string(from.limit().unit())};
  }
  to.numbers = OwnNumbers{from.limit().requests_per_unit(), *period};
  return {};
}

bool parse(std::string_view bytes, Syntax syntax, pb::Message& message) {
  if (syntax == Syntax::protobuf) return message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
  pb::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;
  return pb::util::JsonStringToMessage({bytes.data(), bytes.size()}, &message, options).ok();
}

void serialize(const pb::Message& message, Syntax syntax, std::string& out) {
  if (syntax == Syntax::protobuf) {
    (void)message.AppendToString(&out);
    return;
  }
  pb::util::JsonPrintOptions options;
  std::string json;
  (void)pb::util::MessageToJsonString(message, &json, options);
  out += json;
}

void set_status(const Status& from, RateLimitResponse::DescriptorStatus& to) {
  to.set_code(from.over ? RateLimitResponse::OVER_LIMIT : RateLimitResponse::OK);
  to.set_limit_remaining(from.remaining);
  if (!from.has_limit) return;
  RateLimitResponse::RateLimit& limit = *to.mutable_current_limit();
  limit.set_requests_per_unit(from.requests_per_unit);
  limit.set_unit(static_cast<RateLimitResponse::RateLimit::Unit>(from.unit));
  if (!from.name.empty()) limit.set_name(from.name.data(), from.name.size());
  if (from.multiplier != 1) limit.mutable_unit_multiplier()->set_value(from.multiplier);
  to.mutable_duration_until_reset()->set_seconds(from.reset_seconds);
}

void add_header(std::string_view name, std::int64_t value, RateLimitResponse& to) {
  auto& header = *to.add_response_headers_to_add();
  header.set_key(name.data(), name.size());
  header.set_value(std::to_string(value));
}

pb::Value& field(pb::Struct& of, const char* name) {
  return (*of.mutable_fields())[name];
}

// Adds the request and the metadata of its descriptors, for the proxy's logs and filters.
void add_metadata(const Answer& answer, std::string_view request, RateLimitResponse& to) {
  RateLimitRequest asked;
  if (!parse(request, Syntax::protobuf, asked)) return;
  pb::Struct& metadata = *to.mutable_dynamic_metadata();
  field(metadata, "domain").set_string_value(asked.domain());
  if (asked.hits_addend() != 0) field(metadata, "hitsAddend").set_number_value(asked.hits_addend());
  pb::ListValue& descriptors = *field(metadata, "descriptors").mutable_list_value();
  pb::ListValue violations;
  bool quota_mode = false;
  for (int i = 0; i < asked.descriptors_size(); ++i) {
    pb::Struct& one = *descriptors.add_values()->mutable_struct_value();
    pb::ListValue& entries = *field(one, "entries").mutable_list_value();
    for (const auto& entry : asked.descriptors(i).entries()) {
      entries.add_values()->set_string_value(entry.key() + "=" + entry.value());
    }
    if (asked.descriptors(i).has_hits_addend()) {
      field(one, "hitsAddend").set_number_value(static_cast<double>(asked.descriptors(i).hits_addend().value()));
    }
    const auto index = static_cast<std::size_t>(i);
    if (index >= answer.descriptors.size()) continue;
    const DescriptorAnswer& descriptor = answer.descriptors[index];
    if (!descriptor.metadata.empty()) {
      (void)parse(descriptor.metadata, Syntax::json, *field(one, "metadata").mutable_struct_value());
    }
    quota_mode |= descriptor.alternative;
    if (descriptor.alternative && to.statuses(i).code() == RateLimitResponse::OVER_LIMIT) {
      violations.add_values()->set_number_value(i);
    }
  }
  field(metadata, "quotaModeEnabled").set_bool_value(quota_mode);
  if (violations.values_size() > 0) *field(metadata, "quotaModeViolations").mutable_list_value() = violations;
}

}  // namespace

std::optional<Refusal> read_request(std::string_view bytes, Syntax syntax, Queries& queries, Query& query) {
  alignas(8) char room[4096];
  pb::ArenaOptions options;
  options.initial_block = room;
  options.initial_block_size = sizeof room;
  pb::Arena arena(options);
  auto& request = *pb::Arena::CreateMessage<RateLimitRequest>(&arena);
  if (!parse(bytes, syntax, request)) {
    const std::string_view what = syntax == Syntax::json ? "the content is not the JSON of a RateLimitRequest"
                                                         : "the message is not a RateLimitRequest";
    return Refusal{grpc::Status::internal, std::string(what)};
  }
  if (request.domain().empty()) return Refusal{grpc::Status::unknown, "rate limit domain must not be empty"};
  if (request.descriptors_size() == 0) {
    return Refusal{grpc::Status::unknown, "rate limit descriptor list must not be empty"};
  }
  if (request.descriptors_size() > static_cast<int>(bounds::descriptors_max)) {
    return too_many("descriptors", request.descriptors_size(), bounds::descriptors_max);
  }
  InlineList<Descriptor, bounds::descriptors_max> descriptors;
  for (const PbDescriptor& from : request.descriptors()) {
    Descriptor descriptor;
    if (auto refusal = read_descriptor(from, request.hits_addend(), queries, descriptor)) return refusal;
    descriptors.push_back(descriptor);
  }
  query.mode = Mode::spend;
  query.subject = Descriptors{queries.copy(request.domain()),
                              queries.copy(std::span<const Descriptor>(descriptors.begin(), descriptors.size()))};
  return {};
}

bool write_response(const Answer& answer, Syntax syntax, const Options& options, std::string_view request,
                    std::string& out) {
  alignas(8) char room[4096];
  pb::ArenaOptions arena_options;
  arena_options.initial_block = room;
  arena_options.initial_block_size = sizeof room;
  pb::Arena arena(arena_options);
  auto& response = *pb::Arena::CreateMessage<RateLimitResponse>(&arena);
  const bool over = !answer.verdict.allowed;
  response.set_overall_code(over ? RateLimitResponse::OVER_LIMIT : RateLimitResponse::OK);
  std::optional<Status> nearest;  // to its limit, or over it
  for (std::size_t i = 0; i < answer.descriptors.size(); ++i) {
    const Status status = status_of(answer, i);
    set_status(status, *response.add_statuses());
    if (status.has_limit && (!nearest || status.is_stricter_than(*nearest))) nearest = status;
  }
  if (options.headers && nearest) {
    add_header("RateLimit-Limit", nearest->requests_per_unit, response);
    add_header("RateLimit-Remaining", nearest->remaining, response);
    add_header("RateLimit-Reset", nearest->reset_seconds, response);
  }
  if (const std::optional<std::int64_t> wait = over ? retry_seconds(answer) : std::nullopt) {
    add_header("Retry-After", *wait, response);
  }
  if (options.metadata) add_metadata(answer, request, response);
  serialize(response, syntax, out);
  return !over;
}

void write_closed(std::size_t descriptors, Syntax syntax, std::string& out) {
  RateLimitResponse response;
  response.set_overall_code(RateLimitResponse::OVER_LIMIT);
  for (std::size_t i = 0; i < descriptors; ++i) response.add_statuses()->set_code(RateLimitResponse::OVER_LIMIT);
  add_header("Retry-After", 1, response);
  serialize(response, syntax, out);
}

std::optional<std::string> read_health_request(std::string_view bytes) {
  ::grpc::health::v1::HealthCheckRequest request;
  if (!parse(bytes, Syntax::protobuf, request)) return {};
  return request.service();
}

void write_health(Health health, std::string& out) {
  using Response = ::grpc::health::v1::HealthCheckResponse;
  Response response;
  response.set_status(health == Health::serving       ? Response::SERVING
                      : health == Health::not_serving ? Response::NOT_SERVING
                                                      : Response::SERVICE_UNKNOWN);
  serialize(response, Syntax::protobuf, out);
}

}  // namespace weir::rls
