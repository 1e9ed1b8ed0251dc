#!/usr/bin/env python3
"""Measures `weir serve` beside redis-server and nginx: same machine, same client, one after the other, in turns.

Every server has one thread on core 0, the client runs on core 1, so that on two cores they do not fight. Printed for each:
requests per second, CPU microseconds of the server per request, and the share of requests that were allowed. The CPU time is
the one to trust on a busy machine; a ratio is the median over the rounds, each with both sides measured right after each other.
Then latencies at half of the rate that Weir reached, open loop (bench/open_loop.cc): questions come at a constant rate whether
or not the ones before were answered. All of it over loopback; nothing here leaves the machine.
"""

import argparse
import glob
import json
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.join(ROOT, "build", "bench")
WEIR = os.environ.get("WEIR") or os.path.join(BUILD, "weir", "app", "weir")  # another binary, to compare two
OPEN_LOOP = os.path.join(BUILD, "bench", "open_loop")
TOOLS = ("redis-server", "redis-benchmark", "redis-cli", "nginx", "wrk", "h2load", "taskset")

# The same decision in Lua, as a program on Redis would make it: read the TAT, decide, write.
LUA = """
local now = redis.call('TIME'); local t = now[1] * 1000000 + now[2]
local interval, window = tonumber(ARGV[1]), tonumber(ARGV[2])
local tat = math.max(tonumber(redis.call('GET', KEYS[1]) or '0'), t)
if tat + interval - t > window then return {1, tat + interval - t - window} end
redis.call('SET', KEYS[1], string.format('%.0f', tat + interval), 'PX', math.ceil((tat + interval - t) / 1000) + 1)
return {0, 0}
"""

