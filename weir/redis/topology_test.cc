// Parsing of the topology from replies of servers, sentinels and clusters.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "weir/base/bounds.h"
#include "weir/redis/discovery.h"
#include "weir/redis/slots.h"
#include "weir/redis/targets.h"

namespace weir::redis::topology_test {
namespace {

const Target kAsked{"192.0.2.1", 6379, {}};

std::string bulk(std::string_view text) {
  return "$" + std::to_string(text.size()) + "\r\n" + std::string(text) + "\r\n";
}

std::string integer(std::int64_t number) {
  return ":" + std::to_string(number) + "\r\n";
}

std::string array(std::initializer_list<std::string> elements) {
  std::string text = "*" + std::to_string(elements.size()) + "\r\n";
  for (const std::string& element : elements) text += element;
  return text;
}

// A parsed reply and the bytes it points to.
struct ParsedReply {
  explicit ParsedReply(std::string text) : bytes(std::move(text)) { EXPECT_EQ(reply.parse(bytes), resp::Parsed::done); }
  std::string bytes;
  resp::Reply reply;
};

std::string range(int first, int last, std::string_view host, int port) {
  return array({integer(first), integer(last), array({bulk(host), integer(port), bulk("id"), "*0\r\n"}),
                array({bulk("198.51.100.9"), integer(1), bulk("a replica")})});
}

TEST(Slots, MatchTheClusterSpecification) {
  // CLUSTER KEYSLOT of a real server.
  EXPECT_EQ(slot_of("123456789"), 0x31c3 % kSlots);
  EXPECT_EQ(slot_of(""), 0);
  EXPECT_EQ(slot_of("foo"), 12182);
  EXPECT_EQ(slot_of("somekey"), 11058);
}

TEST(Slots, UseTheHashTagIfThereIsOne) {
  EXPECT_EQ(slot_of("weir:{user1000}.following"), slot_of("user1000"));
  EXPECT_EQ(slot_of("{user1000}.followers"), slot_of("user1000"));
  EXPECT_NE(slot_of("foo{}{bar}"), slot_of("bar")) << "an empty tag is ignored";
  EXPECT_EQ(slot_of("foo{{bar}}zap"), slot_of("{bar"));
  EXPECT_EQ(slot_of("foo{bar}{zap}"), slot_of("bar"));
  EXPECT_NE(slot_of("foo{bar"), slot_of("bar"));
}

TEST(Slots, MapEachSlotToItsMaster) {
  const ParsedReply parsed(array({range(0, 5460, "10.0.0.1", 7000), range(5461, 16383, "::1", 7001)}));
  const auto map = SlotMap::read(parsed.reply, kAsked);
  ASSERT_TRUE(map);
  EXPECT_EQ(map->masters().size(), 2u);
  EXPECT_EQ(*map->master(0), (Target{"10.0.0.1", 7000, {}}));
  EXPECT_EQ(*map->master(5460), (Target{"10.0.0.1", 7000, {}}));
  EXPECT_EQ(*map->master(5461), (Target{"::1", 7001, {}}));
  EXPECT_EQ(*map->master(16383), (Target{"::1", 7001, {}}));
  EXPECT_EQ(map->master(16383)->print(), "[::1]:7001");
}

TEST(Slots, AreUnknownWithoutAMasterUntilAMovedNamesOne) {
  const ParsedReply parsed(array({range(1, 2, "10.0.0.1", 7000)}));
  auto map = SlotMap::read(parsed.reply, kAsked);
  ASSERT_TRUE(map);
  EXPECT_EQ(map->master(0), nullptr);
  EXPECT_EQ(map->master(3), nullptr);
  EXPECT_TRUE(map->moved(3, {"10.0.0.2", 7000, {}}));
  EXPECT_EQ(*map->master(3), (Target{"10.0.0.2", 7000, {}}));
  EXPECT_EQ(map->master(2)->host, "10.0.0.1");
}

TEST(Slots, AnEmptyHostMeansTheServerThatWasQueried) {
  const ParsedReply empty(array({range(0, 5, "", 7000)}));
  EXPECT_EQ(*SlotMap::read(empty.reply, kAsked)->master(5), (Target{"192.0.2.1", 7000, {}}));
  const ParsedReply null(array({array({integer(0), integer(5), array({"$-1\r\n", integer(7000)})})}));
  EXPECT_EQ(*SlotMap::read(null.reply, kAsked)->master(5), (Target{"192.0.2.1", 7000, {}}));
}

TEST(Slots, RejectAnUnexpectedReply) {
  const auto refused = [](const std::string& text) {
    const ParsedReply parsed(text);
    return !SlotMap::read(parsed.reply, kAsked);
  };
  EXPECT_FALSE(refused("*0\r\n"));
  EXPECT_TRUE(refused("-ERR This instance has cluster support disabled\r\n"));
  EXPECT_TRUE(refused("+OK\r\n"));
  EXPECT_TRUE(refused("*-1\r\n"));
  EXPECT_TRUE(refused(array({integer(1)})));
  EXPECT_TRUE(refused(array({array({})})));
  EXPECT_TRUE(refused(array({array({integer(0), integer(1)})})));
  EXPECT_TRUE(refused(array({array({integer(0), integer(1), array({})})})));
  EXPECT_TRUE(refused(array({array({integer(0), integer(1), array({bulk("a")})})})));
  EXPECT_TRUE(refused(array({range(0, 16384, "a", 7000)})));
  EXPECT_TRUE(refused(array({range(-1, 5, "a", 7000)})));
  EXPECT_TRUE(refused(array({range(5, 4, "a", 7000)})));
  EXPECT_TRUE(refused(array({range(0, 5, "a", 0)})));
  EXPECT_TRUE(refused(array({range(0, 5, "a", 65536)})));
  EXPECT_TRUE(refused(array({range(0, 5, "a b", 7000)})));
  EXPECT_TRUE(refused(array({range(0, 5, "?", 7000)})));
}

TEST(Slots, LimitTheNumberOfMasters) {
  const auto cluster = [](std::size_t masters) {
    std::string text = "*" + std::to_string(masters) + "\r\n";
    for (std::size_t i = 0; i < masters; ++i) {
      text += range(static_cast<int>(i), static_cast<int>(i), "host-" + std::to_string(i), 7000);
    }
    return text;
  };
  const ParsedReply full(cluster(bounds::redis_nodes_max));
  auto map = SlotMap::read(full.reply, kAsked);
  ASSERT_TRUE(map);
  EXPECT_TRUE(map->moved(0, {"host-5", 7000, {}}));
  EXPECT_FALSE(map->moved(1, {"one-too-many", 7000, {}}));
  EXPECT_EQ(map->master(1)->host, "host-1");
  const ParsedReply beyond(cluster(bounds::redis_nodes_max + 1));
  EXPECT_FALSE(SlotMap::read(beyond.reply, kAsked));
}

TEST(Targets, AcceptEveryFormThatRedisSends) {
  EXPECT_EQ(*parse_target("127.0.0.1:6381", kAsked), (Target{"127.0.0.1", 6381, {}}));
  EXPECT_EQ(*parse_target("host.example:6381", kAsked), (Target{"host.example", 6381, {}}));
  EXPECT_EQ(*parse_target("::1:6381", kAsked), (Target{"::1", 6381, {}}));
  EXPECT_EQ(*parse_target("[::1]:6381", kAsked), (Target{"::1", 6381, {}}));
  EXPECT_EQ(*parse_target(":6381", kAsked), (Target{"192.0.2.1", 6381, {}}))
      << "the server that was queried, at another port";
}

TEST(Targets, RejectInvalidHostsAndPorts) {
  for (const std::string_view text :
       {"", "host", "a:0", "a:65536", "a:", "a:-1", "a:1 b", "a b:1", "?:1", "a/b:1", "a:1\n", "[]:1", "a[:1"}) {
    EXPECT_FALSE(parse_target(text, kAsked)) << text;
  }
  const std::string longest(bounds::redis_host_bytes_max, 'a');
  EXPECT_TRUE(parse_target(longest + ":1", kAsked));
  EXPECT_FALSE(parse_target("a" + longest + ":1", kAsked));
}

TEST(Discovery, ReadsTheRoleOfAServer) {
  const ParsedReply master(
      array({bulk("master"), integer(3129659), array({array({bulk("10.0.0.2"), bulk("1"), bulk("2")})})}));
  EXPECT_EQ(*read_role(master.reply, kAsked), (Role{Role::Kind::master, {}}));
  const ParsedReply replica(
      array({bulk("slave"), bulk("10.0.0.1"), integer(9000), bulk("connected"), integer(3167038)}));
  EXPECT_EQ(*read_role(replica.reply, kAsked), (Role{Role::Kind::replica, {"10.0.0.1", 9000, {}}}));
  const ParsedReply sentinel(array({bulk("sentinel"), array({bulk("mymaster")})}));
  EXPECT_EQ(read_role(sentinel.reply, kAsked)->kind, Role::Kind::sentinel);
}

TEST(Discovery, RejectsAnUnexpectedRoleReply) {
  for (const std::string& text : {array({}), array({integer(1)}), array({bulk("slave")}), std::string("+master\r\n"),
                                  array({bulk("slave"), bulk("a"), bulk("9000")}), array({bulk("king"), integer(1)}),
                                  array({bulk("slave"), bulk("a"), integer(0)})}) {
    const ParsedReply parsed(text);
    EXPECT_FALSE(read_role(parsed.reply, kAsked)) << text;
  }
  const ParsedReply refused("-NOAUTH Authentication required.\r\n");
  EXPECT_EQ(read_role(refused.reply, kAsked).error().detail, "ROLE answered NOAUTH Authentication required.");
}

TEST(Discovery, ReadsTheMasterFromASentinel) {
  const ParsedReply parsed(array({bulk("10.0.0.1"), bulk("6379")}));
  EXPECT_EQ(*read_master_address(parsed.reply, kAsked), (Target{"10.0.0.1", 6379, {}}));
  const ParsedReply unknown("*-1\r\n");
  EXPECT_EQ(read_master_address(unknown.reply, kAsked).error().fault, Fault::unknown);
  for (const std::string& text : {array({bulk("a")}), array({bulk("a"), bulk("x")}), array({bulk("a"), integer(1)}),
                                  array({bulk("a"), bulk("1"), bulk("2")}), std::string("-ERR no\r\n")}) {
    const ParsedReply other(text);
    EXPECT_FALSE(read_master_address(other.reply, kAsked)) << text;
  }
}

TEST(Discovery, ReadsASwitchOfTheMaster) {
  const auto switched_to = [](const std::string& text) {
    const ParsedReply parsed(text);
    return read_switch(parsed.reply, "mymaster", kAsked);
  };
  const auto message = [](std::string_view text) {
    return array({bulk("message"), bulk("+switch-master"), bulk(text)});
  };
  EXPECT_EQ(switched_to(message("mymaster 10.0.0.1 6379 10.0.0.2 6380")), (Target{"10.0.0.2", 6380, {}}));
  EXPECT_EQ(switched_to(">3\r\n" + message("mymaster ::1 6379 ::2 6380").substr(4)), (Target{"::2", 6380, {}}));
  EXPECT_FALSE(switched_to(message("another 10.0.0.1 6379 10.0.0.2 6380")));
  EXPECT_FALSE(switched_to(message("mymaster 10.0.0.1 6379 10.0.0.2")));
  EXPECT_FALSE(switched_to(message("mymaster 10.0.0.1 6379 10.0.0.2 6380 more")));
  EXPECT_FALSE(switched_to(message("mymaster 10.0.0.1 6379 10.0.0.2 x")));
  EXPECT_FALSE(switched_to(array({bulk("subscribe"), bulk("+switch-master"), integer(1)})));
  EXPECT_FALSE(switched_to("+OK\r\n"));
}

}  // namespace
}  // namespace weir::redis::topology_test
