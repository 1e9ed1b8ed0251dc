#include "weir/app/systemd.h"

#include <gtest/gtest.h>

namespace weir::app::systemd_test {
namespace {

using Names = std::vector<std::string>;
using Sockets = std::vector<int>;

const std::vector<Names> kSpeaks = {{"http", "grpc"}, {"resp"}, {"admin"}, {"proxy"}};

TEST(InheritedSockets, GoToTheListenersThatSpeakTheirNames) {
  EXPECT_EQ(assign_sockets({"proxy"}, kSpeaks), (Sockets{-1, -1, -1, 3}));
  EXPECT_EQ(assign_sockets({"proxy", "admin", "http"}, kSpeaks), (Sockets{5, -1, 4, 3}));
  EXPECT_EQ(assign_sockets({"proxy", "other"}, kSpeaks), (Sockets{-1, -1, -1, 3}));
  EXPECT_EQ(assign_sockets({"proxy", "proxy"}, {{"proxy"}, {"proxy"}}), (Sockets{3, 4}));
}

TEST(InheritedSockets, WithoutNamesOfProtocolsGoInTheOrderOfTheListeners) {
  EXPECT_EQ(assign_sockets({"weir.socket", "weir.socket"}, kSpeaks), (Sockets{3, 4, -1, -1}));
  EXPECT_EQ(assign_sockets({"", "", "", "", ""}, kSpeaks), (Sockets{3, 4, 5, 6}));
  EXPECT_EQ(assign_sockets({}, kSpeaks), (Sockets{-1, -1, -1, -1}));
}

}  // namespace
}  // namespace weir::app::systemd_test
