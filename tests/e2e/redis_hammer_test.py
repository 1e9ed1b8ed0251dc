"""Servers with clocks that disagree, killed ones, and a cluster whose slots move never admit more than the limit, in any
window of time. HAMMER=quick: only for a moment, and with the clocks as they are."""

import binascii
import email.utils
import os
import random
import re
import time
import unittest

from hammering import Bucket, Spend, hammer, kill, most_promised, skewed
from redis_cluster_test import cluster_of_six, masters_of
from redis_servers import Redis, free_port
from serving import Server

QUICK = os.environ.get("HAMMER") == "quick"
SKEWS = (-10, -3, 4, 10)  # seconds

POLICY = """
listen:
  - {{address: "127.0.0.1:{http}", speak: http}}
  - {{address: "127.0.0.1:{resp}", speak: resp}}
  - {{address: "127.0.0.1:0", speak: admin}}
threads: 1
store: {store}
redis: {{endpoints: ["127.0.0.1:{redis}"], mode: {mode}, timeout: 10s}}
failure_policy: failClosed
limits:
  slow: {{burst: 5, count: 2, period: 1s}}
  odd: {{burst: 7, count: 7, period: 3s}}
  even: {{burst: 20, count: 50, period: 1s}}
  fast: {{burst: 50, count: 200, period: 1s}}
  dear: {{burst: 30, count: 30, period: 1s}}
  hourly: {{quota: 200/hour}}
  leased: {{burst: 200, count: 1000, period: 1s, lease: {{tokens: 32, servers: 4}}}}
"""

SECOND = 1_000_000_000
NUMBERS = {"slow": (5, 2, 1, (1,)), "odd": (7, 7, 3, (1,)), "even": (20, 50, 1, (1,)), "fast": (50, 200, 1, (1,)),
           "dear": (30, 30, 1, (1, 2, 5)), "leased": (200, 1000, 1, (1,))}


