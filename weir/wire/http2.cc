#include "weir/wire/http2.h"

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <string>

#include "weir/base/ascii.h"
#include "weir/base/assert.h"

namespace weir {
namespace {

constexpr std::size_t kPrefaceBytes = NGHTTP2_CLIENT_MAGIC_LEN;
constexpr std::size_t kSizeRoom = alignof(max_align_t);  // in front of each allocation of nghttp2, for its size

std::string_view view(const std::uint8_t* bytes, std::size_t size) noexcept {
  return {reinterpret_cast<const char*>(bytes), size};
}

// nghttp2's allocator: malloc, with the bytes in use counted in *user_data.
void* take_counted(std::size_t size, void* user_data) {
  auto* const block = static_cast<char*>(std::malloc(size + kSizeRoom));
  if (block == nullptr) return nullptr;
  std::memcpy(block, &size, sizeof size);
  *static_cast<std::size_t*>(user_data) += size;
  return block + kSizeRoom;
}

std::size_t counted_size(const void* bytes) noexcept {
  std::size_t size = 0;
  std::memcpy(&size, static_cast<const char*>(bytes) - kSizeRoom, sizeof size);
  return size;
}

void free_counted(void* bytes, void* user_data) {
  if (bytes == nullptr) return;
  *static_cast<std::size_t*>(user_data) -= counted_size(bytes);
  std::free(static_cast<char*>(bytes) - kSizeRoom);
}

void* take_counted_zeroed(std::size_t count, std::size_t size, void* user_data) {
  void* const bytes = take_counted(count * size, user_data);
  if (bytes != nullptr) std::memset(bytes, 0, count * size);
  return bytes;
}

void* resize_counted(void* bytes, std::size_t size, void* user_data) {
  void* const moved = take_counted(size, user_data);
  if (moved == nullptr || bytes == nullptr) return moved;
  std::memcpy(moved, bytes, std::min(size, counted_size(bytes)));
  free_counted(bytes, user_data);
  return moved;
}

// RFC 9113 §8.2.2.
bool is_connection_specific(std::string_view name) noexcept {
  constexpr std::array<std::string_view, 5> kNames = {"connection", "keep-alive", "proxy-connection",
                                                      "transfer-encoding", "upgrade"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

// Values that change every time would push everything else out of the peer's HPACK table. Credentials in the table can
// be guessed (RFC 7541 §7.1.3).
bool must_not_be_indexed(std::string_view name) noexcept {
  constexpr std::array<std::string_view, 6> kNames = {"authorization", "proxy-authorization", "cookie",
                                                      "set-cookie",    "x-api-key",           "retry-after"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end() || name.starts_with("ratelimit") ||
         name.starts_with("x-ratelimit") || name.starts_with("x-rate-limit");
}

// Header fields in nghttp2's form, as views of what was added; valid as long as that is. Reusable: it keeps its memory,
// up to a bound.
class EncodedFields {
 public:
  // Forgets what it held and makes room for the names of `fields`.
  void begin(const HttpFields& fields) {
    if (names_.capacity() > kNamesKept) std::string().swap(names_);
    names_.clear();
    fields_.clear();
    list_bytes_ = 0;
    length_is_own_ = false;
    std::size_t names = fields.lines.size();
    for (const HttpHeader& field : fields.list) names += field.name.size();
    names_.reserve(names);  // so that views of it stay valid
  }

  // `name` is in lower case and has static storage duration. A Content-Length added here replaces one in later fields.
  void add_own(std::string_view name, std::string_view value) {
    if (name == "content-length") length_is_own_ = true;
    push(name, value, NGHTTP2_NV_FLAG_NO_COPY_NAME);
  }

  void add(const HttpFields& fields) {
    for (std::string_view lines = fields.lines; !lines.empty();) {
      const std::size_t end = std::min(lines.find("\r\n"), lines.size());
      const std::string_view line = lines.substr(0, end);
      lines.remove_prefix(std::min(end + 2, lines.size()));
      const std::size_t colon = line.find(':');
      if (colon != line.npos) add(line.substr(0, colon), trim(line.substr(colon + 1)));
    }
    for (const HttpHeader& field : fields.list) add(field.name, field.value);
  }

  const nghttp2_nv* data() const noexcept { return fields_.data(); }
  std::size_t size() const noexcept { return fields_.size(); }
  std::size_t list_bytes() const noexcept { return list_bytes_; }

 private:
  void add(std::string_view name, std::string_view value) {
    const std::size_t from = names_.size();
    for (const char c : name) names_ += to_lower(c);
    const std::string_view lower = std::string_view(names_).substr(from);
    if (is_connection_specific(lower) || (length_is_own_ && lower == "content-length")) return;
    push(lower, value, must_not_be_indexed(lower) ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE);
  }

  void push(std::string_view name, std::string_view value, unsigned flags) {
    const auto bytes = [](std::string_view text) {  // nghttp2 only reads them
      return const_cast<std::uint8_t*>(reinterpret_cast<const std::uint8_t*>(text.data()));
    };
    fields_.push_back({bytes(name), bytes(value), name.size(), value.size(), static_cast<std::uint8_t>(flags)});
    list_bytes_ += name.size() + value.size() + kHttp2FieldOverhead;
  }

  static constexpr std::size_t kNamesKept = 4096;

  std::string names_;
  std::vector<nghttp2_nv> fields_;
  std::size_t list_bytes_ = 0;
  bool length_is_own_ = false;
};

// RFC 9113 §8.3.1.
bool hosts_agree(std::span<const HttpHeader> fields) noexcept {
  const HttpHeader* const authority = find_http2_field(fields, ":authority");
  const HttpHeader* const host = find_http2_field(fields, "host");
  return authority == nullptr || host == nullptr || same_word(authority->value, host->value);
}

}  // namespace

struct Http2Shared::Parts {
  std::size_t library_bytes = 0;
  nghttp2_mem allocator{&library_bytes, take_counted, free_counted, take_counted_zeroed, resize_counted};
  nghttp2_option* options = nullptr;
  nghttp2_session_callbacks* callbacks = nullptr;

  Http2FieldRoom fields;
  EncodedFields encoded;  // scratch: nothing in it survives a call
};

// Callbacks only record. They do not submit, read or write: state that changes under a callback is a recurring cause of
// assertions in nghttp2. The one exception is the documented way to send trailers.
struct Http2::Callbacks {
  static Http2& self(void* user_data) noexcept { return *static_cast<Http2*>(user_data); }

  static int begin_headers(nghttp2_session*, const nghttp2_frame* frame, void* user_data) {
    Http2& http2 = self(user_data);
    http2.block_.begin();
    if (frame->headers.cat != NGHTTP2_HCAT_REQUEST) return 0;
    Stream& stream = http2.streams_.insert(frame->hd.stream_id);
    if (http2.catches_up(http2.now_)) stream.waited = http2.now_ - http2.unread_since_;
    return 0;
  }

  static int header(nghttp2_session*, const nghttp2_frame*, const std::uint8_t* name, std::size_t name_bytes,
                    const std::uint8_t* value, std::size_t value_bytes, std::uint8_t, void* user_data) {
    // A failure resets the stream. nghttp2 still decodes the rest of the block, to keep the HPACK table in sync, but
    // does not validate it.
    const bool within_bound = self(user_data).block_.add(view(name, name_bytes), view(value, value_bytes));
    return within_bound ? 0 : NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  }

  // By default nghttp2 leaves invalid fields out; a proxy must not.
  static int invalid_header(nghttp2_session*, const nghttp2_frame*, const std::uint8_t*, std::size_t,
                            const std::uint8_t*, std::size_t, std::uint8_t, void*) {
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  }

  static int frame_received(nghttp2_session*, const nghttp2_frame* frame, void* user_data) {
    Http2& http2 = self(user_data);
    const std::int32_t id = frame->hd.stream_id;
    using Kind = Http2Event::Kind;
    switch (frame->hd.type) {
      case NGHTTP2_HEADERS:
      case NGHTTP2_DATA: {
        Stream* const stream = http2.find(id);
        if (stream == nullptr) return 0;
        if (frame->hd.type == NGHTTP2_HEADERS) http2.finish_block(id, *stream);
        if ((frame->hd.flags & NGHTTP2_FLAG_END_STREAM) == 0) return 0;
        stream->received_end = true;
        if (!stream->dropped) http2.events_->push_back({.kind = Kind::end, .stream = id});
        return 0;
      }
      case NGHTTP2_SETTINGS:
        if ((frame->hd.flags & NGHTTP2_FLAG_ACK) == 0) http2.events_->push_back({.kind = Kind::settings});
        return 0;
      case NGHTTP2_PING:
        if ((frame->hd.flags & NGHTTP2_FLAG_ACK) != 0) http2.events_->push_back({.kind = Kind::pong});
        return 0;
      case NGHTTP2_GOAWAY:
        http2.events_->push_back(
            {.kind = Kind::goaway, .stream = frame->goaway.last_stream_id, .code = frame->goaway.error_code});
        return 0;
      default:
        return 0;
    }
  }

  // Streams beyond the bound are refused before nghttp2 opens them, so stream_closed() is not called for them.
  static int invalid_frame(nghttp2_session*, const nghttp2_frame*, int error, void* user_data) {
    Http2& http2 = self(user_data);
    if (error == NGHTTP2_ERR_REFUSED_STREAM) http2.meter_.ended_without_response(http2.now_, Duration::zero());
    return 0;
  }

  static int data(nghttp2_session*, std::uint8_t, std::int32_t id, const std::uint8_t* bytes, std::size_t size,
                  void* user_data) {
    Http2& http2 = self(user_data);
    Stream* const stream = http2.find(id);
    WEIR_ASSERT(stream != nullptr);
    stream->unconsumed += size;
    // nghttp2 delivers what is beyond the window and then resets the stream.
    if (stream->unconsumed > bounds::http2_stream_window_bytes) stream->dropped = true;
    if (!stream->dropped)
      http2.events_->push_back({.kind = Http2Event::Kind::data, .stream = id, .bytes = view(bytes, size)});
    return 0;
  }

  static int stream_closed(nghttp2_session*, std::int32_t id, std::uint32_t code, void* user_data) {
    self(user_data).close_stream(id, code);
    return 0;
  }

  static int frame_sent(nghttp2_session*, const nghttp2_frame* frame, void* user_data) {
    Http2& http2 = self(user_data);
    // The PING of announce_shutdown(). Submitted together with the GOAWAY it would overtake it.
    if (frame->hd.type == NGHTTP2_GOAWAY && frame->goaway.last_stream_id == INT32_MAX) http2.pending_ping_ = true;
    if (frame->hd.type != NGHTTP2_DATA && frame->hd.type != NGHTTP2_HEADERS) return 0;
    if (frame->hd.type == NGHTTP2_DATA && frame->hd.length > 0) http2.meter_.sent_content();
    Stream* const stream = http2.find(frame->hd.stream_id);
    if (stream == nullptr || (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) == 0) return 0;
    stream->sent_end = true;
    if (http2.role_ == Role::server && !stream->received_end)
      http2.pending_resets_.push_back({frame->hd.stream_id, Http2Code::no_error});
    return 0;
  }

  static int frame_not_sent(nghttp2_session*, const nghttp2_frame* frame, int error, void* user_data) {
    Http2& http2 = self(user_data);
    Stream* const stream = http2.find(frame->hd.stream_id);
    if (stream == nullptr || frame->hd.type != NGHTTP2_HEADERS) return 0;
    const bool not_allowed = error == NGHTTP2_ERR_START_STREAM_NOT_ALLOWED;
    if (frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
      const Http2Code code = stream->reset_by_us ? Http2Code::cancel
                             : not_allowed       ? Http2Code::refused_stream
                                                 : Http2Code::internal_error;
      http2.close_stream(frame->hd.stream_id, static_cast<std::uint32_t>(code));
      return 0;
    }
    if (error == NGHTTP2_ERR_STREAM_CLOSING || error == NGHTTP2_ERR_STREAM_CLOSED) return 0;
    stream->reset_by_us = true;
    http2.pending_resets_.push_back({frame->hd.stream_id, Http2Code::internal_error});
    return 0;
  }

  static ssize_t read_body(nghttp2_session* session, std::int32_t id, std::uint8_t*, std::size_t bytes_max,
                           std::uint32_t* flags, nghttp2_data_source*, void* user_data) {
    Http2& http2 = self(user_data);
    if (http2.out_->size() >= http2.out_bytes_max_) return NGHTTP2_ERR_PAUSE;
    Stream* const stream = http2.find(id);
    if (stream == nullptr) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    const Source::Body body = http2.source_.waiting(id);
    if (body.bytes.empty() && !body.last) return NGHTTP2_ERR_DEFERRED;
    http2.sending_ = body.bytes.substr(0, bytes_max);
    *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    if (body.last && http2.sending_.size() == body.bytes.size()) {
      *flags |= NGHTTP2_DATA_FLAG_EOF;
      if (!stream->trailers.empty()) {
        *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
        const HttpFields trailers{stream->trailers, {}};
        EncodedFields& fields = http2.shared_.parts_->encoded;
        fields.begin(trailers);
        fields.add(trailers);
        if (nghttp2_submit_trailer(session, id, fields.data(), fields.size()) != 0)
          return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
      }
    }
    return static_cast<ssize_t>(http2.sending_.size());
  }

  static int send_data(nghttp2_session*, nghttp2_frame* frame, const std::uint8_t* header, std::size_t size,
                       nghttp2_data_source*, void* user_data) {
    Http2& http2 = self(user_data);
    WEIR_ASSERT(size == http2.sending_.size());
    http2.out_->append(view(header, kHttp2FrameHeaderBytes)).append(http2.sending_);
    http2.source_.sent(frame->hd.stream_id, size);
    return 0;
  }

  static nghttp2_session_callbacks* make() {
    nghttp2_session_callbacks* callbacks = nullptr;
    WEIR_ASSERT(nghttp2_session_callbacks_new(&callbacks) == 0);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, header);
    nghttp2_session_callbacks_set_on_invalid_header_callback(callbacks, invalid_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, frame_received);
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks, invalid_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, stream_closed);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, frame_sent);
    nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks, frame_not_sent);
    nghttp2_session_callbacks_set_send_data_callback(callbacks, send_data);
    return callbacks;
  }
};