WRK = """wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
local n = 0
request = function()
  n = (n * 1103515245 + 12345) % 100000
  return wrk.format(nil, nil, nil, BODY)
end"""
BODIES = {"/v1/check": """'{"limit":"bench","id":"user:' .. n .. '"}'""",
          "/v1/throttle": """'{"key":"user:' .. n .. '","burst":1000000,"count":1000000,"period":"1s"}'"""}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Running:
    """A server pinned to one core, with the CPU time it has used."""

    def __init__(self, command, port, core="0", stdout=subprocess.DEVNULL):
        self.port = port
        self.process = subprocess.Popen(["taskset", "-c", core, *command], stdout=stdout, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 20
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                return
            except OSError:
                if time.monotonic() > deadline or self.process.poll() is not None:
                    sys.exit(f"bench: {command[0]} did not start")

    def cpu_seconds(self):
        """Of all threads of the process and of its children: nginx works in one."""
        pids = [str(self.process.pid)]
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children", encoding="ascii") as children:
            pids += children.read().split()
        total = 0
        for pid in pids:
            for path in glob.glob(f"/proc/{pid}/task/*/schedstat"):
                with open(path, encoding="ascii") as schedstat:
                    total += int(schedstat.read().split()[0])
        return total / 1e9

    def end(self):
        self.process.terminate()
        self.process.wait(timeout=30)


class WeirServer:
    """Weir with one thread, until the `with` ends."""

    def __init__(self, binary):
        self.binary = binary

    def __enter__(self):
        self.directory = tempfile.mkdtemp()
        self.ports = {name: free_port() for name in ("http", "resp", "admin", "redis", "nginx", "nginx_h2c")}
        self.running = {}
        self.running["weir"] = Running([self.binary, "serve", "--config", self._file("weir.yaml", self._weir())], self.ports["http"])
        self.body = self._file("body.json", '{"limit":"bench","id":"user:12345"}')
        self.scripts = {target: self._file(f"{target[4:]}.lua", WRK.replace("BODY", body)) for target, body in BODIES.items()}
        return self

    def __exit__(self, *_):
        for server in self.running.values():
            server.end()
        shutil.rmtree(self.directory)

    def _file(self, name, text):
        path = os.path.join(self.directory, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def _weir(self):
        return ("threads: 1\nlimits:\n  bench: {burst: 1000000, count: 1000000, period: 1s}\nlisten:\n" + "".join(
            f'  - {{address: "127.0.0.1:{self.ports[s]}", speak: {s}}}\n' for s in ("http", "resp", "admin")))

    def _nginx(self):
        temporary = " ".join(f"{kind}_temp_path {self.directory};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        return f"""daemon off; worker_processes 1; pid {self.directory}/pid; error_log /dev/null;
events {{ worker_connections 1024; }}
http {{ access_log off; keepalive_requests 100000000; {temporary}
server {{ listen 127.0.0.1:{self.ports['nginx']}; listen 127.0.0.1:{self.ports['nginx_h2c']} http2;
location / {{ default_type application/json; return 200 '{{"allowed":true}}'; }} }} }}"""

    def redis_benchmark(self, name, port, depth, requests, command):
        before = self.running[name].cpu_seconds()
        done = subprocess.run(["taskset", "-c", "1", "redis-benchmark", "-p", str(self.ports[port]), "-c", "50", "-P", str(depth), "-n",
                               str(requests), "-r", "100000", "--csv", *command], capture_output=True, text=True, check=True)
        rate = float(done.stdout.strip().splitlines()[-1].split(",")[1].strip('"'))
        return rate, (self.running[name].cpu_seconds() - before) / requests * 1e6

    def wrk(self, name, port, seconds, target):
        before = self.running[name].cpu_seconds()
        done = subprocess.run(["taskset", "-c", "1", "wrk", "-t1", "-c64", f"-d{seconds}s", "-s", self.scripts[target],
                               f"http://127.0.0.1:{self.ports[port]}{target}"], capture_output=True, text=True, check=True)
        used = self.running[name].cpu_seconds() - before
        requests = int(re.search(r"(\d+) requests in", done.stdout)[1])
        if "Non-2xx" in done.stdout:
            sys.exit("bench: the server denied or failed:\n" + done.stdout)
        return float(re.search(r"Requests/sec:\s+([\d.]+)", done.stdout)[1]), used / requests * 1e6

    def h2load(self, name, port, requests, target):
        """HTTP/2 without TLS: 10 connections with 10 streams each."""
        before = self.running[name].cpu_seconds()
        done = subprocess.run(["taskset", "-c", "1", "h2load", "-n", str(requests), "-c", "10", "-m", "10", "-d", self.body, "-H",
                               "content-type: application/json", f"http://127.0.0.1:{self.ports[port]}{target}"],
                              capture_output=True, text=True, check=True)
        used = self.running[name].cpu_seconds() - before
        if f"status codes: {requests} 2xx" not in done.stdout:
            sys.exit("bench: the server denied or failed:\n" + done.stdout)
        return float(re.search(r"([\d.]+) req/s", done.stdout)[1]), used / requests * 1e6

    def open_loop(self, port, what, rate, seconds):
        done = subprocess.run(["taskset", "-c", "1", OPEN_LOOP, str(self.ports[port]), what, str(int(rate)), str(seconds)],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit("bench: " + done.stderr)
        return {"rate": int(rate), **json.loads(done.stdout)}

    def allowed_share(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.ports['admin']}/metrics", timeout=10) as answer:
            text = answer.read().decode()
        counts = {}
        for status, value in re.findall(r'requests_total\{limit=".*?",.*?status="(\w+)"\} (\d+)', text):
            counts[status] = counts.get(status, 0) + int(value)
        total = sum(counts.values())
        return counts.get("allowed", 0) / total if total else 1.0


class Servers(WeirServer):
    """Weir, redis-server and nginx, each with one thread, until the `with` ends."""

    def __enter__(self):
        super().__enter__()
        self.running["redis"] = Running(["redis-server", "--port", str(self.ports["redis"]), "--save", "", "--appendonly", "no"],
                                        self.ports["redis"])
        nginx = shutil.which("nginx") or "/usr/sbin/nginx"
        self.running["nginx"] = Running([nginx, "-c", self._file("nginx.conf", self._nginx()), "-p", self.directory], self.ports["nginx"])
        self.sha = subprocess.run(["redis-cli", "-p", str(self.ports["redis"]), "SCRIPT", "LOAD", LUA], capture_output=True, text=True,
                                  check=True).stdout.strip()
        return self


def measure(servers, scale, rows):
    """One round of everything: adds one (rate, CPU) to each row."""
    throttle = ["CL.THROTTLE", "key:__rand_int__", "999999", "1000000", "1"]
    for depth, requests in ((1, 100_000 * scale), (50, 1_000_000 * scale)):
        for what, name, port, command in (
                ("weir CL.THROTTLE", "weir", "resp", throttle), ("redis GET", "redis", "redis", ["GET", "key:__rand_int__"]),
                ("redis SET", "redis", "redis", ["SET", "key:__rand_int__", "x"]),
                ("redis Lua decision", "redis", "redis", ["EVALSHA", servers.sha, "1", "lua:__rand_int__", "1", "1000000"])):
            count = requests // 10 if "Lua" in what and depth > 1 else requests
            rows.setdefault(f"{what}, depth {depth}", []).append(servers.redis_benchmark(name, port, depth, count, command))
    for what, name, port, target in (("weir POST /v1/check", "weir", "http", "/v1/check"),
                                     ("nginx return 200", "nginx", "nginx", "/v1/check"),
                                     ("weir POST /v1/throttle", "weir", "http", "/v1/throttle")):
        rows.setdefault(what, []).append(servers.wrk(name, port, 3 * scale, target))
    for what, name, port in (("weir POST /v1/check, HTTP/2", "weir", "http"), ("nginx return 200, HTTP/2", "nginx", "nginx_h2c")):
        rows.setdefault(what, []).append(servers.h2load(name, port, 200_000 * scale, "/v1/check"))


def measure_latency(servers, seconds, rows):
    """At half of the rate that Weir reached one deep."""
    half = {kind: statistics.median(rate for rate, _ in rows[row]) / 2
            for kind, row in (("resp", "weir CL.THROTTLE, depth 1"), ("http", "weir POST /v1/throttle"))}
    return {"weir CL.THROTTLE": servers.open_loop("resp", "throttle", half["resp"], seconds),
            "redis GET": servers.open_loop("redis", "get", half["resp"], seconds),
            "weir POST /v1/throttle": servers.open_loop("http", "http", half["http"], seconds),
            "nginx return 200": servers.open_loop("nginx", "http", half["http"], seconds)}


def compare(other, rounds, scale):
    """Both binaries in one run, in turns: prints the CPU per request of each, and the median of the rounds' ratios."""
    cases = (("RESP CL.THROTTLE, depth 1", "resp", 1), ("RESP CL.THROTTLE, depth 50", "resp", 50),
             ("POST /v1/check", "http", "/v1/check"), ("POST /v1/throttle", "http", "/v1/throttle"))
    throttle = ["CL.THROTTLE", "key:__rand_int__", "999999", "1000000", "1"]
    rows = {what: [] for what, _, _ in cases}
    with WeirServer(WEIR) as ours, WeirServer(other) as theirs:
        for turn in range(rounds):
            print(f"round {turn + 1} of {rounds}", file=sys.stderr)
            for what, port, how in cases:
                cpu = {}
                # Which one goes first alternates: the machine may get slower or faster meanwhile.
                for server in ((ours, theirs) if turn % 2 == 0 else (theirs, ours)):
                    if port == "resp":
                        cpu[server] = server.redis_benchmark("weir", port, how, (100_000 if how == 1 else 1_000_000) * scale, throttle)[1]
                    else:
                        cpu[server] = server.wrk("weir", port, 2 * scale, how)[1]
                rows[what].append((cpu[ours], cpu[theirs]))
    print(f"{machine()}\n\n| what | CPU µs per request | of {other} | ratio, median of {rounds} rounds |\n|---|---|---|---|")
    for what, pairs in rows.items():
        mine, peers = (statistics.median(column) for column in zip(*pairs))
        print(f"| {what} | {mine:.3f} | {peers:.3f} | {statistics.median(a / b for a, b in pairs):.3f} |")


def ratio(rows, peer, ours):
    return statistics.median(theirs[1] / mine[1] for theirs, mine in zip(rows[peer], rows[ours]))


def goals(rows, latency):
    weir = "weir CL.THROTTLE, depth 50"
    worst = max(latency["weir CL.THROTTLE"]["p99.9"], latency["weir POST /v1/throttle"]["p99.9"]) / 1e3
    return [("RESP, depth 50: CPU of redis GET, at least 1.0 times ours", ratio(rows, "redis GET, depth 50", weir), lambda v: v >= 1),
            ("RESP, depth 50: CPU of the decision in Lua, at least 12 times ours", ratio(rows, "redis Lua decision, depth 50", weir),
             lambda v: v >= 12),
            ("HTTP check: CPU of nginx return 200, at least 1.0 times ours", ratio(rows, "nginx return 200", "weir POST /v1/check"),
             lambda v: v >= 1),
            ("HTTP/2 check: CPU of nginx return 200, at least 1.0 times ours",
             ratio(rows, "nginx return 200, HTTP/2", "weir POST /v1/check, HTTP/2"), lambda v: v >= 1),
            ("p99.9 at half load, at most 1 ms", worst, lambda v: v <= 1)]


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as cpuinfo:
        model = re.search(r"model name\s*: (.*)", cpuinfo.read())
    return (f"{model[1] if model else 'unknown CPU'}, {os.cpu_count()} cores, Linux {os.uname().release}, "
            f"{time.strftime('%Y-%m-%d')}")


def report(rows, latency, share):
    print(f"{machine()}; Weir allowed {share:.1%}\n")
    print("| what | per second (median) | server CPU µs per request (median) |\n|---|---|---|")
    for name, runs in rows.items():
        print(f"| {name} | {statistics.median(rate for rate, _ in runs):,.0f} | {statistics.median(cpu for _, cpu in runs):.2f} |")
    print("\n| latency at half load, µs | per second | p50 | p99 | p99.9 | p99.99 | the client was late, p99.9 |\n" + "|---" * 7 + "|")
    for name, seen in latency.items():
        quantiles = [seen[q] for q in ("p50", "p99", "p99.9", "p99.99", "client_lag_p99.9")]
        print(f"| {name} | {seen['rate']:,} | " + " | ".join(f"{value:,.0f}" for value in quantiles) + " |")
    print("\n| goal | measured | |\n|---|---|---|")
    for goal, value, met in goals(rows, latency):
        print(f"| {goal} | {value:.2f} | {'met' if met(value) else 'NOT met'} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="about two minutes instead of ten")
    parser.add_argument("--json", action="store_true", help="the rows as JSON")
    parser.add_argument("--against", metavar="BINARY", help="only compare the CPU per request with that of another weir")
    arguments = parser.parse_args()
    rounds, scale, seconds = (7, 1, 5) if arguments.quick else (11, 2, 20)
    for tool in TOOLS:
        if not shutil.which(tool) and not os.path.exists(f"/usr/sbin/{tool}"):
            sys.exit(f"bench: {tool} is not installed: run script/bootstrap bench")
    if arguments.against:
        return compare(arguments.against, rounds, scale)
    rows = {}
    with Servers(WEIR) as servers:
        for turn in range(rounds):
            print(f"round {turn + 1} of {rounds}", file=sys.stderr)
            measure(servers, scale, rows)
        print("latency", file=sys.stderr)
        latency = measure_latency(servers, seconds, rows)
        share = servers.allowed_share()
    if arguments.json:
        print(json.dumps({"rows": {n: [{"per_second": r, "cpu_us": c} for r, c in runs] for n, runs in rows.items()},
                          "latency_us": latency, "allowed": share}, indent=2))
    else:
        report(rows, latency, share)


if __name__ == "__main__":
    main()
