"""What the edge proxy does when clients or backends are slow, large, broken or gone, and while it is operated."""

import json
import os
import signal
import socket
import threading
import time
import unittest

from proxying import ONE_AN_HOUR, OPEN, Proxy, RawBackend, Response, all_bytes, exchange, head_of, read_request


def text_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
TUNNEL = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"
UPGRADE = b"GET /up HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"


class Bounds(unittest.TestCase):
    def test_body_max_is_413_by_length_and_while_streaming(self):
        backend = RawBackend(self)
        proxy = Proxy(self, OPEN.format(url=backend.url) + "proxy: {body_max: 10}\n")
        self.assertEqual(proxy.get("/", method="POST", body=b"x" * 10).status, 200)
        answer = proxy.get("/", method="POST", body=b"x" * 11)
        self.assertEqual((answer.status, json.loads(answer.body)["error"]), (413, "too_large"))
        head = b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
        self.assertEqual(exchange(proxy.port, head + b"b\r\n" + b"x" * 11 + b"\r\n0\r\n\r\n").status, 413)
        self.assertEqual(exchange(proxy.port, head + b"a\r\n" + b"x" * 10 + b"\r\n0\r\n\r\n").status, 200)

    def test_too_many_requests_in_progress_are_503(self):
        release = threading.Event()
        self.addCleanup(release.set)
        backend = RawBackend(self, lambda request: (release.wait(20), b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")[1])
        proxy = Proxy(self, OPEN.format(url=backend.url) + "proxy: {max_concurrent_requests: 1}\n")
        with socket.create_connection(("127.0.0.1", proxy.port), timeout=20) as first, first.makefile("rb") as reader:
            first.sendall(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            backend.wait_for(1)
            answer = proxy.get("/")
            self.assertEqual((answer.status, json.loads(answer.body)["error"], answer.headers["retry-after"]), (503, "overloaded", "1"))
            release.set()
            self.assertEqual(Response(reader).status, 200)
        self.assertEqual(proxy.get("/").status, 200)

    def test_tunnels_count_and_end_when_they_are_idle(self):
        backend = RawBackend(self, lambda request: TUNNEL)
        config = OPEN.format(url=backend.url) + "proxy: {max_concurrent_requests: 1, stream_idle_timeout: 3s}\n"
        proxy = Proxy(self, config)
        with socket.create_connection(("127.0.0.1", proxy.port), timeout=20) as tunnel, tunnel.makefile("rb") as reader:
            tunnel.sendall(UPGRADE)
            self.assertEqual(Response(reader).status, 101)
            answer = proxy.get("/")
            self.assertEqual((answer.status, json.loads(answer.body)["error"]), (503, "overloaded"))
            self.assertEqual(reader.read(), b"", "closed by the proxy")
        proxy.wait_for_metric("weir_proxy_active 0\n")
        self.assertNotRegex(proxy.metrics(), r"weir_proxy_upstream_errors_total\{.*\} [1-9]", "nobody failed")

    def test_a_connection_without_a_request_is_closed(self):
        backend = RawBackend(self)
        proxy = Proxy(self, OPEN.format(url=backend.url) + "proxy: {idle_timeout: 1s}\n")
        requests = (b"", b"GET / HTTP/1.1\r\nHost: h\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0")
        connections = [socket.create_connection(("127.0.0.1", proxy.port), timeout=20) for _ in requests]
        for connection, request in zip(connections, requests):
            connection.sendall(request)
        for connection, request in zip(connections, requests):
            with connection, connection.makefile("rb") as reader:
                self.assertEqual(b" 200 OK" in reader.read(), b"GET" in request, "until the proxy closes")

    def test_long_heads_and_lines(self):
        backend = RawBackend(self)
        proxy = Proxy(self, OPEN.format(url=backend.url) + "proxy: {header_max: 2KiB, request_line_max: 1KiB}\n")
        line = 1024 - len("GET / HTTP/1.1")
        head = 2048 - len("GET / HTTP/1.1\r\nHost: h\r\nX-A: \r\n\r\n")
        for target, headers, error in (("/" + "a" * line, [], 200), ("/" + "a" * (line + 1), [], "uri_too_long"),
                                       ("/", [("X-A", "b" * head)], 200), ("/", [("X-A", "b" * (head + 1))], "header_too_large"),
                                       ("/", [("X-A", "b")] * 99, 200), ("/", [("X-A", "b")] * 100, "header_too_large")):
            answer = proxy.get(target, headers)
            got = 200 if answer.status == 200 else json.loads(answer.body)["error"]
            self.assertEqual((got, answer.status in (200, 414, 431)), (error, True), (len(target), len(headers)))

    def test_a_slow_head_is_408(self):
        backend = RawBackend(self)
        proxy = Proxy(self, OPEN.format(url=backend.url) + "proxy: {header_timeout: 100ms, body_timeout: 100ms}\n")
        for request in (b"GET / HTTP/1.1\r\nHost:", b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nab"):
            answer = exchange(proxy.port, request)
            self.assertEqual((answer.status, json.loads(answer.body)["error"]), (408, "request_timeout"), request)


class Failures(unittest.TestCase):
    def closed_port(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            return probe.getsockname()[1]

    def error(self, answer):
        return answer.status, json.loads(answer.body)["error"]

    def test_a_backend_that_refuses(self):
        proxy = Proxy(self, ONE_AN_HOUR.format(url=f"http://127.0.0.1:{self.closed_port()}", burst=9))
        answer = proxy.get("/")
        self.assertEqual(self.error(answer), (502, "backend_unreachable"))
        self.assertEqual(answer.headers["x-ratelimit-remaining"], "8", "the charge stands")
        self.assertIn('weir_proxy_upstream_errors_total{route="",kind="connect"} 1', proxy.metrics())

    def test_a_backend_that_hangs_after_accepting(self):
        release = threading.Event()
        backend = RawBackend(self, lambda request: (release.wait(20), None)[1])
        self.addCleanup(release.set)  # before the backend ends
        proxy = Proxy(self, OPEN.format(url=backend.url) + "proxy: {response_timeout: 200ms}\n")
        self.assertEqual(self.error(proxy.get("/")), (504, "backend_timeout"))
        self.assertEqual(len(backend.requests), 1, "not sent again")

    def test_a_backend_that_closes_without_a_response_is_not_asked_again(self):
        backend = RawBackend(self, lambda request: None)
        proxy = Proxy(self, OPEN.format(url=backend.url))
        self.assertEqual(self.error(proxy.get("/")), (502, "bad_backend_answer"))
        self.assertEqual(len(backend.requests), 1)

    def test_a_backend_that_does_not_speak_http(self):
        for answer in (b"SSH-2.0-OpenSSH\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
                       b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"):
            backend = RawBackend(self, lambda request, answer=answer: answer)
            proxy = Proxy(self, OPEN.format(url=backend.url))
            self.assertEqual(self.error(proxy.get("/")), (502, "bad_backend_answer"), answer)

    def test_a_backend_that_resets_within_its_response_ends_the_clients(self):
        backend = RawBackend(self, lambda request: b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart")
        respond = backend.respond

        def then_close(request):
            if len(backend.requests) > 1:
                return None
            return respond(request)
        backend.respond = then_close
        proxy = Proxy(self, OPEN.format(url=backend.url))
        with socket.create_connection(("127.0.0.1", proxy.port), timeout=20) as connection, connection.makefile("rb") as reader:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            self.assertIn(b" 200 ", reader.readline())
            for open_connection in list(backend.open):
                open_connection.shutdown(socket.SHUT_RDWR)
            self.assertLess(len(reader.read()), 1000, "closed before the announced length")

    def test_several_backends_take_turns_and_a_dead_one_is_skipped(self):
        one, two = RawBackend(self), RawBackend(self)
        dead = f"http://127.0.0.1:{self.closed_port()}"
        proxy = Proxy(self, f'limits: {{}}\nbackend: ["{one.url}", "{dead}", "{two.url}"]\n')
        for _ in range(30):
            self.assertEqual(proxy.get("/").status, 200)
        self.assertEqual(len(one.requests) + len(two.requests), 30)
        self.assertGreater(min(len(one.requests), len(two.requests)), 5)
        metrics = proxy.metrics()
        self.assertIn(f'weir_backend_up{{backend="{dead}"}} 0', metrics)
        self.assertIn("weir_proxy_retries_total 3\n", metrics)

    def test_all_backends_ejected(self):
        dead = [f"http://127.0.0.1:{self.closed_port()}" for _ in range(2)]
        proxy = Proxy(self, f'limits: {{}}\nbackend: ["{dead[0]}", "{dead[1]}"]\n')
        seen = [self.error(proxy.get("/")) for _ in range(5)]
        self.assertEqual(seen, [(502, "backend_unreachable")] * 5, "one at a time is let through")

    def test_a_response_before_the_body_is_read(self):
        backend = RawBackend(self)
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)

        def serve():
            connection, _ = listener.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno")
        thread = threading.Thread(target=serve)
        thread.start()
        self.addCleanup(thread.join)
        proxy = Proxy(self, OPEN.format(url=f"http://127.0.0.1:{listener.getsockname()[1]}"))
        with socket.create_connection(("127.0.0.1", proxy.port), timeout=20) as connection, connection.makefile("rb") as reader:
            connection.sendall(b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 100000000\r\n\r\n" + b"x" * 100000)
            answer = Response(reader)
        self.assertEqual((answer.status, answer.body), (413, b"no"))
        self.assertEqual(backend.requests, [])

    def test_a_client_that_goes_away_ends_the_call(self):
        asked, gone = threading.Event(), threading.Event()
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)

        def serve():
            connection, _ = listener.accept()
            with connection, connection.makefile("rb") as reader:
                read_request(reader)
                asked.set()
                if reader.read(1) == b"":
                    gone.set()
        thread = threading.Thread(target=serve)
        thread.start()
        self.addCleanup(thread.join)
        proxy = Proxy(self, OPEN.format(url=f"http://127.0.0.1:{listener.getsockname()[1]}"))
        with socket.create_connection(("127.0.0.1", proxy.port)) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            # Before the backend has the request, the proxy keeps the connection it opened for the next one.
            self.assertTrue(asked.wait(20))
            proxy.wait_for_metric("weir_proxy_active 1")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.assertTrue(gone.wait(20))
        proxy.wait_for_metric("weir_proxy_active 0")


class Streaming(unittest.TestCase):
    def test_events_are_passed_on_at_once(self):
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        seen = threading.Semaphore(0)
        self.addCleanup(seen.release, 100)

        def serve():
            connection, _ = listener.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
                for i in range(5):
                    connection.sendall(b"data: %d\n\n" % i)
                    seen.acquire(timeout=20)  # the client has it before the next one is sent
        thread = threading.Thread(target=serve)
        thread.start()
        self.addCleanup(thread.join)
        proxy = Proxy(self, OPEN.format(url=f"http://127.0.0.1:{listener.getsockname()[1]}"))
        with socket.create_connection(("127.0.0.1", proxy.port), timeout=20) as connection, connection.makefile("rb") as reader:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            for i in range(5):
                while b"data: %d" % i not in reader.readline():
                    pass
                seen.release()

    def test_a_large_body_is_streamed_in_both_directions_in_flat_memory(self):
        size = 64 << 20
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        received = []

        def serve():
            connection, _ = listener.accept()
            with connection:
                head = b""
                while b"\r\n\r\n" not in head:
                    head += connection.recv(65536)
                count = len(head.split(b"\r\n\r\n", 1)[1])
                while count < size:
                    count += len(connection.recv(1 << 20))
                received.append(count)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
                for _ in range(size >> 20):
                    connection.sendall(b"y" * (1 << 20))
        thread = threading.Thread(target=serve)
        thread.start()
        self.addCleanup(thread.join)
        proxy = Proxy(self, OPEN.format(url=f"http://127.0.0.1:{listener.getsockname()[1]}"))
        before = proxy.resident_bytes()
        with socket.create_connection(("127.0.0.1", proxy.port), timeout=60) as connection:
            connection.sendall(b"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % size)
            for _ in range(size >> 20):
                connection.sendall(b"x" * (1 << 20))
            middle = proxy.resident_bytes()
            head = b""
            while b"\r\n\r\n" not in head:
                head += connection.recv(1000)
            count = len(head.split(b"\r\n\r\n", 1)[1])
            time.sleep(0.2)  # the backend writes on while we do not read
            stalled = proxy.resident_bytes()
            while count < size:
                count += len(connection.recv(1 << 20))
        self.assertEqual((received, count), ([size], size))
        with open(f"/proc/{proxy.process.pid}/maps", encoding="utf-8") as maps:
            sanitized = "libasan" in maps.read()  # it keeps what it was given back
        self.assertLess(max(middle, stalled) - before, (32 << 20) + (sanitized << 29))


class Operation(unittest.TestCase):
    def test_the_access_log_has_a_line_for_each_request_and_is_reopened(self):
        backend = RawBackend(self)
        proxy = Proxy(self, OPEN.format(url=backend.url) + "log: {access: json, access_file: access.log}\n", start=False)
        path = os.path.join(proxy.directory, "access.log")
        proxy.write(text_of(proxy.config).replace("access_file: access.log", f"access_file: {path}"))
        proxy.start()
        proxy.get("/a?secret=1", [("User-Agent", "me"), ("X-Request-Id", "id-1")])

        def lines(name):
            while not os.path.exists(name) or not text_of(name):
                time.sleep(0.01)
            return [json.loads(line) for line in text_of(name).splitlines()]
        line = lines(path)[0]
        expected = {"client": "127.0.0.1", "method": "GET", "host": "h", "path": "/a", "protocol": "HTTP/1.1", "status": 200,
                    "bytes_in": 0, "bytes_out": 2, "upstream": backend.url, "request_id": "id-1", "user_agent": "me", "route": "",
                    "decision": "allowed", "limits": []}
        self.assertEqual({name: line[name] for name in expected}, expected)
        self.assertRegex(line["time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$")
        os.rename(path, path + ".1")
        proxy.process.send_signal(signal.SIGHUP)
        while not os.path.exists(path):
            time.sleep(0.01)
        proxy.get("/b")
        self.assertEqual([one["path"] for one in lines(path)], ["/b"])

    def test_a_reload_changes_the_backend(self):
        one, two = RawBackend(self), RawBackend(self)
        proxy = Proxy(self, OPEN.format(url=one.url))
        proxy.get("/")
        proxy.write(text_of(proxy.config).replace(one.url, two.url))
        proxy.process.send_signal(signal.SIGHUP)
        proxy.wait_for_metric('weir_config_reloads_total{result="ok"} 1')
        proxy.get("/")
        self.assertEqual((len(one.requests), len(two.requests)), (1, 1))

    def test_requests_in_flight_finish_when_the_server_is_told_to_end(self):
        release = threading.Event()
        self.addCleanup(release.set)
        backend = RawBackend(self, lambda request: (release.wait(20), b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")[1])
        proxy = Proxy(self, OPEN.format(url=backend.url))
        with socket.create_connection(("127.0.0.1", proxy.port), timeout=20) as connection, connection.makefile("rb") as reader:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            backend.wait_for(1)
            proxy.process.send_signal(signal.SIGTERM)
            with self.assertRaises(OSError):
                while True:  # until it stops accepting
                    socket.create_connection(("127.0.0.1", proxy.port), timeout=1).close()
            release.set()
            answer = Response(reader)
            self.assertEqual((answer.status, answer.body), (200, b"ok"))
        self.assertEqual(proxy.end()[0], 0)

    def test_it_serves_during_the_drain_delay_and_tunnels_end_with_the_drain_timeout(self):
        backend = RawBackend(self, lambda request: TUNNEL if b"GET /up" in request else OK)
        proxy = Proxy(self, OPEN.format(url=backend.url) + "drain_delay: 3s\ndrain_timeout: 1s\n")
        with socket.create_connection(("127.0.0.1", proxy.port), timeout=20) as tunnel, tunnel.makefile("rb") as reader:
            tunnel.sendall(UPGRADE)
            self.assertEqual(Response(reader).status, 101)
            self.assertEqual(proxy.ready(), 200)
            proxy.process.send_signal(signal.SIGTERM)
            while proxy.ready() != 503:
                time.sleep(0.01)
            self.assertEqual(proxy.get("/").status, 200, "still accepts")
            self.assertEqual(reader.read(), b"", "the tunnel ends")
        self.assertEqual(proxy.end()[0], 0)

    def test_the_proxy_protocol_names_the_client(self):
        backend = RawBackend(self)
        proxy = Proxy(self, f"""
listen:
  - {{address: "127.0.0.1:0", speak: proxy, proxy_protocol: true}}
  - {{address: "127.0.0.1:0", speak: admin}}
limits:
  per-ip: {{key: ip, burst: 1, count: 1, period: 1h}}
backend: {backend.url}
access: {{trusted_proxies: [127.0.0.1]}}
""")
        request = b"GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
        v2 = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c" + socket.inet_aton("198.51.100.7") + socket.inet_aton("10.0.0.1") + b"\0\1\0\2"
        for header, status in ((b"PROXY TCP4 198.51.100.9 10.0.0.1 1 2\r\n", 200),
                               (b"PROXY TCP4 198.51.100.9 10.0.0.1 3 4\r\n", 429), (v2, 200), (v2, 429),
                               (b"PROXY UNKNOWN\r\n", 200), (b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0", 429)):
            self.assertEqual(exchange(proxy.port, header + request).status, status, header)
        self.assertIn("X-Forwarded-For: 198.51.100.9", head_of(backend.requests[0]))
        self.assertEqual(all_bytes(proxy.port, request), b"")
        proxy.wait_for_metric("weir_proxy_header_refused_total 1")


if __name__ == "__main__":
    unittest.main()
