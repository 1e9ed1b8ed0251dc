"""The OpenAPI documents are sound, name every path the server serves and no other, and describe what it really answers.

Every documented status of every call is provoked on a live server, and the response is compared with its schema, which
must name every field. What can go wrong everywhere (`default`) is not provoked."""

import http.client
import json
import os
import pathlib
import re
import signal
import sys
import time
import unittest

import jsonschema

from openapi import METHODS, Document, resolve
from serving import Server

SOURCE = pathlib.Path(os.environ["WEIR_SOURCE"])
DECISION = Document(SOURCE / "docs/openapi/decision.yaml")
ADMIN = Document(SOURCE / "docs/openapi/admin.yaml")
DOCUMENTS = [Document(path) for path in sorted((SOURCE / "docs/openapi").glob("*.yaml"))]

LISTEN = """
listen:
  - {{address: "127.0.0.1:0", speak: [http, grpc]{http}}}
  - {{address: "127.0.0.1:0", speak: admin}}
threads: 2
memory: {{max_buckets: 100000}}
"""
POLICY = """
limits:
  per-ip: {key: ip, burst: 20, count: 3, period: 1h, missing: reject}
  orders: {burst: 5, count: 5, period: 1h, quota: 100/day, tiers: {pro: {burst: 9}}}
  tried: {burst: 1, count: 1, period: 1h, mode: shadow}
  keys: {key: apikey, burst: 3, count: 3, period: 1h}
  served: {rate: 1/s, external: {enabled: true, http: {url: "http://127.0.0.1:1/limits"}}}
overrides:
  orders:free: {unlimited: true}
  orders:gone: {blocked: true}
access:
  deny:
    - {ip: 198.51.100.0/24, reason: abuse}
    - {limit: orders, id: "66"}
envoy: [rules.yaml]
envoy_headers: true
"""
RULES = "domain: edge\ndescriptors:\n  - {key: user, rate_limit: {unit: hour, requests_per_unit: 1, name: per-user}}\n"
TOKENS = "admin: {read_token: the-read-token, write_token: the-write-token}\n"
JSON = {"Content-Type": "application/json"}


class Soundness(unittest.TestCase):
    def test_every_document_is_openapi_3_1_with_whole_references(self):
        for document in DOCUMENTS:
            with self.subTest(document.path.name):
                self.assertEqual(document.raw["openapi"], "3.1.0")
                self.assertTrue(document.raw["info"]["title"] and document.raw["info"]["version"])
                used = set(re.findall(r'\$ref: "?(#[^"}\s]+)', document.path.read_text(encoding="utf-8")))
                for reference in used:
                    resolve(document.raw, reference)
                schemes = {"#/components/securitySchemes/" + name for name in document.raw["components"].get("securitySchemes", {})}
                for kind, components in document.raw["components"].items():
                    unused = {f"#/components/{kind}/{name}" for name in components} - used - schemes
                    self.assertEqual(unused, set(), "nothing refers to it")

    def test_every_operation_is_described_and_named_once(self):
        for document in DOCUMENTS:
            names = []
            for method, path, operation in document.operations():
                with self.subTest(f"{document.path.name}: {method} {path}"):
                    names.append(operation["operationId"])
                    self.assertTrue(operation["summary"])
                    self.assertTrue(operation["responses"])
                    item = document.whole["paths"][path]
                    parameters = item.get("parameters", []) + operation.get("parameters", [])
                    in_path = {parameter["name"] for parameter in parameters if parameter["in"] == "path"}
                    self.assertEqual(in_path, set(re.findall(r"\{(\w+)\}", path)))
                    for response in operation["responses"].values():
                        self.assertTrue(response["description"])
            self.assertEqual(len(names), len(set(names)))

    def test_no_comma_ends_a_sentence_that_is_not_quoted(self):
        """`{description: A, b}` has a key `b`, without a value."""
        def keys_without_value(node):
            for key, value in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
                if value is None:
                    yield key
                yield from keys_without_value(value)

        for document in DOCUMENTS:
            self.assertEqual(list(keys_without_value(document.raw)), [], document.path.name)

    def test_every_schema_is_one_and_its_examples_match(self):
        def visit(node, place):
            if isinstance(node, list):
                for i, item in enumerate(node):
                    visit(item, f"{place}[{i}]")
            if not isinstance(node, dict):
                return
            if "schema" in node and isinstance(node["schema"], dict):
                with self.subTest(place):
                    jsonschema.Draft202012Validator.check_schema(node["schema"])
                    for name, example in node.get("examples", {}).items():
                        jsonschema.validate(example["value"], node["schema"], jsonschema.Draft202012Validator)
            for key, value in node.items():
                visit(value, f"{place}.{key}")

        for document in DOCUMENTS:
            visit(document.whole, document.path.name)


