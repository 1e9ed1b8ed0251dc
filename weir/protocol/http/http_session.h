// The decision API over HTTP/1.1: POST /v1/check /v1/throttle /v1/refund /v1/peek /v1/reset, any method on
// /v1/authorize, and the probes. In: bytes.
// Out: questions, and answers in the order of the requests, whatever order the verdicts come in. What cannot be
// understood gets an answer that says why; the connection closes only when the framing is lost.
//
// receive() also stops, with bytes left, while too much is unanswered: call it again after reply().
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weir/base/log.h"
#include "weir/core/answer.h"
#include "weir/protocol/http/fault_status.h"
#include "weir/protocol/http/http_tokens.h"
#include "weir/protocol/http/ratelimit_headers.h"
#include "weir/protocol/session.h"
#include "weir/wire/http1_reader.h"
#include "weir/wire/json.h"

namespace weir {

// What the probes tell. Written by the owner, read by every loop.
struct Health {
  std::atomic<bool> started{false};
  std::atomic<bool> ready{false};
  // Whether the store is up, if it is a process of its own: then /readyz?deep=true asks it too. Set before the loops
  // run.
  std::function<bool()> store_up;
};

// What the sessions of one loop share: a few kilobytes that would be idle in each of them. Must outlive them.
struct HttpShared {
  explicit HttpShared(const Health& health_given) : health(health_given) {}

  HttpTokens tokens;  // that callers must show; the owner replaces them between two calls
  std::string date;   // the Date field of answers; empty until a session was told the time
  const Health& health;
  Log* log = nullptr;  // gets bad requests, at debug

  // Keeps the date: written anew when the second is another.
  void at(Wall wall);

  // The sessions' workbench: nothing on it survives a call.
  RequestHead head;
  JsonReader json;
  std::string fields;
  std::string content;

 private:
  std::chrono::sys_seconds dated_{};
};

class HttpSession final : public Session {
 public:
  // `peer` is the address at the other end; empty: nobody knows.
  explicit HttpSession(HttpShared& shared, std::string_view peer = {})
      : shared_(shared), reader_(shared.head), peer_(peer) {}

  void at(Now now) override {
    now_ = now.time;
    shared_.at(now.wall);
  }
  Result<std::size_t> receive(std::string_view bytes, Queries& queries, std::string& out) override;
  void reply(std::uint64_t sequence, const Result<Answer>& answer, std::string& out) override;
  bool finished() const noexcept override { return closing_ && first_ == slots_.size(); }
  Time deadline() const noexcept override;
  void expire(Time now, std::string& out) override;
  void hang_up(std::string& out) override;
  void drain(std::string& out) override;

 private:
  struct Route;
  // The parts of an answer to an array of checks.
  struct Many {
    std::string content;                 // of the request, while not everything in it was asked
    std::vector<std::uint32_t> item_of;  // by question
    std::vector<std::string> answers;    // by item
    std::vector<Count> costs;            // by item; 0: not one for all
    std::size_t read = 0;                // items
    std::size_t held_back = 0;           // bytes of the request the connection still holds
    std::size_t missing = 0;             // answers
    bool failed = false;                 // one of them is an error
  };
  // One request, until its answer is written.
  struct Slot {
    const Route* route = nullptr;  // null: not one of ours
    bool http11 = true;
    bool keep_alive = true;
    bool head_only = false;
    bool explain = false;
    bool problem = false;  // wants a denial as application/problem+json
    bool interim = false;  // 100 Continue goes first
    bool done = false;
    std::int16_t denied = 429;  // the status of a denial
    std::uint32_t asked = 0;
    std::uint64_t sequence = 0;  // of its first question
    Count cost = 0;              // if there is one for all
    std::string text;            // the answer, while others are before it
    std::unique_ptr<Many> many;
  };
  enum class Waiting : unsigned char { nothing, head, content };

  static const Route* find_route(std::string_view path) noexcept;

  bool step(std::string_view bytes, std::size_t& used, Queries& queries, std::string& out);
  void handle(std::size_t& used, Queries& queries, std::string& out);
  bool refuse_head(Slot& slot, std::string& out);
  bool refuse_caller(Slot& slot, std::string& out);
  void probe(Slot& slot, Queries& queries, std::string& out);
  void answer_probe(Slot& slot, bool store_decides, std::string& out);
  void authorize(Slot& slot, Queries& queries, std::string& out);
  void ask_one(JsonValue value, Slot& slot, Queries& queries, std::string& out);
  void ask_many(JsonValue array, Slot& slot, std::size_t& used, Queries& queries, std::string& out);
  void ask_items(JsonValue array, Slot& slot, Queries& queries);
  bool resume_many(std::size_t& used, Queries& queries, std::string& out);
  std::optional<ApiError> decode(JsonValue value, const Slot& slot, Queries& queries, Query& query);
  void ask(Slot& slot, const Query& query, Queries& queries);

  void answer_one(Slot& slot, const Result<Answer>& answer, std::string& out);
  void answer_item(Slot& slot, std::size_t item, const Result<Answer>& answer);
  void finish_many(Slot& slot, std::string& out);
  std::optional<ApiError> error_in(const Slot& slot, Count cost, const Result<Answer>& answer) const;

  Slot& open_slot(const RequestHead* head);
  Slot* slot_of(std::uint64_t sequence) noexcept;
  void refuse(Slot& slot, const ApiError& error, std::string& out);
  void send(Slot& slot, int status, std::string_view content_type, std::string_view content, std::string& out);
  void fail(const HttpProblem& problem, std::string& out);
  void flush(std::string& out);
  bool has_more_to_ask() const noexcept;  // of an array that has been read
  bool owes_too_much() const noexcept;
  void wait_for(Waiting waiting, bool anew) noexcept;

  HttpShared& shared_;
  RequestReader reader_;
  std::string peer_;
  std::vector<Slot> slots_;  // from first_ on; a slot before it was answered
  std::size_t first_ = 0;
  std::uint64_t next_sequence_ = 0;
  std::uint64_t replied_ = 0;
  Time now_ = Time::max();  // never told
  Time since_{};            // the peer began what is waited for
  Waiting waiting_ = Waiting::nothing;
  bool continue_owed_ = false;
  bool draining_ = false;
  bool closing_ = false;  // nothing more is read
};

}  // namespace weir
