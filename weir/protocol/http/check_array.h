// An array of checks in one request: asks them, a batch at a time if they are many, and responds with an array of the
// answers in the same order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "weir/core/answer.h"
#include "weir/http/exchange.h"
#include "weir/protocol/http/check_handler.h"
#include "weir/wire/json.h"

namespace weir {

class CheckArray final : public http::Receiver {
 public:
  CheckArray(CheckHandler& handler, std::size_t size) : handler_(handler), answers_(size), costs_(size) {}

  // Asks as much as there is room for, and responds if there was nothing to ask. `content` is what the array was read
  // from.
  void start(http::Exchange& exchange, JsonValue array, std::string_view content);

  void body(http::Exchange&, http::BodyPart) override {}
  void answered(http::Exchange& exchange, std::uint32_t question, const Result<Answer>& answer) override;
  void can_ask(http::Exchange& exchange) override;

 private:
  void ask_items(http::Exchange& exchange, JsonValue array);
  void write_item(http::Exchange& exchange, std::size_t item, const Result<Answer>& answer);
  void respond_if_complete(http::Exchange& exchange);

  CheckHandler& handler_;
  std::string content_;                 // of the request, while not everything in it was asked
  std::vector<std::string> answers_;    // by item
  std::vector<Count> costs_;            // by item; 0: not one for all
  std::vector<std::uint32_t> item_of_;  // by question
  std::size_t read_ = 0;                // items
  std::size_t missing_ = 0;             // answers to what was asked
  bool failed_ = false;                 // one of the answers is an error
};

}  // namespace weir
