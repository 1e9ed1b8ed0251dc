#!/usr/bin/env python3
"""Measures Weir's proxy beside nginx (limit_req + proxy_pass) and HAProxy (stick table + server): same backend, same clients, in turns.

Every proxy has one thread on core 0; the backend (nginx, `return 200`) and the client share core 1. All of them check one limit
per client address that denies nothing, so that every request reaches the backend. Printed for each: requests per second, the
proxy's CPU microseconds per request, and the client's p99. The CPU time is the one to trust on a busy machine; a ratio is the
median over the rounds. TLS uses one ECDSA P-256 certificate; handshakes are made by `openssl s_time` with TLS 1.2 (it cannot resume 1.3).
"""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from server_bench import WEIR, Running, free_port, machine  # noqa: E402

TOOLS = ("nginx", "haproxy", "wrk", "h2load", "openssl", "taskset")
PROXIES = ("weir", "nginx", "haproxy")
REPORT = """done = function(summary, latency, requests)
  local errors = summary.errors.status + summary.errors.read + summary.errors.timeout
  io.write(string.format("p99 %d errors %d\\n", latency:percentile(99), errors))
end"""


def tool(name):
    return shutil.which(name) or f"/usr/sbin/{name}"


class Proxies:
    """The backend and the three proxies in front of it, until the `with` ends."""

    def __enter__(self):
        self.directory = tempfile.mkdtemp()
        self.backend_port = free_port()
        self.ports = {(proxy, how): free_port() for proxy in PROXIES for how in ("plain", "tls")}
        self._certificate()
        self.report = self._file("report.lua", REPORT)
        self.backend = Running([tool("nginx"), "-c", self._file("backend.conf", self._backend()), "-p", self.directory],
                               self.backend_port, core="1")
        commands = {"weir": [WEIR, "serve", "--config", self._file("weir.yaml", self._weir())],
                    "nginx": [tool("nginx"), "-c", self._file("nginx.conf", self._nginx()), "-p", self.directory],
                    "haproxy": [tool("haproxy"), "-f", self._file("haproxy.cfg", self._haproxy())]}
        self.running = {name: Running(command, self.ports[name, "plain"]) for name, command in commands.items()}
        return self

    def __exit__(self, *_):
        for server in (*self.running.values(), self.backend):
            server.end()
        shutil.rmtree(self.directory)

    def _file(self, name, text):
        path = os.path.join(self.directory, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def _certificate(self):
        self.cert, self.key = os.path.join(self.directory, "cert.pem"), os.path.join(self.directory, "key.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                        "-subj", "/CN=localhost", "-keyout", self.key, "-out", self.cert], capture_output=True, check=True)
        with open(self.cert, encoding="ascii") as cert, open(self.key, encoding="ascii") as key:
            self._file("both.pem", cert.read() + key.read())

    def _nginx_common(self, name):
        temporary = " ".join(f"{kind}_temp_path {self.directory};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        return f"""daemon off; worker_processes 1; pid {self.directory}/{name}.pid; error_log /dev/null;
events {{ worker_connections 4096; }}
http {{ access_log off; keepalive_requests 100000000; {temporary}"""

    def _backend(self):
        return f"""{self._nginx_common('backend')}
server {{ listen 127.0.0.1:{self.backend_port}; location / {{ default_type application/json; return 200 '{{"hello":"world"}}'; }} }} }}"""

    def _nginx(self):
        return f"""{self._nginx_common('nginx')}
limit_req_zone $binary_remote_addr zone=per_ip:10m rate=1000000r/s;
upstream backend {{ server 127.0.0.1:{self.backend_port}; keepalive 256; keepalive_requests 100000000; }}
server {{ listen 127.0.0.1:{self.ports['nginx', 'plain']}; listen 127.0.0.1:{self.ports['nginx', 'tls']} ssl http2;
ssl_certificate {self.cert}; ssl_certificate_key {self.key}; ssl_protocols TLSv1.2 TLSv1.3; ssl_session_cache shared:tls:10m;
location / {{ limit_req zone=per_ip burst=1000000 nodelay; proxy_http_version 1.1; proxy_set_header Connection "";
proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; proxy_pass http://backend; }} }} }}"""

    def _haproxy(self):
        return f"""global
  nbthread 1
  maxconn 4096
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
frontend edge
  bind 127.0.0.1:{self.ports['haproxy', 'plain']}
  bind 127.0.0.1:{self.ports['haproxy', 'tls']} ssl crt {self.directory}/both.pem alpn h2,http/1.1
  stick-table type ip size 1m expire 60s store http_req_rate(1s)
  http-request track-sc0 src
  http-request deny deny_status 429 if {{ sc_http_req_rate(0) gt 1000000 }}
  option forwardfor
  default_backend web
backend web
  http-reuse always
  server one 127.0.0.1:{self.backend_port} pool-max-conn 256
"""

    def _weir(self):
        return f"""threads: 1
limits:
  per-ip: {{key: ip, burst: 1000000, count: 1000000, period: 1s}}
backend: http://127.0.0.1:{self.backend_port}
listen:
  - {{address: "127.0.0.1:{self.ports['weir', 'plain']}", speak: proxy}}
  - {{address: "127.0.0.1:{self.ports['weir', 'tls']}", speak: proxy, tls: {{cert: {self.cert}, key: {self.key}}}}}
"""

    def _client(self, proxy, command):
        """Runs a client; returns what it printed and the CPU seconds that the proxy used."""
        before = self.running[proxy].cpu_seconds()
        done = subprocess.run(["taskset", "-c", "1", *command], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"bench: {' '.join(command)}: {done.stderr or done.stdout}")
        return done.stdout, self.running[proxy].cpu_seconds() - before

    def wrk(self, proxy, how, seconds):
        scheme = "https" if how == "tls" else "http"
        out, used = self._client(proxy, ["wrk", "-t1", "-c64", f"-d{seconds}s", "-s", self.report,
                                         f"{scheme}://127.0.0.1:{self.ports[proxy, how]}/"])
        requests = int(re.search(r"(\d+) requests in", out)[1])
        p99, errors = re.search(r"p99 (\d+) errors (\d+)", out).groups()
        if int(errors) or "Non-2xx" in out:
            sys.exit(f"bench: {proxy} denied or failed:\n{out}")
        return float(re.search(r"Requests/sec:\s+([\d.]+)", out)[1]), used / requests * 1e6, int(p99)

    def h2load(self, proxy, requests):
        log = os.path.join(self.directory, "h2load.log")
        if os.path.exists(log):
            os.unlink(log)
        out, used = self._client(proxy, ["h2load", "-n", str(requests), "-c", "10", "-m", "10", f"--log-file={log}",
                                         f"https://127.0.0.1:{self.ports[proxy, 'tls']}/"])
        if f"status codes: {requests} 2xx" not in out:
            sys.exit(f"bench: {proxy} denied or failed:\n{out}")
        with open(log, encoding="ascii") as lines:
            times = sorted(int(line.split()[2]) for line in lines)
        return float(re.search(r"([\d.]+) req/s", out)[1]), used / requests * 1e6, times[len(times) * 99 // 100]

    def handshakes(self, proxy, how, seconds):
        out, used = self._client(proxy, ["openssl", "s_time", "-tls1_2", "-connect", f"127.0.0.1:{self.ports[proxy, 'tls']}", how, "-time",
                                         str(seconds)])
        # With -reuse, s_time makes one full handshake first and then counts the resumed ones.
        count, real = re.findall(r"(\d+) connections in (\d+) real seconds", out)[-1]
        return int(count) / int(real), used / int(count) * 1e6, None


def measure(proxies, seconds, rows):
    """One round of everything. The order of the proxies rotates with the rounds: the machine may get slower or faster meanwhile."""
    turn = len(next(iter(rows.values()), []))
    order = PROXIES[turn % 3:] + PROXIES[:turn % 3]
    cases = (("HTTP/1.1", lambda p: proxies.wrk(p, "plain", seconds)), ("HTTP/1.1 over TLS", lambda p: proxies.wrk(p, "tls", seconds)),
             ("HTTP/2 over TLS", lambda p: proxies.h2load(p, 20_000 * seconds)),
             ("full TLS handshakes", lambda p: proxies.handshakes(p, "-new", seconds)),
             ("resumed TLS handshakes", lambda p: proxies.handshakes(p, "-reuse", seconds)))
    for what, run in cases:
        for proxy in order:
            rows.setdefault((what, proxy), []).append(run(proxy))


def report(rows):
    print(f"{machine()}\n\n| what | proxy | per second | CPU µs | p99 µs | CPU of Weir's, median of the rounds |\n" + "|---" * 6 + "|")
    for what, proxy in sorted(rows, key=lambda row: (list(dict.fromkeys(w for w, _ in rows)).index(row[0]), PROXIES.index(row[1]))):
        runs = rows[what, proxy]
        ratio = statistics.median(mine[1] / weir[1] for mine, weir in zip(runs, rows[what, "weir"]))
        p99 = "" if runs[0][2] is None else f"{statistics.median(run[2] for run in runs):,.0f}"
        print(f"| {what} | {proxy} | {statistics.median(run[0] for run in runs):,.0f} | {statistics.median(run[1] for run in runs):.2f} "
              f"| {p99} | {ratio:.2f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="about two minutes instead of ten")
    parser.add_argument("--json", action="store_true", help="the rows as JSON")
    arguments = parser.parse_args()
    rounds, seconds = (3, 2) if arguments.quick else (7, 5)
    for name in TOOLS:
        if not shutil.which(name) and not os.path.exists(f"/usr/sbin/{name}"):
            sys.exit(f"bench: {name} is not installed: run script/bootstrap bench")
    rows = {}
    with Proxies() as proxies:
        for turn in range(rounds):
            print(f"round {turn + 1} of {rounds}", file=sys.stderr)
            measure(proxies, seconds, rows)
    if arguments.json:
        print(json.dumps([{"what": what, "proxy": proxy, "per_second": r, "cpu_us": c, "p99_us": p}
                          for (what, proxy), runs in rows.items() for r, c, p in runs], indent=2))
    else:
        report(rows)


if __name__ == "__main__":
    main()
