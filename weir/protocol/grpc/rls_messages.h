// The messages of Envoy's rate limit service, as protobuf and as JSON. In: a request's bytes. Out: a query. And from an
// answer to a response's bytes.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "weir/base/result.h"
#include "weir/core/answer.h"
#include "weir/core/query.h"
#include "weir/protocol/session.h"
#include "weir/wire/grpc.h"

namespace weir::rls {

enum class Syntax : unsigned char { protobuf, json };

// What a response repeats of its request, if it does.
struct Options {
  bool headers = false;   // RateLimit-Limit, RateLimit-Remaining and RateLimit-Reset
  bool metadata = false;  // the request in dynamic_metadata
};

struct Refusal {
  grpc::Status status = grpc::Status::internal;
  std::string message;
};

// Fills in the query; what it points to is kept in `queries`. Something: it cannot be asked.
std::optional<Refusal> read_request(std::string_view bytes, Syntax syntax, Queries& queries, Query& query);

// Appends the response. `request` is needed for metadata only. Returns whether the request may pass.
bool write_response(const Answer& answer, Syntax syntax, const Options& options, std::string_view request,
                    std::string& out);

// The response of a store that cannot be asked and must not let anything pass: OVER_LIMIT for each descriptor.
void write_closed(std::size_t descriptors, Syntax syntax, std::string& out);

// Of a question that could not be answered. Nothing: a store that cannot be asked, see write_closed().
std::optional<Refusal> refusal_of(const Error& error);

// grpc.health.v1. A call of Check ends with an error for an unknown service; a watch is told `service_unknown`.
enum class Health : unsigned char { serving, not_serving, service_unknown };

// The service that a HealthCheckRequest names; nothing: it is no such message.
std::optional<std::string> read_health_request(std::string_view bytes);
void write_health(Health health, std::string& out);

}  // namespace weir::rls
