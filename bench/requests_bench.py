#!/usr/bin/env python3
"""What routes and keys cost: the CPU time of the server for one check by `request` beside one by name.

Both forms charge the same limit, among 100 routes and 1,000 overrides. The forms take turns, so that whatever else the
machine does meets both alike. The client is one connection that keeps one request on its way, as most clients do, and then
100 of them: there reading and writing sockets hides least of what is measured.
"""

import argparse
import json
import os
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile

BINARY = os.environ.get("WEIR", "build/bench/weir/app/weir")
DEPTHS = {1: 20_000, 100: 100_000}  # requests of each form in a round
GOAL = 1.5


def policy():
    lines = ["listen: [{address: '127.0.0.1:0', speak: http}]", "threads: 1", "memory: {max_buckets: 100K}",
             "limits:", "  per-tenant: {key: header:x-tenant-id, rate: 1000000/s}", "overrides:"]
    lines += [f"  per-tenant:tenant-{i}: {{rate: {1000000 + i}/s}}" for i in range(1000)]
    lines += ["routes:"]
    # Every other route has a wildcard, and the last of all is the one that is taken.
    for i in range(99):
        path = f"/api/v{i}/*/orders" if i % 2 else f"/api/v{i}/orders"
        lines.append(f"  - {{name: r{i}, match: {{path: '{path}', methods: [GET, POST]}}, limits: [per-tenant]}}")
    lines.append("  - {name: last, match: {path: '/shop/*/orders'}, limits: [per-tenant]}")
    return "\n".join(lines) + "\n"


def post(body):
    text = json.dumps(body, separators=(",", ":")).encode()
    return b"POST /v1/check HTTP/1.1\r\nHost: weir\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(text), text)


def plain(tenant):
    return post({"limit": "per-tenant", "id": tenant, "cost": 1})


def request(tenant):
    return post({"request": {"ip": "203.0.113.9", "method": "POST", "path": "/shop/7/orders?page=2", "host": "shop.example.com",
                             "headers": {"x-tenant-id": tenant}}, "cost": 1})


class Server:
    def __init__(self, config):
        self.process = subprocess.Popen([BINARY, "serve", "--config", config], stderr=subprocess.PIPE, text=True)
        port = None
        while port is None:
            line = self.process.stderr.readline()
            if not line:
                sys.exit("requests_bench: the server did not start")
            found = re.search(r"http on 127\.0\.0\.1:(\d+)", line)
            port = found and int(found[1])
        self.connection = socket.create_connection(("127.0.0.1", port))

    def cpu_seconds(self):
        """Of all threads, in nanoseconds by the scheduler: clock ticks would be a twentieth of what is measured."""
        tasks = f"/proc/{self.process.pid}/task"
        total = 0
        for task in os.listdir(tasks):
            with open(f"{tasks}/{task}/schedstat", encoding="ascii") as times:
                total += int(times.read().split()[0])
        return total / 1e9

    def run(self, batches, depth):
        before = self.cpu_seconds()
        for batch in batches:
            self.connection.sendall(batch)
            answers = b""
            while answers.count(b"\r\n\r\n") < depth or not answers.endswith(b"]}"):
                answers += self.connection.recv(1 << 20)
            if answers.count(b"HTTP/1.1 200 OK") != depth:
                sys.exit("requests_bench: not every check was allowed")
        return self.cpu_seconds() - before

    def end(self):
        self.connection.close()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=30)
        self.process.stderr.close()


def measure(server, depth, requests, rounds):
    """CPU microseconds per check of each form, and the ratio."""
    forms = {}
    for name, form in (("plain", plain), ("request", request)):
        # Half of the tenants have an override.
        all_of_them = [form(f"tenant-{i * 7919 % 2000}") for i in range(requests)]
        forms[name] = [b"".join(all_of_them[i:i + depth]) for i in range(0, len(all_of_them) - depth + 1, depth)]
    times = {name: [] for name in forms}
    for _ in range(rounds):
        for name, batches in forms.items():
            times[name].append(server.run(batches, depth) / len(batches) / depth * 1e6)
    ratio = statistics.median(b / a for a, b in zip(times["plain"], times["request"]))
    return {name: statistics.median(values) for name, values in times.items()} | {"ratio": ratio}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        config = os.path.join(directory, "weir.yaml")
        with open(config, "w", encoding="utf-8") as file:
            file.write(policy())
        server = Server(config)
        found = {depth: measure(server, depth, requests, options.rounds) for depth, requests in DEPTHS.items()}
        server.end()
    if options.json:
        print(json.dumps({"cpu_microseconds_by_depth": found, "goal": GOAL}))
        return
    print("100 routes, 1,000 overrides; CPU of the server per check, all allowed, median of", options.rounds, "rounds")
    for depth, of in found.items():
        print(f"  {depth:3} on the way: plain {of['plain']:6.2f} us, request {of['request']:6.2f} us, "
              f"ratio {of['ratio']:.2f} (goal: at most {GOAL})")


if __name__ == "__main__":
    main()
