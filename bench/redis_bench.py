#!/usr/bin/env python3
"""Measures `weir serve` with `store: redis` beside redis-benchmark that runs the same script with the same arguments on the
same redis-server: same depth, same connections, in turns. Next to both stands what counters in Redis cost without exact
limits: INCRBY and EXPIRE, one after the other, their CPU time added.

redis-server has core 0 and Weir, with one thread, core 1. The client has core 2; on two cores it shares Weir's where Redis
is what a decision waits for, and Redis's where Redis has little to do. Printed for each: decisions per second, CPU
microseconds of Weir and of redis-server per decision, commands that reached Redis per decision (INFO commandstats), and the
share that was allowed. A ratio is the median over the rounds, each with both sides measured right after each other. The
cluster's three masters share one core: there the CPU time per decision counts, not the rate.
"""

import argparse
import collections
import json
import os
import re
import shlex
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

from server_bench import WEIR, Running, free_port, machine

TOOLS = ("redis-server", "redis-benchmark", "redis-cli", "taskset")
CONNECTIONS = 50
MANY_CORES = (os.cpu_count() or 1) > 2
BESIDE_WEIR, BESIDE_REDIS = ("2", "2") if MANY_CORES else ("1", "0")
DENIED = [f"{i:012}" for i in range(100, 1000)]  # of 1,000 clients; the other 100 have an override

# A thousand clients of `mixed` ask equally often: nine in ten are denied. `hot` and the leases are one bucket each.
POLICY = """threads: 1
store: redis
redis: {{endpoints: ["127.0.0.1:{redis}"], mode: {mode}}}
limits:
  mixed: {{burst: 1, count: 1, period: 1d}}
  hot: {{burst: 10000000, count: 10000000, period: 1s}}
  leased64: {{burst: 10000000, count: 10000000, period: 1s, lease: {{tokens: 64, servers: 4}}}}
  leased1000: {{burst: 10000000, count: 10000000, period: 1s, lease: {{tokens: 1000, servers: 4}}}}
overrides:
{overrides}
listen:
"""
Row = collections.namedtuple("Row", "requests per_second weir_us redis_us commands allowed asked")


def cli(port, *words):
    return subprocess.run(["redis-cli", "-p", str(port), *words], capture_output=True, text=True, check=True).stdout.strip()


