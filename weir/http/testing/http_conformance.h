// What a handler promises over both HTTP versions, as tests. A handler writes down one HttpConversation, without a
// version, and instantiates
//   INSTANTIATE_TEST_SUITE_P(Foo, HttpConformance, ::testing::ValuesIn(both_versions(foo_conversation())));
// in one source of its test program. The kit then cuts the bytes at every place, pipelines or interleaves the requests,
// cancels them, answers out of order and reads slowly, and holds both versions to the same responses.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/http/handler.h"
#include "weir/http/http1_session.h"
#include "weir/http/http2_session.h"
#include "weir/http/http_shared.h"
#include "weir/http/testing/http_script.h"
#include "weir/http/testing/session_driver.h"

namespace weir::http {

struct HttpStep {
  ScriptRequest request;
  int status = 200;
  std::string content = {};  // of the response; "*": any
};

struct HttpConversation {
  std::string name;  // letters and digits
  // Also keeps whatever the handler needs.
  std::function<std::shared_ptr<Handler>(HttpShared&)> handler;
  std::vector<HttpStep> steps;
  SessionDriver::Answers answer = {};  // to the handler's questions

  std::vector<ScriptRequest> requests() const {
    std::vector<ScriptRequest> out;
    for (const HttpStep& step : steps) out.push_back(step.request);
    return out;
  }
};

struct HttpCase {
  HttpConversation conversation;
  bool http2 = false;

  friend void PrintTo(const HttpCase& one, std::ostream* stream) {
    *stream << one.conversation.name << (one.http2 ? " over HTTP/2" : " over HTTP/1.1");
  }
};

inline std::vector<HttpCase> both_versions(const HttpConversation& conversation) {
  return {{conversation, false}, {conversation, true}};
}

// One connection and its client.
class HttpScripted {
 public:
  explicit HttpScripted(const HttpCase& one, std::unique_ptr<HttpScriptPeer> client = {})
      : handler_(one.conversation.handler(shared)),
        driver(
            [&](const NewConnection& connection) -> std::unique_ptr<Session> {
              if (one.http2) return std::make_unique<Http2Session>(shared, *handler_, connection);
              return std::make_unique<Http1Session>(shared, *handler_, connection);
            },
            "127.0.0.1"),
        peer(std::move(client)) {
    if (peer == nullptr) {
      if (one.http2) {
        peer = std::make_unique<Http2Frames>();
      } else {
        peer = std::make_unique<Http1Text>();
      }
    }
    driver.answer = one.conversation.answer;
    driver.answers_later = false;
  }

  // The client's answers (acknowledgments, windows) wait for finish(): `bytes` may end in the middle of a frame.
  void send(std::string_view bytes) {
    driver.send(bytes);
    read();
  }
  void read() { answers_ += peer->decode(driver.take()); }
  // Everything was sent: answers until there is nothing to answer.
  void finish() {
    read();
    while (!answers_.empty() && !driver.lost) send(std::exchange(answers_, {}));
  }
  const std::vector<ScriptResponse>& responses() const { return peer->responses(); }

  HttpShared shared;

 private:
  std::shared_ptr<Handler> handler_;
  std::string answers_;

 public:
  SessionDriver driver;
  std::unique_ptr<HttpScriptPeer> peer;
};

class HttpConformance : public ::testing::TestWithParam<HttpCase> {
 protected:
  static const HttpConversation& conversation() { return GetParam().conversation; }

  static void expect_all(HttpScripted& scripted, std::size_t times = 1) {
    scripted.finish();
    const std::vector<HttpStep>& steps = conversation().steps;
    ASSERT_EQ(scripted.responses().size(), steps.size() * times);
    for (std::size_t i = 0; i < scripted.responses().size(); ++i) expect_one(scripted, i);
    EXPECT_EQ(scripted.shared.exchanges->open_count(), 0u);
    EXPECT_FALSE(scripted.driver.lost) << scripted.driver.error;
  }
  static void expect_one(const HttpScripted& scripted, std::size_t i) {
    const HttpStep& step = conversation().steps[i % conversation().steps.size()];
    const ScriptResponse& response = scripted.responses()[i];
    EXPECT_TRUE(response.complete) << step.request.path << ": " << response;
    EXPECT_EQ(response.status, step.status) << step.request.path << ": " << response;
    EXPECT_TRUE(step.content == "*" || response.content == step.content) << step.request.path << ": " << response;
  }

