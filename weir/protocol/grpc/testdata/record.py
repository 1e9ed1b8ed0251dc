#!/usr/bin/env python3
"""Records envoyproxy/ratelimit, the real server: what it answers over three minutes to calls of which it denies none.

usage: record.py SERVER [SECONDS]

SERVER is the program, built by
  go install github.com/envoyproxy/ratelimit/src/service_cmd@v1.4.1-0.20260122083618-3fb702589d36
Redis must be installed. Writes peer_trace.tsv beside this file: the time in milliseconds since 1970, the request and
the response in the JSON of their messages. grpc_windows_test.cc replays it. Begin shortly before a full hour, because
the test wants an hour to end in the trace.
"""
import json
import os
import pathlib
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

HERE = pathlib.Path(__file__).parent
UNITS = {  # seconds in a window and the limit, as in rules.yaml
    "second": (1, 4), "minute": (60, 9), "hour": (3600, 60), "day": (86400, 150),
    "week": (7 * 86400, 9000), "month": (30 * 86400, 30000), "year": (365 * 86400, 300000)}


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [taken.getsockname()[1] for taken in sockets]
    for taken in sockets:
        taken.close()
    return ports


def wait_for(port: int) -> None:
    deadline = time.monotonic() + 20
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def ask(port: int, request: dict) -> dict:
    asked = urllib.request.Request(f"http://127.0.0.1:{port}/json", json.dumps(request).encode(),
                                   {"Content-Type": "application/json"})
    with urllib.request.urlopen(asked, timeout=5) as response:
        return json.load(response)


def next_request(chance: random.Random, used: dict, second: int) -> dict:
    """A call with room in every window it counts in; `used` is how much of each window is taken."""
    hits_for_all = chance.randrange(4)
    listed = []
    for unit, (length, limit) in UNITS.items():
        value, own = str(chance.randrange(3)), chance.randrange(4) == 0
        hits = chance.randrange(1, 6) if own else max(hits_for_all, 1)
        window = (unit, value, second // length)
        if chance.randrange(3) == 0 or used.get(window, 0) + hits > limit:
            continue
        used[window] = used.get(window, 0) + hits
        listed.append({"entries": [{"key": unit, "value": value}], **({"hitsAddend": str(hits)} if own else {})})
    return {"domain": "d", "descriptors": listed, "hitsAddend": hits_for_all}


def record(port: int, length: float) -> list[str]:
    chance, used, rows = random.Random(22), {}, []
    end = time.time() + length
    while time.time() < end:
        time.sleep(chance.random() * 0.4)
        # The server reads its own clock: between a call's two ends, the second must not change.
        if not 0.05 < time.time() % 1 < 0.9:
            time.sleep(0.16)
        at = time.time()
        request = next_request(chance, used, int(at))
        if not request["descriptors"]:
            continue
        response = ask(port, request)
        if int(time.time()) != int(at):
            sys.exit("a call took until the next second; run this on a quieter machine")
        if response["overallCode"] != "OK":
            sys.exit(f"denied, though there was room: {request} {response}")
        texts = [json.dumps(message, separators=(",", ":")) for message in (request, response)]
        rows.append("\t".join([str(int(at * 1000)), *texts]))
    return rows


def main() -> None:
    server, length = sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 180
    redis, http, grpc, debug = free_ports(4)
    with tempfile.TemporaryDirectory() as root:
        rules = pathlib.Path(root, "ratelimit", "config")
        rules.mkdir(parents=True)
        shutil.copy(HERE / "rules.yaml", rules)
        started = [subprocess.Popen(["redis-server", "--port", str(redis), "--save", "", "--bind", "127.0.0.1"],
                                    stdout=subprocess.DEVNULL)]
        try:
            wait_for(redis)
            environment = {**os.environ, "USE_STATSD": "false", "RUNTIME_ROOT": root, "LOG_LEVEL": "warn",
                           "RUNTIME_SUBDIRECTORY": "ratelimit", "RUNTIME_WATCH_ROOT": "false", "HOST": "127.0.0.1",
                           "REDIS_SOCKET_TYPE": "tcp", "REDIS_URL": f"127.0.0.1:{redis}", "PORT": str(http),
                           "GRPC_HOST": "127.0.0.1", "GRPC_PORT": str(grpc), "DEBUG_HOST": "127.0.0.1",
                           "DEBUG_PORT": str(debug)}
            started.append(subprocess.Popen([server], env=environment, stdout=subprocess.DEVNULL))
            wait_for(http)
            rows = record(http, length)
        finally:
            for process in reversed(started):
                process.terminate()
                process.wait()
    (HERE / "peer_trace.tsv").write_text("".join(row + "\n" for row in rows))
    print(len(rows), "calls recorded")


if __name__ == "__main__":
    main()