class Servers:
    """A redis-server or a cluster of three masters, and Weir on it, until the `with` ends."""

    def __init__(self, masters=1, binary=WEIR):
        self.masters = masters
        self.binary = binary

    def __enter__(self):
        self.directory = tempfile.mkdtemp()
        self.redis = [self._start_redis(i) for i in range(self.masters)]
        if self.masters > 1:
            self._join()
        self.ports = {name: free_port() for name in ("http", "resp", "admin")}
        self.weir = self._start_weir()
        while "\nweir_store_up 1\n" not in self._metrics():
            time.sleep(0.05)
        return self

    def __exit__(self, *_):
        for server in [self.weir, *self.redis]:
            server.end()
        shutil.rmtree(self.directory)

    def _start_redis(self, number):
        port = free_port()
        while port > 55000:  # a cluster's bus listens 10,000 above
            port = free_port()
        options = ["--cluster-enabled", "yes", "--cluster-config-file", f"nodes-{number}.conf"] if self.masters > 1 else []
        return Running(["redis-server", "--port", str(port), "--dir", self.directory, "--save", "", "--appendonly", "no", *options], port)

    def _join(self):
        addresses = [f"127.0.0.1:{redis.port}" for redis in self.redis]
        subprocess.run(["redis-cli", "--cluster", "create", *addresses, "--cluster-yes"], check=True, capture_output=True)
        while any("cluster_state:ok" not in cli(redis.port, "CLUSTER", "INFO") for redis in self.redis):
            time.sleep(0.05)

    def _start_weir(self):
        path = os.path.join(self.directory, "weir.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(POLICY.format(redis=self.redis[0].port, mode="cluster" if self.masters > 1 else "single",
                                     overrides="\n".join(f"  mixed:{i:012}: {{rate: 1000000/s}}" for i in range(100))))
            file.write("".join(f'  - {{address: "127.0.0.1:{port}", speak: {name}}}\n' for name, port in self.ports.items()))
        return Running([self.binary, "serve", "--config", path], self.ports["resp"], core="1")

    def _metrics(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.ports['admin']}/metrics", timeout=10) as answer:
            return answer.read().decode()

    def _verdicts(self):
        """Requests answered, those of them allowed, and those that Redis did not decide."""
        text = self._metrics()
        counts = collections.Counter()
        for status, value in re.findall(r'rate_limit_requests_total\{limit=".*?",.*?status="(\w+)"\} (\d+)', text):
            counts[status] += int(value)
        fallen = sum(int(value) for value in re.findall(r"store_fallback_total\{.*?\} (\d+)", text))
        return sum(counts.values()), counts["allowed"], fallen

    def _commands(self):
        counts = collections.Counter()
        for redis in self.redis:
            for name, calls in re.findall(r"cmdstat_(\S+?):calls=(\d+)", cli(redis.port, "INFO", "commandstats")):
                counts[name] += int(calls)
        return counts

    def _redis_cpu(self):
        return sum(redis.cpu_seconds() for redis in self.redis)

    def script_of(self, command, key):
        """The EVALSHA that Weir sends for a command, with `key` open for redis-benchmark to fill."""
        with socket.create_connection(("127.0.0.1", self.redis[0].port), timeout=10) as monitor, monitor.makefile() as lines:
            monitor.sendall(b"MONITOR\r\n")
            cli(self.ports["resp"], *(word.replace("__rand_int__", key) for word in command))
            for line in lines:
                if '"EVALSHA"' in line:
                    return [word.replace(key, "__rand_int__") for word in shlex.split(line.split("] ", 1)[1])]
        sys.exit("bench: Redis was not asked")

    def ask_redis(self, depth, requests, keys, script):
        """redis-benchmark alone. A denial writes nothing, so the writes tell how many were allowed."""
        before, cpu = self._commands(), self._redis_cpu()
        rate = self._benchmark(self.redis[0].port, depth, requests, keys, script, "1")
        cpu, seen = self._redis_cpu() - cpu, self._commands() - before
        return Row(requests, rate, 0.0, cpu / requests * 1e6, seen["evalsha"] / requests, seen["set"] / requests, 1.0)

    def ask_counter(self, depth, requests, keys):
        """A counter that expires: INCRBY for all requests, then EXPIRE for all of them."""
        cpu, seconds = self._redis_cpu(), 0.0
        for command in (["INCRBY", "counter:__rand_int__", "1"], ["EXPIRE", "counter:__rand_int__", "1000"]):
            seconds += requests / self._benchmark(self.redis[0].port, depth, requests, keys, command, "1")
        return Row(requests, requests / seconds, 0.0, (self._redis_cpu() - cpu) / requests * 1e6, 2.0, 1.0, 1.0)

    def ask_weir(self, depth, requests, keys, command, client=BESIDE_WEIR):
        commands, verdicts = self._commands(), self._verdicts()
        cpus = self.weir.cpu_seconds(), self._redis_cpu()
        rate = self._benchmark(self.ports["resp"], depth, requests, keys, command, client)
        weir, redis = self.weir.cpu_seconds() - cpus[0], self._redis_cpu() - cpus[1]
        answered, allowed, fallen = (after - before for before, after in zip(verdicts, self._verdicts()))
        if fallen or not answered:
            sys.exit(f"bench: of {answered} requests Redis did not decide {fallen}")
        seen = self._commands() - commands
        # Several questions share a command; the script reads one bucket for each.
        return Row(requests, rate, weir / requests * 1e6, redis / requests * 1e6, seen["evalsha"] / requests, allowed / answered,
                   seen["get"] / requests)

    def _benchmark(self, port, depth, requests, keys, command, core):
        done = subprocess.run(["taskset", "-c", core, "redis-benchmark", "-p", str(port), "-c", str(CONNECTIONS), "-P", str(depth), "-n",
                               str(requests), "-r", str(keys), "--csv", *command], capture_output=True, text=True, check=True)
        return float(done.stdout.strip().splitlines()[-1].split(",")[1].strip('"'))


