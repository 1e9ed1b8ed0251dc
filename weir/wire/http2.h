// HTTP/2 framing (RFC 9113) for one connection, client or server side, built on nghttp2. Bytes in, events out, output
// on demand; no sockets, no exchanges, no clock.
//
//   receive()                                decodes bytes into events, with flood control (http2_meter.h)
//   respond() request() trailers() reset()   queue frames
//   fill()                                   writes frames and pulls body bytes from a Source, as far as windows allow
//   consumed()                               returns credit: without it the peer's windows stay closed
//
// No code of the caller runs inside nghttp2, except Source. While handling events, call any function in any order;
// calls for a stream that has ended do nothing. Thread safety: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/result.h"
#include "weir/base/time.h"
#include "weir/wire/http1.h"
#include "weir/wire/http2_block.h"
#include "weir/wire/http2_meter.h"
#include "weir/wire/http2_streams.h"

struct nghttp2_session;

namespace weir {

// RFC 9113 §7: the codes that callers send or compare with.
enum class Http2Code : std::uint32_t {
  no_error = 0,
  protocol_error = 1,
  internal_error = 2,
  refused_stream = 7,
  cancel = 8,
  enhance_your_calm = 11,
};

// What the peer did. Fields are valid until the next receive() of any connection with the same Http2Shared; bytes of
// `data` are views of the bytes given to receive().
//
// A stream's events are: head (a client may get several, 1xx before the final one) or refused; any data; trailers; end;
// and, last and always, closed or reset, unless the connection ends first.
struct Http2Event {
  enum class Kind : unsigned char {
    head,      // `fields`, pseudo-fields first. Cookie fields are joined, `host` agrees with `:authority`
    data,      // `bytes` of the body; give the credit back with consumed()
    trailers,  // `fields` after the body
    end,       // the peer sends nothing more on this stream
    refused,   // server: the head passes a bound (`code` 431) or is CONNECT (405). Send that; the body is dropped
    closed,    // server: the response was sent completely; client: the response was received completely
    reset,     // the stream ended before that; `code` is an Http2Code
    goaway,    // the peer takes no streams above `stream`; `code` says why
    settings,  // the peer's settings changed: see streams_max()
    pong,      // the peer answered ping() or announce_shutdown()
  };
  Kind kind;
  std::int32_t stream = 0;
  std::uint32_t code = 0;
  std::string_view bytes = {};
  std::span<const HttpHeader> fields = {};
};

// What the HTTP/2 connections of one loop share: room for the fields of one receive(), and the count of bytes that
// nghttp2 has allocated, for a metric and for tests.
class Http2Shared {
 public:
  Http2Shared();
  ~Http2Shared();
  Http2Shared(const Http2Shared&) = delete;
  Http2Shared& operator=(const Http2Shared&) = delete;

  std::size_t library_bytes() const noexcept;

 private:
  friend class Http2;
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

struct Http2Request {
  std::string_view method;
  std::string_view scheme;
  std::string_view authority;
  std::string_view path;
  HttpFields fields;
  bool has_body = false;  // its bytes come from the Source
};

class Http2 {
 public:
  enum class Role : unsigned char { server, client };

  // Supplies the bodies to send. Called inside fill(); must not call Http2.
  class Source {
   public:
    struct Body {
      std::string_view bytes;
      bool last = false;  // nothing follows them
    };
    virtual ~Source() = default;
    // Returns what can be sent now. If that is nothing and not the last, the stream sleeps until wake().
    virtual Body waiting(std::int32_t stream) = 0;
    // The first `bytes` of it were written to the output. Not called for a body that ends with only trailers.
    virtual void sent(std::int32_t stream, std::size_t bytes) = 0;
  };

  // Queues the settings. `shared` and `source` must outlive it.
  Http2(Role role, Http2Shared& shared, Source& source);
  ~Http2();
  Http2(const Http2&) = delete;
  Http2& operator=(const Http2&) = delete;

  // Appends to `events`. REQUIRES: at most bounds::http2_receive_bytes_max bytes. An error (a flood, or invalid HTTP/2)
  // is final: call fill() once more to write the GOAWAY, then close.
  Result<void> receive(std::string_view bytes, Time now, std::vector<Http2Event>& events);
  // Like receive(), but the fields of earlier calls stay valid and share one bound.
  Result<void> receive_more(std::string_view bytes, Time now, std::vector<Http2Event>& events);

