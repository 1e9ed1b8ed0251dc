// What a receiver may do in its callbacks: everything, in each of them. The sanitizers look for what dies too early.
#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/base/bounds.h"
#include "weir/http/testing/http1_peer.h"

namespace weir::http::http1_callbacks_test {
namespace {

using namespace std::chrono_literals;

enum class Event { begin, body, answered, can_ask, expired, drained, draining, ended };
enum class Deed { nothing, abort, respond, stream_much, ask_all, attach, discard, consume, expire_now, upgrade };
constexpr int kEvents = 8;
constexpr int kDeeds = 10;

// Does one deed in one kind of event, on the exchange of the event or on another one.
class Doer final : public Handler {
 public:
  Doer(Event event, Deed deed, bool to_another) : event_(event), deed_(deed), to_another_(to_another) {}

  void begin(Exchange& exchange, const RequestHead& head, BodyPart first) override {
    open_[&exchange] = {first.bytes.size(), false, first.last && !head.upgrade.empty()};
    (void)exchange.ask();
    exchange.expire_at(Time{5s});
    if (head.path == "/stream") respond(exchange, "some", false);
    on(Event::begin, exchange);
  }
  void body(Exchange& exchange, BodyPart part) override {
    open_[&exchange].delivered += part.bytes.size();
    on(Event::body, exchange);
  }
  void answered(Exchange& exchange, std::uint32_t, const Result<Answer>&) override { on(Event::answered, exchange); }
  void can_ask(Exchange& exchange) override {
    (void)exchange.ask();
    on(Event::can_ask, exchange);
  }
  void expired(Exchange& exchange) override { on(Event::expired, exchange); }
  void drained(Exchange& exchange, std::size_t) override { on(Event::drained, exchange); }
  void draining(Exchange& exchange) override { on(Event::draining, exchange); }
  void ended(Exchange& exchange, Ending) override {
    on(Event::ended, exchange);
    open_.erase(&exchange);
    ++endings;
  }
  bool overlaps() const noexcept override { return true; }

  // Ends what is still open, as a handler would.
  void finish() {
    for (const auto& [exchange, state] : std::exchange(open_, {})) {
      if (!state.responded) exchange->respond({200, {}, {}, {}}, {"late", true});
      exchange->write({{}, true});
    }
  }

  int deeds = 0;
  int endings = 0;

 private:
  struct OpenState {
    std::size_t delivered = 0;
    bool responded = false;
    bool upgradable = false;
  };

  // Forwards everything to the handler.
  class Relay final : public Receiver {
   public:
    explicit Relay(Doer& doer) : doer_(doer) {}
    void body(Exchange& exchange, BodyPart part) override { doer_.body(exchange, part); }
    void answered(Exchange& exchange, std::uint32_t question, const Result<Answer>& answer) override {
      doer_.answered(exchange, question, answer);
    }
    void can_ask(Exchange& exchange) override { doer_.can_ask(exchange); }
    void expired(Exchange& exchange) override { doer_.expired(exchange); }
    void drained(Exchange& exchange, std::size_t bytes) override { doer_.drained(exchange, bytes); }
    void draining(Exchange& exchange) override { doer_.draining(exchange); }
    void ended(Exchange& exchange, Ending ending) override { doer_.ended(exchange, ending); }

   private:
    Doer& doer_;
  };

  void respond(Exchange& exchange, std::string_view content, bool last) {
    OpenState& state = open_[&exchange];
    if (std::exchange(state.responded, true)) {
      exchange.write({content, last});
    } else {
      exchange.respond({200, {}, {}, {}}, {content, last});
    }
  }

  void on(Event event, Exchange& exchange) {
    // A few times: writing in drained() would never end.
    if (event != event_ || deed_ == Deed::nothing || deeds == 3) return;
    Exchange* target = &exchange;
    if (to_another_) {
      for (const auto& [other, state] : open_) {
        if (other != &exchange) target = other;
      }
    }
    ++deeds;
    act(*target);
  }

  void act(Exchange& exchange) {
    switch (deed_) {
      case Deed::nothing:
        return;
      case Deed::abort:
        exchange.abort();
        return exchange.abort();
      case Deed::respond:
        respond(exchange, "ok", true);
        return exchange.write({"more", true});
      case Deed::stream_much:
        return respond(exchange, std::string(10u << 20, 'x'), false);
      case Deed::ask_all:
        while (exchange.ask() != nullptr) {
        }
        return;
      case Deed::attach:
        exchange.attach(std::make_unique<Relay>(*this));
        return exchange.attach(std::make_unique<Relay>(*this));
      case Deed::discard:
        return exchange.discard();
      case Deed::consume:
        return exchange.consumed(std::exchange(open_[&exchange].delivered, 0));
      case Deed::expire_now:
        return exchange.expire_at(Time{});
      case Deed::upgrade:
        if (!open_[&exchange].upgradable || std::exchange(open_[&exchange].responded, true)) return;
        return exchange.upgrade({101, {}, {}, {}});
    }
  }

  Event event_;
  Deed deed_;
  bool to_another_;
  std::map<Exchange*, OpenState> open_;
};

// Requests that together cause every event.
void run(Doer& doer, bool ends_well) {
  Http1Peer peer(doer);
  const auto answer = [](const Asked&) -> Result<Answer> { return Answer{}; };
  const std::string get = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
  const std::string stream = "GET /stream HTTP/1.1\r\nHost: h\r\n\r\n";
  const std::string half = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n";
  peer.send(stream + get, answer);
  peer.send(get + half);
  for (std::size_t i = 0; i < peer.asked.size(); ++i) peer.reply(i, Answer{});
  peer.take();
  peer.session->expire(Time{5s});
  peer.turn(answer);
  peer.send("2\r\nde\r\n", answer);
  if (!ends_well) return peer.session->lost();
  peer.send("0\r\n\r\n" + get, answer);
  peer.session->drain(Time{6s});
  peer.turn(answer);
  doer.finish();
  peer.take();
  for (std::size_t i = 0; i < peer.asked.size(); ++i) peer.reply(i, Answer{});
  peer.take();
}

TEST(Http1Callbacks, MayDoAnythingInAnyOfThem) {
  int deeds = 0;
  for (int event = 0; event < kEvents; ++event) {
    for (int deed = 0; deed < kDeeds; ++deed) {
      for (const bool to_another : {false, true}) {
        for (const bool ends_well : {false, true}) {
          Doer doer(static_cast<Event>(event), static_cast<Deed>(deed), to_another);
          run(doer, ends_well);
          deeds += doer.deeds;
        }
      }
    }
  }
  EXPECT_GT(deeds, kEvents * kDeeds) << "most of the events must have happened";
}

TEST(Http1Callbacks, MayUpgradeInTheFirstOfThem) {
  Doer doer(Event::begin, Deed::upgrade, false);
  Http1Peer peer(doer);
  EXPECT_TRUE(peer.send("GET / HTTP/1.1\r\nHost: h\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\nraw")
                  .starts_with("HTTP/1.1 101 "));
  peer.session->lost();
  EXPECT_EQ(doer.endings, 1);
}

}  // namespace
}  // namespace weir::http::http1_callbacks_test