class Coverage(unittest.TestCase):
    """The tables of the source against the documents, and the server's own word (`Allow`) against both."""

    def documented(self, document):
        return {(method, re.sub(r"\{\w+\}", "{}", path)) for method, path, _ in document.operations()}

    def test_every_path_of_the_decision_api_is_documented_and_vice_versa(self):
        source = (SOURCE / "weir/protocol/http/check_handler.cc").read_text(encoding="utf-8")
        rows = re.findall(r'\{"([^"]+)", CheckCall::\w+, Mode::\w+, (?:"([^"]*)"|\{\})\}', source)
        self.assertEqual(len(rows), int(re.search(r"std::array<Route, (\d+)> kRoutes", source)[1]))
        served = {(method, path) for path, allow in rows if path != "*"
                  for method in (allow.split(", ") if allow else ["GET"]) if method not in ("HEAD", "OPTIONS")}
        # Envoy's service as JSON has a handler of its own.
        self.assertIn('head.path != "/json"', (SOURCE / "weir/protocol/grpc/grpc_handler.cc").read_text(encoding="utf-8"))
        self.assertEqual(self.documented(DECISION), served | {("POST", "/json")})

    def test_every_path_of_the_admin_api_is_documented_and_vice_versa(self):
        source = (SOURCE / "weir/admin/router.cc").read_text(encoding="utf-8")
        rows = re.findall(r'\{"([A-Z]+)", "([^"]+)", Permission::', source)
        self.assertEqual(len(rows), int(re.search(r"std::array<Route, (\d+)> kRoutes", source)[1]))
        self.assertEqual(self.documented(ADMIN), set(rows))

    def test_the_parameters_of_the_admin_api_are_those_it_knows(self):
        source = (SOURCE / "weir/admin/router.cc").read_text(encoding="utf-8")
        lists = {name: set(re.findall(r'"(\w+)"', words)) for name, words in re.findall(r"> (k\w+) = \{([^}]*)\}", source)}
        rows = re.findall(r'\{"([A-Z]+)", "([^"]+)", Permission::\w+, \w+, (\{\}|k\w+)(, true)?\}', source)
        known = {(method, path): lists.get(words, set()) for method, path, words, any_other in rows if not any_other}
        for method, path, operation in ADMIN.operations():
            pattern = re.sub(r"\{\w+\}", "{}", path)
            if (method, pattern) not in known:
                continue
            in_query = {parameter["name"] for parameter in operation.get("parameters", []) if parameter["in"] == "query"}
            self.assertEqual(in_query, known[method, pattern], f"{method} {path}")

    def test_the_server_allows_the_documented_methods(self):
        server = Server(self, LISTEN.format(http="") + POLICY, files={"rules.yaml": RULES})
        for document, port in ((DECISION, "http"), (ADMIN, "admin")):
            for path, item in document.whole["paths"].items():
                if path in ("/v1/authorize", "/json"):  # any method is a question; takes no OPTIONS
                    continue
                with self.subTest(path):
                    _, headers, _ = ask(server, port, "OPTIONS", re.sub(r"\{\w+\}", "x", path))
                    methods = {method.upper() for method in item if method in METHODS}
                    methods |= {"OPTIONS"} | ({"HEAD"} if "GET" in methods else set())
                    self.assertEqual(set(headers["Allow"].split(", ")), methods)


def ask(server, port, method, path, body=None, headers=None):
    """Status, headers and content of one call."""
    connection = http.client.HTTPConnection("127.0.0.1", server.ports[port], timeout=30)
    try:
        content = json.dumps(body) if isinstance(body, (dict, list)) else body
        connection.request(method, path, content, headers or {})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode()
    finally:
        connection.close()


def first_event(server, path, trigger):
    """The first event of a stream with its name, once `trigger` has run."""
    connection = http.client.HTTPConnection("127.0.0.1", server.ports["admin"], timeout=30)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.readline()  # a comment: the stream has begun
        trigger()
        lines = []
        while not lines or not lines[-1].startswith("data: "):
            lines.append(answer.readline().decode().rstrip("\n"))
        return answer.status, answer.headers, lines[-2].removeprefix("event: "), lines[-1].removeprefix("data: ")
    finally:
        connection.close()


