"""Backends that fail: what the client gets, when, and whether the request goes to another backend. The rows are those of
docs/proxy.md, "When a backend fails"."""

import json
import os
import pathlib
import re
import socket
import threading
import time
import unittest

from proxying import OPEN, POLICY, Proxy, RawBackend, Response

CONNECT, RESPONSE, STREAM = 0.3, 0.6, 0.9  # seconds
TIMEOUTS = f"proxy: {{connect_timeout: {CONNECT}s, response_timeout: {RESPONSE}s, stream_idle_timeout: {STREAM}s}}\n"


class Silent:
    """Accepts connections, answers each with `first` and then says nothing until the test ends. With backlog=0 it does not even
    accept: the kernel drops what comes when its queue is full."""

    def __init__(self, test, first=b"", accepts=True):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=0 if not accepts else 128)
        test.addCleanup(self.listener.close)
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.connections = []
        self.first = first
        if not accepts:
            self.fill()
            test.addCleanup(self.end)
            return
        self.thread = threading.Thread(target=self.accept)
        self.thread.start()
        test.addCleanup(self.end)

    def fill(self):
        """Until a further connection is not answered."""
        for _ in range(16):
            try:
                self.connections.append(socket.create_connection(self.listener.getsockname(), timeout=0.2))
            except TimeoutError:
                return
        raise AssertionError("the kernel's queue has no end")

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            self.connections.append(connection)
            if self.first:
                connection.recv(65536)
                connection.sendall(self.first)

    def end(self):
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        if hasattr(self, "thread"):
            self.thread.join(20)
        for connection in self.connections:
            connection.close()


class Closed:
    """Nobody listens there."""

    def __init__(self, _):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"


class Resets(RawBackend):
    """Sends the bytes and resets the connection."""

    def __init__(self, test, first):
        def respond(_):
            for connection in list(self.open):
                connection.sendall(first)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        super().__init__(test, respond)


def plain_behind_https(test):
    backend = Silent(test, b"HTTP/1.1 400 Bad Request\r\n\r\n")
    backend.url = backend.url.replace("http:", "https:")
    return backend


def silent_behind_https(test):
    backend = Silent(test)
    backend.url = backend.url.replace("http:", "https:")
    return backend


HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart"
UNREACHABLE, TIMEOUT, BAD = (502, "backend_unreachable"), (504, "backend_timeout"), (502, "bad_backend_answer")
CUT = (200, "cut off")

# As in docs/proxy.md: the backend, what the client gets, when, whether another backend is tried. Then how to make one, what the
# client gets, and at least how many seconds that takes.
ROWS = [
    ("refuses the connection", "502 `backend_unreachable`", "at once", "yes", Closed, UNREACHABLE, 0),
    ("its name is unknown", "502 `backend_unreachable`", "at once", "yes", None, UNREACHABLE, 0),
    ("does not accept the connection", "502 `backend_unreachable`", "`connect_timeout`", "yes",
     lambda test: Silent(test, accepts=False), UNREACHABLE, CONNECT),
    ("`https://`: fails the TLS handshake, or its certificate is not valid", "502 `backend_unreachable`", "at once", "yes",
     plain_behind_https, UNREACHABLE, 0),
    ("`https://`: does not finish the TLS handshake", "502 `backend_unreachable`", "`connect_timeout`", "yes",
     silent_behind_https, UNREACHABLE, CONNECT),
    ("accepts and does not respond", "504 `backend_timeout`", "`response_timeout`", "no", Silent, TIMEOUT, RESPONSE),
    ("stops within the response head", "504 `backend_timeout`", "`response_timeout`", "no",
     lambda test: Silent(test, b"HTTP/1.1 200 OK\r\nContent-"), TIMEOUT, RESPONSE),
    ("stops after the head, or within the content", "what came, then the connection (HTTP/2: the stream) ends",
     "`stream_idle_timeout`", "no", lambda test: Silent(test, HEAD), CUT, STREAM),
    ("closes or resets the connection before the response head", "502 `bad_backend_answer`", "at once", "no",
     lambda test: Resets(test, b"HTTP/1.1 200"), BAD, 0),
    ("closes or resets the connection within the content", "what came, then the connection (HTTP/2: the stream) ends", "at once", "no",
     lambda test: Resets(test, HEAD), CUT, 0),
    ("responds with something that is not HTTP", "502 `bad_backend_answer`", "at once", "no",
     lambda test: RawBackend(test, lambda request: b"SSH-2.0-OpenSSH\r\n\r\n"), BAD, 0),
]


def ask(proxy):
    """Status and error code; of a response that is shorter than it says, "cut off"."""
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=30) as connection, connection.makefile("rb") as reader:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
        answer = Response(reader)
        if answer.status == 200 and len(answer.body) < int(answer.headers["content-length"]):
            return 200, "cut off"
        return answer.status, json.loads(answer.body)["error"] if answer.status != 200 else answer.body.decode()


