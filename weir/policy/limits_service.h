// A service that decides a limit's numbers: what the configuration says about it, what it answers, and where resolve()
// finds its answers. Plain values; external/ asks the service and keeps the answers.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/base/time.h"
#include "weir/core/charge.h"
#include "weir/core/limit.h"

namespace weir {

struct NamedLimit;

// One section `external` of the configuration, defaults filled in and secrets read.
struct LimitsService {
  enum class Protocol : unsigned char { http, grpc };
  enum class Codec : unsigned char { protobuf, json };  // of gRPC messages

  Protocol protocol = Protocol::http;
  std::string address;  // HTTP: the URL; gRPC: host and port
  std::string method;   // gRPC: "/weir.limits.v1.LimitService/GetLimits"
  Codec codec = Codec::protobuf;
  std::vector<std::pair<std::string, std::string>> fields;  // sent with every question: headers, or metadata
  bool tls = false;                                         // for gRPC; for HTTP the URL decides
  std::string ca_file;                                      // empty: the system's
  std::string cert_file;
  std::string key_file;
  std::string server_name;
  Duration timeout{};    // of a call, and of the wait for one
  Duration cache_ttl{};  // of an answer that gives none
  std::size_t concurrent_max = 0;
  std::size_t waiting_max = 0;
  bool backend_required = false;
  std::vector<std::string> allowed_hosts;  // in lower case
  std::vector<std::string> allow_list;     // header names as written
  std::vector<std::string> deny_list;
  std::string digest;  // of protocol, address and method: an answer of another service is not used
};

// What a service said about one key. The optional fields are valid, or were left out.
struct ServiceAnswer {
  std::optional<Limit> numbers;  // absent: unlimited
  std::string tenant_key;        // empty: none
  std::optional<FailurePolicy> failure_policy;
  std::optional<int> failure_code;
  std::string backend_url;   // unchecked; empty: none
  Time since = Time::max();  // when its numbers came into force here; max: just now
};

// The answers that are known. Thread-safe.
class ServiceAnswers {
 public:
  virtual ~ServiceAnswers() = default;

  struct Found {
    std::shared_ptr<const ServiceAnswer> answer;  // null: none is known
    bool ask = false;                             // ask the service before using it
  };
  // For that id of a limit with a service. The id is what bucket keys have: canonical, or hashed.
  virtual Found find(const NamedLimit& limit, std::string_view id, Time now) const = 0;
};

}  // namespace weir
