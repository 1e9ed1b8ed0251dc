"""What rate limiters get wrong most often, each shown on the running server: one test per mistake, named after it."""

import json
import math
import time
import unittest
import urllib.error
import urllib.request

from redis_servers import Redis, until
from redis_test import Monitor
from serving import Server

LISTEN = """
listen:
  - {address: "127.0.0.1:0", speak: http}
  - {address: "127.0.0.1:0", speak: resp}
  - {address: "127.0.0.1:0", speak: admin}
threads: 1
"""
LIMITS = """
limits:
  orders: {burst: 5, count: 5, period: 1h}
  door: {burst: 1, count: 1, period: 1h}
  monthly: {burst: 100, count: 100, period: 1s, quota: 10/month}
  quick: {burst: 1, count: 1000, period: 1s}
  slow: {burst: 1, count: 1, period: 90500ms}
"""


class Trap(unittest.TestCase):
    def check(self, server, limit, client, path="/v1/check"):
        status, headers, body = server.post(path, {"limit": limit, "id": client})
        return status, headers, json.loads(body)

    def passes(self, server, limit, client, tries=20):
        return [self.check(server, limit, client)[0] for _ in range(tries)].count(200)

    def remaining(self, server, limit, client):
        return self.check(server, limit, client, "/v1/peek")[2]["remaining"]

    def admin(self, server, method, path, body=None):
        request = urllib.request.Request(f"http://127.0.0.1:{server.ports['admin']}{path}", method=method,
                                         data=None if body is None else json.dumps(body).encode(),
                                         headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status, json.loads(answer.read() or b"null")
        except urllib.error.HTTPError as answer:
            with answer:
                return answer.code, json.loads(answer.read())


class InMemory(Trap):
    def test_a_denied_request_burns_no_quota(self):
        server = Server(self, LISTEN + LIMITS)
        both = {"charges": [{"limit": "monthly", "id": "1"}, {"limit": "door", "id": "1"}]}
        self.assertEqual(server.post("/v1/check", both)[0], 200)
        left = self.remaining(server, "monthly", "1")
        for _ in range(30):
            self.assertEqual(server.post("/v1/check", both)[0], 429)
        self.assertEqual((left, self.remaining(server, "monthly", "1")), (9, 9))
        # Nor does it push the next token away: the promised wait only gets shorter.
        waits = [self.check(server, "door", "1")[2]["retry_after"] for _ in range(30)]
        self.assertEqual(waits, sorted(waits, reverse=True))
        self.assertLess(waits[-1], 3600)

    def test_retry_after_is_never_rounded_down(self):
        server = Server(self, LISTEN + LIMITS)
        for limit in ("slow", "door", "monthly"):
            with self.subTest(limit):
                while self.check(server, limit, "2")[0] == 200:
                    pass
                _, headers, answer = self.check(server, limit, "2")
                self.assertEqual(int(headers["Retry-After"]), math.ceil(answer["retry_after"]))
        # A wait of less than a millisecond is not 0. Both requests are decided in one turn.
        for asked, told in ((b"CL.THROTTLE 2 0 1000 1\r\n", [1, 1, 0, 1, 1]), (b"WEIR.CHECK quick 2\r\n", [0, 1, 0, 1, 1])):
            with server.connect("resp") as connection, connection.makefile("rb") as answers:
                connection.sendall(2 * asked)
                lines = [answers.readline() for _ in range(12)]
                self.assertEqual([int(line[1:]) for line in lines[7:]], told)

    def test_a_full_table_does_not_stop_limiting(self):
        server = Server(self, LISTEN + "memory: {max_buckets: 1000}\n" + LIMITS)
        for begin in range(0, 20_000, 500):
            status, _, answers = server.post("/v1/check", [{"limit": "door", "id": str(begin + i)} for i in range(500)])
            self.assertEqual((status, answers.count('"allowed":true,"limit"')), (200, 500))
        self.assertEqual(self.passes(server, "orders", "late"), 5)
        metrics = server.get("admin", "/metrics")
        evicted = next(line for line in metrics.split("\n") if line.startswith("weir_buckets_evicted_total "))
        self.assertGreater(int(evicted.split()[1]), 10_000, "what a full table forgets is counted")

    def test_an_admin_call_that_succeeds_has_changed_something(self):
        server = Server(self, LISTEN + LIMITS)
        self.assertEqual(self.passes(server, "orders", "3"), 5)
        self.assertEqual(self.admin(server, "POST", "/ratelimit/reset", {"id": "3", "limit": "orders"}), (200, {"reset": 1}))
        self.assertEqual(self.remaining(server, "orders", "3"), 5)
        self.assertEqual(self.admin(server, "PUT", "/ratelimit/adjust/orders/3", {"burst": 8, "for": "1h"})[0], 200)
        self.assertEqual(self.passes(server, "orders", "3"), 8)
        self.assertEqual(self.admin(server, "DELETE", "/ratelimit/adjust/orders/3", {})[0], 200)
        self.assertEqual(self.check(server, "orders", "3", "/v1/peek")[2]["burst"], 5)
        self.assertEqual(self.admin(server, "POST", "/ratelimit/access/deny", {"limit": "orders", "id": "4"})[0], 200)
        self.assertEqual(self.check(server, "orders", "4")[0], 403)
        self.assertEqual(self.admin(server, "DELETE", "/ratelimit/access/deny?limit=orders&id=4")[0], 200)
        self.assertEqual(self.check(server, "orders", "4")[0], 200)
        self.assertEqual(self.admin(server, "PUT", "/ratelimit/config", {"limits": {"orders": {"burst": 7}}})[0], 200)
        self.assertEqual(self.passes(server, "orders", "5"), 7)
        self.assertEqual(self.admin(server, "POST", "/ratelimit/reload", {})[0], 200)
        self.assertEqual(self.passes(server, "orders", "6"), 5)

    def test_an_admin_call_that_changes_nothing_says_so(self):
        server = Server(self, LISTEN + LIMITS)
        for expected, method, path, body in (
                ((200, {"reset": 0}), "POST", "/ratelimit/reset", {"id": "nobody"}),
                (404, "POST", "/ratelimit/reset", {"id": "1", "limit": "oders"}),
                (404, "PUT", "/ratelimit/adjust/oders/1", {"burst": 8, "for": "1h"}),
                (400, "PUT", "/ratelimit/adjust/orders/1", {"burst": 0, "for": "1h"}),
                (400, "PUT", "/ratelimit/adjust/orders/1", {"brust": 8, "for": "1h"}),
                (404, "DELETE", "/ratelimit/adjust/orders/nobody", {}),
                (404, "DELETE", "/ratelimit/access/deny?limit=orders&id=nobody", None),
                (400, "PUT", "/ratelimit/config", {"limits": {"orders": {"brust": 7}}}),
                (400, "PUT", "/ratelimit/config", {"limits": {"oders": {"burst": 7}}})):
            with self.subTest(f"{method} {path} {body}"):
                answer = self.admin(server, method, path, body)
                self.assertEqual(answer if isinstance(expected, tuple) else answer[0], expected, answer)


class Requests(Trap):
    """Who a request is counted for."""

    def authorize(self, server, *headers):
        lines = b"".join(b"%s: %s\r\n" % (name.encode(), value.encode()) for name, value in headers)
        with server.connect("http") as connection:
            connection.sendall(b"GET /v1/authorize HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" + lines + b"\r\n")
            with connection.makefile("rb") as answer:
                return int(answer.readline().split()[1])

    def test_the_leftmost_forwarded_address_is_not_trusted(self):
        policy = "limits: {per-ip: {key: ip, burst: 3, count: 3, period: 1h}}\naccess: {trusted_proxies: [127.0.0.1]}\n"
        server = Server(self, LISTEN + policy)
        forged = [self.authorize(server, ("X-Forwarded-For", f"198.51.100.{i}, 203.0.113.9")) for i in range(10)]
        self.assertEqual(forged.count(200), 3, "the proxy has appended the address of its peer")
        other = [self.authorize(server, ("X-Forwarded-For", "203.0.113.9, 203.0.113.10")) for _ in range(10)]
        self.assertEqual(other.count(200), 3, "nobody spends what belongs to another")

    def test_no_two_keys_are_joined_to_one(self):
        server = Server(self, LISTEN + """
limits:
  pair: {key: [header:x-a, header:x-b], burst: 1, count: 1, period: 1h}
  route: {burst: 1, count: 1, period: 1h, key: header:x-a, per_route: true}
routes:
  - {name: a, match: {path: /a}, limits: [route]}
  - {name: rest, match: {path: "/**"}, limits: [pair]}
""")
        pairs = [("a:b", "c"), ("a", "b:c"), ("a%3Ab", "c"), ("a", "b%3Ac"), ("a%253Ab", "c"), ("a:", "b"), ("a", ":b"),
                 (":", ":"), ("%3A", "%3A"), ("a", "b"), ("b", "a"), ("A", "b"), ("x" * 256, "y"), ("x" * 257, "y"),
                 ("x" * 258, "y")]
        for turn, status in (("first", 200), ("second", 429)):
            for a, b in pairs:
                self.assertEqual(self.authorize(server, ("X-A", a), ("X-B", b)), status, f"{turn} request of {a[:20]} {b}")
        self.assertEqual(self.authorize(server, ("X-Forwarded-Uri", "/a"), ("X-A", "b")), 200)
        # The caller's own buckets are apart from those of limits, whatever they are called.
        for key in ("pair:a:b", "route@a:b", "b:pair:a:b"):
            status, _, _ = server.post("/v1/throttle", {"key": key, "burst": 1, "count": 1, "period": "1h"})
            self.assertEqual(status, 200, key)


class Reloads(Trap):
    def test_a_reload_applies_whole_or_not_at_all(self):
        more = "failure_code: 501\nheaders: {ratelimit: x-ratelimit}\noverrides: {'orders:vip': {burst: 9}}\n"
        server = Server(self, LISTEN + LIMITS + more)
        changed = more.replace("x-ratelimit", "ietf").replace("burst: 9", "burst: 8")
        # Everything in it is fine but one entry, which is the last that is read.
        server.write(LISTEN + LIMITS.replace("burst: 5", "burst: 6") + changed + "jwt: {leeway: 1h}\n")
        status, answer = self.admin(server, "POST", "/ratelimit/reload", {})
        self.assertEqual(status, 400)
        self.assertIn("leeway 1h must be 0s to 5m", answer["message"])

        def in_force():
            _, headers, answer = self.check(server, "orders", "1", "/v1/peek")
            return answer["burst"], self.check(server, "orders", "vip", "/v1/peek")[2]["burst"], "RateLimit" in headers

        self.assertEqual(in_force(), (5, 9, False))
        server.write(LISTEN + LIMITS.replace("burst: 5", "burst: 6") + changed)
        self.assertEqual(self.admin(server, "POST", "/ratelimit/reload", {})[0], 200)
        self.assertEqual(in_force(), (6, 8, True))


class OnRedis(Trap):
    """Overload that is taken for an outage: redis_overload_test.py, and server/overload_test.cc without a clock."""

    def serve(self, redis, more=""):
        server = Server(self, LISTEN + f"store: redis\nredis: {{endpoints: ['127.0.0.1:{redis.port}'], timeout: 5s}}\n" + more + LIMITS)
        server.wait_for_metric("weir_store_up 1\n")
        return server

    def test_a_skewed_clock_multiplies_no_limit(self):
        """redis_hammer_test.py has servers whose clocks disagree. Here is why they may: Redis hears no time of theirs."""
        redis = Redis(self)
        one, two = self.serve(redis), self.serve(redis)
        monitor = Monitor(redis)
        passed = [self.check(server, "orders", "1")[0] for server in (one, two, one)].count(200)
        asked, _ = monitor.stop()
        questions = [line[line.index('"EVALSHA"'):] for line in asked if '"EVALSHA"' in line]
        self.assertEqual((passed, len(questions), len(set(questions))), (3, 3, 1), asked)
        self.assertEqual(self.passes(one, "orders", "1") + self.passes(two, "orders", "1"), 2)

    def test_a_bucket_lives_until_it_is_full(self):
        redis = Redis(self)
        server = self.serve(redis)
        for limit in ("orders", "door"):
            _, _, answer = self.check(server, limit, "1")
            # Read after the answer: less is left than was then, and not less than the bucket needs.
            script = "local t = redis.call('TIME'); return {t[1], t[2], redis.call('PEXPIRETIME', KEYS[1]), redis.call('GET', KEYS[1])}"
            seconds, microseconds, expires_ms, tat = redis("EVAL", script, 1, f"weir:b:{limit}:1")
            now_ns = (int(seconds) * 1_000_000 + int(microseconds)) * 1000
            self.assertGreaterEqual(expires_ms * 1_000_000, int(tat), limit)
            self.assertGreater(int(tat), now_ns, limit)
            self.assertLessEqual(int(tat) - now_ns, answer["reset_after"] * 1e9, limit)
        # A quota's counter lives until its window ends, though the last spend may be weeks ago by then.
        before = time.time()
        _, _, answer = self.check(server, "monthly", "1")
        expires_ms = redis("PEXPIRETIME", "weir:w:monthly:1")
        self.assertGreater(expires_ms / 1000 + 0.01, before + answer["reset_after"])

    def test_fail_open_is_noticed(self):
        redis = Redis(self)
        server = self.serve(redis, "failure_policy: passThrough\n")
        self.assertNotIn("degraded", self.check(server, "door", "1")[2])
        redis.kill()
        until("Redis is known to be away", lambda: self.check(server, "door", "1")[2].get("degraded") is True)
        status, _, answer = self.check(server, "door", "1")
        self.assertEqual((status, answer["degraded"]), (200, True), "every answer says that nobody was limited")
        server.wait_for_metric("weir_store_up 0\n")
        self.assertRegex(server.get("admin", "/metrics"), r'weir_store_fallback_total\{policy="passThrough"\} [1-9]')
        with self.assertRaises(urllib.error.HTTPError) as refused:
            server.get("http", "/readyz?deep=true")
        self.assertEqual(refused.exception.code, 503)
        refused.exception.close()
        self.assertEqual(server.end()[1].count("Redis unavailable"), 1, "one line in the log")


if __name__ == "__main__":
    unittest.main()
