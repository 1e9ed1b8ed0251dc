#include "weir/app/systemd.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace weir::systemd_test {
namespace {

using app::InheritedSocket;
using app::match_sockets;

const std::vector<std::string> kListeners = {"http", "resp", "admin", "http"};

TEST(Systemd, GivesANamedSocketToTheListenerOfThatProtocol) {
  EXPECT_EQ(match_sockets({{3, "admin"}, {4, "http"}}, kListeners), (std::vector{4, -1, 3, -1}));
}

TEST(Systemd, GivesASecondSocketOfTheSameNameToTheNextListener) {
  EXPECT_EQ(match_sockets({{3, "http"}, {4, "http"}}, kListeners), (std::vector{3, -1, -1, 4}));
}

TEST(Systemd, GivesUnnamedSocketsToTheRemainingListenersInOrder) {
  EXPECT_EQ(match_sockets({{3, ""}, {4, "weir.socket"}}, kListeners), (std::vector{3, 4, -1, -1}));
  EXPECT_EQ(match_sockets({{3, "weir.socket"}, {4, "http"}}, kListeners), (std::vector{4, 3, -1, -1}));
}

TEST(Systemd, IgnoresSocketsBeyondTheListeners) {
  EXPECT_EQ(match_sockets({{3, "http"}, {4, "http"}}, {"http"}), (std::vector{3}));
}

TEST(Systemd, ReadsDescriptorsAndTheirNames) {
  setenv("LISTEN_PID", std::to_string(getpid()).c_str(), 1);
  setenv("LISTEN_FDS", "3", 1);
  setenv("LISTEN_FDNAMES", "http:resp", 1);
  const std::vector<InheritedSocket> sockets = app::inherited_sockets();
  ASSERT_EQ(sockets.size(), 3u);
  EXPECT_EQ(sockets[0].fd, 3);
  EXPECT_EQ(sockets[0].name, "http");
  EXPECT_EQ(sockets[1].name, "resp");
  EXPECT_EQ(sockets[2].fd, 5);
  EXPECT_EQ(sockets[2].name, "");
  setenv("LISTEN_PID", "1", 1);
  EXPECT_TRUE(app::inherited_sockets().empty()) << "meant for another process";
  unsetenv("LISTEN_PID");
  EXPECT_TRUE(app::inherited_sockets().empty());
}

}  // namespace
}  // namespace weir::systemd_test
