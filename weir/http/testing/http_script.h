// HTTP requests and responses without a version, and the two ways to put them on a connection: Http1Text and
// Http2Frames. For tests: frames are written by hand with HPACK literals, and fields are decoded with nghttp2's
// inflater alone, so that nothing of what is tested helps to test it.
#pragma once

#include <gtest/gtest.h>
#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/base/ascii.h"
#include "weir/wire/http1.h"
#include "weir/wire/http1_body.h"
#include "weir/wire/http2_frames_test.h"

namespace weir::http {

using ScriptFields = std::vector<std::pair<std::string, std::string>>;

struct ScriptRequest {
  std::string method = "GET";
  std::string path = "/";
  ScriptFields fields = {};
  std::vector<std::string> parts = {};  // of the body: chunks or DATA frames. One part: sent with its length
  ScriptFields trailers = {};           // only with more than one part

  bool chunked() const { return parts.size() > 1 || !trailers.empty(); }
};

struct ScriptResponse {
  int status = 0;
  std::map<std::string, std::string> fields = {};  // names in lower case; without framing and Date
  std::string content = {};
  std::map<std::string, std::string> trailers = {};
  std::vector<int> interim = {};
  bool complete = false;
  bool reset = false;

  bool operator==(const ScriptResponse&) const = default;
  friend std::ostream& operator<<(std::ostream& stream, const ScriptResponse& response) {
    stream << response.status << (response.complete ? "" : " incomplete") << (response.reset ? " reset" : "");
    for (const auto& [name, value] : response.fields) stream << " " << name << "=" << value;
    return stream << " " << response.content;
  }
};

// A client's side of one connection.
class HttpScriptPeer {
 public:
  virtual ~HttpScriptPeer() = default;
  // What goes before the first request.
  virtual std::string opening() { return {}; }
  // All of them, one behind the other, or mixed as far as the version allows.
  virtual std::string encode(const std::vector<ScriptRequest>& requests, bool mixed) = 0;
  // Adds to what was decoded before. Returns what the client must send in answer (acknowledgments, windows).
  virtual std::string decode(std::string_view bytes) = 0;
  // In the order of the requests.
  const std::vector<ScriptResponse>& responses() const { return responses_; }
  bool saw_end() const { return saw_end_; }

 protected:
  static void note(std::map<std::string, std::string>& to, std::string_view name, std::string_view value) {
    const std::string lower = to_lower(name);
    if (is_framing_field(lower) || lower == "date") return;
    std::string& all = to[lower];
    all += (all.empty() ? "" : ", ") + std::string(value);
  }
  std::vector<ScriptResponse> responses_;
  bool saw_end_ = false;  // Connection: close, or GOAWAY
};

class Http1Text final : public HttpScriptPeer {
 public:
  std::string encode(const std::vector<ScriptRequest>& requests, bool) override {
    std::string out;
    for (const ScriptRequest& request : requests) {
      to_head_.push_back(request.method == "HEAD");
      responses_.emplace_back();
      out += request.method + " " + request.path + " HTTP/1.1\r\nhost: localhost\r\n";
      for (const auto& [name, value] : request.fields) write_field(name, value, out);
      if (request.chunked()) {
        out += "transfer-encoding: chunked\r\n\r\n";
        for (const std::string& part : request.parts) write_chunk(part, out);
        std::vector<HttpHeader> trailers;
        for (const auto& [name, value] : request.trailers) trailers.push_back({name, value});
        write_last_chunk(trailers, out);
      } else if (!request.parts.empty()) {
        write_field("content-length", std::to_string(request.parts[0].size()), out);
        out += "\r\n" + request.parts[0];
      } else {
        out += "\r\n";
      }
    }
    return out;
  }

  std::string decode(std::string_view bytes) override {
    unread_ += bytes;
    while (!unread_.empty() && step()) {
    }
    return {};
  }

