// For tests and fuzzers: a client and a session joined by two strings. Nothing moves by itself: a scheduler decides
// who moves and how many bytes pass. The calls are those of EchoCaller, one after another or, over HTTP/2, together.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "weir/base/assert.h"
#include "weir/base/bounds.h"
#include "weir/http/client_parts_test.h"
#include "weir/http/echo_ends_test.h"
#include "weir/http/handler.h"
#include "weir/http/http1_client.h"
#include "weir/http/http1_session.h"
#include "weir/http/http2_client.h"
#include "weir/http/http2_session.h"
#include "weir/http/http_shared.h"

namespace weir::http {

class JoinedEnds {
 public:
  // Returns a number below `n`: which call is meant, and how much.
  using Choose = std::function<std::size_t(std::size_t n)>;

  // `handler` must outlive it.
  JoinedEnds(bool http2, Handler& handler, Choose choose, std::size_t calls_max)
      : http2_(http2), handler_(handler), choose_(std::move(choose)), calls_max_(calls_max) {
    connect();
  }

  enum class Move : unsigned char {
    begin_call,
    write_request,
    consume_response,
    send_up,  // from the client's output to the wire
    send_down,
    deliver_up,  // from the wire to the session
    deliver_down,
  };
  static constexpr std::size_t kMoves = 7;
  static constexpr std::size_t kMoveBytesMax = 64u << 10;
  // Passes up to `bytes`.
  void move(Move which, std::size_t bytes) {
    switch (which) {
      case Move::begin_call:
        return begin();
      case Move::write_request:
        if (EchoCaller* const caller = pick(); caller != nullptr) caller->write(bytes);
        return;
      case Move::consume_response:
        if (EchoCaller* const caller = pick(); caller != nullptr) caller->consume(bytes);
        return;
      case Move::send_up:
        return send_client(bytes);
      case Move::send_down:
        return send_server(bytes);
      case Move::deliver_up:
        return deliver_to_server(bytes);
      case Move::deliver_down:
        return deliver_to_client(bytes);
    }
  }
  // How many bytes such a move passes.
  std::size_t choose_size() const {
    constexpr std::size_t kSizes[] = {1, 9, 100, 4096, 16'384, kMoveBytesMax};
    return kSizes[choose_(std::size(kSizes))];
  }
  // Moves what is on its way on both sides.
  void pass() {
    for (const Move which : {Move::send_up, Move::deliver_up, Move::send_down, Move::deliver_down})
      move(which, kMoveBytesMax);
  }

  // Answers one question of the session, if it has asked any.
  void answer(const Result<Answer>& answer) {
    if (asked_.empty()) return;
    const std::uint64_t token = asked_.front();
    asked_.pop_front();
    session_->reply(token, answer);
  }

  // HTTP/1 closes the connection.
  void cancel() {
    EchoCaller* const caller = pick();
    if (caller == nullptr || !caller->call) return;
    caller->call.cancel();
    caller->canceled = true;
    if (!http2_) cut();
  }
  void cut() {
    if (std::exchange(cut_, true)) return;
    session_->lost();
    client_->sent(client_out_->taken, now_.time);
    client_->lost({Fault::unavailable, "cut"});
    for (CallState* const call : client_->take_unprocessed()) call->fail({call->why, false, false});
  }
  bool is_cut() const { return cut_; }
  // A new connection, for the calls that have not begun. REQUIRES: no call is open.
  void connect() {
    client_.reset();
    session_.reset();
    client_out_ = std::make_unique<TextOutput>();
    server_out_ = std::make_unique<TextOutput>();
    up_.clear(), down_.clear(), to_server_.clear(), to_client_.clear(), asked_.clear();
    cut_ = server_paused_ = client_paused_ = end_told_ = false;
    const NewConnection connection{*server_out_, "192.0.2.1", http2_ ? "h2" : "", "", false};
    if (http2_) {
      client_ = std::make_unique<Http2Client>(*client_out_, client_shared_);
      session_ = std::make_unique<Http2Session>(server_shared_, handler_, connection);
    } else {
      client_ = std::make_unique<Http1Client>(*client_out_, client_shared_);
      session_ = std::make_unique<Http1Session>(server_shared_, handler_, connection);
    }
  }
  // Ends both and asserts that nothing of them is left.
  void disconnect() {
    session_->lost();
    WEIR_ASSERT(calls_.live().empty());
    WEIR_ASSERT(open_exchanges() == 0);
    client_.reset();
    session_.reset();
    WEIR_ASSERT(client_shared_.http2.library_bytes() == 0);
    WEIR_ASSERT(server_shared_.http2.library_bytes() == 0);
  }

  // Every call has begun and ended.
  bool is_done() const {
    return callers_.size() == calls_max_ &&
           std::all_of(callers_.begin(), callers_.end(), [](const auto& one) { return one->is_over(); });
  }
  // How many requests came back whole. REQUIRES: every call that began has ended.
  std::size_t echoed() const {
    return static_cast<std::size_t>(
        std::count_if(callers_.begin(), callers_.end(), [](const auto& one) { return one->is_echoed(); }));
  }
  const std::vector<std::unique_ptr<EchoCaller>>& callers() const { return callers_; }
  // Body bytes of all calls.
  std::size_t written() const {
    return sum_up([](const EchoCaller& caller) { return caller.written; });
  }
  std::size_t consumed() const {
    return sum_up([](const EchoCaller& caller) { return caller.consumed(); });
  }
  // Of what was written and not consumed, no more than `bytes_max` of each call.
  std::size_t under_way(std::size_t bytes_max) const {
    return sum_up([&](const EchoCaller& caller) { return std::min(caller.written - caller.consumed(), bytes_max); });
  }
  std::size_t open_exchanges() const { return server_shared_.exchanges->open_count(); }

  void check_bounds() const {
    constexpr std::size_t kSlack = 80u << 10;  // a frame and its like
    WEIR_ASSERT(client_out_->bytes.size() <= bounds::http_window_bytes + kSlack);
    WEIR_ASSERT(server_out_->bytes.size() <= bounds::http_window_bytes + kSlack);
    WEIR_ASSERT(to_server_.size() <= 128u << 10);
    WEIR_ASSERT(to_client_.size() <= 128u << 10);
    WEIR_ASSERT(asked_.size() <= calls_max_);
    for (const auto& caller : callers_) WEIR_ASSERT(caller->unconsumed <= bounds::http_window_bytes);
  }

 private:
  void begin() {
    if (cut_ || callers_.size() == calls_max_ || !client_->can_begin()) return;
    callers_.push_back(std::make_unique<EchoCaller>());
    EchoCaller& caller = *callers_.back();
    const std::size_t size = choose_(4) == 0 ? 0 : choose_(kBodyBytesMax + 1);
    caller.request = kBytes.substr(callers_.size(), size);
    if (choose_(2) == 0) caller.consumes_max = 1000;
    caller.has_trailer = choose_(2) == 0;
    CallHead head;
    head.method = "POST";
    head.authority = "test";
    if (!caller.has_trailer) head.length = size;
    CallState& state = calls_.take(head, {}, caller, {}, now_.time);
    caller.call = state.handle();
    client_->begin(state, now_.time);
  }

  template <class Size>
  std::size_t sum_up(Size size_of) const {
    std::size_t all = 0;
    for (const auto& caller : callers_) all += size_of(*caller);
    return all;
  }

  EchoCaller* pick() { return callers_.empty() ? nullptr : callers_[choose_(callers_.size())].get(); }

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
    if (session_->has_more()) {
      Queries queries;
      session_->resume(queries, now_);
      keep(queries);
    }
    if (server_out_->wants_fill && server_out_->unsent() < bounds::http_window_bytes)
      session_->fill(server_out_->unsent());
  }