class Table(unittest.TestCase):
    def test_the_rows_are_those_of_the_documentation(self):
        text = pathlib.Path(os.environ["WEIR_SOURCE"], "docs/proxy.md").read_text(encoding="utf-8")
        table = text.split("## When a backend fails", 1)[1].split("\n## ", 1)[0]
        for backend, response, when, again, *_ in ROWS:
            self.assertIn(f"| {backend} | {response} | {when} | {again} |\n", table)
        self.assertEqual(len(re.findall(r"^\| ", table, re.MULTILINE)), len(ROWS) + 1, "with the heading")

    def test_every_row(self):
        for row in ROWS:
            with self.subTest(row[0]):
                self.check(row)

    def check(self, row):
        _, _, when, again, make, expected, seconds = row
        bad = make(self) if make is not None else None
        url = bad.url if bad is not None else "http://no-such-name.invalid:80"
        timeouts = TIMEOUTS if when != "at once" else "proxy: {connect_timeout: 60s, response_timeout: 60s}\n"  # longer than ask() waits
        alone = Proxy(self, OPEN.format(url=url) + timeouts)
        began = time.monotonic()
        self.assertEqual(ask(alone), expected)
        self.assertGreaterEqual(time.monotonic() - began, seconds)
        good = RawBackend(self)
        two = Proxy(self, f'limits: {{}}\nbackend: ["{url}", "{good.url}"]\n{timeouts}')
        self.assertEqual(ask(two), (200, "ok") if again == "yes" else expected)
        self.assertEqual(len(good.requests), 1 if again == "yes" else 0)
        self.assertIn(f"weir_proxy_retries_total {len(good.requests)}\n", two.metrics())
        if isinstance(bad, RawBackend):
            self.assertEqual(len(bad.requests), 2, "each request was sent once")


class Returns(unittest.TestCase):
    def test_a_single_backend_gets_the_next_request_when_it_is_back(self):
        gone = Closed(self)
        proxy = Proxy(self, OPEN.format(url=gone.url))
        for _ in range(4):
            self.assertEqual(ask(proxy), UNREACHABLE)
        self.assertIn(f'weir_backend_up{{backend="{gone.url}"}} 0\n', proxy.metrics())
        RawBackend(self, port=gone.port)
        self.assertEqual(ask(proxy), (200, "ok"))
        self.assertIn(f'weir_backend_up{{backend="{gone.url}"}} 1\n', proxy.metrics())
        said = proxy.end()[1]
        self.assertRegex(said, f'backend unavailable: backend={gone.url} error=.*Connection refused')
        self.assertEqual(len(re.findall("backend unavailable", said)), 1, "said once, not for every request")
        self.assertIn(f"backend available again: backend={gone.url}", said)

    def test_of_several_that_are_out_the_first_that_is_back_takes_all(self):
        gone = [Closed(self), Closed(self)]
        proxy = Proxy(self, f'limits: {{}}\nbackend: ["{gone[0].url}", "{gone[1].url}"]\n')
        for _ in range(6):
            self.assertEqual(ask(proxy), UNREACHABLE)
        backend = RawBackend(self, port=gone[1].port)
        seen = [ask(proxy) for _ in range(6)]
        self.assertEqual(seen[-4:], [(200, "ok")] * 4, seen)
        self.assertGreaterEqual(len(backend.requests), 4)

    def test_while_all_are_out_one_request_tries_and_the_others_get_503(self):
        gone = [Closed(self), Closed(self)]
        proxy = Proxy(self, f'limits: {{}}\nbackend: ["{gone[0].url}", "{gone[1].url}"]\n')
        for _ in range(3):
            self.assertEqual(ask(proxy), UNREACHABLE)  # each asks both
        release = threading.Event()
        self.addCleanup(release.set)
        answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
        back = [RawBackend(self, lambda request: (release.wait(20), answer)[1], port=one.port) for one in gone]
        with socket.create_connection(("127.0.0.1", proxy.port), timeout=20) as first, first.makefile("rb") as reader:
            first.sendall(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            while not back[0].requests + back[1].requests:
                time.sleep(0.01)
            other = proxy.get("/")
            self.assertEqual((other.status, json.loads(other.body)["error"], other.headers["retry-after"]), (503, "no_backend_left", "1"))
            release.set()
            self.assertEqual(Response(reader).status, 200)
        self.assertEqual(ask(proxy), (200, "ok"))
        self.assertIn('weir_proxy_upstream_errors_total{route="",kind="none_left"} 1\n', proxy.metrics())

    def test_a_connection_that_the_backend_closed_meanwhile_costs_no_request(self):
        backend = RawBackend(self)
        proxy = Proxy(self, OPEN.format(url=backend.url))
        with socket.create_connection(("127.0.0.1", proxy.port), timeout=20) as connection, connection.makefile("rb") as reader:
            for number in range(1, 21):
                connection.sendall(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi")
                self.assertEqual(Response(reader).status, 200)
                for kept in list(backend.open):
                    kept.shutdown(socket.SHUT_RDWR)
                with backend.lock:
                    self.assertTrue(backend.lock.wait_for(lambda: not backend.open, timeout=20))
                self.assertEqual(backend.connections, number)

    def test_requests_beyond_the_connections_wait_and_then_get_503(self):
        release = threading.Event()
        self.addCleanup(release.set)
        backend = RawBackend(self, lambda request: (release.wait(20), b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")[1])
        # One event loop, because the bound is per loop.
        config = POLICY.replace("threads: 2", "threads: 1").format(more=OPEN.format(url=backend.url))
        proxy = Proxy(self, config + "proxy: {backend_connections: 1, connect_timeout: 300ms}\n")
        with socket.create_connection(("127.0.0.1", proxy.port), timeout=20) as first, first.makefile("rb") as reader:
            first.sendall(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            backend.wait_for(1)
            began = time.monotonic()
            answer = proxy.get("/")
            self.assertEqual((answer.status, json.loads(answer.body)["error"], answer.headers["retry-after"]), (503, "overloaded", "1"))
            self.assertGreaterEqual(time.monotonic() - began, 0.3)
            release.set()
            self.assertEqual(Response(reader).status, 200)
        self.assertIn(f'weir_backend_up{{backend="{backend.url}"}} 1\n', proxy.metrics(), "a busy backend is not a broken one")


if __name__ == "__main__":
    unittest.main()
