"""Limits from a service: `weir serve` asks the example service over every face, once, and uses what it says."""

import json
import os
import pathlib
import socket
import subprocess
import tempfile
import threading
import unittest
import urllib.error
import urllib.request

import jsonschema
import yaml
from limits_service import LimitsService
from proxying import RawBackend, exchange
from redis_servers import read_reply, until
from serving import ENVIRONMENT, WEIR, Server

POLICY = """
listen:
  - {{address: "127.0.0.1:0", speak: http}}
  - {{address: "127.0.0.1:0", speak: resp}}
  - {{address: "127.0.0.1:0", speak: admin}}
  {listen}
threads: 2
memory: {{max_buckets: 100000}}
limits:
  per-tenant:
    key: "header:X-Tenant-Id"
    burst: 7
    count: 7
    period: 1h
    external: {{enabled: true, {service}, timeout: {timeout}, cache_ttl: {cache_ttl}{external}}}
{more}
"""
OWN = 7  # the limit's own burst


def policy(service, listen="", external="", more="", timeout="20s", cache_ttl="10m", reach=None):
    """`external` begins with a comma. `reach`: instead of http."""
    return POLICY.format(service=reach or f'http: {{url: "{service.url}"}}', listen=listen, external=external, more=more,
                         timeout=timeout, cache_ttl=cache_ttl)


