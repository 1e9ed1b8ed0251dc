#include "weir/policy/schedule.h"

#include <gtest/gtest.h>

#include "weir/config/values.h"

namespace weir::schedule_test {
namespace {

using namespace std::chrono;

// 2024-07-05 is a Friday.
Wall at(int day, int hour, int minute = 0) {
  return Wall{sys_days{year{2024} / 7 / static_cast<unsigned>(day)} + hours{hour} + minutes{minute}};
}

ScheduleEntry entry(const char* days, const char* times, Zone zone = {}) {
  return {*config::parse_days(days), *config::parse_hours(times), zone, Limit::per_second(1)};
}

TEST(Schedule, CoversFromTheFirstMinuteUpToTheLast) {
  const ScheduleEntry office = entry("mon-fri", "09:00-18:00");
  EXPECT_FALSE(office.covers(at(5, 8, 59)));
  EXPECT_TRUE(office.covers(at(5, 9)));
  EXPECT_TRUE(office.covers(at(5, 17, 59) + 59s + 999ms));
  EXPECT_FALSE(office.covers(at(5, 18)));
  EXPECT_FALSE(office.covers(at(6, 12))) << "Saturday";
}

TEST(Schedule, HoursPastMidnightBelongToTheDayTheyBeganOn) {
  const ScheduleEntry night = entry("fri", "22:00-06:00");
  EXPECT_FALSE(night.covers(at(5, 3))) << "the night of Thursday";
  EXPECT_FALSE(night.covers(at(5, 21, 59)));
  EXPECT_TRUE(night.covers(at(5, 22)));
  EXPECT_TRUE(night.covers(at(6, 5, 59)));
  EXPECT_FALSE(night.covers(at(6, 6)));
  EXPECT_FALSE(night.covers(at(6, 23)));
}

TEST(Schedule, DaysAndHoursAreThoseOfTheZone) {
  const Zone london = *Zone::load("Europe/London");  // one hour ahead of UTC in July
  const ScheduleEntry office = entry("mon-fri", "09:00-18:00", london);
  EXPECT_TRUE(office.covers(at(5, 8)));
  EXPECT_FALSE(office.covers(at(5, 17)));
  EXPECT_TRUE(entry("sat", "00:00-01:00", london).covers(at(5, 23))) << "Saturday there, Friday in UTC";
}

TEST(Schedule, TheFirstEntryThatMatchesWins) {
  const Schedule schedule{entry("fri", "09:00-18:00"), entry("mon-sun", "00:00-24:00")};
  EXPECT_EQ(find_entry(schedule, at(5, 10)), &schedule[0]);
  EXPECT_EQ(find_entry(schedule, at(5, 20)), &schedule[1]);
  EXPECT_EQ(find_entry({}, at(5, 20)), nullptr);
}

TEST(Schedule, KnowsWhenItLastChanged) {
  const Schedule office{entry("mon-fri", "09:00-18:00")};
  EXPECT_EQ(last_change(office, at(5, 9)), at(5, 9));
  EXPECT_EQ(last_change(office, at(5, 17, 59)), at(5, 9));
  EXPECT_EQ(last_change(office, at(5, 18)), at(5, 18));
  EXPECT_EQ(last_change(office, at(8, 8, 59)), at(5, 18)) << "over the weekend";
  const Schedule night{entry("fri", "22:00-06:00")};
  EXPECT_EQ(last_change(night, at(6, 3)), at(5, 22));
  EXPECT_EQ(last_change(night, at(12, 21)), at(6, 6)) << "a week later";
  EXPECT_EQ(last_change({office[0], night[0]}, at(6, 3)), at(5, 22));
  EXPECT_EQ(last_change({}, at(5, 20)), Wall::min());
}

// Clocks in London went from 01:00 to 02:00 on 2024-03-31 and from 02:00 to 01:00 on 2024-10-27.
TEST(Schedule, ChangesWhenTheClocksOfItsZoneDo) {
  const auto on = [](int month, int day, int hour, int minute) {
    return Wall{sys_days{year{2024} / month / day} + hours{hour} + minutes{minute}};
  };
  const Zone london = *Zone::load("Europe/London");
  const Schedule early{entry("mon-sun", "01:30-05:00", london)};
  EXPECT_EQ(last_change(early, on(3, 31, 2, 0)), on(3, 31, 1, 0)) << "01:30 was skipped";
  EXPECT_EQ(last_change(early, on(10, 27, 0, 45)), on(10, 27, 0, 30));
  EXPECT_EQ(last_change(early, on(10, 27, 1, 15)), on(10, 27, 1, 0)) << "01:15 again";
  EXPECT_EQ(last_change(early, on(10, 27, 1, 30)), on(10, 27, 1, 30)) << "01:30 again";
}

// A schedule is constant since its last change: checked minute by minute over two weeks that include a clock change.
TEST(Schedule, GivesTheSameEntrySinceItsLastChange) {
  const Zone london = *Zone::load("Europe/London");
  const Schedule schedule{entry("mon-fri", "09:00-18:00", london), entry("sat-sun", "22:00-06:00", london),
                          entry("sun", "00:30-02:30")};
  Wall wall{sys_days{year{2024} / 10 / 20}};
  const ScheduleEntry* before = find_entry(schedule, wall);
  Wall changed = Wall::min();
  for (; wall < Wall{sys_days{year{2024} / 11 / 3}}; wall += minutes{1}) {
    const ScheduleEntry* const now = find_entry(schedule, wall);
    if (now != before) changed = wall;
    before = now;
    EXPECT_GE(last_change(schedule, wall), changed);
    EXPECT_LE(last_change(schedule, wall), wall);
  }
}

}  // namespace
}  // namespace weir::schedule_test
