#include "weir/protocol/http/check_array.h"

#include <string>
#include <vector>

#include "weir/http/error_reply.h"
#include "weir/protocol/bad_request.h"
#include "weir/protocol/http/answer_json.h"
#include "weir/protocol/http/check_route.h"

namespace weir {

void CheckArray::start(http::Exchange& exchange, JsonValue array, std::string_view content) {
  ask_items(exchange, array);
  if (read_ < answers_.size()) content_ = content;
  respond_if_complete(exchange);
}

void CheckArray::can_ask(http::Exchange& exchange) {
  const Result<JsonValue> array = handler_.json_.read(content_);
  ask_items(exchange, *array);
  if (read_ == answers_.size()) std::string().swap(content_);
  respond_if_complete(exchange);
}

// Asks the items, from the first unread one until there is no room.
void CheckArray::ask_items(http::Exchange& exchange, JsonValue array) {
  std::size_t i = 0;
  for (const JsonValue item : array.items()) {
    if (i++ < read_) continue;
    if (exchange.queries().full()) {
      (void)exchange.ask();  // so that can_ask() follows
      return;
    }
    const auto index = static_cast<std::uint32_t>(read_++);
    Query query;
    if (const auto error = handler_.decode(item, exchange, query)) {
      log_bad_request(handler_.log, exchange.peer(), error->message);
      http::write_error(error->code, error->message, answers_[index]);
      failed_ = true;
      continue;
    }
    costs_[index] = one_cost(query);
    *exchange.ask() = query;
    item_of_.push_back(index);
    ++missing_;
  }
}

void CheckArray::answered(http::Exchange& exchange, std::uint32_t question, const Result<Answer>& answer) {
  write_item(exchange, item_of_[question], answer);
  --missing_;
  respond_if_complete(exchange);
}

void CheckArray::write_item(http::Exchange& exchange, std::size_t item, const Result<Answer>& answer) {
  const CheckHandler::Check& check = CheckHandler::check_of(exchange);
  std::string& text = answers_[item];
  if (const auto error = handler_.error_in(check, costs_[item], answer)) {
    log_bad_request(handler_.log, exchange.peer(), error->message);
    http::write_error(error->code, error->message, text);
    failed_ = true;
  } else if (check.route->mode == Mode::reset) {
    text = "{}";
  } else {
    const bool no_access = answer->access == Access::deny_listed;
    write_answer(*answer, check.explain, no_access ? Denial::explained : Denial::plain, text);
  }
}

void CheckArray::respond_if_complete(http::Exchange& exchange) {
  if (missing_ > 0 || read_ < answers_.size()) return;
  if (CheckHandler::check_of(exchange).route->mode == Mode::reset && !failed_) return handler_.respond(exchange, 204);
  std::string& content = handler_.content_;
  content.clear();
  for (const std::string& answer : answers_) content.append(1, content.empty() ? '[' : ',').append(answer);
  content += content.empty() ? "[]\n" : "]\n";
  handler_.respond(exchange, 200, http::kJson, content);
  // A slow client keeps the exchange, and with it this object, for a while.
  std::vector<std::string>().swap(answers_);
}

}  // namespace weir