  // Where to cut so many bytes: everywhere, or at some places and near both ends of what is long.
  static std::vector<std::size_t> cuts(std::size_t size) {
    std::vector<std::size_t> at;
    const std::size_t step = size <= 3000 ? 1 : size / 61;
    for (std::size_t i = 0; i <= size; i += step) at.push_back(i);
    for (std::size_t i = 0; i < 8 && step > 1; ++i) {
      at.push_back(i);
      at.push_back(size - i);
    }
    return at;
  }
  static std::string all_bytes(HttpScripted& scripted, bool mixed = false) {
    std::string bytes = scripted.peer->opening();
    return bytes += scripted.peer->encode(conversation().requests(), mixed);
  }
};

TEST_P(HttpConformance, AnswersEveryRequest) {
  HttpScripted scripted(GetParam());
  scripted.send(all_bytes(scripted));
  expect_all(scripted);
}

TEST_P(HttpConformance, GivesTheSameResponsesInBothVersions) {
  HttpScripted one({conversation(), false});
  HttpScripted two({conversation(), true});
  one.send(all_bytes(one));
  two.send(all_bytes(two));
  one.finish();
  two.finish();
  EXPECT_EQ(one.responses(), two.responses());
}

TEST_P(HttpConformance, AnswersTheSameHoweverTheBytesAreSplit) {
  HttpScripted whole(GetParam());
  const std::string bytes = all_bytes(whole);
  for (const std::size_t cut : cuts(bytes.size())) {
    HttpScripted scripted(GetParam());
    ASSERT_EQ(all_bytes(scripted), bytes);
    scripted.send(std::string_view(bytes).substr(0, cut));
    scripted.send(std::string_view(bytes).substr(cut));
    expect_all(scripted);
    if (HasFailure()) FAIL() << "cut after " << cut << " bytes";
  }
  HttpScripted scripted(GetParam());
  all_bytes(scripted);
  for (std::size_t i = 0; i < bytes.size(); ++i) scripted.send(std::string_view(bytes).substr(i, 1));
  expect_all(scripted);
}

TEST_P(HttpConformance, AnswersRequestsThatArePipelinedOrInterleaved) {
  HttpScripted scripted(GetParam());
  const std::size_t times = std::max<std::size_t>(1, 100 / conversation().steps.size());
  std::vector<ScriptRequest> requests;
  for (std::size_t i = 0; i < times; ++i) {
    for (const HttpStep& step : conversation().steps) requests.push_back(step.request);
  }
  std::string bytes = scripted.peer->opening();
  bytes += scripted.peer->encode(requests, true);
  scripted.send(bytes);
  expect_all(scripted, times);
}

TEST_P(HttpConformance, AnswersWhateverOrderTheVerdictsComeIn) {
  HttpScripted scripted(GetParam());
  scripted.driver.answers_later = true;
  scripted.send(all_bytes(scripted, true));
  while (!scripted.driver.owed.empty()) {
    std::reverse(scripted.driver.owed.begin(), scripted.driver.owed.end());
    scripted.driver.answer_owed();
  }
  expect_all(scripted);
}

TEST_P(HttpConformance, SurvivesAClientThatLeavesAnywhere) {
  HttpScripted whole(GetParam());
  const std::string bytes = all_bytes(whole);
  for (const std::size_t cut : cuts(bytes.size())) {
    for (const bool half_close : {false, true}) {
      HttpScripted scripted(GetParam());
      scripted.driver.answers_later = true;
      all_bytes(scripted);
      scripted.send(std::string_view(bytes).substr(0, cut));
      if (half_close) scripted.driver.session->end_of_input(scripted.driver.now);
      scripted.driver.settle();
      scripted.driver.cut();
      EXPECT_EQ(scripted.shared.exchanges->open_count(), 0u) << "cut after " << cut << " bytes";
      // A verdict for a client that is gone.
      for (const auto& [token, reply] : scripted.driver.owed) scripted.driver.session->reply(token, reply);
    }
  }
}

TEST_P(HttpConformance, AnswersTheOthersWhenAClientCancelsSome) {
  if (!GetParam().http2) GTEST_SKIP() << "HTTP/1.1 cancels by closing the connection";
  const std::size_t count = conversation().steps.size();
  for (std::size_t canceled = 0; canceled < count; ++canceled) {
    for (const bool late : {false, true}) {
      HttpScripted scripted(GetParam());
      auto& peer = static_cast<Http2Frames&>(*scripted.peer);
      scripted.driver.answers_later = true;
      const std::string bytes = all_bytes(scripted, true);
      if (late) {
        scripted.send(bytes);
        scripted.send(peer.cancel(canceled));
      } else {
        scripted.send(bytes + peer.cancel(canceled));
      }
      while (!scripted.driver.owed.empty()) scripted.driver.answer_owed();
      scripted.finish();
      for (std::size_t i = 0; i < count; ++i) {
        if (i != canceled) expect_one(scripted, i);
      }
      EXPECT_EQ(scripted.shared.exchanges->open_count(), 0u);
    }
  }
}

TEST_P(HttpConformance, AnswersTheOthersWhileOneIsNotRead) {
  if (!GetParam().http2) GTEST_SKIP() << "HTTP/1.1 has one response at a time";
  const std::size_t count = conversation().steps.size();
  for (std::size_t slow = 0; slow < count; ++slow) {
    HttpScripted scripted(GetParam(), std::make_unique<Http2Frames>(0, false));
    auto& peer = static_cast<Http2Frames&>(*scripted.peer);
    scripted.send(all_bytes(scripted, true));
    for (std::size_t i = 0; i < count; ++i) {
      if (i != slow && !scripted.responses()[i].complete) scripted.send(peer.reads(i, 1u << 20));
    }
    for (std::size_t i = 0; i < count; ++i) {
      if (i != slow) expect_one(scripted, i);
    }
    EXPECT_EQ(scripted.responses()[slow].content, "");
    // Byte by byte, then the rest.
    for (int i = 0; i < 10 && !scripted.responses()[slow].complete; ++i) scripted.send(peer.reads(slow, 1));
    if (!scripted.responses()[slow].complete) scripted.send(peer.reads(slow, 1u << 20));
    expect_all(scripted);
  }
}

TEST_P(HttpConformance, AnswersOnceTheKernelTakesTheOutput) {
  HttpScripted scripted(GetParam());
  scripted.driver.stalled = true;
  scripted.send(all_bytes(scripted));
  EXPECT_TRUE(scripted.driver.take().empty());
  scripted.driver.stalled = false;
  scripted.driver.settle();
  expect_all(scripted);
}

}  // namespace weir::http
