"""A server without a file: six variables, and what they promise about clients, answers, metrics and memory."""

import json
import os
import re
import socket
import subprocess
import time
import unittest
import urllib.request

from program import BINARY, ProgramTest, weir


class Server:
    """`weir serve` without a file listens on its usual ports, so free ones are handed to it the way systemd does."""

    def __init__(self, test, settings=None, **variables):
        sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
        self.http, self.resp, self.admin = [one.getsockname()[1] for one in sockets]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("WEIR_")}
        environment.update({f"WEIR_RATE_LIMIT_{name}": value for name, value in variables.items()})
        environment.update(settings or {})
        # The child's descriptors 3, 4 and 5, and a process that knows its own number.
        script = "exec 3<&%d 4<&%d 5<&%d; export LISTEN_FDS=3 LISTEN_PID=$$; exec %s serve" % (
            *[one.fileno() for one in sockets], BINARY)
        self.process = subprocess.Popen(["bash", "-c", script], env=environment, stderr=subprocess.PIPE, text=True,
                                        pass_fds=[one.fileno() for one in sockets])
        test.addCleanup(self.end)
        for one in sockets:
            one.close()
        while "ready:" not in (line := self.process.stderr.readline()):
            if not line:
                raise AssertionError("the server ended before it was ready")
        self.connection = socket.create_connection(("127.0.0.1", self.http), timeout=20)
        self.answers = self.connection.makefile("rb")
        test.addCleanup(self.connection.close)
        test.addCleanup(self.answers.close)

    def end(self):
        self.process.terminate()
        self.process.wait(timeout=30)
        self.process.stderr.close()

    def post(self, path, body):
        content = json.dumps(body).encode()
        self.connection.sendall(b"POST %s HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
                                % (path.encode(), len(content), content))
        status = int(self.answers.readline().split()[1])
        headers = {}
        while (line := self.answers.readline().decode().rstrip()) != "":
            name, _, value = line.partition(": ")
            headers[name.lower()] = value
        return status, headers, json.loads(self.answers.read(int(headers["content-length"])))

    def check(self, client, limit="per-ip"):
        return self.post("/v1/check", {"limit": limit, "id": client})

    def at_once(self, client, count, limit="per-ip"):
        """How many of so many requests pass that all come in one instant: one call, decided on one reading of the clock."""
        return sum(answer["allowed"] for answer in self.post("/v1/check", [{"limit": limit, "id": client}] * count)[2])

    def wait_until_full(self, client, burst, limit="per-ip"):
        while self.post("/v1/peek", {"limit": limit, "id": client})[2]["remaining"] < burst:
            time.sleep(0.01)

    def metrics(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}/metrics", timeout=20) as answer:
            return answer.read().decode()


