// The client and the connection of one HTTP/1 session, for tests: feeds bytes, answers questions, and collects what is
// written, in the order of calls that a connection makes.
#pragma once

#include <gtest/gtest.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/http/handler.h"
#include "weir/http/http1_session.h"
#include "weir/http/http_shared.h"
#include "weir/http/testing/fake_exchange.h"

namespace weir::http {

class Http1Peer {
  // Before `shared`, which other threads post to until it is destroyed.
  std::mutex posted_mutex_;
  std::condition_variable posted_some_;
  std::deque<std::function<void()>> posted_;

 public:
  using AnswerTo = std::function<Result<Answer>(const Asked&)>;

  explicit Http1Peer(Handler& handler, std::string_view peer = {}, bool tls = false)
      : shared([this](std::function<void()> work) { post(std::move(work)); }, [this] { return now; }),
        session(std::make_unique<Http1Session>(shared, handler, NewConnection{output, peer, {}, {}, tls})) {}

  // Sends bytes and returns what is written. With `answer`, every question is answered at once; without it, the
  // questions collect in `asked`.
  std::string send(std::string_view bytes, const AnswerTo& answer = {}) {
    pending += bytes;
    pump(answer);
    return take();
  }
  // Continues without new bytes: what a connection does when the output was touched.
  std::string turn(const AnswerTo& answer = {}) { return send({}, answer); }

  // Answers the question with that index in `asked`.
  void reply(std::size_t index, const Result<Answer>& answer) { session->reply(asked.at(index), answer); }

  // Takes what was written; with it, the session learns that it was sent.
  std::string take() {
    std::string text = std::exchange(output.bytes, {});
    for (int i = 0; i < 1000 && !stalled && output.wants_fill; ++i) {
      session->fill(0);
      if (output.bytes.empty()) break;
      text += std::exchange(output.bytes, {});
    }
    return text;
  }

  // Runs what ExchangeRef::run() posted so far, on any thread.
  void run_posted() {
    std::deque<std::function<void()>> work;
    {
      const std::lock_guard lock(posted_mutex_);
      work.swap(posted_);
    }
    for (auto& run : work) run();
  }
  // Waits until something was posted.
  void wait_for_posted() {
    std::unique_lock lock(posted_mutex_);
    posted_some_.wait(lock, [this] { return !posted_.empty(); });
  }

  Now now{};
  HttpShared shared;
  FakeOutput output;
  std::unique_ptr<Http1Session> session;
  std::string pending;               // sent and not consumed
  std::vector<std::uint64_t> asked;  // tokens
  bool lost = false;                 // receive() returned an Error
  bool stalled = false;              // take() reports nothing as sent
  // Answers every question with Http1Session::reply(), if it is set.
  std::function<void(const Asked&)> on_asked;

 private:
  void post(std::function<void()> work) {
    const std::lock_guard lock(posted_mutex_);
    posted_.push_back(std::move(work));
    posted_some_.notify_one();
  }

  void pump(const AnswerTo& answer) {
    for (bool progress = true; progress && !lost && !session->finished();) {
      progress = false;
      if (session->has_more()) {
        Queries queries;
        session->resume(queries, now);
        progress = collect(queries, answer);
      }
      if (pending.empty() || !session->reading()) continue;
      // A block of exactly this size, so that the sanitizer sees a read past its end and a view kept for too long.
      const std::unique_ptr<char[]> block(new char[pending.size()]);
      pending.copy(block.get(), pending.size());
      Queries queries;
      const auto taken = session->receive({block.get(), pending.size()}, queries, now);
      const bool any = collect(queries, answer);
      lost = !taken;
      if (lost) return;
      EXPECT_LE(*taken, pending.size());
      pending.erase(0, *taken);
      progress = progress || any || *taken > 0 || session->has_more();
    }
  }

  bool collect(const Queries& queries, const AnswerTo& answer) {
    EXPECT_LE(queries.all().size(), bounds::queries_per_turn_max);
    for (const Asked& question : queries.all()) {
      asked.push_back(question.token);
      if (answer) session->reply(question.token, answer(question));
      if (on_asked) on_asked(question);
    }
    return !queries.all().empty();
  }
};

}  // namespace weir::http
