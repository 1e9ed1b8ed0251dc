"""Peers that mean harm, are broken, or are simply many: whoever behaves does not notice."""

import json
import resource
import socket
import struct
import threading
import time
import unittest

from serving import POLICY, Server

THROTTLE = b'{"key":"k","burst":1000000,"count":1000,"period":"1s"}'


def request(body=THROTTLE, target=b"/v1/throttle"):
    return (b"POST %s HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
            % (target, len(body), body))


def read_all(connection):
    """Until the peer closes; a reset after its last words is an end too."""
    answer = b""
    try:
        while piece := connection.recv(1 << 20):
            answer += piece
    except ConnectionResetError:
        pass
    return answer


def send_until_blocked(connection, piece, pieces=4000):
    connection.setblocking(False)
    try:
        for _ in range(pieces):
            connection.send(piece)
    except BlockingIOError:
        return True
    return False


class Others:
    """Someone who behaves: asks on kept connections, one question after another, until the `with` ends."""

    def __init__(self, test, server, connections=4):
        self.test, self.server = test, server
        self.going, self.wrong, self.waits = True, [], []
        self.threads = [threading.Thread(target=self._ask) for _ in range(connections)]

    def _ask(self):
        try:
            with self.server.connect("http") as connection:
                while self.going:
                    asked = time.monotonic()
                    connection.sendall(request())
                    answer = connection.recv(4096)
                    self.waits.append(time.monotonic() - asked)
                    if not answer.startswith(b"HTTP/1.1 200"):
                        raise OSError(answer)
        except OSError as error:
            self.wrong.append(error)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        while len(self.waits) < 10 and not self.wrong:
            time.sleep(0.001)
        return self

    def __exit__(self, *_):
        seen = len(self.waits)
        while len(self.waits) < seen + 10 and not self.wrong:
            time.sleep(0.001)  # they are still answered now
        self.going = False
        for thread in self.threads:
            thread.join()
        self.test.assertEqual(self.wrong, [])
        print(f"\n{self.test.id().rsplit('.', 1)[1]}: others asked {len(self.waits)} times, the slowest took "
              f"{max(self.waits) * 1e3:.1f} ms")


class Hostility(unittest.TestCase):
    def open(self, server, speak, count=1):
        connections = [server.connect(speak) for _ in range(count)]
        for connection in connections:
            self.addCleanup(connection.close)
        return connections

    def test_slow_readers_are_not_read_and_nobody_notices(self):
        server = Server(self)
        with Others(self, server):
            before = server.resident_bytes()
            for speak, piece in (("resp", b"*1\r\n$4\r\nPING\r\n" * 1000), ("http", b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n" * 300),
                                 ("resp", b"CL.THROTTLE k 15 30 60\r\n" * 1000), ("http", request() * 100)):
                for connection in self.open(server, speak, 8):
                    # Asks without end and never reads: the server stops reading it.
                    self.assertTrue(send_until_blocked(connection, piece))
            grown = server.resident_bytes() - before
        print(f"32 slow readers: {grown / 32 / 1024:.0f} KiB each")
        self.assertLess(grown, 32 * (8 << 20), "what is held for each is bounded")

    def test_half_sent_requests_wait_alone(self):
        server = Server(self)
        with Others(self, server):
            half = self.open(server, "http", 100) + self.open(server, "resp", 100)
            for i, connection in enumerate(half[:100]):
                connection.sendall(request()[:20 + i % 150])
            for connection in half[100:]:
                connection.sendall(b"*5\r\n$11\r\nCL.THROT")
        # They are not forgotten either: the rest may still come.
        half[0].sendall(request()[20:])
        self.assertIn(b"200 OK", half[0].recv(4096))
        half[100].sendall(b"TLE\r\n$1\r\na\r\n$2\r\n15\r\n$2\r\n30\r\n$2\r\n60\r\n")
        self.assertEqual(half[100].recv(4096), b"*5\r\n:0\r\n:16\r\n:15\r\n:-1\r\n:2\r\n")

    def test_endless_headers_are_told_so_and_cut_off(self):
        server = Server(self)
        head = b"POST /v1/check HTTP/1.1\r\nHost: a\r\n"
        with Others(self, server):
            for speak, first, endless, last in (("http", b"GET /", b"a" * 4096, b"431"), ("http", head + b"X-A: ", b"a" * 4096, b"431"),
                                                ("http", head, b"X-A: b\r\n" * 100, b"431"), ("resp", b"", b"a" * 4096, b"-ERR"),
                                                ("resp", b"*2000000000\r\n", b"$1\r\na\r\n", b"-ERR"),
                                                ("resp", b"*1\r\n$2000000000\r\n", b"a" * 4096, b"-ERR")):
                connection = self.open(server, speak)[0]
                connection.sendall(first)
                try:
                    for _ in range(4096):
                        connection.sendall(endless)
                except (ConnectionResetError, BrokenPipeError):
                    pass  # it said enough and was cut off while it went on
                else:
                    self.assertIn(last, read_all(connection)[:40])

    def test_a_flood_of_connections_is_not_noticed(self):
        server = Server(self)
        with Others(self, server):
            for i in range(3000):
                connection = server.connect("http" if i % 2 else "resp")
                if i % 3 == 0:
                    connection.sendall(request() if i % 2 else b"PING\r\n")
                if i % 5 == 0:  # goes with a reset instead of a goodbye
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                connection.close()

    def test_without_descriptors_newcomers_wait_and_those_inside_go_on(self):
        server = Server(self, POLICY.replace("threads: 2", "threads: 1"))
        with Others(self, server):
            soft, hard = resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE)
            resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (64, hard))
            crowd = self.open(server, "http", 200)
            for connection in crowd:
                connection.sendall(request())
            self.assertIn(b"200 OK", crowd[0].recv(4096))
            resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (soft, hard))
            for connection in crowd[1:]:
                self.assertIn(b"200 OK", connection.recv(4096))

    def test_garbage_is_answered_and_ends_its_own_connection_only(self):
        server = Server(self)
        with Others(self, server):
            for speak, garbage, answer in (("http", b"\x16\x03\x01\x00\xff not http at all\r\n\r\n", b"400"),
                                           ("resp", b"*-5\r\n$x\r\n", b"-ERR"), ("resp", b"*1\r\n$-9\r\n", b"-ERR")):
                connection = self.open(server, speak)[0]
                connection.sendall(garbage)
                connection.shutdown(socket.SHUT_WR)
                self.assertIn(answer, read_all(connection))

    def test_a_request_that_its_peer_does_not_finish_is_answered_before_the_end(self):
        server = Server(self)
        for speak in ("http", "admin"):
            for half in (request()[:-3], b"GET /heal"):
                with server.connect(speak) as connection:
                    connection.sendall(half)
                    connection.shutdown(socket.SHUT_WR)
                    answer = read_all(connection)
                    self.assertTrue(answer.startswith(b"HTTP/1.1 400"), (speak, half, answer))
                    self.assertIn(b"the connection ended in the middle of the request", answer)

    def test_an_array_whose_last_byte_comes_alone_is_answered_like_any_other(self):
        server = Server(self)
        body = json.dumps([{"limit": "orders", "id": str(i)} for i in range(1000)]).encode()
        with server.connect("http") as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.sendall(b"POST /v1/check HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: application/json\r\n"
                               b"Content-Length: %d\r\n\r\n%s" % (len(body), body[:-1]))
            # The server has read all the rest when another connection was served after it.
            for _ in range(20):
                server.get("http", "/healthz")
            connection.sendall(body[-1:])
            answer = read_all(connection)
        self.assertTrue(answer.startswith(b"HTTP/1.1 200"), answer[:200])
        self.assertEqual(answer.count(b'"remaining":4,'), 2000)

    def test_the_last_words_arrive_though_the_peer_goes_on_talking(self):
        server = Server(self)
        with server.connect("http") as connection:
            connection.sendall(b"POST /v1/check HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
                               b"Content-Length: 9999999\r\n\r\n" + b"x" * 300_000)
            self.assertIn(b"413", read_all(connection)[:20])

    def test_a_thousand_busy_connections_admit_exactly_the_burst(self):
        server = Server(self)
        connections = self.open(server, "http", 1000)
        for connection in connections:
            connection.sendall(request(b'{"key":"k","burst":400,"count":1,"period":"1h"}'))
        answers = [connection.recv(4096)[:12] for connection in connections]
        self.assertEqual(answers.count(b"HTTP/1.1 200"), 400)
        self.assertEqual(answers.count(b"HTTP/1.1 429"), 600)


