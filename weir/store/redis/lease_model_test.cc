// Leases keep the limit in every window, whatever happens: servers that crash, messages that are late, lost or
// reordered, and clocks that disagree. Runs the real Leases against the model of the script.
#include "weir/store/redis/lease_model_test.h"

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <vector>

namespace weir::redis::lease_model_test {
namespace {

using namespace std::chrono_literals;

constexpr Limit kLimit = Limit::per_second(1000).with_burst(48);
constexpr Lease kLease{8, 4};

// Owns the time; every server reads it with its own offset.
class World {
 public:
  World(unsigned seed, const Limit& shared, Count places)
      : random_(seed), terms_{shared, kLease}, redis_({shared, Lease{kLease.tokens, places}}) {
    for (std::size_t i = 0; i < 6; ++i) start(servers_.emplace_back());
  }

  // Returns false if some window exceeded the limit.
  bool run(int steps) {
    for (int i = 0; i < steps && holds_; ++i) {
      now_ += Duration{below(8) == 0 ? below(80'000'000) : below(200'000)};
      for (Server& server : servers_) end_due(server);
      const auto what = below(100);
      if (what < 50) {
        request(servers_[below(servers_.size())], below(12));
      } else if (what < 84) {
        deliver(below(30));
      } else if (what < 96) {
        besiege();
      } else if (what == 96) {
        start(servers_[below(servers_.size())]);
      } else if (what == 97) {
        messages_.clear();
      } else if (what == 98 && below(3) == 0) {
        redis_.reset();
        seen_ = {};
      }
    }
    return holds_;
  }
  Count leased() const { return leased_; }

 private:
  struct Held {
    Time until;
    std::uint64_t serial;
  };
  struct Server {
    std::unique_ptr<Leases> leases;
    std::uint64_t life = 0;  // counts its starts
    Duration offset{};
    std::vector<Held> held;
  };

  std::uint64_t below(std::uint64_t end) { return random_() % end; }
  Time clock(const Server& server) const { return now_ + server.offset; }

  void start(Server& server) {
    server.life = ++lives_;
    server.leases = std::make_unique<Leases>(
        Leases::Options{.holder = std::to_string(server.life), .key = {server.life, 1}, .buckets_max = 16});
    server.offset = Duration{below(20'000'000'000)};
    server.held.clear();
  }

  // Tokens are admitted now. The limit holds in every window if a bucket of the whole limit never runs dry.
  void pass(Count tokens) {
    const auto step = gcra::spend(kLimit, seen_, tokens, now_);
    seen_ = step.tat;
    holds_ = holds_ && step.decision.allowed;
  }

  // The worst case: every server is hot at no cost and has a lease, all stay silent until the shared bucket is full
  // again, and then all spend everything at once.
  void besiege() {
    for (Server& server : servers_) request(server, 9);
    messages_.clear();
    const std::size_t first = below(servers_.size());
    for (std::size_t i = 0; i < servers_.size(); ++i) {
      Server& server = servers_[(first + i) % servers_.size()];
      request(server, 1 + below(3));
      deliver(below(30));
      now_ += Duration{below(16'000'000)};
      if (below(10) == 0) start(server);
    }
    now_ += Duration{below(50'000'000)};
    for (Server& server : servers_) request(server, 16);
    deliver(below(200));
  }

  void request(Server& server, std::uint64_t times) {
    for (; times > 0; --times) request(server);
  }
  void request(Server& server) {
    const Count cost = below(4) == 0 ? static_cast<Count>(1 + below(3)) : 1;
    const Leases::Answer answer = server.leases->spend(1, terms_, cost, clock(server));
    switch (answer.way) {
      case Leases::Way::leased:
        ++leased_;
        pass(cost);
        return;
      case Leases::Way::alone:
        send([this, cost] {
          if (redis_.spend(cost, now_)) pass(cost);
        });
        return;
      case Leases::Way::gather:
        break;
    }
    if (answer.unspent.tokens > 0) give_back(server, answer.unspent.tokens, answer.unspent.serial);
    const auto asks = static_cast<Count>(1 + below(3));
    send([this, &server, life = server.life, answer, asks, cost, sent = clock(server)] {
      const auto granted = redis_.lease(cost, asks, answer.want, std::to_string(life), answer.serial, now_);
      pass_if(granted.fit * cost);
      send([this, &server, life, answer, granted, sent] {
        if (server.life == life) reply(server, answer, granted, sent);
      });
    });
  }
  void pass_if(Count tokens) {
    if (tokens > 0) pass(tokens);
  }

  void reply(Server& server, const Leases::Answer& answer, const LeaseModel::Granted& granted, Time sent) {
    if (granted.leased == 0) {
      server.leases->refused(1, answer.serial, clock(server));
    } else if (server.leases->granted(1, answer.serial, granted.leased, granted.left, sent, clock(server))) {
      server.held.push_back({sent + kLeaseSpent, answer.serial});
    } else {
      give_back(server, granted.leased, answer.serial);
    }
  }

  void end_due(Server& server) {
    std::erase_if(server.held, [&](const Held& held) {
      if (held.until > clock(server) || below(2) == 0) return false;
      const Count rest = server.leases->end(1, held.serial);
      if (rest > 0) give_back(server, rest, held.serial);
      return true;
    });
  }
  void give_back(const Server& server, Count tokens, std::uint64_t serial) {
    send([this, life = server.life, tokens, serial] { redis_.give_back(tokens, std::to_string(life), serial, now_); });
  }

  void send(std::function<void()> message) { messages_.push_back(std::move(message)); }
  // Delivers mostly the oldest message, sometimes any; sometimes loses it.
  void deliver(std::uint64_t times) {
    for (; times > 0 && !messages_.empty(); --times) {
      if (below(10) == 0) std::swap(messages_.front(), messages_[below(messages_.size())]);
      const auto message = std::move(messages_.front());
      messages_.pop_front();
      if (below(30) != 0) message();
    }
  }

  std::mt19937_64 random_;
  Leases::Terms terms_;
  LeaseModel redis_;
  std::deque<Server> servers_;
  std::deque<std::function<void()>> messages_;
  std::uint64_t lives_ = 0;
  Time now_{100s};
  Time seen_{};
  bool holds_ = true;
  Count leased_ = 0;
};

constexpr int kWorlds = 40;
constexpr int kSteps = 600;

int broken_worlds(const Limit& shared, Count places) {
  int broken = 0;
  for (unsigned seed = 0; seed < kWorlds; ++seed) broken += World(seed, shared, places).run(kSteps) ? 0 : 1;
  return broken;
}

TEST(LeaseModel, NoWindowSeesMoreThanTheLimit) {
  Count leased = 0;
  for (unsigned seed = 0; seed < kWorlds; ++seed) {
    World world(seed, kLimit.less(kLease.tokens * kLease.servers), kLease.servers);
    ASSERT_TRUE(world.run(kSteps)) << "seed " << seed;
    leased += world.leased();
  }
  EXPECT_GT(leased, kWorlds * 50);
}

TEST(LeaseModel, WithoutItsPartsTheLimitWouldBreak) {
  EXPECT_GT(broken_worlds(kLimit, kLease.servers), 0) << "the shared bucket is smaller by all leases";
  EXPECT_GT(broken_worlds(kLimit.less(kLease.tokens * kLease.servers), 100), 0) << "and they are no more than that";
}

}  // namespace
}  // namespace weir::redis::lease_model_test
