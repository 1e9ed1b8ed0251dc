// MULTI, EXEC and DISCARD, through the session.
#include "weir/protocol/resp/transaction.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "weir/protocol/resp/resp_session.h"
#include "weir/protocol/testing/kept_output.h"

namespace weir::transaction_test {
namespace {

const RespOptions kOpen{};

class TransactionTest : public ::testing::Test {
 protected:
  // Sends inline commands like a connection: repeats until a call neither consumes, asks nor writes anything.
  std::string feed(std::string_view bytes) {
    pending_ += bytes;
    std::string& out = output_.bytes;
    out.clear();
    while (!pending_.empty()) {
      Queries queries;
      const std::size_t written = out.size();
      const Result<std::size_t> taken = session_.receive(pending_, queries, Now{});
      for (const Asked& asked : queries.all()) {
        const auto* const named = std::get_if<NamedCharges>(&asked.query.subject);
        asked_.emplace_back(named != nullptr ? named->charges[0].id : std::get<OwnBucket>(asked.query.subject).key);
        session_.reply(asked.token, Answer{});
      }
      if (!taken) break;
      pending_.erase(0, *taken);
      if (*taken == 0 && queries.all().empty() && out.size() == written) break;
    }
    return out;
  }

  static std::string times(std::string_view text, std::size_t count) {
    std::string all;
    for (std::size_t i = 0; i < count; ++i) all += text;
    return all;
  }

