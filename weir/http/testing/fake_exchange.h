// An exchange without a session, to test a handler: calls it and records what it does.
//
//   FakeExchange exchange(handler, "POST /v1/check HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n");
//   exchange.begin("{}", true);            // or begin(), then body("{", false), body("}", true)
//   exchange.asked();                      // the queries; answer(0, allowed) delivers an answer
//   exchange.status, .fields, .content     // what was responded
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/http/exchange_table.h"
#include "weir/http/handler.h"
#include "weir/http/http_shared.h"
#include "weir/wire/http1.h"

namespace weir::http {

class FakeOutput final : public Output {
 public:
  FakeOutput() : Output(text_) {}
  bool was_touched() noexcept { return std::exchange(touched_, false); }

 private:
  void wake() override {}
  std::string text_;
};

class FakeExchange {
 public:
  // What the handler did.
  struct Record final : Exchange {
    static constexpr ExchangeKind kKind = ExchangeKind::fake;

    struct Interim {
      int status;
      std::string fields;
    };
    int status = 0;  // 0: has not responded
    std::string content_type;
    std::string fields;  // as lines
    std::string content;
    std::vector<std::pair<std::string, std::string>> trailers;
    std::vector<Interim> interim;
    std::size_t room_left = bounds::http_window_bytes;
    std::size_t returned = 0;  // by consumed()
    std::size_t delivered = 0;
    int proceeded = 0;
    bool complete = false;
    bool discarded = false;
    bool aborted = false;
    bool upgraded = false;

    void proceed() override { ++proceeded; }
    void consumed(std::size_t bytes) override {
      returned += bytes;
      EXPECT_LE(returned, delivered) << "consumed() beyond what was delivered";
    }
    void discard() override { discarded = true; }
    void inform(int code, const HttpFields& more) override {
      EXPECT_EQ(status, 0) << "inform() after respond()";
      interim.push_back({code, lines(more)});
    }
    void respond(const Response& head, BodyPart first) override {
      if (aborted) return;
      EXPECT_EQ(status, 0) << "respond() twice";
      status = head.status;
      content_type = head.content_type;
      fields = lines(head.fields);
      add(first);
    }
    void write(BodyPart part) override {
      if (aborted || complete) return;
      EXPECT_NE(status, 0) << "write() before respond()";
      add(part);
    }
    std::size_t room() const noexcept override { return room_left; }
    void upgrade(const Response& head) override {
      upgraded = true;
      status = 101;
      fields = lines(head.fields);
    }
    void abort() override { aborted = true; }

   private:
    friend class FakeExchange;
    static std::string lines(const HttpFields& from) {
      std::string text(from.lines);
      for (const HttpHeader& header : from.list) write_field(header.name, header.value, text);
      return text;
    }
    void add(BodyPart part) {
      content += part.bytes;
      room_left -= std::min(room_left, part.bytes.size());
      for (const HttpHeader& field : part.trailers) trailers.emplace_back(field.name, field.value);
      complete = part.last;
    }
  };

  // `head` is a request head of HTTP/1.1 with its blank line.
  FakeExchange(Handler& handler, std::string head, std::string_view peer = "192.0.2.1", Now now = {})
      : handler_(handler),
        head_text_(std::move(head)),
        shared_([this](std::function<void()> work) { posted_.push_back(std::move(work)); }),
        host_(shared_, handler, output_, peer, false) {
    host_.now = now;
    record_ = shared_.exchanges->take<Record>(host_);
  }
  ~FakeExchange() { end(Ending::lost); }

  // --- The session's side ---

  void begin(std::string_view body = {}, bool last = true) {
    during([&] {
      const HeadResult parsed = parse_request_head(head_text_, shared_.head);
      ASSERT_EQ(parsed.size, head_text_.size()) << parsed.problem.sentence;
      record_->delivered += body.size();
      record_->deliver([&](Receiver&) { handler_.begin(*record_, shared_.head, {body, last}); });
    });
  }
  void body(std::string_view bytes, bool last = false) {
    during([&] {
      record_->delivered += bytes.size();
      record_->deliver([&](Receiver& receiver) { receiver.body(*record_, {bytes, last}); });
    });
  }
  void answer(std::uint32_t question, const Result<Answer>& answer) {
    record_->deliver([&](Receiver& receiver) { receiver.answered(*record_, question, answer); });
  }
  // Room to ask again, if the handler waits for it.
  void let_ask() {
    during([&] { host_.let_ask(); });
  }
  void drained(std::size_t bytes) {
    record_->room_left += bytes;
    record_->deliver([&](Receiver& receiver) { receiver.drained(*record_, bytes); });
  }
  void expire(Time now) {
    host_.now.time = now;
    record_->expire(now);
  }
  // The rest of the request cannot be read; without begin(), none of it. end() follows.
  void refuse(const HttpProblem& problem) {
    record_->deliver([&](Receiver& receiver) { receiver.refused(*record_, problem); });
  }
  void drain() {
    record_->deliver([&](Receiver& receiver) { receiver.draining(*record_); });
  }
  void end(Ending ending) {
    if (record_ == nullptr) return;
    record_->end(ending);
    shared_.exchanges->release(*std::exchange(record_, nullptr));
  }
  // Runs what ExchangeRef::run() posted.
  void run_posted() {
    for (std::deque<std::function<void()>> work; !posted_.empty();) {
      work.swap(posted_);
      for (auto& run : work) run();
      work.clear();
    }
  }

  // --- The observer's side ---

  Record& operator*() { return *record_; }
  Record* operator->() { return record_; }
  // The queries of the last callback of the session.
  std::span<const Asked> asked() const { return queries_.all(); }
  bool waits_to_ask() const { return host_.has_waiting(); }
  bool has_posted() const { return !posted_.empty(); }
  HttpShared& shared() { return shared_; }
  Exchange* find(std::uint64_t token) { return shared_.exchanges->find(token, host_); }
  // Fills the batch, so that ask() returns null.
  void leave_no_room() { full_ = true; }

 private:
  template <class Call>
  void during(Call call) {
    queries_.clear();
    while (full_ && !queries_.full()) queries_.add(~std::uint64_t{0});
    full_ = false;
    const ExchangeHost::Asking asking(host_, queries_, host_.now);
    call();
  }

  Handler& handler_;
  std::string head_text_;
  FakeOutput output_;
  std::deque<std::function<void()>> posted_;
  HttpShared shared_;
  ExchangeHost host_;
  Queries queries_;
  Record* record_ = nullptr;
  bool full_ = false;
};

}  // namespace weir::http
