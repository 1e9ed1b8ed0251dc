"""Bodies of every size and pace through the edge proxy, and clients and backends that break off: nothing is kept of them.
script/bench proxy_bodies streams 5 GB."""

import os
import re
import socket
import subprocess
import threading
import time
import unittest

from proxying import OPEN, POLICY, Proxy, RawBackend, Response, all_bytes, exchange
from redis_servers import until

SIZES = (0, 1, 65535, 65536, 65537, 300_000)
CHUNKED = b"Transfer-Encoding: chunked\r\n"


def content_of(request):
    """The body of a request, without its chunks."""
    head, body = request.split(b"\r\n\r\n", 1)
    if CHUNKED.strip() not in head:
        return body
    content = b""
    while size := int(body.split(b"\r\n", 1)[0], 16):
        start = body.index(b"\r\n") + 2
        content += body[start:start + size]
        body = body[start + size + 2:]
    return content


def chunks(content, size):
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece)
                    for piece in (content[i:i + size] for i in range(0, len(content), size))) + b"0\r\n\r\n"


def echo(request):
    """Sends the body back: by length, in chunks for /chunked, until the end of the connection for /close."""
    content = content_of(request)
    if b" /chunked " in request[:40]:
        return b"HTTP/1.1 200 OK\r\n" + CHUNKED + b"\r\n" + chunks(content, 50_000)
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(content), content)


class Sizes(unittest.TestCase):
    def setUp(self):
        self.backend = RawBackend(self, echo)
        self.proxy = Proxy(self, OPEN.format(url=self.backend.url))

    def test_by_length_and_in_chunks_both_ways_and_over_http_2(self):
        for size in SIZES:
            body = bytes(i % 251 for i in range(size))
            for path in ("/length", "/chunked"):
                head = f"POST {path} HTTP/1.1\r\nHost: h\r\n".encode()
                by_length = exchange(self.proxy.port, head + b"Content-Length: %d\r\n\r\n" % size + body)
                in_chunks = exchange(self.proxy.port, head + CHUNKED + b"\r\n" + chunks(body, 30_000))
                over_http2 = subprocess.run(["curl", "-sS", "--http2-prior-knowledge", "--data-binary", "@-",
                                             f"http://127.0.0.1:{self.proxy.port}{path}"], input=body, capture_output=True, timeout=60,
                                            check=True).stdout
                for way, got in (("length", by_length.body), ("chunks", in_chunks.body), ("HTTP/2", over_http2)):
                    self.assertTrue(got == body, (size, path, way, len(got)))
                self.assertEqual((by_length.status, in_chunks.status), (200, 200))

    def test_a_body_passes_piece_by_piece_in_both_directions(self):
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        seen_there, seen_here = threading.Semaphore(0), threading.Semaphore(0)

        def serve():
            connection, _ = listener.accept()
            with connection, connection.makefile("rb") as reader:
                while reader.readline() != b"\r\n":
                    pass
                for _ in range(5):
                    assert reader.readline() == b"1\r\n" and reader.read(3) == b"x\r\n"
                    seen_there.release()  # the client sends the next one only now
                connection.sendall(b"HTTP/1.1 200 OK\r\n" + CHUNKED + b"\r\n")
                for _ in range(5):
                    connection.sendall(b"1\r\ny\r\n")
                    seen_here.acquire(timeout=20)  # the client has it
                reader.readline()
                connection.sendall(b"0\r\n\r\n")
        thread = threading.Thread(target=serve)
        thread.start()
        self.addCleanup(thread.join)
        proxy = Proxy(self, OPEN.format(url=f"http://127.0.0.1:{listener.getsockname()[1]}") + "proxy: {body_timeout: 500ms}\n")
        with socket.create_connection(("127.0.0.1", proxy.port), timeout=20) as connection, connection.makefile("rb") as reader:
            connection.sendall(b"POST / HTTP/1.1\r\nHost: h\r\n" + CHUNKED + b"\r\n")
            for _ in range(5):
                connection.sendall(b"1\r\nx\r\n")
                self.assertTrue(seen_there.acquire(timeout=20))
            while reader.readline() != b"\r\n":
                pass
            for _ in range(5):
                self.assertEqual((reader.readline(), reader.read(3)), (b"1\r\n", b"y\r\n"))
                seen_here.release()
            time.sleep(2)  # the response has begun: body_timeout is over
            connection.sendall(b"0\r\n\r\n")
            self.assertEqual(reader.readline(), b"0\r\n")


def abandon(connection):
    """Closes with a reset."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    connection.close()


class BreaksOff(unittest.TestCase):
    """Clients and backends that end in the middle of things, again and again."""

    ROUNDS = 30

    def setUp(self):
        self.backend = RawBackend(self, self.respond)
        # One event loop, which keeps at most one connection for the next request: that of a client who left before it was open.
        self.proxy = Proxy(self, POLICY.replace("threads: 2", "threads: 1").format(more=OPEN.format(url=self.backend.url)))

    def respond(self, request):
        path = request.split(b" ")[1]
        if path == b"/up":
            return b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nhello"
        if path == b"/large":
            return b"HTTP/1.1 200 OK\r\nContent-Length: 2000000\r\n\r\n" + bytes(2_000_000)
        return [b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart"] if path == b"/cut" else None

    def round(self):
        connect = self.connect
        upload = b"POST /never HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n" + bytes(100_000)
        abandon(connect(b"GET /large HTTP/1.1\r\nHost: h\r\n\r\n", 100))
        abandon(connect(b"GET /up HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n", 100))
        abandon(connect(upload, 0))
        abandon(connect(b"GET / HTTP/1.1\r\nHos", 0))
        abandon(connect(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 9))
        self.assertIn(b" 502 ", all_bytes(self.proxy.port, b"GET /close HTTP/1.1\r\nHost: h\r\n\r\n"))
        self.assertIn(b"part", all_bytes(self.proxy.port, b"GET /cut HTTP/1.1\r\nHost: h\r\n\r\n"))

    def connect(self, request, at_least):
        connection = socket.create_connection(("127.0.0.1", self.proxy.port), timeout=20)
        connection.sendall(request)
        got = 0
        while got < at_least:
            got += len(connection.recv(65536))
        return connection

    def at_rest(self):
        """Nothing is in progress; returns how many descriptors are open."""
        until("no client is connected", lambda: 'weir_connections{speak="proxy"} 0\n' in self.proxy.metrics())
        self.proxy.wait_for_metric("weir_proxy_active 0\n")
        until("no call goes on", lambda: len(self.backend.open) <= 1)
        return len(os.listdir(f"/proc/{self.proxy.process.pid}/fd"))

    def test_nothing_is_left_of_them(self):
        for _ in range(5):
            self.round()
        descriptors, resident = self.at_rest(), self.proxy.resident_bytes()
        for _ in range(self.ROUNDS):
            self.round()
        self.assertLessEqual(self.at_rest(), descriptors + 1)
        if not self.proxy.is_sanitized():
            self.assertLess(self.proxy.resident_bytes() - resident, 4 << 20)
        sent = len([request for request in self.backend.requests if request.startswith((b"GET /close", b"GET /cut"))])
        self.assertEqual(sent, 2 * (5 + self.ROUNDS), "each was sent once")
        self.assertIn("weir_proxy_retries_total 0\n", self.proxy.metrics())


if __name__ == "__main__":
    unittest.main()