  // Appends frames to `out` until nothing is left to send or `out` holds `bytes_max` bytes; the last frame may exceed
  // that. Appends `closed` and `reset` events for the streams that this ends.
  void fill(std::string& out, std::size_t bytes_max, std::vector<Http2Event>& events);

  // True if nothing more will be read or written: close the connection.
  bool finished() const noexcept;

  // Client. Queues a request and returns its stream. On error nothing is queued: too many streams (`overloaded`), the
  // peer is going away (`unavailable`), or the fields exceed what the peer accepts (`too_large`).
  Result<std::int32_t> request(const Http2Request& request);
  std::size_t streams_max() const noexcept;

  // Server. A status below 200 is an interim response: another respond() follows it. If the request is still incomplete
  // when the response is sent, the stream is reset with NO_ERROR (RFC 9113 §8.1). `own` fields are sent first; their
  // names are in lower case.
  void respond(std::int32_t stream, int status, const HttpFields& fields, bool has_body,
               std::span<const HttpHeader> own = {});

  // Call when the Source has more for a sleeping stream.
  void wake(std::int32_t stream);
  // Sends trailers after the body. REQUIRES: a body was announced, and the Source has not returned its last bytes yet.
  void trailers(std::int32_t stream, const HttpFields& fields);
  // Returns credit for body bytes. REQUIRES: no more than `data` events delivered. The rest returns by itself when the
  // stream ends.
  void consumed(std::int32_t stream, std::size_t bytes);
  void reset(std::int32_t stream, Http2Code code);
  // Server, for the flood meter: when the stream started and stopped waiting on us. A client that gives up waiting is
  // not an attacker, even if its reset arrives after the response was decided but before it was sent.
  void waits_since(std::int32_t stream, Time since);
  void waited_until(std::int32_t stream, Time until);
  // Likewise: nothing was read from `since` until `now`, so what is read next may have waited on us that long.
  void was_unread(Time since, Time now);

  // Sends a PING. The answer arrives as a `pong` event.
  void ping();
  // Server: tells the client to open no more streams, then sends a PING. Streams that arrive meanwhile are served. Call
  // go_away() at the `pong`, or when it takes too long.
  void announce_shutdown();
  // Accepts no new streams from here on. finished() is true once the open ones have ended.
  void go_away();

  Http2Meter::Flood flood() const noexcept { return meter_.flood(); }
  std::size_t streams() const noexcept { return streams_.size(); }

 private:
  friend class Http2Shared;
  struct Callbacks;  // nghttp2's
  struct Stream {
    std::size_t unconsumed = 0;
    Time waits_since = Time::max();
    Duration waited{};      // before that
    std::string trailers;   // lines
    bool reported = false;  // events have named it
    bool dropped = false;   // further input is ignored
    bool received_end = false;
    bool sent_end = false;
    bool reset_by_us = false;  // not because of something the peer did
  };
  struct PendingReset {
    std::int32_t stream;
    Http2Code code;
  };

  Stream* find(std::int32_t stream) noexcept;
  // True if bytes read at `now` may have been waiting since unread_since_.
  bool catches_up(Time now) const noexcept;
  void start();
  void finish_block(std::int32_t id, Stream& stream);
  void close_stream(std::int32_t id, std::uint32_t code);
  void apply_pending();
  void stop(Http2Code code);

  Role role_;
  Http2Shared& shared_;
  Source& source_;
  Http2Meter meter_;
  nghttp2_session* session_ = nullptr;
  Http2Streams<Stream> streams_;
  Http2Block block_;
  Time now_{};
  // When the peer's bytes began to wait unread, ignoring gaps up to bounds::http2_reset_excused_after; max: never.
  Time unread_since_ = Time::max();
  Time read_again_{};
  bool stopped_ = false;

  // Recorded by callbacks, applied when nghttp2 has returned.
  std::vector<Http2Event>* events_ = nullptr;
  std::vector<PendingReset> pending_resets_;
  std::size_t pending_credit_ = 0;  // of the connection's window
  bool pending_ping_ = false;

  // While fill() runs.
  std::string* out_ = nullptr;
  std::size_t out_bytes_max_ = 0;
  std::string_view sending_;  // the payload of the DATA frame that is being written
};

}  // namespace weir
