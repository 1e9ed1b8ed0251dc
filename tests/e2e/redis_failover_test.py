"""What requests get while Redis cannot be asked, and that everything mends itself: real redis-server processes killed,
paused, emptied, made replicas, filled up, cut off mid-reply."""

import datetime
import json
import re
import subprocess
import tempfile
import time
import unittest
import urllib.error

from redis_servers import Proxy, Redis, free_port, until
from serving import ENVIRONMENT, WEIR, Server

POLICY = """
listen:
  - {{address: "127.0.0.1:0", speak: http}}
  - {{address: "127.0.0.1:0", speak: resp}}
  - {{address: "127.0.0.1:0", speak: admin}}
threads: 2
store: redis
log: {{format: {log}}}
redis: {{endpoints: [{endpoints}], mode: {mode}, timeout: {timeout}, fallback_buckets: 1000, {more}}}
failure_code: 503
limits:
  open: {{burst: 3, count: 3, period: 1h}}
  closed: {{burst: 3, count: 3, period: 1h, failure_policy: failClosed}}
  teapot: {{burst: 3, count: 3, period: 1h, failure_policy: failClosed, failure_code: 418}}
  local: {{burst: 3, count: 3, period: 1h, failure_policy: inMemoryFallback}}
"""


def policy(*ports, mode="single", more="", timeout="2s", log="text"):
    return POLICY.format(endpoints=", ".join(f'"127.0.0.1:{port}"' for port in ports), mode=mode, more=more,
                         timeout=timeout, log=log)


class Failing(unittest.TestCase):
    """A server on a Redis that a test breaks and mends."""

    def serve(self, *ports, **settings):
        self.ids = 0
        return Server(self, policy(*ports, **settings))

    def ask(self, server, limit, who):
        """Status and answer of one check. Nobody waits for longer than a timeout and what a busy machine adds."""
        begin = time.monotonic()
        status, _, body = server.post("/v1/check", {"limit": limit, "id": who})
        self.assertLess(time.monotonic() - begin, 10)
        return status, json.loads(body)

    def fresh(self):
        self.ids += 1
        return f"client-{self.ids}"

    def assert_healthy(self, server):
        who = self.fresh()
        for limit in ("open", "closed", "local"):
            for left in (2, 1, 0):
                status, answer = self.ask(server, limit, who)
                self.assertEqual((status, answer["remaining"]), (200, left), answer)
                self.assertNotIn("degraded", answer)
            self.assertEqual(self.ask(server, limit, who)[0], 429)

    def assert_policies(self, server):
        who = self.fresh()
        for _ in range(5):
            status, answer = self.ask(server, "open", who)
            self.assertEqual((status, answer["allowed"], answer["degraded"]), (200, True, True))
            status, answer = self.ask(server, "closed", who)
            self.assertEqual((status, answer["error"]), (503, "store_unavailable"))
            status, answer = self.ask(server, "teapot", who)
            self.assertEqual((status, answer["error"]), (418, "store_unavailable"))
        for expected in (200, 200, 200, 429, 429):
            status, answer = self.ask(server, "local", who)
            self.assertEqual((status, answer.get("degraded")), (expected, True), answer)
        self.assertTrue(server.resp("WEIR.CHECK", "closed", who).startswith("-UNAVAILABLE "))

    def until_degraded(self, server):
        until("requests get the policy", lambda: "degraded" in self.ask(server, "open", self.fresh())[1])

    def until_recovered(self, server):
        """On every loop: each of several connections is on any of them."""
        def recovered():
            decided = all("degraded" not in self.ask(server, "open", self.fresh())[1] for _ in range(10))
            return decided and "\nweir_store_up 1\n" in server.get("admin", "/metrics")
        until("requests are decided by Redis again", recovered)

    def assert_metrics(self, server, up):
        def told():
            self.ask(server, "open", self.fresh())
            return f"\nweir_store_up {up}\n" in server.get("admin", "/metrics")
        until(f"weir_store_up is {up}", told)
        until("a deep probe tells the same", lambda: self.deep(server) == ("ready" if up else "store unavailable"))

    def deep(self, server, speak="http"):
        try:
            return json.loads(server.get(speak, "/readyz?deep=true"))["status"]
        except urllib.error.HTTPError as error:
            with error:
                self.assertEqual(error.code, 503)
                return json.loads(error.read())["status"]

    def assert_logged_once(self, server):
        """One line when Redis goes, one when it is back, however many requests and loops there were."""
        code, rest = server.end()
        self.assertEqual(code, 0)
        self.assertEqual(rest.count("Redis unavailable"), 1, rest)
        self.assertEqual(rest.count("Redis available again"), 1, rest)

    def break_and_mend(self, server, broken, mended, forgets=False):
        """What was spent before stays spent, unless Redis `forgets`: then everybody has one burst more and not two."""
        self.until_recovered(server)
        self.assert_healthy(server)
        spender = self.fresh()
        self.assertEqual([self.ask(server, "closed", spender)[0] for _ in range(4)], [200, 200, 200, 429])
        broken()
        self.until_degraded(server)
        self.assert_policies(server)
        self.assert_metrics(server, 0)
        mended()
        self.until_recovered(server)
        for _ in range(3 if forgets else 0):  # a denial may still be remembered
            until("one burst more", lambda: self.ask(server, "closed", spender)[0] == 200)
        self.assertEqual([self.ask(server, "closed", spender)[0] for _ in range(5)], [429] * 5)
        self.assert_healthy(server)
        self.assert_metrics(server, 1)
        self.assert_logged_once(server)


