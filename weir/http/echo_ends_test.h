// For tests and fuzzers: the two ends of an echo. The handler sends each request's body and trailers back, within the
// windows; the caller writes a request, takes its response, and asserts that it is told nothing after the end.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "weir/base/assert.h"
#include "weir/base/bounds.h"
#include "weir/http/call.h"
#include "weir/http/handler.h"

namespace weir::http {

class EchoingHandler final : public Handler {
 public:
  class Echo final : public Receiver {
   public:
    Echo(EchoingHandler& handler, Exchange& exchange) : handler_(handler), exchange_(exchange) {
      handler_.open.insert(this);
    }
    ~Echo() override { handler_.open.erase(this); }

    void body(Exchange&, BodyPart part) override {
      WEIR_ASSERT(!last_);
      held_ += part.bytes;
      WEIR_ASSERT(held_.size() <= bounds::http_window_bytes);
      last_ = part.last;
      for (const HttpHeader& field : part.trailers) trailers_.emplace_back(field.name, field.value);
      if (!handler_.stalled) move();
    }
    void drained(Exchange&, std::size_t bytes) override {
      WEIR_ASSERT(bytes <= undrained_);
      undrained_ -= bytes;
      if (!handler_.stalled) move();
    }
    void ended(Exchange&, Ending ending) override {
      ++handler_.endings[ending];
      ended_ = true;
    }
    // Responds, and passes on what fits.
    void move() {
      if (done_ || ended_) return;
      if (!std::exchange(responded_, true)) exchange_.respond({200, "text/plain", {}, {}}, {});
      const std::string part = held_.substr(0, exchange_.room());
      held_.erase(0, part.size());
      done_ = last_ && held_.empty();
      if (part.empty() && !done_) return;
      std::vector<HttpHeader> trailers;
      for (const auto& [name, value] : trailers_) trailers.push_back({name, value});
      undrained_ += part.size();
      handler_.echoed += part.size();
      exchange_.write({part, done_, done_ ? std::span<const HttpHeader>(trailers) : std::span<const HttpHeader>()});
      exchange_.consumed(part.size());
    }

   private:
    EchoingHandler& handler_;
    Exchange& exchange_;
    std::string held_;
    std::vector<std::pair<std::string, std::string>> trailers_;
    std::size_t undrained_ = 0;
    bool responded_ = false;
    bool last_ = false;
    bool done_ = false;
    bool ended_ = false;
  };

  void begin(Exchange& exchange, const RequestHead&, BodyPart first) override {
    ++begun;
    auto echo = std::make_unique<Echo>(*this, exchange);
    Echo& to = *echo;
    exchange.attach(std::move(echo));
    exchange.proceed();
    to.body(exchange, first);
  }
  void body(Exchange&, BodyPart) override {}
  void move() {
    for (Echo* const echo : open) echo->move();
  }
  std::size_t endings_told() const {
    std::size_t all = 0;
    for (const auto& [ending, count] : endings) all += count;
    return all;
  }

  std::size_t begun = 0;
  std::size_t echoed = 0;  // bytes
  std::map<Ending, std::size_t> endings;
  std::set<Echo*> open;
  bool stalled = false;
};

struct EchoCaller final : Call::Owner {
  std::string request;
  bool has_trailer = true;                               // a request whose length is announced has none
  std::size_t consumes_max = bounds::http_window_bytes;  // at once
  std::size_t written = 0;
  std::string response;
  std::size_t unconsumed = 0;
  std::size_t drained_bytes = 0;
  int status = 0;
  int ends = 0;
  bool request_done = false;
  bool complete = false;
  bool canceled = false;
  std::string trailer;
  Call call;

  void head(const ResponseHead& head, BodyPart first) override {
    WEIR_ASSERT(status == 0);
    status = head.status;
    body(first);
  }
  void body(BodyPart part) override {
    WEIR_ASSERT(ends == 0 && status != 0 && !canceled);
    response += part.bytes;
    unconsumed += part.bytes.size();
    for (const HttpHeader& field : part.trailers) trailer += std::string(field.name) + "=" + std::string(field.value);
    if (!part.last) return;
    ++ends;
    complete = true;
  }
  void drained(std::size_t bytes) override {
    WEIR_ASSERT(ends == 0 && !canceled);
    drained_bytes += bytes;
    WEIR_ASSERT(drained_bytes <= written);
  }
  void failed(const CallFailure&) override {
    WEIR_ASSERT(ends == 0 && !canceled);
    ++ends;
  }
  // Writes up to `bytes` more.
  void write(std::size_t bytes) {
    if (!call || request_done) return;
    const std::string part = request.substr(written, std::min(bytes, call.room()));
    const bool last = written + part.size() == request.size();
    if (part.empty() && !last) return;
    const HttpHeader sum{"sum", "1"};
    const bool adds_trailer = last && has_trailer;
    written += part.size();
    WEIR_ASSERT(call.room() >= part.size());
    call.write({part, last, adds_trailer ? std::span<const HttpHeader>(&sum, 1) : std::span<const HttpHeader>()});
    request_done = last;
  }
  // Returns the credit of up to `bytes`.
  void consume(std::size_t bytes) {
    if (!call) return;
    const std::size_t credit = std::min({bytes, unconsumed, consumes_max});
    unconsumed -= credit;
    call.consumed(credit);
  }
  // Of the response. What the last part left needs no credit.
  std::size_t consumed() const { return response.size() - (ends > 0 ? 0 : unconsumed); }
  bool is_over() const { return ends == 1 || canceled; }
  // Whether the whole request came back. Asserts that a complete response is the request, or an error.
  bool is_echoed() const {
    WEIR_ASSERT(is_over());
    if (!complete || status != 200) return false;
    WEIR_ASSERT(response == request);
    WEIR_ASSERT(trailer == (has_trailer ? "sum=1" : ""));
    WEIR_ASSERT(drained_bytes == request.size());
    return true;
  }
};

}  // namespace weir::http
