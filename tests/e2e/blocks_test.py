"""Blocks of one limit: counted, logged, shown, lifted by operators, and shared by servers on one Redis."""

import unittest

from redis_servers import Redis, until
from redis_shared_test import admin
from serving import Server

POLICY = """
listen:
  - {address: "127.0.0.1:0", speak: http}
  - {address: "127.0.0.1:0", speak: resp}
  - {address: "127.0.0.1:0", speak: admin}
threads: 1
limits:
  logins: {burst: 1, count: 1, period: 1h, block: {after: 3, within: 10m, for: 1h}}
  pages: {burst: 100, count: 100, period: 1h}
"""


class Blocks(unittest.TestCase):
    def check(self, server, limit, client):
        return server.post("/v1/check", {"limit": limit, "id": client})[0]

    def provoke(self, server, client="7"):
        """One pass, three denials: blocked from then on."""
        self.assertEqual([self.check(server, "logins", client) for _ in range(4)], [200, 429, 429, 429])

    def test_a_limits_own_block_denies_the_whole_request_is_logged_counted_and_shown(self):
        server = Server(self, POLICY)
        self.assertIn('weir_blocks_total{limit="logins"} 0\n', server.get("admin", "/metrics"))
        self.provoke(server)
        until("the block", lambda: self.check(server, "logins", "7") == 403)
        both = {"charges": [{"limit": "pages", "id": "7"}, {"limit": "logins", "id": "7"}]}
        self.assertEqual(server.post("/v1/check", both)[0], 403)
        self.assertEqual(self.check(server, "pages", "7"), 200, "another limit alone")
        self.assertEqual(self.check(server, "logins", "8"), 200, "another id")
        self.assertIn('weir_blocks_total{limit="logins"} 1\n', server.get("admin", "/metrics"))
        self.assertIn('weir_blocks_total{limit="pages"} 0\n', server.get("admin", "/metrics"))
        status, row = admin(server, "GET", "/ratelimit/clients/logins/7")
        self.assertEqual(status, 200)
        self.assertEqual(row["block"]["reason"], "automatic block: 3 denials within 10m by logins")
        self.assertIsNone(admin(server, "GET", "/ratelimit/clients/logins/8")[1]["block"])
        _, log = server.end()
        lines = [line for line in log.splitlines() if "client blocked: client=logins:7" in line]
        self.assertEqual(len(lines), 1, log)
        self.assertIn("client blocked: client=logins:7 limit=logins denials=3 within=10m for=1h", lines[0])

    def test_only_the_admin_api_lifts_a_block_and_operators_entries_stay(self):
        server = Server(self, POLICY)
        self.provoke(server)
        until("the block", lambda: self.check(server, "logins", "7") == 403)
        self.assertEqual(server.post("/v1/reset", {"limit": "logins", "id": "7"})[0], 204)
        self.assertEqual(server.resp("WEIR.RESET", "logins", "7"), ":0\r\n")
        self.assertEqual(admin(server, "POST", "/ratelimit/reset/logins:7"), (200, {"reset": 0}))
        self.assertEqual(self.check(server, "logins", "7"), 403, "a reset without block=true leaves the block")
        self.assertEqual(admin(server, "POST", "/ratelimit/reset/logins:7?block=maybe")[0], 400)
        self.assertEqual(admin(server, "POST", "/ratelimit/reset/7?block=true"), (200, {"reset": 0, "unblocked": True}))
        self.assertEqual(self.check(server, "logins", "7"), 200)
        self.assertEqual(admin(server, "POST", "/ratelimit/access/deny", {"limit": "logins", "id": "9"})[0], 200)
        self.assertEqual(admin(server, "POST", "/ratelimit/reset/9?block=true")[1]["unblocked"], False)
        self.assertEqual(self.check(server, "logins", "9"), 403)
        self.provoke(server, "10")
        until("the block", lambda: self.check(server, "logins", "10") == 403)
        status, reply = admin(server, "POST", "/ratelimit/reset/all?confirm=all&block=true")
        self.assertEqual((status, reply["unblocked"]), (200, True))
        self.assertEqual([self.check(server, "logins", "10"), self.check(server, "logins", "9")], [200, 403])

    def test_servers_on_one_redis_share_a_limits_blocks(self):
        redis = Redis(self)
        policy = POLICY + f'store: redis\nredis: {{endpoints: ["127.0.0.1:{redis.port}"], timeout: 2s}}\n'
        one, two = Server(self, policy), Server(self, policy)
        for server in (one, two):
            server.wait_for_metric("weir_store_up 1\n")
        self.provoke(one)
        until("the block on the other server", lambda: admin(two, "GET", "/ratelimit/access/deny")[1]["entries"])
        self.assertEqual(self.check(two, "logins", "7"), 403)
        self.assertIn('weir_blocks_total{limit="logins"} 0\n', two.get("admin", "/metrics"), "it began on the other one")
        self.assertEqual(admin(two, "GET", "/ratelimit/clients/logins/7")[1]["block"]["reason"],
                         "automatic block: 3 denials within 10m by logins")
        self.assertTrue(admin(two, "POST", "/ratelimit/reset/logins:7?block=true")[1]["unblocked"])
        for server in (two, one):
            until("the end of the block", lambda s=server: self.check(s, "logins", "7") != 403)


if __name__ == "__main__":
    unittest.main()
