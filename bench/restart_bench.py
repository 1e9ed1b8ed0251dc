#!/usr/bin/env python3
"""Measures how long Weir is away: a start with many buckets in the live file, and a reload of a million overrides.

Buckets are made by redis-benchmark on keys of 16 bytes, in a live file on tmpfs, without and with their names. A start is timed
from the launch of the process to its first answer; once after the server was closed, which checks the whole file against its
checksum, and once after SIGKILL. While a policy with a million overrides is reloaded, a client asks without a pause, and its
longest wait is printed beside its longest wait on the same server before the reload.
"""

import argparse
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

from server_bench import WEIR, free_port, machine

OVERRIDES = 1_000_000
GOAL_SECONDS = 1.0


class Weir:
    """One server on a configuration; `seconds` is the time from its launch to its first answer."""

    def __init__(self, directory, config):
        self.ports = {name: free_port() for name in ("resp", "admin")}
        self.log = os.path.join(directory, "log")
        path = os.path.join(directory, "weir.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(config + "listen:\n")
            file.writelines(f'  - {{address: "127.0.0.1:{port}", speak: {name}}}\n' for name, port in self.ports.items())
        with open(self.log, "w", encoding="utf-8") as log:
            started = time.monotonic()
            self.process = subprocess.Popen([WEIR, "serve", "--config", path], stdout=log, stderr=log)
        while True:
            try:
                self.client = socket.create_connection(("127.0.0.1", self.ports["resp"]), timeout=60)
                self.ask()
                break
            except OSError:
                if self.process.poll() is not None:
                    sys.exit("bench: weir did not start:\n" + self.said())
                time.sleep(0.002)
        self.seconds = time.monotonic() - started

    def ask(self):
        """One decision; returns how long it took."""
        begun = time.monotonic()
        self.client.sendall(b"CL.THROTTLE probe 15 30 60\r\n")
        if not self.client.recv(4096).startswith(b"*5"):
            sys.exit("bench: that is no decision")
        return time.monotonic() - begun

    def said(self):
        with open(self.log, encoding="utf-8") as log:
            return log.read()

    def buckets(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.ports['admin']}/metrics", timeout=60) as answer:
            return int(re.search(r"^weir_buckets (\d+)$", answer.read().decode(), re.MULTILINE)[1])

    def end(self, how=signal.SIGTERM):
        self.client.close()
        self.process.send_signal(how)
        self.process.wait(timeout=60)


def measure_starts(buckets, names, rounds):
    """Seconds of a start after a close and after a kill, and the buckets there were."""
    directory = tempfile.mkdtemp(dir="/dev/shm")
    config = (f"threads: 1\nmemory: {{max_buckets: {buckets * 6 // 5}, names: {str(names).lower()}}}\n"
              f"state: {{live: {directory}/live}}\n")
    try:
        weir = Weir(directory, config)
        subprocess.run(["redis-benchmark", "-p", str(weir.ports["resp"]), "-c", "20", "-P", "200", "-n", str(buckets * 103 // 100), "-r",
                        "1000000000", "-q", "CL.THROTTLE", "key:__rand_int__", "9999", "1", "86400"], check=True,
                       stdout=subprocess.DEVNULL)
        closed, killed = [], []
        for _ in range(rounds):
            for times, how in ((closed, signal.SIGTERM), (killed, signal.SIGKILL)):
                weir.end(how)
                weir = Weir(directory, config)
                times.append(weir.seconds)
        count = weir.buckets()
        weir.end()
        return count, statistics.median(closed), statistics.median(killed)
    finally:
        shutil.rmtree(directory)


def write_overrides(path, burst):
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(f"orders:user{i}: {{burst: {burst}, count: {i % 50 + 1}, period: 1s}}\n" for i in range(OVERRIDES))


def longest_wait(weir, until):
    longest = 0.0
    while not until():
        longest = max(longest, weir.ask())
    return longest


def measure_reloads(rounds):
    """Seconds of a reload, and the longest wait of a client before and meanwhile."""
    directory = tempfile.mkdtemp(dir="/dev/shm")
    overrides = os.path.join(directory, "overrides.yaml")
    try:
        write_overrides(overrides, 1)
        weir = Weir(directory, f"threads: 1\nlimits:\n  orders: {{rate: 10/s}}\noverrides: {overrides}\n")
        times, waits, waits_before = [], [], []
        for turn in range(1, rounds + 1):
            write_overrides(overrides + ".next", turn + 1)
            # The server may see the changed file by itself after the signal: then it reads it again. That passes first.
            time.sleep(3)
            end = time.monotonic() + 1
            waits_before.append(longest_wait(weir, lambda end=end: time.monotonic() > end))
            done = weir.said().count(" reloaded")
            os.replace(overrides + ".next", overrides)
            begun = time.monotonic()
            weir.process.send_signal(signal.SIGHUP)
            waits.append(longest_wait(weir, lambda done=done: weir.said().count(" reloaded") > done))
            times.append(time.monotonic() - begun)
        weir.end()
        return statistics.median(times), statistics.median(waits_before), statistics.median(waits)
    finally:
        shutil.rmtree(directory)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="5 million buckets instead of 50; half a minute instead of three")
    arguments = parser.parse_args()
    buckets, rounds = (5_000_000, 3) if arguments.quick else (50_000_000, 5)
    print(f"{machine()}\n\n| start | buckets | after a close, s | after a kill, s |\n|---|---|---|---|")
    goals = []
    for names in (False, True):
        count, closed, killed = measure_starts(buckets, names, rounds)
        what = "with names" if names else "without names"
        print(f"| {what} | {count:,} | {closed:.2f} | {killed:.2f} |", flush=True)
        goals += [(f"start {what}, after a close", closed), (f"start {what}, after a kill", killed)]
    seconds, before, meanwhile = measure_reloads(rounds)
    print(f"\n| reload | s | a client's longest wait meanwhile, ms | the second before, ms |\n|---|---|---|---|\n"
          f"| {OVERRIDES:,} overrides | {seconds:.2f} | {meanwhile * 1e3:.2f} | {before * 1e3:.2f} |")
    goals.append(("reload of a million overrides", seconds))
    print("\n| goal: at most 1 s | measured | |\n|---|---|---|")
    for what, value in goals:
        print(f"| {what} | {value:.2f} | {'met' if value <= GOAL_SECONDS else 'NOT met'} |")


if __name__ == "__main__":
    main()
