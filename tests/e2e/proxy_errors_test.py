"""The responses of the edge proxy to requests that cannot be read, and what the access log says of every request."""

import json
import os
import socket
import time
import unittest

from proxying import OPEN, Proxy, RawBackend, Response, exchange
from redis_servers import until

ERRORS = """
error_headers: {access-control-allow-origin: "*", x-all: "1"}
proxy: {header_max: 2KiB, request_line_max: 1KiB, header_timeout: 100ms, body_timeout: 100ms}
"""
CHUNKED = b"POST /upload HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n%s\r\n2\r\nab\r\n"
SLOW = b"POST /upload HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n%s\r\nab"
ROUTE_ERRORS = """
limits: {per-ip: {key: ip, rate: 100/hour}}
error_headers: {access-control-allow-origin: "*", x-all: "1"}
routes: [{name: up, match: {path: /upload}, limits: [per-ip], error_headers: {x-all: "2", x-own: "3"}}]
"""


def access_log(proxy, count):
    """The lines of the log, as soon as there are so many."""
    path = os.path.join(proxy.directory, "access.log")
    while True:
        with open(path, encoding="utf-8") as file:
            lines = [json.loads(line) for line in file.read().splitlines()]
        if len(lines) >= count:
            return lines
        time.sleep(0.01)