 private:
  bool step() {
    if (in_body_) return read_body();
    if (next_ == responses_.size()) {
      ADD_FAILURE() << "a response to nothing: " << unread_;
      return false;
    }
    ScriptResponse& response = responses_[next_];
    const HeadResult head = parse_response_head(unread_, to_head_[next_], *head_);
    EXPECT_FALSE(head.problem) << head.problem.sentence << "\n" << unread_;
    if (head.size == 0) return false;
    if (head_->status < 200) {
      response.interim.push_back(head_->status);
      unread_.erase(0, head.size);
      return true;
    }
    response.status = head_->status;
    for (const HttpHeader& field : head_->headers.all()) note(response.fields, field.name, field.value);
    saw_end_ = saw_end_ || !head_->framing.keep_alive;
    body_ = HttpBody(head_->framing, ~std::uint64_t{0});
    in_body_ = true;
    unread_.erase(0, head.size);
    return finish_body() || true;
  }

  bool read_body() {
    const HttpBody::BodyPiece piece = body_.next(unread_);
    EXPECT_FALSE(piece.problem) << piece.problem.sentence;
    responses_[next_].content += piece.content;
    const bool moved = piece.consumed > 0;
    unread_.erase(0, piece.consumed);
    finish_body();
    return moved && !piece.problem;
  }

  bool finish_body() {
    if (!body_.done()) return false;
    for (const HttpHeader& field : body_.trailers()) note(responses_[next_].trailers, field.name, field.value);
    responses_[next_].complete = true;
    ++next_;
    in_body_ = false;
    return true;
  }