Http2Shared::Http2Shared() : parts_(std::make_unique<Parts>()) {
  WEIR_ASSERT(nghttp2_option_new(&parts_->options) == 0);
  nghttp2_option* const options = parts_->options;
  nghttp2_option_set_no_auto_window_update(options, 1);
  nghttp2_option_set_no_closed_streams(options, 1);
  nghttp2_option_set_max_continuations(options, bounds::http2_continuations_max);
  nghttp2_option_set_max_send_header_block_length(options, bounds::http2_sent_block_bytes_max);
  nghttp2_option_set_max_settings(options, bounds::http2_settings_max);
  nghttp2_option_set_max_outbound_ack(options, bounds::http2_unsent_acks_max);
  nghttp2_option_set_stream_reset_rate_limit(options, bounds::http2_library_resets_max,
                                             bounds::http2_library_resets_per_second);
  parts_->callbacks = Http2::Callbacks::make();
}

Http2Shared::~Http2Shared() {
  WEIR_ASSERT(parts_->library_bytes == 0);  // every connection is gone
  nghttp2_option_del(parts_->options);
  nghttp2_session_callbacks_del(parts_->callbacks);
}

std::size_t Http2Shared::library_bytes() const noexcept {
  return parts_->library_bytes;
}

Http2::Http2(Role role, Http2Shared& shared, Source& source)
    : role_(role), shared_(shared), source_(source), meter_(role == Role::server ? kPrefaceBytes : 0) {
  const auto make = role == Role::server ? nghttp2_session_server_new3 : nghttp2_session_client_new3;
  Http2Shared::Parts& parts = *shared_.parts_;
  WEIR_ASSERT(make(&session_, parts.callbacks, this, parts.options, &parts.allocator) == 0);
  start();
}

