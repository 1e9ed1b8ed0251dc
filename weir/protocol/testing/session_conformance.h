// What every session promises (protocol/session.h), as tests: a protocol writes down one Conversation and instantiates
//   INSTANTIATE_TEST_SUITE_P(Foo, SessionConformance, ::testing::Values(foo_conversation()));
// in one source of its test program. The kit then cuts the bytes at every place, pipelines them, answers out of order,
// mixes in what the protocol refuses, and drains.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weir/base/bounds.h"
#include "weir/protocol/session.h"
#include "weir/protocol/testing/canned_answer.h"
#include "weir/protocol/testing/kept_output.h"

namespace weir {

// What goes in and what must come out.
struct Sample {
  std::string name;
  std::string input;
  std::string output;
};

struct Conversation {
  std::string name;                                       // letters and digits
  std::function<std::unique_ptr<Session>(Output&)> open;  // a new connection's session

  // Whole requests after which the connection stays open; several of them ask, with costs of their own.
  std::string input;
  std::string output;  // when `answer` answers

  // Requests that are refused with an answer, after which the conversation goes on.
  std::vector<Sample> mistakes;
  // Bytes after which the framing is lost: past a bound, or garbage. `output` is the last words.
  std::vector<Sample> breaks;

  // What is written when the server drains while the answers to `input` are owed.
  std::string drained_output;

  // Views in the answer must outlive the test: the query's do not.
  std::function<Result<Answer>(const Asked&)> answer = allow;

  friend void PrintTo(const Conversation& conversation, std::ostream* stream) { *stream << conversation.name; }
};

// The peer and the connection of one session: feeds it bytes and collects what it writes.
class Peer {
 public:
  enum class Answers { at_once, later };

  Peer(const Conversation& conversation, Answers answers)
      : answer_(conversation.answer), answers_(answers), session_(conversation.open(output_)) {}

  void send(std::string_view bytes) {
    pending_ += bytes;
    pump();
  }

  // Gives the answers that are owed; `pick` chooses the next one of so many. Goes on until nothing is left to decode.
  void answer_owed(const std::function<std::size_t(std::size_t)>& pick) {
    while (!owed_.empty()) {
      const std::size_t i = pick(owed_.size());
      const auto [token, answer] = std::move(owed_[i]);
      owed_.erase(owed_.begin() + static_cast<std::ptrdiff_t>(i));
      reply(token, answer);
      settle();
      if (watch_) watch_(out());
      if (owed_.empty()) pump();
    }
  }
  void answer_owed_in_reverse() {
    answer_owed([](std::size_t count) { return count - 1; });
  }
  void answer_owed_in_order() {
    answer_owed([](std::size_t) { return std::size_t{0}; });
  }

  void drain() {
    session_->drain(Time{});
    settle();
  }

  // Called with everything written so far, after each reply.
  void watch(std::function<void(const std::string&)> watch) { watch_ = std::move(watch); }

  const std::string& out() const { return output_.text(); }
  std::size_t owed() const { return owed_.size(); }
  std::uint64_t asked() const { return asked_; }
  std::size_t most_at_once() const { return most_at_once_; }  // queries of one receive()
  bool lost() const { return lost_; }                         // receive() returned an Error
  bool finished() const { return session_->finished(); }

 private:
  // As a connection does: call again until a call makes no progress.
  void pump() {
    while (!lost_ && !session_->finished() && session_->reading() && turn()) {
    }
    settle();
  }

  bool turn() {
    // A block of exactly this size, so that the sanitizer sees a read past its end and a view kept for too long.
    const std::unique_ptr<char[]> block(new char[pending_.size()]);
    if (!pending_.empty()) std::memcpy(block.get(), pending_.data(), pending_.size());
    const std::size_t written = out().size();
    Queries queries;
    const Result<std::size_t> taken = session_->receive({block.get(), pending_.size()}, queries, Now{});
    EXPECT_TRUE(out().size() == written || output_.take_touched()) << "output without touch() is not sent";
    ask(queries);
    if (!taken) {
      EXPECT_TRUE(owed_.empty()) << "the last words may not overtake answers that are owed";
      lost_ = true;
      return false;
    }
    settle();
    EXPECT_LE(*taken, pending_.size());
    pending_.erase(0, *taken);
    return *taken > 0 && !pending_.empty();
  }

