#!/usr/bin/env python3
"""Measures what a well-behaved client gets beside clients that pipeline as much as they can.

One client asks one question at a time, half of them about a limit of 5 per hour, half about a limit that never denies. Beside
it, 0, 4 and 16 connections keep 4,096 questions in flight each, on `store: redis` and on `store: memory`. Printed for each:
how many of the limit of 5 passed, the median, p99 and slowest answer, errors, degraded answers, what the flooders were
answered per second, the server's resident memory before, during and after, and connections accepted per second by a server
that holds that many unanswered questions.

Everything shares the machine's cores, the load generator included: compare rows, not machines.
"""

import argparse
import os
import re
import shutil
import socket
import sys
import tempfile
import time
import urllib.request

from server_bench import WEIR, Running, free_port, machine

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "e2e"))
from flooding import ALLOWED, OVERLOADED, Polite, flood  # noqa: E402

POLICY = """threads: 1
store: {store}
redis: {{endpoints: ["127.0.0.1:{redis}"], timeout: 250ms}}
limits:
  orders: {{burst: 5, count: 5, period: 1h}}
  flood: {{burst: 1000000, count: 1000000, period: 1s}}
listen:
  - {{address: "127.0.0.1:{resp}", speak: resp}}
  - {{address: "127.0.0.1:{admin}", speak: admin}}
"""


class Weir:
    """Weir on a store, with a Redis of its own, until the `with` ends."""

    def __init__(self, store):
        self.store = store

    def __enter__(self):
        self.directory = tempfile.mkdtemp()
        self.ports = {name: free_port() for name in ("redis", "resp", "admin")}
        self.redis = Running(["redis-server", "--port", str(self.ports["redis"]), "--save", "", "--appendonly", "no"],
                             self.ports["redis"], core="0")
        path = os.path.join(self.directory, "weir.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(POLICY.format(store=self.store, **self.ports))
        self.weir = Running([WEIR, "serve", "--config", path], self.ports["admin"], core="1")
        return self

    def __exit__(self, *_):
        self.weir.end()
        self.redis.end()
        shutil.rmtree(self.directory)

    def metric(self, name):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.ports['admin']}/metrics", timeout=30) as response:
            text = response.read().decode()
        return sum(float(value) for value in re.findall(rf"^{name}(?:{{.*}})? (\S+)$", text, re.M))

    def resident_mib(self):
        with open(f"/proc/{self.weir.process.pid}/statm", encoding="ascii") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)

    def connects_per_second(self, seconds=1.0):
        begin = time.monotonic()
        count = 0
        while time.monotonic() - begin < seconds:
            socket.create_connection(("127.0.0.1", self.ports["resp"]), timeout=30).close()
            count += 1
        return count / (time.monotonic() - begin)


def be_polite(server, seconds, client):
    polite = Polite(server.ports["resp"])
    passed = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        passed += polite.ask("WEIR.CHECK", "orders", client)
        polite.ask("WEIR.CHECK", "flood", client)
        time.sleep(0.002)
    polite.close()
    return passed, polite


def measure(server, connections, seconds):
    before = server.resident_mib()
    with flood(server.ports["resp"], [4096] * connections) as flooders:
        passed, polite = be_polite(server, seconds, f"polite-{connections}")
        during = server.resident_mib()
        connects = server.connects_per_second()
    answered = sum(counts[ALLOWED] for counts in flooders)
    overloaded = sum(counts[OVERLOADED] for counts in flooders)
    errors = sum(counts[b"-"] for counts in flooders) - overloaded
    times = [1000 * Polite.percentile(polite.times, share) for share in (0.5, 0.99, 1.0)]
    print(f"{server.store:7}{connections:9}{passed:8} of 5 {times[0]:8.2f}{times[1]:8.2f}{times[2]:9.2f}{len(polite.errors):8}"
          f"{server.metric('weir_store_fallback_total'):10.0f}{answered / seconds:12.0f}{overloaded / seconds:12.0f}{errors:8}"
          f"{before:9.0f}{during:8.0f}{server.resident_mib():8.0f}{connects:11.0f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10, help="how long each flood lasts")
    arguments = parser.parse_args()
    print(machine())
    print("                 polite client: answers in ms                              flooders: answers per second"
          "       resident MiB           connects")
    print("store  flooders    passed     median     p99  slowest  errors  degraded     allowed  overloaded  errors"
          "   before  during   after  per second")
    for store in ("redis", "memory"):
        with Weir(store) as server:
            for connections in (0, 4, 16):
                measure(server, connections, arguments.seconds)


if __name__ == "__main__":
    main()
