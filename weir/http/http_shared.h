// What HTTP sessions share: HttpShared, one per loop, and ExchangeHost, one per connection.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/base/bounds.h"
#include "weir/base/log.h"
#include "weir/base/time.h"
#include "weir/http/exchange_table.h"
#include "weir/http/handler.h"
#include "weir/protocol/session.h"
#include "weir/wire/http.h"
#include "weir/wire/http2.h"

namespace weir::http {

// What the sessions of one loop share. Must outlive them.
class HttpShared {
 public:
  // `post` runs work on the loop's thread (Loop::post). `clock` returns the turn's time (Loop::reading); without it the
  // time is that of the last bytes received.
  explicit HttpShared(ExchangeTable::Post post = {}, std::function<Now()> clock = {},
                      std::size_t exchanges_max = bounds::http_exchanges_max)
      : exchanges(std::make_shared<ExchangeTable>(std::move(post), exchanges_max)), clock_(std::move(clock)) {}
  ~HttpShared() { exchanges->close(); }
  HttpShared(const HttpShared&) = delete;
  HttpShared& operator=(const HttpShared&) = delete;

  // The Date field with its CRLF; empty at the epoch: a server without a clock sends none (RFC 9110 §6.6.1). Valid
  // until the next call.
  std::string_view date(Wall wall);
  // The turn's time, or `last` without a clock.
  Now now(const Now& last) const { return clock_ ? clock_() : last; }

  const std::shared_ptr<ExchangeTable> exchanges;
  Log* log = nullptr;  // gets bad requests, at debug
  HttpLimits limits;

  // Scratch: nothing in it survives a call.
  RequestHead head;
  std::vector<Http2Event> http2_events;

  Http2Shared http2;

 private:
  std::function<Now()> clock_;
  std::string date_;
  std::chrono::sys_seconds dated_{};
};

// What the exchanges of one connection share; part of its session.
struct ExchangeHost {
  ExchangeHost(HttpShared& loop_shared, Handler& endpoint, Output& to, std::string_view peer_address, bool tls)
      : shared(loop_shared), handler(endpoint), output(to), peer(peer_address), secure(tls) {}
  ExchangeHost(const ExchangeHost&) = delete;
  ExchangeHost& operator=(const ExchangeHost&) = delete;

  // Sets what ask() needs while receive() or resume() runs.
  class Asking {
   public:
    Asking(ExchangeHost& host, Queries& queries, Now now) : host_(host) {
      host_.queries = &queries;
      host_.now = now;
    }
    ~Asking() { host_.queries = nullptr; }
    Asking(const Asking&) = delete;
    Asking& operator=(const Asking&) = delete;

   private:
    ExchangeHost& host_;
  };

  // True if an exchange waits for can_ask().
  bool has_waiting() const noexcept { return first_asking != nullptr; }
  // Calls can_ask() on each exchange that waited when it was called, while there is room. Use under Asking.
  void let_ask();

  HttpShared& shared;
  Handler& handler;
  Output& output;
  std::string peer;
  bool secure;
  Queries* queries = nullptr;  // null outside receive() and resume()
  Now now{};
  std::size_t owed = 0;       // questions asked; the session subtracts in reply()
  std::size_t kept = 0;       // of request bodies, by receivers: Exchange::keep()
  Time expiry = Time::max();  // no exchange expires before; the session recomputes it
  Exchange* first_asking = nullptr;
  Exchange* last_asking = nullptr;

 private:
  friend class Exchange;
  friend class ExchangeTable;
  void wait_to_ask(Exchange& exchange) noexcept;
  void stop_asking(Exchange& exchange) noexcept;
};

}  // namespace weir::http