class Answers(unittest.TestCase):
    """One live server without tokens and one with them."""

    document = None
    port = ""

    def setUp(self):
        self.seen = set()
        self.server = Server(self, LISTEN.format(http="") + POLICY, files={"rules.yaml": RULES})
        tokens = ", token: the-read-token, write_token: the-write-token"
        self.guarded = Server(self, LISTEN.format(http=tokens) + TOKENS + POLICY, files={"rules.yaml": RULES})

    def expect(self, status, method, template, body=None, headers=None, query="", server=None, **parts):
        path = template
        for name, value in parts.items():
            path = path.replace("{" + name + "}", value)
        if headers is None:
            headers = {} if method == "GET" else JSON
        got, fields, content = ask(server or self.server, self.port, method, path + query, body, headers)
        self.check(status, method, template, got, fields["Content-Type"], content)
        return json.loads(content) if (fields["Content-Type"] or "").endswith("json") else content

    def check(self, status, method, template, got, content_type, content):
        with self.subTest(f"{method} {template} {status}"):
            self.assertEqual(got, status, content)
            complaint = self.document.complaint(method, template, got, content_type, content)
            self.assertIsNone(complaint)
            self.seen.add((method, template, status))

    def expect_drain(self):
        """A server that was told to end is not ready, and answers everything else."""
        server = Server(self, LISTEN.format(http="") + POLICY + "drain_delay: 60s\n", files={"rules.yaml": RULES})
        server.process.send_signal(signal.SIGTERM)  # the second one, at the end of the test, ends the wait
        end = time.monotonic() + 30
        while ask(server, self.port, "GET", "/readyz")[0] == 200 and time.monotonic() < end:
            time.sleep(0.01)
        self.expect(503, "GET", "/readyz", server=server)

    def refuse_everywhere(self):
        """What every call has in common: tokens, the content type, and what cannot be understood."""
        for method, path, status in sorted(self.document.statuses()):
            parts = {name: "deny" if name == "list" else "orders" for name in re.findall(r"\{(\w+)\}", path)}
            if status == 401:
                self.expect(401, method, path, body="{}" if method != "GET" else None, server=self.guarded, **parts)
            read = {"Authorization": "Bearer the-read-token", **JSON}
            if status == 403 and (self.port == "admin" or path in ("/v1/refund", "/v1/reset")):
                self.expect(403, method, path, body="{}", headers=read, server=self.guarded, **parts)
            if status == 415:
                self.expect(415, method, path, body="{}", headers={"Content-Type": "text/plain"}, **parts)
            if status == 400 and self.port == "admin":
                self.expect(400, method, path, query="?nonsense=1", **parts)

    def assert_everything_was_provoked(self):
        self.assertEqual(self.document.statuses() - self.seen, set(), "documented, and not provoked here")