  std::string unread_;
  std::vector<bool> to_head_;
  std::size_t next_ = 0;
  std::unique_ptr<ResponseHead> head_ = std::make_unique<ResponseHead>();
  HttpBody body_;
  bool in_body_ = false;
};

class Http2Frames final : public HttpScriptPeer {
 public:
  // The stream window that the client announces. `reads_at_once`: it returns credit for everything as it arrives.
  explicit Http2Frames(std::uint32_t window = 65'535, bool reads_at_once = true)
      : window_(window), reads_at_once_(reads_at_once) {
    EXPECT_EQ(nghttp2_hd_inflate_new(&inflater_), 0);
  }
  ~Http2Frames() override { nghttp2_hd_inflate_del(inflater_); }
  Http2Frames(const Http2Frames&) = delete;
  Http2Frames& operator=(const Http2Frames&) = delete;

  std::string opening() override {
    return std::string(http2_frames::kPreface) + http2_frames::settings({{4, window_}});
  }

  std::string encode(const std::vector<ScriptRequest>& requests, bool mixed) override {
    std::vector<std::vector<std::string>> streams;
    for (const ScriptRequest& request : requests) streams.push_back(frames_of(request));
    std::string out;
    if (!mixed) {
      for (const auto& frames : streams) {
        for (const std::string& frame : frames) out += frame;
      }
      return out;
    }
    // One frame of each in turn. Heads in the order of their streams, as the ids must be.
    for (std::size_t i = 0, left = 1; left > 0; ++i) {
      left = 0;
      for (const auto& frames : streams) {
        if (i < frames.size()) out += frames[i];
        if (i + 1 < frames.size()) ++left;
      }
    }
    return out;
  }
  std::string cancel(std::size_t request) const { return http2_frames::rst_stream(stream_of(request), 8); }
  std::string reads(std::size_t request, std::uint32_t bytes) const {
    return http2_frames::window_update(stream_of(request), bytes) + http2_frames::window_update(0, bytes);
  }
  static std::uint32_t stream_of(std::size_t request) { return static_cast<std::uint32_t>(2 * request + 1); }

  std::string decode(std::string_view bytes) override {
    unread_ += bytes;
    std::string answer;
    while (unread_.size() >= kHttp2FrameHeaderBytes) {
      const auto byte = [&](std::size_t i) { return static_cast<std::size_t>(static_cast<unsigned char>(unread_[i])); };
      const std::size_t size = kHttp2FrameHeaderBytes + (byte(0) << 16 | byte(1) << 8 | byte(2));
      if (unread_.size() < size) break;
      for (const http2_frames::Frame& frame : http2_frames::frames(unread_.substr(0, size))) answer += read(frame);
      unread_.erase(0, size);
    }
    return answer;
  }

 private:
  std::vector<std::string> frames_of(const ScriptRequest& request) {
    using namespace http2_frames;
    const std::uint32_t stream = stream_of(responses_.size());
    responses_.emplace_back();
    Fields fields = {
        {":method", request.method}, {":scheme", "http"}, {":path", request.path}, {":authority", "localhost"}};
    for (const auto& [name, value] : request.fields) fields.emplace_back(to_lower(name), value);
    if (!request.chunked() && !request.parts.empty())
      fields.emplace_back("content-length", std::to_string(request.parts[0].size()));
    const bool has_body = !request.parts.empty() || !request.trailers.empty();
    std::vector<std::string> out = {headers(stream, fields, end_headers | (has_body ? 0 : end_stream))};
    for (std::size_t i = 0; i < request.parts.size(); ++i) {
      const bool last = i + 1 == request.parts.size() && request.trailers.empty();
      std::string_view part = request.parts[i];
      std::string bytes;
      for (; part.size() > 16'384; part.remove_prefix(16'384)) bytes += data(stream, part.substr(0, 16'384));
      out.push_back(bytes + data(stream, part, last ? end_stream : 0));
    }
    if (!request.trailers.empty()) out.push_back(headers(stream, request.trailers));
    return out;
  }

  std::string read(const http2_frames::Frame& frame) {
    using namespace http2_frames;
    switch (frame.type) {
      case type_settings:
        return (frame.flags & ack) != 0 ? std::string() : settings_ack();
      case type_ping:
        return (frame.flags & ack) != 0 ? std::string() : http2_frames::frame(type_ping, ack, 0, frame.payload);
      case type_goaway:
        saw_end_ = true;
        return {};
      case type_rst_stream:
        // NO_ERROR behind a complete response: the rest of the request is not wanted.
        if (!response(frame).complete) response(frame).reset = true;
        return {};
      case type_headers:
        read_fields(frame);
        break;
      case type_data:
        response(frame).content += frame.payload;
        break;
      default:
        return {};
    }
    if ((frame.flags & end_stream) != 0) response(frame).complete = true;
    if (frame.type != type_data || frame.payload.empty() || !reads_at_once_) return {};
    const auto size = static_cast<std::uint32_t>(frame.payload.size());
    return window_update(0, size) + (response(frame).complete ? "" : window_update(frame.stream, size));
  }

  void read_fields(const http2_frames::Frame& frame) {
    ScriptResponse& to = response(frame);
    EXPECT_NE(frame.flags & http2_frames::end_headers, 0u) << "the kit reads no CONTINUATION";
    const auto* at = reinterpret_cast<const std::uint8_t*>(frame.payload.data());
    std::size_t left = frame.payload.size();
    const bool is_trailers = to.status != 0;
    for (int flags = 0; (flags & NGHTTP2_HD_INFLATE_FINAL) == 0;) {
      nghttp2_nv field;
      flags = 0;
      const ssize_t used = nghttp2_hd_inflate_hd2(inflater_, &field, &flags, at, left, 1);
      ASSERT_GE(used, 0) << "HPACK";
      at += used;
      left -= static_cast<std::size_t>(used);
      if ((flags & NGHTTP2_HD_INFLATE_EMIT) == 0) continue;
      const std::string_view name(reinterpret_cast<const char*>(field.name), field.namelen);
      const std::string_view value(reinterpret_cast<const char*>(field.value), field.valuelen);
      EXPECT_EQ(to_lower(name), name) << "names are in lower case";
      if (name == ":status") {
        to.status = std::stoi(std::string(value));
      } else {
        note(is_trailers ? to.trailers : to.fields, name, value);
      }
    }
    nghttp2_hd_inflate_end_headers(inflater_);
    if (to.status >= 200 || is_trailers) return;
    to.interim.push_back(std::exchange(to.status, 0));
    to.fields.clear();
  }

  ScriptResponse& response(const http2_frames::Frame& frame) {
    const std::size_t index = (frame.stream - 1) / 2;
    EXPECT_LT(index, responses_.size()) << "a frame of a stream that the client did not open";
    if (index >= responses_.size()) return nothing_;
    return responses_[index];
  }

  std::uint32_t window_;
  bool reads_at_once_;
  nghttp2_hd_inflater* inflater_ = nullptr;
  std::string unread_;
  ScriptResponse nothing_;
};

}  // namespace weir::http
