#!/usr/bin/env python3
"""What limits from a service cost, and what clients notice when the service fails.

Cost: the CPU time of the server for a check whose numbers are a cached answer, beside a check of a plain limit, in turns. Both
have 1,000 clients. Outage: an open loop (bench/open_loop.cc) over RESP asks for 10,000 tenants at a constant rate while the
service works, then is killed for a minute, works again, accepts and never answers for a minute, and works again. An error or a
missing reply ends the benchmark. Printed for each phase: how long requests took, and where their numbers came from; and whether
p99 stays within twice the normal after the first 10 s. With --outage 400, stale answers expire within the outages, so that the
limit's own numbers follow. The service is examples/limits-service, beside the client.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from server_bench import OPEN_LOOP, ROOT, WEIR, WRK, Running, free_port, machine  # noqa: E402

EXAMPLE = pathlib.Path(ROOT) / "examples" / "limits-service"
TENANTS = 10_000  # as open_loop.cc has
CLIENTS = 1_000
SERVICE_BURST = 1_000_000
OWN_BURST = 1_000
GOAL_COST = 1.10
GOAL_P99 = 2.0


class Service:
    """The example service, which can be killed, started again, and told to hang."""

    def __init__(self, directory):
        self.port = free_port()
        self.tenants = os.path.join(directory, "tenants.json")
        with open(self.tenants, "w", encoding="utf-8") as file:
            json.dump({"tenants": {}, "default": {"average": 1_000_000, "burst": SERVICE_BURST, "period": "1s"}}, file)
        self.start()

    def start(self):
        self.process = subprocess.Popen(["taskset", "-c", "1", "/usr/bin/python3", EXAMPLE / "limits_service.py", "--faults", "--http",
                                         f"127.0.0.1:{self.port}", self.tenants], stdout=subprocess.PIPE, text=True)
        if not self.process.stdout.readline().startswith("ready"):
            sys.exit("bench: the limits service did not start")

    def kill(self):
        self.process.kill()
        self.process.wait(timeout=30)
        self.process.stdout.close()

    def faults(self, **fields):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/faults", json.dumps(fields).encode(), method="PUT")
        with urllib.request.urlopen(request, timeout=20):
            pass

    def calls(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/calls", timeout=20) as answer:
            return json.load(answer)["total"]


class Weir:
    """`weir serve` on core 0, with a limit of its own numbers and one whose numbers the service decides."""

    def __init__(self, directory, service, cache_ttl):
        self.ports = {name: free_port() for name in ("http", "resp", "admin")}
        numbers = "burst: 1000000, count: 1000000, period: 1s"
        listeners = "".join(f'  - {{address: "127.0.0.1:{port}", speak: {speak}}}\n' for speak, port in self.ports.items())
        config = os.path.join(directory, "weir.yaml")
        with open(config, "w", encoding="utf-8") as file:
            file.write(f"""threads: 1
listen:
{listeners}limits:
  plain: {{{numbers}}}
  per-tenant:
    burst: {OWN_BURST}
    count: 1000000
    period: 1s
    external: {{enabled: true, http: {{url: "http://127.0.0.1:{service.port}/limits"}}, timeout: 1s, cache_ttl: {cache_ttl}}}
