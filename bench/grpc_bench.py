#!/usr/bin/env python3
"""Measures Envoy's rate limit service of `weir serve` beside a server on grpc++ that makes the same decision.

Both answer ShouldRateLimit with one descriptor, which matches a rule that never denies here. Every server runs on core 0, h2load
on core 1. CONNECTIONS x STREAMS: a proxy with few busy connections, or many that wait for each answer. Printed for each: calls
per second, CPU microseconds of the server per call, and the share that was allowed. The CPU time is the one to trust on a busy
machine; a ratio is the median over the rounds, each with both sides measured right after each other.
"""

import argparse
import json
import os
import re
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import urllib.request

from server_bench import BUILD, WEIR, Running, free_port, machine

PEER = os.path.join(BUILD, "bench", "grpc_server")
METHOD = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"
SHAPES = ((50, 1), (10, 10), (64, 1), (8, 16))  # connections, streams of each
TOOLS = ("h2load", "taskset")

RULES = """domain: bench
descriptors:
  - {key: user, rate_limit: {unit: second, requests_per_unit: 1000000}}
"""


def field(number, content):
    """A length-delimited field of a protobuf message."""
    return bytes((number << 3 | 2, len(content))) + content


def body():
    """A framed RateLimitRequest: domain and one descriptor with one entry."""
    entry = field(1, b"user") + field(2, b"user:12345")
    message = field(1, b"bench") + field(2, field(1, entry))
    return b"\0" + struct.pack(">I", len(message)) + message


