"""HTTP/2 into the proxy: fields that HTTP/1 cannot carry are refused, and what an HTTP/1 backend gets is exact."""

import re
import socket
import struct
import subprocess
import unittest

from proxying import ONE_AN_HOUR, OPEN, Proxy, RawBackend, head_of

DATA, HEADERS, RST_STREAM, SETTINGS, GOAWAY = 0, 1, 3, 4, 7
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


# RFC 9113: pseudo-fields and fields that must not cross, each with its one answer.
REFUSED = [
    ("8.3: a pseudo-field that is not defined", REQUEST + ((":evil", "1"),)),
    ("8.3: a pseudo-field of responses", REQUEST + ((":status", "200"),)),
    ("8.3: twice", REQUEST + ((":path", "/evil"),)),
    ("8.3: behind a field", REQUEST[:3] + (("x", "y"), (":path", "/"))),
    ("8.3.1: no path", REQUEST[:3]),
    ("8.3.1: an empty path", REQUEST[:3] + ((":path", ""),)),
    ("8.3.1: no method", REQUEST[1:]),
    ("8.3.1: no scheme", (REQUEST[0],) + REQUEST[2:]),
    ("8.3.1: authority and host differ", REQUEST + (("host", "evil"),)),
    ("8.2.1: an upper-case name", REQUEST + (("X-Evil", "1"),)),
    ("8.2.1: CRLF in a value", REQUEST + (("x", "a\r\nevil: 1"),)),
    ("8.2.1: LF in a value", REQUEST + (("x", "a\nevil: 1"),)),
    ("8.2.1: NUL in a value", REQUEST + (("x", "a\0b"),)),
    ("8.2.1: CRLF in a name", REQUEST + (("x\r\nevil", "1"),)),
    ("8.2.1: a space in a name", REQUEST + (("x evil", "1"),)),
    ("8.2.1: a colon in a name", REQUEST + (("x:evil", "1"),)),
    ("8.2.1: CRLF in the path", REQUEST[:3] + ((":path", "/ HTTP/1.1\r\nevil: 1\r\n\r\n"),)),
    ("8.2.1: a space in the path", REQUEST[:3] + ((":path", "/ evil"),)),
    ("8.2.1: CRLF in the authority", (REQUEST[0], REQUEST[1], (":authority", "h\r\nevil: 1"), REQUEST[3])),
    ("8.2.1: a space in the authority", (REQUEST[0], REQUEST[1], (":authority", "h evil"), REQUEST[3])),
    ("8.2.1: a space in the method", ((":method", "GET /evil"),) + REQUEST[1:]),
    ("8.2.1: CRLF in the method", ((":method", "GET / HTTP/1.1\r\nevil: 1\r\n\r\nGET"),) + REQUEST[1:]),
    ("8.2.2: connection", REQUEST + (("connection", "evil"),)),
    ("8.2.2: transfer-encoding", REQUEST + (("transfer-encoding", "chunked"),)),
    ("8.2.2: upgrade", REQUEST + (("upgrade", "evil"),)),
    ("8.2.2: keep-alive", REQUEST + (("keep-alive", "1"),)),
    ("8.2.2: proxy-connection", REQUEST + (("proxy-connection", "close"),)),
    ("8.2.2: te other than trailers", REQUEST + (("te", "gzip"),)),
    ("8.1.1: a length that differs from the content", REQUEST + (("content-length", "5"),)),
    ("8.5: CONNECT", ((":method", "CONNECT"), (":authority", "h:443"))),
]


class Http2(unittest.TestCase):
    def setUp(self):
        self.backend = RawBackend(self)
        self.proxy = Proxy(self, OPEN.format(url=self.backend.url))

    def test_what_http_1_cannot_carry_is_refused(self):
        for clause, fields in REFUSED:
            with self.subTest(clause):
                became, _ = send(self.proxy.port, fields)
                self.assertIn(became, ("reset", "goaway", 400, 405), fields)
        self.assertEqual(self.backend.requests, [])

    def test_a_request_reaches_an_http_1_backend_byte_for_byte(self):
        fields = (REQUEST[0], REQUEST[1], (":authority", "a.example:81"), (":path", "/p?q")) + (
            ("accept", "*/*"), ("cookie", "a=1"), ("cookie", "b=2"), ("te", "trailers"), ("x-request-id", "id"))
        self.assertEqual(send(self.proxy.port, fields), (200, b"ok"))
        self.assertEqual(self.backend.requests[0].split(b"\r\n\r\n")[1], b"")
        self.assertEqual(head_of(self.backend.requests[0]), [
            "GET /p?q HTTP/1.1", "Host: a.example:81", "accept: */*", "cookie: a=1; b=2", "X-Forwarded-For: 127.0.0.1",
            "X-Forwarded-Proto: http", "X-Forwarded-Host: a.example:81", "X-Request-Id: id", "TE: trailers"])

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

    def test_curl_speaks_http_2_to_it(self):
        done = subprocess.run(["curl", "-sS", "--http2-prior-knowledge", "-i", "-d", "x" * 100000, f"http://127.0.0.1:{self.proxy.port}/"],
                              capture_output=True, timeout=60, check=True)
        self.assertTrue(done.stdout.startswith(b"HTTP/2 200"), done.stdout)
        self.assertTrue(self.backend.requests[0].endswith(b"x" * 1000))


if __name__ == "__main__":
    unittest.main()
