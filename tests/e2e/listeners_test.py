"""Who may connect, how many of them, under which address, and what happens to them at the end."""

import http.client
import json
import os
import re
import signal
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.request

from serving import ENVIRONMENT, POLICY, WEIR, Server

LISTEN = """
listen:
  - {address: "127.0.0.1:0", speak: http%s}
  - {address: "127.0.0.1:0", speak: resp%s}
  - {address: "127.0.0.1:0", speak: admin}
""" + POLICY[POLICY.index("threads"):]
BODY = json.dumps({"limit": "orders", "id": "1"}).encode()


def status(server, speak, path, body=None, **headers):
    """The status of one request over a connection of its own."""
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(f"http://127.0.0.1:{server.ports[speak]}{path}", data=body, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status
    except urllib.error.HTTPError as answer:
        with answer:
            return answer.code


def check(server, path="/v1/check", **headers):
    return status(server, "http", path, BODY, Content_Type="application/json", **headers)


class Ending(unittest.TestCase):
    def test_drain_delay_keeps_serving_while_readyz_is_503(self):
        server = Server(self, POLICY + "drain_delay: 10m\n")
        self.assertEqual(status(server, "admin", "/readyz"), 200)
        server.process.send_signal(signal.SIGTERM)
        while status(server, "http", "/readyz") == 200:
            time.sleep(0.01)
        for speak in ("http", "admin"):
            self.assertEqual(status(server, speak, "/readyz"), 503)
            self.assertEqual(status(server, speak, "/healthz"), 200)
        self.assertEqual(check(server), 200)
        self.assertEqual(server.resp("PING"), "+PONG\r\n")
        self.assertEqual(status(server, "admin", "/metrics"), 200)
        self.assertIsNone(server.process.poll())
        self.assertEqual(server.end()[0], 0)  # a second signal does not wait

    def test_after_drain_delay_the_server_ends(self):
        server = Server(self, POLICY + "drain_delay: 100ms\n")
        code, log = server.end()
        self.assertEqual(code, 0)
        self.assertIn("draining in 100ms", log)

    def test_probes_and_metrics_respond_until_the_last_request_is_answered(self):
        server = Server(self)
        with server.connect("http") as slow:
            slow.sendall(b"POST /v1/check HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
                         b"Content-Length: %d\r\n\r\n%s" % (len(BODY), BODY[:-1]))
            server.wait_for_metric('weir_connections{speak="http"} 1\n')
            server.get("http", "/healthz")  # by then the head has been read on either loop
            server.get("http", "/healthz")
            time.sleep(0.1)
            server.process.send_signal(signal.SIGTERM)
            while True:
                try:
                    status(server, "http", "/healthz")
                except (urllib.error.URLError, http.client.HTTPException, ConnectionError):
                    break
            self.assertEqual(status(server, "admin", "/readyz"), 503)
            self.assertEqual(status(server, "admin", "/healthz"), 200)
            self.assertIn("weir_connections", server.get("admin", "/metrics"))
            slow.sendall(BODY[-1:])
            self.assertIn(b"200 OK", slow.recv(65536))
        self.assertEqual(server.process.wait(timeout=30), 0)


class Crowds(unittest.TestCase):
    def test_silent_connections_on_one_port_shut_out_neither_clients_nor_probes(self):
        server = Server(self, prefix=["sh", "-c", 'ulimit -n 300; exec "$@"', "sh"])
        silent = []
        for _ in range(400):
            silent.append(server.connect("resp"))
            self.addCleanup(silent[-1].close)
        time.sleep(0.3)  # a connection that has only just come is not taken for an idle one
        for _ in range(5):
            self.assertEqual(status(server, "http", "/healthz"), 200)
            self.assertEqual(status(server, "admin", "/metrics"), 200)
            self.assertEqual(server.resp("PING"), "+PONG\r\n")
        self.assertIn("connection limit reached on 127.0.0.1:", server.end()[1])

    def test_an_idle_connection_is_closed_where_the_listener_says_when(self):
        server = Server(self, LISTEN % (", idle_timeout: 10ms", ""))
        with server.connect("http") as idle, server.connect("resp") as pooled:
            self.assertEqual(idle.recv(1), b"")
            pooled.sendall(b"PING\r\n")
            self.assertEqual(pooled.recv(64), b"+PONG\r\n")


class Tokens(unittest.TestCase):
    def test_a_token_is_needed_and_changes_with_a_reload(self):
        server = Server(self, LISTEN % (", token: one, write_token: writer", ""))
        self.assertEqual(check(server), 401)
        self.assertEqual(check(server, X_Weir_Token="two"), 401)
        self.assertEqual(check(server, X_Weir_Token="one"), 200)
        self.assertEqual(check(server, Authorization="Bearer one"), 200)
        self.assertEqual(status(server, "http", "/v1/authorize", Authorization="Bearer one"), 401)
        self.assertEqual(status(server, "http", "/v1/authorize", X_Weir_Token="one"), 200)
        self.assertEqual(check(server, "/v1/refund"), 401)
        self.assertEqual(check(server, "/v1/refund", X_Weir_Token="one"), 403)
        self.assertEqual(check(server, "/v1/reset", X_Weir_Token="writer"), 204)
        self.assertEqual(status(server, "http", "/healthz"), 200)
        server.write(LISTEN % (", token: [one, two]", ""))
        while check(server, X_Weir_Token="two") != 200:
            time.sleep(0.01)
        self.assertEqual(check(server, X_Weir_Token="one"), 200)
        self.assertNotIn("only a restart", server.end()[1])

    def test_the_write_password_protects_refund_reset_and_del(self):
        server = Server(self, LISTEN % ("", ", password: reader, write_password: writer"))
        def say(*lines):
            with server.connect("resp") as connection:
                connection.sendall("".join(line + "\r\n" for line in (*lines, "QUIT")).encode())
                answer = b""
                while piece := connection.recv(65536):
                    answer += piece
                return answer.decode().split("\r\n")
        self.assertIn("NOAUTH", say("DEL k")[0])
        self.assertIn("-NOPERM 'del' needs AUTH with the write password", say("AUTH reader", "DEL k"))
        self.assertIn("-NOPERM 'weir.refund' needs AUTH with the write password", say("AUTH reader", "WEIR.REFUND orders 1"))
        self.assertEqual(say("AUTH reader", "WEIR.CHECK orders 1")[1], "*5")
        self.assertEqual(say("AUTH writer", "DEL k", "WEIR.RESET orders 1")[:2], ["+OK", ":0"])


class Addresses(unittest.TestCase):
    def serve(self, **environment):
        process = subprocess.Popen([WEIR, "serve"], stderr=subprocess.PIPE, text=True, env=ENVIRONMENT | environment)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait, timeout=30)
        self.addCleanup(process.terminate)
        lines = []
        for line in process.stderr:
            lines.append(line)
            if "ready:" in line:
                break
        return "".join(lines)

    def test_variables_give_a_server_without_a_file_its_addresses(self):
        said = self.serve(WEIR_LISTEN_HTTP="127.0.0.1:0", WEIR_LISTEN_RESP="", WEIR_LISTEN_ADMIN="127.0.0.1:0")
        ready = said[said.index("ready:"):]
        self.assertRegex(ready, r"http on 127\.0\.0\.1:\d+, admin on 127\.0\.0\.1:\d+\n$")
        self.assertNotIn("resp", ready)

    def test_a_proxy_without_a_backend_and_mistyped_variables_are_refused(self):
        self.assertIn("WEIR_LISTEN_PROXY: speak proxy needs a backend", self.serve(WEIR_LISTEN_PROXY=":80"))
        self.assertIn("did you mean WEIR_LISTEN_HTTP?", self.serve(WEIR_LISTEN_HTPP=":80"))

    def test_config_check_warns_about_listeners_that_everybody_can_reach(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "weir.yaml")
            with open(path, "w", encoding="utf-8") as file:
                file.write("limits: {}\nlisten:\n  - {address: '0.0.0.0:1', speak: http}\n  - {address: '[::]:2', speak: resp}\n"
                           "  - {address: '0.0.0.0:3', speak: http, token: t}\n  - {address: '0.0.0.0:4', speak: resp, password: p}\n"
                           "  - {address: '127.0.0.1:5', speak: http}\n")
            done = subprocess.run([WEIR, "config", "check", path], capture_output=True, text=True, env=ENVIRONMENT, timeout=30)
        self.assertEqual(done.returncode, 0)
        self.assertEqual(re.findall(r'address "(\S+)" is not loopback', done.stderr), ["0.0.0.0:1", "[::]:2"])
        self.assertIn("give it a token", done.stderr)
        self.assertIn("give it a password", done.stderr)


class Browsers(unittest.TestCase):
    def test_a_web_page_can_neither_read_the_admin_api_nor_post_to_the_decision_api(self):
        server = Server(self)
        self.assertEqual(status(server, "admin", "/ratelimit/stats", Host="rebound.example:9090"), 403)
        self.assertEqual(status(server, "admin", "/ratelimit/events", Host="rebound.example:9090"), 403)
        self.assertEqual(status(server, "admin", "/healthz", Host="rebound.example:9090"), 200)
        for path in ("/v1/check", "/v1/reset", "/v1/refund"):
            self.assertEqual(status(server, "http", path, BODY, Content_Type="text/plain"), 415)
            with server.connect("http") as connection:
                connection.sendall(b"POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%s" % (path.encode(), len(BODY), BODY))
                self.assertIn(b"HTTP/1.1 415 ", connection.recv(65536))


if __name__ == "__main__":
    unittest.main()
