// Feeds frames to an Http2Session in pieces, with a handler that does what the bytes say. Whatever happens, every
// begin() has its end, nothing leaks, and the output stays within its bound.
#include "weir/http/http2_session.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/assert.h"
#include "weir/base/bounds.h"
#include "weir/http/whole.h"

namespace weir::http {
namespace {

class FuzzOutput final : public Output {
 public:
  FuzzOutput() : Output(text) {}
  void clear_touched() noexcept { touched_ = false; }
  std::string text;

 private:
  void wake() override {}
};

// Takes its decisions from the input, one byte each.
class FuzzHandler final : public Handler {
 public:
  explicit FuzzHandler(std::string_view plan) : plan_(plan) {}

  void begin(Exchange& exchange, const RequestHead& head, BodyPart part) override {
    ++begun;
    WEIR_ASSERT(!head.method.empty() && !head.path.empty() && !head.host.empty());
    exchange.attach(std::make_unique<Attached>(*this));
    act(exchange);
    body(exchange, part);
  }
  void body(Exchange& exchange, BodyPart part) override {
    act(exchange);
    if (next() % 4 != 0) exchange.consumed(part.bytes.size());
    if (part.last && next() % 8 != 0) respond(exchange, true);
  }

  std::size_t begun = 0;
  std::size_t ended_count = 0;

 private:
  class Attached final : public Receiver {
   public:
    explicit Attached(FuzzHandler& owner) : owner_(owner) {}
    void body(Exchange& exchange, BodyPart part) override { owner_.body(exchange, part); }
    void answered(Exchange& exchange, std::uint32_t, const Result<Answer>&) override { owner_.act(exchange); }
    void can_ask(Exchange& exchange) override { owner_.act(exchange); }
    void expired(Exchange& exchange) override { owner_.act(exchange); }
    void drained(Exchange& exchange, std::size_t) override { owner_.act(exchange); }
    void ended(Exchange& exchange, Ending) override {
      ++owner_.ended_count;
      owner_.act(exchange);
    }

   private:
    FuzzHandler& owner_;
  };
  struct Notes {
    bool responded;
    bool complete;
  };

  unsigned next() noexcept {
    if (plan_.empty()) return 1;
    const auto byte = static_cast<unsigned char>(plan_[at_++ % plan_.size()]);
    return byte;
  }
  void respond(Exchange& exchange, bool last) {
    Notes& notes = exchange.notes<Notes>();
    if (notes.complete) return;
    const std::string text(last ? next() : std::min<std::size_t>(exchange.room(), 20'000), 'x');
    const std::vector<HttpHeader> trailers(last && next() % 4 == 0 ? 1 : 0, HttpHeader{"a", "b"});
    if (notes.responded) {
      exchange.write({text, last, trailers});
    } else {
      exchange.respond({next() % 8 == 0 ? 204 : 200, "text/plain", {"x: y\r\n", {}}, {}}, {text, last, trailers});
    }
    notes.responded = true;
    notes.complete = last;
  }
  void act(Exchange& exchange) {
    switch (next() % 12) {
      case 0:
        return exchange.abort();
      case 1:
        return exchange.discard();
      case 2:
        return exchange.proceed();
      case 3:
        exchange.ask();
        return;
      case 4:
        return respond(exchange, false);
      case 5:
        return exchange.expire_at(exchange.now().time + std::chrono::seconds{next()});
      case 6:
        if (!exchange.notes<Notes>().responded) exchange.inform(103, {"Link: a\r\n", {}});
        return;
      default:
        return;
    }
  }

  std::string_view plan_;
  std::size_t at_ = 0;
};

class FuzzConnection {
 public:
  explicit FuzzConnection(std::string_view plan)
      : handler_(plan), session_(std::make_unique<Http2Session>(shared_, handler_, connection_)) {}

  ~FuzzConnection() {
    session_.reset();
    WEIR_ASSERT(handler_.begun == handler_.ended_count);
    WEIR_ASSERT(shared_.exchanges->open_count() == 0 && shared_.http2.library_bytes() == 0);
  }

  // False: the connection is over.
  bool read(std::string_view part, bool answers, bool writes) {
    now_.time += std::chrono::milliseconds{part.size()};
    const std::string copy(part);
    Queries queries;
    const Result<std::size_t> used = session_->receive(copy, queries, now_);
    note(queries);
    for (int pass = 0; pass < 4 && session_->has_more(); ++pass) {
      Queries more;
      session_->resume(more, now_);
      note(more);
    }
    if (answers) {
      for (const std::uint64_t token : owed_) session_->reply(token, Error{Fault::timeout, ""});
      owed_.clear();
    }
    if (now_.time >= session_->deadline()) session_->expire(now_.time);
    for (int pass = 0; pass < 4 && output_.wants_fill && output_.text.size() < bounds::http_window_bytes; ++pass)
      session_->fill(output_.text.size());
    output_.clear_touched();
    WEIR_ASSERT(output_.text.size() <= 8 * bounds::http_window_bytes);
    if (writes) output_.text.clear();
    return used && !session_->finished();
  }
  void end_input() { session_->end_of_input(now_); }
  void drain() { session_->drain(now_.time); }

 private:
  void note(const Queries& queries) {
    WEIR_ASSERT(queries.all().size() <= bounds::queries_per_turn_max);
    for (const Asked& asked : queries.all()) owed_.push_back(asked.token);
  }

  HttpShared shared_;
  FuzzOutput output_;
  NewConnection connection_{output_, "192.0.2.1", {}, {}, false};
  FuzzHandler handler_;
  Now now_{Time{} + std::chrono::hours{1}, Wall{}};
  std::vector<std::uint64_t> owed_;
  std::unique_ptr<Http2Session> session_;
};

}  // namespace
}  // namespace weir::http

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  // The plan: up to 32 bytes; the rest are the client's, behind its preface.
  const std::string_view plan = input.substr(0, 32);
  const std::string bytes = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + std::string(input.substr(plan.size()));
  weir::http::FuzzConnection connection(plan);
  std::size_t at = 0;
  for (std::size_t step = 0; at < bytes.size(); ++step) {
    const unsigned choice = plan.empty() ? 7 : static_cast<unsigned char>(plan[step % plan.size()]);
    const std::size_t piece = choice % 8 == 0 ? 1 : choice % 8 < 4 ? choice : bytes.size();
    const std::string_view part = std::string_view(bytes).substr(at, piece);
    at += part.size();
    if (choice == 254) connection.drain();
    if (!connection.read(part, choice % 3 != 0, choice % 5 != 0)) return 0;
  }
  connection.end_input();
  connection.read({}, true, true);
  return 0;
}
