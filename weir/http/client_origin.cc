#include "weir/http/client_origin.h"

#include <algorithm>
#include <string>
#include <utility>

#include "weir/base/assert.h"
#include "weir/base/text.h"

namespace weir::http {

bool ClientOrigin::multiplexes() const noexcept {
  return origin_.version == HttpVersion::http2 ||
         (origin_.version == HttpVersion::negotiate && origin_.tls != nullptr && speaks_http2_.value_or(true));
}

void ClientOrigin::add(CallState& call) {
  call.place = this;
  if (ClientConnection* const connection = waiting_.empty() ? take_available() : nullptr) {
    connection->begin(call);
    return;
  }
  if (waiting_.size() >= shared_.options.waiting_max) {
    fail_later(call, {Fault::overloaded, "too many calls wait for " + origin_.target.print()});
    return;
  }
  waiting_.push_back(&call);
  open_if_needed();
}

// Returns a connection that can begin a call and leaves it in the list if it can begin more.
ClientConnection* ClientOrigin::take_available() {
  const Time now = shared_.loop.reading().time;
  while (!available_.empty()) {
    ClientConnection& connection = *available_.back();
    const bool expired = connection.calls() == 0 && connection.due(shared_.options.idle_time) <= now;
    // The server may have closed an idle connection in this very turn: what is written to it is lost.
    if (connection.can_begin() && !expired && connection.is_quiet()) {
      if (!connection.is_http2()) unlist(connection);
      return &connection;
    }
    unlist(connection);
    if (connection.calls() == 0) connection.close();
  }
  return nullptr;
}

void ClientOrigin::unlist(ClientConnection& connection) {
  if (!std::exchange(connection.listed, false)) return;
  if (available_.back() == &connection) {
    available_.pop_back();
  } else {
    std::erase(available_, &connection);
  }
}

void ClientOrigin::open_if_needed() {
  const std::size_t calls_each = multiplexes() ? bounds::http2_streams_before_settings : 1;
  while (opening_ * calls_each < waiting_.size() && connections_.size() < shared_.options.connections_max) {
    const CallOptions& asked = waiting_[std::min(opening_ * calls_each, waiting_.size() - 1)]->options;
    Transport::Options options;
    options.open_timeout = asked.connect_timeout;
    options.resolver = &shared_.resolver;
    options.tls = origin_.tls;
    options.server_name = origin_.server_name;
    options.may_dial = asked.may_dial;
    ClientConnection::Host& host = *this;
    auto connection =
        std::make_unique<ClientConnection>(shared_.loop, shared_.clients, host, origin_.version, std::move(options));
    connection->connect(origin_.target);
    connections_.push_back(std::move(connection));
    ++opening_;
  }
}

void ClientOrigin::opened(ClientConnection& connection) {
  --opening_;
  if (origin_.version == HttpVersion::negotiate) speaks_http2_ = connection.is_http2();
  serve(connection);
  open_if_needed();
}

// Begins calls that wait, as many as the connection can take.
void ClientOrigin::serve(ClientConnection& connection) {
  const bool full = connections_.size() >= shared_.options.connections_max;
  for (std::size_t i = 0; i < waiting_.size() && connection.can_begin();) {
    CallState& call = *waiting_[i];
    if (call.retried && !connection.is_fresh() && !full) {  // that one needs a new connection
      ++i;
      continue;
    }
    waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
    connection.begin(call);
  }
}

void ClientOrigin::freed(ClientConnection& connection) {
  serve(connection);
  if (!connection.can_begin()) {
    unlist(connection);
    if (connection.calls() == 0) connection.close();
    return;
  }
  if (std::exchange(connection.listed, true)) return;
  available_.push_back(&connection);
  close_surplus();
}

// Closes the connections that were idle longest.
void ClientOrigin::close_surplus() {
  if (available_.size() <= shared_.options.idle_max) return;
  std::size_t surplus = idle() - std::min(idle(), shared_.options.idle_max);
  for (std::size_t i = 0; surplus > 0 && i < available_.size();) {
    ClientConnection& connection = *available_[i];
    if (connection.calls() > 0) {
      ++i;
      continue;
    }
    unlist(connection);
    connection.close();
    --surplus;
  }
}

std::size_t ClientOrigin::idle() const noexcept {
  return static_cast<std::size_t>(
      std::count_if(available_.begin(), available_.end(), [](const auto* item) { return item->calls() == 0; }));
}

void ClientOrigin::failed_to_open(ClientConnection& connection, const Error& why) {
  --opening_;
  remove(connection);
  // The calls that this connection was opened for.
  const std::size_t served = multiplexes() ? bounds::http2_streams_before_settings : 1;
  const std::size_t others = opening_ * served;
  while (waiting_.size() > others) {
    CallState& call = *waiting_.front();
    waiting_.pop_front();
    fail_later(call, why);
    if (served == 1) break;
  }
  open_if_needed();
}

void ClientOrigin::give_back(CallState& call) {
  const bool may_pass =
      call.why.fault == Fault::unavailable || call.why.fault == Fault::timeout || call.why.fault == Fault::overloaded;
  call.place = this;
  if (call.retried || !may_pass) return fail_later(call, call.why);
  call.retried = true;
  call.waits_since = shared_.loop.reading().time;
  ++shared_.retries;
  waiting_.push_front(&call);
  open_if_needed();
}

void ClientOrigin::closed(ClientConnection& connection) {
  remove(connection);
  open_if_needed();
}

void ClientOrigin::remove(ClientConnection& connection) {
  unlist(connection);
  const auto at = std::find_if(connections_.begin(), connections_.end(),
                               [&](const auto& item) { return item.get() == &connection; });
  WEIR_ASSERT(at != connections_.end());
  std::unique_ptr<ClientConnection> gone = std::move(*at);
  connections_.erase(at);
  shared_.loop.retire(std::move(gone));
  shared_.loop.settle_later(*shared_.settler);
}

void ClientOrigin::cancel(CallState& call) {
  std::erase(waiting_, &call);
  std::erase(failing_, &call);
  shared_.loop.settle_later(*shared_.settler);
}

Error ClientOrigin::timed_out(const CallState& call) const {
  std::string milliseconds;
  append_integer(std::chrono::ceil<std::chrono::milliseconds>(call.options.connect_timeout).count(), milliseconds);
  if (call.due() == call.options.deadline) return CallPlace::timed_out(call);
  if (opening_ == 0) {
    return {Fault::overloaded,
            "all connections to " + origin_.target.print() + " are busy; waited " + milliseconds + " ms"};
  }
  return {Fault::timeout, "no connection to " + origin_.target.print() + " within " + milliseconds + " ms"};
}

void ClientOrigin::fail_later(CallState& call, Error why) {
  call.place = this;
  call.why = std::move(why);
  failing_.push_back(&call);
  shared_.loop.settle_later(*shared_.settler);
}

void ClientOrigin::settle() {
  for (std::size_t left = failing_.size(); left > 0 && !failing_.empty(); --left) {
    CallState& call = *failing_.front();
    failing_.pop_front();
    call.fail({call.why, false, false});
  }
}

Time ClientOrigin::expire(Time now) {
  Time next = Time::max();
  for (std::size_t i = 0; i < connections_.size(); ++i) {  // a callback may open more
    connections_[i]->expire(now, shared_.options.idle_time);
    next = std::min(next, connections_[i]->due(shared_.options.idle_time));
  }
  return next;
}

}  // namespace weir::http