Http2::~Http2() {
  nghttp2_session_del(session_);
}

void Http2::start() {
  constexpr std::array<nghttp2_settings_entry, 7> kSettings = {{
      {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, bounds::http2_stream_window_bytes},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, bounds::http_head_bytes_max},
      {NGHTTP2_SETTINGS_HEADER_TABLE_SIZE, 4096},
      {NGHTTP2_SETTINGS_MAX_FRAME_SIZE, 16u << 10},
      {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
      {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, bounds::http2_streams_max},  // of a client's peer: nothing to say
  }};
  const std::size_t count = role_ == Role::server ? kSettings.size() : kSettings.size() - 1;
  WEIR_ASSERT(nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, kSettings.data(), count) == 0);
  WEIR_ASSERT(nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0,
                                                    bounds::http2_connection_window_bytes) == 0);
}

Result<void> Http2::receive(std::string_view bytes, Time now, std::vector<Http2Event>& events) {
  shared_.parts_->fields.clear();
  return receive_more(bytes, now, events);
}

Result<void> Http2::receive_more(std::string_view bytes, Time now, std::vector<Http2Event>& events) {
  WEIR_ASSERT(bytes.size() <= bounds::http2_receive_bytes_max);
  if (stopped_) return Error{Fault::invalid, "HTTP/2: the connection has already failed"};
  now_ = now;
  events_ = &events;
  ssize_t result = 0;
  for (std::string_view part = meter_.next(bytes, now); !part.empty() && result >= 0; part = meter_.next(bytes, now))
    result = nghttp2_session_mem_recv(session_, reinterpret_cast<const std::uint8_t*>(part.data()), part.size());
  events_ = nullptr;
  if (meter_.flood() != Http2Meter::Flood::none) {
    stop(Http2Code::enhance_your_calm);
    return Error{Fault::invalid, std::string(sentence_of(meter_.flood()))};
  }
  if (result < 0) {
    stop(result == NGHTTP2_ERR_BAD_CLIENT_MAGIC ? Http2Code::protocol_error : Http2Code::enhance_your_calm);
    return Error{Fault::invalid, std::string("HTTP/2: ") + nghttp2_strerror(static_cast<int>(result))};
  }
  apply_pending();
  return {};
}

