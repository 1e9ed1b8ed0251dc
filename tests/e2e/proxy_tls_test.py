"""The edge proxy with TLS on both sides: SNI and ALPN towards clients, verified https:// backends with HTTP/2 or HTTP/1.1."""

import json
import shutil
import socket
import ssl
import subprocess
import tempfile
import unittest

from certificates import Authority
from nginx import Nginx
from proxying import OPEN, Proxy, RawBackend, Response, head_of
from serving import ENVIRONMENT, WEIR

LISTEN = """
listen:
  - {{address: "127.0.0.1:0", speak: proxy, tls: {tls}}}
  - {{address: "127.0.0.1:0", speak: admin}}
threads: 2
limits: {{per-ip: {{key: ip, rate: 1000/hour}}}}
{more}
"""
# What nginx knows about the connection that the proxy made.
ECHO = 'return 200 "$server_protocol name=$ssl_server_name host=$host client=$ssl_client_s_dn uri=$request_uri";'


class TlsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.directory)
        cls.authority = Authority(cls.directory)
        cls.site = cls.authority.sign("site", "DNS:a.test,DNS:localhost,IP:127.0.0.1")

    def nginx(self, pair=None, more="", listen="ssl http2"):
        cert, key = pair or self.site
        own = f"server_name localhost a.test; ssl_certificate {cert}; ssl_certificate_key {key};"
        return Nginx(self, f"{own} {more} location / {{ {ECHO} }}", listen)

    def context(self, *protocols, pair=None):
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(*(pair or self.site))
        if protocols:
            context.set_alpn_protocols(list(protocols))
        return context

    def error(self, answer):
        return answer.status, json.loads(answer.body)["error"]