  // As a connection does, passes bytes that were left again when the session reads again, and otherwise with more.
  void deliver_to_server(std::size_t bytes) {
    if (cut_ || !session_->reading()) return;
    if (std::exchange(server_paused_, false)) receive_on_server();
    if (!session_->reading() || up_.empty()) return;
    to_server_ += up_.substr(0, bytes);
    up_.erase(0, bytes);
    receive_on_server();
  }

  void receive_on_server() {
    Queries queries;
    const std::string block = to_server_;  // of its own, so that the sanitizer sees a view that is kept for too long
    const Result<std::size_t> used = session_->receive(block, queries, now_);
    WEIR_ASSERT(used.has_value());
    to_server_.erase(0, *used);
    keep(queries);
    server_paused_ = !session_->reading();
    settle_server();
  }

  void keep(const Queries& queries) {
    for (const Asked& one : queries.all()) asked_.push_back(one.token);
  }

  void deliver_to_client(std::size_t bytes) {
    if (cut_ || !client_->reading()) return;
    if (std::exchange(client_paused_, false)) receive_on_client();
    if (client_->reading() && !down_.empty()) {
      to_client_ += down_.substr(0, bytes);
      down_.erase(0, bytes);
      receive_on_client();
    }
    // The end follows the last bytes.
    const bool ended = session_->finished() && server_out_->unsent() == 0 && down_.empty();
    if (ended && client_->reading() && !std::exchange(end_told_, true)) client_->end_of_input(now_.time);
    connect_again();
  }

  void receive_on_client() {
    const std::string block = to_client_;
    to_client_.erase(0, client_->receive(block, now_.time));
    client_paused_ = !client_->reading();
  }

  // An HTTP/1 server closes after a response that it began before it had read the request, or that it cannot finish.
  void connect_again() {
    if (http2_ || client_->end() == ClientEnd::open) return;
    WEIR_ASSERT(client_->calls() == 0);
    session_->lost();
    connect();
  }

  // What the requests are cut from: no two bytes side by side are alike, so that one that is lost is missed.
  static std::string make_bytes() {
    std::string bytes;
    for (std::size_t i = 0; i < kBodyBytesMax + 1000; ++i) bytes += static_cast<char>('!' + i % 89);
    return bytes;
  }

  static constexpr std::size_t kKernelBytes = 64u << 10;
  static constexpr std::size_t kBodyBytesMax = 200'000;
  inline static const std::string kBytes = make_bytes();
  bool http2_;
  Handler& handler_;
  Choose choose_;
  std::size_t calls_max_;
  Now now_{Time{std::chrono::seconds{1000}}, Wall{}};
  CallStates calls_;
  ClientShared client_shared_;
  HttpShared server_shared_;
  std::unique_ptr<TextOutput> client_out_;
  std::unique_ptr<TextOutput> server_out_;
  std::unique_ptr<HttpClient> client_;
  std::unique_ptr<Session> session_;
  std::string up_, down_;              // on the wire
  std::string to_server_, to_client_;  // received and not consumed
  std::deque<std::uint64_t> asked_;    // questions without an answer
  std::vector<std::unique_ptr<EchoCaller>> callers_;
  bool cut_ = false;
  bool server_paused_ = false;
  bool client_paused_ = false;
  bool end_told_ = false;  // the client knows that the session has ended
};

}  // namespace weir::http
