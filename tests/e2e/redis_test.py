"""`weir serve` with `store: redis`: real redis-server processes, real clients, several servers on one Redis."""

import json
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
import unittest

from redis_servers import Redis, free_port, speak, until
from serving import Server

POLICY = """
listen:
  - {{address: "127.0.0.1:0", speak: http}}
  - {{address: "127.0.0.1:0", speak: resp}}
  - {{address: "127.0.0.1:0", speak: admin}}
threads: 2
store: redis
redis: {{endpoints: ["127.0.0.1:{port}"], timeout: {timeout}}}
limits:
  orders: {{burst: 5, count: 5, period: 1h}}
  fast: {{burst: 20, count: 200, period: 1s}}
  secret: {{burst: 5, count: 5, period: 1h, hashed: true}}
  daily: {{quota: 3/day}}
"""


class Page(unittest.TestCase):
    def test_try_it_on_the_redis_page_runs_as_printed(self):
        with open(os.path.join(os.environ["WEIR_SOURCE"], "docs", "redis.md"), encoding="utf-8") as file:
            page = file.read().split("## Try it", 1)[1]
        redis = Redis(self)
        configuration = re.search(r"^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)[1]
        listen = POLICY[:POLICY.index("threads")].replace("{{", "{").replace("}}", "}")
        server = Server(self, listen + configuration.replace("6379", str(redis.port)))
        transcript = re.search(r"^```console\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)[1]
        steps = re.split(r"^\$ (.*)\n", transcript, flags=re.MULTILINE)
        for command, expected in zip(steps[1::2], steps[2::2]):
            command = command.replace("6379", str(redis.port)).replace("8080", str(server.ports["http"]))
            command = command.replace("redis-cli", "redis-cli --no-raw")  # as on a terminal
            done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=30, check=False)
            self.assertRegex(done.stdout, rf"\A{re.escape(expected).replace('…', '.*')}\Z", command + done.stderr)
        self.assertEqual(len(steps), 5)


def policy(redis, timeout="2s"):
    return POLICY.format(port=redis.port, timeout=timeout)


def check(server, limit, client, cost=1):
    status, _, body = server.post("/v1/check", {"limit": limit, "id": client, "cost": cost})
    return status, json.loads(body)


class Start(unittest.TestCase):
    def test_the_first_requests_after_a_start_are_limited(self):
        redis = Redis(self)
        for i in range(8):
            server = Server(self, policy(redis, timeout="20s"))
            answers = [check(server, "orders", f"first-{i}") for _ in range(7)]
            self.assertEqual([status for status, _ in answers], [200] * 5 + [429] * 2)
            self.assertEqual([body for _, body in answers if "degraded" in body], [])
            server.end()


class Monitor:
    """What MONITOR shows, from now until stop()."""

    def __init__(self, redis):
        self.redis = redis
        self.connection = socket.create_connection(("127.0.0.1", redis.port), timeout=20)
        self.connection.sendall(b"MONITOR\r\n")
        self.file = self.connection.makefile("r", encoding="utf-8")
        assert self.file.readline().startswith("+OK")

    def stop(self):
        """The commands that clients sent, and those that scripts ran."""
        speak(self.redis.port, "ECHO", "the end")
        asked, run = [], []
        while '"the end"' not in (line := self.file.readline()):
            # Twice a second a server looks whether the adjustments and access lists that it shares have changed.
            if '"HGET" "weir:a' not in line:
                (run if " lua]" in line else asked).append(line)
        self.file.close()
        self.connection.close()
        return asked, run


def wait_until_up(server):
    server.wait_for_metric("weir_store_up 1\n")


class RedisTest(unittest.TestCase):
    def start(self, redis, timeout="2s"):
        server = Server(self, policy(redis, timeout))
        wait_until_up(server)
        return server

    def test_buckets_live_in_redis_under_the_documented_keys(self):
        redis = Redis(self)
        server = self.start(redis)
        status, answer = check(server, "orders", "42")
        self.assertEqual((status, answer["remaining"]), (200, 4))
        self.assertEqual(server.resp("CL.THROTTLE", "mine", "15", "30", "60").split("\r\n")[1:3], [":0", ":16"])
        check(server, "daily", "7")
        keys = sorted(redis("KEYS", "*"))
        self.assertEqual([key for key in keys if "hash_key" not in key],
                         ["weir:a:mine", "weir:b:orders:42", "weir:w:daily:7"])

    def test_one_command_per_request_and_one_per_second_for_repeats_of_a_denial(self):
        redis = Redis(self)
        server = self.start(redis)
        monitor = Monitor(redis)
        for _ in range(5):
            self.assertEqual(check(server, "orders", "42")[0], 200)
        asked, _ = monitor.stop()
        self.assertEqual(len(asked), 5, asked)
        monitor = Monitor(redis)
        begin = time.monotonic()
        denied = 0
        while time.monotonic() - begin < 2 or denied < 100:
            self.assertEqual(check(server, "orders", "42")[0], 429)
            with server.connect("resp") as connection, connection.makefile("rb") as answers:
                connection.sendall(b"WEIR.CHECK orders 42\r\n" * 50)
                for _ in range(50):
                    self.assertEqual([answers.readline() for _ in range(6)][1], b":0\r\n")
            denied += 51
        seconds = time.monotonic() - begin
        asked, run = monitor.stop()
        # Two loops share what they remember.
        self.assertLessEqual(len(asked), seconds + 1, f"{denied} denials in {seconds} s")
        self.assertEqual([line for line in run if '"SET"' in line], [], "a denial writes nothing")
        self.assertIn("weir_denial_cache_hits_total", server.get("admin", "/metrics"))

    def test_a_bucket_disappears_when_it_is_full_and_not_before(self):
        redis = Redis(self)
        server = self.start(redis)
        look = "local t = redis.call('TIME'); return {t[1], t[2], redis.call('PEXPIRETIME', KEYS[1]), redis.call('GET', KEYS[1])}"
        for cost in (1, 7, 20):
            state = None
            while state is None:  # it may be full again before we look
                self.assertEqual(check(server, "fast", "42", cost)[0], 200)
                _, _, expires_ms, state = redis("EVAL", look, 1, "weir:b:fast:42")
            full_ns = int(state)  # seconds and nine digits of nanoseconds
            self.assertGreaterEqual(expires_ms * 1_000_000, full_ns)
            self.assertLess(expires_ms * 1_000_000, full_ns + 2_000_000)
            while state is not None:
                seconds, microseconds, _, state = redis("EVAL", look, 1, "weir:b:fast:42")
            self.assertGreaterEqual((int(seconds) * 1_000_000 + int(microseconds)) * 1000, full_ns)

    def test_hashed_limits_share_one_key(self):
        redis = Redis(self)
        one, two = self.start(redis), self.start(redis)
        self.assertEqual(check(one, "secret", "alice")[1]["remaining"], 4)
        self.assertEqual(check(two, "secret", "alice")[1]["remaining"], 3)
        self.assertNotIn("alice", str(redis("KEYS", "*")))

    def test_answers_within_the_timeout_whatever_happens_to_redis(self):
        redis = Redis(self)
        server = self.start(redis, "200ms")
        check(server, "orders", "42")
        for away, back in ((redis.pause, redis.resume), (redis.kill, redis.start)):
            away()
            for _ in range(20):
                check(server, "orders", "43")
            until("the server notices", lambda: "weir_store_up 0\n" in server.get("admin", "/metrics"))
            back()
            wait_until_up(server)
            self.assertEqual(check(server, "fast", "1")[0], 200)

    def test_tls_with_a_client_certificate(self):
        directory = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, directory)
        cert, key = os.path.join(directory, "cert.pem"), os.path.join(directory, "key.pem")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                        "-subj", "/CN=redis", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert],
                       check=True, capture_output=True)
        port = free_port()
        Redis(self, "--tls-port", str(port), "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert,
              "--tls-auth-clients", "yes")
        tls = f"tls: {{enabled: true, ca_file: {cert}, cert_file: {cert}, key_file: {key}}}"
        server = Server(self, POLICY.format(port=port, timeout="2s, " + tls))
        wait_until_up(server)
        self.assertEqual(check(server, "orders", "42")[1]["remaining"], 4)

    def test_a_window_beyond_redis_is_refused_at_the_start(self):
        redis = Redis(self)
        with self.assertRaises(AssertionError):
            Server(self, policy(redis) + "  slow: {burst: 2, count: 1, period: 60d}\n")


if __name__ == "__main__":
    unittest.main()
