"""A proxy under test between a raw client and a raw backend: every byte on both sides is the test's own."""

import errno
import re
import socket
import threading
import time

from serving import Server


class RawBackend:
    """Records each request as bytes and answers with `respond(request)`: bytes, [bytes] to close behind them, or None to close
    without a response. `tls`: the context of a server; then `agreed` has the protocol of each connection, by ALPN."""

    def __init__(self, test, respond=None, tls=None, port=0):
        self.tls = tls
        self.agreed = []
        self.respond = respond or (lambda request: b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        self.requests = []
        self.connections = 0
        self.lock = threading.Condition()
        self.listener = socket.create_server(("127.0.0.1", port))
        self.port = self.listener.getsockname()[1]
        self.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{self.port}"
        self.open = set()
        self.threads = [threading.Thread(target=self.accept)]
        self.threads[0].start()
        test.addCleanup(self.end)

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with self.lock:
                self.connections += 1
                self.open.add(connection)
            thread = threading.Thread(target=self.serve, args=(connection,))
            self.threads.append(thread)
            thread.start()

    def serve(self, accepted):
        connection = accepted
        if self.tls is not None:
            connection = self.tls.wrap_socket(accepted, server_side=True, do_handshake_on_connect=False)
            with self.lock:
                self.open.discard(accepted)
                self.open.add(connection)
        reader = connection.makefile("rb")
        try:
            if self.tls is not None:
                connection.do_handshake()
                self.agreed.append(connection.selected_alpn_protocol())
            while request := read_request(reader):
                with self.lock:
                    self.requests.append(request)
                    self.lock.notify_all()
                answer = self.respond(request)
                if answer is None:
                    break
                connection.sendall(answer[0] if isinstance(answer, list) else answer)
                if isinstance(answer, list):
                    break
        except OSError:
            pass
        finally:
            with self.lock:
                self.open.discard(connection)
                self.lock.notify_all()
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            reader.close()
            connection.close()

    def wait_for(self, count):
        with self.lock:
            assert self.lock.wait_for(lambda: len(self.requests) >= count, timeout=20), self.requests
        return self.requests

    def end(self):
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()
        with self.lock:
            for connection in self.open:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
        for thread in self.threads:
            thread.join(timeout=20)


def read_request(reader):
    """The bytes of one request: head, and a body by Content-Length or chunks. Nothing if it ends before that."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        line = reader.readline()
        if not line:
            return b""
        head += line
    length = re.search(rb"\r\ncontent-length: *(\d+)", head, re.I)
    body = reader.read(int(length[1])) if length else b""
    if length and len(body) < int(length[1]):
        return b""
    if re.search(rb"\r\ntransfer-encoding: *chunked", head, re.I):
        while True:
            size = reader.readline()
            if not size:
                return b""
            body += size
            if int(size.split(b";")[0], 16) == 0:
                break
            body += reader.read(int(size.split(b";")[0], 16) + 2)
        while (line := reader.readline()) not in (b"\r\n", b""):
            body += line
        body += b"\r\n"
    return head + body


class Response:
    """One response, read from a socket."""

    def __init__(self, reader, to_head=False):
        self.raw_head = b""
        line = reader.readline()
        self.raw_head += line
        self.status = int(line.split()[1]) if line else 0
        self.lines = []
        while (line := reader.readline()) not in (b"\r\n", b""):
            self.raw_head += line
            name, value = line.decode("latin-1").rstrip("\r\n").split(":", 1)
            self.lines.append((name.lower(), value.strip()))
        self.headers = dict(self.lines)
        self.body = b""
        self.trailers = {}
        if to_head or self.status in (0, 204, 304) or 100 <= self.status < 200:
            return
        if "content-length" in self.headers:
            self.body = reader.read(int(self.headers["content-length"]))
        elif self.headers.get("transfer-encoding") == "chunked":
            while size := int(reader.readline().split(b";")[0] or b"0", 16):
                self.body += reader.read(size)
                reader.readline()
            while (line := reader.readline()) not in (b"\r\n", b""):
                name, value = line.decode().rstrip("\r\n").split(":", 1)
                self.trailers[name.lower()] = value.strip()
        else:
            self.body = reader.read()


def exchange(port, request, to_head=False):
    """Sends the bytes and reads one response."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(request)
        with connection.makefile("rb") as reader:
            return Response(reader, to_head)


def all_bytes(port, request):
    """Sends the bytes, then our end, and reads until the server's. The server may close before it has read everything."""
    answer = b""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        try:
            connection.sendall(request)
            connection.shutdown(socket.SHUT_WR)
        except OSError as error:
            if error.errno not in (errno.EPIPE, errno.ECONNRESET, errno.ENOTCONN):
                raise
        try:
            while piece := connection.recv(65536):
                answer += piece
        except ConnectionResetError:
            pass
    return answer


POLICY = """
listen:
  - {{address: "127.0.0.1:0", speak: proxy}}
  - {{address: "127.0.0.1:0", speak: admin}}
threads: 2
memory: {{max_buckets: 100000}}
{more}
"""


OPEN = """
limits: {{}}
backend: {url}
"""
ONE_AN_HOUR = """
limits:
  per-ip: {{key: ip, burst: {burst}, count: {burst}, period: 1h}}
backend: {url}
"""


def head_of(request):
    return request.split(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")


class Proxy(Server):
    """`weir serve` as a proxy. `more` is the rest of its configuration, with the backend."""

    def __init__(self, test, more, **options):
        super().__init__(test, POLICY.format(more=more) if "listen:" not in more else more, **options)

    @property
    def port(self):
        return self.ports["proxy"]

    def get(self, target="/", headers=(), method="GET", body=b"", host="h"):
        """One request on a connection of its own."""
        if isinstance(headers, dict):
            headers = headers.items()
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers)
        length = f"Content-Length: {len(body)}\r\n" if body or method in ("POST", "PUT") else ""
        request = f"{method} {target} HTTP/1.1\r\nHost: {host}\r\n{lines}{length}\r\n".encode("latin-1") + body
        return exchange(self.port, request, method == "HEAD")

    def is_sanitized(self):
        """Built with AddressSanitizer: its memory says little."""
        with open(f"/proc/{self.process.pid}/maps", encoding="utf-8") as maps:
            return "libasan" in maps.read()

    def metric(self, line):
        return line in self.metrics()

    def wait_for_metric(self, line):
        while not self.metric(line):
            time.sleep(0.01)

    def metrics(self):
        return super().get("admin", "/metrics")

    def ready(self):
        """The status of /readyz."""
        return exchange(self.ports["admin"], b"GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n").status
