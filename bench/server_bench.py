#!/usr/bin/env python3
"""Measures `weir serve` beside redis-server and nginx: same machine, same client, one after the other, in turns.

Every server has one thread on core 0, the client runs on core 1, so that on two cores they do not fight. Printed for each:
requests per second, CPU microseconds of the server per request, and the share of requests that were allowed. The CPU time is
the one to trust on a busy machine. All of it over loopback; nothing here leaves the machine.
"""

import argparse
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
WEIR = os.path.join(ROOT, "build", "bench", "weir", "app", "weir")

# The same decision in Lua, as a program on Redis would make it: read the TAT, decide, write.
LUA = """
local now = redis.call('TIME'); local t = now[1] * 1000000 + now[2]
local interval, window = tonumber(ARGV[1]), tonumber(ARGV[2])
local tat = math.max(tonumber(redis.call('GET', KEYS[1]) or '0'), t)
if tat + interval - t > window then return {1, tat + interval - t - window} end
redis.call('SET', KEYS[1], string.format('%.0f', tat + interval), 'PX', math.ceil((tat + interval - t) / 1000) + 1)
return {0, 0}
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Running:
    """A server pinned to core 0, with the CPU time it has used."""

    def __init__(self, command, port):
        self.port = port
        self.process = subprocess.Popen(["taskset", "-c", "0", *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 20
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                return
            except OSError:
                if time.monotonic() > deadline or self.process.poll() is not None:
                    sys.exit(f"bench: {command[0]} did not start")

    def cpu_seconds(self):
        """Of the process and its children: nginx works in one."""
        total = 0
        pids = [self.process.pid]
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children", encoding="ascii") as children:
            pids += children.read().split()
        for pid in pids:
            with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
                fields = stat.read().rsplit(")", 1)[1].split()
            total += int(fields[11]) + int(fields[12])
        return total / os.sysconf("SC_CLK_TCK")

    def end(self):
        self.process.terminate()
        self.process.wait(timeout=30)


def redis_benchmark(server, depth, requests, command):
    before = server.cpu_seconds()
    done = subprocess.run(["taskset", "-c", "1", "redis-benchmark", "-p", str(server.port), "-c", "50", "-P", str(depth), "-n",
                           str(requests), "-r", "100000", "--csv", *command], capture_output=True, text=True, check=True)
    rate = float(done.stdout.strip().splitlines()[-1].split(",")[1].strip('"'))
    return rate, (server.cpu_seconds() - before) / requests * 1e6


def wrk(server, seconds, script):
    before = server.cpu_seconds()
    done = subprocess.run(["taskset", "-c", "1", "wrk", "-t1", "-c64", f"-d{seconds}s", "--latency", "-s", script,
                           f"http://127.0.0.1:{server.port}/v1/throttle"], capture_output=True, text=True, check=True)
    used = server.cpu_seconds() - before
    requests = int(re.search(r"(\d+) requests in", done.stdout)[1])
    if "Non-2xx" in done.stdout:
        sys.exit("bench: the server denied or failed:\n" + done.stdout)
    return float(re.search(r"Requests/sec:\s+([\d.]+)", done.stdout)[1]), used / requests * 1e6


def allowed_share(metrics_port):
    with urllib.request.urlopen(f"http://127.0.0.1:{metrics_port}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    counts = {status: int(value) for status, value in re.findall(r'requests_total\{limit="",.*?status="(\w+)"\} (\d+)', text)}
    total = sum(counts.values())
    return counts.get("allowed", 0) / total if total else 1.0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one round of everything, for a first look")
    parser.add_argument("--json", action="store_true", help="the rows as JSON")
    arguments = parser.parse_args()
    rounds = 1 if arguments.quick else 3
    scale = 1 if arguments.quick else 3
    for tool in ("redis-server", "redis-benchmark", "nginx", "wrk", "taskset"):
        if not shutil.which(tool) and not os.path.exists(f"/usr/sbin/{tool}"):
            sys.exit(f"bench: {tool} is not installed: run script/bootstrap bench")

    directory = tempfile.mkdtemp()
    ports = {name: free_port() for name in ("http", "resp", "admin", "redis", "nginx")}
    with open(os.path.join(directory, "weir.yaml"), "w", encoding="utf-8") as file:
        file.write("threads: 1\nlisten:\n" + "".join(
            f'  - {{address: "127.0.0.1:{ports[s]}", speak: {s}}}\n' for s in ("http", "resp", "admin")))
    with open(os.path.join(directory, "nginx.conf"), "w", encoding="utf-8") as file:
        file.write(f"""daemon off; worker_processes 1; pid {directory}/pid; error_log /dev/null;
