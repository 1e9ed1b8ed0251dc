"""Starts `weir serve` for a test and ends it with the test. WEIR names the binary; ctest sets it."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

WEIR = os.environ["WEIR"]
# A WEIR_* variable would be configuration, or refused as a mistyped one.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("WEIR_")}

POLICY = """
listen:
  - {address: "127.0.0.1:0", speak: http}
  - {address: "127.0.0.1:0", speak: resp}
  - {address: "127.0.0.1:0", speak: admin}
threads: 2
memory: {max_buckets: 100000}
limits:
  per-ip: {key: ip, burst: 3, count: 3, period: 1h}
  orders: {burst: 5, count: 5, period: 1h}
"""


class Server:
    """One `weir serve`, ended with the test."""

    def __init__(self, test, policy=POLICY, directory=None, files=None, start=True, environment=None, prefix=()):
        """`files`: name to text, beside the configuration. Without `start` call start() yourself. `prefix`: a command that runs it."""
        self.prefix = prefix
        self.environment = ENVIRONMENT | (environment or {})
        self.directory = directory or tempfile.mkdtemp()
        if directory is None:
            test.addCleanup(shutil.rmtree, self.directory)
        self.config = os.path.join(self.directory, "weir.yaml")
        self.write(policy)
        for name, text in (files or {}).items():
            path = os.path.join(self.directory, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        self.test = test
        if start:
            self.start()

    def start(self):
        self.process = subprocess.Popen([*self.prefix, WEIR, "serve", "--config", self.config], stderr=subprocess.PIPE,
                                        text=True, env=self.environment)
        self.test.addCleanup(self.end)
        self.ports = {}
        self.said = ""  # before it was ready
        while not self.ports:
            line = self.process.stderr.readline()
            if not line:
                raise AssertionError("the server ended before it was ready")
            self.said += line
            if "ready:" in line:
                self.ports = {speak: int(port) for speak, port in re.findall(r"(\w+) on 127\.0\.0\.1:(\d+)", line)}

    def write(self, policy):
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(policy)

    def end(self, how=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(how)
        self.process.wait(timeout=30)
        rest = self.process.stderr.read() if not self.process.stderr.closed else ""
        self.process.stderr.close()
        return self.process.returncode, rest

    def resident_bytes(self):
        with open(f"/proc/{self.process.pid}/statm", encoding="ascii") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def post(self, path, body):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.ports['http']}{path}", data=data,
                                         headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status, answer.headers, answer.read().decode()
        except urllib.error.HTTPError as answer:
            with answer:
                return answer.code, answer.headers, answer.read().decode()

    def get(self, speak, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.ports[speak]}{path}", timeout=20) as answer:
            return answer.read().decode()

    def wait_for_metric(self, line):
        while line not in self.get("admin", "/metrics"):
            time.sleep(0.01)

    def connect(self, speak):
        return socket.create_connection(("127.0.0.1", self.ports[speak]), timeout=20)

    def resp(self, *words):
        with self.connect("resp") as connection:
            connection.sendall(b"".join([b"*%d\r\n" % len(words)] + [b"$%d\r\n%s\r\n" % (len(w), w.encode()) for w in words]))
            connection.shutdown(socket.SHUT_WR)
            answer = b""
            while piece := connection.recv(65536):
                answer += piece
            return answer.decode()
