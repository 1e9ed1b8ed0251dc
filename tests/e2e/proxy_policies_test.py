"""Key strategies and failure policies on proxied traffic: per address, API key, header, combined, path segment and claim;
and what requests get while Redis is away."""

import base64
import hashlib
import hmac
import json
import time
import unittest

from proxying import Proxy, RawBackend
from redis_servers import Redis, free_port, until

SECRET = "a secret of thirty-two characters"


def token(subject):
    def part(data):
        return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
    text = part(b'{"alg":"HS256"}') + "." + part(json.dumps({"sub": subject, "exp": int(time.time()) + 3600}).encode())
    return text + "." + part(hmac.new(SECRET.encode(), text.encode(), hashlib.sha256).digest())


class KeyStrategies(unittest.TestCase):
    """Two requests of one client: the second is denied. One of another client: it passes."""

    def check(self, key, one, other, identifier, more=""):
        backend = RawBackend(self)
        proxy = Proxy(self, f"limits: {{a: {{key: {key}, burst: 1, count: 1, period: 1h}}}}\nbackend: {backend.url}\n{more}")
        self.assertEqual(proxy.get(*one).status, 200)
        denied = proxy.get(*one)
        self.assertEqual((denied.status, json.loads(denied.body)["identifier"]), (429, identifier))
        self.assertEqual(proxy.get(*other).status, 200)
        self.assertEqual(len(backend.requests), 2)

    def test_address(self):
        self.check("ip", ("/", [("X-Forwarded-For", "1.1.1.1")]), ("/", [("X-Forwarded-For", "2.2.2.2")]), "ip:1.1.1.1",
                   "access: {trusted_proxies: [127.0.0.0/8]}\n")

    def test_api_key(self):
        self.check("apikey", ("/", [("X-API-Key", "a")]), ("/", [("Authorization", "ApiKey b")]), "apikey:a")

    def test_header(self):
        self.check("header:x-tenant-id", ("/", [("X-Tenant-Id", "a")]), ("/", [("X-Tenant-Id", "b")]), "a:a")

    def test_header_and_path_segment(self):
        tenant = [("X-Tenant-Id", "acme-corp")]
        self.check("[header:x-tenant-id, path:1]", ("/api/x", tenant), ("/", tenant), "a:acme-corp:api")

    def test_path_segment(self):
        self.check("path:1", ("/api/1",), ("/web",), "a:api")

    def test_claim(self):
        self.check("jwt:sub", ("/", [("Authorization", f"Bearer {token('ann')}")]), ("/", [("Authorization", f"Bearer {token('bob')}")]),
                   "a:ann", f"jwt: {{secret: {SECRET}}}\n")

    def test_an_invalid_token_is_no_identity_and_never_401(self):
        backend = RawBackend(self)
        proxy = Proxy(self, f"limits: {{a: {{key: jwt:sub, rate: 1/hour, missing: reject}}}}\nbackend: {backend.url}\n"
                            f"jwt: {{secret: {SECRET}}}\n")
        answer = proxy.get("/", [("Authorization", "Bearer a.b.c")])
        self.assertEqual((answer.status, json.loads(answer.body)["error"]), (400, "missing_key"))


class FailurePolicies(unittest.TestCase):
    """Nothing listens where Redis should."""

    def proxy(self, more):
        backend = RawBackend(self)
        return Proxy(self, f"""
limits: {{per-ip: {{key: ip, burst: 1, count: 1, period: 1h}}}}
backend: {backend.url}
store: redis
redis: {{endpoints: ["127.0.0.1:{free_port()}"], timeout: 100ms}}
{more}
""")

    def test_pass_through_forwards_and_says_so(self):
        proxy = self.proxy("failure_policy: passThrough")
        for _ in range(3):
            answer = proxy.get("/")
            self.assertEqual((answer.status, answer.headers["x-ratelimit-degraded"]), (200, "true"))

    def test_fail_closed_returns_its_code(self):
        proxy = self.proxy("failure_policy: failClosed\nfailure_code: 503")
        answer = proxy.get("/")
        self.assertEqual((answer.status, json.loads(answer.body)["error"], answer.headers["retry-after"]), (503, "store_unavailable", "1"))
        grpc = proxy.get("/", [("Content-Type", "application/grpc")], "POST")
        self.assertEqual((grpc.status, grpc.headers["grpc-status"], grpc.headers["grpc-retry-pushback-ms"]), (200, "8", "1000"))

    def test_in_memory_fallback_limits_here(self):
        proxy = self.proxy("failure_policy: inMemoryFallback")
        answer = proxy.get("/")
        self.assertEqual((answer.status, answer.headers["x-ratelimit-degraded"]), (200, "true"))
        self.assertEqual(proxy.get("/").status, 429)


class RedisStops(unittest.TestCase):
    """Redis works, stops while requests come, and returns."""

    def while_redis_is_away(self, policy):
        """The response, and whether the backend got the request."""
        redis = Redis(self)
        backend = RawBackend(self)
        proxy = Proxy(self, f"""
limits: {{per-ip: {{key: ip, burst: 1000, count: 1000, period: 1h}}}}
backend: {backend.url}
store: redis
redis: {{endpoints: ["{redis.address}"], timeout: 1s}}
{policy}
""")

        def is_decided_by_redis():
            answer = proxy.get("/")
            return answer.status == 200 and "x-ratelimit-degraded" not in answer.headers
        until("Redis decides", is_decided_by_redis)
        redis.kill()
        before = len(backend.requests)
        answer = proxy.get("/")
        forwarded = len(backend.requests) - before
        proxy.wait_for_metric("weir_store_up 0\n")
        redis.start()
        until("Redis decides again", is_decided_by_redis)
        return answer, forwarded

    def test_pass_through(self):
        answer, forwarded = self.while_redis_is_away("failure_policy: passThrough")
        self.assertEqual((answer.status, answer.headers["x-ratelimit-degraded"], forwarded), (200, "true", 1))

    def test_fail_closed(self):
        answer, forwarded = self.while_redis_is_away("failure_policy: failClosed\nfailure_code: 503")
        self.assertEqual((answer.status, json.loads(answer.body)["error"], forwarded), (503, "store_unavailable", 0))

    def test_in_memory_fallback(self):
        answer, forwarded = self.while_redis_is_away("failure_policy: inMemoryFallback")
        self.assertEqual((answer.status, answer.headers["x-ratelimit-degraded"], forwarded), (200, "true", 1))
        self.assertEqual(answer.headers["x-ratelimit-limit"], "1000")


if __name__ == "__main__":
    unittest.main()