events {{ worker_connections 1024; }}
http {{ access_log off; keepalive_requests 100000000; client_body_temp_path {directory}; proxy_temp_path {directory};
fastcgi_temp_path {directory}; uwsgi_temp_path {directory}; scgi_temp_path {directory};
server {{ listen 127.0.0.1:{ports['nginx']}; location / {{ default_type application/json; return 200 '{{"allowed":true}}'; }} }} }}""")
    script = os.path.join(directory, "throttle.lua")
    with open(script, "w", encoding="utf-8") as file:
        file.write("""wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
local n = 0
request = function()
  n = (n * 1103515245 + 12345) % 100000
  return wrk.format(nil, nil, nil, '{"key":"user:' .. n .. '","burst":1000000,"count":1000000,"period":"1s"}')
end""")
    weir = Running([WEIR, "serve", "--config", os.path.join(directory, "weir.yaml")], ports["http"])
    redis = Running(["redis-server", "--port", str(ports["redis"]), "--save", "", "--appendonly", "no"], ports["redis"])
    nginx = Running([shutil.which("nginx") or "/usr/sbin/nginx", "-c", os.path.join(directory, "nginx.conf"), "-p", directory],
                    ports["nginx"])
    resp = type("Resp", (), {"port": ports["resp"], "cpu_seconds": weir.cpu_seconds})()
    sha = subprocess.run(["redis-cli", "-p", str(ports["redis"]), "SCRIPT", "LOAD", LUA], capture_output=True, text=True,
                         check=True).stdout.strip()
    throttle = ["CL.THROTTLE", "key:__rand_int__", "999999", "1000000", "1"]
    rows = {}
    try:
        for turn in range(rounds):
            print(f"round {turn + 1} of {rounds}", file=sys.stderr)
            for depth, requests in ((1, 100_000 * scale), (50, 1_000_000 * scale)):
                for name, server, command in ((f"weir CL.THROTTLE, depth {depth}", resp, throttle),
                                              (f"redis GET, depth {depth}", redis, ["GET", "key:__rand_int__"]),
                                              (f"redis SET, depth {depth}", redis, ["SET", "key:__rand_int__", "x"]),
                                              (f"redis Lua decision, depth {depth}", redis,
                                               ["EVALSHA", sha, "1", "lua:__rand_int__", "1", "1000000"])):
                    count = requests // 10 if "Lua" in name and depth > 1 else requests
                    rows.setdefault(name, []).append(redis_benchmark(server, depth, count, command))
            for name, server in (("weir POST /v1/throttle", weir), ("nginx return 200", nginx)):
                rows.setdefault(name, []).append(wrk(server, 3 * scale, script))
        share = allowed_share(ports["admin"])
    finally:
        for server in (weir, redis, nginx):
            server.end()
        shutil.rmtree(directory)
    report(rows, share, arguments.json)


def report(rows, share, as_json):
    best = {name: (statistics.median(rate for rate, _ in runs), min(cpu for _, cpu in runs)) for name, runs in rows.items()}
    if as_json:
        print(json.dumps({"rows": {n: {"per_second": r, "cpu_us": c} for n, (r, c) in best.items()}, "allowed": share}, indent=2))
        return
    with open("/proc/cpuinfo", encoding="utf-8") as cpuinfo:
        model = re.search(r"model name\s*: (.*)", cpuinfo.read())
    print(f"{model[1] if model else 'unknown CPU'}, {os.cpu_count()} cores, Linux {os.uname().release}, "
          f"{time.strftime('%Y-%m-%d')}; Weir allowed {share:.1%}\n")
    print("| what | per second (median) | server CPU µs per request (best) |\n|---|---|---|")
    for name, (rate, cpu) in best.items():
        print(f"| {name} | {rate:,.0f} | {cpu:.2f} |")
    deep = {name.split(",")[0]: value for name, value in best.items() if name.endswith("depth 50")}

    def ratio(a, b):
        return a / b if b else float("nan")

    print("\n| goal | measured | |\n|---|---|---|")
    for goal, value, met in (
            ("RESP, depth 50: at least redis GET per CPU", ratio(deep["redis GET"][1], deep["weir CL.THROTTLE"][1]), 1.0),
            ("RESP, depth 50: at least 12 times the decision in Lua",
             ratio(deep["redis Lua decision"][1], deep["weir CL.THROTTLE"][1]), 12.0),
            ("HTTP: CPU of nginx return 200, at least 1.0 times ours",
             ratio(best["nginx return 200"][1], best["weir POST /v1/throttle"][1]), 1.0)):
        print(f"| {goal} | {value:.2f} | {'met' if value >= met else 'NOT met'} |")


if __name__ == "__main__":
    main()