def measure(servers, scale, rows):
    """One round of everything on one redis-server."""
    def add(name, row):
        rows.setdefault(name, []).append(row)

    throttle = ["CL.THROTTLE", "key:__rand_int__", "999999", "1000000", "1"]
    same = servers.script_of(throttle, f"{7:012}")
    for depth, requests in ((1, 60_000 * scale), (50, 150_000 * scale)):
        add(f"redis-benchmark, the script, {depth} deep", servers.ask_redis(depth, requests, 100_000, same))
        add(f"weir, {depth} deep", servers.ask_weir(depth, requests, 100_000, throttle))
        add(f"redis-benchmark, INCRBY + EXPIRE, {depth} deep", servers.ask_counter(depth, requests, 100_000))
    mixed = ["WEIR.CHECK", "mixed", "__rand_int__"]
    denied = servers.script_of(["CL.THROTTLE", "never:__rand_int__", "1", "1", "86400", "2"], f"{7:012}")
    add("redis-benchmark, the script, all denied, 50 deep", servers.ask_redis(50, 150_000 * scale, 1000, denied))
    # They have spent the one token that each has, and a flood has begun: before its first answers all of it asks.
    servers.ask_weir(50, 20_000, 1000, mixed, BESIDE_REDIS)
    add("weir, 90 % denied, 50 deep", servers.ask_weir(50, 600_000 * scale, 1000, mixed, BESIDE_REDIS))
    hot = servers.script_of(["WEIR.CHECK", "hot", "__rand_int__"], f"{0:012}")
    add("redis-benchmark, the script, one hot bucket, 50 deep", servers.ask_redis(50, 150_000 * scale, 1, hot))
    add("weir, one hot bucket, 50 deep", servers.ask_weir(50, 150_000 * scale, 1, ["WEIR.CHECK", "hot", "__rand_int__"]))
    for tokens in (64, 1000):
        add(f"weir, one hot bucket, leases of {tokens}, 50 deep",
            servers.ask_weir(50, 1_000_000 * scale, 1, ["WEIR.CHECK", f"leased{tokens}", "__rand_int__"], BESIDE_REDIS))


def measure_cluster(servers, scale, rows):
    throttle = ["CL.THROTTLE", "key:__rand_int__", "999999", "1000000", "1"]
    rows.setdefault("weir, cluster of 3 masters on one core, 50 deep", []).append(
        servers.ask_weir(50, 150_000 * scale, 100_000, throttle))


def compare(other, rounds, scale):
    """Two binaries of Weir, each on its own redis-server, in turns: rate and CPU per decision, medians and their ratios."""
    throttle = ["CL.THROTTLE", "key:__rand_int__", "999999", "1000000", "1"]
    mixed = ["WEIR.CHECK", "mixed", "__rand_int__"]
    cases = (("1 deep", lambda s: s.ask_weir(1, 60_000 * scale, 100_000, throttle)),
             ("50 deep", lambda s: s.ask_weir(50, 150_000 * scale, 100_000, throttle)),
             ("90 % denied, 50 deep", lambda s: s.ask_weir(50, 600_000 * scale, 1000, mixed, BESIDE_REDIS)),
             ("leases of 1000, 50 deep",
              lambda s: s.ask_weir(50, 1_000_000 * scale, 1, ["WEIR.CHECK", "leased1000", "__rand_int__"], BESIDE_REDIS)))
    rows = {what: [] for what, _ in cases}
    with Servers() as ours, Servers(binary=other) as theirs:
        for servers in (ours, theirs):  # the denied ones spend the one token that each has
            servers.ask_weir(50, 20_000, 1000, mixed, BESIDE_REDIS)
        for turn in range(rounds):
            print(f"round {turn + 1} of {rounds}", file=sys.stderr)
            for what, run in cases:
                order = (ours, theirs) if turn % 2 == 0 else (theirs, ours)
                found = {servers: run(servers) for servers in order}
                rows[what].append((found[ours], found[theirs]))
    print(f"{machine()}, {cli_version()}, beside {other}\n")
    print("| what | per second | of the other | ratio | Weir's CPU µs | of the other | ratio |\n" + "|---" * 7 + "|")
    for what, pairs in rows.items():
        cells = []
        for value in (lambda row: row.per_second, lambda row: row.weir_us):
            mine, peers = (statistics.median(map(value, column)) for column in zip(*pairs))
            cells += [f"{mine:,.2f}", f"{peers:,.2f}", f"{statistics.median(value(a) / value(b) for a, b in pairs):.3f}"]
        print(f"| {what} | " + " | ".join(cells) + " |")


