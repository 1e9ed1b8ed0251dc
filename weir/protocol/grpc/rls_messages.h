// The messages of Envoy's rate limit service, as protobuf and as JSON. Turns the bytes of a request into a query, and
// an answer into the bytes of a response.
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

// What a response contains besides the decisions.
struct Options {
  bool headers = false;   // RateLimit-Limit, RateLimit-Remaining and RateLimit-Reset
  bool metadata = false;  // the request in dynamic_metadata
};

struct Refusal {
  grpc::Status status = grpc::Status::internal;
  std::string message;
};

// Fills in the query; what it points to is kept in `queries`. Returns a Refusal if it cannot be asked.
std::optional<Refusal> read_request(std::string_view bytes, Syntax syntax, Queries& queries, Query& query);

// Appends the response. `request` is needed for metadata only. Returns whether the request may pass.
bool write_response(const Answer& answer, Syntax syntax, const Options& options, std::string_view request,
                    std::string& out);

// Appends the response if the store is unavailable and must fail closed: OVER_LIMIT for each descriptor.
void write_closed(std::size_t descriptors, Syntax syntax, std::string& out);

// Returns the status of a query that could not be answered; nullopt if the store is unavailable, see write_closed().
std::optional<Refusal> refusal_of(const Error& error);

// grpc.health.v1. For an unknown service, Check ends with an error and Watch reports `service_unknown`.
enum class Health : unsigned char { serving, not_serving, service_unknown };

// Returns the service that a HealthCheckRequest names; nullopt if `bytes` is not such a message.
std::optional<std::string> read_health_request(std::string_view bytes);
void write_health(Health health, std::string& out);

}  // namespace weir::rls
