// For tests: servers on the loop of the pool under test, which count connections and requests and answer by script.
#pragma once

#include <sys/epoll.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "weir/base/assert.h"
#include "weir/base/clock.h"
#include "weir/net/loop.h"
#include "weir/net/socket.h"
#include "weir/net/tls.h"
#include "weir/net/transport.h"
#include "weir/wire/http2.h"

namespace weir::http {

// A loop on its own thread, with a clock that advances only when told to.
class ManualLoop {
 public:
  ~ManualLoop() {
    loop_->stop();
    thread_.join();
  }
  Loop& loop() noexcept { return *loop_; }
  template <class Work>
  decltype(auto) run(Work work) {
    std::packaged_task<std::invoke_result_t<Work>()> task(std::move(work));
    auto done = task.get_future();
    loop_->post([&task] { task(); });
    return done.get();
  }
  // Waits until `condition` holds on the loop's thread.
  template <class Condition>
  bool until(Condition condition) {
    for (int i = 0; i < 200'000; ++i) {
      if (run(condition)) return true;
      std::this_thread::yield();
    }
    return false;
  }
  void advance(Duration by) {
    clock_.advance(by);
    run([] {});  // timers run before posted work
  }

 private:
  ManualClock clock_{Time{std::chrono::seconds{1000}}};
  std::unique_ptr<Loop> loop_ = std::move(*Loop::make(clock_));
  std::thread thread_{[this] { loop_->run(); }};
};

class TestBackend final : private Loop::Handler {
 public:
  class Peer;
  // Called with each request of HTTP/1 (with as much of its body as Content-Length says), counted from 0.
  using Script = std::function<void(Peer&, std::size_t number, const std::string& request)>;

  // Create and destroy it on the loop's thread.
  TestBackend(Loop& loop, const std::string& address = "127.0.0.1:0") : loop_(loop) {
    Result<Socket> socket = listen_on(*Address::parse(address));
    WEIR_ASSERT(socket.has_value());
    listener_ = std::move(*socket);
    WEIR_ASSERT(loop_.watch(listener_.fd(), EPOLLIN, *this));
  }
  ~TestBackend() override { loop_.forget(listener_.fd(), *this); }

  Target target() const { return *Target::parse(bound_address(listener_)->print()); }

  class Peer final : private Transport::Owner, public Http2::Source {
   public:
    Peer(TestBackend& backend, Socket socket)
        : backend_(backend),
          number(backend.accepted++),
          transport(backend.loop_, *this, std::move(socket), backend.tls ? backend.tls->accept() : nullptr,
                    Transport::Options{}) {
      transport.start();
    }
    void send(std::string_view bytes) {
      transport.out() += bytes;
      transport.flush();
    }
    void ok(std::string_view content = "ok", std::string_view fields = "") {
      send("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(content.size()) + "\r\n" + std::string(fields) +
           "\r\n" + std::string(content));
    }
    // HTTP/2.
    void respond(std::int32_t stream) { http2->respond(stream, 200, {"content-length: 0\r\n", {}}, false); }
    void fill() {
      std::vector<Http2Event> events;
      http2->fill(transport.out(), 1 << 20, events);
      transport.flush();
    }

   private:
    TestBackend& backend_;

   public:
    const std::size_t number;  // of the connection
    std::size_t requests = 0;  // on it
    bool ended_by_client = false;
    std::unique_ptr<Http2> http2;
    Transport transport;

   private:
    void opened() override {
      if (!backend_.speaks_http2 && transport.application_protocol() != "h2") return;
      http2 = std::make_unique<Http2>(Http2::Role::server, backend_.shared, *this);
      fill();
    }
    std::size_t received(std::string_view bytes) override {
      if (http2 == nullptr) return received_http1(bytes);
      for (std::string_view rest = bytes; !rest.empty();) {
        const std::string_view part = rest.substr(0, bounds::http2_receive_bytes_max);
        rest.remove_prefix(part.size());
        std::vector<Http2Event> events;
        if (!http2->receive(part, {}, events)) return bytes.size();
        for (const Http2Event& event : events) {
          if (event.kind == Http2Event::Kind::data) http2->consumed(event.stream, event.bytes.size());
          if (event.kind != Http2Event::Kind::end) continue;
          ++requests;
          backend_.script2(*this, backend_.requests++, event.stream);
        }
      }
      fill();
      return bytes.size();
    }
    std::size_t received_http1(std::string_view bytes) {
      if (!backend_.reads) return 0;
      const std::size_t end = bytes.find("\r\n\r\n");
      if (end == bytes.npos) return 0;
      const std::size_t at = bytes.find("Content-Length: ");
      const std::size_t length =
          at < end ? static_cast<std::size_t>(std::stoul(std::string(bytes.substr(at + 16)))) : 0;
      if (bytes.size() < end + 4 + length && !backend_.answers_early) return 0;
      ++requests;
      const std::string request(bytes.substr(0, end + 4 + length));
      backend_.script(*this, backend_.requests++, request);
      return request.size();
    }
    void ended() override {
      ended_by_client = true;
      transport.close();
    }
    void writable() override {}
    void failed(const Error&) override { ended_by_client = true; }
    Body waiting(std::int32_t) override { return {{}, true}; }
    void sent(std::int32_t, std::size_t) override {}
  };

  // How many connections the client has not closed.
  std::size_t open() const {
    return static_cast<std::size_t>(
        std::count_if(peers.begin(), peers.end(), [](const auto& peer) { return !peer->ended_by_client; }));
  }

  Script script = [](Peer& peer, std::size_t, const std::string&) { peer.ok(); };
  std::function<void(Peer&, std::size_t, std::int32_t stream)> script2 =
      [](Peer& peer, std::size_t, std::int32_t stream) { peer.respond(stream); };
  std::size_t accepted = 0;
  std::size_t requests = 0;
  bool speaks_http2 = false;
  bool reads = true;
  bool answers_early = false;  // calls the script with the head alone
  std::unique_ptr<TlsServer> tls;
  Http2Shared shared;
  std::vector<std::unique_ptr<Peer>> peers;

 private:
  void ready(std::uint32_t) override {
    for (;;) {
      Result<Accepted> next = accept_from(listener_);
      if (!next || !next->socket) return;
      peers.push_back(std::make_unique<Peer>(*this, std::move(next->socket)));
    }
  }

  Loop& loop_;
  Socket listener_;
};

}  // namespace weir::http