class Scenarios(ProgramTest):
    """Rate 100 per second, burst 20."""

    def replayed(self, times):
        config = self.file("alone.yaml", "limits: {per-ip: {key: ip, count: 100, period: 1s, burst: 20}}\n")
        trace = "".join(f'{{"t": {t}, "limit": "per-ip", "id": "192.0.2.1"}}\n' for t in times)
        done = weir("simulate", "--config", config, "--trace", "-", stdin=trace.encode())
        self.assertEqual(done.returncode, 0, done.stderr)
        return [json.loads(line)["allowed"] for line in done.stdout.splitlines()]

    def test_normal_traffic_to_the_nanosecond(self):
        ten_at_once = ["0.000000000"] * 10
        a_hundred_a_second = [f"{1 + i // 100}.{i % 100 * 10_000_000:09d}" for i in range(300)]
        self.assertTrue(all(self.replayed(ten_at_once + a_hundred_a_second)))

    def test_150_per_second_lose_50_per_second_once_the_burst_is_used(self):
        # 150 in every second, evenly: the i-th comes at i / 150 s, written without rounding errors that add up.
        nanoseconds = [i * 1_000_000_000 // 150 for i in range(150 * 10)]
        answers = self.replayed([f"{ns // 1_000_000_000}.{ns % 1_000_000_000:09d}" for ns in nanoseconds])
        denied = [sum(not allowed for allowed in answers[second * 150:(second + 1) * 150]) for second in range(10)]
        self.assertEqual(sum(denied[:1]), 50 - 20 + 1, "the first second spends the burst, less what the last token is late")
        self.assertEqual(denied[1:], [50] * 9)

    def test_a_bucket_of_20_means_it(self):
        server = Server(self)
        self.assertEqual(server.at_once("192.0.2.1", 30), 20)
        status, _, answer = server.check("192.0.2.1")
        if status == 429:  # otherwise 10 ms have gone by, and a token is back
            self.assertLessEqual(answer["retry_after"], 0.01)
        # After a second's wait it is full again, and full is 20, not the 100 that a second brings.
        server.wait_until_full("192.0.2.1", 20)
        self.assertEqual(server.at_once("192.0.2.1", 100), 20)

    def test_100_pass_in_a_second_when_spaced_10_ms(self):
        server = Server(self)
        self.assertEqual(server.at_once("192.0.2.1", 20), 20)
        for _ in range(100):
            time.sleep(0.010)  # at least: however late this process wakes, the token is there
            self.assertEqual(server.check("192.0.2.1")[0], 200)

    def test_more_than_100_per_second_never_pass(self):
        server = Server(self)
        started = time.monotonic()
        allowed = 0
        denied = 0
        while denied < 100:  # as fast as one connection can
            status, headers, answer = server.check("192.0.2.1")
            allowed += status == 200
            denied += status == 429
            if status == 429:
                self.assertGreater(answer["retry_after"], 0)
                self.assertLessEqual(answer["retry_after"], 0.01)
                self.assertEqual(headers["retry-after"], "1")
        self.assertGreaterEqual(allowed, 20)
        self.assertLessEqual(allowed, 20 + (time.monotonic() - started) * 100)

    def test_clients_are_independent(self):
        server = Server(self, BY_APIKEY="true")
        self.assertEqual([server.at_once(f"192.0.2.{i}", 30) for i in (1, 2, 3)], [20, 20, 20])
        self.assertEqual([server.at_once(f"key-{i}", 30, "per-apikey") for i in (1, 2)], [20, 20])


class Answers(ProgramTest):
    def test_a_denial_says_who_and_when(self):
        server = Server(self, REQUESTS_PER_SEC="0.5", BURST="2")
        for left in ("1", "0"):
            status, headers, _ = server.check("192.168.1.1")
            self.assertEqual((status, headers["x-ratelimit-limit"], headers["x-ratelimit-remaining"]), (200, "2", left))
        status, headers, answer = server.check("192.168.1.1")
        self.assertEqual(status, 429)
        self.assertEqual(answer["error"], "rate limit exceeded")
        self.assertEqual(answer["message"], "Too many requests. Please try again later.")
        self.assertEqual(answer["identifier"], "ip:192.168.1.1")
        self.assertIn(headers["retry-after"], ("1", "2"))
        self.assertLessEqual(int(headers["x-ratelimit-reset"]) - int(time.time()), 6)

    def test_metrics_tell_the_strategies_apart(self):
        server = Server(self, BY_APIKEY="true", BURST="1", REQUESTS_PER_SEC="0.001")
        for _ in range(3):
            server.check("192.0.2.1")
        server.check("key-abc-123", "per-apikey")
        metrics = server.metrics()
        for line in ('weir_rate_limit_requests_total{limit="per-ip",limiter_type="ip",status="allowed"} 1',
                     'weir_rate_limit_requests_total{limit="per-ip",limiter_type="ip",status="denied"} 2',
                     'weir_rate_limit_requests_total{limit="per-apikey",limiter_type="apikey",status="allowed"} 1',
                     'weir_rate_limit_exceeded_total{limit="per-ip",limiter_type="ip"} 2'):
            self.assertIn(line + "\n", metrics)

    def test_switched_off_everything_passes(self):
        server = Server(self, ENABLED="false", BURST="1")
        self.assertEqual(server.at_once("192.0.2.1", 50), 50)

    def test_idle_clients_are_forgotten(self):
        server = Server(self, {"WEIR_MEMORY_MAX_BUCKETS": "100000"}, REQUESTS_PER_SEC="1", BURST="1", CLEANUP="50ms")

        def buckets():
            return int(re.search(r"^weir_buckets (\d+)$", server.metrics(), re.MULTILINE)[1])

        for block in range(10):
            server.post("/v1/check", [{"limit": "per-ip", "id": f"10.{block}.{i // 256}.{i % 256}"} for i in range(1000)])
        # A bucket that is full again is as good as none; what is left of them is room for the next.
        while buckets() > 5000:
            time.sleep(0.05)


class Refusals(ProgramTest):
    def refused(self, **variables):
        done = weir("serve", env={f"WEIR_{name}": value for name, value in variables.items()})
        self.assertEqual(done.returncode, 2, done.stderr)
        return done.stderr.splitlines()[0]

    def test_what_cannot_be_meant_is_an_error_that_quotes_it(self):
        self.assertEqual(self.refused(RATE_LIMIT_REQUESTS_PER_SEC="abc"),
                         "WEIR_RATE_LIMIT_REQUESTS_PER_SEC: must be a number of requests per second above 0, such as 100 or "
                         '0.5, not "abc"')
        self.assertIn('not "0"', self.refused(RATE_LIMIT_REQUESTS_PER_SEC="0"))
        self.assertIn('not "100/s"', self.refused(RATE_LIMIT_REQUESTS_PER_SEC="100/s"))
        self.assertIn('not "1e3"', self.refused(RATE_LIMIT_REQUESTS_PER_SEC="1e3"))
        self.assertIn("burst", self.refused(RATE_LIMIT_BURST="0"))
        self.assertIn('"many"', self.refused(RATE_LIMIT_BURST="many"))
        self.assertIn('must be true or false, not "maybe"', self.refused(RATE_LIMIT_BY_IP="maybe"))
        self.assertIn('"soon"', self.refused(RATE_LIMIT_CLEANUP="soon"))
        self.assertIn("are both false", self.refused(RATE_LIMIT_BY_IP="false"))

    def test_a_mistyped_variable_is_an_error_that_suggests_the_right_one(self):
        self.assertEqual(self.refused(RATE_LIMIT_BRUST="5"),
                         "WEIR_RATE_LIMIT_BRUST: unknown setting; did you mean WEIR_RATE_LIMIT_BURST?")
        self.assertEqual(self.refused(REDIS_MOED="single"), "WEIR_REDIS_MOED: unknown setting; did you mean WEIR_REDIS_MODE?")

    def test_what_may_be_somebody_elses_is_a_warning_where_configurations_are_looked_at(self):
        config = self.file("weir.yaml", "limits: {a: {rate: 1/s}}\n")
        ignored = "warning: ignoring unknown environment variable WEIR_HOME; settings without a variable are set with --set PATH=VALUE\n"
        for arguments, told in ((("config", "check", config), ignored), (("config", "show"), ignored),
                                (("config", "diff", config, config), ignored), (("version",), ""),
                                (("simulate", "--config", config, "--trace", "-"), "")):
            done = weir(*arguments, env={"WEIR_HOME": "/srv/weir"})
            self.assertEqual((done.returncode, done.stderr), (0, told), arguments)

    def test_both_off_is_fine_while_nothing_is_limited(self):
        done = weir("config", "show", env={"WEIR_RATE_LIMIT_ENABLED": "false", "WEIR_RATE_LIMIT_BY_IP": "false"})
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_variables_of_other_commands_are_no_settings(self):
        done = weir("config", "show", env={"WEIR_SERVER": "http://a", "WEIR_ADMIN": "http://b", "WEIR_TOKEN": "c"})
        self.assertEqual(done.returncode, 0, done.stderr)


class Planned(ProgramTest):
    """Limits by the time of day, and quotas by the day and the month."""

    DAY = 1_780_272_000  # Monday 2026-06-01, 00:00 UTC

    def test_nights_allow_less_than_days(self):
        config = ("limits: {per-ip: {key: ip, rate: 100/s, burst: 20, schedule: "
                  '[{days: mon-fri, hours: "22:00-06:00", count: 10, burst: 2}]}}')

        def allowed(hour):
            lines = [{"t": self.DAY + hour * 3600, "limit": "per-ip", "id": "192.0.2.1"}] * 30
            return sum(answer["allowed"] for answer in self.replay(config, lines))

        # Monday at 5 belongs to Sunday's night, Tuesday at 5 to Monday's.
        self.assertEqual([allowed(hour) for hour in (5, 21, 22, 24 + 5, 24 + 6)], [20, 20, 2, 2, 20])

    def test_a_day_and_a_month_end(self):
        for calendar, length in (("day", 1), ("month", 30)):
            config = f"limits: {{per-apikey: {{key: apikey, quota: 3/{calendar}}}}}"
            end = self.DAY + length * 86400
            answers = self.replay(config, [{"t": t, "limit": "per-apikey", "id": "key-abc-123"}
                                           for t in (self.DAY, self.DAY + 1, end - 2, end - 1, end)])
            self.assertEqual([answer["allowed"] for answer in answers], [True, True, True, False, True])
            self.assertEqual(answers[3]["retry_after"], "1")


if __name__ == "__main__":
    unittest.main()
