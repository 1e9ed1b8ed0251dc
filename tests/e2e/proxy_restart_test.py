"""A restart of the edge proxy behind sockets that somebody else keeps open, as systemd does: no request is lost."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest

from proxying import RawBackend, Response
from serving import ENVIRONMENT, WEIR

CONFIG = """
listen:
  - {{address: "127.0.0.1:{admin}", speak: admin}}
  - {{address: "127.0.0.1:{proxy}", speak: proxy}}
threads: 2
memory: {{max_buckets: 100000}}
limits: {{per-ip: {{key: ip, rate: 1000000/s}}}}
backend: {url}
"""
RESTARTS = 3


class Load:
    """Clients of both kinds until stop(): with a connection for every request, and with one that they keep."""

    def __init__(self, port):
        self.port = port
        self.ending = False
        self.served = 0
        self.reopened = 0
        self.failed = []
        self.lock = threading.Condition()
        self.threads = [threading.Thread(target=run) for run in (self.connect_each,) * 3 + (self.keep,) * 3]
        for thread in self.threads:
            thread.start()

    def request(self, connection, reader):
        connection.sendall(b"POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello")
        return Response(reader)

    def count(self, answer):
        with self.lock:
            if (answer.status, answer.body) == (200, b"ok"):
                self.served += 1
            else:
                self.failed.append((answer.status, answer.body))
            self.lock.notify_all()

    def connect_each(self):
        while not self.ending:
            try:
                with socket.create_connection(("127.0.0.1", self.port), timeout=30) as connection, connection.makefile("rb") as reader:
                    self.count(self.request(connection, reader))
            except OSError as fault:
                self.failed.append(repr(fault))

    def keep(self):
        while not self.ending:
            with socket.create_connection(("127.0.0.1", self.port), timeout=30) as connection, connection.makefile("rb") as reader:
                self.use(connection, reader)

    def use(self, connection, reader):
        for number in range(1_000_000):
            if self.ending:
                return
            try:
                answer = self.request(connection, reader)
            except OSError:
                answer = None
            # A server may close a connection that is idle at any time: a client asks again on another one (RFC 9112 9.3.1). That
            # never happens to the first request.
            if (answer is None or answer.status == 0) and number > 0:
                self.reopened += 1
                return
            if answer is None:
                self.failed.append("the first request of a connection was lost")
                return
            self.count(answer)
            if answer.headers.get("connection") == "close":
                return

    def wait_for(self, more):
        with self.lock:
            target = self.served + more
            assert self.lock.wait_for(lambda: self.served >= target, timeout=60), (self.served, self.failed)

    def stop(self):
        self.ending = True
        for thread in self.threads:
            thread.join(60)


class Restart(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.directory)
        self.backend = RawBackend(self)
        self.sockets = {name: socket.create_server(("127.0.0.1", 0), backlog=1024) for name in ("proxy", "admin")}
        for one in self.sockets.values():
            self.addCleanup(one.close)
        self.ports = {name: one.getsockname()[1] for name, one in self.sockets.items()}
        self.config = os.path.join(self.directory, "weir.yaml")
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(CONFIG.format(url=self.backend.url, **self.ports))

    def start(self):
        numbers = [one.fileno() for one in self.sockets.values()]
        script = "".join(f"exec {10 + i}<&{number}; " for i, number in enumerate(numbers))
        script += "".join(f"exec {3 + i}<&{10 + i} {10 + i}<&-; " for i in range(len(numbers)))
        script += f"export LISTEN_FDS={len(numbers)} LISTEN_PID=$$ LISTEN_FDNAMES={':'.join(self.sockets)}; "
        process = subprocess.Popen(["bash", "-c", f"{script}exec {WEIR} serve --config {self.config}"], stderr=subprocess.PIPE, text=True,
                                   env=ENVIRONMENT, pass_fds=numbers)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait, 60)
        self.addCleanup(lambda: process.poll() is None and process.terminate())
        while "ready:" not in (line := process.stderr.readline()):
            self.assertNotEqual(line, "", "the server ended before it was ready")
        return process

    def test_no_request_is_lost(self):
        server = self.start()
        load = Load(self.ports["proxy"])
        self.addCleanup(load.stop)
        for _ in range(RESTARTS):
            load.wait_for(100)
            server.send_signal(signal.SIGTERM)
            server.stderr.read()
            self.assertEqual(server.wait(60), 0)
            # For a moment nobody accepts; connections wait in the socket's queue.
            time.sleep(0.1)
            server = self.start()
        load.wait_for(100)
        load.stop()
        self.assertEqual(load.failed, [])
        self.assertGreater(load.served, 100 * (RESTARTS + 1))


if __name__ == "__main__":
    unittest.main()