  void ask(const Queries& queries) {
    most_at_once_ = std::max(most_at_once_, queries.all().size());
    for (const Asked& asked : queries.all()) {
      ++asked_;
      if (answers_ == Answers::at_once) {
        reply(asked.token, answer_(asked));
      } else {
        owed_.emplace_back(asked.token, answer_(asked));
      }
    }
  }

  void reply(std::uint64_t token, const Result<Answer>& answer) {
    const std::size_t written = out().size();
    session_->reply(token, answer);
    EXPECT_TRUE(out().size() == written || output_.take_touched()) << "output without touch() is not sent";
  }

  // The end of a turn: questions that found no room, and output that is written on demand.
  void settle() {
    while (session_->has_more()) {
      Queries queries;
      session_->resume(queries, Now{});
      if (queries.all().empty()) break;
      ask(queries);
    }
    while (std::exchange(output_.wants_fill, false)) {
      const std::size_t written = out().size();
      session_->fill(0);
      if (out().size() == written) break;
    }
  }

  std::function<Result<Answer>(const Asked&)> answer_;
  Answers answers_;
  KeptOutput output_;
  std::unique_ptr<Session> session_;
  std::string pending_;
  std::vector<std::pair<std::uint64_t, Result<Answer>>> owed_;
  std::function<void(const std::string&)> watch_;
  std::uint64_t asked_ = 0;
  std::size_t most_at_once_ = 0;
  bool lost_ = false;
};

class SessionConformance : public ::testing::TestWithParam<Conversation> {
 protected:
  static std::string times(std::string_view text, std::size_t count) {
    std::string all;
    for (std::size_t i = 0; i < count; ++i) all += text;
    return all;
  }

  // Where to cut `size` bytes in two: everywhere, or at some places and near both ends of what is long.
  static std::vector<std::size_t> cuts(std::size_t size) {
    std::vector<std::size_t> at;
    const std::size_t step = size <= 2048 ? 1 : size / 31;
    for (std::size_t i = 0; i <= size; i += step) at.push_back(i);
    for (std::size_t i = 0; i < 8 && step > 1; ++i) {
      at.push_back(i);
      at.push_back(size - i);
    }
    return at;
  }

  // Whole, in two pieces cut at every place, and in single bytes (of what is short): always the same answer.
  static void expect_however_split(const std::string& input, const std::string& output, bool ends) {
    for (const Peer::Answers answers : {Peer::Answers::at_once, Peer::Answers::later}) {
      for (const std::size_t cut : cuts(input.size())) {
        Peer peer(GetParam(), answers);
        peer.send(std::string_view(input).substr(0, cut));
        peer.send(std::string_view(input).substr(cut));
        expect(peer, output, ends);
        if (HasFailure()) FAIL() << "cut after " << cut << " bytes";
      }
      if (input.size() > 4096) continue;
      Peer peer(GetParam(), answers);
      for (const char byte : input) peer.send({&byte, 1});
      expect(peer, output, ends);
    }
  }

  static void expect(Peer& peer, const std::string& output, bool ends) {
    peer.answer_owed_in_order();
    EXPECT_EQ(peer.out(), output);
    EXPECT_EQ(peer.finished(), ends);
  }
};

TEST_P(SessionConformance, AnswersTheSameHoweverTheBytesAreSplit) {
  expect_however_split(GetParam().input, GetParam().output, false);
}

TEST_P(SessionConformance, AnswersPipelinedRequestsInOrder) {
  for (const Peer::Answers answers : {Peer::Answers::at_once, Peer::Answers::later}) {
    Peer peer(GetParam(), answers);
    peer.send(times(GetParam().input, 50));
    expect(peer, times(GetParam().output, 50), false);
  }
}

TEST_P(SessionConformance, StopsWhenTheQueriesAreFullAndGoesOn) {
  Peer once(GetParam(), Peer::Answers::at_once);
  once.send(GetParam().input);
  ASSERT_GT(once.asked(), 0u);
  const std::size_t count = 3 * bounds::queries_per_turn_max / once.asked() + 1;
  for (const Peer::Answers answers : {Peer::Answers::at_once, Peer::Answers::later}) {
    Peer peer(GetParam(), answers);
    peer.send(times(GetParam().input, count));
    expect(peer, times(GetParam().output, count), false);
    EXPECT_EQ(peer.asked(), count * once.asked());
    EXPECT_LE(peer.most_at_once(), bounds::queries_per_turn_max);
  }
}

TEST_P(SessionConformance, WritesInThePeersOrderWhateverOrderTheAnswersComeIn) {
  const std::string output = times(GetParam().output, 5);
  std::uint64_t seed = 1;
  const auto shuffled = [&seed](std::size_t count) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::size_t>(seed >> 33) % count;
  };
  const auto reversed = [](std::size_t count) { return count - 1; };
  for (int round = 0; round < 20; ++round) {
    Peer peer(GetParam(), Peer::Answers::later);
    peer.watch([&](const std::string& out) { ASSERT_EQ(out, output.substr(0, out.size())); });
    peer.send(times(GetParam().input, 5));
    peer.answer_owed(round == 0 ? std::function<std::size_t(std::size_t)>(reversed) : shuffled);
    ASSERT_EQ(peer.out(), output);
  }
}