def bucket(limit, who):
    burst, count, period, costs = NUMBERS[limit]
    return Bucket(limit, who, burst, -(-period * SECOND // count), costs)


BUCKETS = [bucket(limit, str(who)) for limit in ("slow", "odd", "even", "fast", "dear") for who in range(10)]
LEASED = [bucket("leased", str(who)) for who in range(10)]
# A quota gives nothing back within its window.
QUOTA = Bucket("hourly", "0", 200, 3600 * SECOND, (1,))


class TheCheck(unittest.TestCase):
    """It must be right about histories of which everything is known, before it is believed about others."""

    def greedy(self, burst, interval, count):
        """All that a bucket ever gives, at once: no history has more in any window."""
        return [Spend(at, at, 1) for at in [0] * burst + [interval * i for i in range(1, count + 1)]]

    def test_finds_a_history_at_its_limit_good(self):
        self.assertEqual(most_promised(self.greedy(5, 100, 1000), 100), 5 * 100)

    def test_finds_one_token_too_many_wherever_it_is(self):
        spends = self.greedy(5, 100, 1000)
        for at in (0, 1, 50, 12_345, 99_999):
            self.assertGreater(most_promised(spends + [Spend(at, at, 1)], 100), 5 * 100)

    def test_reports_nothing_that_may_have_happened_elsewhere_in_its_bracket(self):
        draw = random.Random(1)
        spends = [Spend(s.begin - draw.randrange(300), s.end + draw.randrange(300), 1) for s in self.greedy(5, 100, 1000)]
        self.assertLessEqual(most_promised(spends, 100), 5 * 100)
        # Twice as much as the limit is noticed however wide the brackets are.
        self.assertGreater(most_promised(spends * 2, 100), 5 * 100)

    def test_agrees_with_looking_at_every_window(self):
        draw = random.Random(2)
        for _ in range(300):
            spends = []
            for _ in range(draw.randrange(1, 12)):
                begin = draw.randrange(100)
                spends.append(Spend(begin, begin + draw.randrange(30), draw.randrange(1, 4)))
            windows = [(s.begin, e.end) for s in spends for e in spends if s.begin <= e.end]
            every = max(10 * sum(s.cost for s in spends if start <= s.begin and s.end <= end) - (end - start)
                        for start, end in windows)
            self.assertEqual(most_promised(spends, 10), max(every, 0))


class Hammer(unittest.TestCase):
    def serve(self, redis, skew=0, store="redis", mode="single"):
        ports = {"http": free_port(), "resp": free_port()}
        server = Server(self, POLICY.format(**ports, redis=redis, store=store, mode=mode), environment={} if QUICK else skewed(skew))
        if store == "redis":
            server.wait_for_metric("\nweir_store_up 1\n")
        return server

    def assert_kept(self, history, buckets=BUCKETS):
        self.assertEqual(history.violations(), {})
        for asked in buckets:
            # A busy machine may not ask for all that the fast ones have.
            if asked.interval > SECOND // 10:
                self.assertGreater(history.denied[asked], 0, f"nobody wanted more of {asked}")
            self.assertGreater(history.admitted(asked), asked.burst, f"what came back to {asked} was never given")

    def assert_skewed(self, servers):
        for server, skew in zip(servers, SKEWS):
            before = time.time()
            status, headers, _ = server.post("/v1/peek", {"limit": "slow", "id": "nobody"})
            self.assertEqual(status, 200)
            told = email.utils.parsedate_to_datetime(headers["Date"]).timestamp() - skew
            self.assertGreater(told, before - 2.5)
            self.assertLess(told, time.time() + 2.5)

    def test_four_servers_whose_clocks_disagree(self):
        redis = Redis(self)
        servers = [self.serve(redis.port, skew) for skew in SKEWS]
        if not QUICK:
            self.assert_skewed(servers)
        hour = time.time() // 3600
        history = hammer([s.ports["resp"] for s in servers], BUCKETS + [QUOTA], 3 if QUICK else 30)
        self.assertEqual((history.undecided, history.lost), (0, 0))
        windows = 1 + time.time() // 3600 - hour
        self.assertLessEqual(history.admitted(QUOTA), windows * QUOTA.burst)
        self.assertGreater(history.admitted(QUOTA), QUOTA.burst // 2)
        del history.spends[QUOTA]
        self.assert_kept(history)
        # They were pressed so hard that one more would have been noticed.
        for slow in BUCKETS[:10]:
            spends = history.spends[slow]
            one_more = max(most_promised(spends + [again], slow.interval) for again in spends)
            self.assertGreater(one_more, slow.burst * slow.interval)

    def test_servers_that_do_not_share_a_redis_are_found_out(self):
        servers = [self.serve(1, store="memory") for _ in range(2)]
        asked = BUCKETS[:20]  # they refill so slowly that a busy machine asks for too much of each
        history = hammer([s.ports["resp"] for s in servers], asked, 2)
        self.assertEqual(len(history.violations()), len(asked), "every limit was broken, and every one is reported")

    @unittest.skipIf(QUICK, "the release build does it")
    def test_a_server_killed_every_second(self):
        redis = Redis(self)
        servers = [self.serve(redis.port, skew) for skew in SKEWS]
        history = self.hammer_and_kill(servers, BUCKETS)
        self.assert_kept(history)

    def hammer_and_kill(self, servers, buckets, **options):
        killed = []

        def kill_one_by_one(ended):
            while not ended():
                time.sleep(1)
                victim = servers[len(killed) % len(servers)]
                kill(victim)
                victim.start()
                killed.append(victim)
        history = hammer([s.ports["resp"] for s in servers], buckets, 10, kill_one_by_one, **options)
        # How many were killed in that time is the machine's affair; that it was felt is the test's.
        self.assertGreater(history.lost, 0, f"{len(killed)} servers were killed, and nobody noticed")
        return history

    @unittest.skipIf(QUICK, "the release build does it")
    def test_leases(self):
        redis = Redis(self)
        servers = [self.serve(redis.port, skew) for skew in SKEWS]
        history = hammer([s.ports["resp"] for s in servers], LEASED, 10, rest=0.2)
        self.assert_leased(servers)
        self.assert_kept(history, LEASED)

    @unittest.skipIf(QUICK, "the release build does it")
    def test_leases_whose_holders_are_killed(self):
        redis = Redis(self)
        servers = [self.serve(redis.port, skew) for skew in SKEWS]
        history = self.hammer_and_kill(servers, LEASED, rest=0.2)
        self.assert_leased(servers)
        self.assert_kept(history, LEASED)

    def assert_leased(self, servers):
        hits = [int(re.search(r"^weir_lease_hits_total (\d+)$", s.get("admin", "/metrics"), re.MULTILINE)[1]) for s in servers]
        self.assertGreater(sum(hits), 100)

    @unittest.skipIf(QUICK, "the release build does it")
    def test_a_cluster_that_moves_its_slots(self):
        nodes = cluster_of_six(self)
        servers = [self.serve(nodes[0].port, skew, mode="cluster") for skew in SKEWS]
        moves = []
        history = hammer([s.ports["resp"] for s in servers], BUCKETS, 12, lambda ended: self.move_slots(nodes, moves, ended))
        self.assertGreater(len(moves), 20)
        self.assert_kept(history)

    def move_slots(self, nodes, moves, ended):
        """The slot of every bucket to the next master, round and round, key by key as a reshard does it."""
        masters = masters_of(nodes)
        names = {master.port: master("CLUSTER", "MYID") for master in masters}
        slots = {binascii.crc_hqx(f"weir:b:{b.limit}:{b.id}".encode(), 0) % 16384 for b in BUCKETS}
        while not ended():
            for slot in slots:
                if ended():
                    return
                owner = next(master for master in masters if self.owns(master, names[master.port], slot))
                target = masters[(masters.index(owner) + 1) % len(masters)]
                move_slot(slot, owner, target, names, masters)
                moves.append(slot)

    def owns(self, node, name, slot):
        return any(first <= slot <= last and master[2] == name for first, last, master, *_ in node("CLUSTER", "SLOTS"))


def move_slot(slot, source, target, names, masters):
    """As redis-cli --cluster reshard moves one, with a moment between its steps for requests to meet it."""
    target("CLUSTER", "SETSLOT", slot, "IMPORTING", names[source.port])
    source("CLUSTER", "SETSLOT", slot, "MIGRATING", names[target.port])
    time.sleep(0.01)
    while keys := source("CLUSTER", "GETKEYSINSLOT", slot, 10):
        source("MIGRATE", "127.0.0.1", target.port, "", 0, 5000, "KEYS", *keys)
    time.sleep(0.01)
    for master in [target, source, *masters]:
        master("CLUSTER", "SETSLOT", slot, "NODE", names[target.port])


if __name__ == "__main__":
    unittest.main()