def ratio(rows, ours, peer):
    return statistics.median(mine.per_second / theirs.per_second for mine, theirs in zip(rows[ours], rows[peer]))


def goals(rows):
    """What design asks for: name, what was measured, whether that is enough."""
    found = []
    for depth in (1, 50):
        value = ratio(rows, f"weir, {depth} deep", f"redis-benchmark, the script, {depth} deep")
        found.append((f"{depth} deep: at least 0.9 of redis-benchmark's rate with the same script", value, value >= 0.9))
    once = max(row.commands for name in ("weir, 1 deep", "weir, 50 deep") for row in rows[name])
    found.append(("one command per decision, at most", once, once <= 1.0001))
    spent = statistics.median(row.redis_us for row in rows["weir, 50 deep"])
    found.append(("50 deep: at most 8 µs of redis-server's CPU per allowed decision", spent, spent <= 8))
    mixed = rows["weir, 90 % denied, 50 deep"]
    # Allowed requests are one question each, the others are for denials; s seconds touch at most s + 1.
    asked = statistics.median((row.asked - row.allowed) * row.requests / len(DENIED) / (row.requests / row.per_second + 1)
                              for row in mixed)
    found.append(("repeats of a denial: at most one question per bucket and second", asked, asked <= 1))
    for tokens in (64, 1000):
        leased = f"weir, one hot bucket, leases of {tokens}, 50 deep"
        value = ratio(rows, leased, "redis-benchmark, the script, one hot bucket, 50 deep")
        found.append((f"a hot bucket with leases of {tokens}: at least 10 times redis-benchmark's rate", value, value >= 10))
    return found


def report(rows):
    print(f"{machine()}, {cli_version()}, {CONNECTIONS} connections; medians\n")
    print("| what | decisions per second | Weir's CPU µs per decision | redis-server's CPU µs per decision | "
          "commands per decision | allowed |\n" + "|---" * 6 + "|")
    for name, runs in rows.items():
        row = Row(*(statistics.median(values) for values in zip(*runs)))
        weir = f"{row.weir_us:.2f}" if name.startswith("weir") else ""
        print(f"| {name} | {row.per_second:,.0f} | {weir} | {row.redis_us:.2f} | {row.commands:.4f} | {row.allowed:.1%} |")
    print("\n| goal | measured | |\n|---|---|---|")
    for goal, value, met in goals(rows):
        print(f"| {goal} | {value:.2f} | {'met' if met else 'NOT met'} |")


def cli_version():
    version = subprocess.run(["redis-server", "--version"], capture_output=True, text=True, check=True).stdout
    return "redis-server " + re.search(r"v=(\S+)", version)[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="about two minutes instead of ten")
    parser.add_argument("--json", action="store_true", help="the rows as JSON")
    parser.add_argument("--against", metavar="BINARY", help="only compare with another weir")
    arguments = parser.parse_args()
    rounds, scale = (3, 1) if arguments.quick else (5, 4)
    for tool in TOOLS:
        if not shutil.which(tool):
            sys.exit(f"bench: {tool} is not installed: run script/bootstrap bench")
    if arguments.against:
        return compare(arguments.against, 2 * rounds + 1, scale)
    rows = {}
    for masters, measured in ((1, measure), (3, measure_cluster)):
        with Servers(masters) as servers:
            for turn in range(rounds):
                print(f"{masters} master{'s' * (masters > 1)}: round {turn + 1} of {rounds}", file=sys.stderr)
                measured(servers, scale, rows)
    if arguments.json:
        print(json.dumps({"rows": {name: [row._asdict() for row in runs] for name, runs in rows.items()},
                          "goals": [{"goal": g, "measured": v, "met": m} for g, v, m in goals(rows)]}, indent=2))
    else:
        report(rows)


if __name__ == "__main__":
    main()