class DecisionApi(Answers):
    document = DECISION
    port = "http"

    def test_answers_as_documented(self):
        self.refuse_everywhere()
        one = {"limit": "per-ip", "id": "203.0.113.9"}
        both = {"limit": "orders", "id": 7}
        for body in (one, both, {"charges": [one, {"limit": "tried", "id": "x"}], "charge": "in-order"},
                     {"limit": "orders", "id": "free"}, {"limit": "orders", "id": "8", "tier": "pro", "cost": 0},
                     {"request": {"ip": "203.0.113.8", "headers": {"x": ["a", "b"]}, "form": {"a": "b"}}},
                     [one, both, {"limit": "orders"}, {"limit": "orders", "id": "66"}]):
            self.expect(200, "POST", "/v1/check", body)
            self.expect(200, "POST", "/v1/check", body, query="?explain=true")
        for path in ("/v1/check", "/v1/peek", "/v1/refund", "/v1/reset"):
            self.expect(400, "POST", path, "{")
            self.expect(404, "POST", path, {"limit": "nobody", "id": "1"})
            self.expect(413, "POST", path, [one] * 1001)
        self.expect(400, "POST", "/v1/check", {"request": {"path": "/"}})
        self.expect(403, "POST", "/v1/check", {"limit": "orders", "id": "66"})
        self.expect(403, "POST", "/v1/check", {"limit": "orders", "id": "66"},
                    headers={**JSON, "Accept": "application/problem+json"})
        for body in ({**both, "cost": 4}, {"limit": "orders", "id": "gone"}):
            self.expect(429, "POST", "/v1/check", body)
            self.expect(429, "POST", "/v1/check", body, query="?explain=true")
        self.expect(429, "POST", "/v1/check", {**both, "cost": 4}, headers={**JSON, "Accept": "application/problem+json"})
        self.expect(200, "POST", "/v1/peek", {**both, "cost": 4})
        self.expect(200, "POST", "/v1/peek", {"limit": "orders", "id": "66"})
        self.expect(200, "POST", "/v1/refund", both)
        self.expect(204, "POST", "/v1/reset", both)
        self.expect(204, "POST", "/v1/reset", [both])
        self.expect(200, "POST", "/v1/reset", [both, {"limit": "nobody", "id": "1"}])
        mine = {"key": "user:42", "rate": "1/h", "cost": 1}
        self.expect(200, "POST", "/v1/throttle", mine)
        self.expect(429, "POST", "/v1/throttle", mine)
        self.expect(200, "POST", "/v1/throttle", [mine, {"key": 7, "count": 1, "period": "1s", "burst": 2}])
        self.expect(400, "POST", "/v1/throttle", {"key": "a"})
        self.expect(413, "POST", "/v1/throttle", [mine] * 1001)
        self.authorize()
        self.envoy()
        for probe in ("/healthz", "/readyz", "/startz"):
            self.expect(200, "GET", probe)
        self.expect(200, "GET", "/readyz", query="?deep=true")
        self.expect_drain()
        self.assert_everything_was_provoked()

    def authorize(self):
        key = {"X-API-Key": "sk_live_1234567890"}
        for _ in range(3):
            self.expect(200, "GET", "/v1/authorize", headers=key)
        self.expect(429, "GET", "/v1/authorize", headers=key)
        self.expect(403, "GET", "/v1/authorize", headers=key, query="?deny=403")
        self.expect(400, "GET", "/v1/authorize", query="?deny=500")

    def envoy(self):
        asked = {"domain": "edge", "descriptors": [{"entries": [{"key": "user", "value": "a"}]}]}
        self.expect(200, "POST", "/json", asked)
        self.expect(429, "POST", "/json", asked)
        self.expect(400, "POST", "/json", "x")
        self.expect(413, "POST", "/json", "x" * 300_000)


