// An exchange over HTTP/1. Responses leave in the order of the requests: the front exchange of a connection writes to
// its output, the ones behind it hold their bytes until it is their turn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "weir/base/bounds.h"
#include "weir/http/exchange.h"
#include "weir/http/exchange_table.h"

namespace weir::http {

class Http1Session;

class Http1Exchange final : public Exchange {
 public:
  static constexpr ExchangeKind kKind = ExchangeKind::http1;

  void proceed() override;
  void consumed(std::size_t bytes) override;
  void discard() override;
  void expect_at_most(std::uint64_t bytes) override;
  void inform(int status, const HttpFields& fields) override;
  void respond(const Response& head, BodyPart first) override;
  void write(BodyPart part) override;
  std::size_t room() const noexcept override;
  void upgrade(const Response& head) override;
  void abort() override;

 private:
  friend class Http1Session;

  enum class Reply : unsigned char {
    none,       // not responded
    length,     // the head is written; content by length follows
    chunked,    // content in chunks
    raw,        // content until the connection ends, or a tunnel
    no_body,    // content is dropped: HEAD, 204, 304
    complete,   // nothing more
    abandoned,  // by abort()
  };

  void start(Http1Session& session, const RequestHead* head) noexcept;
  bool open() const noexcept { return reply_ != Reply::complete && reply_ != Reply::abandoned; }
  std::string& to() noexcept;
  void add(BodyPart part);
  void finish() noexcept;
  void wrote(std::size_t before, std::size_t content) noexcept;

  Http1Session* session_ = nullptr;
  Http1Exchange* next_ = nullptr;  // the request behind this one
  std::string held_;               // what is written before it is the front
  std::uint64_t length_left_ = 0;  // of content by length that was announced
  std::size_t undrained_ = 0;      // content written and not reported with drained()
  std::size_t credit_ = 0;         // request content that may be delivered
  std::size_t unconsumed_ = 0;     // request content delivered and not consumed
  Reply reply_ = Reply::none;
  bool http11_ = true;
  bool keep_alive_ = true;
  bool head_only_ = false;
  bool expects_ = false;   // the client waits for a 100 that was not sent
  bool discards_ = false;  // the receiver wants no more of the request
  bool tunnel_ = false;
  bool silent_ = false;  // the session's own: has no receiver
};

}  // namespace weir::http
