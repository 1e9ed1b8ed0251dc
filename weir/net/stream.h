// An outgoing connection, for example to Redis: resolves the name, connects, does the TLS handshake if asked to, then
// carries bytes both ways. One Stream is one attempt and its connection; to retry, create another one.
//
// Thread safety: none; use it on the loop's thread, where it calls its owner.
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
  // Receives the events of a stream. Called from the loop only, never from inside connect(), write() or close(). Each
  // of these calls may destroy the stream.
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual void connected() = 0;
    // `bytes` is valid during the call.
    virtual void received(std::string_view bytes) = 0;
    // The last call: opening failed, the peer closed the connection, or it broke. The fault is `timeout` if opening
    // took too long, `unknown` if the name does not exist, `invalid` if a retry would fail the same way.
    virtual void closed(const Error& why) = 0;
  };

  struct Options {
    // Limit for name lookup, connecting and the TLS handshake together.
    Duration connect_timeout = std::chrono::seconds{5};
    // Limit on bytes that wait to be written.
    std::size_t unsent_bytes_max = bounds::stream_unsent_bytes_max;
    // Required to connect to a host name. Must outlive the stream.
    Resolver* resolver = nullptr;
    // Null means no TLS.
    std::shared_ptr<const TlsClient> tls = nullptr;
    // The name that the peer's certificate must match. Empty means the host of the target.
    std::string server_name = {};
  };

  // Loop and owner must outlive the stream.
  Stream(Loop& loop, Owner& owner, Options options);
  // Closes without calling the owner.
  ~Stream() override;

  // Call it once. Every failure is reported through closed().
  void connect(Target target);

  // Sends as much as the kernel accepts and queues the rest in order; before connected() it queues everything. Returns
  // false, and takes none of `bytes`, if the queue would exceed its limit or the stream is closed.
  bool write(std::string_view bytes);
  std::size_t unsent_bytes() const noexcept { return out_.size() - sent_ + early_.size(); }

  bool is_connected() const noexcept { return state_ == State::connected; }
  // Sends as much of the queue as the kernel accepts now, then closes. Does not call the owner.
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
  void decrypt(std::string_view bytes);
  bool put(std::string_view bytes);
  std::size_t send_now(std::string_view bytes) noexcept;
  void flush();
  void watch();
  void set_timer(Time when, void (Stream::*run)());
  void connect_timed_out();
  void handshake_timed_out();
  void fail();
  void release() noexcept;
  template <class Call>
  bool call_owner(Call call);

  Loop& loop_;
  Owner& owner_;
  Options options_;
  Target target_;
  State state_ = State::idle;
  std::unique_ptr<Resolver::Lookup> lookup_;
  std::vector<Address> addresses_;
  std::size_t next_address_ = 0;
  Time deadline_{};
  Loop::TimerId timer_ = 0;         // the deadline of this attempt, or a failure to report
  Error why_{Fault::internal, {}};  // why opening failed, or why the previous address did
  Socket socket_;
  std::uint32_t watching_ = 0;
  std::unique_ptr<TlsChannel> channel_;
  std::string early_;  // written before the stream was connected
  std::string out_;    // bytes for the peer; those before sent_ are already sent
  std::size_t sent_ = 0;
  bool* destroyed_ = nullptr;  // set by the destructor during a call of the owner
};

}  // namespace weir
