"""The backend that a limits service names: used if it may be, refused and counted if not, never replaced by another."""

import json
import unittest

from external_test import Asking
from limits_service import LimitsService
from proxying import RawBackend, exchange
from redis_servers import until
from serving import Server

POLICY = """
listen:
  - {{address: "127.0.0.1:0", speak: proxy}}
  - {{address: "127.0.0.1:0", speak: admin}}
threads: 1
memory: {{max_buckets: 100000}}
limits:
  per-tenant:
    key: "header:X-Tenant-Id"
    rate: 1000/s
    external: {{enabled: true, http: {{url: "{url}"}}, timeout: 2s, cache_ttl: 10m{external}}}
  second:
    key: "header:X-Tenant-Id"
    rate: 1000/s
    {second}
{backend}
"""


class Backends(Asking):
    def start(self, external="", tenants=None, own=True, second="", name="127.0.0.1"):
        """A proxy whose own backend is `self.own`, by that name, and a service that names `self.tenant` as each tenant says."""
        self.own = RawBackend(self, lambda _: b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nown")
        self.tenant = RawBackend(self, lambda _: b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\ntenant")
        numbers = {"average": 1000, "burst": 1000, "period": "1s"}
        self.service = LimitsService(self, tenants={
            "default": numbers, "tenants": {name: {**numbers, **fields} for name, fields in (tenants or {}).items()}})
        backend = f"backend: http://{name}:{self.own.port}" if own else ""
        return Server(self, POLICY.format(url=self.service.url, external=external, second=second, backend=backend))

    def get(self, server, tenant):
        request = f"GET / HTTP/1.1\r\nHost: h\r\nX-Tenant-Id: {tenant}\r\n\r\n".encode()
        response = exchange(server.ports["proxy"], request)
        return response.status, response.body.decode()

    def name(self, url, **fields):
        self.service.faults(answer={"backend_url": url, **fields})

    def refused(self, server):
        return sum(float(row.split()[-1]) for row in server.get("admin", "/metrics").splitlines()
                   if row.startswith("weir_backend_refused_total{"))

    def test_a_private_backend_is_used_if_its_host_is_allowed(self):
        server = self.start(external=", allowed_hosts: [127.0.0.1]")
        self.assertEqual(self.get(server, "default"), (200, "own"))
        self.name(self.tenant.url)
        self.assertEqual(self.get(server, "one"), (200, "tenant"))
        self.name(f"http://localhost:{self.tenant.port}/")
        self.assertEqual(self.get(server, "two"), (200, "tenant"))
        self.assertEqual(self.get(server, "default"), (200, "own"))
        self.assertEqual(self.refused(server), 0)

    def test_localhost_can_be_allowed_by_its_name(self):
        server = self.start(external=", allowed_hosts: [LOCALHOST]")
        self.name(f"http://localhost:{self.tenant.port}/")
        self.assertEqual(self.get(server, "one"), (200, "tenant"))
        self.name(self.tenant.url)
        self.assertEqual(self.get(server, "two")[0], 502)

    def test_what_is_not_public_is_refused_and_counted(self):
        server = self.start(external=", allowed_hosts: [allowed.example]")
        self.assertEqual(self.get(server, "default"), (200, "own"))  # leaves a connection to 127.0.0.1 in the pool
        port = self.own.port
        hosts = ["127.0.0.1", "localhost", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "0.0.0.0", "100.64.0.1",
                 "[::1]", "[::]", "[fe80::1]", "[fd00::1]", "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]", "224.0.0.1", "2130706433",
                 "0x7f.1", "127.1"]
        urls = [f"http://{host}:{port}/" for host in hosts] + [
            f"ftp://127.0.0.1:{port}/", "file:///etc/passwd", "nonsense", f"http://u:p@127.0.0.1:{port}/",
            f"HTTP://127.0.0.1:{port}", f"//127.0.0.1:{port}/", f"http://allowed.example@127.0.0.1:{port}/"]
        for number, url in enumerate(urls):
            with self.subTest(url):
                self.name(url)
                before = self.refused(server)
                status, body = self.get(server, f"tenant-{number}")
                self.assertEqual((status, json.loads(body)["error"]), (502, "backend_refused"), body)
                self.assertEqual(self.refused(server), before + 1)
        self.assertEqual(len(self.own.requests), 1)

    def test_unlimited_tenants_have_a_backend_too(self):
        server = self.start(external=", allowed_hosts: [127.0.0.1]")
        self.name(self.tenant.url, average=0)
        self.assertEqual(self.get(server, "internal"), (200, "tenant"))

    def test_without_an_answer_a_required_backend_is_unknown(self):
        server = self.start(external=", allowed_hosts: [127.0.0.1], backend_required: true")
        self.name(self.tenant.url)
        self.assertEqual(self.get(server, "known"), (200, "tenant"))
        self.service.faults(status=500)
        status, body = self.get(server, "unknown")
        self.assertEqual((status, json.loads(body)["error"]), (503, "backend_unknown"))
        self.service.faults()
        status, body = self.get(server, "nameless")
        self.assertEqual((status, json.loads(body)["error"]), (503, "backend_unknown"))
        self.assertEqual((len(self.own.requests), len(self.tenant.requests)), (0, 1))

    def test_the_first_limit_that_names_a_backend_decides(self):
        other = LimitsService(self)
        server = self.start(external=", allowed_hosts: [127.0.0.1]", second=(
            f'external: {{enabled: true, http: {{url: "{other.url}"}}, timeout: 2s, allowed_hosts: [127.0.0.1]}}'))
        other.faults(answer={"backend_url": self.own.url})
        self.name(self.tenant.url)
        self.assertEqual(self.get(server, "both"), (200, "tenant"))
        # The answer of the first is at hand, that of the second is asked for again.
        self.assertEqual(self.admin(server, "DELETE", "/ratelimit/external/second/both")[0], 200)
        self.assertEqual(self.get(server, "both"), (200, "tenant"))
        self.assertEqual(other.calls("both"), 2)
        self.service.faults()
        self.assertEqual(self.get(server, "second only"), (200, "own"))

    def test_a_connection_to_a_private_backend_is_not_used_for_a_tenant(self):
        server = self.start(name="localhost")
        for _ in range(2):
            self.assertEqual(self.get(server, "default"), (200, "own"))
        self.assertEqual(self.own.connections, 1)
        self.name(f"http://localhost:{self.own.port}")
        status, body = self.get(server, "spy")
        self.assertEqual((status, json.loads(body)["error"]), (502, "backend_refused"))
        self.assertEqual((len(self.own.requests), self.own.connections), (2, 1))

    def test_a_backend_that_is_away_is_not_replaced(self):
        server = self.start(external=", allowed_hosts: [127.0.0.1]")
        self.name(self.tenant.url)
        self.tenant.end()
        until("it is gone", lambda: self.get(server, "one")[0] == 502)
        self.assertEqual(self.own.requests, [])


if __name__ == "__main__":
    unittest.main()
