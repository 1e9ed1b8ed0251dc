"""`weir serve` over HTTP/2: real clients, both versions side by side, drain, streams that nobody reads."""

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import unittest

import http2_frames as h2
from serving import ENVIRONMENT, Server
from tls_test import make_certificate

LIMITS = """
threads: 2
memory: {max_buckets: 100000}
limits:
  orders: {burst: 1000000, count: 1000000, period: 1h}
  few: {burst: 1, count: 1, period: 1h}
"""
CLEAR = """
listen:
  - {address: "127.0.0.1:0", speak: http}
  - {address: "127.0.0.1:0", speak: admin}
""" + LIMITS
TLS = """
listen:
  - {address: "127.0.0.1:0", speak: http, tls: {cert: a.pem, key: a.key}}
  - {address: "127.0.0.1:0", speak: admin, tls: {cert: a.pem, key: a.key}}
""" + LIMITS
CHECK = '{"limit":"orders","id":"1"}'


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=ENVIRONMENT, check=False, **options)
    if done.returncode != 0:
        raise AssertionError(f"{command[0]} ended with {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


class Http2Test(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.directory = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)

    def serve_tls(self):
        self.cert, _ = make_certificate(self.directory, "a")
        return Server(self, TLS, self.directory)

    def body(self):
        path = os.path.join(self.directory, "body.json")
        with open(path, "w", encoding="utf-8") as file:
            file.write(CHECK)
        return path

    def curl(self, version, url):
        """The version that was spoken, the status, and the decision."""
        out = run("curl", "-sS", version, "--cacert", getattr(self, "cert", "/dev/null"), "-H", "Content-Type: application/json",
                  "-d", CHECK, "-w", "\n%{http_version} %{http_code}", url)
        content, last = out.rsplit("\n", 1)
        return *last.split(), json.loads(content)["allowed"]

    def test_curl_over_tls(self):
        server = self.serve_tls()
        url = f"https://localhost:{server.ports['http']}/v1/check"
        self.assertEqual(self.curl("--http1.1", url), ("1.1", "200", True))
        self.assertEqual(self.curl("--http2", url), ("2", "200", True))
        metrics = run("curl", "-sS", "--http2", "--cacert", self.cert, "-w", "%{http_version}",
                      f"https://localhost:{server.ports['admin']}/metrics")
        self.assertTrue(metrics.endswith("2"))
        self.assertIn("weir_", metrics)

    def test_curl_without_tls(self):
        server = Server(self, CLEAR)
        url = f"http://127.0.0.1:{server.ports['http']}/v1/check"
        self.assertEqual(self.curl("--http1.1", url), ("1.1", "200", True))
        self.assertEqual(self.curl("--http2-prior-knowledge", url), ("2", "200", True))
        # Upgrade: h2c is ignored.
        self.assertEqual(self.curl("--http2", url), ("1.1", "200", True))

    def test_h2load(self):
        server = Server(self, CLEAR)
        out = run("h2load", "-n", "5000", "-c", "10", "-m", "10", "-d", self.body(), "-H", "content-type: application/json",
                  f"http://127.0.0.1:{server.ports['http']}/v1/check")
        self.assertIn("5000 succeeded, 0 failed, 0 errored, 0 timeout", out)
        self.assertIn("status codes: 5000 2xx", out)

    def test_nghttp(self):
        server = Server(self, CLEAR)
        out = run("nghttp", "-v", "-d", self.body(), "-H", "content-type: application/json",
                  f"http://127.0.0.1:{server.ports['http']}/v1/check")
        self.assertIn(":status: 200", out)
        self.assertIn('"allowed":true', out)

    def test_node(self):
        server = Server(self, CLEAR)
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "http2_client.js")
        out = json.loads(run("node", script, f"http://127.0.0.1:{server.ports['http']}"))
        self.assertEqual(out, {"answers": 180, "good": 180, "alpn": "h2c"})
        secure = self.serve_tls()
        out = json.loads(run("node", script, f"https://localhost:{secure.ports['http']}", self.cert))
        self.assertEqual(out, {"answers": 180, "good": 180, "alpn": "h2"})

    def test_chromium(self):
        server = self.serve_tls()
        log = os.path.join(self.directory, "net.json")
        page = run("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
                   "--disable-background-networking", "--disable-component-update", "--disable-sync", "--ignore-certificate-errors",
                   f"--user-data-dir={self.directory}/profile", f"--log-net-log={log}", "--dump-dom",
                   f"https://localhost:{server.ports['http']}/healthz")
        self.assertIn("alive", page)
        with open(log, encoding="utf-8") as file:
            seen = file.read()
        self.assertRegex(seen, r'"next_proto":\s*"h2"')

    def test_events_over_both_versions(self):
        server = Server(self, CLEAR)
        events = f"http://127.0.0.1:{server.ports['admin']}/ratelimit/events?allowed=false"
        server.post("/v1/check", {"limit": "few", "id": "1"})  # the last one that is allowed
        for version in ("--http1.1", "--http2-prior-knowledge"):
            with subprocess.Popen(["curl", "-sSN", "-D", "-", version, events], stdout=subprocess.PIPE, text=True,
                                  env=ENVIRONMENT) as watching:
                self.addCleanup(lambda process=watching: process.poll() is None and process.kill())
                head = watching.stdout.readline()
                while watching.stdout.readline().strip():
                    pass
                self.assertRegex(head, r"^HTTP/(1\.1|2) 200")
                server.post("/v1/check", {"limit": "few", "id": "1"})
                line = watching.stdout.readline()
                while line and not line.startswith("data:"):
                    line = watching.stdout.readline()
                self.assertIn('"few"', line)
                watching.terminate()

    def test_drain(self):
        server = Server(self, CLEAR)
        with h2.Connection(h2.connect(server.ports["http"])) as client:
            client.send(h2.post(1, b"/v1/check", CHECK.encode()))
            self.assertIn(b'"allowed":true', client.body(1))
            server.process.send_signal(signal.SIGTERM)
            _, _, _, notice = client.until(h2.GOAWAY)
            self.assertEqual(notice[:8], b"\x7f\xff\xff\xff\0\0\0\0")
            _, _, _, ping = client.until(h2.PING)
            # It was on its way when the server said so.
            client.send(h2.post(3, b"/v1/check", CHECK.encode()))
            self.assertIn(b'"allowed":true', client.body(3))
            client.send(h2.frame(h2.PING, h2.ACK, 0, ping))
            _, _, _, final = client.until(h2.GOAWAY)
            self.assertEqual(final[:8], b"\0\0\0\3\0\0\0\0")
            self.assertIsNone(client.next())
        self.assertEqual(server.process.wait(timeout=30), 0)

    def test_a_thousand_streams_that_nobody_reads(self):
        server = Server(self, CLEAR)
        for i in range(200):
            server.post("/v1/check", {"limit": "orders", "id": f"warm {i}"})
        size = len(server.get("admin", "/metrics"))
        before = server.resident_bytes()
        slow = [h2.Connection(h2.connect(server.ports["admin"]), initial_window_size=0) for _ in range(10)]
        for connection in slow:
            self.addCleanup(connection.socket.close)
            connection.send(b"".join(h2.request(1 + 2 * i, b"/metrics") for i in range(100)))
        for connection in slow:
            for _ in range(100):
                connection.until(h2.HEADERS)
        grown = server.resident_bytes() - before
        with open(f"/proc/{server.process.pid}/maps", encoding="ascii") as maps:
            sanitized = "libasan" in maps.read()  # it keeps what it was given back
        # What they wait for, at most doubled by the allocator, and 100 KiB for each connection.
        self.assertLess(grown, 1000 * 2 * size + 10 * (100 << 10) + (8 << 20) + (sanitized << 29))
        # Others do not notice, on a connection of their own or on the same one.
        for i in range(100):
            self.assertEqual(server.post("/v1/check", {"limit": "orders", "id": f"other {i}"})[0], 200)
        one = slow[0]
        one.send(h2.frame(h2.WINDOW_UPDATE, 0, 5, (size * 2).to_bytes(4, "big")))
        self.assertIn(b"weir_", self.read_some(one, 5, 1000))

    @staticmethod
    def read_some(connection, stream, least):
        content = b""
        while len(content) < least:
            _, _, _, payload = connection.until(h2.DATA, stream)
            content += payload
        return content

    def test_concurrent_clients_of_both_versions(self):
        server = Server(self, CLEAR)
        url = f"http://127.0.0.1:{server.ports['http']}/v1/check"
        wrong = []

        def load(*more):
            try:
                out = run("h2load", *more, "-n", "3000", "-c", "5", "-d", self.body(), "-H", "content-type: application/json", url)
                if "3000 succeeded" not in out:
                    wrong.append(out)
            except AssertionError as error:
                wrong.append(str(error))

        threads = [threading.Thread(target=load, args=arguments) for arguments in (("-m", "20"), ("--h1",))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])
        self.assertTrue(re.search(r"weir_\w+", server.get("admin", "/metrics")))


if __name__ == "__main__":
    unittest.main()
