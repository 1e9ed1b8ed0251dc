"""Several `weir serve` on one Redis: what an operator sees and changes through one of them holds for all."""

import json
import os
import re
import shlex
import threading
import time
import unittest
import urllib.error
import urllib.request

from redis_cluster_test import cluster_of_six
from redis_servers import Redis, until
from serving import Server

POLICY = """
listen:
  - {{address: "127.0.0.1:0", speak: http}}
  - {{address: "127.0.0.1:0", speak: admin}}
threads: 2
store: redis
redis: {{endpoints: ["127.0.0.1:{port}"], timeout: 2s, mode: {mode}}}
limits:
  per-ip: {{key: ip, burst: 3, count: 3, period: 1h}}
  orders: {{burst: 5, count: 5, period: 1h}}
  daily: {{quota: 3/day}}
access:
  block: {{after: 20, within: 1m, for: 10m}}
"""


def admin(server, method, path, body=None):
    """Status and content of a call of the admin API."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"Content-Type": "application/json"} if method != "GET" else {}
    request = urllib.request.Request(f"http://127.0.0.1:{server.ports['admin']}{path}", data=data, headers=headers,
                                     method=method)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as answer:
        with answer:
            return answer.code, json.loads(answer.read())


def check(server, limit, client, cost=1):
    return server.post("/v1/check", {"limit": limit, "id": client, "cost": cost})[0]


def refused(redis):
    """How often Redis has refused HGET."""
    calls = re.search(r"cmdstat_hget:.*rejected_calls=(\d+)", redis("INFO", "commandstats"))
    return 0 if calls is None else int(calls[1])


class Sharing(unittest.TestCase):
    def serve(self, port, mode="single", count=2):
        servers = [Server(self, POLICY.format(port=port, mode=mode)) for _ in range(count)]
        for server in servers:
            server.wait_for_metric("weir_store_up 1\n")
        return servers

    def clients(self, server, query=""):
        status, page = admin(server, "GET", "/ratelimit/clients" + query)
        self.assertEqual(status, 200, page)
        return page

    def listed(self, server):
        """Every client, three at a time: whatever the order, each once."""
        seen, cursor = [], ""
        while True:
            page = self.clients(server, f"?n=3&cursor={cursor}")
            self.assertLessEqual(len(page["clients"]), 3)
            seen += [(row["limit"], row["id"], row["remaining"]) for row in page["clients"]]
            cursor = page["cursor"]
            if not cursor:
                return sorted(seen, key=str)

    def assert_lists_and_resets(self, one, two):
        for i in range(10):
            self.assertEqual(check(one if i % 2 else two, "orders", str(i)), 200)
        self.assertEqual(check(one, "daily", "7", 2), 200)
        self.assertEqual(one.post("/v1/throttle", {"key": "mine", "burst": 9, "count": 9, "period": "1h"})[0], 200)
        everybody = sorted([("orders", str(i), 4) for i in range(10)] + [("daily", "7", 1), ("", "mine", None)], key=str)
        for server in (one, two):
            self.assertEqual(self.listed(server), everybody)
            status, stats = admin(server, "GET", "/ratelimit/stats")
            self.assertEqual((status, stats["store"]), (200, {"kind": "redis", "up": True}))
            self.assertEqual({row["limit"]: row["active"] for row in stats["limits"]},
                             {"": 1, "daily": 1, "orders": 10, "per-ip": 0})
            self.assertIn('weir_rate_limit_active_clients{limit="orders"', server.get("admin", "/metrics"))
        check(one, "orders", "3", 4)
        self.assertEqual(check(two, "orders", "3"), 429)
        self.assertEqual(self.clients(two, "?sort=remaining&n=1")["clients"][0]["id"], "3")
        self.assertEqual(self.clients(two, "?limit=orders&prefix=3")["clients"][0]["remaining"], 0)
        self.assertEqual(admin(two, "POST", "/ratelimit/reset/orders:3"), (200, {"reset": 1}))
        for _ in range(5):  # on any loop of either server: a denial was remembered on one of them
            self.assertEqual(check(two, "orders", "3"), 200)
        self.assertEqual(check(two, "orders", "3"), 429)
        # A quota's window is of no concern to a reset.
        self.assertEqual(admin(two, "POST", "/ratelimit/reset/daily:7"), (200, {"reset": 1}))
        self.assertEqual(check(one, "daily", "7", 3), 200)
        self.assertEqual(admin(two, "POST", "/ratelimit/reset/7"), (200, {"reset": 2}))
        self.assertEqual((check(one, "daily", "7", 3), check(one, "orders", "7", 5)), (200, 200))
        self.assertIn('weir_store_errors_total{kind="clock"} 0\n', two.get("admin", "/metrics"))
        self.assertEqual(admin(two, "POST", "/ratelimit/reset/all?confirm=all"), (200, {"reset": 12}))
        for _ in range(5):
            self.assertEqual(check(two, "orders", "3"), 200)
        self.assertEqual(self.listed(one), [("orders", "3", 0)])

    def test_lists_and_resets_reach_every_bucket(self):
        redis = Redis(self)
        for key in ("weir:extcache:x", "weir:b", "other:b:orders:1"):
            redis("SET", key, "x")
        self.assert_lists_and_resets(*self.serve(redis.port))
        self.assertEqual(redis("EXISTS", "weir:extcache:x", "weir:b", "other:b:orders:1", "weir:hash_key"), 4)

    def test_a_cluster_is_listed_and_reset_master_by_master(self):
        nodes = cluster_of_six(self)
        self.assert_lists_and_resets(*self.serve(nodes[0].port, "cluster"))

    def test_without_redis_lists_say_so_and_metrics_go_on(self):
        redis = Redis(self)
        server, = self.serve(redis.port, count=1)
        redis.kill()
        until("the server notices", lambda: "weir_store_up 0\n" in server.get("admin", "/metrics"))
        for method, path in (("GET", "/ratelimit/clients"), ("GET", "/ratelimit/clients/orders/7"),
                             ("POST", "/ratelimit/reset/all?confirm=all")):
            status, answer = admin(server, method, path)
            self.assertEqual((status, answer["error"]), (503, "store_unavailable"), answer)
        _, stats = admin(server, "GET", "/ratelimit/stats")
        self.assertEqual({row["active"] for row in stats["limits"]}, {None})
        redis.start()
        server.wait_for_metric("weir_store_up 1\n")
        until("buckets are listed again", lambda: admin(server, "GET", "/ratelimit/clients")[0] == 200)

    def test_the_shared_key_of_hashed_limits_undoes_no_change(self):
        redis = Redis(self)
        redis.kill()
        server = Server(self, POLICY.format(port=redis.port, mode="single").replace(
            "limits:", "limits:\n  secret: {burst: 5, count: 5, period: 1h, hashed: true}"))
        self.assertEqual(admin(server, "PUT", "/ratelimit/config", {"limits": {"orders": {"burst": 9}}})[0], 200)
        redis.start()
        until("the key is in force", lambda: admin(server, "GET", "/ratelimit/stats")[1]["policy_version"] == 3)
        self.assertEqual(check(server, "orders", "7", 9), 200)
        self.assertIn('weir_config_reloads_total{result="ok"} 0\n', server.get("admin", "/metrics"))

    def test_a_redis_that_lost_the_key_of_hashed_limits_gets_it_back(self):
        """Or the next server would make another, and each would count the same client in a bucket of its own."""
        redis = Redis(self)
        policy = POLICY.format(port=redis.port, mode="single").replace(
            "limits:", "limits:\n  secret: {burst: 5, count: 5, period: 1h, hashed: true}")
        first = Server(self, policy)
        self.assertEqual(check(first, "secret", "a@b.c", 1), 200)
        key = redis("GET", "weir:hash_key")
        redis.kill()
        until("it is missed", lambda: (check(first, "orders", "x", 0), "weir_store_up 0\n" in first.get("admin", "/metrics"))[1])
        redis.start()
        until("it is back", lambda: redis("GET", "weir:hash_key") == key)
        second = Server(self, policy)
        for server in (first, second):
            server.wait_for_metric("weir_store_up 1\n")
        self.assertEqual(check(second, "secret", "a@b.c", 5), 200)

        def left(server):
            return json.loads(server.post("/v1/peek", {"limit": "secret", "id": "a@b.c"})[2])["remaining"]
        until("both count in one bucket", lambda: left(first) == 0)

    def test_what_is_no_key_of_hashed_limits_is_replaced_by_one_for_all(self):
        redis = Redis(self)
        policy = POLICY.format(port=redis.port, mode="single").replace(
            "limits:", "limits:\n  secret: {burst: 5, count: 5, period: 1h, hashed: true}")
        for wrong in (("LPUSH", "weir:hash_key", "x"), ("SET", "weir:hash_key", "short")):
            redis("FLUSHALL")
            redis(*wrong)
            servers = [Server(self, policy) for _ in range(2)]
            self.assertRegex(redis("GET", "weir:hash_key"), "^[0-9a-f]{64}$")
            for server, left in zip(servers, (4, 3)):
                server.wait_for_metric("weir_store_up 1\n")
                answer = server.post("/v1/check", {"limit": "secret", "id": "a@b.c"})[2]
                self.assertEqual(json.loads(answer)["remaining"], left)
            self.assertEqual(["is not a valid hash key and was replaced" in server.said for server in servers], [True, False])

    def eventually(self, what, server, limit, client, status):
        """Looks only: spends nothing, and nobody is blocked for it."""
        until(what, lambda: check(server, limit, client, 0) == status, 10)

    def assert_changes_are_shared(self, one, two):
        self.assertNotEqual(check(one, "orders", "7", 30), 200)
        status, adjusted = admin(one, "PUT", "/ratelimit/adjust/orders/7", {"rate": "100000/s", "burst": 50})
        self.assertEqual((status, adjusted["burst"]), (200, 50))
        self.assertEqual(check(one, "orders", "7", 30), 200, "in force at once where it was made")
        until("the other server has heard", lambda: admin(two, "GET", "/ratelimit/adjust")[1]["adjustments"] == [adjusted], 10)
        self.assertEqual(check(two, "orders", "7", 30), 200)
        self.assertEqual(admin(two, "DELETE", "/ratelimit/adjust/orders/7"), (200, {"removed": 1}))
        until("it has ended", lambda: not admin(one, "GET", "/ratelimit/adjust")[1]["adjustments"], 10)
        self.assertEqual(admin(one, "DELETE", "/ratelimit/adjust/orders/7")[0], 404)

        for server, ip in ((one, "203.0.113.1"), (two, "203.0.113.2")):
            self.assertEqual(admin(server, "POST", "/ratelimit/access/deny", {"ip": ip, "reason": "abuse"})[0], 200)
            self.assertEqual(check(server, "per-ip", ip), 403)
        self.eventually("a deny of the other", one, "per-ip", "203.0.113.2", 403)
        self.eventually("a deny of the other", two, "per-ip", "203.0.113.1", 403)
        self.assertEqual(admin(two, "DELETE", "/ratelimit/access/deny?ip=203.0.113.1")[0], 200)
        self.assertEqual(check(two, "per-ip", "203.0.113.1", 0), 200)
        self.eventually("the deny is gone", one, "per-ip", "203.0.113.1", 200)

        while check(one, "per-ip", "203.0.113.3") != 403:
            pass  # denied until it is blocked
        self.eventually("a block of the other", two, "per-ip", "203.0.113.3", 403)
        self.assertEqual(admin(two, "DELETE", "/ratelimit/access/deny?ip=203.0.113.3")[0], 200)
        self.eventually("the block is gone", one, "per-ip", "203.0.113.3", 200)

    def test_adjustments_access_lists_and_blocks_are_shared_and_outlive_servers(self):
        redis = Redis(self)
        one, two = self.serve(redis.port)
        self.assert_changes_are_shared(one, two)
        admin(one, "PUT", "/ratelimit/adjust/orders/8", {"burst": 9})
        for server in (one, two):
            server.end()
        three, = self.serve(redis.port, count=1)
        self.assertEqual(check(three, "per-ip", "203.0.113.2"), 403, "before the first request")
        self.assertEqual(admin(three, "GET", "/ratelimit/adjust")[1]["adjustments"][0]["burst"], 9)

    def test_a_cluster_shares_them_too(self):
        nodes = cluster_of_six(self)
        self.assert_changes_are_shared(*self.serve(nodes[1].port, "cluster"))

    def test_two_servers_changing_at_once_lose_nothing(self):
        redis = Redis(self)
        servers = self.serve(redis.port)

        def deny(server, third):
            for i in range(1, 51):
                self.assertEqual(admin(server, "POST", "/ratelimit/access/deny", {"ip": f"198.51.{third}.{i}"})[0], 200)

        threads = [threading.Thread(target=deny, args=(server, i)) for i, server in enumerate(servers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for server in servers:
            until("all are known", lambda s=server: len(admin(s, "GET", "/ratelimit/access/deny")[1]["entries"]) == 100, 10)

    def test_what_redis_loses_is_put_back_and_what_it_never_took_is_not_in_force(self):
        redis = Redis(self)
        one, two = self.serve(redis.port)
        admin(one, "POST", "/ratelimit/access/deny", {"ip": "203.0.113.1"})
        admin(one, "PUT", "/ratelimit/adjust/orders/8", {"burst": 9})
        self.eventually("the deny is known", two, "per-ip", "203.0.113.1", 403)
        redis.kill()
        for method, path, body in (("POST", "/ratelimit/access/deny", {"ip": "203.0.113.2"}),
                                   ("PUT", "/ratelimit/adjust/orders/9", {"burst": 9}),
                                   ("DELETE", "/ratelimit/access/deny?ip=203.0.113.1", None)):
            status, answer = admin(one, method, path, body)
            self.assertEqual((status, answer["error"]), (503, "store_unavailable"), answer)
        self.assertEqual(check(one, "per-ip", "203.0.113.1"), 403, "known entries stay in force")
        self.assertNotEqual(check(one, "per-ip", "203.0.113.2"), 403)
        redis.start()  # empty
        until("the deny is back", lambda: redis("HEXISTS", "weir:access", "deny ip 203.0.113.1/32") == 1)
        until("the adjustment is back", lambda: redis("HEXISTS", "weir:adjust", "orders:8") == 1)
        for server in (one, two):
            self.assertEqual(check(server, "per-ip", "203.0.113.1"), 403)
        three, = self.serve(redis.port, count=1)
        self.assertEqual(check(three, "per-ip", "203.0.113.1"), 403)
        self.assertIn("restoring them", one.end()[1] + two.end()[1])

    def wait_for_looks(self, redis, count):
        """Until a server has looked at both hashes that often."""
        redis("CONFIG", "RESETSTAT")

        def looked():
            calls = re.search(r"cmdstat_hget:calls=(\d+)", redis("INFO", "commandstats"))
            return calls is not None and int(calls[1]) >= 2 * count
        until("both were looked at", looked)

    def test_what_is_damaged_is_skipped_and_what_has_ended_is_removed(self):
        redis = Redis(self)
        server, = self.serve(redis.port, count=1)
        redis("HSET", "weir:access", "version", "1.x", "deny ip 203.0.113.1/32", "deny ip=203.0.113.1/32 reason= by=ops",
              "deny ip 203.0.113.2/32", "nonsense", "deny ip 203.0.113.3/32", "deny ip=203.0.113.4/32 reason= by=",
              "deny ip 203.0.113.5/32", "deny ip=203.0.113.5/32 reason= expires=1000000000 by=")
        until("it is read", lambda: admin(server, "GET", "/ratelimit/access/deny")[1]["entries"])
        self.assertEqual([entry["ip"] for entry in admin(server, "GET", "/ratelimit/access/deny")[1]["entries"]], ["203.0.113.1"])
        until("what has ended is gone", lambda: redis("HEXISTS", "weir:access", "deny ip 203.0.113.5/32") == 0)
        redis("DEL", "weir:adjust")
        redis("SET", "weir:adjust", "not a hash")
        status, answer = admin(server, "PUT", "/ratelimit/adjust/orders/9", {"burst": 9})
        self.assertEqual((status, answer["error"]), (503, "store_unavailable"), answer)
        self.assertEqual(check(server, "orders", "9"), 200)
        # The access lists are read all the while.
        until("the other is read", lambda: admin(server, "POST", "/ratelimit/access/deny", {"ip": "203.0.113.9"})[0] == 200)
        self.wait_for_looks(redis, 2)
        redis("DEL", "weir:adjust")
        until("changes are made again", lambda: admin(server, "PUT", "/ratelimit/adjust/orders/9", {"burst": 9})[0] == 200)
        self.wait_for_looks(redis, 4)
        log = server.end()[1]
        self.assertEqual(log.count("skipped: count="), 1, log)
        self.assertEqual((log.count("not shared through Redis"), log.count("shared through Redis again")), (1, 1), log)

    def test_the_documented_acl_is_enough_and_less_costs_no_decision(self):
        with open(os.path.join(os.environ["WEIR_SOURCE"], "docs", "redis.md"), encoding="utf-8") as page:
            documented = shlex.split(re.search(r"(ACL SETUSER .*)$", page.read(), re.MULTILINE)[1])
        redis = Redis(self)
        redis(*documented)
        policy = POLICY.format(port=redis.port, mode="single, username: weir, password: secret")
        server = Server(self, policy)
        server.wait_for_metric("weir_store_up 1\n")
        self.assertEqual(check(server, "orders", "7"), 200)
        self.assertEqual(self.listed(server), [("orders", "7", 4)])
        self.assertEqual(admin(server, "PUT", "/ratelimit/adjust/orders/7", {"burst": 9})[0], 200)
        self.assertEqual(admin(server, "DELETE", "/ratelimit/adjust/orders/7")[0], 200)
        self.assertEqual(admin(server, "POST", "/ratelimit/reset/all?confirm=all"), (200, {"reset": 1}))
        redis("ACL", "SETUSER", "weir", "-scan", "-hget", "-hset", "-hsetnx", "-hdel", "-hscan")
        self.assertEqual(check(server, "orders", "7"), 200)
        for method, path, body in (("GET", "/ratelimit/clients", None), ("PUT", "/ratelimit/adjust/orders/7", {"burst": 9})):
            status, answer = admin(server, method, path, body)
            self.assertEqual((status, answer["error"]), (503, "store_unavailable"))
            self.assertIn("Redis refused", answer["message"])
        less = Server(self, policy)
        self.assertIn("Redis refused", less.said)
        self.assertNotIn("Redis unavailable", less.said)
        less.wait_for_metric("weir_store_up 1\n")
        redis("CONFIG", "RESETSTAT")
        begin = time.monotonic()
        until("it looks again", lambda: refused(redis) >= 20)
        self.assertGreater(time.monotonic() - begin, 1, "two servers look for two hashes twice a second")
        self.assertEqual(check(less, "orders", "7"), 200)


if __name__ == "__main__":
    unittest.main()
