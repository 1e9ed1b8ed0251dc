"""A Redis that answers later than Envoy waits: Envoy gives up on every call, and must keep its connection to Weir."""

import re
import subprocess
import time
import unittest
import urllib.request

from envoy_case import EnvoyCase, free_port
from nginx import Nginx
from redis_servers import Proxy, Redis

CLIENTS, RATE_EACH, SECONDS = 20, 100, 16
SLOW_SECONDS = 10


class EnvoySlowRedisTest(EnvoyCase):
    def stat(self, name):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}/stats?filter=^{name.replace('.', '[.]')}$", timeout=10) as answer:
            return int(re.search(r": (\d+)", answer.read().decode())[1])

    def is_limited(self):
        """Whether Weir's answer reached Envoy in time: without one Envoy passes the request and adds no headers."""
        return self.get(x_tenant="probe").getheader("x-ratelimit-limit") is not None

    def test_calls_that_envoy_gives_up_are_no_flood_of_resets(self):
        link = Proxy(self, Redis(self).port)
        self.backend_port = Nginx(self, "location / { return 200 ok; }").port
        self.serve(f"store: redis\nredis: {{mode: single, endpoints: ['127.0.0.1:{link.port}'], timeout: 1s}}\n",
                   lambda rules: rules.replace("requests_per_unit: 20", "requests_per_unit: 1000000"))
        self.admin = free_port()
        admin = f"admin: {{address: {{socket_address: {{address: 127.0.0.1, port_value: {self.admin}}}}}}}\n"
        self.begin(lambda text: text + admin, timeout="0.02s")
        deadline = time.monotonic() + 30
        while not self.is_limited():
            self.assertLess(time.monotonic(), deadline, "Envoy does not ask Weir")

        load = subprocess.Popen(["h2load", "--h1", "-c", str(CLIENTS), f"--rps={RATE_EACH}", "-D", str(SECONDS),
                                 f"http://127.0.0.1:{self.port}/"], stdout=subprocess.PIPE, text=True)
        self.addCleanup(load.wait)
        self.addCleanup(load.kill)
        time.sleep(2)  # of normal load
        link.delay = 0.1
        end = time.monotonic() + SLOW_SECONDS
        while time.monotonic() < end:
            self.get()
        late = self.stat("cluster.backend.ratelimit.error")
        self.assertGreater(late, 1000, "Redis was not slow enough for Envoy to give up")
        link.delay = 0
        mended = time.monotonic()
        while not all(self.is_limited() for _ in range(20)):
            self.assertLess(time.monotonic(), mended + 30, "Weir does not answer in time again")
        print(f"{late} calls given up; normal again after {time.monotonic() - mended:.2f} s", flush=True)

        said, _ = load.communicate(timeout=60)
        statuses = re.search(r"status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx", said)
        self.assertEqual(statuses.groups()[1:], ("0", "0", "0"), said)
        self.assertEqual(self.stat("cluster.weir.upstream_cx_close_notify"), 0, "GOAWAYs")
        self.assertEqual(self.stat("cluster.weir.upstream_cx_destroy_remote"), 0, "connections that Weir closed")


if __name__ == "__main__":
    unittest.main()
