"""Limits that follow requests: routes, keys, the `request` form of a check, and /v1/authorize."""

import http.client
import json
import os
import pathlib
import unittest

from serving import Server

SOURCE = pathlib.Path(os.environ["WEIR_SOURCE"])

LISTEN = """
listen:
  - {address: "127.0.0.1:0", speak: http}
  - {address: "127.0.0.1:0", speak: resp}
"""

POLICY = LISTEN + """
limits:
  per-ip: {key: ip, burst: 2, count: 2, period: 1h}
  per-key: {key: apikey, burst: 3, count: 3, period: 1h}
  tenant: {key: [header:x-tenant-id, path:1], burst: 5, count: 5, period: 1h, missing: reject}
  everyone: {key: global, burst: 9, count: 9, period: 1h}
overrides:
  per-ip:198.51.100.0/24: {unlimited: true}
  per-ip:203.0.113.66: {blocked: true}
routes:
  - {name: health, match: {path: /healthz}, limits: none}
  - {name: keys, match: {path: /keys}, limits: per-key}
  - {name: tenants, match: {path: "/t/**"}, limits: [tenant]}
  - {name: costly, match: {path: /costly}, limits: [everyone, per-ip], charge: in-order, cost: header:x-cost}
  - {name: rest, match: {path: "/**"}, limits: [per-ip]}
"""


def request(path="/", ip="203.0.113.9", **more):
    return {"request": {"ip": ip, "method": "GET", "path": path, **more}}