  KeptOutput output_;
  RespSession session_{output_, kOpen};
  std::string pending_;
  std::vector<std::string> asked_;  // keys and ids, in order
};

constexpr std::string_view kAborted = "-EXECABORT Transaction discarded because of previous errors.\r\n";

TEST_F(TransactionTest, ChargesNothingBeforeExec) {
  EXPECT_EQ(feed("MULTI\r\nCL.THROTTLE alice 0 1 60\r\nWEIR.RESET login bob\r\n"), "+OK\r\n+QUEUED\r\n+QUEUED\r\n");
  EXPECT_EQ(asked_, std::vector<std::string>{});
  EXPECT_EQ(feed("EXEC\r\n"), "*2\r\n*5\r\n:0\r\n:-1\r\n:-1\r\n:-1\r\n:0\r\n:0\r\n");
  EXPECT_EQ(asked_, (std::vector<std::string>{"alice", "bob"}));
}

TEST_F(TransactionTest, AnUnknownCommandMakesExecRunNothing) {
  EXPECT_EQ(feed("MULTI\r\nDEL a\r\nnonsense\r\nDEL b\r\nEXEC\r\n"),
            "+OK\r\n+QUEUED\r\n-ERR unknown command 'nonsense', with args beginning with: \r\n+QUEUED\r\n" +
                std::string(kAborted));
  EXPECT_EQ(asked_, std::vector<std::string>{});
  EXPECT_EQ(feed("EXEC\r\n"), "-ERR EXEC without MULTI\r\n");
}

TEST_F(TransactionTest, AWrongNumberOfArgumentsMakesExecRunNothing) {
  EXPECT_EQ(feed("MULTI\r\nDEL\r\nDEL a\r\nEXEC\r\n"),
            "+OK\r\n-ERR wrong number of arguments for 'del' command\r\n+QUEUED\r\n" + std::string(kAborted));
  EXPECT_EQ(asked_, std::vector<std::string>{});
}

TEST_F(TransactionTest, ABadArgumentFailsItsOwnCommandOnly) {
  EXPECT_EQ(feed("MULTI\r\nCL.THROTTLE a x 1 60\r\nDEL b\r\nEXEC\r\n"),
            "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n-ERR value is not an integer or out of range\r\n:0\r\n");
  EXPECT_EQ(asked_, std::vector<std::string>{"b"});
}

TEST_F(TransactionTest, DiscardDropsWhatWasQueued) {
  EXPECT_EQ(feed("MULTI\r\nDEL a\r\nDISCARD\r\nEXEC\r\nDISCARD\r\n"),
            "+OK\r\n+QUEUED\r\n+OK\r\n-ERR EXEC without MULTI\r\n-ERR DISCARD without MULTI\r\n");
  EXPECT_EQ(asked_, std::vector<std::string>{});
}

TEST_F(TransactionTest, ResetEndsATransaction) {
  EXPECT_EQ(feed("MULTI\r\nDEL a\r\nRESET\r\nEXEC\r\n"), "+OK\r\n+QUEUED\r\n+RESET\r\n-ERR EXEC without MULTI\r\n");
  EXPECT_EQ(asked_, std::vector<std::string>{});
}

TEST_F(TransactionTest, RefusesWatchAndANestedMultiAndGoesOn) {
  EXPECT_EQ(feed("WATCH a\r\n"), "-ERR WATCH is not supported\r\n");
  EXPECT_EQ(feed("MULTI\r\nMULTI\r\nWATCH a\r\nPING\r\nEXEC\r\n"),
            "+OK\r\n-ERR MULTI calls can not be nested\r\n-ERR WATCH inside MULTI is not allowed\r\n+QUEUED\r\n"
            "*1\r\n+PONG\r\n");
}

TEST_F(TransactionTest, RefusesAuthAndHelloInside) {
  for (const std::string command : {"AUTH x", "HELLO 3"}) {
    EXPECT_EQ(feed("MULTI\r\n" + command + "\r\nEXEC\r\n"),
              "+OK\r\n-ERR Command not allowed inside a transaction\r\n" + std::string(kAborted));
  }
}

TEST_F(TransactionTest, AnEmptyOneIsAnEmptyArray) {
  EXPECT_EQ(feed("MULTI\r\nEXEC\r\nPING\r\n"), "+OK\r\n*0\r\n+PONG\r\n");
}

TEST_F(TransactionTest, OneMayFollowAnotherInTheSameRead) {
  EXPECT_EQ(feed(times("MULTI\r\nDEL a\r\nEXEC\r\n", 3)), times("+OK\r\n+QUEUED\r\n*1\r\n:0\r\n", 3));
  EXPECT_EQ(asked_, (std::vector<std::string>{"a", "a", "a"}));
}

TEST_F(TransactionTest, HoldsAThousandCommandsAndNotOneMore) {
  const std::size_t most = bounds::resp_transaction_commands_max;
  EXPECT_EQ(feed("MULTI\r\n" + times("DEL a b\r\n", most) + "EXEC\r\n"),
            "+OK\r\n" + times("+QUEUED\r\n", most) + "*1000\r\n" + times(":0\r\n", most));
  EXPECT_EQ(asked_.size(), 2 * most);
  asked_.clear();
  EXPECT_EQ(feed("MULTI\r\n" + times("DEL a\r\n", most + 1) + "EXEC\r\n"),
            "+OK\r\n" + times("+QUEUED\r\n", most) +
                "-ERR a transaction holds at most 1000 commands and 1048576 bytes\r\n" + std::string(kAborted));
  EXPECT_EQ(asked_.size(), 0u);
}

TEST_F(TransactionTest, HoldsAMegabyteOfCommandsAndNotOneByteMore) {
  const auto del = [](std::size_t bytes) { return "DEL " + std::string(bytes - 6, 'k') + "\r\n"; };
  const std::size_t piece = 32 << 10;
  const std::size_t pieces = bounds::resp_transaction_bytes_max / piece;
  EXPECT_EQ(feed("MULTI\r\n" + times(del(piece), pieces) + "EXEC\r\n"),
            "+OK\r\n" + times("+QUEUED\r\n", pieces) + "*32\r\n" + times(":0\r\n", pieces));
  const std::string over = feed("MULTI\r\n" + times(del(piece), pieces - 1) + del(piece + 1) + "EXEC\r\n");
  EXPECT_EQ(over.substr(over.size() - kAborted.size()), kAborted);
}

TEST_F(TransactionTest, LargeRepliesLeaveInPieces) {
  const std::string word(60'000, 'w');
  const std::string echoed = "$60000\r\n" + word + "\r\n";
  EXPECT_EQ(feed("MULTI\r\n" + times("ECHO " + word + "\r\n", 10) + "EXEC\r\n"),
            "+OK\r\n" + times("+QUEUED\r\n", 10) + "*10\r\n" + times(echoed, 10));
}

TEST_F(TransactionTest, AConnectionThatEndsBeforeExecChargesNothing) {
  EXPECT_EQ(feed("MULTI\r\nDEL a\r\nQUIT\r\n"), "+OK\r\n+QUEUED\r\n+OK\r\n");
  EXPECT_TRUE(session_.finished());
  EXPECT_EQ(asked_, std::vector<std::string>{});
}

}  // namespace
}  // namespace weir::transaction_test