void Http2::fill(std::string& out, std::size_t bytes_max, std::vector<Http2Event>& events) {
  events_ = &events;
  out_ = &out;
  out_bytes_max_ = bytes_max;
  for (bool more = true; more && out.size() < bytes_max;) {
    const std::uint8_t* bytes = nullptr;
    const ssize_t size = nghttp2_session_mem_send(session_, &bytes);
    WEIR_ASSERT(size >= 0);  // out of memory
    if (size > 0) out.append(view(bytes, static_cast<std::size_t>(size)));
    if (meter_.flood() != Http2Meter::Flood::none && !stopped_) {
      stop(Http2Code::enhance_your_calm);
    } else {
      more = size > 0 || !pending_resets_.empty() || pending_credit_ > 0 || pending_ping_;
    }
    apply_pending();
  }
  out_ = nullptr;
  events_ = nullptr;
}

bool Http2::finished() const noexcept {
  return nghttp2_session_want_read(session_) == 0 && nghttp2_session_want_write(session_) == 0;
}

Result<std::int32_t> Http2::request(const Http2Request& request) {
  WEIR_ASSERT(role_ == Role::client);
  if (stopped_ || nghttp2_session_check_request_allowed(session_) == 0)
    return Error{Fault::unavailable, "HTTP/2: the connection takes no more requests"};
  if (streams_.size() >= streams_max()) return Error{Fault::overloaded, "HTTP/2: the peer allows no more streams now"};
  EncodedFields& fields = shared_.parts_->encoded;
  fields.begin(request.fields);
  fields.add_own(":method", request.method);
  fields.add_own(":scheme", request.scheme);
  if (!request.authority.empty()) fields.add_own(":authority", request.authority);
  fields.add_own(":path", request.path);
  fields.add(request.fields);
  const std::uint32_t peer_max = nghttp2_session_get_remote_settings(session_, NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE);
  if (fields.list_bytes() > std::min<std::size_t>(peer_max, bounds::http2_sent_block_bytes_max))
    return Error{Fault::too_large, "HTTP/2: the fields are more than the peer accepts"};
  nghttp2_data_provider body{{}, Callbacks::read_body};
  const std::int32_t id = nghttp2_submit_request(session_, nullptr, fields.data(), fields.size(),
                                                 request.has_body ? &body : nullptr, nullptr);
  if (id < 0) return Error{Fault::unavailable, std::string("HTTP/2: ") + nghttp2_strerror(id)};
  streams_.insert(id).reported = true;
  return id;
}

