"""Clients that ask more than Redis can answer: that is no outage, and nobody else pays for it.

The control is relative to `redis.timeout`, so the timeout is long enough for a machine that is busy with other tests.
"""

import re
import threading
import time
import unittest

from flooding import OVERLOADED, Polite, command, flood
from redis_servers import Redis, until
from serving import Server

POLICY = """
listen:
  - {{address: "127.0.0.1:0", speak: http}}
  - {{address: "127.0.0.1:0", speak: resp}}
  - {{address: "127.0.0.1:0", speak: admin}}
threads: 1
store: redis
redis: {{endpoints: ["127.0.0.1:{port}"], timeout: {timeout}ms}}
limits:
  orders: {{burst: 5, count: 5, period: 1h}}
  flood: {{burst: 1000000, count: 1000000, period: 1s}}
"""
TIMEOUT = 4.0


def metric(server, name):
    return sum(int(value) for value in re.findall(rf"^{name}(?:{{.*}})? (\d+)$", server.get("admin", "/metrics"), re.M))


class RedisOverloadTest(unittest.TestCase):
    def start(self, timeout=TIMEOUT):
        self.redis = Redis(self)
        self.server = Server(self, POLICY.format(port=self.redis.port, timeout=int(timeout * 1000)))
        self.server.wait_for_metric("weir_store_up 1\n")
        return self.server

    def be_polite(self, seconds, client):
        """Asks for a bucket of five, and for others that Redis must be asked for; every answer is awaited."""
        polite = Polite(self.server.ports["resp"])
        self.addCleanup(polite.close)
        passed = 0
        end = time.monotonic() + seconds
        while time.monotonic() < end or len(polite.times) < 40:
            passed += polite.ask("WEIR.CHECK", "orders", client)
            self.assertTrue(polite.ask("WEIR.CHECK", "flood", client))
            polite.ping()
            time.sleep(0.005)
        self.assertEqual(polite.errors, [])
        self.assertEqual(passed, 5, f"of {len(polite.times) // 2} requests")
        return polite

    def assert_never_down(self):
        self.assertEqual(metric(self.server, "weir_store_up"), 1)
        self.assertEqual(metric(self.server, "weir_store_fallback_total"), 0)
        _, log = self.server.end()
        self.assertNotIn("unavailable", log)

    def test_floods_of_4_16_and_64_connections_are_no_outage(self):
        server = self.start()
        for connections in (4, 16, 64):
            with flood(server.ports["resp"], [4096] * connections) as flooders:
                polite = self.be_polite(3, f"polite-{connections}")
                self.assertEqual(metric(server, "weir_store_up"), 1)
            # A busy machine delays pings as well: what they take is not the store's queue.
            self.assertLessEqual(polite.percentile(polite.times, 0.99), TIMEOUT / 4 + polite.percentile(polite.pings, 0.99))
            self.assertLessEqual(max(polite.times), TIMEOUT + 0.01 + max(polite.pings))
            self.assertEqual([counts[b"-"] - counts[b"-ERR overloaded\r\n"] for counts in flooders], [0] * connections)
        self.assert_never_down()

    def test_a_redis_slowed_down_tenfold_is_no_outage(self):
        server = self.start()
        slow = threading.Event()
        ended = threading.Event()

        def hold_back():
            while not ended.is_set():
                if slow.is_set():
                    self.redis.pause()
                    time.sleep(0.009)
                    self.redis.resume()
                time.sleep(0.001)

        braking = threading.Thread(target=hold_back)
        braking.start()
        self.addCleanup(braking.join)
        self.addCleanup(ended.set)
        with flood(server.ports["resp"], [4096] * 16):
            self.be_polite(1, "before")
            slow.set()
            self.be_polite(3, "meanwhile")
            slow.clear()
        self.assert_never_down()

    def test_a_redis_that_stops_during_a_flood_is_an_outage_for_all_within_the_timeout(self):
        server = self.start(timeout=0.5)
        polite = Polite(server.ports["resp"])
        self.addCleanup(polite.close)
        with flood(server.ports["resp"], [4096] * 16):
            polite.ask("WEIR.CHECK", "flood", "polite")
            self.redis.pause()
            self.addCleanup(self.redis.resume)
            polite.times.clear()
            until("the server notices", lambda: polite.ping() or not polite.ask("WEIR.PEEK", "flood", "x") or
                  metric(server, "weir_store_up") == 0)
            self.assertTrue(polite.ask("WEIR.CHECK", "flood", "polite"), "passThrough")
            until("everybody gets the policy", lambda: metric(server, "weir_store_fallback_total") > 1000)
            for _ in range(40):
                polite.ping()
            # Much longer than the timeout, and much shorter than a client would wait for an outage that nobody notices.
            self.assertLessEqual(max(polite.times), 10 * 0.5 + max(polite.pings))
        # What waited when Redis stopped may still be told that Redis is busy: it had replied within the timeout.
        self.assertEqual([error for error in polite.errors if error != OVERLOADED], [])
        self.redis.resume()
        _, log = server.end()
        self.assertEqual(log.count("Redis unavailable"), 1, log)

    def test_a_check_pipelined_behind_a_refund_is_not_answered_from_the_denial_cache(self):
        server = self.start()
        with flood(server.ports["resp"], [4096] * 16):
            polite = self.be_polite(0.2, "refunded")
            for _ in range(20):
                self.assertFalse(polite.ask("WEIR.CHECK", "orders", "refunded"))
                polite.socket.sendall(command("WEIR.REFUND", "orders", "refunded") +
                                      command("WEIR.CHECK", "orders", "refunded"))
                answer = b""
                while answer.count(b"\r\n") < 12:
                    answer += polite.socket.recv(4096)
                self.assertEqual(re.findall(rb"\*5\r\n:(\d)", answer), [b"1", b"1"], answer)
        self.assert_never_down()

    def test_memory_of_unanswered_questions_stays_small_and_is_returned(self):
        server = self.start(timeout=2)
        with open(f"/proc/{server.process.pid}/maps", encoding="utf-8") as maps:
            if "libasan" in maps.read():
                self.skipTest("a sanitizer keeps memory that was freed")
        with flood(server.ports["resp"], [4096] * 60):
            self.be_polite(1, "warm")
        before = server.resident_bytes()
        with flood(server.ports["resp"], [4096] * 60):
            self.be_polite(2, "polite")
            during = server.resident_bytes()
        self.assertLess(during, 128 << 20)
        self.assertLess(server.resident_bytes(), before + (32 << 20))


if __name__ == "__main__":
    unittest.main()
