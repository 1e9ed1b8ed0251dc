"""`weir serve` from the outside: real sockets, real clients, real signals."""

import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import unittest

from serving import POLICY, SOURCE, Server, WEIR


class DecisionApi(unittest.TestCase):
    def test_three_pass_and_the_fourth_is_told_when_to_come_back(self):
        server = Server(self)
        for left in (2, 1, 0):
            status, headers, body = server.post("/v1/check", {"limit": "per-ip", "id": "203.0.113.9"})
            self.assertEqual(status, 200, body)
            self.assertEqual(json.loads(body)["remaining"], left)
            self.assertEqual(headers["X-RateLimit-Remaining"], str(left))
        status, headers, body = server.post("/v1/check", {"limit": "per-ip", "id": "203.0.113.9"})
        self.assertEqual(status, 429)
        self.assertEqual(json.loads(body)["identifier"], "ip:203.0.113.9")
        wait = json.loads(body)["retry_after"]
        self.assertLessEqual(wait, 1200)
        self.assertGreaterEqual(int(headers["Retry-After"]), wait, "rounded up, never down")
        self.assertEqual(headers["RateLimit-Policy"], '"per-ip";q=3;w=3600')

    def test_all_faces_share_one_table(self):
        server = Server(self)
        self.assertEqual(server.post("/v1/check", {"limit": "orders", "id": "7", "cost": 4})[0], 200)
        self.assertTrue(server.resp("WEIR.CHECK", "orders", "7").startswith("*5\r\n:1\r\n:5\r\n:0\r\n"))
        self.assertTrue(server.resp("WEIR.CHECK", "orders", "7").startswith("*5\r\n:0\r\n"))
        self.assertEqual(server.post("/v1/check", {"limit": "orders", "id": "7"})[0], 429)
        self.assertEqual(server.post("/v1/reset", {"limit": "orders", "id": "7"})[0], 204)
        self.assertEqual(server.post("/v1/check", {"limit": "orders", "id": "7"})[0], 200)

    def test_bad_input_gets_a_sentence(self):
        server = Server(self)
        for body, status, code in ((b"{", 400, "bad_json"), ({"limit": "nope", "id": "1"}, 404, "unknown_limit"),
                                   ({"limit": "per-ip", "id": "x"}, 400, "bad_id"),
                                   ({"limit": "orders", "id": "1", "kost": 1}, 400, "unknown_field"),
                                   ({"limit": "orders", "id": "1", "cost": 6}, 400, "cost_exceeds_burst")):
            seen, _, answer = server.post("/v1/check", body)
            self.assertEqual((seen, json.loads(answer)["error"]), (status, code), answer)

    def test_many_checks_in_one_call(self):
        server = Server(self)
        status, _, body = server.post("/v1/check", [{"limit": "orders", "id": str(i % 7)} for i in range(1000)])
        self.assertEqual(status, 200)
        answers = json.loads(body)
        self.assertEqual(len(answers), 1000)
        self.assertEqual(sum(answer["allowed"] for answer in answers), 35)

    def test_probes_and_metrics(self):
        server = Server(self)
        server.post("/v1/check", {"limit": "orders", "id": "1"})
        for speak in ("http", "admin"):
            self.assertEqual(json.loads(server.get(speak, "/healthz"))["status"], "alive")
            self.assertIn("ready", server.get(speak, "/readyz"))
        metrics = server.get("admin", "/metrics")
        self.assertIn('weir_rate_limit_requests_total{limit="orders",limiter_type="",status="allowed"} 1\n', metrics)
        self.assertIn('weir_decision_seconds_count{store="memory"} 1\n', metrics)
        self.assertIn("weir_buckets 1\n", metrics)


class Resp(unittest.TestCase):
    def test_keeps_what_redis_cell_promises(self):
        server = Server(self)
        self.assertEqual(server.resp("CL.THROTTLE", "user123", "15", "30", "60"), "*5\r\n:0\r\n:16\r\n:15\r\n:-1\r\n:2\r\n")
        self.assertTrue(server.resp("CL.THROTTLE", "one", "0", "1", "3600").startswith("*5\r\n:0\r\n:1\r\n:0\r\n"))
        self.assertTrue(server.resp("CL.THROTTLE", "one", "0", "1", "3600").startswith("*5\r\n:1\r\n"), "max_burst 0 limits")
        self.assertEqual(server.resp("DEL", "one", "nobody"), ":1\r\n")

    def test_redis_cli_and_redis_benchmark_are_clients(self):
        server = Server(self)
        port = str(server.ports["resp"])
        cli = subprocess.run(["redis-cli", "-p", port, "CL.THROTTLE", "a", "15", "30", "60"], capture_output=True, text=True, check=True)
        self.assertEqual(cli.stdout.split(), ["0", "16", "15", "-1", "2"])
        bench = subprocess.run(["redis-benchmark", "-p", port, "-n", "20000", "-c", "20", "-P", "16", "-q", "CL.THROTTLE",
                                "__rand_int__", "15", "30", "60"], capture_output=True, text=True, check=True)
        self.assertIn("requests per second", bench.stdout)
        self.assertNotIn("WARN", bench.stdout + bench.stderr)

    def test_a_pipeline_of_any_depth_is_answered_in_order(self):
        server = Server(self)
        with server.connect("resp") as connection:
            connection.sendall(b"".join(b"*2\r\n$4\r\nECHO\r\n$%d\r\n%d\r\n" % (len(str(i)), i) for i in range(5000)))
            connection.shutdown(socket.SHUT_WR)
            answer = b""
            while piece := connection.recv(1 << 20):
                answer += piece
        self.assertEqual(answer, b"".join(b"$%d\r\n%d\r\n" % (len(str(i)), i) for i in range(5000)))


