"""Requests that two servers could read differently: each has one correct answer, and none reaches the backend in another
form. The same bytes go to nginx, and where it answers otherwise the row says why. Those of HTTP/2 are in proxy_http2_test.py."""

import re
import shutil
import socket
import unittest

from nginx import Nginx
from proxying import Proxy, RawBackend, all_bytes

HOST = b"Host: h\r\n"


def get(fields=b"", line=b"GET / HTTP/1.1\r\n", host=HOST):
    return line + host + fields + b"\r\n"


def post(fields, body=b"", line=b"POST / HTTP/1.1\r\n"):
    return line + HOST + fields + b"\r\n" + body


def chunked(body):
    return post(b"Transfer-Encoding: chunked\r\n", body)


def gets(line=b"GET / HTTP/1.1", host=b"h", fields=b""):
    """What the backend gets, byte for byte, but for X-Request-Id, whose value is random."""
    return (line + b"\r\nHost: " + host + b"\r\n" + fields + b"X-Forwarded-For: 127.0.0.1\r\nX-Forwarded-Proto: http\r\n"
            b"X-Forwarded-Host: " + host + b"\r\n\r\n")


def with_body(content):
    """By length if the proxy had all of it when it called the backend, else in a chunk."""
    head = gets(b"POST / HTTP/1.1")[:-2]
    return (head + b"Content-Length: %d\r\n\r\n" % len(content) + content,
            head + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(content), content))


END = b"0\r\n\r\n"

