// The decision API: POST /v1/check /v1/throttle /v1/refund /v1/peek /v1/reset, any method on /v1/authorize, and the
// probes. In: whole requests. Out: questions, and a response for each request once its questions are answered. An
// invalid request gets a response that says why.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "weir/base/log.h"
#include "weir/core/answer.h"
#include "weir/http/whole.h"
#include "weir/protocol/http/fault_status.h"
#include "weir/protocol/http/health.h"
#include "weir/protocol/http/http_tokens.h"
#include "weir/wire/json.h"

namespace weir {

class CheckHandler final : public http::WholeHandler {
 public:
  explicit CheckHandler(const Health& health) : health_(health) {}

  HttpTokens tokens;   // that callers must present; the owner replaces them between calls
  Log* log = nullptr;  // gets bad requests, at debug

  bool overlaps() const noexcept override { return true; }
  bool refuse(http::Exchange& exchange, const RequestHead& head) override;
  void request(http::Exchange& exchange, const RequestHead& head, std::string_view content) override;
  void answered(http::Exchange& exchange, std::uint32_t question, const Result<Answer>& answer) override;
  void can_ask(http::Exchange& exchange) override;

 private:
  friend class CheckArray;
  struct Route;
  // What a response needs to know of its request. A whole number of these fits into an exchange's notes.
  struct Check {
    const Route* route;   // null: unknown path
    Count cost;           // if there is one for all charges, otherwise 0
    std::int16_t denied;  // the status of a denial
    bool explain;
    bool problem;  // wants a denial as application/problem+json
  };

  static const Route* find_route(std::string_view path) noexcept;
  static Check& check_of(http::Exchange& exchange) noexcept { return exchange.notes<Check>(); }

  bool refuse_caller(http::Exchange& exchange, const RequestHead& head);
  void probe(http::Exchange& exchange, const RequestHead& head);
  void answer_probe(http::Exchange& exchange, bool store_decides);
  void authorize(http::Exchange& exchange, const RequestHead& head);
  void ask_one(http::Exchange& exchange, JsonValue value);
  void ask_many(http::Exchange& exchange, JsonValue array, std::string_view content);
  std::optional<ApiError> decode(JsonValue value, http::Exchange& exchange, Query& query) const;
  std::optional<ApiError> error_in(const Check& check, Count cost, const Result<Answer>& answer) const;

  void fail(http::Exchange& exchange, const ApiError& error);
  void respond(http::Exchange& exchange, int status, std::string_view content_type = {}, std::string_view content = {});

  const Health& health_;
  // Scratch: nothing in it survives a call.
  JsonReader json_;
  std::string fields_;
  std::string content_;
};

}  // namespace weir