TEST_P(SessionConformance, GoesOnAfterAMistake) {
  for (const Sample& mistake : GetParam().mistakes) {
    SCOPED_TRACE(mistake.name);
    const std::string& input = GetParam().input;
    const std::string& output = GetParam().output;
    expect_however_split(input + mistake.input + input, output + mistake.output + output, false);
  }
}

TEST_P(SessionConformance, AnswersWhatIsOwedThenSaysItsLastWordsWhenTheFramingIsLost) {
  for (const Sample& broken : GetParam().breaks) {
    SCOPED_TRACE(broken.name);
    const std::string& input = GetParam().input;
    expect_however_split(broken.input, broken.output, true);
    expect_however_split(input + broken.input, GetParam().output + broken.output, true);
    expect_however_split(input + broken.input + input, GetParam().output + broken.output, true);
    Peer peer(GetParam(), Peer::Answers::later);
    peer.send(input + broken.input);
    peer.answer_owed_in_reverse();
    EXPECT_EQ(peer.out(), GetParam().output + broken.output);
    EXPECT_TRUE(peer.finished());
  }
}

TEST_P(SessionConformance, TellsFailuresWithoutTheirInsides) {
  for (const Fault fault : {Fault::invalid, Fault::too_large, Fault::unknown, Fault::timeout, Fault::unavailable,
                            Fault::overloaded, Fault::internal}) {
    Conversation failing = GetParam();
    failing.answer = [fault](const Asked&) { return Error{fault, "the words of the failure"}; };
    Peer whole(failing, Peer::Answers::at_once);
    whole.send(failing.input);
    EXPECT_FALSE(whole.out().empty());
    if (fault == Fault::internal) {
      EXPECT_EQ(whole.out().find("the words of the failure"), std::string::npos);
    }
    Peer reversed(failing, Peer::Answers::later);
    reversed.send(failing.input);
    reversed.answer_owed_in_reverse();
    EXPECT_EQ(reversed.out(), whole.out());
  }
}

TEST_P(SessionConformance, FinishesWhatWasAskedWhenDrained) {
  Peer idle(GetParam(), Peer::Answers::at_once);
  EXPECT_FALSE(idle.finished());
  idle.drain();
  EXPECT_TRUE(idle.finished());

  Peer busy(GetParam(), Peer::Answers::later);
  busy.send(GetParam().input);
  const std::uint64_t asked = busy.asked();
  ASSERT_GT(asked, 0u);
  busy.drain();
  EXPECT_FALSE(busy.finished());
  busy.send(GetParam().input);
  EXPECT_EQ(busy.asked(), asked) << "a draining session takes no more";
  busy.answer_owed_in_order();
  EXPECT_EQ(busy.out(), GetParam().drained_output);
  EXPECT_TRUE(busy.finished());
}

TEST_P(SessionConformance, MayBeDroppedAtAnyMoment) {
  for (const std::size_t cut : cuts(GetParam().input.size())) {
    Peer peer(GetParam(), Peer::Answers::later);
    peer.send(std::string_view(GetParam().input).substr(0, cut));
  }
}

}  // namespace weir