class Weir:
    """`weir serve` with one thread."""

    def __init__(self, binary, directory):
        self.port, self.admin = free_port(), free_port()
        path = os.path.join(directory, f"weir-{self.port}.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"threads: 1\nenvoy: [rules.yaml]\nlisten:\n  - {{address: '127.0.0.1:{self.port}', speak: [http, grpc]}}\n"
                       f"  - {{address: '127.0.0.1:{self.admin}', speak: admin}}\n")
        self.running = Running([binary, "serve", "--config", path], self.port)

    def end(self):
        """Calls that were answered with OK, and how many of the requests were allowed."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}/metrics", timeout=10) as answer:
            text = answer.read().decode()
        self.running.end()
        ok = re.search(r'weir_grpc_requests_total\{method="ShouldRateLimit",code="OK"\} (\d+)', text)
        allowed = re.findall(r'requests_total\{limit="bench\.user",.*?status="allowed"\} (\d+)', text)
        return int(ok[1]), sum(map(int, allowed))


class Peer:
    """The same on grpc++."""

    def __init__(self, directory):
        self.port = free_port()
        with open(os.path.join(directory, "counts"), "w+", encoding="ascii") as self.counts:
            self.running = Running([PEER, str(self.port)], self.port, stdout=self.counts)

    def end(self):
        self.running.end()
        with open(self.counts.name, encoding="ascii") as counts:
            calls, allowed = counts.read().split()
        return int(calls), int(allowed)


def load(server, request, calls, shape):
    """Calls per second and CPU microseconds per call."""
    connections, streams = shape
    before = server.running.cpu_seconds()
    done = subprocess.run(["taskset", "-c", "1", "h2load", "-n", str(calls), "-c", str(connections), "-m", str(streams), "-d", request,
                           "-H", "content-type: application/grpc", "-H", "te: trailers",
                           f"http://127.0.0.1:{server.port}{METHOD}"], capture_output=True, text=True, check=True)
    used = server.running.cpu_seconds() - before
    if f"status codes: {calls} 2xx" not in done.stdout:
        sys.exit("bench: the server failed:\n" + done.stdout)
    return float(re.search(r"([\d.]+) req/s", done.stdout)[1]), used / calls * 1e6


def measure(servers, directory, rounds, calls):
    """`servers`: name to (server, part of `calls` that it gets). Returns {(shape, name): [(rate, CPU), ...]} and name to allowed share."""
    request = os.path.join(directory, "request")
    with open(request, "wb") as file:
        file.write(body())
    rows = {(shape, name): [] for shape in SHAPES for name in servers}
    sent = dict.fromkeys(servers, 0)
    for turn in range(rounds):
        print(f"round {turn + 1} of {rounds}", file=sys.stderr)
        for shape in SHAPES:
            # Which one goes first alternates: the machine may get slower or faster meanwhile.
            for name in list(servers) if turn % 2 == 0 else reversed(list(servers)):
                server, part = servers[name]
                rows[shape, name].append(load(server, request, calls // part, shape))
                sent[name] += calls // part
    shares = {}
    for name, (server, _) in servers.items():
        answered, allowed = server.end()
        if answered != sent[name]:
            sys.exit(f"bench: {name} decided {answered} of {sent[name]} calls")
        shares[name] = allowed / answered
    return rows, shares


def ratio(rows, shape, of, to):
    return statistics.median(a[1] / b[1] for a, b in zip(rows[shape, of], rows[shape, to]))


def goals(rows):
    weir = {shape: statistics.median(cpu for _, cpu in rows[shape, "weir"]) for shape in SHAPES}
    return [("50 x 1: CPU per call, at most 6 µs", weir[50, 1], weir[50, 1] <= 6),
            ("10 x 10: CPU per call, at most 4.5 µs", weir[10, 10], weir[10, 10] <= 4.5),
            *((f"{c} x {s}: CPU of grpc++, at least {least} times ours", (times := ratio(rows, (c, s), "grpc++", "weir")), times >= least)
              for c, s, least in ((64, 1, 3), (8, 16, 4.5)))]


def report(rows, shares):
    print(machine() + "; " + ", ".join(f"{name} allowed {share:.1%}" for name, share in shares.items()) + "\n")
    print("| connections x streams | server | calls per second (median) | server CPU µs per call (median) |\n|---|---|---|---|")
    for ((connections, streams), name), runs in rows.items():
        print(f"| {connections} x {streams} | {name} | {statistics.median(rate for rate, _ in runs):,.0f} "
              f"| {statistics.median(cpu for _, cpu in runs):.2f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="about one minute instead of five")
    parser.add_argument("--json", action="store_true", help="the rows as JSON")
    parser.add_argument("--against", metavar="BINARY", help="only compare the CPU per call with that of another weir")
    arguments = parser.parse_args()
    rounds, calls = (5, 100_000) if arguments.quick else (11, 200_000)
    for tool in TOOLS:
        if not shutil.which(tool):
            sys.exit(f"bench: {tool} is not installed: run script/bootstrap bench")
    with tempfile.TemporaryDirectory() as directory:
        with open(os.path.join(directory, "rules.yaml"), "w", encoding="utf-8") as file:
            file.write(RULES)
        other = arguments.against
        servers = {"weir": (Weir(WEIR, directory), 1)}
        servers |= {other: (Weir(other, directory), 1)} if other else {"grpc++": (Peer(directory), 4)}
        rows, shares = measure(servers, directory, rounds, calls)
    if arguments.json:
        print(json.dumps({"rows": [{"connections": c, "streams": s, "server": name, "per_second": rate, "cpu_us": cpu}
                                   for ((c, s), name), runs in rows.items() for rate, cpu in runs], "allowed": shares}, indent=2))
        return
    report(rows, shares)
    if other:
        print(f"\n| connections x streams | CPU of {other}, times ours |\n|---|---|")
        for shape in SHAPES:
            print(f"| {shape[0]} x {shape[1]} | {ratio(rows, shape, other, 'weir'):.3f} |")
        return
    print("\n| goal | measured | |\n|---|---|---|")
    for goal, value, met in goals(rows):
        print(f"| {goal} | {value:.2f} | {'met' if met else 'NOT met'} |")


if __name__ == "__main__":
    main()
