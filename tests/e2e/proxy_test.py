"""The edge proxy, byte for byte: what reaches a backend, what a client gets, and every response of docs/proxy.md."""

import json
import re
import socket
import subprocess
import unittest

from proxying import ONE_AN_HOUR, OPEN, Proxy, RawBackend, Response, all_bytes, exchange, head_of


def open_text(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class Forwarding(unittest.TestCase):
    def setUp(self):
        self.backend = RawBackend(self)
        self.proxy = Proxy(self, OPEN.format(url=self.backend.url))

    def test_a_request_reaches_the_backend_byte_for_byte(self):
        headers = [("X-Request-Id", "my-id"), ("Accept", "*/*"), ("Via", "1.1 x")]
        answer = self.proxy.get("/a//b/../c;x?d=%69", headers, host="Example.com:81")
        self.assertEqual((answer.status, answer.body), (200, b"ok"))
        self.assertEqual(answer.headers["x-request-id"], "my-id")
        self.assertEqual(head_of(self.backend.requests[0]), [
            "GET /a//b/../c;x?d=%69 HTTP/1.1", "Host: Example.com:81", "Accept: */*", "Via: 1.1 x",
            "X-Forwarded-For: 127.0.0.1", "X-Forwarded-Proto: http", "X-Forwarded-Host: Example.com:81", "X-Request-Id: my-id"])

    def test_an_id_is_made_where_the_client_has_none_that_can_be_used(self):
        answer = self.proxy.get("/", [("X-Request-Id", "a b")])
        self.assertRegex(answer.headers["x-request-id"], "^[0-9a-f]{32}$")
        self.assertIn(f"X-Request-Id: {answer.headers['x-request-id']}", head_of(self.backend.requests[0]))

    def test_hop_by_hop_fields_and_what_connection_names_end_here(self):
        self.proxy.get("/", [("Connection", "x-api-key, keep-alive"), ("X-API-Key", "k"), ("Keep-Alive", "5"), ("TE", "trailers"),
                             ("Proxy-Connection", "close")])
        head = "\n".join(head_of(self.backend.requests[0])).lower()
        for name in ("x-api-key", "keep-alive", "proxy-connection", "connection", "te"):
            self.assertNotIn(f"\n{name}:", head)

    def test_an_untrusted_peer_says_nothing_about_its_client(self):
        self.proxy.get("/", [("X-Forwarded-For", "1.2.3.4"), ("X_Forwarded_For", "1.2.3.4"), ("X-Real-IP", "1.2.3.4"),
                             ("Forwarded", "for=1.2.3.4"), ("X-Forwarded-Proto", "https")])
        head = head_of(self.backend.requests[0])
        self.assertNotIn("1.2.3.4", "\n".join(head))
        self.assertIn("X-Forwarded-Proto: http", head)

    def test_an_absolute_target_is_accepted_and_its_host_replaces_host(self):
        self.proxy.get("http://other.example/x?y", host="h")
        head = head_of(self.backend.requests[0])
        self.assertEqual(head[:2], ["GET /x?y HTTP/1.1", "Host: other.example"])

    def test_bodies_by_length_and_by_chunks(self):
        answer = self.proxy.get("/", method="POST", body=b"hello")
        self.assertEqual(answer.status, 200)
        self.assertTrue(self.backend.requests[0].endswith(b"\r\n\r\nhello"), self.backend.requests)
        answer = exchange(self.proxy.port, b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTrailer: x-t\r\n\r\n"
                          b"3\r\nabc\r\n2;ext=1\r\nde\r\n0\r\nX-T: v\r\n\r\n")
        self.assertEqual(answer.status, 200)
        body = self.backend.requests[1].split(b"\r\n\r\n", 1)[1]
        self.assertEqual(re.sub(rb"\r\n[0-9a-f]+\r\n|^[0-9a-f]+\r\n", b"", body.split(b"0\r\n")[0]).replace(b"\r\n", b""), b"abcde")
        self.assertIn(b"0\r\nX-T: v\r\n\r\n", body)

    def test_trailers_come_back(self):
        self.backend.respond = lambda request: b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX-T: v\r\n\r\n"
        answer = self.proxy.get("/")
        self.assertEqual((answer.body, answer.trailers), (b"ok", {"x-t": "v"}))

    def test_trailers_do_not_say_who_the_client_is_and_frame_nothing(self):
        forged = (b"X-Forwarded-For: 1.2.3.4\r\nX_Real_IP: 1.2.3.4\r\nX-Request-Id: x\r\nHost: evil\r\nContent-Length: 9\r\n"
                  b"Connection: close\r\nX-Named: 1\r\n")
        self.backend.respond = lambda request: (b"HTTP/1.1 200 OK\r\nConnection: x-named\r\nTransfer-Encoding: chunked\r\n\r\n"
                                                b"2\r\nok\r\n0\r\n" + forged + b"X-T: v\r\n\r\n")
        answer = exchange(self.proxy.port, b"POST / HTTP/1.1\r\nHost: h\r\nConnection: x-named\r\nTransfer-Encoding: chunked\r\n\r\n"
                          b"2\r\nab\r\n0\r\n" + forged + b"X-T: v\r\n\r\n")
        self.assertEqual((answer.body, answer.trailers), (b"ok", {"x-t": "v"}))
        self.assertTrue(self.backend.requests[0].endswith(b"\r\n0\r\nX-T: v\r\n\r\n"), self.backend.requests[0])

    def test_a_response_keeps_its_date_and_its_reason(self):
        date = "Mon, 01 Jan 2024 00:00:00 GMT"
        for line, expected in ((f"date: {date}\r\n", date), ("", "GMT")):
            answer = f"HTTP/1.1 418 I'm a teapot\r\n{line}Content-Length: 0\r\n\r\n".encode()
            self.backend.respond = lambda request, answer=answer: answer
            got = self.proxy.get("/")
            self.assertTrue(got.raw_head.startswith(b"HTTP/1.1 418 I'm a teapot\r\n"), got.raw_head)
            http2 = subprocess.run(["curl", "-sS", "--http2-prior-knowledge", "-i", f"http://127.0.0.1:{self.proxy.port}/"],
                                   capture_output=True, timeout=60, check=True, text=True)
            self.assertTrue(http2.stdout.startswith("HTTP/2 418"), http2.stdout)
            for dates in ([value for name, value in got.lines if name == "date"], re.findall(r"(?i)^date: (.*)$", http2.stdout, re.M)):
                self.assertEqual(len(dates), 1, "one, whoever wrote it")
                self.assertTrue(dates[0].strip().endswith(expected), dates)

    def test_a_query_may_have_what_browsers_send_in_it(self):
        target = "/a?b=\\&c[]=|^`{}'"
        self.assertEqual(self.proxy.get(target).status, 200)
        self.assertEqual(head_of(self.backend.requests[0])[0], f"GET {target} HTTP/1.1")
        self.assertEqual(self.proxy.get("/a\\b").status, 400)

    def test_a_route_may_send_the_hosts_of_its_backend(self):
        proxy = Proxy(self, f"""
limits: {{}}
routes:
  - {{name: theirs, match: {{path: /theirs}}, limits: none, backend: "{self.backend.url}", host: backend}}
  - {{name: ours, match: {{path: "/**"}}, limits: none, backend: "{self.backend.url}", host: keep}}
""")
        for path, host in (("/theirs", f"127.0.0.1:{self.backend.port}"), ("/ours", "a.example")):
            proxy.get(path, host="a.example")
            head = head_of(self.backend.requests[-1])
            self.assertEqual((head[1], "X-Forwarded-Host: a.example" in head), (f"Host: {host}", True))

    def test_head_204_and_304_have_no_body(self):
        for status, method in ((200, "HEAD"), (204, "GET"), (304, "GET")):
            self.backend.respond = lambda request, status=status: f"HTTP/1.1 {status} X\r\nContent-Length: 0\r\nX-A: b\r\n\r\n".replace(
                "Content-Length: 0\r\n", "" if status == 204 else "Content-Length: 42\r\n").encode()
            answer = self.proxy.get("/", method=method)
            self.assertEqual((answer.status, answer.headers["x-a"]), (status, "b"))
            if status != 204:
                self.assertEqual(answer.headers.get("content-length"), "42")

    def test_a_response_to_head_has_a_length_only_if_the_backend_gives_one(self):
        for fields in ("Transfer-Encoding: chunked\r\n", "", "Content-Length: 0\r\n"):
            self.backend.respond = lambda request, fields=fields: f"HTTP/1.1 200 OK\r\n{fields}\r\n".encode()
            length = "0" if "Length" in fields else None
            self.assertEqual(self.proxy.get("/", method="HEAD").headers.get("content-length"), length, fields)
            said = subprocess.run(["curl", "-sS", "--http2-prior-knowledge", "--head", f"http://127.0.0.1:{self.proxy.port}/"],
                                  capture_output=True, text=True, timeout=60, check=True).stdout
            self.assertEqual("content-length: 0" in said, length == "0", said)

    def test_server_and_via_are_unchanged_and_rate_headers_kept_where_nothing_was_checked(self):
        fields = b"Server: s\r\nVia: 1.0 v\r\nX-RateLimit-Limit: 7\r\nSet-Cookie: a\r\nSet-Cookie: b\r\n"
        self.backend.respond = lambda request: b"HTTP/1.1 200 OK\r\n" + fields + b"Content-Length: 0\r\n\r\n"
        answer = self.proxy.get("/")
        self.assertEqual((answer.headers["server"], answer.headers["via"], answer.headers["x-ratelimit-limit"]), ("s", "1.0 v", "7"))
        self.assertEqual([v for n, v in answer.lines if n == "set-cookie"], ["a", "b"])

    def test_http_1_0_is_answered_without_chunks(self):
        self.backend.respond = lambda request: b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"
        answer = all_bytes(self.proxy.port, b"GET / HTTP/1.0\r\nHost: h\r\n\r\n")
        self.assertTrue(answer.endswith(b"\r\n\r\nok"), answer)
        self.assertNotIn(b"chunked", answer)

    def test_pipelined_requests_are_answered_in_order(self):
        self.backend.respond = lambda request: b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n" + request.split(b" ")[1][-2:]
        answer = all_bytes(self.proxy.port, b"".join(b"GET /%02d HTTP/1.1\r\nHost: h\r\n\r\n" % i for i in range(20)))
        self.assertEqual(re.findall(rb"\r\n\r\n(\d\d)", answer), [b"%02d" % i for i in range(20)])

    def test_connections_to_the_backend_are_reused(self):
        with socket.create_connection(("127.0.0.1", self.proxy.port), timeout=20) as connection, connection.makefile("rb") as reader:
            for _ in range(10):
                connection.sendall(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
                self.assertEqual(Response(reader).status, 200)
        self.assertEqual(self.backend.connections, 1)

    def test_100_continue_comes_from_the_backend(self):
        self.backend.respond = lambda request: b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
        with socket.create_connection(("127.0.0.1", self.proxy.port), timeout=20) as connection, connection.makefile("rb") as reader:
            connection.sendall(b"POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
            # This backend never says 100: the proxy does after a second.
            self.assertEqual(Response(reader).status, 100)
            connection.sendall(b"hi")
            self.assertEqual(Response(reader).status, 200)
        self.assertTrue(self.backend.requests[0].endswith(b"hi"))

    def test_trace_and_connect_are_405(self):
        for request in (b"TRACE / HTTP/1.1\r\nHost: h\r\n\r\n", b"CONNECT h:443 HTTP/1.1\r\nHost: h:443\r\n\r\n"):
            answer = exchange(self.proxy.port, request)
            self.assertEqual((answer.status, json.loads(answer.body)["error"]), (405, "method_not_allowed"), request)
        self.assertEqual(self.backend.requests, [])

    def test_a_url_path_goes_before_the_requests(self):
        proxy = Proxy(self, OPEN.format(url=self.backend.url + "/v2/"))
        proxy.get("/x?y")
        self.assertEqual(head_of(self.backend.requests[0])[0], "GET /v2/x?y HTTP/1.1")

    def test_websocket_bytes_pass_both_ways(self):
        def respond(request):
            return b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nX-A: b\r\n\r\nhello"
        self.backend.respond = respond
        with socket.create_connection(("127.0.0.1", self.proxy.port), timeout=20) as connection, connection.makefile("rb") as reader:
            connection.sendall(b"GET /ws HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
            answer = Response(reader)
            self.assertEqual((answer.status, answer.headers["upgrade"], answer.headers["x-a"]), (101, "websocket", "b"))
            self.assertEqual(reader.read(5), b"hello")
            # The backend reads its next "request" from the tunnel.
            connection.sendall(b"over the tunnel\r\n\r\n")
            self.backend.wait_for(2)
            self.assertEqual(self.backend.requests[1], b"over the tunnel\r\n\r\n")
        self.assertIn("Upgrade: websocket", head_of(self.backend.requests[0]))

    def test_an_upgrade_to_h2c_is_not_passed_on(self):
        fields = [("Connection", "Upgrade, HTTP2-Settings"), ("Upgrade", "h2c"), ("HTTP2-Settings", "AAMAAABkAAQAAP__")]
        answer = self.proxy.get("/", fields)
        self.assertEqual(answer.status, 200)
        self.assertNotIn("upgrade", "\n".join(head_of(self.backend.requests[0])).lower())


class Limiting(unittest.TestCase):
    def test_a_backends_rate_headers_are_kept_where_weir_has_none(self):
        backend = RawBackend(self, lambda request: b"HTTP/1.1 200 OK\r\nX-RateLimit-Limit: 7\r\nContent-Length: 0\r\n\r\n")
        proxy = Proxy(self, f"""
limits:
  tried: {{key: ip, rate: 1/h, mode: shadow}}
  unlimited: {{key: ip, average: 0}}
  enforced: {{key: ip, rate: 5/h}}
routes:
  - {{name: tried, match: {{path: /tried}}, limits: [tried], backend: "{backend.url}"}}
  - {{name: unlimited, match: {{path: /unlimited}}, limits: [unlimited], backend: "{backend.url}"}}
  - {{name: enforced, match: {{path: /enforced}}, limits: [tried, enforced], backend: "{backend.url}"}}
""")
        for path, limit in (("/tried", "7"), ("/tried", "7"), ("/unlimited", "7"), ("/enforced", "5")):
            self.assertEqual([v for n, v in proxy.get(path).lines if n == "x-ratelimit-limit"], [limit], path)

    def test_a_denied_request_never_reaches_the_backend(self):
        fields = b"X-RateLimit-Limit: 999\r\nRateLimit: \"x\";r=1\r\n"
        backend = RawBackend(self, lambda request: b"HTTP/1.1 200 OK\r\n" + fields + b"Content-Length: 0\r\n\r\n")
        proxy = Proxy(self, ONE_AN_HOUR.format(url=backend.url, burst=2))
        first = proxy.get("/")
        self.assertEqual([v for n, v in first.lines if n == "x-ratelimit-limit"], ["2"])
        self.assertEqual(first.headers["x-ratelimit-remaining"], "1")
        self.assertEqual([v for n, v in first.lines if n == "ratelimit"], ['"per-ip";r=1;t=1800'])
        self.assertEqual(proxy.get("/").status, 200)
        answer = proxy.get("/")
        self.assertEqual(answer.status, 429)
        self.assertEqual(json.loads(answer.body), {
            "error": "rate limit exceeded", "message": "Too many requests. Please try again later.", "identifier": "ip:127.0.0.1",
            "limit": "per-ip", "retry_after": 1800})
        self.assertEqual((answer.headers["retry-after"], answer.headers["x-ratelimit-remaining"]), ("1800", "0"))
        problem = proxy.get("/", [("Accept", "application/problem+json")])
        self.assertEqual((problem.status, problem.headers["content-type"]), (429, "application/problem+json"))
        self.assertEqual(json.loads(problem.body)["violated-policies"], ["per-ip"])
        grpc = proxy.get("/", [("Content-Type", "application/grpc")], method="POST", body=b"x")
        self.assertEqual((grpc.status, grpc.headers["grpc-status"], grpc.headers["content-type"]), (200, "8", "application/grpc"))
        self.assertIn("grpc-retry-pushback-ms", grpc.headers)
        self.assertEqual(len(backend.requests), 2)
        metrics = proxy.metrics()
        self.assertIn('weir_proxy_requests_total{route="",status_class="2xx"} 3', metrics)
        self.assertIn('weir_proxy_requests_total{route="",status_class="4xx"} 2', metrics)
        self.assertIn(f'weir_backend_up{{backend="{backend.url}"}} 1', metrics)
        self.assertIn("weir_proxy_active 0", metrics)

    def test_a_denied_upload_is_answered_without_100(self):
        backend = RawBackend(self)
        proxy = Proxy(self, ONE_AN_HOUR.format(url=backend.url, burst=1))
        proxy.get("/")
        answer = exchange(proxy.port, b"POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n")
        self.assertEqual((answer.status, answer.headers["connection"]), (429, "close"))

    def test_routes_choose_limits_and_backends(self):
        one, two = RawBackend(self), RawBackend(self)
        proxy = Proxy(self, f"""
limits:
  per-ip: {{key: ip, burst: 1, count: 1, period: 1h}}
routes:
  - {{name: signin, match: {{path: /signin, ignore_case: true}}, limits: [per-ip], backend: "{one.url}"}}
  - {{name: open, match: {{path: "/open/**"}}, limits: none, backend: "{two.url}"}}
  - {{name: nowhere, match: {{path: /nowhere}}, limits: [per-ip]}}
""")
        self.assertEqual(proxy.get("/signin").status, 200)
        for spelling in ("/signin", "/signin/", "/SIGNIN", "//signin", "/x/../signin", "/sign%69n", "/signin;x", "/./signin?x",
                         "/SignIn;a=b/"):
            self.assertEqual(proxy.get(spelling).status, 429, spelling)
        self.assertEqual(len(one.requests), 1)
        for _ in range(3):
            self.assertEqual(proxy.get("/open/x").status, 200)
        for target in ("/other", "/nowhere"):
            answer = proxy.get(target)
            self.assertEqual((answer.status, json.loads(answer.body)["error"]), (404, "no_route"))
        self.assertEqual(proxy.get("/signin%00").status, 400)

    def test_a_key_that_occurs_twice_with_different_values_is_400(self):
        backend = RawBackend(self)
        proxy = Proxy(self, f"""
limits:
  key: {{key: apikey, burst: 9, count: 9, period: 1h}}
  query: {{key: query:k, burst: 9, count: 9, period: 1h}}
  cookie: {{key: cookie:c, burst: 9, count: 9, period: 1h}}
backend: {backend.url}
""")
        for target, headers in (("/", [("X-API-Key", "a"), ("X-API-Key", "b")]), ("/?k=a&k=b", []), ("/", [("Cookie", "c=1; c=2")])):
            answer = proxy.get(target, headers)
            self.assertEqual((answer.status, json.loads(answer.body)["error"]), (400, "bad_request"), (target, headers))
        self.assertEqual(proxy.get("/?k=a&k=a", [("X-API-Key", "a"), ("X-API-Key", "a")]).status, 200)
        # The backend does not get the key that Connection names, and it is not counted by it.
        self.assertNotIn("apikey", str(proxy.get("/", [("Connection", "x-api-key"), ("X-API-Key", "z")]).headers))
        self.assertEqual(len(backend.requests), 2)

    def test_every_line_of_forwarded_for_counts_and_else_the_real_ip(self):
        backend = RawBackend(self)
        proxy = Proxy(self, ONE_AN_HOUR.format(url=backend.url, burst=1) + "access: {trusted_proxies: [127.0.0.1, 10.0.0.0/8]}\n")
        for headers, client in (([("X-Forwarded-For", "9.9.9.9, 198.51.100.1"), ("X-Forwarded-For", "10.1.1.1")], "198.51.100.1"),
                                ([("X-Real-IP", "198.51.100.2")], "198.51.100.2"),
                                ([("X-Forwarded-For", "198.51.100.3"), ("X-Real-IP", "9.9.9.9")], "198.51.100.3"),
                                ([("X-Real-IP", "198.51.100.4"), ("X-Real-IP", "9.9.9.9")], "127.0.0.1")):
            self.assertEqual(proxy.get("/", headers).status, 200, headers)
            self.assertEqual(json.loads(proxy.get("/", headers).body)["identifier"], f"ip:{client}")

    def test_on_a_unix_socket_the_proxy_in_front_names_the_client(self):
        backend = RawBackend(self)
        proxy = Proxy(self, f"""
listen:
  - {{address: "127.0.0.1:0", speak: admin}}
  - {{address: "unix:proxy.sock", speak: proxy}}
limits: {{per-ip: {{key: ip, rate: 1/hour}}}}
access: {{trusted_proxies: [unix]}}
backend: {backend.url}
""", start=False)
        path = f"{proxy.directory}/proxy.sock"
        proxy.write(open_text(proxy.config).replace("unix:proxy.sock", f"unix:{path}"))
        proxy.start()
        for client, status in (("1.1.1.1", 200), ("1.1.1.1", 429), ("2.2.2.2", 200)):
            with socket.socket(socket.AF_UNIX) as connection, connection.makefile("rb") as reader:
                connection.connect(path)
                connection.sendall(f"GET / HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: {client}\r\n\r\n".encode())
                self.assertEqual(Response(reader).status, status, client)
        self.assertIn("X-Forwarded-For: 2.2.2.2", head_of(backend.requests[1]))

    def test_a_forged_forwarded_for_changes_nothing_and_a_trusted_one_names_the_client(self):
        backend = RawBackend(self)
        config = ONE_AN_HOUR.format(url=backend.url, burst=1)
        untrusted = Proxy(self, config)
        self.assertEqual(untrusted.get("/", [("X-Forwarded-For", "1.1.1.1")]).status, 200)
        self.assertEqual(untrusted.get("/", [("X-Forwarded-For", "2.2.2.2")]).status, 429)
        trusted = Proxy(self, config + "access: {trusted_proxies: [127.0.0.1]}\n")
        self.assertEqual(trusted.get("/", [("X-Forwarded-For", "1.1.1.1")]).status, 200)
        self.assertEqual(trusted.get("/", [("X-Forwarded-For", "2.2.2.2")]).status, 200)
        denied = trusted.get("/", [("X-Forwarded-For", "9.9.9.9, 2.2.2.2")])
        self.assertEqual((denied.status, json.loads(denied.body)["identifier"]), (429, "ip:2.2.2.2"))
        self.assertIn("X-Forwarded-For: 1.1.1.1, 127.0.0.1", head_of(backend.requests[1]))

    def test_form_keys_read_the_body_and_forward_it_intact(self):
        backend = RawBackend(self)
        proxy = Proxy(self, f"""
limits:
  email: {{key: form:email, burst: 1, count: 1, period: 1h, missing: reject}}
backend: {backend.url}
""")
        form = [("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")]
        self.assertEqual(proxy.get("/", form, "POST", b"a=1&email=a%40b.c").status, 200)
        self.assertTrue(backend.requests[0].endswith(b"\r\n\r\na=1&email=a%40b.c"))
        self.assertEqual(proxy.get("/", form, "POST", b"email=a@b.c").status, 429)
        chunked = b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in (b"ema", b"il=x@", b"y.z")) + b"0\r\n\r\n"
        head = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Type: application/x-www-form-urlencoded\r\nTransfer-Encoding: chunked\r\n\r\n"
        self.assertEqual(exchange(proxy.port, head + chunked).status, 200)
        self.assertIn(b"email=x@y.z", re.sub(rb"\r\n([0-9a-f]+\r\n)?", b"", backend.requests[1].split(b"\r\n\r\n", 1)[1]))
        for body, headers, error in (
                (b"email=a&email=b", form, (400, "bad_request")), (b"x=1", form, (400, "missing_key")),
                (b"email=q", form + [("Content-Encoding", "gzip")], (400, "missing_key")),
                (b"email=q", [("Content-Type", "text/plain")], (400, "missing_key")),
                (b"email=q&x=" + b"y" * 65536, form, (413, "too_large"))):
            answer = proxy.get("/", headers, "POST", body)
            self.assertEqual((answer.status, json.loads(answer.body)["error"]), error)
        exact = b"email=exact&x=" + b"y" * (65536 - 14)
        self.assertEqual(proxy.get("/", form, "POST", exact).status, 200)
        self.assertTrue(backend.requests[2].endswith(exact[-100:]))
        whole = head + b"%x\r\n%s\r\n0\r\n\r\n" % (65536, b"email=chunk&x=" + b"y" * (65536 - 14))
        self.assertEqual(exchange(proxy.port, whole).status, 200)
        over = head + b"%x\r\n%s\r\n0\r\n\r\n" % (65537, b"email=chunq&x=" + b"y" * (65537 - 14))
        self.assertEqual(exchange(proxy.port, over).status, 413)

    def test_lists_come_before_limits_and_preflights_may_pass(self):
        backend = RawBackend(self)
        proxy = Proxy(self, f"""
limits:
  per-ip: {{key: ip, burst: 1, count: 1, period: 1h}}
backend: {backend.url}
preflight: pass
error_headers: {{access-control-allow-origin: "*"}}
access: {{deny: [{{apikey: bad}}], allow: [{{apikey: good}}]}}
""")
        preflight = [("Origin", "https://a"), ("Access-Control-Request-Method", "PUT")]
        for _ in range(3):
            answer = proxy.get("/", preflight, "OPTIONS")
            self.assertEqual((answer.status, answer.headers.get("x-ratelimit-limit")), (200, None))
        self.assertEqual(proxy.get("/", preflight + [("X-API-Key", "bad")], "OPTIONS").status, 403)
        denied = proxy.get("/", [("X-API-Key", "bad")])
        self.assertEqual((denied.status, json.loads(denied.body)["error"]), (403, "access denied"))
        for _ in range(3):
            self.assertEqual(proxy.get("/", [("X-API-Key", "good")]).status, 200)
        self.assertEqual(proxy.get("/").status, 200)
        answer = proxy.get("/")
        self.assertEqual((answer.status, answer.headers["access-control-allow-origin"]), (429, "*"))

    def test_a_preflight_that_passes_needs_no_key_and_no_cost(self):
        backend = RawBackend(self)
        proxy = Proxy(self, f"""
limits:
  tenant: {{key: header:x-tenant, rate: 1/h, missing: reject}}
  email: {{key: form:email, rate: 1/h, missing: reject}}
routes:
  - {{name: all, match: {{path: "/**"}}, limits: [tenant, email], cost: "header:x-cost", backend: "{backend.url}", preflight: pass}}
""")
        preflight = [("Origin", "https://a"), ("Access-Control-Request-Method", "PUT")]
        for headers in ([], [("X-Cost", "0")]):
            self.assertEqual(proxy.get("/", preflight + headers, "OPTIONS").status, 200, headers)
        self.assertEqual(proxy.get("/", preflight).status, 400, "another method is no preflight")

    def test_a_request_that_can_never_pass_is_told_so_in_every_form(self):
        backend = RawBackend(self)
        proxy = Proxy(self, f"""
limits: {{tenant: {{key: header:x-tenant, burst: 5, count: 5, period: 1h}}}}
overrides: {{"tenant:bad": {{blocked: true}}}}
routes: [{{name: all, match: {{path: "/**"}}, limits: [tenant], cost: "header:x-cost", backend: "{backend.url}"}}]
""")
        for headers, message in (([("X-Tenant", "a"), ("X-Cost", "6")], "This request can never pass the limit."),
                                 ([("X-Tenant", "bad")], "This client is blocked.")):
            self.assertEqual(json.loads(proxy.get("/", headers).body)["message"], message)
            problem = proxy.get("/", headers + [("Accept", "application/problem+json")])
            self.assertEqual((problem.status, json.loads(problem.body)["detail"]), (429, message))
            grpc = proxy.get("/", headers + [("Content-Type", "application/grpc")], "POST")
            self.assertEqual((grpc.headers["grpc-status"], grpc.headers["grpc-message"]), ("8", message))

    def test_costs_and_missing_keys(self):
        backend = RawBackend(self)
        proxy = Proxy(self, f"""
limits:
  tenant: {{key: header:x-tenant, burst: 5, count: 5, period: 1h, missing: reject}}
routes:
  - {{name: all, match: {{path: "/**"}}, limits: [tenant], cost: "header:x-cost", backend: "{backend.url}"}}
""")
        for headers, error in (([], "missing_key"), ([("X-Tenant", "a"), ("X-Cost", "0")], "bad_value")):
            answer = proxy.get("/", headers)
            self.assertEqual((answer.status, json.loads(answer.body)["error"]), (400, error))
        never = proxy.get("/", [("X-Tenant", "a"), ("X-Cost", "6")])
        self.assertEqual((never.status, never.headers.get("retry-after")), (429, None))
        self.assertEqual(proxy.get("/", [("X-Tenant", "a"), ("X-Cost", "5")]).status, 200)


if __name__ == "__main__":
    unittest.main()