class Hostility(unittest.TestCase):
    def test_garbage_half_requests_and_slow_readers_disturb_nobody(self):
        server = Server(self)
        idle = [server.connect("http") for _ in range(200)]
        for connection in idle[:100]:
            connection.sendall(b"POST /v1/check HTTP/1.1\r\nHost: a\r\nContent-Le")
        slow = server.connect("resp")
        slow.setblocking(False)
        try:
            # Asks without end and never reads: the server stops reading it.
            for _ in range(2000):
                slow.send(b"*1\r\n$4\r\nPING\r\n" * 1000)
        except BlockingIOError:
            pass
        with server.connect("http") as garbage:
            garbage.sendall(b"\x16\x03\x01\x00\xff not http at all\r\n\r\n")
            self.assertIn(b"400", garbage.recv(4096))
        for _ in range(3):
            self.assertEqual(server.post("/v1/check", {"limit": "orders", "id": "x"})[0], 200)
        for connection in [*idle, slow]:
            connection.close()

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
            answer = b""
            while piece := connection.recv(1 << 20):
                answer += piece
        self.assertTrue(answer.startswith(b"HTTP/1.1 200"), answer[:200])
        self.assertEqual(answer.count(b'"remaining":4,'), 2000)

    def test_the_last_words_arrive_though_the_peer_goes_on_talking(self):
        server = Server(self)
        with server.connect("http") as connection:
            connection.sendall(b"POST /v1/check HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
                               b"Content-Length: 9999999\r\n\r\n" + b"x" * 300_000)
            answer = b""
            while piece := connection.recv(65536):
                answer += piece
        self.assertIn(b"413", answer[:20])

    def test_a_thousand_busy_connections_admit_exactly_the_burst(self):
        server = Server(self)
        connections = [server.connect("http") for _ in range(1000)]
        body = b'{"key":"k","burst":400,"count":1,"period":"1h"}'
        for connection in connections:
            connection.sendall(b"POST /v1/throttle HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
                               b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        answers = [connection.recv(4096)[:12] for connection in connections]
        for connection in connections:
            connection.close()
        self.assertEqual(answers.count(b"HTTP/1.1 200"), 400)
        self.assertEqual(answers.count(b"HTTP/1.1 429"), 600)


class Crowd(unittest.TestCase):
    def test_ten_thousand_idle_connections_cost_little_and_disturb_nobody(self):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = min(hard, 12_000)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        count = min(10_000, wanted - 500)
        server = Server(self)
        before = server.resident_bytes()
        idle = [server.connect("http") for _ in range(count)]
        body = b'{"key":"k","burst":1000000,"count":1000,"period":"1s"}'
        request = (b"POST /v1/throttle HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
                   b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        busy = idle[:1000]
        for _ in range(3):
            for connection in busy:
                connection.sendall(request)
            for connection in busy:
                self.assertEqual(connection.recv(4096)[:12], b"HTTP/1.1 200")
        self.assertIn(f'weir_connections{{speak="http"}} {count}\n', server.get("admin", "/metrics"))
        each = (server.resident_bytes() - before) / count
        print(f"\n{count} connections of {hard} descriptors, 1000 of them busy: {each:.0f} resident bytes each")
        for connection in idle:
            connection.close()


class Readme(unittest.TestCase):
    def test_its_transcripts_are_what_happens(self):
        source = SOURCE
        with open(os.path.join(source, "README.md"), encoding="utf-8") as file:
            readme = file.read()
        with open(os.path.join(source, "examples", "quickstart.yaml"), encoding="utf-8") as file:
            quickstart = file.read()
        server = Server(self, POLICY[:POLICY.index("limits:")] + quickstart)
        shutil.copy(os.path.join(source, "examples", "quickstart.yaml"), server.directory)
        environment = {**os.environ, "PATH": os.path.dirname(os.path.abspath(WEIR)) + ":" + os.environ["PATH"]}
        steps = 0
        for transcript in re.findall(r"^```console\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL):
            parts = re.split(r"^\$ (.*)\n", transcript, flags=re.MULTILINE)
            for command, expected in zip(parts[1::2], parts[2::2]):
                command = command.replace("localhost:8080", f"localhost:{server.ports['http']}")
                command = command.replace("-p 6380", f"-p {server.ports['resp']}")
                # On a terminal redis-cli numbers its answers; --no-raw makes it do so for a pipe too.
                command = command.replace("redis-cli", "redis-cli --no-raw").replace("curl", "curl --silent")
                done = subprocess.run(["bash", "-c", command], cwd=server.directory, env=environment, capture_output=True,
                                      text=True, timeout=30, check=False)
                pattern = re.escape(expected.strip()).replace("…", ".*")
                self.assertRegex(done.stdout.replace("\r", "").strip(), rf"\A{pattern}\Z", command + done.stderr)
                steps += 1
        self.assertGreaterEqual(steps, 7)


class Hashed(unittest.TestCase):
    def test_ids_of_hashed_limits_are_never_shown_and_their_key_is_kept_with_the_state(self):
        directory = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, directory)
        policy = (POLICY + "  email: {burst: 2, count: 2, period: 1h, hashed: true}\n"
                  f'state: {{live: "{directory}/state.live"}}\n')
        seen = []
        for left in (1, 0):
            server = Server(self, policy, directory)
            status, _, body = server.post("/v1/check", {"limit": "email", "id": "a@example.com"})
            self.assertEqual((status, json.loads(body)["remaining"]), (200, left), body)
            self.assertNotIn("example.com", body)
            seen.append(json.loads(body)["id"])
            server.end()
        self.assertEqual(seen[0], seen[1])


class Life(unittest.TestCase):
    def test_sigterm_drains_and_ends_cleanly(self):
        server = Server(self)
        idle = server.connect("http")
        code, rest = server.end()
        idle.close()
        self.assertEqual(code, 0)
        self.assertIn(" info stopped", rest)

    def test_a_reload_applies_whole_or_not_at_all(self):
        server = Server(self)
        self.assertEqual(server.post("/v1/check", {"limit": "orders", "id": "1", "cost": 5})[0], 200)
        server.write(POLICY.replace("burst: 5", "burst: 6").replace("per-ip:", "per-ip: {nonsense: 1}\n  other:"))
        server.process.send_signal(signal.SIGHUP)
        while "not reloaded" not in server.process.stderr.readline():
            pass
        self.assertEqual(server.post("/v1/check", {"limit": "orders", "id": "1"})[0], 429)
        server.write(POLICY.replace("burst: 5", "burst: 6"))
        server.process.send_signal(signal.SIGHUP)
        while "info reloaded" not in server.process.stderr.readline():
            pass
        # Every loop takes the new policy in its next turn.
        while server.post("/v1/check", {"limit": "orders", "id": "2", "cost": 6})[0] != 200:
            pass
        self.assertIn('weir_config_reloads_total{result="failed"} 1', server.get("admin", "/metrics"))

    def test_a_killed_server_comes_back_with_every_acknowledged_spend(self):
        directory = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, directory)
        policy = POLICY + f'state: {{live: "{directory}/state.live", snapshot: "{directory}/state.snapshot"}}\n'
        server = Server(self, policy, directory)
        for _ in range(5):
            self.assertEqual(server.post("/v1/check", {"limit": "orders", "id": "1"})[0], 200)
        server.end(signal.SIGKILL)
        again = Server(self, policy, directory)
        self.assertEqual(again.post("/v1/check", {"limit": "orders", "id": "1"})[0], 429)
        self.assertEqual(again.end()[0], 0)
        sealed = Server(self, policy, directory)
        self.assertEqual(sealed.post("/v1/check", {"limit": "orders", "id": "1"})[0], 429)

    def test_a_second_server_on_the_same_port_is_refused(self):
        first = Server(self)
        second = POLICY.replace("127.0.0.1:0", f"127.0.0.1:{first.ports['http']}", 1)
        path = os.path.join(first.directory, "second.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(second)
        ended = subprocess.run([WEIR, "serve", "--config", path], capture_output=True, text=True, timeout=30, check=False)
        self.assertEqual(ended.returncode, 1, ended.stderr)
        self.assertIn("Address already in use", ended.stderr)

    def test_what_cannot_start_says_why(self):
        taken = socket.socket()
        self.addCleanup(taken.close)
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with tempfile.TemporaryDirectory() as directory:
            for text, code, sentence in (
                    (f'listen: [{{address: "127.0.0.1:{port}", speak: http}}]', 1, f"cannot listen on 127.0.0.1:{port}"),
                    ('listen: [{address: "127.0.0.1:0", speak: grpc}]', 2, "not built yet"),
                    ('listen: [{address: "127.0.0.1:0", speak: [http, resp]}]', 2, "an address of their own"),
                    ('listen: [{address: "127.0.0.1:0", speak: http, password: x}]', 2, "protects nothing"),
                    ("state: {live: /tmp/a, snapshot: /tmp/a}", 2, "a file each"),
                    ("access: {deny: [{ip: 203.0.113.0/24}]}", 2, "weir.yaml:1:22: access.deny[0].ip is not built yet"),
                    ("admin: {read_token: x}", 2, "admin.read_token is not built yet"),
                    ("limits: {a: {burst: 0}}", 2, "burst")):
                path = os.path.join(directory, "weir.yaml")
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
                ended = subprocess.run([WEIR, "serve", "--config", path], capture_output=True, text=True, timeout=30, check=False)
                self.assertEqual(ended.returncode, code, ended.stderr)
                self.assertIn(sentence, ended.stderr)


if __name__ == "__main__":
    unittest.main()
