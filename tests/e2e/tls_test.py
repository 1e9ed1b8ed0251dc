"""`weir serve` behind TLS: real certificates, real clients, hostile peers, certificates that change while it runs."""

import errno
import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time
import unittest

from serving import ENVIRONMENT, WEIR, Server

LIMITS = """
threads: 2
memory: {max_buckets: 100000}
limits:
  orders: {burst: 1000000, count: 1000000, period: 1h}
"""


def policy(tls):
    return f"""
listen:
  - {{address: "127.0.0.1:0", speak: http, tls: {tls}}}
  - {{address: "127.0.0.1:0", speak: resp, tls: {tls}}}
  - {{address: "127.0.0.1:0", speak: admin, tls: {tls}}}
{LIMITS}"""


def make_certificate(directory, name, names="DNS:weir.test,DNS:localhost,IP:127.0.0.1", days=30):
    """Files name.pem and name.key, signed by itself, put in place whole."""
    cert, key = (os.path.join(directory, name + end) for end in (".pem", ".key"))
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key + ".new",
                    "-out", cert + ".new", "-days", str(days), "-subj", f"/CN={name}", "-addext", f"subjectAltName={names}"],
                   check=True, capture_output=True)
    os.rename(cert + ".new", cert)
    os.rename(key + ".new", key)
    return cert, key


class TlsTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.directory = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.directory)
        self.cert, self.key = make_certificate(self.directory, "a")

    def serve(self, tls="{cert: a.pem, key: a.key}"):
        return Server(self, policy(tls), self.directory)

    def connect(self, server, speak="http", name="weir.test", trusted=None, **options):
        client = ssl.create_default_context(cafile=trusted or self.cert)
        for option, value in options.items():
            setattr(client, option, value)
        return client.wrap_socket(server.connect(speak), server_hostname=name)

    def check(self, server, **options):
        """One decision over a connection of its own."""
        with self.connect(server, **options) as connection:
            return self.ask(connection)

    @staticmethod
    def ask(connection):
        body = b'{"limit":"orders","id":"1"}'
        connection.sendall(b"POST /v1/check HTTP/1.1\r\nHost: weir.test\r\nContent-Type: application/json\r\n"
                           b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        return answer.status, json.loads(answer.read())["allowed"]

    def presented(self, server, name="weir.test"):
        """The common name of the certificate that the server presents for a name."""
        client = ssl.create_default_context()
        client.check_hostname = False
        client.verify_mode = ssl.CERT_NONE
        with client.wrap_socket(server.connect("http"), server_hostname=name) as connection:
            pem = ssl.DER_cert_to_PEM_cert(connection.getpeercert(binary_form=True))
        shown = subprocess.run(["openssl", "x509", "-noout", "-subject"], input=pem, capture_output=True, text=True, check=True)
        return re.search(r"CN = (\S+)", shown.stdout)[1]


class Clients(TlsTest):
    def test_curl_redis_cli_and_a_scraper_are_clients(self):
        server = self.serve()
        for option, version in (("--http1.1", "HTTP/1.1"), ("--http2", "HTTP/2")):
            curl = subprocess.run(["curl", "-sS", "-i", option, "--cacert", self.cert, "--resolve",
                                   f"weir.test:{server.ports['http']}:127.0.0.1", "--json", '{"limit":"orders","id":"1"}',
                                   f"https://weir.test:{server.ports['http']}/v1/check"], capture_output=True, text=True, check=True)
            self.assertTrue(curl.stdout.startswith(f"{version} 200"), curl.stdout)
        redis = subprocess.run(["redis-cli", "--tls", "--cacert", self.cert, "-p", str(server.ports["resp"]), "PING"],
                               capture_output=True, text=True, check=True)
        self.assertEqual(redis.stdout, "PONG\n")
        scrape = subprocess.run(["curl", "-sS", "--cacert", self.cert, f"https://localhost:{server.ports['admin']}/metrics"],
                                capture_output=True, text=True, check=True)
        self.assertIn("weir_build_info", scrape.stdout)

    def test_tls_1_2_and_1_3_and_nothing_older(self):
        server = self.serve()
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            self.assertEqual(self.check(server, maximum_version=version, minimum_version=version), (200, True))
        old = subprocess.run(["openssl", "s_client", "-tls1_1", "-cipher", "ALL:@SECLEVEL=0", "-connect",
                              f"127.0.0.1:{server.ports['http']}"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        self.assertIn("alert protocol version", old.stderr)

    def test_the_http_version_is_agreed_on_where_a_client_asks(self):
        server = self.serve()
        client = ssl.create_default_context(cafile=self.cert)
        for offered, agreed in ((["http/1.1", "h2"], "h2"), (["h2"], "h2"), (["http/1.1"], "http/1.1")):
            client.set_alpn_protocols(offered)
            with client.wrap_socket(server.connect("http"), server_hostname="weir.test") as connection:
                self.assertEqual(connection.selected_alpn_protocol(), agreed)
        client.set_alpn_protocols(["h3"])
        with server.connect("http") as plain, self.assertRaises(ssl.SSLError):
            client.wrap_socket(plain, server_hostname="weir.test")

    def test_a_client_that_comes_back_is_recognized(self):
        server = self.serve()
        client = ssl.create_default_context(cafile=self.cert)
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            client.maximum_version = version
            with client.wrap_socket(server.connect("http"), server_hostname="weir.test") as first:
                self.assertEqual(self.ask(first), (200, True))
                session = first.session
            with client.wrap_socket(server.connect("http"), server_hostname="weir.test", session=session) as again:
                self.assertTrue(again.session_reused, version)
                self.assertEqual(self.ask(again), (200, True))

    def test_the_name_picks_the_certificate(self):
        make_certificate(self.directory, "b", "DNS:*.b.test")
        make_certificate(self.directory, "c", "DNS:exact.b.test")
        server = self.serve("[{cert: a.pem, key: a.key}, {cert: b.pem, key: b.key}, {cert: c.pem, key: c.key}]")
        self.assertEqual([self.presented(server, name) for name in ("weir.test", "any.b.test", "exact.b.test", "stranger.test", None)],
                         ["a", "b", "c", "a", "a"])


class Change(TlsTest):
    def test_new_certificates_are_used_while_traffic_goes_on(self):
        server = self.serve()
        with self.connect(server) as old:
            self.assertEqual(self.ask(old), (200, True))
            new, _ = make_certificate(self.directory, "next")
            shutil.copy(new, self.cert + ".new")
            shutil.copy(os.path.join(self.directory, "next.key"), self.key + ".new")
            os.rename(self.key + ".new", self.key)
            os.rename(self.cert + ".new", self.cert)
            while self.presented(server) != "next":
                self.assertEqual(self.ask(old), (200, True))
            self.assertEqual(self.check(server, trusted=new), (200, True))
            self.assertEqual(self.ask(old), (200, True), "those who were there go on")

    def test_a_link_that_is_moved_is_a_change(self):
        make_certificate(self.directory, "next")
        link = os.path.join(self.directory, "current")
        for name in ("a", "next"):
            os.mkdir(os.path.join(self.directory, name))
            for end in ("pem", "key"):
                os.rename(os.path.join(self.directory, f"{name}.{end}"), os.path.join(self.directory, name, f"tls.{end}"))
        os.symlink("a", link)
        server = self.serve("{cert: current/tls.pem, key: current/tls.key}")
        self.assertEqual(self.presented(server), "a")
        os.symlink("next", link + ".new")
        os.rename(link + ".new", link)
        while self.presented(server) != "next":
            pass

    def test_a_broken_pair_leaves_the_old_one_in_use(self):
        server = self.serve()
        with open(self.key + ".new", "w", encoding="utf-8") as file:
            file.write("not a key\n")
        os.rename(self.key + ".new", self.key)
        # Logged once per listener, and once more on SIGHUP.
        said = [server.process.stderr.readline() for _ in range(3)]
        for _ in range(3):
            self.assertEqual(self.presented(server), "a")
            self.assertEqual(self.check(server), (200, True))
        server.process.send_signal(signal.SIGHUP)
        while "certificate" in said[-1]:
            said.append(server.process.stderr.readline())
        complaint = f"TLS certificate not reloaded, keeping the previous one: {self.key}: contains no PEM private key"
        self.assertEqual([complaint in line for line in said[:-1]], [True] * 6, said)
        self.assertEqual(self.check(server), (200, True))

    def test_what_cannot_be_used_at_the_start_says_why(self):
        make_certificate(self.directory, "other")
        path = os.path.join(self.directory, "weir.yaml")
        for tls, sentence in (("{cert: none.pem, key: a.key}", "none.pem: No such file or directory"),
                              ("{cert: a.pem, key: a.pem}", "a.pem: contains no PEM private key"),
                              ("{cert: a.key, key: a.key}", "a.key: contains no PEM certificate"),
                              ("{cert: a.pem, key: other.key}", "other.key: is not the private key of the certificate in")):
            with open(path, "w", encoding="utf-8") as file:
                file.write(policy(tls))
            ended = subprocess.run([WEIR, "serve", "--config", path], capture_output=True, text=True, timeout=30, check=False,
                                   env=ENVIRONMENT)
            self.assertEqual(ended.returncode, 2, ended.stderr)
            self.assertIn(sentence, ended.stderr)


class Hostility(TlsTest):
    def test_what_is_not_tls_is_hung_up_on_and_others_go_on(self):
        server = self.serve()
        silent = [server.connect("http") for _ in range(50)]
        for connection in silent[:25]:
            connection.sendall(b"\x16\x03\x01\x02\x00\x01")
        for garbage in (b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n", b"PING\r\n", os.urandom(100_000), b"\x16\x03\x01\x00\x00" * 100):
            for speak in ("http", "resp", "admin"):
                with server.connect(speak) as connection:
                    try:
                        connection.sendall(garbage)
                        connection.shutdown(socket.SHUT_WR)
                        answer = b""
                        while piece := connection.recv(65536):
                            answer += piece
                        self.assertNotIn(b"HTTP", answer)
                        self.assertNotIn(b"PONG", answer)
                    except (ConnectionResetError, BrokenPipeError):
                        pass
                    except OSError as error:  # the end of a connection that was reset already
                        self.assertEqual(error.errno, errno.ENOTCONN)
            self.assertEqual(self.check(server), (200, True))
        for connection in silent:
            connection.close()

    def test_records_cut_short_and_abandoned_connections_disturb_nobody(self):
        server = self.serve()
        for _ in range(20):
            connection = self.connect(server)
            raw = socket.socket(fileno=os.dup(connection.fileno()))
            raw.sendall(b"\x17\x03\x03\x40\x00half a record")
            raw.close()
            connection.close()
        with self.connect(server) as connection:
            raw = socket.socket(fileno=os.dup(connection.fileno()))
            raw.sendall(b"\x17\x03\x03\x00\x20" + os.urandom(32))
            with self.assertRaises((ssl.SSLError, ConnectionResetError)):
                connection.recv(100)
                connection.recv(100)
            raw.close()
        self.assertEqual(self.check(server), (200, True))

    def test_a_handshake_that_does_not_end_is_cut_and_an_open_connection_stays(self):
        server = self.serve()
        with self.connect(server) as open_one, server.connect("http") as silent, server.connect("resp") as halfway:
            halfway.sendall(b"\x16\x03\x01\x00\xc8\x01")  # the start of a ClientHello
            begin = time.monotonic()
            for stuck in (silent, halfway):
                stuck.settimeout(60)
                self.assertEqual(stuck.recv(100), b"")
            self.assertGreater(time.monotonic() - begin, 9, "10 s to finish, seen from a moment later")
            self.assertEqual(self.ask(open_one), (200, True))

    def test_renegotiation_is_refused(self):
        server = self.serve()
        with subprocess.Popen(["openssl", "s_client", "-tls1_2", "-connect", f"127.0.0.1:{server.ports['http']}"], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as client:
            while not client.stdout.readline().startswith("    Verify return code"):
                pass
            said, _ = client.communicate("R\n", timeout=30)
        self.assertIn("no renegotiation", said)
        self.assertEqual(self.check(server), (200, True))

    def test_a_reader_that_is_slow_gets_everything(self):
        server = self.serve()
        with self.connect(server, "resp") as connection:
            connection.sendall(b"*2\r\n$4\r\nECHO\r\n$60000\r\n%s\r\n" % (b"x" * 60_000) * 40)
            heard = 0
            while heard < 40 * 60_010:
                piece = connection.recv(4096)
                self.assertTrue(piece)
                heard += len(piece)
            self.assertEqual(heard, 40 * 60_010)


class End(TlsTest):
    def test_a_client_needs_a_certificate_where_client_ca_says_so(self):
        own, key = make_certificate(self.directory, "client")
        stranger, stranger_key = make_certificate(self.directory, "stranger")
        server = self.serve("{cert: a.pem, key: a.key, client_ca: client.pem, min_version: 1.3}")

        def ask(files):
            client = ssl.create_default_context(cafile=self.cert)
            if files:
                client.load_cert_chain(*files)
            with client.wrap_socket(server.connect("http"), server_hostname="weir.test") as connection:
                return self.ask(connection)

        self.assertEqual(ask((own, key)), (200, True))
        for files in (None, (stranger, stranger_key)):
            with self.assertRaises((ssl.SSLError, ConnectionError)):
                ask(files)
        with self.assertRaises((ssl.SSLError, ConnectionError)):
            self.connect(server, maximum_version=ssl.TLSVersion.TLSv1_2)

    def test_a_pipe_in_place_of_a_certificate_holds_up_neither_clients_nor_sigterm(self):
        server = self.serve()
        os.rename(self.cert, self.cert + ".old")
        os.mkfifo(self.cert)
        while "is not a regular file" not in server.process.stderr.readline():
            pass
        for speak in ("http", "admin", "resp"):
            self.connect(server, speak, trusted=self.cert + ".old").close()
        self.assertEqual(server.end()[0], 0)

    def test_sigterm_says_goodbye_and_ends(self):
        server = self.serve()
        with self.connect(server) as idle:
            self.assertEqual(self.ask(idle), (200, True))
            server.process.send_signal(signal.SIGTERM)
            began = time.monotonic()
            self.assertEqual(idle.recv(100), b"", "an orderly end, not a cut")
            idle.unwrap()
        self.assertEqual(server.end()[0], 0)
        self.assertLess(time.monotonic() - began, 25, "it does not wait for drain_timeout")


if __name__ == "__main__":
    unittest.main()
