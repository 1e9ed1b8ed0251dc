#include "weir/http/http1_exchange.h"

#include <algorithm>

#include "weir/base/assert.h"
#include "weir/http/http1_session.h"
#include "weir/http/http_shared.h"
#include "weir/wire/http1.h"
#include "weir/wire/http1_body.h"

namespace weir::http {
namespace {

bool has_no_content(int status) noexcept {
  return status == 204 || status == 304;
}

}  // namespace

void Http1Exchange::start(Http1Session& session, const RequestHead* head) noexcept {
  session_ = &session;
  next_ = nullptr;
  length_left_ = 0;
  undrained_ = unconsumed_ = 0;
  credit_ = bounds::http_window_bytes;
  reply_ = Reply::none;
  http11_ = head == nullptr || head->framing.http11;
  keep_alive_ = head != nullptr && head->framing.keep_alive;
  head_only_ = head != nullptr && head->method == "HEAD";
  expects_ = head != nullptr && head->expects_continue;
  silent_ = head == nullptr;
  discards_ = tunnel_ = false;
}

std::string& Http1Exchange::to() noexcept {
  return session_->front_ == this ? host().output.bytes : held_;
}

// Accounts for what was appended to to() since its size was `before`.
void Http1Exchange::wrote(std::size_t before, std::size_t content) noexcept {
  if (session_->front_ != this) session_->held_bytes_ += held_.size() - before;
  undrained_ += content;
  session_->wake();
  if (content > 0) host().output.wants_fill = true;
}

// --- the request ---

void Http1Exchange::proceed() {
  if (!expects_ || !open()) return;
  expects_ = false;
  std::string& out = to();
  const std::size_t before = out.size();
  out += kHttpContinue;
  wrote(before, 0);
}

void Http1Exchange::consumed(std::size_t bytes) {
  if (!open() || discards_) return;  // what is dropped needs no credit
  WEIR_ASSERT(bytes <= unconsumed_);
  unconsumed_ -= bytes;
  credit_ += bytes;
  session_->wake();
}

void Http1Exchange::discard() {
  if (discards_ || !open()) return;
  discards_ = true;
  session_->wake();
}

void Http1Exchange::expect_at_most(std::uint64_t bytes) {
  if (session_->receiving_ == this && !tunnel_) session_->body_.allow_more(bytes);
}

// --- the response ---

void Http1Exchange::inform(int status, const HttpFields& fields) {
  if (!open()) return;
  WEIR_ASSERT(reply_ == Reply::none && status > 101 && status < 200);
  if (!http11_) return;  // RFC 9110 §15.2: not to HTTP/1.0
  std::string& out = to();
  const std::size_t before = out.size();
  write_interim_head(status, fields, out);
  wrote(before, 0);
}

void Http1Exchange::respond(const Response& head, BodyPart first) {
  if (!open()) return;
  WEIR_ASSERT(reply_ == Reply::none && head.status >= 200);
  if (session_->receiving_ == this) {
    // The client would have to send the rest before it could use the connection again.
    const HttpBody& body = session_->body_;
    if (expects_ || !body.has_known_rest() || body.rest() > bounds::http_window_bytes) keep_alive_ = false;
  }
  HttpResponseHead message{head.status, head.content_type, head.fields, {}, {}, 0, true, http11_, head.reason};
  const bool whole = first.last && first.trailers.empty();
  if (head.length || whole) {
    message.content = HttpContent::length;
    message.length = head.length.value_or(first.bytes.size());
    reply_ = Reply::length;
    length_left_ = message.length;
  } else if (http11_) {
    message.content = HttpContent::chunked;
    reply_ = Reply::chunked;
  } else {
    message.content = HttpContent::until_close;
    reply_ = Reply::raw;
    keep_alive_ = false;
  }
  if (has_no_content(head.status) || head_only_) {
    // RFC 9110 §8.6: a length describes what GET would give. A 204 has none, and others only one that is known: to
    // HEAD, that of the content that is not sent.
    const bool describes = head.length || (head_only_ && head.status != 304 && !first.bytes.empty());
    if (head.status == 204 || !describes) message.content = HttpContent::none;
    reply_ = Reply::no_body;
  }
  message.keep_alive = keep_alive_;
  if (!head.has_date) message.date = host().shared.date(now().wall);
  std::string& out = to();
  const std::size_t before = out.size();
  write_response_head(message, out);
  wrote(before, 0);
  add(first);
}

void Http1Exchange::write(BodyPart part) {
  if (!open()) return;
  WEIR_ASSERT(reply_ != Reply::none);
  add(part);
}

void Http1Exchange::add(BodyPart part) {
  std::string& out = to();
  const std::size_t before = out.size();
  switch (reply_) {
    case Reply::length:
      // More or less than was announced would be taken for the next response.
      if (part.bytes.size() > length_left_) return abort();
      length_left_ -= part.bytes.size();
      if (part.last && length_left_ != 0) return abort();
      out += part.bytes;
      break;
    case Reply::chunked:
      write_chunk(part.bytes, out);
      if (part.last) write_last_chunk(part.trailers, out);
      break;
    case Reply::raw:
      out += part.bytes;
      break;
    default:
      part.bytes = {};
      break;
  }
  if (part.last) finish();
  wrote(before, part.last ? 0 : part.bytes.size());
}

void Http1Exchange::finish() noexcept {
  // The end of a tunnel's outgoing direction; the other may go on.
  if (tunnel_ && session_->receiving_ == this) {
    host().output.half_close = true;
    reply_ = Reply::no_body;
    return;
  }
  reply_ = Reply::complete;
}

std::size_t Http1Exchange::room() const noexcept {
  if (session_->front_ != this || !open()) return 0;
  const std::size_t used = std::max(undrained_, host().output.unsent());
  return bounds::http_window_bytes - std::min(bounds::http_window_bytes, used);
}

void Http1Exchange::upgrade(const Response& head) {
  if (!open()) return;
  // A handler that upgrades has read the whole request, and does not overlap.
  WEIR_ASSERT(reply_ == Reply::none && session_->front_ == this && session_->receiving_ == nullptr);
  std::string& out = to();
  const std::size_t before = out.size();
  write_upgrade_head(head.fields, out);
  reply_ = Reply::raw;
  keep_alive_ = false;
  tunnel_ = true;
  session_->receiving_ = this;
  wrote(before, 0);
}

void Http1Exchange::abort() {
  if (!open()) return;
  reply_ = Reply::abandoned;
  session_->wake();
}

}  // namespace weir::http