class Requests(unittest.TestCase):
    def check(self, server, body, call="/v1/check"):
        status, headers, text = server.post(call, body)
        return status, headers, json.loads(text) if text else None

    def authorize(self, server, headers, target="/v1/authorize"):
        connection = http.client.HTTPConnection("127.0.0.1", server.ports["http"], timeout=20)
        self.addCleanup(connection.close)
        connection.request("GET", target, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()

    def test_a_request_takes_the_limits_of_its_route(self):
        server = Server(self, POLICY)
        for left in (1, 0):
            status, _, answer = self.check(server, request("/a/../b?c"), "/v1/check?explain=true")
            self.assertEqual((status, answer["remaining"], answer["route"], answer["limits"]), (200, left, "rest", ["per-ip"]))
            self.assertEqual(answer["decisions"][0]["bucket"], "per-ip:203.0.113.9")
        status, headers, answer = self.check(server, request())
        self.assertEqual((status, answer["identifier"]), (429, "ip:203.0.113.9"))
        self.assertTrue(int(headers["Retry-After"]) >= 1)
        self.assertEqual(self.check(server, request("/healthz"))[2], {"allowed": True, "decisions": []})
        self.assertEqual(self.check(server, request(ip="203.0.113.10"))[0], 200, "another client")
        self.assertEqual(self.check(server, request(), "/v1/reset")[0], 204)
        self.assertEqual(self.check(server, request(), "/v1/peek")[2]["remaining"], 2)
        self.assertEqual(self.check(server, {**request(), "cost": 2})[0], 200)
        self.assertEqual(self.check(server, request(), "/v1/refund")[2]["remaining"], 1)

    def test_keys_that_are_missing_wrong_or_secret(self):
        server = Server(self, POLICY)
        status, _, answer = self.check(server, request("/t/orders"))
        self.assertEqual((status, answer["error"]), (400, "missing_key"))
        status, _, answer = self.check(server, request("/t/orders", headers={"X-Tenant-Id": "acme"}))
        self.assertEqual((status, answer["id"]), (200, "acme:t"))
        for _ in range(3):
            self.check(server, request("/keys", headers={"Authorization": "Bearer key-abc-123"}))
        status, _, answer = self.check(server, request("/keys", headers={"x-api-key": "key-abc-123"}))
        self.assertEqual((status, answer["identifier"]), (429, "apikey:key-abc-123"))
        status, _, answer = self.check(server, request(ip="nobody"))
        self.assertEqual((status, answer["error"]), (400, "bad_value"))
        status, _, answer = self.check(server, [request(), {"request": {"url": "/"}}])
        self.assertEqual((status, answer[0]["allowed"], answer[1]["error"]), (200, True, "unknown_field"))

    def test_a_cost_that_can_never_pass_takes_nothing(self):
        server = Server(self, POLICY)
        status, _, answer = self.check(server, request("/costly", headers={"x-cost": "3"}))
        self.assertEqual((status, answer["error"]), (400, "cost_exceeds_burst"))
        status, headers, body = self.authorize(server, {"X-Forwarded-Uri": "/costly", "x-cost": "3"})
        self.assertEqual((status, headers["Retry-After"], body), (429, None, b""))
        status, _, answer = self.check(server, request("/costly", headers={"x-cost": "x"}))
        self.assertEqual((status, answer["error"]), (400, "bad_value"))
        status, _, answer = self.check(server, {"limit": "everyone", "id": "global", "cost": 0}, "/v1/peek")
        self.assertEqual(answer["remaining"], 9)

    def test_a_peek_in_order_says_what_the_check_says(self):
        server = Server(self, POLICY)
        for limit, cost in (("per-ip", 2), ("everyone", 9)):
            self.assertEqual(self.check(server, {"limit": limit, "id": "203.0.113.9", "cost": cost})[0], 200)
        both = {"charges": [{"limit": "everyone", "id": "x"}, {"limit": "per-ip", "id": "203.0.113.9"}], "charge": "in-order"}
        peek, check = self.check(server, both, "/v1/peek")[2], self.check(server, both)[2]
        self.assertEqual((peek["limit"], len(peek["decisions"])), (check["limit"], len(check["decisions"])))
        self.assertEqual((check["limit"], len(check["decisions"])), ("everyone", 1), "nothing after the first denial is asked")

    def test_a_limit_in_shadow_mode_refuses_no_request(self):
        server = Server(self, LISTEN + """
limits:
  shadow: {key: header:x-id, id: regId, rate: 5/h, missing: reject, mode: shadow}
  per-ip: {key: ip, rate: 1/h}
""")
        for headers in ({}, {"x-id": "nobody"}, {"x-id": ["1", "2"]}):
            status, _, answer = self.check(server, request(ip=f"203.0.113.{10 + len(str(headers))}", headers=headers))
            self.assertEqual((status, [one["limit"] for one in answer["decisions"]]), (200, ["per-ip"]))

    def test_unlimited_and_blocked_ids_look_the_same_on_every_face(self):
        server = Server(self, POLICY)
        status, headers, answer = self.check(server, {"limit": "per-ip", "id": "198.51.100.7"})
        self.assertEqual((status, answer["burst"], answer["remaining"], answer["retry_after"]), (200, -1, -1, 0))
        self.assertIsNone(headers["X-RateLimit-Limit"])
        self.assertEqual(server.resp("WEIR.CHECK", "per-ip", "198.51.100.7"), "*5\r\n:1\r\n:-1\r\n:-1\r\n:0\r\n:0\r\n")
        status, headers, answer = self.check(server, {"limit": "per-ip", "id": "203.0.113.66"})
        self.assertEqual((status, answer["burst"], answer["remaining"], answer["retry_after"]), (429, 0, 0, -1))
        self.assertIsNone(headers["Retry-After"])
        self.assertEqual(server.resp("WEIR.CHECK", "per-ip", "203.0.113.66"), "*5\r\n:0\r\n:0\r\n:0\r\n:-1\r\n:0\r\n")

    def test_a_forged_x_forwarded_for_changes_nothing(self):
        server = Server(self, POLICY)
        answers = [self.authorize(server, {"X-Forwarded-For": f"192.0.2.{i}", "X-Real-IP": f"192.0.2.{i}"})[0] for i in range(4)]
        self.assertEqual(answers, [200, 200, 429, 429], "all of them are 127.0.0.1")

    def test_a_trusted_proxy_says_who_the_client_is(self):
        server = Server(self, POLICY + "\naccess: {trusted_proxies: [127.0.0.1]}")
        ask = {"X-Forwarded-For": "6.6.6.6, 203.0.113.9", "X-Original-URI": "/x", "X-Original-Method": "PUT"}
        self.assertEqual([self.authorize(server, ask)[0] for _ in range(3)], [200, 200, 429])
        ask["X-Forwarded-For"] = "7.7.7.7, 203.0.113.9"
        status, headers, body = self.authorize(server, ask, "/v1/authorize?deny=403")
        self.assertEqual((status, body, headers["X-RateLimit-Remaining"]), (403, b"", "0"), "what the client forged does not help")
        self.assertTrue(int(headers["Retry-After"]) >= 1)
        self.assertEqual(self.authorize(server, {"X-Forwarded-Uri": "/healthz"})[0], 200)

    def test_the_sign_in_example(self):
        policy = (SOURCE / "examples/signin/weir.yaml").read_text()
        server = Server(self, LISTEN + policy)
        form = {"method": "POST", "form": {"email": "ada@example.com"}, "headers": {"cookie": "idx=1; access_token=2"}}
        for _ in range(5):
            self.assertEqual(self.check(server, request("/signin", **form))[0], 200)
        status, _, answer = self.check(server, request("/signin", ip="203.0.113.10", **form), "/v1/check?explain=true")
        self.assertEqual((status, answer["limit"], answer["route"]), (429, "email", "signin"))
        self.assertEqual(answer["limits"], ["session", "email", "ip", "access-token", "global"])
        self.assertRegex(answer["decisions"][1]["bucket"], "^email@signin:[0-9a-f]{64}$")
        self.assertNotIn("ada@example.com", json.dumps(answer))
        self.assertEqual(self.check(server, request("/register", **form))[0], 200, "another page has buckets of its own")


if __name__ == "__main__":
    unittest.main()
