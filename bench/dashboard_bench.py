#!/usr/bin/env python3
"""Measures what open dashboards cost the decisions: latency with 1 million buckets, without viewers and with 20, in turns.

A viewer is what the page is to the server: one stream of samples (GET /ratelimit/live) and one client view a second.
Weir has one thread for decisions on core 0, as in production the admin work has its own; the open-loop client, which spins, and
the viewers share core 1. Printed: p50, p99 and p99.9 of RESP checks at a constant rate, Weir's CPU share, and samples
per second and viewer: 1 means that all of them share one scan.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from server_bench import OPEN_LOOP, WEIR, WeirServer, machine  # noqa: E402

BUCKETS = 1_000_000
VIEWERS = 20
RATE = 10_000


class Viewer(threading.Thread):
    """Reads the stream as a page does, and looks at one client every second."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.port, self.samples, self.stop = port, 0, False
        self.start()

    def run(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/ratelimit/live", timeout=30) as stream:
            for line in stream:
                if self.stop:
                    return
                if not line.startswith(b"event: numbers"):
                    continue
                self.samples += 1
                self.look(f"/ratelimit/clients/bench/client:{self.samples:012}")

    def look(self, path):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=30) as view:
                view.read()
        except urllib.error.HTTPError as error:  # 404: no such client came up
            error.close()


class ManyBuckets(WeirServer):
    """A limit whose buckets stay for a day."""

    def _weir(self):
        return super()._weir().replace("burst: 1000000, count: 1000000, period: 1s", "burst: 100, count: 1, period: 1h")


def fill(server):
    """A million clients of one limit, nearly: random ones, three times as many checks."""
    subprocess.run(["taskset", "-c", "1", "redis-benchmark", "-p", str(server.ports["resp"]), "-c", "50", "-P", "100", "-n",
                    str(BUCKETS * 3), "-r", str(BUCKETS * 108 // 100), "-q", "WEIR.CHECK", "bench", "client:__rand_int__"],
                   stdout=subprocess.DEVNULL, check=True)


def buckets(server):
    with urllib.request.urlopen(f"http://127.0.0.1:{server.ports['admin']}/ratelimit/stats", timeout=30) as answer:
        return json.load(answer)["limits"][0]["active"]


def measure(server, seconds, viewers):
    pages = [Viewer(server.ports["admin"]) for _ in range(viewers)]
    time.sleep(1.5)  # the first samples
    before, cpu, start = [page.samples for page in pages], server.running["weir"].cpu_seconds(), time.monotonic()
    seen = server.open_loop("resp", "throttle", RATE, seconds)
    elapsed = time.monotonic() - start
    seen["cpu"] = (server.running["weir"].cpu_seconds() - cpu) / elapsed
    seen["samples"] = statistics.mean((page.samples - was) / elapsed for page, was in zip(pages, before)) if pages else 0
    for page in pages:
        page.stop = True
    for page in pages:
        page.join(timeout=10)
    return seen


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="half a minute instead of three")
    arguments = parser.parse_args()
    rounds, seconds = (2, 5) if arguments.quick else (5, 15)
    for tool in ("redis-benchmark", "taskset"):
        if not shutil.which(tool):
            sys.exit(f"bench: {tool} is not installed: run script/bootstrap bench")
    if not os.path.exists(OPEN_LOOP):
        sys.exit("bench: run script/bench dashboard")
    rows = {0: [], VIEWERS: []}
    with ManyBuckets(WEIR) as server:
        print(f"filling {BUCKETS:,} buckets", file=sys.stderr)
        fill(server)
        held = buckets(server)
        for turn in range(rounds):
            print(f"round {turn + 1} of {rounds}", file=sys.stderr)
            for viewers in (0, VIEWERS) if turn % 2 == 0 else (VIEWERS, 0):
                rows[viewers].append(measure(server, seconds, viewers))
    print(f"{machine()}; {held:,} buckets; {RATE:,} checks a second\n")
    print("| viewers | p50 µs | p99 µs | p99.9 µs | the client was late, p99.9 | Weir's CPU | samples per second and viewer |")
    print("|---" * 7 + "|")
    for viewers, runs in rows.items():
        def middle(name):
            return statistics.median(run[name] for run in runs)
        print(f"| {viewers} | {middle('p50'):,.0f} | {middle('p99'):,.0f} | {middle('p99.9'):,.0f} | {middle('client_lag_p99.9'):,.0f} "
              f"| {middle('cpu'):.0%} | {middle('samples'):.2f} |")


if __name__ == "__main__":
    main()
