// A connection of a ClientPool: a transport and, once it is open, the client of the HTTP version that was agreed on.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "weir/base/result.h"
#include "weir/base/time.h"
#include "weir/http/http_client.h"
#include "weir/net/loop.h"
#include "weir/net/transport.h"
#include "weir/protocol/session.h"

namespace weir::http {

class ClientConnection final : public Retired, private Transport::Owner, private Settler {
 public:
  // Called by the loop or from settle(), never inside a function of the connection.
  class Host {
   public:
    // The connection is open: calls can begin.
    virtual void opened(ClientConnection& connection) = 0;
    virtual void failed_to_open(ClientConnection& connection, const Error& why) = 0;
    // A call can begin that could not before, or the last call has ended.
    virtual void freed(ClientConnection& connection) = 0;
    // The server certainly did not process it; CallState::why says what happened. Makes no callback.
    virtual void give_back(CallState& call) = 0;
    // The last call: destroy it with Loop::retire().
    virtual void closed(ClientConnection& connection) = 0;

   protected:
    ~Host() = default;
  };

  ClientConnection(Loop& loop, std::shared_ptr<ClientShared> shared, Host& host, HttpVersion version,
                   Transport::Options options);
  ~ClientConnection() override;

  void connect(const Target& target) { transport_.connect(target); }
  bool is_open() const noexcept { return client_ != nullptr; }
  bool is_http2() const noexcept { return is_http2_; }
  bool can_begin() const noexcept { return client_ != nullptr && client_->can_begin(); }
  std::size_t calls() const noexcept { return client_ == nullptr ? 0 : client_->calls(); }
  // False if the server has sent bytes without a request, or has closed the connection.
  bool is_quiet() const noexcept;
  // REQUIRES: can_begin().
  void begin(CallState& call);
  // True until the first call.
  bool is_fresh() const noexcept { return fresh_; }

  // Closes it later in this turn; Host::closed() follows. REQUIRES: calls() is 0.
  void close();
  // When expire() is due. An idle connection ends `idle_time` after its last call, or earlier if the server says so.
  Time due(Duration idle_time) const noexcept;
  void expire(Time now, Duration idle_time);

  // For the pool.
  bool listed = false;  // among those that can begin a call

 private:
  class SocketOutput final : public Output {
   public:
    explicit SocketOutput(ClientConnection& connection) noexcept
        : Output(connection.transport_.out()), connection_(connection) {}
    std::size_t unsent() const noexcept override { return connection_.transport_.unsent(); }
    void settled() noexcept { touched_ = false; }

   private:
    void wake() override { connection_.loop_.settle_later(connection_); }
    ClientConnection& connection_;
  };

  void opened() override;
  std::size_t received(std::string_view bytes) override;
  void ended() override;
  void writable() override;
  void failed(const Error& why) override;
  void finished() override;
  void settle() override;
  void write();
  void give_back_unprocessed();
  void shut();
  Time now() const noexcept { return loop_.reading().time; }

  Loop& loop_;
  std::shared_ptr<ClientShared> shared_;  // a retired connection may outlive its pool
  Host& host_;
  HttpVersion version_;
  bool secure_;
  Transport transport_;
  SocketOutput out_;
  std::unique_ptr<HttpClient> client_;
  Time idle_since_{};
  bool is_http2_ = false;
  bool fresh_ = true;
  bool was_busy_ = false;
  bool half_closed_ = false;
  bool closing_ = false;    // close() was called before it was open
  bool finishing_ = false;  // the transport is
};

}  // namespace weir::http
