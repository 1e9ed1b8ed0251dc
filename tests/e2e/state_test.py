"""State files between processes: who may use them, and how one server takes over from another."""

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request

from serving import ENVIRONMENT, WEIR, Server

BURST = 100_000
CLIENTS = 8


def policy(directory, state, listen=("127.0.0.1:0", "127.0.0.1:0")):
    return (f'listen:\n  - {{address: "{listen[0]}", speak: http}}\n  - {{address: "{listen[1]}", speak: admin}}\n'
            f'  - {{address: "unix:{directory}/weir.sock", speak: http}}\n'
            f"threads: 2\nmemory: {{max_buckets: 10000}}\n"
            f"limits:\n  orders: {{burst: {BURST}, count: 1, period: 1h}}\n"
            f"state: {{{', '.join(f'{name}: {directory}/{name}' for name in state)}}}\n")


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Directory(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.directory)

    def refused(self, config):
        return subprocess.run([WEIR, "serve", "--config", config], capture_output=True, text=True, timeout=60, check=False,
                              env=ENVIRONMENT)


class Files(Directory):
    def test_two_servers_cannot_use_one_snapshot(self):
        text = policy(self.directory, ["snapshot"])
        first = Server(self, text, self.directory)
        second = self.refused(first.config)
        self.assertEqual(second.returncode, 1, second.stderr)
        self.assertIn("snapshot: another process is using this state", second.stderr)
        self.assertEqual(first.post("/v1/check", {"limit": "orders", "id": "1"})[0], 200)
        first.end()
        Server(self, text, self.directory)

    def test_one_file_as_live_and_snapshot_is_refused_in_every_spelling(self):
        def spelled(live, snapshot):
            config = os.path.join(self.directory, "weir.yaml")
            with open(config, "w", encoding="utf-8") as file:
                file.write(f"state: {{live: {live}, snapshot: {snapshot}}}\n")
            return self.refused(config)

        live = os.path.join(self.directory, "live")
        other = os.path.join(self.directory, "other")
        for make in (lambda: os.path.join(self.directory, ".", "live"),
                     lambda: os.symlink(live, other) or other,
                     lambda: open(live, "w", encoding="utf-8").close() or os.link(live, other) or other):
            snapshot = make()
            ended = spelled(live, snapshot)
            self.assertEqual(ended.returncode, 2, ended.stderr)
            self.assertIn("they need a file each", ended.stderr)
            for path in (live, other):
                if os.path.lexists(path):
                    os.unlink(path)

    def test_a_changed_seed_in_the_live_file_of_a_killed_server_is_found(self):
        text = policy(self.directory, ["live"])
        server = Server(self, text, self.directory)
        self.assertEqual(server.post("/v1/check", {"limit": "orders", "id": "1"})[0], 200)
        server.end(signal.SIGKILL)
        with open(os.path.join(self.directory, "live"), "r+b") as file:
            file.seek(24)  # the seed
            file.write(b"changed!")
        again = Server(self, text, self.directory)
        self.assertIn("because its header's checksum does not match", again.said)
        self.assertNotIn("taken with", again.said)


class Load:
    """Clients that spend and operators that adjust, on whoever listens, until stop(). Counts what was acknowledged."""

    def __init__(self, http, admin):
        self.http, self.admin = http, admin
        self.sent = [0] * CLIENTS
        self.passed = [0] * CLIENTS
        self.adjusted = []
        self.other = []  # answers that are neither
        self.ending = False
        self.threads = [threading.Thread(target=self.spend, args=(i,)) for i in range(CLIENTS)]
        self.threads.append(threading.Thread(target=self.adjust))
        for thread in self.threads:
            thread.start()

    def call(self, method, port, path, body):
        request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data=json.dumps(body).encode(), method=method,
                                         headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status
        except urllib.error.HTTPError as answer:
            with answer:
                return answer.code
        except OSError:  # nobody listens for a moment, or the connection ended before an answer
            time.sleep(0.005)
            return None

    def spend(self, client):
        while not self.ending:
            self.sent[client] += 1
            status = self.call("POST", self.http, "/v1/check", {"limit": "orders", "id": f"client-{client}"})
            if status == 200:
                self.passed[client] += 1
            elif status is not None:
                self.other.append(status)

    def adjust(self):
        number = 0
        while not self.ending:
            number += 1
            status = self.call("PUT", self.admin, f"/ratelimit/adjust/orders/vip-{number}", {"burst": 5, "for": "1h"})
            if status == 200:
                self.adjusted.append(f"vip-{number}")
            elif status not in (None, 503):  # 503: it is shutting down
                self.other.append(status)
            time.sleep(0.01)

    def wait_for(self, more):
        passed, adjusted = sum(self.passed) + more, len(self.adjusted) + 3
        while sum(self.passed) < passed or len(self.adjusted) < adjusted:
            time.sleep(0.01)

    def stop(self):
        self.ending = True
        for thread in self.threads:
            thread.join()


