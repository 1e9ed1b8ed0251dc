// For tests: an owner that records the events of a transport, and the other end of its connection.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "weir/net/loop_thread_test.h"
#include "weir/net/transport.h"

namespace weir {

// Records the events, so that another thread can wait for them: "<opened>", "<ended>", and so on; bytes as they are.
class RecordingOwner final : public Transport::Owner {
 public:
  void opened() override { add("<opened>"); }
  std::size_t received(std::string_view bytes) override {
    const std::size_t used = std::min(bytes.size(), takes_);
    add(bytes.substr(0, used), "<received>");
    return used;
  }
  void ended() override { add("<ended>"); }
  void writable() override { add("<writable>"); }
  void failed(const Error& why) override {
    {
      const std::lock_guard lock(mutex_);
      why_ = why;
    }
    add("<failed>");
  }
  void finished() override { add("<finished>"); }

  // Runs `then` on the loop inside the callback of that name.
  void on(const std::string& event, std::function<void()> then) { then_[event] = std::move(then); }
  // How many bytes each received() consumes at most.
  void take_only(std::size_t bytes) { takes_ = bytes; }

  bool wait_for(std::string_view all) {
    std::unique_lock lock(mutex_);
    const bool came = changed_.wait_for(lock, std::chrono::seconds{30}, [&] { return events_ == all; });
    EXPECT_EQ(events_, all);
    return came;
  }
  // Waits until that many bytes and events are recorded.
  bool wait_for_size(std::size_t size) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds{30}, [&] { return events_.size() >= size; });
  }
  bool wait_for_last(std::string_view event) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds{30}, [&] { return events_.ends_with(event); });
  }
  Error wait_for_failure() {
    EXPECT_TRUE(wait_for_last("<failed>"));
    const std::lock_guard lock(mutex_);
    return why_;
  }
  std::string events() {
    const std::lock_guard lock(mutex_);
    return events_;
  }

 private:
  void add(std::string_view text, const std::string& event = {}) {
    {
      const std::lock_guard lock(mutex_);
      events_ += text;
    }
    if (const auto then = then_.find(event.empty() ? std::string(text) : event); then != then_.end()) then->second();
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::string events_;
  std::size_t takes_ = SIZE_MAX;
  Error why_{Fault::internal, {}};
  std::map<std::string, std::function<void()>> then_;
};

// Sends all of `bytes`. Blocks.
inline bool say(const Socket& peer, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(peer.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

// Reads `size` bytes, or fewer if the connection ends. Blocks.
inline std::string take(const Socket& peer, std::size_t size) {
  std::string bytes(size, '\0');
  const ssize_t got = recv(peer.fd(), bytes.data(), size, MSG_WAITALL);
  bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return bytes;
}

// A transport on its own loop.
class TransportFixture : public testing::Test {
 protected:
  ~TransportFixture() override {
    thread_.run([&] { transport_.reset(); });
  }

  // Accepts one end of a socket pair. Returns the other.
  Socket accept(Transport::Options options = {}, std::unique_ptr<TlsChannel> channel = nullptr) {
    std::array<int, 2> ends{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    EXPECT_EQ(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
    thread_.run([&] {
      transport_ =
          std::make_unique<Transport>(thread_.loop(), owner_, Socket(ends[0]), std::move(channel), std::move(options));
      transport_->start();
    });
    return Socket(ends[1]);
  }
  // Connects to `target`.
  void connect(const Target& target, Transport::Options options = {}) {
    thread_.run([&] {
      transport_ = std::make_unique<Transport>(thread_.loop(), owner_, std::move(options));
      transport_->connect(target);
    });
  }
  Target here() const { return {"127.0.0.1", bound_address(listener_)->port, {}}; }
  // Accepts the connection of an outgoing transport. Blocks.
  Socket take_connection() const {
    const int flags = fcntl(listener_.fd(), F_GETFL);
    fcntl(listener_.fd(), F_SETFL, flags & ~O_NONBLOCK);
    return Socket(::accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC));
  }

  void write(std::string_view bytes) {
    thread_.run([&] {
      transport_->out() += bytes;
      transport_->flush();
    });
  }
  template <class Call>
  auto on_loop(Call call) {
    return thread_.run([&] { return call(*transport_); });
  }
  // Destroys the transport inside one of its callbacks.
  void retire() {
    transport_->close();
    thread_.loop().retire(std::move(transport_));
  }
  // Runs two whole turns of the loop.
  void pass_turns() {
    thread_.run([] {});
    thread_.run([] {});
  }

  Socket listener_ = std::move(*listen_on({"127.0.0.1", 0, {}}));
  RecordingOwner owner_;
  LoopThread thread_;
  std::unique_ptr<Transport> transport_;
};

}  // namespace weir
