// For tests and fuzzers: a client and a session joined by two strings. A scheduler decides who moves, how many bytes
// pass, who stalls and who is cut off. The handler echoes each request's body and trailers, within the windows.
//
// Checked after every step: buffers are within their bounds. At the end: each begin() has one ended(), each call one
// end, all credit is back, nothing is alive.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/base/assert.h"
#include "weir/base/bounds.h"
#include "weir/http/client_parts_test.h"
#include "weir/http/handler.h"
#include "weir/http/http1_client.h"
#include "weir/http/http1_session.h"
#include "weir/http/http2_client.h"
#include "weir/http/http2_session.h"
#include "weir/http/http_shared.h"

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
    // Passes on what fits.
    void move() {
      if (done_ || ended_) return;
      const std::string part = held_.substr(0, exchange_.room());
      held_.erase(0, part.size());
      done_ = last_ && held_.empty();
      if (part.empty() && !done_) return;
      std::vector<HttpHeader> trailers;
      for (const auto& [name, value] : trailers_) trailers.push_back({name, value});
      undrained_ += part.size();
      exchange_.write({part, done_, done_ ? std::span<const HttpHeader>(trailers) : std::span<const HttpHeader>()});
      exchange_.consumed(part.size());
    }

   private:
    EchoingHandler& handler_;
    Exchange& exchange_;
    std::string held_;
    std::vector<std::pair<std::string, std::string>> trailers_;
    std::size_t undrained_ = 0;
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
    Response response;
    response.content_type = "text/plain";
    exchange.respond(response, {});
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
  std::map<Ending, std::size_t> endings;
  std::set<Echo*> open;
  bool stalled = false;
};

class TwoEnded {
 public:
  // Returns a number below `n`; what to do next and how much.
  using Choose = std::function<std::size_t(std::size_t n)>;

  TwoEnded(bool http2, Choose choose, std::size_t calls_max)
      : http2_(http2), choose_(std::move(choose)), calls_max_(calls_max) {
    connect();
  }

  // Returns the number of calls that were answered completely.
  std::size_t run(std::size_t steps, bool breaks) {
    for (std::size_t step = 0; step < steps && !is_done(); ++step) {
      take_step(breaks);
      check_bounds();
    }
    handler_.stalled = false;
    for (int step = 0; step < 100'000 && !is_done() && !cut_; ++step) {
      for (std::size_t action = 1; action <= 7; ++action) act(action, 1u << 16);
      check_bounds();
    }
    finish();
    return complete_;
  }

 private:
  struct Caller final : Call::Owner {
    std::string request;
    std::size_t written = 0;
    std::string response;
    std::size_t unconsumed = 0;
    std::size_t drained_bytes = 0;
    int heads = 0;
    int ends = 0;
    bool complete = false;
    bool canceled = false;
    std::string trailer;
    Call call;

    void head(const ResponseHead& head, BodyPart first) override {
      WEIR_ASSERT(head.status == 200 && heads == 0);
      ++heads;
      body(first);
    }
    void body(BodyPart part) override {
      WEIR_ASSERT(ends == 0 && heads == 1 && !canceled);
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
      if (!call || written == kDone) return;
      const std::string part = request.substr(written, std::min(bytes, call.room()));
      const bool last = written + part.size() == request.size();
      if (part.empty() && !last) return;
      const HttpHeader sum{"sum", "1"};
      written += part.size();
      WEIR_ASSERT(call.room() >= part.size());
      call.write({part, last, last ? std::span<const HttpHeader>(&sum, 1) : std::span<const HttpHeader>()});
      if (last) request_done = true;
    }
    bool request_done = false;
    static constexpr std::size_t kDone = ~std::size_t{0};
  };

  void connect() {
    client_.reset();
    session_.reset();
    client_out_ = std::make_unique<TextOutput>();
    server_out_ = std::make_unique<TextOutput>();
    up_.clear(), down_.clear(), to_server_.clear(), to_client_.clear();
    const NewConnection connection{*server_out_, "", http2_ ? "h2" : "", "", false};
    if (http2_) {
      client_ = std::make_unique<Http2Client>(*client_out_, client_shared_);
      session_ = std::make_unique<Http2Session>(server_shared_, handler_, connection);
    } else {
      client_ = std::make_unique<Http1Client>(*client_out_, client_shared_);
      session_ = std::make_unique<Http1Session>(server_shared_, handler_, connection);
    }
  }

  // An HTTP/1 server closes after a response that it began before it had read the request.
  void connect_again() {
    if (http2_ || cut_ || client_->end() == ClientEnd::open) return;
    WEIR_ASSERT(client_->calls() == 0);
    session_->lost();
    connect();
  }

  bool is_done() const {
    return cut_ || (callers_.size() == calls_max_ && std::all_of(callers_.begin(), callers_.end(), [](const auto& one) {
                      return one->ends == 1 || one->canceled;
                    }));
  }

  void take_step(bool breaks) {
    constexpr std::size_t kSizes[] = {1, 9, 100, 4096, 16'384, 65'536};
    if (breaks && choose_(1000) == 0) {
      act(choose_(4) == 0 ? 101 : 100, 0);
    } else {
      act(choose_(8), kSizes[choose_(std::size(kSizes))]);
    }
  }

  void act(std::size_t action, std::size_t bytes) {
    switch (action) {
      case 0:
        begin();
        break;
      case 1:
        if (Caller* const caller = pick(); caller != nullptr && !caller->request_done) caller->write(bytes);
        break;
      case 2:
        if (Caller* const caller = pick(); caller != nullptr && caller->call)
          caller->call.consumed(std::exchange(caller->unconsumed, 0));
        break;
      case 3:
        send_client(bytes);
        break;
      case 4:
        send_server(bytes);
        break;
      case 5:
        deliver_to_server(bytes);
        break;
      case 6:
        deliver_to_client(bytes);
        break;
      case 7:
        handler_.stalled = !handler_.stalled && choose_(4) == 0;
        if (!handler_.stalled) handler_.move();
        break;
      case 100:
        cancel();
        break;
      case 101:
        cut();
        break;
      default:
        break;
    }
  }

