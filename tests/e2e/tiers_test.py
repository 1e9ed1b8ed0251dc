"""Tiers over HTTP and RESP: own buckets, one quota, resets of all of them; in memory and on Redis."""

import json
import unittest
import urllib.error
import urllib.request

from redis_servers import Redis
from redis_shared_test import admin
from serving import Server

POLICY = """
listen:
  - {address: "127.0.0.1:0", speak: http}
  - {address: "127.0.0.1:0", speak: resp}
  - {address: "127.0.0.1:0", speak: admin}
threads: 1
limits:
  orders:
    number: 6
    burst: 2
    count: 2
    period: 1h
    tiers:
      pro: {burst: 5}
      enterprise: {unlimited: true}
  tokens: {burst: 100, count: 100, period: 1h, quota: 3/month, tiers: {pro: {quota: 5/month}}}
  plans: {key: header:x-tenant, burst: 1, count: 1, period: 1h, tier: header:x-plan, tiers: {pro: {burst: 4}}}
overrides:
  orders:vip: {tier: pro}
"""
TRUST = "access: {trusted_proxies: [127.0.0.1/32]}\n"


class Tiers:
    """The same on every store."""

    def check(self, limit, client, tier=None, path="/v1/check"):
        body = {"limit": limit, "id": client}
        if tier is not None:
            body["tier"] = tier
        status, _, answer = self.server.post(path, body)
        return status, json.loads(answer) if answer else None

    def passes(self, limit, client, tier=None, most=20):
        """How many requests pass before the first that is denied."""
        for count in range(most):
            if self.check(limit, client, tier)[0] != 200:
                return count
        return most

    def test_every_tier_has_its_own_bucket_and_numbers(self):
        self.assertEqual(self.passes("orders", "1"), 2)
        self.assertEqual(self.passes("orders", "1", "pro"), 5)
        self.assertEqual(self.passes("orders", "1", "enterprise"), 20)
        self.assertEqual(self.passes("orders", "vip"), 5, "an override names the tier")
        status, answer = self.check("orders", "2", "pro", "/v1/check?explain=true")
        self.assertEqual((status, answer["burst"]), (200, 5))
        self.assertIn("6~pro:2", json.dumps(answer))
        self.assertIn('"source": "tier"', json.dumps(answer))

    def test_peek_and_refund_of_a_tier_reach_its_bucket(self):
        self.assertEqual(self.check("orders", "3", "pro")[0], 200)
        self.assertEqual(self.check("orders", "3", "pro", "/v1/peek")[1]["remaining"], 4)
        self.assertEqual(self.check("orders", "3", path="/v1/peek")[1]["remaining"], 2)
        self.assertEqual(self.check("orders", "3", "pro", "/v1/refund")[1]["remaining"], 5)

    def test_a_quota_is_shared_by_all_tiers(self):
        self.assertEqual(self.passes("tokens", "1"), 3)
        self.assertEqual(self.passes("tokens", "1", "pro"), 2, "3 of 5 are used")

    def counted(self, limit, status):
        name = f'weir_rate_limit_requests_total{{limit="{limit}",limiter_type="",status="{status}"}} '
        return int(self.server.get("admin", "/metrics").split(name)[1].split("\n")[0])

    def test_a_rate_and_a_quota_are_one_decision(self):
        allowed, denied = self.counted("tokens", "allowed"), self.counted("tokens", "denied")
        status, answer = self.check("tokens", "both", "pro", "/v1/check?explain=true")
        self.assertEqual((status, len(answer["decisions"])), (200, 1))
        decision = answer["decisions"][0]
        self.assertEqual((decision["burst"], decision["remaining"]), (5, 4), "the stricter half's")
        self.assertEqual((decision["rate"]["bucket"], decision["quota"]["bucket"]), ("tokens~pro:both", "tokens:both"))
        self.assertEqual((decision["rate"]["remaining"], decision["quota"]["remaining"]), (99, 4))
        self.assertEqual(self.passes("tokens", "both", "pro"), 4)
        status, answer = self.check("tokens", "both", "pro")
        self.assertEqual((status, answer["burst"], answer["decisions"][0]["rate"]["allowed"]), (429, 5, True))
        self.assertEqual(answer["decisions"][0]["rate"]["remaining"], 95, "denied by the quota: nothing was taken")
        self.assertEqual(self.counted("tokens", "allowed") - allowed, 5, "each request once")
        self.assertEqual(self.counted("tokens", "denied") - denied, 2)

    def test_a_reset_by_id_covers_all_tiers(self):
        for how in ("http", "resp", "admin"):
            self.assertEqual(self.passes("orders", "5"), 2, how)
            self.assertEqual(self.passes("orders", "5", "pro"), 5, how)
            if how == "http":
                self.assertEqual(self.server.post("/v1/reset", {"limit": "orders", "id": "5"})[0], 204)
            elif how == "resp":
                self.assertEqual(self.server.resp("WEIR.RESET", "orders", "5"), ":1\r\n")
            else:
                self.assertEqual(admin(self.server, "POST", "/ratelimit/reset/orders:5"), (200, {"reset": 2}))
        self.assertEqual([self.passes("orders", "5"), self.passes("orders", "5", "pro")], [2, 5])

    def test_resp_takes_the_tier_behind_the_cost(self):
        server = self.server
        self.assertTrue(server.resp("WEIR.CHECK", "orders", "7", "5", "pro").startswith("*5\r\n:1\r\n:5\r\n:0\r\n"))
        self.assertTrue(server.resp("WEIR.CHECK", "orders", "7", "1", "pro").startswith("*5\r\n:0\r\n:5\r\n:0\r\n"))
        self.assertTrue(server.resp("WEIR.PEEK", "orders", "7", "1", "pro").startswith("*5\r\n:0\r\n:5\r\n"))
        self.assertTrue(server.resp("WEIR.REFUND", "orders", "7", "2", "pro").startswith("*5\r\n:1\r\n:5\r\n:2\r\n"))
        self.assertTrue(server.resp("WEIR.CHECK", "orders", "7").startswith("*5\r\n:1\r\n:2\r\n:1\r\n"))
        self.assertIn("ERR wrong number of arguments", server.resp("WEIR.CHECK", "orders", "7", "1", "pro", "more"))

    def test_an_unknown_tier_uses_the_limits_own_numbers_and_is_counted(self):
        self.assertIn('weir_tier_unknown_total{limit="orders"} 0\n', self.server.get("admin", "/metrics"))
        self.assertEqual(self.passes("orders", "8", "gold"), 2)
        self.assertEqual(self.passes("orders", "8"), 0, "the same bucket")
        self.assertIn('weir_tier_unknown_total{limit="orders"} 3\n', self.server.get("admin", "/metrics"))

    def test_lists_show_the_tier(self):
        self.check("orders", "9", "pro")
        self.check("orders", "9")
        rows = admin(self.server, "GET", "/ratelimit/clients?limit=orders&prefix=9")[1]["clients"]
        seen = sorted((row["bucket"], row.get("tier"), row["source"], row["burst"], row["remaining"]) for row in rows)
        self.assertEqual(seen, [("6:9", None, "limit", 2, 1), ("6~pro:9", "pro", "tier", 5, 4)])
        self.check("orders", "10", "pro")
        row = admin(self.server, "GET", "/ratelimit/clients/orders/10")[1]
        self.assertEqual((row["bucket"], row["source"], row["remaining"]), ("6~pro:10", "tier", 4))

    def authorize(self, *lines):
        request = urllib.request.Request(f"http://127.0.0.1:{self.server.ports['http']}/v1/authorize")
        request.add_header("X-Tenant", "acme")
        for name, value in lines:
            request.add_header(name, value)
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status, answer.headers["X-RateLimit-Limit"]
        except urllib.error.HTTPError as answer:
            with answer:
                return answer.code, answer.headers["X-RateLimit-Limit"]

    def test_a_trusted_proxys_header_chooses_the_tier(self):
        self.assertEqual(self.authorize(("X-Plan", "pro")), (200, "4"))
        self.assertEqual(self.authorize(), (200, "1"))
        self.assertEqual(self.authorize(), (429, "1"))
        self.assertEqual(self.authorize(("X-Plan", "pro")), (200, "4"))
        request = {"request": {"headers": {"x-tenant": "beta", "x-plan": "pro"}}}
        self.assertEqual(json.loads(self.server.post("/v1/check", request)[2])["burst"], 4)

    def test_a_tier_beside_a_request_or_charges_is_refused(self):
        status, _, answer = self.server.post("/v1/check", {"request": {"path": "/"}, "tier": "pro"})
        self.assertEqual((status, json.loads(answer)["error"]), (400, "bad_value"))
        both = {"charges": [{"limit": "orders", "id": "11", "tier": "pro"}, {"limit": "tokens", "id": "11"}]}
        decisions = json.loads(self.server.post("/v1/check", both)[2])["decisions"]
        self.assertEqual([decision["burst"] for decision in decisions], [5, 3])


class InMemory(Tiers, unittest.TestCase):
    def setUp(self):
        self.server = Server(self, POLICY + TRUST)


class OnRedis(Tiers, unittest.TestCase):
    def setUp(self):
        self.redis = Redis(self)
        store = f'store: redis\nredis: {{endpoints: ["127.0.0.1:{self.redis.port}"], timeout: 2s}}\n'
        self.server = Server(self, POLICY + TRUST + store)
        self.server.wait_for_metric("weir_store_up 1\n")

    def test_bucket_keys_are_spelled_as_documented(self):
        self.check("orders", "1", "pro")
        self.check("orders", "1")
        self.check("tokens", "2", "pro")
        keys = sorted(self.redis("KEYS", "*"))
        self.assertEqual([key for key in keys if key.startswith(("weir:b:", "weir:w:"))],
                         ["weir:b:6:1", "weir:b:6~pro:1", "weir:b:tokens~pro:2", "weir:w:tokens:2"])


class Untrusted(unittest.TestCase):
    def test_a_strangers_header_chooses_no_tier(self):
        self.server = Server(self, POLICY)
        self.assertEqual(Tiers.authorize(self, ("X-Plan", "pro")), (200, "1"))


if __name__ == "__main__":
    unittest.main()