class Single(Failing):
    def test_killed_and_restarted_empty(self):
        redis = Redis(self)
        server = self.serve(redis.port)
        self.break_and_mend(server, redis.kill, redis.start, forgets=True)

    def test_paused(self):
        redis = Redis(self)
        self.break_and_mend(self.serve(redis.port), redis.pause, redis.resume)

    def test_out_of_memory(self):
        redis = Redis(self, "--maxmemory-policy", "noeviction")
        self.break_and_mend(self.serve(redis.port), lambda: redis("CONFIG", "SET", "maxmemory", 1),
                            lambda: redis("CONFIG", "SET", "maxmemory", 0))

    def test_made_a_replica(self):
        redis = Redis(self)
        self.break_and_mend(self.serve(redis.port), lambda: redis("REPLICAOF", "127.0.0.1", free_port()),
                            lambda: redis("REPLICAOF", "NO", "ONE"))

    def test_loading(self):
        redis = Redis(self, "--enable-debug-command", "yes")
        server = self.serve(redis.port)
        redis("DEBUG", "POPULATE", 60000)  # a minute, unless it is told to hurry

        def reload_slowly():
            redis("SAVE")
            redis.kill()
            redis.options += ["--key-load-delay", "1000", "--loading-process-events-interval-bytes", "1024"]
            redis.start(loaded=False)
        self.break_and_mend(server, reload_slowly, lambda: redis("CONFIG", "SET", "key-load-delay", 0))

    def test_slower_than_the_timeout(self):
        redis = Redis(self)
        proxy = Proxy(self, redis.port)

        def slow(seconds):
            proxy.delay = seconds
        server = self.serve(proxy.port)
        self.until_recovered(server)
        slow(0.1)
        self.assert_healthy(server)
        slow(0)
        self.break_and_mend(server, lambda: slow(3), lambda: slow(0))

    def test_a_redis_slower_than_the_timeout_is_one_log_line_and_no_client_waits(self):
        redis = Redis(self)
        proxy = Proxy(self, redis.port)
        server = self.serve(proxy.port, timeout="250ms", log="json")
        self.until_recovered(server)
        begin = datetime.datetime.now(datetime.UTC)
        proxy.delay = 0.4
        self.until_degraded(server)
        self.assert_metrics(server, 0)
        time.sleep(1)  # "after the first second"

        def waited():
            """Questions that were sent and not answered in time, on any loop."""
            return re.search(r'weir_store_errors_total\{kind="timeout"\} (\d+)', server.get("admin", "/metrics"))[1]
        before = waited()
        while datetime.datetime.now(datetime.UTC) - begin < datetime.timedelta(seconds=30):
            self.assertTrue(self.ask(server, "open", self.fresh())[1]["degraded"])
            time.sleep(0.002)
        self.assertEqual(waited(), before)
        end = datetime.datetime.now(datetime.UTC)
        proxy.delay = 0
        self.until_recovered(server)
        # A busy machine may add outages while Redis is fast, so only the 30 s of slow replies count.
        lines = [json.loads(line) for line in server.end()[1].splitlines()]
        within = [line["message"] for line in lines if begin <= datetime.datetime.fromisoformat(line["time"]) <= end]
        self.assertEqual([message[:17] for message in within if message.startswith("Redis ")], ["Redis unavailable"])

    def test_an_odd_reply_is_counted_by_kind_and_logged_and_takes_redis_down_only_if_nothing_is_decided(self):
        redis = Redis(self, "--maxmemory-policy", "noeviction")
        server = self.serve(redis.port)
        self.until_recovered(server)
        redis("CONFIG", "SET", "maxmemory", 1)
        self.assertTrue(self.ask(server, "open", self.fresh())[1]["degraded"])
        self.assertRegex(server.get("admin", "/metrics"), r'weir_store_errors_total\{kind="no_memory"\} [1-9]')
        self.assert_metrics(server, 0)
        redis("CONFIG", "SET", "maxmemory", 0)
        self.until_recovered(server)
        code, rest = server.end()
        self.assertEqual((code, rest.count("Redis reply is not a decision: kind=no_memory")), (0, 1), rest)

    def test_a_deep_probe_asks_the_store_now_with_a_real_script(self):
        redis = Redis(self, "--maxmemory-policy", "noeviction")
        server = self.serve(redis.port, timeout="250ms")
        until("ready", lambda: self.deep(server) == "ready")
        redis.pause()  # nothing else asks: only the probe can find out
        self.assertEqual([self.deep(server, speak) for speak in ("http", "admin")], ["store unavailable"] * 2)
        redis.resume()
        until("ready again", lambda: self.deep(server) == "ready")
        redis("CONFIG", "SET", "maxmemory", 1)  # a PING would still be answered
        self.assertEqual([self.deep(server, speak) for speak in ("http", "admin")], ["store unavailable"] * 2)
        redis("CONFIG", "SET", "maxmemory", 0)
        until("ready again", lambda: self.deep(server) == "ready")
        until("the bucket of the probe is gone", lambda: not redis("KEYS", "*probe*"))

    def test_cut_mid_reply(self):
        redis = Redis(self)
        proxy = Proxy(self, redis.port)
        server = self.serve(proxy.port)
        self.until_recovered(server)
        policies = {"open": (200, {"degraded": True}), "closed": (503, {"error": "store_unavailable"}),
                    "local": (200, {"remaining": 2})}
        for limit, (code, told) in policies.items():
            for kept in (0, 1, 5, 9):
                who = self.fresh()
                proxy.cut_after = kept
                status, answer = self.ask(server, limit, who)
                # It may have been applied, so it is not sent again.
                self.assertEqual((status, {name: answer.get(name) for name in told}), (code, told))
                self.until_recovered(server)
                self.assertEqual(self.ask(server, limit, who)[1]["remaining"], 1, "applied once, before the cut")

    def test_unreachable_at_the_start(self):
        port = free_port()
        server = self.serve(port)
        self.assert_policies(server)
        self.assert_metrics(server, 0)
        Redis(self, port=port)
        self.until_recovered(server)
        self.assert_healthy(server)
        self.assert_metrics(server, 1)
        self.assert_logged_once(server)

    def test_a_server_that_names_no_master_is_logged_with_its_reason(self):
        redis, port = Redis(self), free_port()
        Redis(self, "--sentinel", port=port,
              config=f"port {port}\nbind 127.0.0.1\nsentinel monitor main 127.0.0.1 {redis.port} 1\n")
        replica = Redis(self, "--replicaof", "127.0.0.1 1")
        for to, settings, why in (
                (redis.port, {"mode": "cluster"}, "ERR This instance has cluster support disabled"),
                (redis.port, {"mode": "sentinel", "more": "master_name: main"}, "ERR unknown command 'SENTINEL'"),
                (port, {"mode": "sentinel", "more": "master_name: other"}, "does not monitor a master of that name"),
                (port, {"mode": "replication"}, "it is a sentinel"),
                (replica.port, {"mode": "replication"}, "cannot connect to 127.0.0.1:1")):
            with self.subTest(why):
                server = self.serve(to, **settings)
                server.post("/v1/check", {"limit": "open", "id": "a"})
                log = server.said + server.end()[1]
                self.assertRegex(log, rf"warn Redis unavailable: 127\.0\.0\.1:.*{why}.*; applying failure_policy passThrough")

    def test_the_memory_that_stands_in_is_bounded(self):
        server = self.serve(free_port())
        who = range(4000)
        with server.connect("resp") as connection, connection.makefile("rb") as answers:
            connection.sendall(b"".join(b"WEIR.CHECK local client-%d\r\n" % i for i in who))
            for _ in who:
                self.assertEqual(answers.readline(), b"*5\r\n")
                self.assertEqual([answers.readline() for _ in range(5)][0], b":1\r\n")
        metrics = server.get("admin", "/metrics")
        self.assertEqual(re.search(r'weir_store_fallback_total\{policy="inMemoryFallback"\} (\d+)', metrics)[1], "4000")
        self.assertLessEqual(int(re.search(r"^weir_buckets (\d+)$", metrics, re.MULTILINE)[1]), 1000)
        self.assertGreater(int(re.search(r"^weir_buckets_evicted_total (\d+)$", metrics, re.MULTILINE)[1]), 0)

    def test_a_share_divides_the_numbers(self):
        server = self.serve(free_port(), more="share: 1/3")
        who = self.fresh()
        self.assertEqual([self.ask(server, "local", who)[0] for _ in range(3)], [200, 429, 429])