class Listener(TlsTest):
    def setUp(self):
        self.authority.sign("other", "DNS:b.test")
        self.backend = RawBackend(self)
        tls = f"[{{cert: {self.directory}/site.pem, key: {self.directory}/site.key}}, {{cert: {self.directory}/other.pem, " \
              f"key: {self.directory}/other.key}}]"
        self.proxy = Proxy(self, LISTEN.format(tls=tls, more=f"backend: {self.backend.url}"))

    def curl(self, *arguments, name="a.test", body=None):
        where = f"{name}:{self.proxy.port}"
        done = subprocess.run(["curl", "-sS", "-i", "--cacert", self.authority.cert, "--resolve", f"{where}:127.0.0.1", *arguments,
                               f"https://{where}/x?y=1"], input=body, capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_curl_agrees_on_either_version_by_alpn_and_each_name_has_its_certificate(self):
        for name in ("a.test", "b.test"):
            for option, version in (("--http1.1", "HTTP/1.1"), ("--http2", "HTTP/2")):
                said = self.curl(option, name=name)
                self.assertTrue(said.startswith(f"{version} 200"), said)
                self.assertIn("x-ratelimit-limit: 1000", said.lower())
                self.assertTrue(said.endswith("\n\nok"), said)
                head = head_of(self.backend.requests[-1])
                self.assertEqual(head[:2], ["GET /x?y=1 HTTP/1.1", f"Host: {name}:{self.proxy.port}"])
                self.assertIn("X-Forwarded-Proto: https", head)

    def test_a_large_body_crosses_in_both_versions(self):
        body = "x" * 300_000
        self.backend.respond = lambda request: b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(request) + request
        for option in ("--http1.1", "--http2"):
            self.assertTrue(self.curl(option, "--data-binary", "@-", body=body).endswith(body))

    def test_plain_http_on_the_port_is_no_request(self):
        with socket.create_connection(("127.0.0.1", self.proxy.port), timeout=20) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            answer = b""
            try:
                while piece := connection.recv(1000):
                    answer += piece
            except ConnectionResetError:
                pass
        self.assertNotIn(b"200", answer)
        self.assertEqual(self.backend.requests, [])


class Backends(TlsTest):
    def proxy(self, url, tls="", more=""):
        return Proxy(self, OPEN.format(url=url) + (f"backend_tls: {{{tls}}}\n" if tls else "") + more)

    def ca(self):
        return f"ca_file: {self.authority.cert}"

    def test_http_2_where_the_backend_offers_it_and_http_1_1_otherwise(self):
        for listen, version in (("ssl http2", "HTTP/2.0"), ("ssl", "HTTP/1.1")):
            proxy = self.proxy(f"https://127.0.0.1:{self.nginx(listen=listen).port}", self.ca())
            for _ in range(3):
                answer = proxy.get("/p?q", host="client.example")
                self.assertEqual((answer.status, answer.body.decode()), (200, f"{version} name= host=client.example client= uri=/p?q"))

    def test_the_name_of_the_url_is_sent_and_verified(self):
        nginx = self.nginx(self.authority.sign("named", "DNS:localhost,DNS:a.test"))
        proxy = self.proxy(f"https://localhost:{nginx.port}/base", self.ca())
        self.assertEqual(proxy.get("/p", host="client.example").body.decode(),
                         "HTTP/2.0 name=localhost host=client.example client= uri=/base/p")
        named = self.proxy(f"https://127.0.0.1:{nginx.port}", self.ca() + ", server_name: a.test")
        self.assertIn("name=a.test", named.get("/").body.decode())

    def test_a_certificate_that_is_not_valid_is_502(self):
        nginx = self.nginx()
        expired = self.nginx(self.authority.sign("expired", "IP:127.0.0.1", days=-1))
        cases = [(f"https://127.0.0.1:{nginx.port}", "", "self-signed certificate in certificate chain|unable to get local issuer"),
                 (f"https://127.0.0.1:{nginx.port}", self.ca() + ", server_name: b.test", "hostname mismatch"),
                 (f"https://127.0.0.1:{expired.port}", self.ca(), "expired")]
        for url, tls, reason in cases:
            proxy = self.proxy(url, tls)
            for _ in range(3):
                self.assertEqual(self.error(proxy.get("/")), (502, "backend_unreachable"), (url, tls))
            self.assertIn('weir_proxy_upstream_errors_total{route="",kind="connect"} 3\n', proxy.metrics())
            self.assertRegex(proxy.end()[1], f"backend unavailable: backend={url} error=.*({reason})")

    def test_a_reload_with_files_that_cannot_be_used_changes_nothing(self):
        proxy = self.proxy(f"https://127.0.0.1:{self.nginx().port}", self.ca())
        self.assertEqual(proxy.get("/").status, 200)
        with open(proxy.config, encoding="utf-8") as file:
            policy = file.read()
        wrong = (policy.replace(self.authority.cert, "/nothing.pem"), policy + "log: {access: json, access_file: /nothing/log}\n")
        for failed, text in enumerate(wrong, 1):
            proxy.write(text)
            proxy.wait_for_metric(f'weir_config_reloads_total{{result="failed"}} {failed}\n')
            self.assertEqual(proxy.get("/").status, 200)
        self.assertIn("/nothing.pem: No such file or directory; a server would not start with it",
                      self.config_check(policy.replace(self.authority.cert, "/nothing.pem")))
        said = proxy.end()[1]
        for why in ("/nothing.pem: No such file or directory", 'log.access_file "/nothing/log": No such file or directory'):
            self.assertIn(f"{proxy.config}: ", said)
            self.assertIn(why, said)

    def config_check(self, policy):
        """What `weir config check` warns of."""
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            file.write(policy)
            file.flush()
            return subprocess.run([WEIR, "config", "check", file.name], capture_output=True, text=True, timeout=60, check=True,
                                  env=ENVIRONMENT).stderr

    def test_a_client_certificate_is_presented(self):
        cert, key = self.authority.sign("weir", "DNS:weir.test")
        nginx = self.nginx(more=f"ssl_client_certificate {self.authority.cert}; ssl_verify_client on;")
        own = f", cert_file: {cert}, key_file: {key}"
        proxy = self.proxy(f"https://127.0.0.1:{nginx.port}", self.ca() + own)
        self.assertIn("client=CN=weir", proxy.get("/").body.decode())
        without = self.proxy(f"https://127.0.0.1:{nginx.port}", self.ca())
        answer = without.get("/")
        self.assertEqual(answer.status, 400, "nginx's own answer")
        self.assertNotIn(b"client=CN=weir", answer.body)

    def test_a_websocket_goes_over_http_1_1_to_a_backend_that_prefers_http_2(self):
        def respond(request):
            if b"\r\nUpgrade: websocket\r\n" not in request:
                return b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
            return b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello"
        backend = RawBackend(self, respond, self.context("h2", "http/1.1"))
        proxy = self.proxy(backend.url, self.ca())
        with socket.create_connection(("127.0.0.1", proxy.port), timeout=20) as connection, connection.makefile("rb") as reader:
            connection.sendall(b"GET /ws HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
            self.assertEqual(Response(reader).status, 101)
            self.assertEqual(reader.read(5), b"hello")
            connection.sendall(b"over the tunnel\r\n\r\n")
            self.assertEqual(backend.wait_for(2)[1], b"over the tunnel\r\n\r\n")
        self.assertEqual(backend.agreed, ["http/1.1"])

    def test_an_upgrade_is_left_out_where_the_backend_has_only_http_2(self):
        nginx = Nginx(self, f"location / {{ {ECHO} }}", "http2")
        good = RawBackend(self)
        proxy = self.proxy(f"h2://127.0.0.1:{nginx.port}")
        for _ in range(4):
            answer = proxy.get("/ws", [("Connection", "Upgrade"), ("Upgrade", "websocket")])
            self.assertEqual((answer.status, answer.body[:8]), (200, b"HTTP/2.0"))
        self.assertIn(f'weir_backend_up{{backend="h2://127.0.0.1:{nginx.port}"}} 1\n', proxy.metrics())
        self.assertEqual(good.requests, [])

    def test_one_bad_certificate_of_two_backends_costs_no_request(self):
        good, bad = self.nginx(), self.nginx(self.authority.sign("c", "DNS:c.test"))
        proxy = Proxy(self, f'limits: {{}}\nbackend: ["https://127.0.0.1:{bad.port}", "https://127.0.0.1:{good.port}"]\n'
                            f'backend_tls: {{{self.ca()}}}\n')
        for _ in range(8):
            self.assertEqual(proxy.get("/").status, 200)
        self.assertIn(f'weir_backend_up{{backend="https://127.0.0.1:{bad.port}"}} 0\n', proxy.metrics())


if __name__ == "__main__":
    unittest.main()