  void begin() {
    if (callers_.size() == calls_max_ || !client_->can_begin()) return;
    callers_.push_back(std::make_unique<Caller>());
    Caller& caller = *callers_.back();
    const std::size_t size = choose_(4) == 0 ? 0 : choose_(200'000);
    caller.request.assign(size, static_cast<char>('a' + callers_.size() % 26));
    CallHead head;
    head.method = "POST";
    head.authority = "test";
    CallState& state = calls_.take(head, {}, caller, {}, now_.time);
    caller.call = state.handle();
    client_->begin(state, now_.time);
  }

  Caller* pick() { return callers_.empty() ? nullptr : callers_[choose_(callers_.size())].get(); }

  void cancel() {
    Caller* const caller = pick();
    if (caller == nullptr || !caller->call) return;
    caller->call.cancel();
    caller->canceled = true;
    if (!http2_) cut();  // HTTP/1 closes the connection
  }

  void cut() {
    if (std::exchange(cut_, true)) return;
    session_->lost();
    client_->sent(client_out_->taken, now_.time);
    client_->lost({Fault::unavailable, "cut"});
    for (CallState* const call : client_->take_unprocessed()) call->fail({call->why, false, false});
  }

  void send_client(std::size_t bytes) {
    if (cut_) return;
    client_->sent(client_out_->taken, now_.time);
    client_->fill(client_out_->unsent(), now_.time);
    if (up_.size() < kKernelBytes) up_ += client_out_->take(bytes);
    client_->sent(client_out_->taken, now_.time);
    WEIR_ASSERT(!http2_ || client_->end() == ClientEnd::open);
  }

  void send_server(std::size_t bytes) {
    if (cut_) return;
    settle_server();
    if (down_.size() < kKernelBytes) down_ += server_out_->take(bytes);
    settle_server();
  }

  void settle_server() {
    server_out_->take_touched();
    if (server_out_->wants_fill && server_out_->unsent() < bounds::http_window_bytes)
      session_->fill(server_out_->unsent());
  }

  void deliver_to_server(std::size_t bytes) {
    if (cut_ || !session_->reading()) return;
    to_server_ += up_.substr(0, bytes);
    up_.erase(0, bytes);
    Queries queries;
    const std::string block = to_server_;  // of its own, so that the sanitizer sees a view that is kept for too long
    const Result<std::size_t> used = session_->receive(block, queries, now_);
    WEIR_ASSERT(used.has_value());
    to_server_.erase(0, *used);
    settle_server();
  }

  void deliver_to_client(std::size_t bytes) {
    if (cut_ || !client_->reading()) return;
    to_client_ += down_.substr(0, bytes);
    down_.erase(0, bytes);
    const std::string block = to_client_;
    to_client_.erase(0, client_->receive(block, now_.time));
    connect_again();
  }

  void check_bounds() const {
    constexpr std::size_t kSlack = 80u << 10;  // a frame and its like
    WEIR_ASSERT(client_out_->bytes.size() <= bounds::http_window_bytes + kSlack);
    WEIR_ASSERT(server_out_->bytes.size() <= bounds::http_window_bytes + kSlack);
    WEIR_ASSERT(to_server_.size() <= 128u << 10);
    WEIR_ASSERT(to_client_.size() <= 128u << 10);
    for (const auto& caller : callers_) WEIR_ASSERT(caller->unconsumed <= bounds::http_window_bytes);
  }

  void finish() {
    WEIR_ASSERT(cut_ || is_done());
    for (const auto& caller : callers_) {
      WEIR_ASSERT(caller->ends == (caller->canceled ? caller->ends : 1));
      if (!caller->complete) continue;
      ++complete_;
      WEIR_ASSERT(caller->response == caller->request);
      WEIR_ASSERT(caller->trailer == "sum=1");
      WEIR_ASSERT(caller->drained_bytes == caller->request.size());
    }
    WEIR_ASSERT(calls_.live().empty());
    if (!cut_) {  // what is on its way: ends of streams, resets
      for (int i = 0; i < 1000; ++i) {
        send_client(1u << 16);
        deliver_to_server(1u << 16);
        send_server(1u << 16);
        deliver_to_client(1u << 16);
      }
      WEIR_ASSERT(handler_.open.empty());
    }
    session_->lost();
    WEIR_ASSERT(handler_.begun == handler_.endings_told());
    WEIR_ASSERT(server_shared_.exchanges->open_count() == 0);
    client_.reset();
    WEIR_ASSERT(client_shared_.http2.library_bytes() == 0);
  }

  static constexpr std::size_t kKernelBytes = 64u << 10;
  bool http2_;
  Choose choose_;
  std::size_t calls_max_;
  Now now_{Time{std::chrono::seconds{1000}}, Wall{}};
  CallStates calls_;
  ClientShared client_shared_;
  HttpShared server_shared_;
  EchoingHandler handler_;
  std::unique_ptr<TextOutput> client_out_;
  std::unique_ptr<TextOutput> server_out_;
  std::unique_ptr<HttpClient> client_;
  std::unique_ptr<Session> session_;
  std::string up_, down_;              // on the wire
  std::string to_server_, to_client_;  // received and not consumed
  std::vector<std::unique_ptr<Caller>> callers_;
  bool cut_ = false;
  std::size_t complete_ = 0;
};

}  // namespace weir::http
