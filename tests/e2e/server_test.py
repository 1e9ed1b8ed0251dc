"""`weir serve` from the outside: real sockets, real clients, real signals."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import unittest
import urllib.request

from serving import ENVIRONMENT, POLICY, WEIR, Server


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


class ScriptServer(unittest.TestCase):
    def test_builds_what_it_starts(self):
        source = os.environ["WEIR_SOURCE"]
        with open(os.path.join(source, "script", "server"), encoding="utf-8") as file:
            started = set(re.findall(r"^(?:exec |  )build/release/\S+/(\w+)", file.read(), re.MULTILINE))
        with open(os.path.join(source, "CMakePresets.json"), encoding="utf-8") as file:
            built = next(preset for preset in json.load(file)["buildPresets"] if preset["name"] == "release")["targets"]
        self.assertEqual(started, {"weir" if target == "weir_program" else target for target in built})


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


    def test_entries_made_under_another_hash_key_are_listed_as_not_in_force(self):
        """Issue 14, row 12."""
        directory = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, directory)
        policy = (POLICY + "  email: {burst: 2, count: 2, period: 1h, hashed: true}\n"
                  f'state: {{snapshot: "{directory}/snapshot"}}\nhash_key: ')

        def listed(server):
            lists = [json.loads(server.get("admin", path)) for path in ("/ratelimit/adjust", "/ratelimit/access/deny")]
            return [entry.get("in_force") for entry in lists[0]["adjustments"] + lists[1]["entries"]]

        server = Server(self, policy + "first-key-of-hashed-ids\n", directory)
        for method, path, body in (("PUT", "/ratelimit/adjust/email/a@example.com", {"burst": 50}),
                                   ("POST", "/ratelimit/access/deny", {"limit": "email", "id": "b@example.com"})):
            request = urllib.request.Request(f"http://127.0.0.1:{server.ports['admin']}{path}", method=method,
                                             data=json.dumps(body).encode(), headers={"Content-Type": "application/json"})
            urllib.request.urlopen(request, timeout=20).close()
        self.assertEqual(listed(server), [None, None])
        self.assertEqual(server.post("/v1/check", {"limit": "email", "id": "b@example.com"})[0], 403)
        server.end()
        other = Server(self, policy + "other-key-of-hashed-ids\n", directory)
        self.assertIn("2 of the adjustments and access entries made at run time match nobody", other.said)
        self.assertEqual(listed(other), [False, False])
        self.assertEqual(other.post("/v1/check", {"limit": "email", "id": "b@example.com"})[0], 200)
        # The key may have been changed by mistake.
        other.write(policy + "first-key-of-hashed-ids\n")
        other.process.send_signal(signal.SIGHUP)
        while listed(other) != [None, None]:
            pass
        self.assertEqual(other.post("/v1/check", {"limit": "email", "id": "b@example.com"})[0], 403)


class Life(unittest.TestCase):
    def test_a_start_reads_its_files_once(self):
        """Issue 14, row 12: a pipe can be read once only."""
        with tempfile.TemporaryDirectory() as directory:
            limits = os.path.join(directory, "limits.yaml")
            os.mkfifo(limits)
            config = os.path.join(directory, "weir.yaml")
            os.mkfifo(config)
            process = subprocess.Popen([WEIR, "serve", "--config", config], stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
            self.addCleanup(process.stderr.close)
            self.addCleanup(process.wait, 30)
            self.addCleanup(process.terminate)
            with open(config, "w", encoding="utf-8") as file:
                file.write(POLICY[:POLICY.index("limits:")] + f"limits: {limits}\n")
            with open(limits, "w", encoding="utf-8") as file:
                file.write("orders: {rate: 5/h, hashed: true}\n")
            while "ready:" not in (line := process.stderr.readline()):
                self.assertNotEqual(line, "", "the server ended before it was ready")

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
        while "reload failed" not in server.process.stderr.readline():
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
        ended = subprocess.run([WEIR, "serve", "--config", path], capture_output=True, text=True, timeout=30, check=False,
                               env=ENVIRONMENT)
        self.assertEqual(ended.returncode, 1, ended.stderr)
        self.assertIn("Address already in use", ended.stderr)

    def test_a_failed_start_leaves_the_live_file_closed(self):
        """Issue 14, row 3."""
        directory = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, directory)
        policy = POLICY + f'state: {{live: "{directory}/state.live"}}\n'
        server = Server(self, policy, directory)
        self.assertEqual(server.post("/v1/check", {"limit": "orders", "id": "1"})[0], 200)
        server.end()
        taken = socket.socket()
        self.addCleanup(taken.close)
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        server.write(policy.replace("127.0.0.1:0", f"127.0.0.1:{taken.getsockname()[1]}", 1))
        failed = subprocess.run([WEIR, "serve", "--config", server.config], capture_output=True, text=True, timeout=30,
                                check=False, env=ENVIRONMENT)
        self.assertIn("Address already in use", failed.stderr)
        server.write(policy)
        server.start()
        self.assertIn("taken as it was closed, with 1 bucket", server.said)
        self.assertNotIn("killed", server.said)

    def test_a_server_removes_only_the_unix_socket_that_it_bound(self):
        """Issue 14, row 3."""
        directory = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, directory)
        path = os.path.join(directory, "weir.sock")
        policy = POLICY.replace("limits:", f'  - {{address: "unix:{path}", speak: http}}\nlimits:').replace(
            "threads: 2\nmemory: {max_buckets: 100000}\n", "")
        first = Server(self, policy)
        second = Server(self, policy, start=False)
        refused = subprocess.run([WEIR, "serve", "--config", second.config], capture_output=True, text=True, timeout=30,
                                 check=False, env=ENVIRONMENT)
        self.assertEqual(refused.returncode, 1, refused.stderr)
        self.assertIn(f"cannot listen on unix:{path}: Address already in use", refused.stderr)
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(path)
        # The path goes to a successor while the first server still runs.
        os.unlink(path)
        second.start()
        first.end()
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(path)
        second.end()
        self.assertFalse(os.path.exists(path), "its own socket is removed")
        with open(path, "w", encoding="utf-8") as file:
            file.write("precious")
        refused = subprocess.run([WEIR, "serve", "--config", second.config], capture_output=True, text=True, timeout=30,
                                 check=False, env=ENVIRONMENT)
        self.assertIn(f"{path} exists and is not a socket", refused.stderr)
        with open(path, encoding="utf-8") as file:
            self.assertEqual(file.read(), "precious")

    def test_a_second_redis_for_answers_that_nobody_gives_is_not_used(self):
        server = Server(self, POLICY + 'cache_redis: {endpoints: ["127.0.0.1:1"]}\n')
        self.assertEqual(server.post("/v1/check", {"limit": "orders", "id": "1"})[0], 200)

    def test_what_cannot_start_says_why(self):
        taken = socket.socket()
        self.addCleanup(taken.close)
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with tempfile.TemporaryDirectory() as directory:
            for text, code, sentence in (
                    (f'listen: [{{address: "127.0.0.1:{port}", speak: http}}]', 1, f"cannot listen on 127.0.0.1:{port}"),
                    ("limits: {a: {rate: 1/s, external: {enabled: true, http: {url: 'https://x', ca_file: none.pem}}}}", 2,
                     "none.pem: No such file or directory"),
                    ('listen: [{address: "127.0.0.1:0", speak: [http, resp]}]', 2, "an address of their own"),
                    ('listen: [{address: "127.0.0.1:0", speak: http, password: x}]', 2, "has no effect here"),
                    ("state: {live: /tmp/a, snapshot: /tmp/a}", 2, "a file each"),
                    ('listen: [{address: "0.0.0.0:0", speak: admin}]', 2, "needs admin.read_token or admin.write_token"),
                    ('listen: [{address: "127.0.0.1:0", speak: http, proxy_protocol: true}]', 2,
                     "proxy_protocol works on a listener that speaks proxy"),
                    ('listen: [{address: "127.0.0.1:0", speak: http, tls: {cert: none.pem, key: none.key}}]', 2,
                     "none.pem: No such file or directory"),
                    ("listen: []", 2, "1:9: listen must have at least one entry"),
                    ("memory: {max_buckets: 2G}", 2, "1:23: max_buckets 2G must be"),
                    ("limits: {a: {burst: 0}}", 2, "burst")):
                path = os.path.join(directory, "weir.yaml")
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
                ended = subprocess.run([WEIR, "serve", "--config", path], capture_output=True, text=True, timeout=30, check=False,
                                       env=ENVIRONMENT)
                self.assertEqual(ended.returncode, code, ended.stderr)
                self.assertIn(sentence, ended.stderr)
                # Who checks a file first is told the same; what waits to be built or to be there is a warning.
                checked = subprocess.run([WEIR, "config", "check", path], capture_output=True, text=True, timeout=30, check=False,
                                         env=ENVIRONMENT)
                warned = "not built" in sentence or "No such file" in sentence
                self.assertEqual(checked.returncode, 2 if code == 2 and not warned else 0, checked.stderr)
                if code == 2:
                    self.assertIn(sentence, checked.stderr)

    def test_flags_go_before_the_file_at_the_start_and_at_a_reload(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "weir.yaml")
            with open(path, "w", encoding="utf-8") as file:
                file.write("limits: {a: {rate: 1/h}}\nmemory: {max_buckets: 1000}\n")
            ports = [word for i in range(3) for word in ("--set", f"listen[{i}].address=127.0.0.1:0")]
            process = subprocess.Popen([WEIR, "serve", "--config", path, *ports, "--set", "limits.a.burst=2"],
                                       stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
            self.addCleanup(process.stderr.close)
            self.addCleanup(process.wait, 30)
            self.addCleanup(process.terminate)
            while "ready:" not in (line := process.stderr.readline()):
                self.assertNotEqual(line, "", "the server ended before it was ready")
            admin = int(re.search(r"admin on 127\.0\.0\.1:(\d+)", line)[1])
            process.send_signal(signal.SIGHUP)
            # A reload without them would have other ports, and say that only a restart changes those.
            self.assertIn("reloaded", process.stderr.readline())
            with urllib.request.urlopen(f"http://127.0.0.1:{admin}/ratelimit/config", timeout=20) as answer:
                settings = json.load(answer)["settings"]
            self.assertIn({"path": "limits.a.burst", "value": "2", "source": "--set"}, settings)

    def test_a_service_that_is_switched_off_is_nothing_to_wait_for(self):
        server = Server(self, POLICY + "  a: {rate: 1/s, external: {enabled: false}}\nexternal: {enabled: false}\n")
        self.assertEqual(server.post("/v1/check", {"limit": "a", "id": "1"})[0], 200)


if __name__ == "__main__":
    unittest.main()