# class -> rows (clause, bytes, status[, gets if it is 200][, nginx status, reason])
ROWS = {
    "Content-Length": [
        ("RFC 9112 6.3: a length", post(b"Content-Length: 2\r\n", b"ab"), 200, with_body(b"ab")),
        ("RFC 9112 6.3(5): two lengths that differ", post(b"Content-Length: 2\r\nContent-Length: 3\r\n", b"abc"), 400),
        ("RFC 9112 6.3(5): two equal lengths are refused too", post(b"Content-Length: 2\r\nContent-Length: 2\r\n", b"ab"), 400),
        ("RFC 9110 8.6: a list", post(b"Content-Length: 2, 2\r\n", b"ab"), 400),
        ("RFC 9110 8.6: a sign", post(b"Content-Length: +2\r\n", b"ab"), 400),
        ("RFC 9110 8.6: negative", post(b"Content-Length: -2\r\n", b"ab"), 400),
        ("RFC 9110 8.6: hexadecimal", post(b"Content-Length: 0x2\r\n", b"ab"), 400),
        ("RFC 9110 8.6: empty", post(b"Content-Length:\r\n", b"ab"), 400),
        ("RFC 9110 8.6: letters behind digits", post(b"Content-Length: 2a\r\n", b"ab"), 400),
        ("RFC 9110 8.6: a space inside", post(b"Content-Length: 2 2\r\n", b"ab"), 400),
        ("RFC 9112 6.1: with chunked", post(b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n", END), 400),
        ("RFC 9112 6.1: chunked with a length behind it", post(b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n", END), 400),
    ],
    "Transfer-Encoding": [
        ("RFC 9112 7.1: chunked", chunked(b"2\r\nab\r\n" + END), 200, with_body(b"ab")),
        ("RFC 9112 6.1: names have any case", post(b"transfer-encoding: CHUNKED\r\n", b"2\r\nab\r\n" + END), 200,
         with_body(b"ab")),
        ("RFC 9112 6.1: gzip", post(b"Transfer-Encoding: gzip\r\n", END), 501),
        ("RFC 9112 6.1: gzip, chunked", post(b"Transfer-Encoding: gzip, chunked\r\n", END), 501),
        ("RFC 9112 6.1: chunked, chunked", post(b"Transfer-Encoding: chunked, chunked\r\n", END), 501),
        ("RFC 9112 6.1: two fields", post(b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", END), 400),
        ("RFC 9112 6.1: identity", post(b"Transfer-Encoding: identity\r\n", END), 501),
        ("RFC 9112 6.1: xchunked", post(b"Transfer-Encoding: xchunked\r\n", END), 501),
        ("RFC 9112 6.1: a tab before", post(b"Transfer-Encoding:\tchunked\r\n", b"2\r\nab\r\n" + END), 200,
         with_body(b"ab"), 501,
         "nginx does not skip a tab (RFC 9110 5.5 allows it)"),
        ("RFC 9110 5.6.3: vertical tab", post(b"Transfer-Encoding: \x0bchunked\r\n", END), 400),
        ("RFC 9112 6.1: quoted", post(b"Transfer-Encoding: \"chunked\"\r\n", END), 501),
        ("RFC 9112 6.1: in HTTP/1.0", post(b"Transfer-Encoding: chunked\r\n", END, b"POST / HTTP/1.0\r\n"), 400),
        ("RFC 9112 6.1: a space in the name", post(b"Transfer-Encoding : chunked\r\n", END), 400),
    ],
    "chunk syntax": [
        ("RFC 9112 7.1: extensions are ignored", chunked(b"2;a=b\r\nab\r\n" + END), 200, with_body(b"ab")),
        ("RFC 9112 7.1: upper-case digits", chunked(b"A\r\n0123456789\r\n" + END), 200, with_body(b"0123456789")),
        ("RFC 9112 7.1: leading zeros", chunked(b"0002\r\nab\r\n" + END), 200, with_body(b"ab")),
        ("RFC 9112 7.1: no digits", chunked(b"\r\nab\r\n" + END), 400),
        ("RFC 9112 7.1: a sign", chunked(b"+2\r\nab\r\n" + END), 400),
        ("RFC 9112 7.1: 0x", chunked(b"0x2\r\nab\r\n" + END), 400),
        ("RFC 9112 7.1: letters behind digits", chunked(b"2z\r\nab\r\n" + END), 400),
        ("RFC 9112 7.1: a size beyond 64 bits", chunked(b"fffffffffffffffff\r\nab\r\n" + END), 413),
        ("RFC 9112 7.1: content longer than the size", chunked(b"2\r\nabc\r\n" + END), 400),
        ("RFC 9112 7.1: content without its line end", chunked(b"2\r\nab" + END), 400),
        ("RFC 9112 7.1: size line ends with LF", chunked(b"2\nab\r\n" + END), 400, 200, "nginx takes LF for CRLF"),
        ("RFC 9112 7.1: content ends with LF", chunked(b"2\r\nab\n" + END), 400, 200, "nginx takes LF for CRLF"),
        ("RFC 9112 7.1.1: CR in an extension", chunked(b"2;a\rb\r\nab\r\n" + END), 400),
        ("RFC 9112 7.1.2: a bad trailer", chunked(b"0\r\nX T: v\r\n\r\n"), 400, 200, "nginx skips trailers unread"),
    ],
    "line ends": [
        ("RFC 9112 2.2: an empty line before the request", b"\r\n" + get(), 200, gets()),
        ("RFC 9112 2.2: LF ends the request line", b"GET / HTTP/1.1\nHost: h\r\n\r\n", 400, 200, "nginx takes LF for CRLF"),
        ("RFC 9112 2.2: LF ends a field", b"GET / HTTP/1.1\r\nHost: h\nX: y\r\n\r\n", 400, 200, "nginx takes LF for CRLF"),
        ("RFC 9112 2.2: LF ends the head", b"GET / HTTP/1.1\r\nHost: h\r\n\n", 400, 200, "nginx takes LF for CRLF"),
        ("RFC 9112 2.2: a bare CR in a value", get(b"X: a\rb\r\n"), 400),
        ("RFC 9112 2.2: a bare CR in the request line", get(line=b"GET /\r HTTP/1.1\r\n"), 400),
        ("RFC 9110 5.5: NUL in a value", get(b"X: a\0b\r\n"), 400),
        ("RFC 9112 2.2: CR CR LF", get(b"X: a\r\r\n"), 400, 200, "nginx drops the first CR"),
        ("RFC 9112 3: two spaces", get(line=b"GET  / HTTP/1.1\r\n"), 400, 200, "nginx skips spaces"),
        ("RFC 9112 3: a space behind the version", get(line=b"GET / HTTP/1.1 \r\n"), 400, 200, "nginx skips spaces"),
    ],
    "obs-fold": [
        ("RFC 9112 5.2: a space", get(b"X: a\r\n b\r\n"), 400),
        ("RFC 9112 5.2: a tab", get(b"X: a\r\n\tb\r\n"), 400),
        ("RFC 9112 5.2: of Host", b"GET / HTTP/1.1\r\nHost: h\r\n evil\r\n\r\n", 400),
        ("RFC 9112 5.2: of Content-Length", post(b"Content-Length: 2\r\n 0\r\n", b"ab"), 400),
        ("RFC 9112 5.2: of Transfer-Encoding: nothing is before the fold", post(b"Transfer-Encoding:\r\n chunked\r\n", END), 501),
        ("RFC 9112 2.2: a space before the first field", b"GET / HTTP/1.1\r\n Host: h\r\n\r\n", 400),
        ("RFC 9112 5.2: only spaces", get(b"X: a\r\n  \r\n"), 400),
        ("RFC 9112 5.2: in a trailer", chunked(b"0\r\nX: a\r\n b\r\n\r\n"), 400, 200, "nginx skips trailers unread"),
    ],
    "Host and target": [
        ("RFC 9112 3.2: no Host", get(host=b""), 400),
        ("RFC 9112 3.2: two", get(b"Host: evil\r\n"), 400),
        ("RFC 9112 3.2: two equal ones", get(b"Host: h\r\n"), 400),
        ("RFC 9112 3.2: a space", get(host=b"Host: h evil\r\n"), 400),
        ("RFC 9112 3.2: user info", get(host=b"Host: u@h\r\n"), 400, 200, "nginx passes user info in Host on"),
        ("RFC 9112 3.2: a slash", get(host=b"Host: h/evil\r\n"), 400),
        ("RFC 9112 3.2.2: an absolute target wins", get(line=b"GET http://other/ HTTP/1.1\r\n"), 200, gets(host=b"other")),
        ("RFC 9112 3.2.2: with its port", get(line=b"GET HTTP://other:8080/x HTTP/1.1\r\n"), 200,
         gets(b"GET /x HTTP/1.1", b"other:8080")),
        ("RFC 9112 3.2.2: over an empty Host", get(line=b"GET http://other/ HTTP/1.1\r\n", host=b"Host:\r\n"), 200,
         gets(host=b"other"), 400, "nginx refuses an empty Host"),
        ("RFC 9112 3.2.2: without a path", get(line=b"GET http://other HTTP/1.1\r\n"), 200, gets(host=b"other")),
        ("RFC 9112 3.2.2: a query without a path", get(line=b"GET http://other?x=/y HTTP/1.1\r\n"), 200,
         gets(b"GET /?x=/y HTTP/1.1", b"other")),
        ("RFC 9112 3.2.4: OPTIONS without a path", get(line=b"OPTIONS http://other HTTP/1.1\r\n"), 200,
         gets(b"OPTIONS * HTTP/1.1", b"other")),
        ("RFC 9112 3.2: Host is needed beside an absolute target", get(line=b"GET http://other/ HTTP/1.1\r\n", host=b""), 400),
        ("RFC 9112 3.2: two Hosts beside an absolute target", get(b"Host: h\r\n", b"GET http://other/ HTTP/1.1\r\n"), 400),
        ("RFC 9112 3.2: a bad Host beside an absolute target",
         get(line=b"GET http://other/ HTTP/1.1\r\n", host=b"Host: h/x\r\n"), 400),
        ("RFC 9110 4.2.1: no host in an absolute target", get(line=b"GET http:///x HTTP/1.1\r\n"), 400),
        ("RFC 9112 3.2.2: user info in it", get(line=b"GET http://u@other/ HTTP/1.1\r\n"), 400),
        ("RFC 9112 3.2: another scheme", get(line=b"GET ftp://other/ HTTP/1.1\r\n"), 400, 200, "nginx accepts any scheme"),
        ("RFC 9112 3.2.1: no slash", get(line=b"GET index HTTP/1.1\r\n"), 400),
        ("RFC 9110 9.1: a fragment", get(line=b"GET /a#b HTTP/1.1\r\n"), 400, 200, "nginx drops the fragment"),
        ("RFC 9112 3.2.4: * is for OPTIONS", get(line=b"GET * HTTP/1.1\r\n"), 400),
        ("RFC 9112 2.5: HTTP/1.2", get(line=b"GET / HTTP/1.2\r\n"), 505, 200, "nginx accepts every 1.x"),
        ("RFC 9112 2.3: HTTP/2.0", get(line=b"GET / HTTP/2.0\r\n"), 505),
        ("RFC 9112 2.3: http/1.1", get(line=b"GET / http/1.1\r\n"), 400),
        ("RFC 9110 9.3.6: CONNECT", b"CONNECT h:443 HTTP/1.1\r\nHost: h:443\r\n\r\n", 405),
        ("RFC 9110 9.3.8: TRACE", get(line=b"TRACE / HTTP/1.1\r\n"), 405),
    ],
    "header names": [
        ("RFC 9110 5.1: any token", get(b"X_y.z~!#$%&'*+^`|: v\r\n"), 200,
         gets(fields=b"X_y.z~!#$%&'*+^`|: v\r\n")),
        ("RFC 9112 5.1: a space before the colon", get(b"X : v\r\n"), 400),
        ("RFC 9112 5.1: a tab before the colon", get(b"X\t: v\r\n"), 400),
        ("RFC 9110 5.1: empty", get(b": v\r\n"), 400),
        ("RFC 9112 5: no colon", get(b"X\r\n"), 400, 200, "nginx leaves out fields with bad names"),
        ("RFC 9110 5.1: parentheses", get(b"X(y): v\r\n"), 400, 200, "nginx leaves out fields with bad names"),
        ("RFC 9110 5.1: beyond ASCII", get(b"X\xc3\xa9: v\r\n"), 400, 200, "nginx leaves out fields with bad names"),
        ("RFC 9110 5.1: a slash", get(b"X/y: v\r\n"), 400, 200, "nginx leaves out fields with bad names"),
        ("RFC 9110 5.1: NUL", get(b"X\0: v\r\n"), 400),
        ("RFC 9113 8.3: a pseudo-field in HTTP/1", get(b":path: /evil\r\n"), 400),
    ],
    "Connection-named fields": [
        ("RFC 9110 7.6.1: a field of one's own", get(b"Connection: x-a\r\nX-A: evil\r\n"), 200, gets()),
        ("RFC 9110 7.6.1: in another case", get(b"Connection: X-a\r\nx-A: evil\r\n"), 200, gets()),
        ("RFC 9110 7.6.1: several in a list", get(b"Connection: close , x-a,, x-b\r\nX-A: evil\r\nX-B: evil\r\n"), 200, gets()),
        ("RFC 9110 7.6.1: in a second line", get(b"Connection: close\r\nX-A: evil\r\nConnection: x-a\r\n"), 200, gets()),
        ("RFC 9110 7.6.1: an API key", get(b"Connection: x-api-key\r\nX-API-Key: evil\r\n"), 200, gets()),
        ("RFC 9110 7.6.1: Keep-Alive", get(b"Connection: keep-alive\r\nKeep-Alive: evil\r\n"), 200, gets()),
        ("RFC 9110 7.6.1: Proxy-Connection", get(b"Proxy-Connection: evil\r\n"), 200, gets()),
        ("RFC 9110 7.6.1: the forwarded address", get(b"Connection: x-forwarded-for\r\nX-Forwarded-For: evil\r\n"), 200, gets()),
        ("RFC 9110 10.1.4: TE", get(b"Connection: te\r\nTE: evil\r\n"), 200, gets()),
        ("RFC 9113 3.1: h2c", get(b"Connection: upgrade, http2-settings\r\nUpgrade: h2c\r\nHTTP2-Settings: evil\r\n"), 200, gets()),
    ],
}


def status_of(port, request):
    """What nginx answers; 400 if it closes, or waits for more than the row has."""
    with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
        connection.sendall(request)
        try:
            answer = connection.recv(65536)
        except (TimeoutError, ConnectionResetError):
            return 400
    return int(answer.split(b" ")[1]) if answer.startswith(b"HTTP/") else 400


class Smuggling(unittest.TestCase):
    def setUp(self):
        self.backend = RawBackend(self, lambda request: b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    def test_the_table_is_as_large_as_it_claims(self):
        self.assertGreaterEqual(sum(map(len, ROWS.values())), 80)
        for name, rows in ROWS.items():
            self.assertGreaterEqual(len(rows), 8, name)

    def test_every_row_has_its_one_answer(self):
        proxy = Proxy(self, f"limits: {{}}\nbackend: {self.backend.url}\n")
        for name, rows in ROWS.items():
            for clause, request, status, *more in rows:
                with self.subTest(name, clause=clause):
                    self.backend.requests.clear()
                    # A smuggled request would be answered, too.
                    answer = all_bytes(proxy.port, request + b"GET /next HTTP/1.1\r\nHost: h\r\n\r\n")
                    self.assertEqual(int(answer.split(b" ")[1]), status, answer)
                    if status == 200:
                        self.assert_forwarded(more[0])
                        continue
                    self.assertIn(b'"error":', answer)
                    if status == 405:
                        continue  # it was understood: the next one is answered
                    self.assertEqual(len(re.findall(rb"HTTP/1.1 \d\d\d ", answer)), 1, "nothing is answered behind a bad request")
                    self.assertIn(b"\r\nConnection: close\r\n", answer)
                    # With a bad body the head may be on its way, but a backend never gets a whole request.
                    self.assertEqual(self.backend.requests, [], "never forwarded")

    def assert_forwarded(self, expected):
        got = re.sub(rb"X-Request-Id: [0-9a-f]{32}\r\n", b"", self.backend.wait_for(1)[0])
        self.assertIn(got, (expected,) if isinstance(expected, bytes) else expected)

    @unittest.skipUnless(shutil.which("nginx"), "nginx is not installed")
    def test_nginx_answers_the_same_except_where_a_row_says_why(self):
        forward = f"proxy_pass {self.backend.url}; proxy_http_version 1.1; proxy_set_header Host $http_host;"
        port = Nginx(self, f"location / {{ {forward} }}").port
        for name, rows in ROWS.items():
            for clause, request, status, *more in rows:
                with self.subTest(name, clause=clause):
                    differs = more[1:] if status == 200 else more
                    got = status_of(port, request)
                    expected = differs[0] if differs else status
                    # It has no 505 for versions it does not know and 501 where we have 400; both refuse.
                    same = got == expected or (got >= 400) == (expected >= 400)
                    self.assertTrue(same, (got, expected))


if __name__ == "__main__":
    unittest.main()
