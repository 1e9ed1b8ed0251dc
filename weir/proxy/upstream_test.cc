#include "weir/proxy/upstream.h"

#include <gtest/gtest.h>

namespace weir::proxy::upstream_test {
namespace {

using namespace std::chrono_literals;
using Names = std::vector<std::string>;

constexpr Time kStart{};

struct Fixture {
  Upstreams upstreams;
  std::shared_ptr<UpstreamGroup> group;
  Time now = kStart;

  explicit Fixture(const Names& names) : group(upstreams.group(names)) {}

  // "0", "1?" for a probe, "-" for none; each request ends with the outcome.
  std::string ask(UpstreamOutcome outcome, int times = 1) {
    std::string chosen;
    for (; times > 0; --times) {
      const UpstreamGroup::Choice choice = group->choose(0, now);
      if (choice.index == UpstreamGroup::kNone) {
        chosen += '-';
        continue;
      }
      chosen += std::to_string(choice.index) + (choice.probe ? "?" : "");
      group->finished(choice, outcome, now);
    }
    return chosen;
  }

  std::string states() const {
    std::string text;
    for (const BackendState& one : upstreams.list()) text += one.backend + (one.up ? " up, " : " down, ");
    return text;
  }
};

TEST(Upstreams, TakeTurns) {
  Fixture three({"a", "b", "c"});
  EXPECT_EQ(three.ask(UpstreamOutcome::success, 7), "0120120");
}

TEST(Upstreams, ThreeFailuresInARowEjectABackendForTenSeconds) {
  Fixture two({"a", "b"});
  const auto fail_a = [&] {
    UpstreamGroup::Choice choice;
    do {
      choice = two.group->choose(0, two.now);
      two.group->finished(choice, choice.index == 0 ? UpstreamOutcome::failure : UpstreamOutcome::success, two.now);
    } while (choice.index != 0);
  };
  fail_a();
  fail_a();
  EXPECT_EQ(two.states(), "a up, b up, ");
  fail_a();
  EXPECT_EQ(two.states(), "a down, b up, ");
  EXPECT_EQ(two.ask(UpstreamOutcome::success, 3), "111");
  two.now += 10s - 1ns;
  EXPECT_EQ(two.ask(UpstreamOutcome::success, 2), "11");
  two.now += 1ns;
  EXPECT_EQ(two.ask(UpstreamOutcome::unknown, 2), "01") << "due again";
  // One more failure doubles the time, up to a minute.
  for (const Duration time : {20s, 40s, 60s, 60s}) {
    fail_a();
    two.now += time - 1ns;
    EXPECT_EQ(two.ask(UpstreamOutcome::success, 2), "11");
    two.now += 1ns;
  }
  EXPECT_EQ(two.ask(UpstreamOutcome::success, 2), "01");
  fail_a();
  EXPECT_EQ(two.ask(UpstreamOutcome::success, 2), "10") << "a success has cleared it: one failure is not enough";
}

TEST(Upstreams, AResponseOfAnyStatusBreaksARowOfFailures) {
  Fixture two({"a", "b"});
  EXPECT_EQ(two.ask(UpstreamOutcome::failure, 4), "0101");
  EXPECT_EQ(two.ask(UpstreamOutcome::success, 2), "01");
  EXPECT_EQ(two.ask(UpstreamOutcome::failure, 4), "0101");
  EXPECT_EQ(two.ask(UpstreamOutcome::failure, 2), "01") << "not ejected before the third";
}

TEST(Upstreams, WhileAllAreEjectedOneRequestAtATimeGoesToTheOneDueSoonest) {
  Fixture two({"a", "b"});
  EXPECT_EQ(two.ask(UpstreamOutcome::failure, 5), "01010");
  two.now += 1s;
  EXPECT_EQ(two.ask(UpstreamOutcome::failure), "1");
  const UpstreamGroup::Choice probe = two.group->choose(0, two.now);
  EXPECT_TRUE(probe.probe);
  EXPECT_EQ(probe.index, 0u) << "ejected first, due first";
  EXPECT_EQ(two.ask(UpstreamOutcome::success, 2), "--");
  two.group->finished(probe, UpstreamOutcome::unknown, two.now);
  EXPECT_EQ(two.ask(UpstreamOutcome::failure), "0?") << "the time is doubled, so the other is due sooner";
  EXPECT_EQ(two.ask(UpstreamOutcome::success), "1?");
  EXPECT_EQ(two.ask(UpstreamOutcome::success, 2), "11");
}

TEST(Upstreams, ASingleBackendIsNeverEjected) {
  Fixture one({"a"});
  EXPECT_EQ(one.ask(UpstreamOutcome::failure, 10), "0000000000");
  EXPECT_EQ(one.upstreams.list().front().up, false) << "but it is reported as down";
  EXPECT_EQ(one.group->choose(1, one.now).index, UpstreamGroup::kNone) << "it was tried";
}

TEST(Upstreams, SayOnceThatABackendWentDownAndOnceThatItCameBack) {
  Fixture one({"a"});
  std::string changes;
  for (const char outcome : std::string_view("ffffsfsffff?s")) {
    const UpstreamOutcome which = outcome == 'f'   ? UpstreamOutcome::failure
                                  : outcome == 's' ? UpstreamOutcome::success
                                                   : UpstreamOutcome::unknown;
    switch (one.group->finished({0, false}, which, one.now)) {
      case UpstreamChange::none:
        changes += '.';
        break;
      case UpstreamChange::went_down:
        changes += 'd';
        break;
      case UpstreamChange::came_back:
        changes += 'b';
        break;
    }
  }
  EXPECT_EQ(changes, "..d.b....d..b");
}

TEST(Upstreams, CountResponsesAndFailuresOfEachBackendAndTheirTimes) {
  Fixture two({"a", "b"});
  for (const Duration took : {Duration{3ms}, Duration{40ms}, Duration{5ms}}) {
    const UpstreamGroup::Choice choice = two.group->choose(0, two.now);
    two.now += took;
    two.group->finished(choice, choice.index == 0 ? UpstreamOutcome::success : UpstreamOutcome::failure, two.now);
  }
  const std::vector<BackendState> states = two.upstreams.list();
  ASSERT_EQ(states.size(), 2u);
  EXPECT_EQ(states[0].responses, 2u);
  EXPECT_EQ(states[0].failed, 0u);
  EXPECT_EQ(states[0].seconds[12], 1u) << "at most 4.096 ms";
  EXPECT_EQ(states[0].seconds[13], 1u) << "at most 8.192 ms";
  EXPECT_EQ(states[1].responses, 0u);
  EXPECT_EQ(states[1].failed, 1u);
}

TEST(Upstreams, ARequestTriesABackendOnce) {
  Fixture three({"a", "b", "c"});
  EXPECT_EQ(three.group->choose(0b011, kStart).index, 2u);
  EXPECT_EQ(three.group->choose(0b111, kStart).index, UpstreamGroup::kNone);
}

TEST(Upstreams, GroupsShareWhatIsKnownAboutABackend) {
  Upstreams upstreams;
  const auto first = upstreams.group(Names{"a", "b"});
  const auto second = upstreams.group(Names{"a", "c"});
  EXPECT_EQ(upstreams.group(Names{"a", "b"}), first);
  for (int i = 0; i < 3; ++i) first->finished({0, false}, UpstreamOutcome::failure, kStart);
  EXPECT_EQ(second->choose(0, kStart).index, 1u);
}

}  // namespace
}  // namespace weir::proxy::upstream_test
