"""HTTP/2 into the proxy: fields that HTTP/1 cannot carry are refused, and what an HTTP/1 backend gets is exact."""

import re
import shutil
import socket
import struct
import subprocess
import unittest

from nginx import Nginx
from proxying import ONE_AN_HOUR, OPEN, Proxy, RawBackend, head_of

DATA, HEADERS, RST_STREAM, SETTINGS, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 7, 8
REQUEST = ((":method", "GET"), (":scheme", "http"), (":authority", "h"), (":path", "/"))


def frame(kind, flags, stream, payload):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def text(value):
    raw = value if isinstance(value, bytes) else value.encode("latin-1")
    if len(raw) < 127:
        return bytes([len(raw)]) + raw
    rest, out = len(raw) - 127, b"\x7f"
    while rest >= 128:
        out += bytes([rest % 128 + 128])
        rest //= 128
    return out + bytes([rest]) + raw


def block(fields):
    """HPACK literals without indexing or compression (RFC 7541 6.2.2)."""
    return b"".join(b"\0" + text(name) + text(value) for name, value in fields)


def send(port, fields, body=b"", trailers=()):
    """One request on a connection of its own. Returns what became of it: a status, "reset" or "goaway", and its body."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        last = 0 if body or trailers else 1
        bytes_out = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0, b"") + frame(HEADERS, 4 | last, 1, block(fields))
        if body:
            bytes_out += frame(DATA, 0 if trailers else 1, 1, body)
        if trailers:
            bytes_out += frame(HEADERS, 5, 1, block(trailers))
        connection.sendall(bytes_out)
        reader = connection.makefile("rb")
        status, content = None, b""
        while head := reader.read(9):
            size, kind, flags, stream = int.from_bytes(head[:3], "big"), head[3], head[4], int.from_bytes(head[5:], "big")
            payload = reader.read(size)
            if kind == GOAWAY:
                return "goaway", content
            if stream != 1:
                continue
            if kind == RST_STREAM and status is None:
                return "reset", content
            if kind == HEADERS and status is None:
                status = status_of(payload)
            if kind == DATA:
                content += payload
            if kind == RST_STREAM or flags & 1:
                return status, content
        return "closed", content


def send_form(port, content, ends):
    """Sends a form without a length, what fits into the first window and then the rest. Returns the status."""
    fields = ((":method", "POST"),) + REQUEST[1:] + (("content-type", "application/x-www-form-urlencoded"),)
    rest = b"".join(frame(DATA, 0, 1, content[i:i + 16000]) for i in range(65535, len(content), 16000))
    if ends:
        rest += frame(DATA, 1, 1, b"")
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection, connection.makefile("rb") as reader:
        first = content[:65535]
        connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0, b"") + frame(HEADERS, 4, 1, block(fields))
                           + b"".join(frame(DATA, 0, 1, first[i:i + 16000]) for i in range(0, len(first), 16000)))
        while head := reader.read(9):
            payload, kind, stream = reader.read(int.from_bytes(head[:3], "big")), head[3], int.from_bytes(head[5:], "big")
            if kind == WINDOW_UPDATE and stream == 1:
                connection.sendall(rest)
                rest = b""
            if kind == HEADERS and stream == 1:
                return status_of(payload)
    return "closed"


def status_of(payload):
    """The status from a header block that begins with it, as nghttp2 writes it."""
    indexed = {0x88: 200, 0x89: 204, 0x8A: 206, 0x8B: 304, 0x8C: 400, 0x8D: 404, 0x8E: 500}
    while payload[0] & 0xE0 == 0x20:  # a change of the table's size
        payload = payload[1:]
    if payload[0] in indexed:
        return indexed[payload[0]]
    value = payload[2:2 + (payload[1] & 0x7F)]
    if not payload[1] & 0x80:
        return int(value)
    # Huffman codes of digits (RFC 7541 Appendix B): 0-2 have five bits, 3-9 six.
    bits = "".join(f"{byte:08b}" for byte in value)
    digits = ""
    while len(digits) < 3:
        if (five := int(bits[:5], 2)) < 3:
            digits, bits = digits + str(five), bits[5:]
        else:
            digits, bits = digits + str(int(bits[:6], 2) - 0b011001 + 3), bits[6:]
    return int(digits)


def request(*fields, **pseudo):
    """A GET with these pseudo-fields changed (None: left out) and these fields behind them."""
    named = [(name, pseudo.get(name[1:], value)) for name, value in REQUEST]
    return tuple(field for field in named if field[1] is not None) + fields


def gets(*lines, method="GET", path="/"):
    """What the HTTP/1 backend gets, but for X-Request-Id."""
    own = ["X-Forwarded-For: 127.0.0.1", "X-Forwarded-Proto: http", "X-Forwarded-Host: h"]
    before = [line for line in lines if not line.startswith("Content-Length:")]
    return [f"{method} {path} HTTP/1.1", "Host: h", *before, *own, *(line for line in lines if line not in before)]


SKIPS = "nginx leaves out connection-specific fields"
# class -> rows (clause of RFC 9113, fields, what becomes of it[, what nginx does, reason]): "reset", a status, or, if it is forwarded,
# what the backend gets. nginx answers 400 where Weir resets the stream: both refuse.
ROWS = {
    "pseudo-fields": [
        ("8.3: one that is not defined", request((":evil", "1")), "reset"),
        ("8.3: one of responses", request((":status", "200")), "reset"),
        ("8.3: twice", request((":path", "/evil")), "reset"),
        ("8.3: behind a field", REQUEST[:3] + (("x", "y"), (":path", "/")), "reset", 200, "nginx takes them in any order"),
        ("8.3.1: no path", request(path=None), "reset"),
        ("8.3.1: an empty path", request(path=""), "reset"),
        ("8.3.1: a path without its slash", request(path="evil"), "reset"),
        ("8.3.1: a path that is a URL", request(path="http://evil/"), "reset"),
        ("8.3.1: * is for OPTIONS", request(path="*"), "reset"),
        ("8.3.1: OPTIONS *", request(method="OPTIONS", path="*"), gets(method="OPTIONS", path="*"), 400, "nginx does not know *"),
        ("8.3.1: a fragment", request(path="/a#b"), 400, 200, "nginx drops the fragment"),
        ("8.3.1: a space in the path", request(path="/ evil"), "reset"),
        ("8.2.1: CRLF in the path", request(path="/ HTTP/1.1\r\nevil: 1\r\n\r\n"), "reset"),
        ("8.3.1: no method", request(method=None), "reset"),
        ("8.3.1: a space in the method", request(method="GET /evil"), "reset"),
        ("8.2.1: CRLF in the method", request(method="GET / HTTP/1.1\r\nevil: 1\r\n\r\nGET"), "reset"),
        ("8.3.1: no scheme", request(scheme=None), "reset"),
        ("8.3.1: another scheme", request(scheme="ftp"), 400, 200, "nginx accepts any scheme"),
        ("8.3.1: a scheme that is a URL", request(scheme="http://evil/?"), "reset"),
        ("8.3.1: no authority and no host", request(authority=None), "reset"),
        ("8.3.1: a host alone", request(("host", "h"), authority=None), gets()),
        ("8.3.1: authority and host are the same", request(("host", "h")), gets(), 400, "nginx refuses every host beside it"),
        ("8.3.1: authority and host differ", request(("host", "evil")), "reset"),
        ("8.3.1: two hosts", request(("host", "h"), ("host", "h"), authority=None), "reset"),
        ("8.3.1: user info in the authority", request(authority="u@h"), 400, 200, "nginx passes user info in Host on"),
        ("8.3.1: a space in the authority", request(authority="h evil"), "reset"),
        ("8.2.1: CRLF in the authority", request(authority="h\r\nevil: 1"), "reset"),
        ("8.5: CONNECT", ((":method", "CONNECT"), (":authority", "h:443")), 405),
        ("RFC 8441 3: :protocol was not offered", request((":protocol", "websocket"), method="CONNECT"), "reset"),
        ("RFC 9110 9.3.8: TRACE", request(method="TRACE"), 405),
    ],
    "names and values": [
        ("8.2.1: an upper-case name", request(("X-Evil", "1")), "reset"),
        ("8.2.1: an empty name", request(("", "evil")), "reset"),
        ("8.2.1: CRLF in a name", request(("x\r\nevil", "1")), "reset"),
        ("8.2.1: a space in a name", request(("x evil", "1")), "reset"),
        ("8.2.1: a colon in a name", request(("x:evil", "1")), "reset"),
        ("8.2.1: CRLF in a value", request(("x", "a\r\nevil: 1")), "reset"),
        ("8.2.1: LF in a value", request(("x", "a\nevil: 1")), "reset"),
        ("8.2.1: NUL in a value", request(("x", "a\0b")), "reset"),
        ("8.2.1: a space before a value", request(("x", " a")), "reset", 200, "nginx passes it on"),
        ("8.2.1: a tab behind a value", request(("x", "a\t")), "reset", 200, "nginx passes it on"),
        ("RFC 9110 5.5: vertical tab in a value", request(("x", "a\x0bb")), "reset", 200, "nginx passes it on"),
        ("8.1.1: a length that differs from the content", request(("content-length", "5")), "reset"),
        ("8.1.1: two lengths", request(("content-length", "0"), ("content-length", "0")), "reset"),
        ("8.1.1: a length with a sign", request(("content-length", "+0")), "reset"),
        ("8.1.1: a length of 0", request(("content-length", "0")), gets("Content-Length: 0")),
    ],
    "connection-specific fields": [
        ("8.2.2: connection", request(("connection", "evil")), "reset", 200, SKIPS),
        ("8.2.2: connection that names another", request(("connection", "x-a"), ("x-a", "1")), "reset", 200, SKIPS),
        ("8.2.2: transfer-encoding", request(("transfer-encoding", "chunked")), "reset", 200, SKIPS),
        ("8.2.2: upgrade", request(("upgrade", "evil")), "reset", 200, SKIPS),
        ("8.2.2: keep-alive", request(("keep-alive", "1")), "reset", 200, SKIPS),
        ("8.2.2: proxy-connection", request(("proxy-connection", "close")), "reset", 200, "nginx passes it on"),
        ("8.2.2: te other than trailers", request(("te", "gzip")), "reset", 200, SKIPS),
        ("8.2.2: te with more than trailers", request(("te", "trailers, gzip")), "reset", 200, SKIPS),
        ("8.2.2: te: trailers", request(("te", "trailers")), gets()),
        ("3.1: http2-settings", request(("http2-settings", "AAMAAABk")), gets()),
        ("RFC 9110 11.7.1: proxy-authorization is for the proxy", request(("proxy-authorization", "evil")), gets()),
    ],
}


class Http2(unittest.TestCase):
    def setUp(self):
        self.backend = RawBackend(self)
        self.proxy = Proxy(self, OPEN.format(url=self.backend.url))

    def test_every_row_has_its_one_answer(self):
        for name, rows in ROWS.items():
            self.assertGreaterEqual(len(rows), 8, name)
            for clause, fields, expected, *_ in rows:
                with self.subTest(name, clause=clause):
                    self.backend.requests.clear()
                    became, _ = send(self.proxy.port, fields)
                    if not isinstance(expected, list):
                        self.assertEqual((became, self.backend.requests), (expected, []))
                        continue
                    self.assertEqual(became, 200)
                    head = head_of(self.backend.requests[0])
                    self.assertEqual([line for line in head if not line.startswith("X-Request-Id: ")], expected)
                    self.assertTrue(self.backend.requests[0].endswith(b"\r\n\r\n"), "and nothing behind the head")

    @unittest.skipUnless(shutil.which("nginx"), "nginx is not installed")
    def test_nginx_answers_the_same_except_where_a_row_says_why(self):
        forward = f"proxy_pass {self.backend.url}; proxy_http_version 1.1; proxy_set_header Host $http_host;"
        port = Nginx(self, f"location / {{ {forward} }}", "http2").port
        for name, rows in ROWS.items():
            for clause, fields, expected, *differs in rows:
                with self.subTest(name, clause=clause):
                    forwarded = differs[0] == 200 if differs else isinstance(expected, list)
                    self.assertEqual(send(port, fields)[0] == 200, forwarded)

    def test_a_request_reaches_an_http_1_backend_byte_for_byte(self):
        fields = (REQUEST[0], REQUEST[1], (":authority", "a.example:81"), (":path", "/p?q")) + (
            ("accept", "*/*"), ("cookie", "a=1"), ("cookie", "b=2"), ("te", "trailers"), ("x-request-id", "id"))
        self.assertEqual(send(self.proxy.port, fields), (200, b"ok"))
        self.assertEqual(self.backend.requests[0].split(b"\r\n\r\n")[1], b"")
        self.assertEqual(head_of(self.backend.requests[0]), [
            "GET /p?q HTTP/1.1", "Host: a.example:81", "accept: */*", "cookie: a=1; b=2", "X-Forwarded-For: 127.0.0.1",
            "X-Forwarded-Proto: http", "X-Forwarded-Host: a.example:81", "X-Request-Id: id"])

    def test_a_body_of_unknown_length_is_chunked_and_trailers_follow(self):
        fields = ((":method", "POST"),) + REQUEST[1:]
        self.assertEqual(send(self.proxy.port, fields, b"hello", (("x-t", "v"),)), (200, b"ok"))
        self.assertIn(b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nx-t: v\r\n\r\n", self.backend.requests[0])
        self.assertEqual(send(self.proxy.port, fields + (("content-length", "5"),), b"hello"), (200, b"ok"))
        self.assertTrue(self.backend.requests[1].endswith(b"Content-Length: 5\r\n\r\nhello"), self.backend.requests[1])

    def test_h2load_loses_no_request_and_denials_are_429(self):
        proxy = Proxy(self, ONE_AN_HOUR.format(url=self.backend.url, burst=1500))
        for options, version in (((), "h2c"), (("--h1",), "http/1.1")):
            done = subprocess.run(["h2load", "-n", "1000", "-c", "8", "-m", "10", *options, f"http://127.0.0.1:{proxy.port}/"],
                                  capture_output=True, text=True, timeout=120, check=True)
            self.assertIn(f"Application protocol: {version}", done.stdout)
            self.assertIn("1000 done", done.stdout)
            self.assertIn("0 errored, 0 timeout", done.stdout)
            codes = [int(n) for n in re.search(r"status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx", done.stdout).groups()]
            self.assertEqual(codes, [1000, 0, 0, 0] if version == "h2c" else [500, 0, 500, 0])
        self.assertEqual(len(self.backend.requests), 1500)

    def test_a_form_without_a_length_is_too_large_or_late_but_never_waits_forever(self):
        proxy = Proxy(self, f"""
limits: {{email: {{key: form:email, rate: 5/h}}}}
backend: {self.backend.url}
proxy: {{body_timeout: 1s}}
""")
        for content, ends, status in ((b"email=a&x=" + b"y" * 65526, True, 200), (b"email=b&x=" + b"y" * 65527, True, 413),
                                      (b"email=c&x=" + b"y" * 70000, False, 413), (b"email=d", False, 408)):
            self.assertEqual(send_form(proxy.port, content, ends), status, content[:10])

    def test_curl_speaks_http_2_to_it(self):
        done = subprocess.run(["curl", "-sS", "--http2-prior-knowledge", "-i", "-d", "x" * 100000, f"http://127.0.0.1:{self.proxy.port}/"],
                              capture_output=True, timeout=60, check=True)
        self.assertTrue(done.stdout.startswith(b"HTTP/2 200"), done.stdout)
        self.assertTrue(self.backend.requests[0].endswith(b"x" * 1000))


if __name__ == "__main__":
    unittest.main()