class Settings(unittest.TestCase):
    def refused(self, redis):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(f"listen: [{{address: '127.0.0.1:0', speak: http}}]\nstore: redis\nredis: {redis}\n"
                       "limits: {a: {rate: 1/s}}\n")
            file.flush()
            ended = subprocess.run([WEIR, "serve", "--config", file.name], capture_output=True, text=True, timeout=60,
                                   env=ENVIRONMENT)
        self.assertEqual(ended.returncode, 2, ended.stderr)
        return ended.stderr

    def test_that_cannot_work_are_refused_at_the_start(self):
        self.assertIn("3:15: mode sentinel needs master_name: sentinels must be asked for a master by its name",
                      self.refused("{mode: sentinel}"))
        self.assertIn("3:28: db 3 must be 0: a cluster has no other database", self.refused("{mode: cluster, db: 3}"))
        many = ", ".join(f'"127.0.0.1:{port}"' for port in range(1, 18))
        self.assertIn("endpoints: at most 16 are allowed", self.refused(f"{{mode: cluster, endpoints: [{many}]}}"))

    def test_mode_single_with_several_endpoints_is_refused_and_names_the_other_modes(self):
        self.assertIn("endpoints: 2 are listed but mode single takes one; for several use mode replication, sentinel or cluster",
                      self.refused('{endpoints: ["127.0.0.1:1", "127.0.0.1:2"]}'))


if __name__ == "__main__":
    unittest.main()
