"""No spelling of a request avoids its limit, with nginx as the backend: whatever reaches the sign-in handler was charged, and to
the client that the backend sees."""

import gzip
import json
import unittest

from nginx import Nginx
from proxying import Proxy, RawBackend

# The handler, in every spelling that a backend may route to it: nginx decodes and normalizes the path before.
SIGNIN = """
location ~* "^/signin(/|;.*)?$" { return 200 "in key=$http_x_api_key k=$arg_k"; }
location / { return 200 "elsewhere"; }
"""
PATHS = ["/signin", "/signin/", "/SIGNIN", "/SignIn/", "//signin", "///signin", "/signin//", "/x/../signin", "/./signin", "/x/./../signin",
         "/sign%69n", "/%73ignin", "/%53IGNIN", "/signin;x", "/signin;x=1/", "/signin?x", "/signin/?x", "/x/%2e%2e/signin",
         "/x/.%2E/signin", "/signin/.", "/signin/x/..", "/signin?a=/../b", "http://other/signin", "/signin;/x/.."]
# nginx decodes these, too; Weir does not (docs/proxy.md, "Limits of the proxy").
ESCAPED_SLASHES = ["/%2fsignin", "/x%2f..%2fsignin", "/signin%2f"]


class Paths(unittest.TestCase):
    def setUp(self):
        self.nginx = Nginx(self, SIGNIN)
        self.url = f"http://127.0.0.1:{self.nginx.port}"

    def proxy(self, rest):
        return Proxy(self, f"""
limits:
  sign-in: {{key: ip, burst: 1000, count: 1, period: 1h}}
  rest: {{key: ip, burst: 500, count: 1, period: 1h}}
routes:
  - {{name: signin, match: {{path: /signin, ignore_case: true}}, limits: [sign-in], backend: "{self.url}"}}
  - {{name: rest, match: {{path: "/**"}}, limits: {rest}, backend: "{self.url}"}}
""")

    def test_every_spelling_that_reaches_the_handler_was_charged(self):
        proxy = self.proxy("none")
        reached = []
        for path in PATHS:
            for method in ("GET", "POST"):
                answer = proxy.get(path, method=method)
                if answer.body.startswith(b"in "):
                    reached.append(path)
                    self.assertEqual(answer.headers.get("x-ratelimit-limit"), "1000", f"{method} {path} was not charged")
        self.assertGreaterEqual(len(set(reached)), 20, reached)

    def test_escaped_slashes_need_a_limit_on_every_path(self):
        proxy = self.proxy("[rest]")
        for path in ESCAPED_SLASHES:
            answer = proxy.get(path)
            self.assertTrue(answer.body.startswith(b"in "), f"nginx routes {path} to the handler")
            self.assertIn(answer.headers["x-ratelimit-limit"], ("500", "1000"), path)


class Keys(unittest.TestCase):
    FORM = [("Content-Type", "application/x-www-form-urlencoded")]

    def setUp(self):
        nginx = Nginx(self, SIGNIN)
        self.proxy = Proxy(self, f"""
limits:
  key: {{key: apikey, burst: 100, count: 1, period: 1h}}
  query: {{key: query:k, burst: 100, count: 1, period: 1h}}
  email: {{key: form:email, burst: 100, count: 1, period: 1h, missing: reject}}
  per-ip: {{key: ip, burst: 1000, count: 1, period: 1h}}
routes:
  - {{name: signin, match: {{path: /signin, methods: [GET]}}, limits: [key, query, per-ip], backend: "http://127.0.0.1:{nginx.port}"}}
  - {{name: form, match: {{path: /signin, methods: [POST]}}, limits: [email, per-ip], backend: "http://127.0.0.1:{nginx.port}"}}
""")

    def charged(self):
        """limit and id of every bucket."""
        clients = json.loads(super(Proxy, self.proxy).get("admin", "/ratelimit/clients"))["clients"]
        return {(client["limit"], client["id"]) for client in clients}

    def error(self, answer):
        return answer.status, json.loads(answer.body)["error"]

    def test_what_a_backend_could_read_otherwise_is_refused(self):
        for target, headers in (("/signin", [("X-API-Key", "a"), ("X-API-Key", "b")]), ("/signin?k=a&k=b", []),
                                ("/signin", [("X-API-Key", "a"), ("x-api-KEY", "b")]), ("/signin?k=a&%6b=b", [])):
            self.assertEqual(self.error(self.proxy.get(target, headers)), (400, "bad_request"), (target, headers))
        self.assertEqual(self.charged(), set(), "nothing was charged, and nothing reached the backend")

    def test_a_backend_that_takes_underscores_for_dashes_sees_no_key_that_was_not_charged(self):
        backend = RawBackend(self)
        proxy = Proxy(self, f"limits: {{tenant: {{key: header:x-tenant, rate: 9/hour}}}}\nbackend: {backend.url}\n")
        proxy.get("/", [("X_Tenant", "hidden"), ("X_API_Key", "hidden"), ("X_Request_Id", "hidden"), ("X_Other", "kept")])
        self.assertNotIn(b"hidden", backend.requests[0])
        self.assertIn(b"\r\nX_Other: kept\r\n", backend.requests[0])

    def test_the_backend_sees_the_key_that_was_charged_and_no_other(self):
        for target, headers, seen in (
                ("/signin", [("X-API-Key", "one-key-of-mine")], b"in key=one-key-of-mine k="),
                ("/signin?k=a", [], b"in key= k=a"),
                ("/signin", [("Connection", "x-api-key"), ("X-API-Key", "hidden-key-of-mine")], b"in key= k="),
                ("/signin", [("Connection", "close, X-Api-Key"), ("X-API-Key", "hidden-key-of-mine")], b"in key= k=")):
            answer = self.proxy.get(target, headers)
            self.assertEqual((answer.status, answer.body), (200, seen), (target, headers))
        limits = sorted(limit for limit, _ in self.charged())
        self.assertEqual(limits, ["key", "per-ip", "query"], "one bucket each: the hidden keys have none")

    def test_forms_that_cannot_be_read_do_not_pass(self):
        large = b"x=" + b"y" * (65 << 10) + b"&email=a"
        body = b"email=a@b.c"
        for headers, sent, error in ((self.FORM, large, (413, "too_large")),
                                     (self.FORM + [("Content-Encoding", "gzip")], gzip.compress(body), (400, "missing_key")),
                                     (self.FORM + [("Content-Encoding", "identity")], body, (400, "missing_key")),
                                     ([("Content-Type", "multipart/form-data; boundary=b")], body, (400, "missing_key")),
                                     (self.FORM, b"email=a&email=b", (400, "bad_request")),
                                     (self.FORM, b"email=a&%65mail=b", (400, "bad_request")),
                                     (self.FORM, b"Email=a", (400, "missing_key"))):
            self.assertEqual(self.error(self.proxy.get("/signin", headers, "POST", sent)), error, (headers, sent[:40]))
        self.assertEqual(self.charged(), set())
        self.assertEqual(self.proxy.get("/signin", self.FORM, "POST", body).status, 200)
        self.assertEqual(self.charged(), {("email", "a@b.c"), ("per-ip", "127.0.0.1")})


if __name__ == "__main__":
    unittest.main()
