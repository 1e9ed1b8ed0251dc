// A connection that we open: to Redis, to a service, to an upstream. Finds the address, connects, perhaps speaks TLS,
// then carries bytes both ways. One Stream is one attempt and its connection: to try again, make another.
//
// Thread safety: none; all of it belongs to the loop's thread, and its owner is called there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/bounds.h"
#include "weir/base/result.h"
#include "weir/base/time.h"
#include "weir/net/loop.h"
#include "weir/net/resolve.h"
#include "weir/net/socket.h"
#include "weir/net/tls.h"

namespace weir {

class Stream final : private Loop::Handler {
 public:
  // Whoever opened it. Never called from inside connect(), write() or close(), always from the loop. Any of these calls
  // may destroy the stream.
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual void connected() = 0;
    // Valid until it returns.
    virtual void received(std::string_view bytes) = 0;
    // The last call: it could not be opened, the peer hung up, or the connection broke. `timeout` if opening it took
    // too long, `unknown` if there is no such name, `invalid` if it would fail the same way again.
    virtual void closed(const Error& why) = 0;
  };

  struct Options {
    // For looking up the name, connecting and the handshake, all together.
    Duration connect_timeout = std::chrono::seconds{5};
    // What may wait to be written.
    std::size_t unsent_bytes_max = bounds::stream_unsent_bytes_max;
    // Needed for names only; must outlive the stream.
    Resolver* resolver = nullptr;
    // Null: in the clear.
    std::shared_ptr<const TlsClient> tls = nullptr;
    // The name that the peer's certificate must have; empty: the host of the target.
    std::string server_name = {};
  };

  // Loop and owner must outlive the stream.
  Stream(Loop& loop, Owner& owner, Options options);
  // Closes. The owner hears nothing of it.
  ~Stream() override;

  // Once. Every failure comes as closed().
  void connect(Target target);

  // Writes what the kernel takes at once and keeps the rest in order; before connected() it keeps everything. False: it
  // would keep more than it may, or the stream is closed; then nothing of `bytes` was taken.
  bool write(std::string_view bytes);
  std::size_t unsent_bytes() const noexcept { return out_.size() - sent_ + early_.size(); }

  bool is_connected() const noexcept { return state_ == State::connected; }
  // Sends what still waits as far as the kernel takes it now, and closes. The owner hears nothing more.
  void close();

 private:
  enum class State : unsigned char { idle, resolving, connecting, handshaking, connected, closed };

  void ready(std::uint32_t events) override;
  void resolved(const Result<std::vector<Address>>& addresses);
  void try_next();
  void give_up_attempt(Error why);
  void attempt_ended();
  void begin_handshake();
  bool finish_opening();
  void read();
  void unseal(std::string_view bytes);
  bool put(std::string_view bytes);
  std::size_t send_now(std::string_view bytes) noexcept;
  void flush();
  void watch();
  void set_timer(Time when, void (Stream::*run)());
  void run_out_of_time();
  void run_out_of_handshake();
  void fail();
  void release() noexcept;
  template <class Call>
  bool goes_on_after(Call call);

  Loop& loop_;
  Owner& owner_;
  Options options_;
  Target target_;
  State state_ = State::idle;
  std::unique_ptr<Resolver::Lookup> lookup_;
  std::vector<Address> addresses_;
  std::size_t next_address_ = 0;
  Time deadline_{};
  Loop::TimerId timer_ = 0;         // the deadline of this attempt, or the failure that is to be told
  Error why_{Fault::internal, {}};  // it failed, or the address before this one did
  Socket socket_;
  std::uint32_t watching_ = 0;
  std::unique_ptr<TlsChannel> channel_;
  std::string early_;  // what was written before the stream was open
  std::string out_;    // as it goes to the peer, not yet written from sent_ on
  std::size_t sent_ = 0;
  bool* destroyed_ = nullptr;  // told to a call of the owner that is under way
};

}  // namespace weir