class Asking(unittest.TestCase):
    def check(self, server, tenant, path="/v1/check"):
        """Status and answer of one check."""
        status, _, body = server.post(path, {"limit": "per-tenant", "id": tenant})
        return status, json.loads(body)

    def burst(self, server, tenant):
        status, answer = self.check(server, tenant)
        self.assertIn(status, (200, 429), answer)
        return answer["burst"]

    def metric(self, server, line):
        for row in server.get("admin", "/metrics").splitlines():
            if row.startswith(line + " "):
                return float(row.split()[-1])
        return 0

    def admin(self, server, method, path):
        request = urllib.request.Request(f"http://127.0.0.1:{server.ports['admin']}{path}", method=method,
                                         headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as answer:
            with answer:
                return answer.code, answer.read().decode()

    def authorize(self, server, tenant, target="/", headers=""):
        return exchange(server.ports["http"], (f"GET /v1/authorize HTTP/1.1\r\nHost: h\r\nX-Tenant-Id: {tenant}\r\n"
                                               f"X-Forwarded-Method: PUT\r\nX-Forwarded-Uri: {target}\r\n{headers}\r\n").encode())


class Faces(Asking):
    def setUp(self):
        self.service = LimitsService(self)
        self.backend = RawBackend(self)
        self.server = Server(self, policy(self.service, listen='- {address: "127.0.0.1:0", speak: proxy}',
                                          more=f"backend: {self.backend.url}"))

    def test_a_check_over_http_asks_with_the_key_alone(self):
        self.assertEqual(self.check(self.server, "free")[1]["burst"], 3)
        self.assertEqual(self.service.calls()["last"], {"key": "free", "headers": {}, "method": "", "path": ""})

    def test_a_check_over_resp_asks(self):
        self.assertTrue(self.server.resp("WEIR.CHECK", "per-tenant", "free").startswith("*5\r\n:1\r\n:3\r\n:2\r\n"))
        self.assertEqual(self.service.calls()["last"]["key"], "free")

    def test_a_peek_asks_and_takes_nothing(self):
        for _ in range(2):
            self.assertEqual(self.check(self.server, "free", "/v1/peek")[1]["remaining"], 3)
        self.assertEqual(self.service.calls("free"), 1)

    def test_refunds_and_resets_use_what_is_known(self):
        self.assertEqual(self.check(self.server, "free")[1]["remaining"], 2)
        self.assertEqual(self.check(self.server, "free", "/v1/refund")[1]["remaining"], 3)
        self.assertEqual(self.check(self.server, "acme", "/v1/refund")[1]["burst"], OWN)
        self.assertEqual(self.server.post("/v1/reset", {"limit": "per-tenant", "id": "acme"})[0], 204)
        self.assertEqual(self.service.calls()["by_key"], {"free": 1})

    def test_authorize_asks_with_the_request(self):
        headers = "X-Plan: pro\r\nX-Plan: gold\r\nAuthorization: Bearer secret\r\nCookie: a=b\r\n"
        response = self.authorize(self.server, "free", "/api/v1/data?x=1", headers)
        self.assertEqual((response.status, response.headers["x-ratelimit-limit"]), (200, "3"))
        asked = self.service.calls()["last"]
        self.assertEqual((asked["key"], asked["method"], asked["path"]), ("free", "PUT", "/api/v1/data"))
        self.assertEqual((asked["headers"]["X-Tenant-Id"], asked["headers"]["X-Plan"]), ("free", "pro, gold"))
        self.assertNotIn("Authorization", asked["headers"])
        self.assertNotIn("Cookie", asked["headers"])

    def test_the_proxy_asks_with_the_request(self):
        request = b"GET /x/y?z HTTP/1.1\r\nHost: h\r\nX-Tenant-Id: free\r\nX-Api-Key: secret\r\n\r\n"
        for expected in (200, 200, 200, 429):
            self.assertEqual(exchange(self.server.ports["proxy"], request).status, expected)
        asked = self.service.calls()["last"]
        self.assertEqual((asked["method"], asked["path"], asked["headers"]["X-Tenant-Id"]), ("GET", "/x/y", "free"))
        self.assertNotIn("X-Api-Key", asked["headers"])
        self.assertEqual(self.service.calls()["total"], 1)
        self.assertEqual(len(self.backend.requests), 3)

    def test_all_faces_share_the_answer_and_the_bucket(self):
        self.assertEqual(self.check(self.server, "free")[0], 200)
        self.assertTrue(self.server.resp("WEIR.CHECK", "per-tenant", "free").startswith("*5\r\n:1\r\n:3\r\n:1\r\n"))
        self.assertEqual(self.authorize(self.server, "free").status, 200)
        self.assertEqual(self.check(self.server, "free")[0], 429)
        self.assertEqual(self.service.calls()["total"], 1)
        self.assertEqual(self.metric(self.server, 'weir_external_requests_total{result="ok"}'), 1)
        self.assertEqual(self.metric(self.server, 'weir_external_cache_total{result="hit"}'), 3)

    def test_an_array_of_checks_asks_for_each(self):
        _, _, body = self.server.post("/v1/check", [{"limit": "per-tenant", "id": tenant} for tenant in ("free", "acme", "x")])
        self.assertEqual([answer["burst"] for answer in json.loads(body)], [3, 40, 1000])


class HeaderFilter(Asking):
    def asked(self, external):
        service = LimitsService(self)
        server = Server(self, policy(service, external=external))
        self.authorize(server, "free", headers="Authorization: Bearer s\r\nX-Plan: pro\r\nUser-Agent: t\r\n")
        return service.calls()["last"]["headers"]

    def test_an_allow_list_sends_exactly_those(self):
        self.assertEqual(self.asked(", header_filter: {allow_list: [x-TENANT-id, Authorization], deny_list: [X-Tenant-Id]}"),
                         {"x-TENANT-id": "free", "Authorization": "Bearer s"})

    def test_a_deny_list_adds_to_the_sensitive_ones(self):
        headers = self.asked(", header_filter: {deny_list: [x-plan]}")
        self.assertEqual((headers["X-Tenant-Id"], headers["User-Agent"]), ("free", "t"))
        self.assertFalse(headers.keys() & {"X-Plan", "Authorization"})


class Together(Asking):
    def pipeline(self, server, commands, connections):
        """All commands on each of that many RESP connections at once; the replies."""
        replies, threads = [], []
        barrier = threading.Barrier(connections)

        def run():
            with server.connect("resp") as connection, connection.makefile("rb") as reader:
                barrier.wait(timeout=30)
                connection.sendall(b"".join(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w.encode())
                                                                             for w in words) for words in commands))
                connection.settimeout(60)
                replies.extend([read_reply(reader) for _ in commands])

        for _ in range(connections):
            threads.append(threading.Thread(target=run))
            threads[-1].start()
        for thread in threads:
            thread.join(timeout=120)
        self.assertEqual(len(replies), connections * len(commands))
        return replies

    def test_a_thousand_requests_for_a_cold_key_make_one_call(self):
        service = LimitsService(self)
        server = Server(self, policy(service))
        service.faults(delay=0.5)
        replies = self.pipeline(server, [("WEIR.CHECK", "per-tenant", "cold")] * 20, 50)
        self.assertEqual(service.calls()["by_key"], {"cold": 1})
        self.assertEqual({(reply[0], reply[1]) for reply in replies}, {(1, 1000)})
        self.assertEqual(self.metric(server, "weir_external_waiting"), 0)

    def test_many_cold_keys_never_exceed_the_slots(self):
        service = LimitsService(self)
        server = Server(self, policy(service, external=", max_concurrent_requests: 8"))
        service.faults(delay=0.01)
        commands = [("WEIR.CHECK", "per-tenant", f"cold-{i}") for i in range(1000)]
        replies = self.pipeline(server, commands, 2)
        calls = service.calls()
        self.assertEqual((calls["total"], len(calls["by_key"])), (1000, 1000))
        self.assertLessEqual(calls["at_once_max"], 8)
        self.assertEqual({(reply[0], reply[1]) for reply in replies}, {(1, 1000)})

    def test_who_waited_for_the_timeout_gets_the_own_numbers(self):
        service = LimitsService(self)
        server = Server(self, policy(service, timeout="300ms", external=", max_concurrent_requests: 1"))
        service.faults(hang=True)
        replies = self.pipeline(server, [("WEIR.CHECK", "per-tenant", f"cold-{i}") for i in range(3)], 2)
        self.assertEqual({reply[1] for reply in replies}, {OWN})
        self.assertEqual(self.metric(server, "weir_external_waiting"), 0)

    def test_more_than_may_wait_get_the_own_numbers_at_once(self):
        service = LimitsService(self)
        server = Server(self, policy(service, external=", max_waiting: 5"))
        service.faults(hang=True)
        sockets = [server.connect("resp") for _ in range(5)]
        for connection in sockets:
            connection.sendall(b"*3\r\n$10\r\nWEIR.CHECK\r\n$10\r\nper-tenant\r\n$4\r\ncold\r\n")
        until("five wait", lambda: self.metric(server, "weir_external_waiting") == 5)
        self.assertEqual(self.burst(server, "cold"), OWN)
        service.faults()
        for connection in sockets:
            with connection, connection.makefile("rb") as reader:
                self.assertEqual(read_reply(reader)[1], 1000)

    def test_a_client_that_leaves_cancels_nobody(self):
        service = LimitsService(self)
        server = Server(self, policy(service))
        service.faults(hang=True)
        check = b'{"limit":"per-tenant","id":"cold"}'
        with server.connect("http") as first:
            first.sendall(b"POST /v1/check HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n"
                          b"Content-Length: %d\r\n\r\n%s" % (len(check), check))
            until("the service is asked", lambda: service.calls("cold") == 1)
            first.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # a reset, not a polite end
        found = []
        second = threading.Thread(target=lambda: found.append(self.burst(server, "cold")))
        second.start()
        until("the second waits", lambda: self.metric(server, "weir_external_waiting") >= 1)
        service.faults()
        second.join(timeout=30)
        self.assertEqual((found, service.calls("cold")), ([1000], 1))