""")
        self.running = Running([WEIR, "serve", "--config", config], self.ports["resp"])

    def warm(self, names):
        """Asks for each until it has an answer of the service."""
        names = list(names)
        while names:
            with socket.create_connection(("127.0.0.1", self.ports["resp"]), timeout=60) as connection:
                missing = []
                with connection.makefile("rb") as reader:
                    for begin in range(0, len(names), 50):
                        batch = names[begin:begin + 50]
                        connection.sendall(b"".join(b"*3\r\n$9\r\nWEIR.PEEK\r\n$10\r\nper-tenant\r\n$%d\r\n%s\r\n"
                                                    % (len(name), name.encode()) for name in batch))
                        for name in batch:
                            reply = [reader.readline() for _ in range(6)]
                            if reply[2] != b":%d\r\n" % SERVICE_BURST:
                                missing.append(name)
            names = missing

    def redis_benchmark(self, limit, depth, requests):
        before = self.running.cpu_seconds()
        subprocess.run(["taskset", "-c", "1", "redis-benchmark", "-p", str(self.ports["resp"]), "-c", "50", "-P", str(depth), "-n",
                        str(requests), "-r", str(CLIENTS), "--csv", "WEIR.CHECK", limit, "tenant:__rand_int__"],
                       capture_output=True, check=True)
        return (self.running.cpu_seconds() - before) / requests * 1e6

    def wrk(self, directory, limit, seconds):
        script = os.path.join(directory, f"{limit}.lua")
        body = f"""'{{"limit":"{limit}","id":"tenant:' .. string.format("%012d", n % {CLIENTS}) .. '"}}'"""
        with open(script, "w", encoding="utf-8") as file:
            file.write(WRK.replace("BODY", body))
        before = self.running.cpu_seconds()
        done = subprocess.run(["taskset", "-c", "1", "wrk", "-t1", "-c64", f"-d{seconds}s", "-s", script,
                               f"http://127.0.0.1:{self.ports['http']}/v1/check"], capture_output=True, text=True, check=True)
        used = self.running.cpu_seconds() - before
        if "Non-2xx" in done.stdout:
            sys.exit("bench: the server denied or failed:\n" + done.stdout)
        return used / int(re.search(r"(\d+) requests in", done.stdout)[1]) * 1e6

    def open_loop(self, rate, seconds):
        done = subprocess.run(["taskset", "-c", "1", OPEN_LOOP, str(self.ports["resp"]), "check", str(rate), str(seconds)],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit("bench: a request failed: " + done.stderr)
        return json.loads(done.stdout)

    def metric(self, line):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.ports['admin']}/metrics", timeout=10) as answer:
            found = re.search(rf"^{re.escape(line)} (\S+)$", answer.read().decode(), re.M)
        return float(found[1]) if found else 0.0


def measure_cost(directory, rounds, scale):
    service = Service(directory)
    weir = Weir(directory, service, "1h")
    weir.warm(f"tenant:{i:012d}" for i in range(CLIENTS))
    rows = {}
    for turn in range(rounds):
        print(f"cost: round {turn + 1} of {rounds}", file=sys.stderr)
        for what, run in (("RESP, depth 1", lambda limit: weir.redis_benchmark(limit, 1, 100_000 * scale)),
                          ("RESP, depth 50", lambda limit: weir.redis_benchmark(limit, 50, 1_000_000 * scale)),
                          ("POST /v1/check", lambda limit: weir.wrk(directory, limit, 2 * scale))):
            order = ("plain", "per-tenant") if turn % 2 == 0 else ("per-tenant", "plain")
            cpu = {limit: run(limit) for limit in order}
            rows.setdefault(what, []).append((cpu["plain"], cpu["per-tenant"]))
    calls = service.calls()
    weir.running.end()
    service.kill()
    print(f"\nThe service was called {calls} times for {CLIENTS} clients.\n")
    print(f"| a check | plain, CPU µs | with a cached answer | ratio, median of {rounds} rounds | goal {GOAL_COST} |\n" + "|---" * 5 + "|")
    for what, pairs in rows.items():
        plain, external = (statistics.median(column) for column in zip(*pairs))
        ratio = statistics.median(b / a for a, b in pairs)
        print(f"| {what} | {plain:.3f} | {external:.3f} | {ratio:.3f} | {'met' if ratio <= GOAL_COST else 'NOT met'} |")


class Outages:
    """The open loop's phases, as rows of a table."""

    def __init__(self, directory, rate):
        self.rate = rate
        self.service = Service(directory)
        self.weir = Weir(directory, self.service, "30s")
        self.weir.warm(f"tenant:{i}" for i in range(TENANTS))
        self.rows = []

    def stale(self):
        return self.weir.metric('weir_external_cache_total{result="stale"}')

    def phase(self, name, seconds):
        """Returns p99."""
        print(f"outage: {name}", file=sys.stderr)
        before = self.stale()
        seen = self.weir.open_loop(self.rate, seconds)
        bursts = seen["bursts"]
        if set(bursts) - {str(OWN_BURST), str(SERVICE_BURST)}:
            sys.exit(f"bench: numbers that nobody gave: {bursts}")
        self.rows.append((name, seen, bursts.get(str(SERVICE_BURST), 0), self.stale() - before, bursts.get(str(OWN_BURST), 0)))
        return seen["p99"]

    def recover(self, how):
        begin = time.monotonic()
        while self.weir.metric('weir_external_service_open{limit="per-tenant"}') > 0:
            self.weir.open_loop(100, 1)  # requests make the probes
        print(f"outage: {how}: noticed within {time.monotonic() - begin:.1f} s that it works again", file=sys.stderr)

    def run(self, seconds):
        """Returns p99 of the normal phase, and the worst after the first 10 s of an outage."""
        service = self.service
        normal = self.phase("normal", 20)
        worst = 0
        for how, break_it, mend_it in (("killed", service.kill, service.start),
                                       ("never answers", lambda: service.faults(hang=True), service.faults)):
            break_it()
            self.phase(f"{how}: the first 10 s", 10)
            for begin in range(10, seconds, 50):
                end = min(begin + 50, seconds)
                worst = max(worst, self.phase(f"{how}: {begin} to {end} s", end - begin))
            mend_it()
            self.recover(how)
            self.phase(f"{how}: works again", 20)
        self.weir.running.end()
        service.kill()
        return normal, worst


def measure_outage(directory, rate, seconds):
    outages = Outages(directory, rate)
    normal, worst = outages.run(seconds)
    print(f"\n{TENANTS:,} tenants, {rate:,} requests per second; no request failed.\n")
    print("| phase | requests | p50, µs | p99, µs | max, µs | the service's numbers | of these stale | the limit's own |\n"
          + "|---" * 8 + "|")
    for name, seen, of_service, stale, own in outages.rows:
        print(f"| {name} | {seen['asked']:,} | {seen['p50']:,.0f} | {seen['p99']:,.0f} | {seen['max']:,.0f} | {of_service:,} "
              f"| {stale:,.0f} | {own:,} |")
    print(f"\np99 after the first 10 s of an outage: {worst / normal:.2f} times the normal one; goal {GOAL_P99}: "
          f"{'met' if worst <= GOAL_P99 * normal else 'NOT met'}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, outages of 15 s")
    parser.add_argument("--outage", type=int, help="seconds of each outage, more than 10; usually 60")
    parser.add_argument("--only", choices=("cost", "outage"))
    parser.add_argument("--rate", type=int, default=2000, help="requests per second during the outages")
    arguments = parser.parse_args()
    for tool in ("redis-benchmark", "wrk", "taskset"):
        if not shutil.which(tool):
            sys.exit(f"bench: {tool} is not installed: run script/bootstrap bench")
    print(machine())
    with tempfile.TemporaryDirectory() as directory:
        if arguments.only != "outage":
            measure_cost(directory, 5 if arguments.quick else 11, 1 if arguments.quick else 2)
        if arguments.only != "cost":
            measure_outage(directory, arguments.rate, arguments.outage or (15 if arguments.quick else 60))


if __name__ == "__main__":
    main()
