#include "weir/policy/schedule.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

using namespace std::chrono;

// 2024-07-05 is a Friday.
Wall at(int day, int hour, int minute = 0) {
  return Wall{sys_days{year{2024} / 7 / static_cast<unsigned>(day)} + hours{hour} + minutes{minute}};
}

ScheduleEntry entry(const char* days, const char* times, Zone zone = {}) {
  return {*policy::parse_days(days), *policy::parse_hours(times), zone, Limit::per_second(1)};
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

}  // namespace
}  // namespace weir