def open_text(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class Unreadable(unittest.TestCase):
    def setUp(self):
        self.backend = RawBackend(self)

    def proxy(self, more=ERRORS, base=OPEN):
        return Proxy(self, base.format(url=self.backend.url) + more + "log: {access: json, access_file: access.log}\n")

    def test_responses_to_bad_heads_have_the_error_headers_and_are_counted_and_logged(self):
        proxy = self.proxy()
        rows = [(b"GET / HTTP/1.1\r\nHost: h\r\nBad Name: x\r\n\r\n", 400, "bad_request"),
                (b"GET / HTTP/1.1\r\nHost:", 408, "request_timeout"),
                (b"GET /" + b"a" * 1100 + b" HTTP/1.1\r\nHost: h\r\n\r\n", 414, "uri_too_long"),
                (b"GET / HTTP/1.1\r\nHost: h\r\nX-A: " + b"b" * 2100 + b"\r\n\r\n", 431, "header_too_large"),
                (b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip\r\n\r\n", 501, "not_implemented"),
                (b"GET / HTTP/3.0\r\nHost: h\r\n\r\n", 505, "version_not_supported")]
        ids = []
        for request, status, error in rows:
            answer = exchange(proxy.port, request)
            body = json.loads(answer.body)
            self.assertEqual((answer.status, body["error"], sorted(body)), (status, error, ["error", "message"]), request)
            self.assertEqual((answer.headers["access-control-allow-origin"], answer.headers["x-all"]), ("*", "1"))
            self.assertEqual(answer.headers["connection"], "close")
            ids.append(answer.headers["x-request-id"])
        lines = access_log(proxy, len(rows))
        self.assertEqual([(line["status"], line["request_id"], line["decision"], line["client"], line["limits"]) for line in lines],
                         [(status, id, "refused", "127.0.0.1", []) for (_, status, _), id in zip(rows, ids)])
        metrics = proxy.metrics()
        self.assertIn('weir_proxy_requests_total{route="",status_class="4xx"} 4\n', metrics)
        self.assertIn('weir_proxy_requests_total{route="",status_class="5xx"} 2\n', metrics)
        self.assertEqual(self.backend.requests, [])

    def test_a_body_that_cannot_be_read_is_answered_as_the_head_asked_for(self):
        for request, rest, more, status, error in (
                (CHUNKED, b"zz\r\n", "", 400, "bad_request"), (SLOW, b"", "proxy: {body_timeout: 1s}\n", 408, "request_timeout")):
            proxy = self.proxy(more + ROUTE_ERRORS, base="backend: {url}\n")
            plain, problem, grpc = (self.cut(proxy, request % line, rest, calls) for calls, line in enumerate(
                (b"X-Request-Id: mine\r\n", b"Accept: application/problem+json\r\n", b"Content-Type: application/grpc\r\n"), 1))
            self.assertEqual((plain.status, json.loads(plain.body)["error"]), (status, error))
            expected = {"x-all": "2", "x-own": "3", "access-control-allow-origin": "*", "x-request-id": "mine", "x-ratelimit-limit": "100"}
            self.assertEqual({name: plain.headers[name] for name in expected}, expected)
            self.assertEqual((problem.status, problem.headers["content-type"]), (status, "application/problem+json"))
            self.assertEqual((json.loads(problem.body)["status"], json.loads(problem.body)["error"]), (status, error))
            self.assertEqual((grpc.status, grpc.headers["grpc-status"]), (200, "3" if status == 400 else "4"))
            lines = access_log(proxy, 3)
            self.assertEqual([(line["status"], line["path"], line["route"], line["decision"]) for line in lines],
                             [(each, "/upload", "up", "allowed") for each in (status, status, 200)])
            proxy.wait_for_metric("weir_proxy_active 0\n")

    def cut(self, proxy, request, rest, calls):
        """Sends the rest when the limits were asked."""
        with socket.create_connection(("127.0.0.1", proxy.port), timeout=20) as connection, connection.makefile("rb") as reader:
            connection.sendall(request)
            proxy.wait_for_metric(f'limit="per-ip",limiter_type="ip",status="allowed"}} {calls}\n')
            connection.sendall(rest)
            return Response(reader)

    def test_a_backend_that_was_called_hears_that_the_request_ended(self):
        proxy = self.proxy("proxy: {body_timeout: 1s}\n")
        with socket.create_connection(("127.0.0.1", proxy.port), timeout=20) as connection, connection.makefile("rb") as reader:
            connection.sendall(SLOW % b"")
            self.assertEqual(Response(reader).status, 408)
        with self.backend.lock:
            self.assertTrue(self.backend.lock.wait_for(lambda: not self.backend.open, timeout=20), "its connection is closed")
        self.assertEqual(self.backend.requests, [], "half a request is none")


class Log(unittest.TestCase):
    def proxy(self, more, form="json"):
        backend = RawBackend(self)
        return Proxy(self, f"backend: {backend.url}\nlog: {{access: {form}, access_file: access.log}}\n{more}")

    def test_limits_have_their_cost_and_their_tier(self):
        proxy = self.proxy("""
limits:
  tenant: {key: header:x-tenant, rate: 10/hour, tier: header:x-plan, tiers: {pro: {rate: 20/hour}}}
  per-ip: {key: ip, rate: 100/hour}
routes: [{name: all, match: {path: "/**"}, limits: [tenant, per-ip], cost: "header:x-cost"}]
access: {trusted_proxies: [127.0.0.1]}
""")
        for headers, limit in (([("X-Tenant", "a")], "10"), ([("X-Tenant", "a"), ("X-Plan", "pro"), ("X-Cost", "3")], "20"),
                               ([("X-Tenant", "a"), ("X-Plan", "none")], "10")):
            self.assertIn(f'"tenant";q={limit};', proxy.get("/", headers).headers["ratelimit-policy"])
        own = {"limit": "per-ip", "id": "127.0.0.1", "allowed": True}
        tenant = {"limit": "tenant", "id": "a", "allowed": True}
        self.assertEqual([line["limits"] for line in access_log(proxy, 3)], [
            [tenant, own], [tenant | {"cost": 3, "tier": "pro"}, own | {"cost": 3}], [tenant, own]])

    def test_common_lines_have_the_bytes_that_were_sent(self):
        proxy = self.proxy("limits: {per-ip: {key: ip, rate: 2/hour}}\n", "common")
        proxy.get("/a?secret=1")
        proxy.get("/", method="HEAD")
        denied = len(proxy.get("/b").body)
        exchange(proxy.port, b"GET / HTTP/3.0\r\n\r\n")
        path = os.path.join(proxy.directory, "access.log")
        until("every request is logged", lambda: open_text(path).count("\n") == 4)
        stamp = r"127\.0\.0\.1 - - \[\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d \+0000\] "
        self.assertRegex(open_text(path), f'^{stamp}"GET /a HTTP/1.1" 200 2\n{stamp}"HEAD / HTTP/1.1" 200 0\n'
                                          f'{stamp}"GET /b HTTP/1.1" 429 {denied}\n{stamp}"-" 505 [1-9][0-9]*\n$')

    def test_metrics_have_their_names_and_count_bytes(self):
        proxy = self.proxy("""
limits: {}
routes: [{name: up, match: {path: /up}, limits: none}]
""")
        proxy.get("/up", method="POST", body=b"hello")
        proxy.wait_for_metric('weir_connections{speak="proxy"} 0\n')
        metrics = proxy.metrics()
        for line in ('weir_proxy_requests_total{route="up",status_class="2xx"} 1', 'weir_proxy_bytes_total{direction="in"} 5',
                     'weir_proxy_bytes_total{direction="out"} 2', 'weir_proxy_upstream_seconds_count{route="up"} 1',
                     'weir_proxy_retries_total 0', 'weir_proxy_active 0', 'weir_proxy_header_refused_total 0'):
            self.assertIn(f"\n{line}\n", metrics)
        for kind in ("connect", "reset", "timeout", "bad_answer", "overloaded", "refused", "none_left"):
            self.assertIn(f'\nweir_proxy_upstream_errors_total{{route="up",kind="{kind}"}} 0\n', metrics)
        self.assertRegex(metrics, r'\nweir_proxy_upstream_seconds_bucket\{route="up",le="\+Inf"\} 1\n')
        self.assertRegex(metrics, r'\nweir_backend_up\{backend="http://127\.0\.0\.1:\d+"\} 1\n')
        missing = len(proxy.get("/up%00").body)
        proxy.wait_for_metric(f'weir_proxy_bytes_total{{direction="out"}} {2 + missing}\n')

    def test_a_tier_in_a_header_of_an_untrusted_client_counts_for_nothing(self):
        proxy = self.proxy("limits: {a: {key: ip, rate: 10/hour, tier: header:x-plan, tiers: {pro: {rate: 20/hour}}}}\n")
        self.assertEqual(proxy.get("/", [("X-Plan", "pro")]).headers["x-ratelimit-limit"], "10")
        self.assertNotIn("tier", access_log(proxy, 1)[0]["limits"][0])

    def test_denials_name_the_limit_and_the_id_but_not_a_client_that_a_list_knows(self):
        proxy = self.proxy("""
limits:
  tenant: {key: header:x-tenant, rate: 1/hour}
access: {deny: [{limit: tenant, id: bad}, {apikey: stolen}]}
""")
        statuses = [proxy.get("/", headers).status for headers in (
            [("X-Tenant", "a")], [("X-Tenant", "a")], [("X-Tenant", "bad")], [("X-API-Key", "stolen")])]
        self.assertEqual(statuses, [200, 429, 403, 403])
        lines = access_log(proxy, 4)
        self.assertEqual([line["decision"] for line in lines], ["allowed", "denied", "deny_listed", "deny_listed"])
        self.assertEqual([line["limits"] for line in lines], [
            [{"limit": "tenant", "id": "a", "allowed": True}], [{"limit": "tenant", "id": "a", "allowed": False}],
            [{"limit": "tenant", "id": "bad", "allowed": False}], []])


if __name__ == "__main__":
    unittest.main()
