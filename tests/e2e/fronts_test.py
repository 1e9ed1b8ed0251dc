"""Real nginx, HAProxy and Caddy in front of a backend, each with the very files of examples/, asking `weir serve`."""

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

EXAMPLES = pathlib.Path(os.environ["WEIR_SOURCE"]) / "examples"


class Backend(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.server.reached.append(self.path)
        body = b"from the backend\n"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

    def log_message(self, *_):
        pass


class Backends(http.server.ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        """A front that ends cuts its idle connections: no news."""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Front:
    """What every front does the same. Subclasses say how it is started."""

    folder = ""
    start = ()

    def setUp(self):
        self.backend = Backends(("127.0.0.1", 0), Backend)
        self.backend.reached = []
        thread = threading.Thread(target=self.backend.serve_forever)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(self.backend.server_close)
        self.addCleanup(self.backend.shutdown)

        policy = (EXAMPLES / self.folder / "weir.yaml").read_text()
        # Any port; and an address of this machine on the deny list.
        policy = policy.replace("127.0.0.1:8080", "127.0.0.1:0").replace("127.0.0.1:9090", "127.0.0.1:0")
        self.weir = Server(self, policy.replace("203.0.113.0/24", "127.0.0.66/32"))
        # Between finding a free port and the front's binding it somebody may take it.
        for _ in range(5):
            if self.begin():
                return
        self.fail((self.directory / "log").read_text())

    def begin(self):
        """Starts the front with the example's files; false if it ended instead of listening."""
        self.directory = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.directory)
        self.port = free_port()
        for source in (EXAMPLES / self.folder).iterdir():
            text = source.read_text().replace("127.0.0.1:8080", f"127.0.0.1:{self.weir.ports['http']}")
            text = text.replace("127.0.0.1:8000", f"127.0.0.1:{self.port}")
            (self.directory / source.name).write_text(text.replace("127.0.0.1:3000", f"127.0.0.1:{self.backend.server_port}"))
        environment = {**os.environ, "HOME": str(self.directory), "XDG_DATA_HOME": str(self.directory)}
        with open(self.directory / "log", "wb") as log:
            process = subprocess.Popen([part.format(directory=self.directory) for part in self.start], cwd=self.directory,
                                       stdout=log, stderr=log, env=environment)
        self.addCleanup(process.wait, timeout=30)
        self.addCleanup(process.terminate)
        while process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=20).close()
                return True
            except ConnectionRefusedError:
                time.sleep(0.02)
        return False

    def get(self, path, client="127.0.0.2", headers=None, method="GET"):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20, source_address=(client, 0))
        try:
            connection.request(method, path, headers=headers or {})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read().decode()
        finally:
            connection.close()

    def test_three_pass_and_the_fourth_never_reaches_the_backend(self):
        for left in ("2", "1", "0"):
            status, headers, body = self.get("/orders?page=1")
            self.assertEqual((status, body), (200, "from the backend\n"))
            self.assertEqual((headers["X-RateLimit-Limit"], headers["X-RateLimit-Remaining"]), ("3", left))
        status, headers, _ = self.get("/orders?page=1")
        self.assertEqual(status, 429)
        self.assertEqual(headers["X-RateLimit-Remaining"], "0")
        self.assertTrue(1 <= int(headers["Retry-After"]) <= 6, headers)
        self.assertEqual(self.backend.reached, ["/orders?page=1"] * 3)
        self.assertEqual(self.get("/orders", client="127.0.0.3")[0], 200, "another client has a bucket of its own")

    def test_a_forged_x_forwarded_for_changes_nothing(self):
        for last in range(3):
            self.assertEqual(self.get("/", headers={"X-Forwarded-For": f"192.0.2.{last}"})[0], 200)
        for name in ("X-Forwarded-For", "X-Real-IP", "X-Forwarded-Uri", "X-Original-URI"):
            self.assertEqual(self.get("/", headers={name: "/healthz" if "U" in name else "192.0.2.9"})[0], 429, name)

    def test_routes_decide_what_is_limited(self):
        for _ in range(6):
            status, headers, _ = self.get("/healthz")
            self.assertEqual(status, 200)
            self.assertIsNone(headers["X-RateLimit-Limit"])
        self.assertEqual(self.get("/healthz/../orders", method="POST")[1]["X-RateLimit-Remaining"], "2")

    def test_the_deny_list_comes_before_any_limit(self):
        status, headers, _ = self.get("/orders", client="127.0.0.66")
        self.assertEqual(status, 403)
        self.assertIsNone(headers["X-RateLimit-Limit"])
        self.assertEqual(self.backend.reached, [])


class Nginx(Front, unittest.TestCase):
    folder = "nginx"
    start = ("nginx", "-p", "{directory}", "-c", "{directory}/nginx.conf", "-g", "daemon off;")


class HaProxy(Front, unittest.TestCase):
    folder = "haproxy"
    start = ("haproxy", "-db", "-f", "haproxy.cfg")


class Caddy(Front, unittest.TestCase):
    folder = "caddy"
    start = ("caddy", "run", "--config", "Caddyfile", "--adapter", "caddyfile")


if __name__ == "__main__":
    unittest.main()