class Answers(Asking):
    def test_two_inputs_with_one_tenant_key_share_a_bucket(self):
        service = LimitsService(self)
        server = Server(self, policy(service))
        self.assertEqual(self.check(server, "acme")[1]["remaining"], 39)
        self.assertEqual(self.check(server, "acme-staging")[1]["remaining"], 38)
        status, answer = self.check(server, "t:acme-corp")
        self.assertEqual((status, answer["error"]), (400, "bad_id"))

    def test_unlimited_is_unlimited(self):
        server = Server(self, policy(LimitsService(self)))
        for _ in range(20):
            status, answer = self.check(server, "internal")
            self.assertEqual((status, answer["burst"]), (200, -1))

    def test_bad_answers_leave_the_own_numbers_and_are_counted(self):
        service = LimitsService(self)
        server = Server(self, policy(service, timeout="2s"))
        bad = {"bad_status": [{"status": 500}, {"status": 204}, {"status": 302, "headers": {"Location": "/limits"}}],
               "bad_body": [{"body": "nonsense"}, {"body": ""}, {"body": "[]"}, {"body": "{" + " " * 70000 + "}"}],
               "bad_average": [{"answer": {"average": None}}, {"answer": {"average": -1}}],
               "bad_burst": [{"answer": {"burst": 0}}],
               "bad_period": [{"answer": {"period": "soon"}}],
               "bad_numbers": [{"answer": {"average": 1, "burst": 2**62}}],
               "unavailable": [{"cut": 5}]}
        for result, cases in bad.items():
            for number, faults in enumerate(cases):
                with self.subTest(result=result, faults=str(faults)[:60]):
                    service.faults()
                    for i in range(2):  # so many succeed that the service as a whole is not given up
                        self.burst(server, f"good-{result}-{number}-{i}")
                    service.faults(**faults)
                    before = self.metric(server, f'weir_external_requests_total{{result="{result}"}}')
                    self.assertEqual(self.burst(server, f"{result}-{number}"), OWN)
                    self.assertEqual(self.metric(server, f'weir_external_requests_total{{result="{result}"}}'), before + 1)

    def test_invalid_optional_fields_are_ignored_and_counted(self):
        service = LimitsService(self)
        server = Server(self, policy(service))
        fields = {"tenant_key": "a b", "failure_policy": "open", "failure_code": 302, "cache_max_age_seconds": -1}
        for field, value in fields.items():
            service.faults(answer={field: value})
            self.assertEqual(self.burst(server, f"tenant-{field}"), 1000)
            self.assertEqual(self.metric(server, f'weir_external_ignored_total{{field="{field}"}}'), 1)

    def test_an_answer_is_asked_again_when_it_is_over(self):
        service = LimitsService(self)
        server = Server(self, policy(service))
        service.faults(headers={"Cache-Control": "max-age=1"})
        self.assertEqual(self.burst(server, "tenant"), 1000)
        service.faults(answer={"burst": 5})
        until("the new numbers count", lambda: self.burst(server, "tenant") == 5)
        self.assertEqual(service.calls("tenant"), 2)

    def test_an_answer_that_may_not_be_kept_is_asked_for_every_time(self):
        service = LimitsService(self)
        server = Server(self, policy(service))
        service.faults(headers={"Cache-Control": "no-store"})
        for calls in (1, 2, 3):
            self.assertEqual(self.burst(server, "tenant"), 1000)
            self.assertEqual(service.calls("tenant"), calls)
        service.faults(status=500)
        self.assertEqual(self.burst(server, "tenant"), OWN)  # and it is not kept as stale

    def test_the_admin_api_shows_and_forgets_an_answer(self):
        service = LimitsService(self)
        server = Server(self, policy(service))
        self.burst(server, "acme")
        _, body = self.admin(server, "GET", "/ratelimit/clients/per-tenant/acme")
        answer = json.loads(body)["external"]
        self.assertEqual((answer["average"], answer["burst"], answer["tenant_key"], answer["fresh"], answer["source"]),
                         (100, 40, "acme-corp", True, "service"))
        service.faults(answer={"burst": 5})
        self.assertEqual(self.burst(server, "acme"), 40)
        self.assertEqual(self.admin(server, "DELETE", "/ratelimit/external/per-tenant/acme")[0], 200)
        self.assertEqual(self.burst(server, "acme"), 5)

    def test_the_view_of_an_id_shows_what_decides_it_and_not_only_its_tenant(self):
        service = LimitsService(self)
        server = Server(self, policy(service, more="overrides:\n  per-tenant:free: {unlimited: true}"))
        service.faults(answer={"average": 100, "burst": 40, "period": "1h", "tenant_key": "acme-corp"})
        view = lambda name: json.loads(self.admin(server, "GET", f"/ratelimit/clients/per-tenant/{name}?full=true")[1])
        shown = lambda name: tuple(view(name)[field] for field in ("id", "burst", "remaining", "source"))
        self.assertEqual([self.burst(server, name) for name in ("one", "two", "free")], [40, 40, -1])
        self.assertEqual(shown("one"), ("t:acme-corp", 40, 38, "external"))
        self.assertEqual(shown("free"), ("t:acme-corp", None, -1, "override"))
        adjust = f"http://127.0.0.1:{server.ports['admin']}/ratelimit/adjust/per-tenant/one"
        subprocess.run(["curl", "-fsS", "-X", "PUT", "--json", '{"burst": 99}', adjust], check=True, capture_output=True)
        self.assertEqual(self.burst(server, "one"), 99)
        self.assertEqual(shown("one"), ("t:acme-corp", 99, 96, "adjustment"))
        self.assertIsNotNone(view("one")["adjustment"])
        self.assertEqual(shown("two"), ("t:acme-corp", 40, 37, "external"))
        deny = f"http://127.0.0.1:{server.ports['admin']}/ratelimit/access/deny"
        subprocess.run(["curl", "-fsS", "--json", '{"limit": "per-tenant", "id": "two", "reason": "abuse"}', deny], check=True,
                       capture_output=True)
        self.assertEqual(view("two")["block"]["reason"], "abuse")
        self.assertIsNone(view("one")["block"])

    def test_a_tenant_is_no_api_key_and_is_shown_by_its_name(self):
        service = LimitsService(self)
        server = Server(self, policy(service).replace('"header:X-Tenant-Id"', "apikey"))
        service.faults(answer={"average": 100, "burst": 40, "period": "1h", "tenant_key": "acme-corp"})
        self.burst(server, "sk_live_4eC39HqLyjWDarj")
        row = json.loads(self.admin(server, "GET", "/ratelimit/clients?limit=per-tenant")[1])["clients"][0]
        self.assertEqual((row["id"], row["bucket"]), ("t:acme-corp", "per-tenant:t:acme-corp"))
        top = json.loads(self.admin(server, "GET", "/ratelimit/top")[1])["clients"][0]
        self.assertEqual(top["id"], "t:acme-corp")
        self.assertEqual(self.admin(server, "POST", "/ratelimit/reset/t:acme-corp?limit=per-tenant"), (200, '{"reset":1}\n'))

    def test_a_tenant_has_no_answer_of_its_own_to_forget(self):
        server = Server(self, policy(LimitsService(self)))
        self.burst(server, "acme")
        status, body = self.admin(server, "DELETE", "/ratelimit/external/per-tenant/t:acme-corp")
        self.assertEqual((status, json.loads(body)["error"]), (400, "bad_id"))
        client = json.loads(self.admin(server, "GET", "/ratelimit/clients/per-tenant/t:acme-corp")[1])
        self.assertEqual((client["burst"], client["source"]), (40, "external"))

    def test_the_metrics_of_a_service_are_there_before_it_is_asked(self):
        server = Server(self, policy(LimitsService(self)))
        metrics = server.get("admin", "/metrics")
        for line in ('weir_external_requests_total{result="ok"} 0', 'weir_external_cache_total{result="hit"} 0',
                     "weir_external_seconds_count 0", "weir_external_in_flight 0", "weir_external_waiting 0",
                     'weir_external_ignored_total{field="tenant_key"} 0', "weir_breaker_open 0",
                     'weir_backend_refused_total{reason="private_address"} 0',
                     'weir_external_service_open{limit="per-tenant"} 0'):
            self.assertIn(line + "\n", metrics)

    def test_a_tenant_of_a_hashed_limit_is_shown_with_its_numbers(self):
        service = LimitsService(self)
        config = policy(service, more="hash_key: 0123456789abcdef0123456789abcdef").replace("    key: ", "    hashed: true\n    key: ")
        server = Server(self, config)
        service.faults(answer={"average": 100, "burst": 40, "period": "1h", "tenant_key": "acme-corp"})
        self.burst(server, "acme")
        clients = [json.loads(self.admin(server, "GET", f"/ratelimit/clients/per-tenant/{name}")[1])
                   for name in ("acme", "t:acme-corp")]
        clients.append(json.loads(self.admin(server, "GET", "/ratelimit/clients?limit=per-tenant")[1])["clients"][0])
        for client in clients:
            self.assertEqual((client["burst"], client["count"], client["remaining"], client["source"]), (40, 100, 39, "external"))
        self.assertNotIn("acme", service.calls()["by_key"])
        self.assertEqual(self.admin(server, "DELETE", "/ratelimit/external/per-tenant/acme")[0], 200)
        self.assertEqual(json.loads(self.admin(server, "GET", "/ratelimit/clients/per-tenant/t:acme-corp")[1])["external"], None)

    def test_after_a_reload_to_another_service_its_answers_count(self):
        first = LimitsService(self)
        second = LimitsService(self, tenants={"tenants": {}, "default": {"average": 9, "burst": 9, "period": "1h"}})
        server = Server(self, policy(first))
        self.assertEqual(self.burst(server, "tenant"), 1000)
        server.write(policy(second))
        until("the new service is asked", lambda: self.burst(server, "tenant") == 9)

    def test_the_section_at_the_top_level_decides_the_limit_it_names(self):
        service = LimitsService(self)
        config = policy(service).split("limits:")[0] + f"""
limits:
  per-tenant: {{burst: 7, count: 7, period: 1h}}
  other: {{burst: 2, count: 2, period: 1h}}
external: {{enabled: true, limit: per-tenant, http: {{url: "{service.url}"}}}}
"""
        server = Server(self, config)
        self.assertEqual(self.burst(server, "free"), 3)
        self.assertEqual(json.loads(server.post("/v1/check", {"limit": "other", "id": "free"})[2])["burst"], 2)
        self.assertEqual(service.calls()["total"], 1)

    def test_the_service_gets_the_configured_headers_and_their_secrets(self):
        answer = b'{"average": 9, "burst": 9, "period": "1h"}'
        service = RawBackend(self, lambda _: b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(answer), answer))
        reach = f'http: {{url: "{service.url}/limits?v=2", headers: {{authorization: env:LIMITS_TOKEN, X-From: weir}}}}'
        server = Server(self, policy(None, reach=reach), environment={"LIMITS_TOKEN": "bearer x"})
        self.assertEqual(self.burst(server, "free"), 9)
        head, _, body = service.requests[0].partition(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        self.assertEqual(lines[0], "POST /limits?v=2 HTTP/1.1")
        self.assertLessEqual({"authorization: bearer x", "x-from: weir", "content-type: application/json"},
                             {line.lower() for line in lines})
        self.assertEqual(json.loads(body), {"key": "free", "headers": {}, "method": "", "path": ""})


class Grpc(Asking):
    def serve(self, service, more=""):
        return Server(self, policy(service, reach=f'grpc: {{address: "127.0.0.1:{service.grpc_port}"{more}}}'))

    def test_protobuf(self):
        service = LimitsService(self, grpc=True)
        server = self.serve(service)
        self.assertEqual(self.burst(server, "free"), 3)
        self.assertEqual(self.check(server, "internal")[1]["burst"], -1)
        self.authorize(server, "acme", "/p?q", "X-Plan: pro\r\n")
        asked = service.calls()["last"]
        self.assertEqual((asked["key"], asked["method"], asked["path"], asked["headers"]["X-Plan"]), ("acme", "PUT", "/p", "pro"))

    def test_the_json_codec_and_the_seed_s_method(self):
        service = LimitsService(self, grpc=True)
        server = self.serve(service, ", codec: json, method: /edgequota.ratelimit.v1.RateLimitService/GetLimits")
        self.assertEqual(self.burst(server, "free"), 3)
        self.assertEqual(self.check(server, "acme")[1]["remaining"], 39)
        self.assertEqual(self.check(server, "acme-staging")[1]["remaining"], 38)

    def test_an_empty_message_leaves_the_own_numbers(self):
        service = LimitsService(self, grpc=True)
        server = self.serve(service)
        service.faults(body="")
        self.assertEqual(self.burst(server, "free"), OWN)
        self.assertEqual(self.metric(server, 'weir_external_requests_total{result="bad_burst"}'), 1)
        service.faults(status=503)
        self.assertEqual(self.burst(server, "other"), OWN)
        self.assertEqual(self.metric(server, 'weir_external_requests_total{result="bad_status"}'), 1)
        service.faults()
        self.assertEqual(self.burst(server, "third"), 1000)

    def test_an_unknown_method_leaves_the_own_numbers(self):
        service = LimitsService(self, grpc=True)
        server = self.serve(service, ", method: /weir.limits.v1.LimitService/Nothing")
        self.assertEqual(self.burst(server, "free"), OWN)


class Tls(Asking):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.certificate, self.key = (os.path.join(directory.name, name) for name in ("cert.pem", "key.pem"))
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days",
                        "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", self.key,
                        "-out", self.certificate], check=True, capture_output=True)

    def start(self):
        # Its own control listener would be encrypted, too; these tests need none.
        return LimitsService(self, grpc=True, tls=(self.certificate, self.key))

    def test_https_with_a_ca_file(self):
        service = self.start()
        url = f"https://127.0.0.1:{service.port}/limits"
        server = Server(self, policy(service, reach=f'http: {{url: "{url}", ca_file: "{self.certificate}"}}'))
        self.assertEqual(self.burst(server, "free"), 3)

    def test_a_certificate_that_nobody_knows_is_a_failure(self):
        service = self.start()
        server = Server(self, policy(service, timeout="5s", reach=f'http: {{url: "https://127.0.0.1:{service.port}/limits"}}'))
        self.assertEqual(self.burst(server, "free"), OWN)

    def test_grpc_with_tls(self):
        service = self.start()
        reach = (f'grpc: {{address: "127.0.0.1:{service.grpc_port}", tls: {{enabled: true, ca_file: "{self.certificate}", '
                 "server_name: localhost}}")
        self.assertEqual(self.burst(Server(self, policy(service, reach=reach)), "free"), 3)


