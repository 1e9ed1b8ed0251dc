// One proxied request: checks its head, asks the limits, calls a backend, and relays bytes in both directions.
//
//   begin()     checks in the order of docs/proxy.md: method and size, requests in progress, route
//   ask         the limits; for a `form:` key the body is read first
//   call        a backend; another one if nothing was sent to the first
//   relay       bytes that leave one side return credit to the other, so neither is more than one window ahead
//
// Attached to its exchange, which owns it. The call is canceled when the exchange ends.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/http/call.h"
#include "weir/http/exchange.h"
#include "weir/proxy/destination.h"
#include "weir/proxy/fields.h"
#include "weir/proxy/proxy_shared.h"
#include "weir/proxy/reply.h"

namespace weir::proxy {

class Relay final : public http::Receiver, private http::Call::Owner {
 public:
  Relay(ProxyLoop& loop, http::Exchange& exchange);
  ~Relay() override;

  void begin(const RequestHead& head, http::BodyPart first);

  // --- http::Receiver: the client's side ---
  void body(http::Exchange& exchange, http::BodyPart part) override;
  void answered(http::Exchange& exchange, std::uint32_t question, const Result<Answer>& answer) override;
  void can_ask(http::Exchange& exchange) override;
  void expired(http::Exchange& exchange) override;
  void drained(http::Exchange& exchange, std::size_t bytes) override;
  void refused(http::Exchange& exchange, const HttpProblem& problem) override;
  void ended(http::Exchange& exchange, http::Ending ending) override;

 private:
  static constexpr std::string_view kUndecided = "none";

  enum class Stage : unsigned char {
    reading_form,  // the whole body is read before the question
    asking,
    calling,     // no response head yet
    responding,  // a response, or a tunnel
    over,        // the last byte was written
  };

  // --- http::Call::Owner: the backend's side ---
  void informed(const ResponseHead& head) override;
  void head(const ResponseHead& head, http::BodyPart first) override;
  void body(http::BodyPart part) override;
  void drained(std::size_t bytes) override;
  void failed(const http::CallFailure& failure) override;

  void remember(const RequestHead& head);
  bool refuse_head(const RequestHead& head);
  Result<const Route*> find_route(const RequestHead& head);
  void make_attributes(const RequestHead& head, const FieldList& kept, std::string_view peer);
  bool is_preflight(const RequestHead& head) const noexcept;
  void hold(http::BodyPart part);
  bool exceeds_body_max();
  void read_form(http::BodyPart part);
  void return_early(std::size_t bytes);
  void add_form_fields();
  void ask();
  void record(const Answer& answer);
  void use_backend_url(const Answer& answer);
  void refuse_backend(std::string_view reason);
  void call();
  bool retry(const http::CallFailure& failure);
  void report(UpstreamOutcome outcome, std::string_view why = {});
  void respond_error(const Reply& reply);
  void count_own(std::size_t bytes);
  std::string own_lines() const;
  void write(http::BodyPart part);
  void finish_request();
  void log();

  ProxyLoop& loop_;
  http::Exchange& exchange_;
  std::shared_ptr<const Destinations> destinations_;  // of the configuration that the request began with
  const Destination* destination_ = nullptr;          // null: none, or not known yet
  const Backend* backend_ = nullptr;                  // the one called last
  std::unique_ptr<Backend> named_;                    // by Answer::backend_url
  UpstreamGroup::Choice choice_;
  std::uint64_t tried_ = 0;  // a bit for each backend
  http::Call call_;

  Stage stage_ = Stage::asking;
  ReplyForm form_;
  bool counted_ = false;           // in Gateway::active
  bool has_rate_headers_ = false;  // Weir's own, which replace those of the backend
  bool passes_ = false;            // a preflight that takes no token
  bool degraded_ = false;
  bool choosing_ = false;  // choice_ must still be reported
  bool expects_continue_ = false;
  bool accepts_trailers_ = false;
  bool body_complete_ = false;  // of the request
  bool anything_sent_ = false;  // to the backend: the body is no longer kept for a retry
  bool form_body_ = false;      // the body is a form that can be read
  bool tunnel_ = false;
  bool client_done_ = false;  // of a tunnel: its direction has ended
  bool backend_done_ = false;

  // The request, as the backend gets it.
  std::vector<Attribute> attributes_;
  std::string attribute_text_;
  std::vector<std::unique_ptr<std::pair<std::string, std::string>>> form_values_;
  std::string method_;
  std::string target_;  // path and query
  std::string host_;
  std::string upgrade_;
  std::string lines_;
  std::string request_id_;
  std::string client_;
  std::string user_agent_;
  std::string_view protocol_;
  std::string_view scheme_;
  std::optional<std::uint64_t> length_;
  std::string kept_;  // body bytes that may have to be sent again, or that wait for the answer
  std::vector<std::pair<std::string, std::string>> trailers_;
  std::string connection_options_;           // of the request
  std::string response_connection_options_;  // of the response
  std::size_t returned_early_ = 0;           // body bytes whose credit was returned before they left

  std::string rate_lines_;
  std::string_view decision_ = kUndecided;
  std::vector<AccessedLimit> limits_;
  std::size_t unconsumed_ = 0;  // response bytes not yet credited to the call
  std::uint64_t bytes_in_ = 0;
  std::uint64_t bytes_out_ = 0;
  int status_ = 0;
  Time began_{};
  Wall began_wall_{};
  Time called_{};
  Duration upstream_time_{};
};

}  // namespace weir::proxy
