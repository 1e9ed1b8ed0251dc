#include "weir/cli/event_reader.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "weir/base/bounds.h"

namespace weir::event_reader_test {
namespace {

using cli::EventReader;

struct Reading {
  std::string events;
  EventReader reader{[this](std::string_view name, std::string_view content) {
    events.append(name).append("=").append(content).append(";");
  }};
};

constexpr std::string_view kStream =
    ": a comment\n\nevent: decision\ndata: {\"a\":1}\n\nevent: dropped\r\ndata:x\r\ndata: y\r\n\r\nid: 7\rdata: "
    "z\r\rdata\n\n";
constexpr std::string_view kEvents = "decision={\"a\":1};dropped=x\ny;message=z;message=;";

TEST(EventReader, ReadsEventsWithAllKindsOfLineEnds) {
  Reading reading;
  EXPECT_TRUE(reading.reader.receive(kStream));
  EXPECT_EQ(reading.events, kEvents);
}

TEST(EventReader, ReadsTheSameHoweverTheStreamIsCut) {
  for (std::size_t cut = 0; cut <= kStream.size(); ++cut) {
    Reading reading;
    EXPECT_TRUE(reading.reader.receive(kStream.substr(0, cut)));
    EXPECT_TRUE(reading.reader.receive(kStream.substr(cut)));
    EXPECT_EQ(reading.events, kEvents) << cut;
  }
}

TEST(EventReader, WaitsForTheBlankLine) {
  Reading reading;
  EXPECT_TRUE(reading.reader.receive("data: a\n"));
  EXPECT_EQ(reading.events, "");
  EXPECT_TRUE(reading.reader.receive("\n"));
  EXPECT_EQ(reading.events, "message=a;");
}

TEST(EventReader, RefusesAnEventThatIsTooLong) {
  constexpr std::string_view kField = "data: ";
  const std::string most(bounds::event_queue_bytes_max - kField.size(), 'x');
  Reading fits;
  EXPECT_TRUE(fits.reader.receive(std::string(kField) + most + "\n\n"));
  EXPECT_EQ(fits.events.size(), most.size() + std::string_view("message=;").size());
  Reading longer;
  EXPECT_FALSE(longer.reader.receive(std::string(kField) + most + "x\n\n"));
  EXPECT_FALSE(longer.reader.receive("data: a\n\n"));
  EXPECT_EQ(longer.events, "");
}

}  // namespace
}  // namespace weir::event_reader_test
