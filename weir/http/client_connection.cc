#include "weir/http/client_connection.h"

#include <algorithm>
#include <utility>

#include "weir/http/http1_client.h"
#include "weir/http/http2_client.h"

namespace weir::http {
namespace {

// While less is unsent, a client with more to write is asked again.
constexpr std::size_t kUnsentBytes = 64u << 10;
// A server that keeps an idle connection for some time may count from an earlier moment than we do.
constexpr Duration kKeepAliveMargin = std::chrono::seconds{1};
// Servers keep idle connections for seconds: one that was busy a moment ago is not asked, which saves a system call.
constexpr Duration kJustBusy = std::chrono::milliseconds{10};

}  // namespace

ClientConnection::ClientConnection(Loop& loop, std::shared_ptr<ClientShared> shared, Host& host, HttpVersion version,
                                   Transport::Options options)
    : loop_(loop),
      shared_(std::move(shared)),
      host_(host),
      version_(version),
      secure_(options.tls != nullptr),
      transport_(loop, *this, std::move(options)),
      out_(*this) {}

ClientConnection::~ClientConnection() {
  Loop::forget(*this);
}

void ClientConnection::opened() {
  const bool agreed_http2 = transport_.application_protocol() == "h2";
  if (version_ == HttpVersion::http2 && secure_ && !agreed_http2) {
    transport_.close();
    host_.failed_to_open(*this, {Fault::invalid, "the server does not offer HTTP/2 (ALPN h2)"});
    return;
  }
  is_http2_ = version_ == HttpVersion::http2 || (version_ == HttpVersion::negotiate && agreed_http2);
  if (is_http2_) {
    client_ = std::make_unique<Http2Client>(out_, *shared_);
  } else {
    client_ = std::make_unique<Http1Client>(out_, *shared_);
  }
  idle_since_ = now();
  host_.opened(*this);
  out_.touch();
}

bool ClientConnection::is_quiet() const noexcept {
  if (is_http2_) return true;
  return now() - idle_since_ < kJustBusy ? transport_.is_usable() : transport_.is_quiet();
}

void ClientConnection::begin(CallState& call) {
  fresh_ = false;
  was_busy_ = true;
  client_->begin(call, now());
  out_.touch();
}

std::size_t ClientConnection::received(std::string_view bytes) {
  client_->sent(transport_.taken(), now());
  const std::size_t used = client_->receive(bytes, now());
  // Now, not when the turn settles: bytes that are read in between would have to be held.
  if (!client_->reading()) transport_.pause();
  out_.touch();
  return used;
}

void ClientConnection::ended() {
  client_->sent(transport_.taken(), now());
  client_->end_of_input(now());
  out_.touch();
}

void ClientConnection::writable() {
  out_.touch();
}

void ClientConnection::failed(const Error& why) {
  if (client_ == nullptr) return host_.failed_to_open(*this, why);
  client_->sent(transport_.taken(), now());
  client_->lost(why);
  give_back_unprocessed();
  host_.closed(*this);
}

void ClientConnection::finished() {
  host_.closed(*this);
}

void ClientConnection::close() {
  if (client_ == nullptr) {
    closing_ = true;
  } else {
    client_->shut_down();
  }
  out_.touch();
}

void ClientConnection::settle() {
  out_.settled();
  if (finishing_ || (transport_.closed() && !closing_)) return;
  if (closing_ || client_ == nullptr) {
    if (closing_) shut();
    return;
  }
  write();
  give_back_unprocessed();
  switch (client_->end()) {
    case ClientEnd::close:
      return shut();
    case ClientEnd::finish:
      if (client_->calls() > 0) break;
      finishing_ = true;
      transport_.finish();
      return;
    case ClientEnd::open:
      break;
  }
  if (client_->reading() == transport_.paused()) {
    if (transport_.paused()) {
      transport_.resume();
    } else {
      transport_.pause();
    }
  }
  if (client_->calls() == 0 && std::exchange(was_busy_, false)) idle_since_ = now();
  host_.freed(*this);
}

void ClientConnection::write() {
  client_->sent(transport_.taken(), now());
  client_->fill(transport_.unsent(), now());
  if (client_->end() == ClientEnd::close) return;
  transport_.flush();
  if (!half_closed_ && client_->half_closed()) {
    half_closed_ = true;
    transport_.half_close();
  }
  client_->sent(transport_.taken(), now());
  if (out_.wants_fill && transport_.unsent() < kUnsentBytes) out_.touch();
}

void ClientConnection::give_back_unprocessed() {
  for (CallState* const call : client_->take_unprocessed()) host_.give_back(*call);
}

void ClientConnection::shut() {
  closing_ = false;
  transport_.close();
  host_.closed(*this);
}

Time ClientConnection::due(Duration idle_time) const noexcept {
  if (client_ == nullptr || finishing_) return Time::max();
  if (client_->calls() > 0) return client_->deadline();
  const Duration kept = client_->keep_alive();
  return idle_since_ +
         (kept == Duration::max() ? idle_time : std::min(idle_time, std::max(kept - kKeepAliveMargin, Duration{})));
}

void ClientConnection::expire(Time when, Duration idle_time) {
  if (when < due(idle_time)) return;
  if (client_->calls() > 0) {
    client_->expire(when);
  } else {
    close();
  }
}

}  // namespace weir::http