class Crowd(unittest.TestCase):
    def test_ten_thousand_idle_connections_and_a_thousand_busy_ones(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = min(hard, 12_000)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        count = min(10_000, wanted - 1500)
        server = Server(self)
        before = server.resident_bytes()
        idle = [server.connect("http" if i % 2 else "resp") for i in range(count)]
        server.wait_for_metric(f'weir_connections{{speak="http"}} {count // 2}\n')
        server.wait_for_metric(f'weir_connections{{speak="resp"}} {count - count // 2}\n')
        each = (server.resident_bytes() - before) / count
        busy = [(server.connect("http"), request(), b"HTTP/1.1 200") for _ in range(500)]
        busy += [(server.connect("resp"), b"CL.THROTTLE k 999999 1000 1\r\n", b"*5\r\n:0\r\n") for _ in range(500)]
        for _ in range(5):
            for connection, question, _ in busy:
                connection.sendall(question)
            for connection, _, answer in busy:
                self.assertTrue(connection.recv(4096).startswith(answer))
        print(f"\n{count} idle connections and {len(busy)} busy ones, at most {wanted} descriptors for each process: {each:.0f} "
              f"resident bytes for an idle one, {server.resident_bytes() / 1e6:.0f} MB in all")
        # The idle ones are alive, every one of them.
        for i, connection in enumerate(idle):
            connection.sendall(request() if i % 2 else b"PING\r\n")
        for i, connection in enumerate(idle):
            self.assertTrue(connection.recv(4096).startswith(b"HTTP/1.1 200" if i % 2 else b"+PONG"))
            connection.close()
        for connection, _, _ in busy:
            connection.close()

    def test_the_memory_of_idle_clients_is_returned(self):
        """To the system, in bytes: not only kept for those who come next."""
        server = Server(self, POLICY.replace("memory: {", "memory: {cleanup: 50ms, ").replace("100000", "1000000"))
        with open(f"/proc/{server.process.pid}/maps", encoding="ascii") as maps:
            if "libasan" in maps.read():
                self.skipTest("a sanitizer keeps what it was given back")
        before = server.resident_bytes()
        count, step = 300_000, 10_000
        with server.connect("resp") as connection:
            for first in range(0, count, step):
                connection.sendall(b"".join(b"CL.THROTTLE client-%d 0 1 2\r\n" % i for i in range(first, first + step)))
                lines = 0
                while lines < 6 * step:
                    lines += connection.recv(1 << 20).count(b"\n")
        grown = server.resident_bytes() - before
        self.assertGreater(grown, 15 * count, "there is something to return")
        while server.resident_bytes() - before > grown / 2:
            time.sleep(0.05)
        print(f"\n{count} clients took {grown / 1e6:.1f} MB; idle, {(server.resident_bytes() - before) / 1e6:.1f} MB of it are left")


if __name__ == "__main__":
    unittest.main()
