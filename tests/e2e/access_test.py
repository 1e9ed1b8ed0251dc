"""Allow and deny lists and automatic blocks, from the outside."""

import datetime
import json
import os
import re
import signal
import time
import unittest

from serving import POLICY, Server

LISTS = POLICY + """
  per-key: {key: apikey, burst: 1, count: 1, period: 1h}
access:
  allow:
    - {ip: 10.1.0.0/16, reason: monitoring}
    - {apikey: partner}
    - {limit: orders, id: vip}
  deny:
    - {ip: 203.0.113.0/24, reason: abuse}
    - {ip: 10.1.66.0/24}
    - {limit: orders, id: villain}
    - {ip: 198.51.100.7, expires: 2001-01-01T00:00:00Z}
"""


def check(server, limit, client, path="/v1/check"):
    status, headers, body = server.post(path, {"limit": limit, "id": client})
    return status, headers, json.loads(body)


def metric(server, limit, status):
    found = re.search(rf'weir_rate_limit_requests_total{{limit="{limit}",limiter_type="\w*",status="{status}"}} (\d+)',
                      server.get("admin", "/metrics"))
    return int(found[1]) if found else 0


class Lists(unittest.TestCase):
    def test_who_is_on_the_deny_list_gets_403_on_every_face(self):
        server = Server(self, LISTS)
        status, headers, body = check(server, "per-ip", "203.0.113.9")
        self.assertEqual(status, 403)
        self.assertEqual(body["error"], "access denied")
        self.assertEqual(body["identifier"], "ip:203.0.113.9")
        self.assertTrue(body["message"])
        self.assertFalse(body["allowed"])
        self.assertNotIn("abuse", json.dumps(body), "the reason is the operator's")
        self.assertIsNone(headers["Retry-After"], "it never ends")
        self.assertIsNone(headers["X-RateLimit-Limit"], "no limit was asked")
        self.assertEqual(check(server, "orders", "villain")[0], 403)
        self.assertEqual(server.resp("WEIR.CHECK", "per-ip", "203.0.113.9"), "*5\r\n:0\r\n:0\r\n:0\r\n:-1\r\n:0\r\n")
        self.assertEqual(metric(server, "per-ip", "deny_listed"), 2)
        self.assertEqual(metric(server, "per-ip", "denied"), 0)

    def test_who_is_on_the_allow_list_passes_and_takes_no_token(self):
        server = Server(self, LISTS)
        for limit, client in (("per-ip", "10.1.2.3"), ("per-key", "partner"), ("orders", "vip")):
            for _ in range(6):
                self.assertEqual(check(server, limit, client)[0], 200, (limit, client))
            self.assertEqual(metric(server, limit, "allow_listed"), 6)
            self.assertEqual(metric(server, limit, "allowed"), 0)
        self.assertTrue(server.resp("WEIR.CHECK", "per-ip", "10.1.2.3").startswith("*5\r\n:1\r\n"))

    def test_deny_beats_allow_and_an_ended_entry_counts_for_nothing(self):
        server = Server(self, LISTS)
        self.assertEqual(check(server, "per-ip", "10.1.66.1")[0], 403)
        self.assertEqual(check(server, "per-ip", "10.1.67.1")[0], 200)
        self.assertEqual(check(server, "per-ip", "198.51.100.7")[2]["remaining"], 2)

    def test_an_entry_that_will_end_says_when_and_ends(self):
        soon = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=3)
        expires = soon.strftime("%Y-%m-%dT%H:%M:%SZ")
        server = Server(self, POLICY + f"access: {{deny: [{{ip: 192.0.2.1, expires: {expires}}}]}}\n")
        status, headers, body = check(server, "per-ip", "192.0.2.1")
        if status == 403:  # a slow machine may have passed it already
            self.assertGreaterEqual(int(headers["Retry-After"]), body["retry_after"])
        deadline = time.monotonic() + 20
        while check(server, "per-ip", "192.0.2.1", "/v1/peek")[2]["allowed"] is False and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertEqual(check(server, "per-ip", "192.0.2.1")[0], 200)

    def test_a_reload_changes_the_lists(self):
        server = Server(self, LISTS)
        self.assertEqual(check(server, "orders", "villain")[0], 403)
        server.write(POLICY)
        server.process.send_signal(signal.SIGHUP)
        deadline = time.monotonic() + 20
        while check(server, "orders", "villain")[0] == 403 and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertEqual(check(server, "orders", "villain")[0], 200)

    def test_an_item_of_an_array_says_why(self):
        server = Server(self, LISTS)
        status, _, body = server.post("/v1/check", [{"limit": "orders", "id": "villain"}, {"limit": "orders", "id": "1"}])
        self.assertEqual(status, 200)
        self.assertEqual([item.get("error") for item in json.loads(body)], ["access denied", None])


class Blocks(unittest.TestCase):
    def test_a_client_that_is_denied_often_is_blocked_for_a_while(self):
        server = Server(self, POLICY + "access: {block: {after: 5, within: 1m, for: 10m}}\n")
        at_once = 0
        for client in ("192.0.2.1", "192.0.2.3", "192.0.2.4"):
            answers = [check(server, "per-ip", client)[0] for _ in range(9)]
            self.assertEqual(answers[:8], [200] * 3 + [429] * 5)
            at_once += answers[8] == 403
        self.assertGreaterEqual(at_once, 2, "the very next request, unless another change is being made at that moment")
        deadline = time.monotonic() + 20
        while (denied := check(server, "per-ip", "192.0.2.1"))[0] != 403 and time.monotonic() < deadline:
            pass
        self.assertEqual(denied[0], 403)
        self.assertLessEqual(int(denied[1]["Retry-After"]), 600)
        self.assertGreater(int(denied[1]["Retry-After"]), 500)
        self.assertEqual(check(server, "per-ip", "192.0.2.2")[0], 200, "nobody else is")
        self.assertIn("\nweir_blocks 3\n", server.get("admin", "/metrics"))


class Kept(unittest.TestCase):
    def test_a_damaged_file_is_set_aside_with_a_sentence(self):
        server = Server(self, POLICY)
        directory = server.directory
        server.end()
        path = os.path.join(directory, "state.snapshot.known")
        with open(path, "w", encoding="ascii") as file:
            file.write("weir known 1\nadjust limit=orders\n")
        again = Server(self, POLICY + f"state: {{snapshot: {directory}/state.snapshot}}\n", directory)
        self.assertEqual(check(again, "orders", "1")[0], 200)
        again.end()
        self.assertTrue(os.path.exists(path + ".damaged-1"))
        self.assertFalse(os.path.exists(path))


if __name__ == "__main__":
    unittest.main()
