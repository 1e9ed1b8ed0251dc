#include <algorithm>

#include "weir/base/assert.h"
#include "weir/base/bounds.h"
#include "weir/http/http2_session.h"

namespace weir::http {

void Http2Exchange::start(Http2Session& session, std::int32_t stream) noexcept {
  session_ = &session;
  stream_ = stream;
  begun_ = silent_ = sealed_ = aborted_ = responded_ = bodiless_ = last_ = sleeps_ = discards_ = request_done_ = false;
  blocked_ = expects_continue_ = to_head_ = first_end_ = false;
  unconsumed_ = drained_ = body_sent_ = first_parts_ = 0;
  first_bytes_ = {};
  trailers_ = {};
}

Time Http2Exchange::late_at() const noexcept {
  if (aborted_) return Time::max();
  const Time body = waits_for_body() ? body_progress_ + host().shared.limits.body_time_max : Time::max();
  const Time write = unsent() > 0 ? write_progress_ + bounds::http2_write_time_max : Time::max();
  return std::min(body, write);
}

void Http2Exchange::proceed() {
  if (!expects_continue_ || responded_ || sealed_) return;
  expects_continue_ = false;
  session_->http2_.respond(stream_, 100, {}, false);
  session_->touch();
}

void Http2Exchange::consumed(std::size_t bytes) {
  if (sealed_ || discards_) return;  // the session returns the rest itself
  WEIR_ASSERT(bytes <= unconsumed_);
  unconsumed_ -= bytes;
  if (blocked_ && unconsumed_ == 0) session_->expect_body(*this);
  session_->http2_.consumed(stream_, bytes);
  if (!request_done_) session_->touch();  // otherwise the credit can wait until the stream ends
}

void Http2Exchange::discard() {
  if (sealed_ || discards_) return;
  discards_ = true;
  session_->drop_body(*this, unconsumed_);
}

void Http2Exchange::inform(int status, const HttpFields& fields) {
  if (sealed_) return;
  WEIR_ASSERT(!responded_ && status > 101 && status < 200);
  session_->http2_.respond(stream_, status, fields, false);
  session_->touch();
}

void Http2Exchange::respond(const Response& head, BodyPart first) {
  if (sealed_) return;
  WEIR_ASSERT(!responded_ && head.status >= 200);
  responded_ = true;
  bodiless_ = to_head_ || head.status == 204 || head.status == 304;
  session_->send_head(*this, head, first);
  append(first);
  session_->touch();
}

void Http2Exchange::write(BodyPart part) {
  if (sealed_) return;
  WEIR_ASSERT(responded_);
  append(part);
  session_->touch();
}

void Http2Exchange::append(BodyPart part) {
  if (part.last) sealed_ = last_ = true;
  if (bodiless_) return;
  if (!part.trailers.empty()) session_->http2_.trailers(stream_, {{}, part.trailers});
  if (!part.bytes.empty()) {
    if (unsent() == 0) {
      body_.clear();
      body_sent_ = 0;
      write_progress_ = session_->now();
      session_->watch(write_progress_ + bounds::http2_write_time_max);
    } else if (body_sent_ > body_.size() / 2) {
      body_.erase(0, body_sent_);
      body_sent_ = 0;
    }
    body_ += part.bytes;
    session_->buffered_ += part.bytes.size();
  }
  if (!sleeps_) return;
  sleeps_ = false;
  session_->http2_.wake(stream_);
}

std::size_t Http2Exchange::room() const noexcept {
  if (sealed_) return 0;
  const bool crowded = session_->buffered_ > bounds::http2_buffered_bytes;
  const std::size_t most = crowded ? bounds::http2_crowded_stream_bytes : bounds::http_window_bytes;
  return most - std::min(most, unsent());
}

void Http2Exchange::upgrade(const Response&) {
  abort();
}

void Http2Exchange::abort() {
  if (sealed_) return;
  sealed_ = aborted_ = true;
  session_->http2_.reset(stream_, Http2Code::internal_error);
  session_->touch();
}

}  // namespace weir::http