std::size_t Http2::streams_max() const noexcept {
  return nghttp2_session_get_remote_settings(session_, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
}

void Http2::respond(std::int32_t stream, int status, const HttpFields& response_fields, bool has_body,
                    std::span<const HttpHeader> own) {
  WEIR_ASSERT(role_ == Role::server && status >= 100 && status <= 999);
  if (find(stream) == nullptr) return;
  const std::string status_text = std::to_string(status);
  EncodedFields& fields = shared_.parts_->encoded;
  fields.begin(response_fields);
  fields.add_own(":status", status_text);
  for (const HttpHeader& field : own) fields.add_own(field.name, field.value);
  fields.add(response_fields);
  // Submitting fails if the stream is about to be reset; the response is not needed then.
  if (status < 200) {
    nghttp2_submit_headers(session_, NGHTTP2_FLAG_NONE, stream, nullptr, fields.data(), fields.size(), nullptr);
    return;
  }
  // Incremental (RFC 9218 §4.2): streams take turns, so that a long body does not hold back the others.
  constexpr nghttp2_extpri kIncremental{.urgency = NGHTTP2_EXTPRI_DEFAULT_URGENCY, .inc = 1};
  nghttp2_session_change_extpri_stream_priority(session_, stream, &kIncremental, 1);
  nghttp2_data_provider body{{}, Callbacks::read_body};
  nghttp2_submit_response(session_, stream, fields.data(), fields.size(), has_body ? &body : nullptr);
}

void Http2::wake(std::int32_t stream) {
  if (find(stream) != nullptr) nghttp2_session_resume_data(session_, stream);
}

void Http2::trailers(std::int32_t id, const HttpFields& fields) {
  Stream* const stream = find(id);
  if (stream == nullptr) return;
  stream->trailers = fields.lines;
  for (const HttpHeader& field : fields.list) write_field(field.name, field.value, stream->trailers);
}

void Http2::consumed(std::int32_t id, std::size_t bytes) {
  Stream* const stream = find(id);
  if (stream == nullptr) return;
  WEIR_ASSERT(bytes <= stream->unconsumed);
  stream->unconsumed -= bytes;
  nghttp2_session_consume(session_, id, bytes);
}

void Http2::reset(std::int32_t id, Http2Code code) {
  Stream* const stream = find(id);
  if (stream == nullptr) return;
  stream->reset_by_us = true;
  stream->dropped = true;
  nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, id, static_cast<std::uint32_t>(code));
}

