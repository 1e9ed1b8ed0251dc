// The admin API over HTTP/1.1, one request at a time. In: bytes. Out: replies, queries for the pipeline where a call
// needs a bucket, and event streams. router.cc lists the calls.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "weir/admin/admin_shared.h"
#include "weir/admin/router.h"
#include "weir/admin/work.h"
#include "weir/protocol/session.h"
#include "weir/wire/http1_reader.h"

namespace weir {

class AdminSession final : public Session {
 public:
  // `shared` must outlive the session. `peer` is the caller's address; empty for a UNIX socket.
  AdminSession(admin::AdminShared& shared, std::string_view peer)
      : shared_(shared), reader_(shared.head), peer_(peer) {}

  void at(Now now) noexcept override { now_ = now.time; }
  Result<std::size_t> receive(std::string_view bytes, Queries& queries, std::string& out) override;
  void reply(std::uint64_t sequence, const Result<Answer>& answer, std::string& out) override;
  bool finished() const noexcept override { return closing_ && work_ == nullptr && stream_ == nullptr; }
  Time deadline() const noexcept override;
  void expire(Time now, std::string& out) override;
  Time wake_at() const noexcept override;
  void wake(Time now, Queries& queries, std::string& out) override;
  bool working() const noexcept override { return work_ != nullptr; }
  void hang_up(std::string& out) override;
  void drain(std::string& out) override;

 private:
  // What the reply needs of its request: the head is gone when the work is done.
  struct PendingReply {
    bool http11 = true;
    bool keep_alive = true;
    bool head_only = false;
  };

  void handle(Queries& queries, std::string& out);
  std::optional<admin::Reply> refuse_head(const admin::RouteMatch& found) const;
  admin::Outcome call(const admin::RouteMatch& found);
  void begin(std::unique_ptr<admin::Work> work, Queries& queries, std::string& out);
  void begin(const admin::Stream& stream, std::string& out);
  void advance(Queries* queries, std::string& out);
  void send_events(std::string& out);
  void write(const admin::Reply& reply, std::string& out);

  admin::AdminShared& shared_;
  RequestReader reader_;
  std::string peer_;
  PendingReply pending_;
  std::unique_ptr<admin::Work> work_;
  std::size_t missing_ = 0;           // answers that the work still needs
  std::uint64_t first_sequence_ = 0;  // of its queries
  std::uint64_t next_sequence_ = 0;
  std::shared_ptr<EventQueue> stream_;
  Time now_ = Time::max();    // at() was not called yet
  Time since_ = Time::max();  // when the incomplete request started
  Time next_wake_ = Time{};   // of the work or the stream
  Time last_sent_ = Time{};   // on the stream
  bool closing_ = false;      // no more input is read
};

}  // namespace weir