class Interface(Asking):
    """The OpenAPI document says what is sent and what may come back."""

    def test_the_document_and_the_service_agree(self):
        path = pathlib.Path(__file__).resolve().parents[2] / "docs" / "openapi" / "limits-service.yaml"
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
        schemas = document["components"]["schemas"]
        call = document["paths"]["/limits"]["post"]
        for example in call["requestBody"]["content"]["application/json"]["examples"].values():
            jsonschema.validate(example["value"], schemas["LimitsRequest"])
        for example in call["responses"]["200"]["content"]["application/json"]["examples"].values():
            jsonschema.validate(example["value"], schemas["LimitsResponse"])
        service = LimitsService(self)
        server = Server(self, policy(service))
        for number, example in enumerate(call["responses"]["200"]["content"]["application/json"]["examples"].values()):
            service.faults(body=json.dumps(example["value"]))
            self.assertEqual(self.check(server, f"example-{number}")[0], 200)
            jsonschema.validate(service.calls()["last"], schemas["LimitsRequest"])
        self.assertEqual(self.metric(server, 'weir_external_requests_total{result="ok"}'), 3)
        service.faults()
        self.authorize(server, "free", "/p?q")
        jsonschema.validate(service.calls()["last"], schemas["LimitsRequest"])
        for tenant in json.loads(pathlib.Path(service.tenants).read_text(encoding="utf-8"))["tenants"].values():
            jsonschema.validate(tenant, schemas["LimitsResponse"])