void Http2::waits_since(std::int32_t id, Time since) {
  if (Stream* const stream = find(id)) stream->waits_since = since;
}

void Http2::waited_until(std::int32_t id, Time until) {
  Stream* const stream = find(id);
  if (stream == nullptr || stream->waits_since >= until) return;
  stream->waited += until - stream->waits_since;
  stream->waits_since = Time::max();
}

void Http2::was_unread(Time since, Time now) {
  if (!catches_up(since)) unread_since_ = since;
  read_again_ = now;
}

bool Http2::catches_up(Time now) const noexcept {
  return unread_since_ < now && now - read_again_ <= bounds::http2_reset_excused_after;
}

void Http2::ping() {
  nghttp2_submit_ping(session_, NGHTTP2_FLAG_NONE, nullptr);
}

void Http2::announce_shutdown() {
  WEIR_ASSERT(role_ == Role::server);
  nghttp2_submit_shutdown_notice(session_);
}

void Http2::go_away() {
  const std::int32_t last = nghttp2_session_get_last_proc_stream_id(session_);
  nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE, last, NGHTTP2_NO_ERROR, nullptr, 0);
}

Http2::Stream* Http2::find(std::int32_t stream) noexcept {
  return streams_.find(stream);
}

void Http2::finish_block(std::int32_t id, Stream& stream) {
  using Kind = Http2Event::Kind;
  const Kind kind = block_.is_head() ? Kind::head : Kind::trailers;
  std::span<const HttpHeader> fields;
  const bool fits = block_.finish(shared_.parts_->fields, fields);
  if (stream.dropped) return;
  const bool request = role_ == Role::server && kind == Kind::head;
  const HttpHeader* const method = find_http2_field(fields, ":method");
  const int refusal = !fits ? 431 : method != nullptr && method->value == "CONNECT" ? 405 : 0;
  if (request && fits && !hosts_agree(fields)) {
    stream.dropped = true;
    pending_resets_.push_back({id, Http2Code::protocol_error});
  } else if (request && refusal != 0) {
    stream.reported = stream.dropped = true;
    events_->push_back({.kind = Kind::refused, .stream = id, .code = static_cast<std::uint32_t>(refusal)});
  } else if (!fits) {
    stream.dropped = true;
    pending_resets_.push_back({id, Http2Code::protocol_error});
  } else {
    stream.reported = true;
    events_->push_back({.kind = kind, .stream = id, .fields = fields});
  }
}

