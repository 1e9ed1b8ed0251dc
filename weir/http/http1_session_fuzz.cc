// Any bytes, in any pieces. A handler that answers whole requests gives the same responses however they are split; one
// that does what the bytes say breaks nothing: no crash, bounded credit, and every exchange ends.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/base/assert.h"
#include "weir/base/bounds.h"
#include "weir/http/handler.h"
#include "weir/http/http1_session.h"
#include "weir/http/http_shared.h"

namespace {

using weir::http::BodyPart;
using weir::http::Ending;
using weir::http::Exchange;

class WireOutput final : public weir::Output {
 public:
  WireOutput() : Output(text_) {}

 private:
  void wake() override {}
  std::string text_;
};

// Sends the request back, in the parts that it has at the end.
class EchoHandler final : public weir::http::Handler {
 public:
  void begin(Exchange& exchange, const weir::RequestHead& head, BodyPart first) override {
    exchange.proceed();
    std::string& text = texts_[&exchange];
    text.assign(head.method).append(" ").append(head.target).append(" ");
    for (const weir::HttpHeader& field : head.headers.all()) text.append(field.name).append("=").append(field.value);
    body(exchange, first);
  }
  void body(Exchange& exchange, BodyPart part) override {
    std::string& text = texts_[&exchange];
    text += part.bytes;
    exchange.consumed(part.bytes.size());
    if (!part.last) return;
    exchange.respond({200, "text/plain", {}, {}}, {text, part.trailers.empty(), {}});
    if (!part.trailers.empty()) exchange.write({{}, true, part.trailers});
    texts_.erase(&exchange);
  }
  void ended(Exchange& exchange, Ending) override { texts_.erase(&exchange); }
  bool overlaps() const noexcept override { return true; }

 private:
  std::map<Exchange*, std::string> texts_;
};

// Takes its orders from the bytes of bodies and targets.
class WildHandler final : public weir::http::Handler {
 public:
  void begin(Exchange& exchange, const weir::RequestHead& head, BodyPart first) override {
    // The handler is not told that an exchange is complete, so this may be the entry of an earlier one.
    Request& request = open_[&exchange] = {};
    request.may_upgrade = first.last && !head.upgrade.empty();
    for (const char order : head.target) obey(exchange, request, order);
    body(exchange, first);
  }
  void body(Exchange& exchange, BodyPart part) override {
    Request& request = open_[&exchange];
    request.unconsumed += part.bytes.size();
    WEIR_ASSERT(request.unconsumed <= weir::bounds::http_window_bytes);
    for (const char order : part.bytes.substr(0, 16)) obey(exchange, request, order);
    if (!part.last || request.asks) return;
    finish(exchange, request);
  }
  void answered(Exchange& exchange, std::uint32_t, const weir::Result<weir::Answer>&) override {
    finish(exchange, open_[&exchange]);
  }
  void can_ask(Exchange& exchange) override { (void)exchange.ask(); }
  void expired(Exchange& exchange) override { finish(exchange, open_[&exchange]); }
  void draining(Exchange& exchange) override { finish(exchange, open_[&exchange]); }
  void ended(Exchange& exchange, Ending) override { open_.erase(&exchange); }
  bool overlaps() const noexcept override { return overlap; }

  bool overlap = false;

 private:
  struct Request {
    std::size_t unconsumed = 0;
    bool responded = false;
    bool may_upgrade = false;
    bool asks = false;
  };

  void finish(Exchange& exchange, Request& request) {
    if (!request.responded) exchange.respond({200, {}, {}, {}}, {"end", true});
    if (request.responded) exchange.write({"end", true});
    request.responded = true;
  }

  void obey(Exchange& exchange, Request& request, char order) {
    switch (order) {
      case 'a':
        return exchange.abort();
      case 'b':
        request.asks = true;
        (void)exchange.ask();
        return;
      case 'c':
        exchange.consumed(request.unconsumed);
        request.unconsumed = 0;
        return;
      case 'd':
        return exchange.discard();
      case 'e':
        return exchange.expire_at(weir::Time{});
      case 'i':
        if (!request.responded) exchange.inform(103, {});
        return;
      case 'p':
        return exchange.proceed();
      case 'r':
        if (request.responded) return exchange.write({"part", false});
        request.responded = true;
        return exchange.respond({200, {}, {}, {}}, {"first", false});
      case 'u':
        if (!request.may_upgrade || request.responded || overlap) return;
        request.responded = true;
        return exchange.upgrade({101, {}, {}, {}});
      default:
        return;
    }
  }

  std::map<Exchange*, Request> open_;
};

std::string run(weir::http::Handler& handler, std::string_view bytes, std::size_t piece, bool drains) {
  weir::http::HttpShared shared;
  WireOutput output;
  weir::http::Http1Session session(shared, handler, {output, {}, {}, {}, false});
  std::vector<std::uint64_t> owed;
  const auto collect = [&](const weir::Queries& queries) {
    for (const weir::Asked& asked : queries.all()) owed.push_back(asked.token);
  };
  std::size_t used = 0;
  std::size_t end = std::min(piece, bytes.size());
  for (std::size_t idle = 0; idle < 3 && !session.finished();) {
    const std::unique_ptr<char[]> block(new char[end - used]);
    std::copy(bytes.begin() + static_cast<std::ptrdiff_t>(used), bytes.begin() + static_cast<std::ptrdiff_t>(end),
              block.get());
    weir::Queries queries;
    const auto taken = session.receive({block.get(), end - used}, queries, {});
    collect(queries);
    if (!taken) break;
    used += *taken;
    if (session.has_more()) {
      weir::Queries more;
      session.resume(more, {});
      collect(more);
    }
    for (const std::uint64_t token : std::exchange(owed, {})) session.reply(token, weir::Answer{});
    if (session.deadline() <= weir::Time{}) session.expire(weir::Time{});
    if (output.wants_fill) session.fill(0);
    if (*taken > 0) {
      idle = 0;
    } else if (end < bytes.size()) {
      end = std::min(end + piece, bytes.size());
    } else {
      ++idle;
    }
  }
  if (drains && !session.finished()) session.drain({});
  if (drains && !session.finished()) session.end_of_input({});
  session.lost();
  WEIR_ASSERT(shared.exchanges->open_count() == 0);
  return output.bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  const std::size_t piece = 1 + data[0] % 64;
  EchoHandler echo;
  WEIR_ASSERT(run(echo, bytes, bytes.size() + 1, false) == run(echo, bytes, piece, false));
  WildHandler wild;
  wild.overlap = data[1] % 2 == 1;
  (void)run(wild, bytes, piece, data[1] % 4 >= 2);
  return 0;
}
