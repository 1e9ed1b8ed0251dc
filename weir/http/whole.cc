#include "weir/http/whole.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "weir/http/error_reply.h"

namespace weir::http {
namespace {

// A head that outlives the bytes it was parsed from.
class OwnedHead {
 public:
  explicit OwnedHead(const RequestHead& from) : head_(from) {
    std::size_t bytes = 0;
    each_text([&](std::string_view& text) { bytes += text.size(); });
    text_.reserve(std::max<std::size_t>(bytes, 64));  // on the heap, so that it stays where it is when moved
    each_text([&](std::string_view& text) {
      const std::size_t at = text_.size();
      text_ += text;
      text = std::string_view(text_).substr(at);
    });
  }

  const RequestHead& head() const noexcept { return head_; }
  // The bytes that head() points to.
  std::string take_text() noexcept { return std::move(text_); }

 private:
  template <class Each>
  void each_text(Each each) {
    for (std::string_view* const text :
         {&head_.method, &head_.target, &head_.path, &head_.query, &head_.host, &head_.content_type,
          &head_.content_encoding, &head_.accept, &head_.scheme, &head_.upgrade}) {
      each(*text);
    }
    for (HttpHeader& header : head_.headers.all()) {
      each(header.name);
      each(header.value);
    }
  }

  RequestHead head_;
  std::string text_;
};

// Collects a request that arrives in pieces, then gives the exchange back to its handler.
class Gathering final : public Receiver {
 public:
  Gathering(WholeHandler& handler, const RequestHead& head, std::size_t bytes_max, bool asked_to_refuse)
      : handler_(handler), head_(head), bytes_max_(bytes_max), asked_to_refuse_(asked_to_refuse) {
    if (head.content_length) content_.reserve(std::min<std::size_t>(*head.content_length, bounds::http_window_bytes));
  }

  void body(Exchange& exchange, BodyPart part) override {
    if (part.bytes.size() > bytes_max_ - content_.size()) {
      exchange.attach(nullptr);
      return handler_.too_large(exchange);
    }
    if (!exchange.keep(part.bytes.size())) {
      exchange.attach(nullptr);
      return respond_problem(exchange, kTooMuchContent);
    }
    content_ += part.bytes;
    exchange.consumed(part.bytes.size());
    if (!part.last) return;
    exchange.keep_nothing();
    exchange.attach(nullptr);
    if (!asked_to_refuse_ && handler_.refuse(exchange, head_.head())) return;
    // Queries point into both, and this object is destroyed before the queries are asked.
    const std::string_view content = exchange.queries().keep(std::move(content_));
    exchange.queries().keep(head_.take_text());
    handler_.request(exchange, head_.head(), content);
  }

  void ended(Exchange& exchange, Ending ending) override {
    if (ending != Ending::complete) handler_.ended(exchange, ending);
  }

 private:
  WholeHandler& handler_;
  OwnedHead head_;
  std::size_t bytes_max_;
  bool asked_to_refuse_;
  std::string content_;
};

}  // namespace

void WholeHandler::too_large(Exchange& exchange) {
  respond_problem(exchange, kContentTooLarge);
}

void WholeHandler::begin(Exchange& exchange, const RequestHead& head, BodyPart first) {
  const std::size_t bytes_max = body_max(head);
  if (first.bytes.size() > bytes_max || head.content_length.value_or(0) > bytes_max) return too_large(exchange);
  if (first.last) {
    if (!refuse(exchange, head)) request(exchange, head, first.bytes);
    return;
  }
  const bool early = head.expects_continue || head.content_length.value_or(0) > bounds::http_window_bytes;
  if (early && refuse(exchange, head)) return;
  exchange.expect_at_most(bytes_max - first.bytes.size());
  exchange.proceed();
  auto gathering = std::make_unique<Gathering>(*this, head, bytes_max, early);
  Gathering& receiver = *gathering;
  exchange.attach(std::move(gathering));
  if (!first.bytes.empty()) receiver.body(exchange, first);
}

}  // namespace weir::http