class AdminApi(Answers):
    document = ADMIN
    port = "admin"

    def spend(self, limit, client, cost=1):
        ask(self.server, "http", "POST", "/v1/check", {"limit": limit, "id": client, "cost": cost}, JSON)

    def test_answers_as_documented(self):
        self.refuse_everywhere()
        for _ in range(21):
            self.spend("per-ip", "203.0.113.9")
        self.spend("orders", "7")
        self.spend("tried", "x", 1)
        self.spend("tried", "x", 1)
        ask(self.server, "http", "POST", "/v1/throttle", {"key": "mine", "rate": "1/h"}, JSON)
        self.clients()
        self.changes()
        self.configuration()
        self.streams()
        self.expect(200, "GET", "/metrics")
        for probe in ("/healthz", "/readyz", "/startz"):
            self.expect(200, "GET", probe)
        self.dashboard()
        self.expect_drain()
        self.assert_everything_was_provoked()

    def clients(self):
        self.expect(200, "GET", "/ratelimit/stats")
        listed = self.expect(200, "GET", "/ratelimit/clients", query="?sort=denied")["clients"]
        self.assertGreaterEqual(len(listed), 4)
        self.expect(200, "GET", "/ratelimit/clients", query="?limit=orders&prefix=7&n=1")
        self.expect(404, "GET", "/ratelimit/clients", query="?limit=nobody")
        view = "/ratelimit/clients/{limit}/{id}"
        self.expect(200, "GET", view, limit="per-ip", id="203.0.113.9")
        self.expect(200, "GET", view, limit="orders", id="7")
        self.expect(200, "GET", view, limit="orders", id="66")
        self.expect(404, "GET", view, limit="orders", id="8")
        self.expect(200, "GET", view, query="?full=true", limit="orders", id="8")
        self.expect(400, "GET", view, query="?full=maybe", limit="orders", id="8")
        for by in ("requests", "denied", "shadow_denied"):
            self.assertTrue(self.expect(200, "GET", "/ratelimit/top", query="?by=" + by)["clients"])

    def changes(self):
        one = {"limit": "per-ip", "id": "203.0.113.9"}
        numbers = {"rate": "200/s", "burst": 50, "for": "1h"}
        path = "/ratelimit/adjust/{limit}/{id}"
        named = {"limit": "per-ip", "id": "203.0.113.9"}
        for method, template, body, parts in (("PUT", path, numbers, named), ("PUT", "/ratelimit/adjust", {**one, **numbers}, {}),
                                              ("POST", "/ratelimit/adjust", {**one, **numbers}, {})):
            self.expect(200, method, template, body, **parts)
            nobody = {**body, "limit": "nobody"} if template == "/ratelimit/adjust" else body
            self.expect(404, method, template, nobody, **(parts and {"limit": "nobody", "id": "1"}))
        self.assertEqual(len(self.expect(200, "GET", "/ratelimit/adjust")["adjustments"]), 1)
        self.expect(200, "DELETE", path, **named)
        self.expect(404, "DELETE", path, **named)
        self.expect(200, "PUT", "/ratelimit/adjust", {**one, **numbers})
        self.expect(200, "DELETE", "/ratelimit/adjust", one)
        self.expect(404, "DELETE", "/ratelimit/adjust", one)
        self.expect(200, "DELETE", "/ratelimit/external/{limit}/{id}", limit="served", id="acme")
        self.expect(404, "DELETE", "/ratelimit/external/{limit}/{id}", limit="nobody", id="acme")
        self.access()
        self.expect(200, "POST", "/ratelimit/reset", {"id": "ip:203.0.113.9", "block": True})
        self.expect(404, "POST", "/ratelimit/reset", {"id": "1", "limit": "nobody"})
        self.expect(200, "POST", "/ratelimit/reset/{id}", id="orders:7")
        self.expect(200, "POST", "/ratelimit/reset/{id}", id="all", query="?confirm=all&block=true")
        self.expect(404, "POST", "/ratelimit/reset/{id}", id="1", query="?limit=nobody")

    def access(self):
        path = "/ratelimit/access/{list}"
        for entry in ({"ip": "192.0.2.0/24", "reason": "abuse", "for": "1h"}, {"apikey": "sk_live_1234567890"},
                      {"limit": "orders", "id": "9", "expires": "2099-01-01T00:00:00Z"}):
            self.expect(200, "POST", path, entry, list="deny")
        self.assertEqual(len(self.expect(200, "GET", path, list="deny")["entries"]), 5)
        self.expect(409, "POST", path, {"ip": "127.0.0.1"}, list="deny")
        for method in ("GET", "POST", "DELETE"):
            self.expect(404, method, path, None if method == "GET" else {"ip": "192.0.2.1"}, list="maybe")
        self.expect(200, "DELETE", path, query="?ip=192.0.2.0/24", list="deny")
        self.expect(200, "DELETE", path, {"apikey": "sk_live_1234567890"}, list="deny")

    def configuration(self):
        self.expect(200, "GET", "/ratelimit/config")
        self.expect(200, "PUT", "/ratelimit/config", {"limits": {"per-ip": {"burst": 40}}})
        self.expect(400, "PUT", "/ratelimit/config", {"limits": {"per-ip": {"burst": 0}}})
        self.expect(200, "PUT", "/ratelimit/config", "limits: {a: {rate: 1/s}}", headers={"Content-Type": "application/yaml"})
        self.expect(200, "POST", "/ratelimit/reload")

    def streams(self):
        path = "/ratelimit/events"
        self.expect(404, "GET", path, query="?limit=nobody")
        status, headers, name, data = first_event(self.server, path, lambda: self.spend("orders", "77"))
        self.assertEqual(name, "decision")
        self.check_event(path, status, headers, data)
        status, headers, name, data = first_event(self.server, "/ratelimit/live", lambda: None)
        self.assertEqual(name, "numbers")
        self.check_event("/ratelimit/live", status, headers, data)

    def check_event(self, path, status, headers, data):
        kind = "text/event-stream"
        self.assertEqual(headers["Content-Type"], kind)
        # The document's schema is that of one event's data.
        content = ADMIN.whole["paths"][path]["get"]["responses"]["200"]["content"]
        content["application/json"] = content[kind]
        self.check(200, "GET", path, status, "application/json", data)

    def dashboard(self):
        page = self.expect(200, "GET", "/")
        _, headers, _ = ask(self.server, "admin", "GET", "/")
        self.expect(304, "GET", "/", headers={"If-None-Match": headers["ETag"]})
        files = re.findall(r'(?:src|href)="/?assets/([^"]+)"', page)
        self.assertTrue(files)
        for file in files:
            self.expect(200, "GET", "/assets/{file}", file=file)
        _, headers, _ = ask(self.server, "admin", "GET", "/assets/" + files[0])
        self.expect(304, "GET", "/assets/{file}", file=files[0], headers={"If-None-Match": headers["ETag"]})
        self.expect(404, "GET", "/assets/{file}", file="nothing.js")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=1)
