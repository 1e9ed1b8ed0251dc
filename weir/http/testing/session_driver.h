// The connection's side of a session, for tests: feeds it bytes, asks its queries, settles it at the end of each turn,
// and keeps what it writes. Nothing here knows the HTTP version.
//
//   SessionDriver driver([&](const NewConnection& c) { return std::make_unique<Http2Session>(shared, handler, c); });
//   driver.send(bytes);       // one read; then the turn ends
//   driver.take();            // what was written since
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/base/bounds.h"
#include "weir/core/answer.h"
#include "weir/protocol/session.h"

namespace weir::http {

class SessionDriver {
 public:
  using Answers = std::function<Result<Answer>(const Asked&)>;

  explicit SessionDriver(const Sessions& open, std::string_view peer = "192.0.2.1", bool tls = false)
      : session(open({output_, peer, {}, {}, tls})) {}

  // One read. The bytes are in a block of their own, so that the sanitizer sees a view that is kept for too long.
  void send(std::string_view bytes) {
    pending_ += bytes;
    if (session->reading()) pass_on();
    settle();
  }

  // The end of a turn.
  void settle() {
    for (int pass = 0; pass < 100; ++pass) {
      bool moved = output_.clear_touched();
      while (session->has_more() && !stalled_asking) {
        Queries queries;
        session->resume(queries, now);
        if (queries.all().empty()) break;
        ask(queries);
        moved = true;
      }
      if (output_.wants_fill && output_.unsent() < bounds::http_window_bytes) {
        session->fill(output_.unsent());
        moved = true;
      }
      if (!stalled && output_.leave()) moved = true;
      if (!pending_.empty() && session->reading() && !lost) moved = pass_on() || moved;
      if (!moved) return;
    }
  }

  // Delivers the answers that were kept back.
  void answer_owed() {
    for (const auto& [token, reply] : std::exchange(owed, {})) session->reply(token, reply);
    settle();
  }

  void advance(Duration by) {
    now.time += by;
    if (now.time >= session->deadline()) session->expire(now.time);
    settle();
  }

  // Ends the connection as a broken one does.
  void cut() {
    session->lost();
    lost = true;
  }

  std::string take() { return std::exchange(output_.left, {}); }
  std::size_t unsent() const { return output_.unsent(); }

  Now now{Time{} + std::chrono::hours{1}, Wall{}};
  Answers answer;             // empty: a timeout
  bool answers_later = true;  // with answer_owed(); otherwise at once
  std::vector<std::pair<std::uint64_t, Result<Answer>>> owed;
  std::size_t asked = 0;
  bool stalled = false;         // the kernel takes nothing
  bool stalled_asking = false;  // the store takes nothing
  bool lost = false;            // receive() returned an error, or cut()
  std::string error;

 private:
  class DriverOutput final : public Output {
   public:
    DriverOutput() : Output(text_) {}
    bool clear_touched() noexcept { return std::exchange(touched_, false); }
    bool leave() {
      const bool moved = !text_.empty();
      left += std::exchange(text_, {});
      return moved;
    }
    std::string left;

   private:
    void wake() override {}
    std::string text_;
  };

  bool pass_on() {
    const std::unique_ptr<char[]> block(new char[pending_.size()]);
    if (!pending_.empty()) std::memcpy(block.get(), pending_.data(), pending_.size());
    Queries queries;
    const Result<std::size_t> used = session->receive({block.get(), pending_.size()}, queries, now);
    ask(queries);
    if (!used) {
      lost = true;
      error = used.error().detail;
      pending_.clear();
      output_.leave();
      return false;
    }
    EXPECT_LE(*used, pending_.size());
    pending_.erase(0, *used);
    return *used > 0;
  }

  void ask(const Queries& queries) {
    EXPECT_LE(queries.all().size(), bounds::queries_per_turn_max);
    for (const Asked& one : queries.all()) {
      ++asked;
      const Result<Answer> reply =
          answer ? answer(one) : Error{Fault::timeout, ""};  // now: its views end with the turn
      if (answers_later) {
        owed.emplace_back(one.token, reply);
      } else {
        session->reply(one.token, reply);
      }
    }
  }

  DriverOutput output_;
  std::string pending_;

 public:
  const std::unique_ptr<Session> session;  // destroyed before what it writes to
};

}  // namespace weir::http
