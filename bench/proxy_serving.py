"""The edge proxy of the bench build in front of one backend, for the benchmarks of the proxy."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request

from server_bench import WEIR

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "tests/e2e"))


class ProxyServer:
    """`weir serve` with one thread. `more`: the rest of its configuration."""

    def __init__(self, url, more="limits: {per-ip: {key: ip, rate: 1000000/s}}\n"):
        self.directory = tempfile.mkdtemp()
        config = os.path.join(self.directory, "weir.yaml")
        with open(config, "w", encoding="utf-8") as file:
            file.write('listen:\n  - {address: "127.0.0.1:0", speak: proxy}\n  - {address: "127.0.0.1:0", speak: admin}\n'
                       f"threads: 1\nbackend: {url}\n{more}")
        self.process = subprocess.Popen([WEIR, "serve", "--config", config], stderr=subprocess.PIPE, text=True)
        while "ready:" not in (line := self.process.stderr.readline()):
            if not line:
                sys.exit("bench: weir did not start")
        self.ports = {speak: int(port) for speak, port in re.findall(r"(\w+) on 127\.0\.0\.1:(\d+)", line)}
        self.port = self.ports["proxy"]

    def resident_bytes(self):
        with open(f"/proc/{self.process.pid}/statm", encoding="ascii") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def cpu_seconds(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as stat:
            fields = stat.read().rsplit(") ", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def metrics(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.ports['admin']}/metrics", timeout=20) as answer:
            return answer.read().decode()

    def end(self):
        self.process.terminate()
        self.process.wait(60)
        self.process.stderr.close()
        shutil.rmtree(self.directory)