class RollingRestart(Directory):
    """Issue 14, row 10."""

    def start(self, config, sockets=()):
        numbers = [one.fileno() for one in sockets]
        script = "".join(f"exec {3 + i}<&{number}; " for i, number in enumerate(numbers))
        if numbers:
            script += f"export LISTEN_FDS={len(numbers)} LISTEN_PID=$$; "
        process = subprocess.Popen(["bash", "-c", f"{script}exec {WEIR} serve --config {config}"], stderr=subprocess.PIPE,
                                   text=True, env=ENVIRONMENT, pass_fds=numbers)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait, 30)
        self.addCleanup(lambda: process.poll() is None and process.terminate())
        return process

    def wait_for_line(self, process, words):
        while words not in (line := process.stderr.readline()):
            self.assertNotEqual(line, "", f"the server ended before it said {words}")

    def restart_under_load(self, state, ports, sockets=()):
        config = os.path.join(self.directory, "weir.yaml")
        with open(config, "w", encoding="utf-8") as file:
            file.write(policy(self.directory, state, [f"127.0.0.1:{port}" for port in ports]))
        server = self.start(config, sockets)
        self.wait_for_line(server, "ready:")
        load = Load(*ports)
        self.addCleanup(load.stop)
        for _ in range(3):
            load.wait_for(100)
            successor = self.start(config, sockets)
            self.wait_for_line(successor, "waiting for another process to release this state")
            server.send_signal(signal.SIGTERM)
            self.wait_for_line(successor, "ready:")
            self.assertEqual(server.wait(timeout=60), 0)
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(os.path.join(self.directory, "weir.sock"))
            server = successor
        load.wait_for(100)
        load.stop()
        self.assertEqual(load.other, [])
        with urllib.request.urlopen(f"http://127.0.0.1:{ports[1]}/ratelimit/adjust", timeout=20) as answer:
            listed = {one["id"] for one in json.load(answer)["adjustments"]}
        self.assertEqual(set(load.adjusted) - listed, set(), "an acknowledged adjustment was lost")
        for client in range(CLIENTS):
            request = urllib.request.Request(
                f"http://127.0.0.1:{ports[0]}/v1/peek", data=json.dumps({"limit": "orders", "id": f"client-{client}"}).encode(),
                headers={"Content-Type": "application/json"})
            with urllib.request.urlopen(request, timeout=20) as answer:
                spent = BURST - json.load(answer)["remaining"]
            self.assertGreaterEqual(spent, load.passed[client], "an acknowledged spend was lost")
            self.assertLessEqual(spent, load.sent[client])

    def test_with_inherited_sockets_and_a_snapshot(self):
        sockets = [socket.create_server(("127.0.0.1", 0), backlog=128) for _ in range(2)]
        for one in sockets:
            self.addCleanup(one.close)
        self.restart_under_load(["snapshot"], [one.getsockname()[1] for one in sockets], sockets)

    def test_with_sockets_of_their_own_and_a_snapshot(self):
        self.restart_under_load(["snapshot"], free_ports(2))

    def test_with_sockets_of_their_own_and_a_live_file(self):
        self.restart_under_load(["live", "snapshot"], free_ports(2))


if __name__ == "__main__":
    unittest.main()