class ConfigCheck(unittest.TestCase):
    def refused(self, external, limit="per-tenant", own=""):
        text = f"limits: {{per-tenant: {{rate: 1/s{own}}}}}\nexternal: {{enabled: true, limit: {limit}{external}}}\n"
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(text)
            file.flush()
            done = subprocess.run([WEIR, "config", "check", file.name], capture_output=True, text=True, env=ENVIRONMENT,
                                  timeout=60, check=False)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def test_refuses_both_or_neither_of_http_and_grpc(self):
        self.assertIn("needs http", self.refused(""))
        self.assertIn("only one of http and grpc", self.refused(', http: {url: "http://a/"}, grpc: {address: "a:1"}'))

    def test_refuses_an_unknown_limit(self):
        self.assertIn("per-tenant", self.refused(', http: {url: "http://a/"}', limit="per-tenent"))

    def test_refuses_a_bad_address(self):
        self.assertIn("ftp://a/", self.refused(', http: {url: "ftp://a/"}'))
        self.assertIn("nowhere", self.refused(", grpc: {address: nowhere}"))

    def test_refuses_two_sections_for_one_limit(self):
        own = ', external: {enabled: true, http: {url: "http://b/"}}'
        self.assertIn("also set in the limit", self.refused(', http: {url: "http://a/"}', own=own))


if __name__ == "__main__":
    unittest.main()