void Http2::close_stream(std::int32_t id, std::uint32_t code) {
  Stream* const stream = find(id);
  if (stream == nullptr) return;
  pending_credit_ += stream->unconsumed;
  const bool complete =
      role_ == Role::server ? stream->sent_end : stream->received_end && code == NGHTTP2_NO_ERROR && !stream->dropped;
  if (complete) {
    meter_.completed_exchange();
  } else if (role_ == Role::server && !stream->reset_by_us) {
    const Duration waits = stream->waits_since < now_ ? now_ - stream->waits_since : Duration::zero();
    meter_.ended_without_response(now_, stream->waited + waits);
  }
  // If the peer has ended the stream with a response that we reject, nothing is left to reset.
  const bool rejected = role_ == Role::client && stream->dropped && code == NGHTTP2_NO_ERROR;
  if (stream->reported && complete) {
    events_->push_back({.kind = Http2Event::Kind::closed, .stream = id});
  } else if (stream->reported) {
    const std::uint32_t cause = rejected ? static_cast<std::uint32_t>(Http2Code::protocol_error) : code;
    events_->push_back({.kind = Http2Event::Kind::reset, .stream = id, .code = cause});
  }
  streams_.erase(id);
}

void Http2::apply_pending() {
  for (const PendingReset& reset : pending_resets_)
    nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, reset.stream, static_cast<std::uint32_t>(reset.code));
  pending_resets_.clear();
  if (pending_credit_ > 0) nghttp2_session_consume_connection(session_, pending_credit_);
  pending_credit_ = 0;
  if (pending_ping_) ping();
  pending_ping_ = false;
}

void Http2::stop(Http2Code code) {
  stopped_ = true;
  nghttp2_session_terminate_session(session_, static_cast<std::uint32_t>(code));
}

}  // namespace weir
