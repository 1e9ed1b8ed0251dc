"""The admin API of a real `weir serve`: what operators change is seen by the very next request."""

import json
import unittest
import urllib.error
import urllib.request

from serving import Server

POLICY = """
listen:
  - {address: "127.0.0.1:0", speak: http}
  - {address: "127.0.0.1:0", speak: admin}
threads: 2
memory: {max_buckets: 100000}
limits:
  per-ip: {key: ip, burst: 3, count: 3, period: 1h}
  orders: {burst: 5, count: 5, period: 1h}
"""


class Operated(unittest.TestCase):
    def serve(self, policy=POLICY, directory=None):
        self.server = Server(self, policy, directory)
        return self.server

    def admin(self, method, path, body=None, token=None, kind="application/json"):
        """Status and content, parsed where it is JSON."""
        data = None if body is None else body.encode() if isinstance(body, str) else json.dumps(body).encode()
        headers = {"Content-Type": kind} if method != "GET" else {}
        if token:
            headers["Authorization"] = "Bearer " + token
        request = urllib.request.Request(f"http://127.0.0.1:{self.server.ports['admin']}{path}", data=data,
                                         headers=headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                status, content, kind = answer.status, answer.read().decode(), answer.headers["Content-Type"]
        except urllib.error.HTTPError as answer:
            with answer:
                status, content, kind = answer.code, answer.read().decode(), answer.headers["Content-Type"]
        return status, json.loads(content) if kind == "application/json" else content

    def check(self, limit, client, cost=1):
        return self.server.post("/v1/check", {"limit": limit, "id": client, "cost": cost})[0]


class Admin(Operated):
    def test_stats_clients_and_top_tell_what_happened(self):
        self.serve()
        for _ in range(4):
            self.check("per-ip", "203.0.113.9")
        self.check("orders", "7")
        _, stats = self.admin("GET", "/ratelimit/stats")
        self.assertEqual(stats["totals"]["requests"], 5)
        self.assertEqual(stats["totals"]["denied"], 1)
        self.assertEqual({limit["limit"]: limit["active"] for limit in stats["limits"]}, {"per-ip": 1, "orders": 1})
        _, page = self.admin("GET", "/ratelimit/clients?sort=denied")
        client = page["clients"][0]
        self.assertEqual((client["limit"], client["id"], client["identifier"]), ("per-ip", "203.0.113.9", "ip:203.0.113.9"))
        self.assertEqual((client["remaining"], client["allowed"], client["denied"]), (0, 3, 1))
        _, top = self.admin("GET", "/ratelimit/top?by=requests&n=1")
        self.assertEqual(top["clients"], [{"limit": "per-ip", "id": "203.0.113.9", "count": 4, "error": 0}])
        self.assertIn('weir_rate_limit_active_clients{limit="per-ip",limiter_type="ip"} 1\n',
                      self.admin("GET", "/metrics")[1])

    def test_a_reset_is_seen_by_the_very_next_request(self):
        self.serve()
        self.assertEqual(self.check("orders", "7", 5), 200)
        for _ in range(20):
            self.assertEqual(self.check("orders", "7"), 429)
            self.assertEqual(self.admin("POST", "/ratelimit/reset/orders:7"), (200, {"reset": 1}))
            self.assertEqual(self.check("orders", "7", 5), 200)
        self.assertEqual(self.admin("POST", "/ratelimit/reset/all")[0], 400)
        self.assertEqual(self.admin("POST", "/ratelimit/reset/all?confirm=all"), (200, {"reset": 1}))
        self.assertEqual(self.check("orders", "7", 5), 200)

    def test_buckets_per_route_and_hashed_ones_are_found_by_their_client(self):
        self.serve("""
listen:
  - {address: "127.0.0.1:0", speak: http}
  - {address: "127.0.0.1:0", speak: admin}
hash_key: "a key that the test knows"
limits:
  by-mail: {key: form:email, burst: 2, count: 2, period: 1h, per_route: true, hashed: true}
routes:
  - {name: signin, match: {path: /signin}, limits: [by-mail]}
  - {name: signup, match: {path: /signup}, limits: [by-mail]}
""")

        def ask(path, mail="a@b.c"):
            return self.server.post("/v1/check", {"request": {"ip": "192.0.2.1", "path": path, "form": {"email": mail}}})[0]

        self.assertEqual([ask(path) for path in ("/signin", "/signup") for _ in range(3)], [200, 200, 429] * 2)
        self.assertEqual(ask("/signin", "other@b.c"), 200)
        _, page = self.admin("GET", "/ratelimit/clients")
        self.assertEqual(len(page["clients"]), 3)
        self.assertNotIn("a@b.c", json.dumps(page), "a hashed id is shown as its hash")
        buckets = sorted(client["bucket"] for client in page["clients"] if client["remaining"] == 0)
        self.assertEqual([bucket.rsplit(":", 1)[0] for bucket in buckets], ["by-mail@signin", "by-mail@signup"])
        hashed = buckets[0].rsplit(":", 1)[1]
        for client in ("a@b.c", hashed):
            # Both routes' buckets of this client, and nobody else's.
            self.assertEqual(self.admin("POST", f"/ratelimit/reset/by-mail:{client}"), (200, {"reset": 2}))
            self.assertEqual([ask(path) for path in ("/signin", "/signup") for _ in range(3)], [200, 200, 429] * 2)
        self.assertEqual([ask("/signin", "other@b.c") for _ in range(2)], [200, 429])
        self.assertEqual(self.admin("PUT", "/ratelimit/adjust/by-mail/a@b.c", {"rate": "9/h", "burst": 9})[0], 200)
        self.assertEqual(self.admin("POST", "/ratelimit/reset/by-mail:a@b.c"), (200, {"reset": 2}))
        self.assertEqual([ask("/signup") for _ in range(10)], [200] * 9 + [429])

    def test_an_adjustment_is_seen_at_once_and_outlives_a_restart(self):
        server = self.serve()
        policy = POLICY + f"state: {{live: {server.directory}/live, snapshot: {server.directory}/snapshot}}\n"
        server.end()
        server = self.serve(policy, server.directory)
        self.assertEqual(self.check("orders", "7", 6), 400)
        status, adjusted = self.admin("PUT", "/ratelimit/adjust/orders/7", {"rate": "20/s", "burst": 6, "for": "1h"})
        self.assertEqual((status, adjusted["burst"], adjusted["count"], adjusted["period"]), (200, 6, 20, "1s"))
        for _ in range(5):
            self.assertEqual(self.admin("POST", "/ratelimit/reset/orders:7")[0], 200)
            self.assertEqual(self.check("orders", "7", 6), 200)
        server.end()
        self.serve(policy, server.directory)
        self.assertEqual(len(self.admin("GET", "/ratelimit/adjust")[1]["adjustments"]), 1)
        self.admin("POST", "/ratelimit/reset/orders:7")
        self.assertEqual(self.check("orders", "7", 6), 200)
        self.assertEqual(self.admin("DELETE", "/ratelimit/adjust/orders/7")[0], 200)
        self.assertEqual(self.check("orders", "7", 6), 400)

    def test_lists_apply_at_once_and_nobody_denies_himself(self):
        self.serve()
        self.assertEqual(self.admin("POST", "/ratelimit/access/deny", {"ip": "127.0.0.0/8"})[0], 409)
        self.assertEqual(self.admin("POST", "/ratelimit/access/deny", {"ip": "203.0.113.0/24", "reason": "abuse"})[0], 200)
        self.assertEqual(self.check("per-ip", "203.0.113.9"), 403)
        _, listed = self.admin("GET", "/ratelimit/access/deny")
        self.assertEqual([entry["ip"] for entry in listed["entries"]], ["203.0.113.0/24"])
        self.assertEqual(self.admin("DELETE", "/ratelimit/access/deny?ip=203.0.113.0/24")[0], 200)
        self.assertEqual(self.check("per-ip", "203.0.113.9"), 200)

    def test_a_changed_configuration_applies_to_live_buckets(self):
        server = self.serve()
        self.assertEqual(self.check("orders", "7", 5), 200)
        for burst in range(6, 16):
            self.assertEqual(self.admin("PUT", "/ratelimit/config", {"limits": {"orders": {"burst": burst}}})[0], 200)
            self.assertEqual(self.check("orders", "7"), 200)
            self.assertEqual(self.check("orders", "7"), 429)
        status, refusal = self.admin("PUT", "/ratelimit/config", {"limits": {"orders": {"burst": 0, "count": 0}}})[:2]
        self.assertEqual(status, 400)
        self.assertEqual([sentence.split(": ")[1] for sentence in refusal["message"].split("; ")],
                         ["burst 0 must be at least 1", "count 0 must be at least 1"])
        self.assertEqual(self.admin("GET", "/ratelimit/stats")[1]["policy_version"], 11)
        self.assertEqual(self.admin("POST", "/ratelimit/reload")[0], 200)
        self.assertEqual(self.check("orders", "8", 6), 400)
        yaml = "limits:\n  orders: {burst: 2, count: 2, period: 1h}\nlog: {level: error}\n"
        self.assertEqual(self.admin("PUT", "/ratelimit/config", yaml, kind="application/yaml")[0], 200)
        self.assertEqual(self.check("orders", "9", 3), 400)
        _, log = server.end()
        self.assertEqual(log.count('audit {'), 12, log)

    def test_events_tell_decisions_as_they_happen(self):
        self.serve()
        with urllib.request.urlopen(f"http://127.0.0.1:{self.server.ports['admin']}/ratelimit/events?allowed=false",
                                    timeout=20) as events:
            self.assertEqual(events.headers["Content-Type"], "text/event-stream")
            self.check("orders", "7", 5)
            self.check("orders", "7")
            line = ""
            while not line.startswith("data: "):
                line = events.readline().decode()
            event = json.loads(line[len("data: "):])
            self.assertEqual((event["limit"], event["id"], event["allowed"]), ("orders", "7", False))


class Tokens(Operated):
    POLICY = POLICY + "admin: {read_token: reader-secret, write_token: writer-secret}\n"

    def test_only_the_write_token_writes(self):
        server = self.serve(self.POLICY)
        self.assertEqual(self.check("orders", "7", 5), 200)
        self.assertEqual(self.admin("GET", "/healthz")[0], 200)
        self.assertEqual(self.admin("GET", "/metrics")[0], 401)
        self.assertEqual(self.admin("GET", "/metrics", token="reader-secret")[0], 200)
        writes = (("POST", "/ratelimit/reset/all?confirm=all", None), ("PUT", "/ratelimit/adjust/orders/7", {"burst": 50}),
                  ("POST", "/ratelimit/access/allow", {"limit": "orders", "id": "7"}),
                  ("PUT", "/ratelimit/config", {"limits": {"orders": {"burst": 50}}}), ("POST", "/ratelimit/reload", None))
        for method, path, body in writes:
            self.assertEqual(self.admin(method, path, body)[0], 401, path)
            self.assertEqual(self.admin(method, path, body, "guess")[0], 401, path)
            self.assertEqual(self.admin(method, path, body, "reader-secret")[0], 403, path)
        self.assertEqual(self.check("orders", "7"), 429)
        for method, path, body in writes:
            self.assertEqual(self.admin(method, path, body, "writer-secret")[0], 200, path)
        self.assertNotIn("secret", self.admin("GET", "/ratelimit/config", token="reader-secret")[1])
        self.assertNotIn("-secret", server.end()[1])

    def test_an_address_of_the_world_needs_tokens(self):
        with self.assertRaises(AssertionError):
            self.serve(POLICY.replace('"127.0.0.1:0", speak: admin', '"0.0.0.0:0", speak: admin'))
        self.serve(POLICY.replace('"127.0.0.1:0", speak: admin', '"0.0.0.0:0", speak: admin')
                   + "admin: {write_token: w}\n")


if __name__ == "__main__":
    unittest.main()
