"""A configuration that changes while the server runs: signals, files, links; all of it or nothing."""

import json
import os
import pathlib
import re
import signal
import socket
import threading
import time
import unittest

from serving import POLICY, Server

HEAD = POLICY[:POLICY.index("limits:")]


def metric(server, line):
    """The value of one line of the metrics."""
    found = re.search(rf"^{re.escape(line)} (\S+)$", server.get("admin", "/metrics"), re.MULTILINE)
    return int(found[1])


def burst(server, limit="orders"):
    status, _, body = server.post("/v1/peek", {"limit": limit, "id": "nobody"})
    return json.loads(body)["burst"] if status == 200 else status


def replace(path, text):
    """The way careful programs write a file: whole, or not at all."""
    temporary = path + ".tmp"
    with open(temporary, "w", encoding="utf-8") as file:
        file.write(text)
    os.rename(temporary, path)


def wait_for_line(server, words):
    seen = []
    while line := server.process.stderr.readline():
        seen.append(line)
        if words in line:
            return seen
    raise AssertionError(f"the server ended without saying {words!r}: {seen}")


class Load(threading.Thread):
    """Asks without end, on a connection of its own, and keeps every answer."""

    def __init__(self, server, body):
        super().__init__()
        self.connection = server.connect("http")
        content = json.dumps(body).encode()
        self.request = (b"POST /v1/peek HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
                        % (len(content), content))
        self.answers = []
        self.ending = False

    def run(self):
        with self.connection, self.connection.makefile("rb") as lines:
            while not self.ending:
                self.connection.sendall(self.request)
                status = lines.readline()
                length = 0
                while (line := lines.readline().rstrip()) != b"":
                    name, _, value = line.partition(b":")
                    if name.lower() == b"content-length":
                        length = int(value)
                self.answers.append((status, json.loads(lines.read(length))))

    def end(self):
        self.ending = True
        self.join()


class UnderLoad(unittest.TestCase):
    def test_every_answer_of_a_hundred_reloads_belongs_to_one_policy(self):
        def policy(version):
            # All of these change together; an answer that shows two versions is a mix.
            return HEAD + f"""
limits:
  a: {{burst: {version}, count: {version}, period: 1h}}
  b: {{burst: {version}, count: {version}, period: 1h}}
overrides:
  a:special: {{burst: {version}, count: {version}, period: 1m}}
"""
        server = Server(self, policy(1000))
        both = {"charges": [{"limit": "a", "id": "x"}, {"limit": "b", "id": "x"}, {"limit": "a", "id": "special"}]}
        load = [Load(server, both), Load(server, [both] * 20), Load(server, both)]
        for one in load:
            one.start()
        broken = 0
        try:
            for version in range(1001, 1101):
                if version % 10 == 0:
                    # What comes first is fine and new; what comes last is not.
                    replace(server.config, policy(version) + "log: {level: loud}\n")
                    server.process.send_signal(signal.SIGHUP)
                    broken += 1
                    while metric(server, 'weir_config_reloads_total{result="failed"}') < broken:
                        pass
                    self.assertEqual(burst(server, "a"), version - 1)
                    continue
                replace(server.config, policy(version))
                if version % 5 != 0:  # otherwise the changed file is enough
                    server.process.send_signal(signal.SIGHUP)
                while burst(server, "a") != version:
                    pass
        finally:
            for one in load:
                one.end()
        seen = set()
        for one in load:
            for status, answers in one.answers:
                self.assertTrue(status.startswith(b"HTTP/1.1 200"), status)
                decisions = [decision for answer in (answers if isinstance(answers, list) else [answers])
                             for decision in answer["decisions"]]
                bursts = {decision["burst"] for decision in decisions}
                self.assertEqual(len(bursts), 1, "one answer shows two policies")
                seen |= bursts
        self.assertLessEqual(seen, {version for version in range(1000, 1101) if version % 10 != 0 or version == 1000})
        self.assertGreaterEqual(metric(server, 'weir_config_reloads_total{result="ok"}'), 90)
        print(f"\n{sum(len(one.answers) for one in load)} answers of {len(seen)} policies, none of two")


class Tokens(threading.Thread):
    """Asks without end, in turn with two tokens, and keeps every answer by the token."""

    def __init__(self, server):
        super().__init__()
        self.connection = server.connect("http")
        self.answers = []  # token, status, fields, content
        self.ending = False

    def run(self):
        content = b'{"limit":"a","id":"x"}'
        with self.connection, self.connection.makefile("rb") as lines:
            while not self.ending:
                for token in ("one", "two"):
                    self.connection.sendall(
                        b"POST /v1/peek HTTP/1.1\r\nHost: a\r\nX-Weir-Token: %s\r\nContent-Type: application/json\r\n"
                        b"Content-Length: %d\r\n\r\n%s" % (token.encode(), len(content), content))
                    status = int(lines.readline().split()[1])
                    fields = {}
                    while (line := lines.readline().rstrip()) != b"":
                        name, _, value = line.partition(b":")
                        fields[name.decode().lower()] = value.strip().decode()
                    body = json.loads(lines.read(int(fields["content-length"])))
                    self.answers.append((token, status, fields, body))

    def end(self):
        self.ending = True
        self.join()


class OnePublication(unittest.TestCase):
    """Issue 15: two configurations that differ in numbers, headers, failure code and token never meet in one answer."""

    HEAD = HEAD.replace('speak: http}', 'speak: http, token: TOKEN}')
    ONE = "limits: {a: {rate: 1000/h}}\nheaders: {ratelimit: [x-ratelimit]}\nfailure_code: 501\n"
    TWO = "limits: {a: {rate: 2000/h}}\nheaders: {ratelimit: [ietf]}\nfailure_code: 502\n"

    def answers(self, more, reloads):
        """What clients got while the two configurations took turns; `more` is the same in both."""
        one = self.HEAD.replace("TOKEN", "one") + self.ONE + more
        two = self.HEAD.replace("TOKEN", "two") + self.TWO + more
        server = Server(self, one)
        load = [Tokens(server) for _ in range(3)]
        for client in load:
            client.start()
        try:
            for turn in range(reloads):
                replace(server.config, one if turn % 2 else two)
                server.process.send_signal(signal.SIGHUP)
                while metric(server, 'weir_config_reloads_total{result="ok"}') <= turn:
                    pass
        finally:
            for client in load:
                client.end()
        return [answer for client in load for answer in client.answers]

    def test_an_answer_has_the_numbers_and_headers_of_the_configuration_that_has_its_token(self):
        seen = set()
        for token, status, fields, body in self.answers("", 60):
            seen.add((token, status))
            if status == 401:
                continue
            self.assertEqual(status, 200)
            self.assertEqual(body["burst"], 1000 if token == "one" else 2000)
            self.assertEqual("x-ratelimit-limit" in fields, token == "one")
            self.assertEqual("ratelimit" in fields, token == "two")
        self.assertEqual(seen, {("one", 200), ("one", 401), ("two", 200), ("two", 401)})

    def test_a_failure_has_the_code_of_the_configuration_that_has_its_token(self):
        down = 'store: redis\nredis: {endpoints: ["127.0.0.1:1"]}\nfailure_policy: failClosed\n'
        seen = {(token, status) for token, status, _, _ in self.answers(down, 40)}
        self.assertEqual(seen, {("one", 501), ("one", 401), ("two", 502), ("two", 401)})


class Relaxed(unittest.TestCase):
    def test_waiting_retry_after_is_enough_after_a_limit_is_relaxed(self):
        server = Server(self, HEAD + "limits: {login: {rate: 3/h}}\n")
        for client in ("looks", "is silent"):
            for _ in range(3):
                self.assertEqual(server.post("/v1/check", {"limit": "login", "id": client})[0], 200)
            self.assertEqual(server.post("/v1/check", {"limit": "login", "id": client})[0], 429)
        server.write(HEAD + "limits: {login: {rate: 3/s}}\n")
        server.process.send_signal(signal.SIGHUP)
        server.wait_for_metric('weir_config_reloads_total{result="ok"} 1')
        peeked = json.loads(server.post("/v1/peek", {"limit": "login", "id": "looks"})[2])
        time.sleep(peeked["retry_after"])
        self.assertEqual(server.post("/v1/check", {"limit": "login", "id": "looks"})[0], 200)
        time.sleep(1.1)
        status, _, body = server.post("/v1/check", {"limit": "login", "id": "is silent"})
        self.assertEqual((status, json.loads(body)["remaining"]), (200, 2), "full a second after the change")


class Triggers(unittest.TestCase):
    def test_a_changed_file_is_enough_whether_written_or_replaced(self):
        server = Server(self)
        server.write(POLICY.replace("burst: 5", "burst: 6"))
        while burst(server) != 6:
            pass
        replace(server.config, POLICY.replace("burst: 5", "burst: 7"))
        while burst(server) != 7:
            pass

    def test_a_file_cut_off_by_its_writer_takes_no_limit_away(self):
        server = Server(self)
        server.write("")
        wait_for_line(server, "weir.yaml:1:1: the file is empty")
        self.assertEqual(burst(server), 5)
        server.write("{}\n")
        while burst(server) != 404:
            pass

    def test_a_file_that_the_file_names_cut_off_by_its_writer_takes_no_limit_away(self):
        server = Server(self, HEAD + "limits: limits.yaml\n", files={"limits.yaml": "orders: {burst: 5, count: 5, period: 1h}\n"})
        with open(os.path.join(server.directory, "limits.yaml"), "w"):
            pass
        wait_for_line(server, "limits.yaml:1:1: the file is empty")
        self.assertEqual(burst(server), 5)

    def test_files_that_the_file_names_are_watched_too(self):
        server = Server(self, HEAD + "limits: limits.yaml\noverrides: more/overrides.yaml\n", files={
            "limits.yaml": "orders: {burst: 5, count: 5, period: 1h}\n",
            "more/overrides.yaml": "orders:nobody: {burst: 9, count: 5, period: 1h}\n"})
        self.assertEqual(burst(server), 9)
        replace(os.path.join(server.directory, "more", "overrides.yaml"), "orders:other: {burst: 9, count: 5, period: 1h}\n")
        while burst(server) != 5:
            pass
        replace(os.path.join(server.directory, "limits.yaml"), "orders: {burst: 8, count: 5, period: 1h}\n")
        while burst(server) != 8:
            pass

    def test_files_of_secrets_are_watched_too(self):
        server = Server(self, "", start=False, files={"secret": "one\n"})
        secret = os.path.join(server.directory, "secret")
        server.write(POLICY.replace("speak: resp", f'speak: resp, password: "file:{secret}"'))
        server.start()
        replace(secret, "two\n")
        lines = wait_for_line(server, "reloaded")
        self.assertNotIn("two", "".join(lines))
        self.assertTrue(server.resp("AUTH", "one").startswith("-WRONGPASS"))
        self.assertEqual(server.resp("AUTH", "two"), "+OK\r\n")

    def test_a_swapped_link_is_a_change_as_kubernetes_swaps_a_configmap(self):
        server = Server(self, "", start=False)
        root = pathlib.Path(server.directory)
        os.remove(server.config)
        for name, text in (("..1", POLICY), ("..2", POLICY.replace("burst: 5", "burst: 6")), ("..3", "nonsense: 1\n"),
                           ("..4", POLICY.replace("burst: 5", "burst: 7"))):
            (root / name).mkdir()
            (root / name / "weir.yaml").write_text(text, encoding="utf-8")
        (root / "..data").symlink_to("..1")
        (root / "weir.yaml").symlink_to("..data/weir.yaml")
        server.start()
        self.assertEqual(burst(server), 5)

        def swap(target):
            (root / "..data_tmp").symlink_to(target)
            os.rename(root / "..data_tmp", root / "..data")

        swap("..2")
        while burst(server) != 6:
            pass
        swap("..3")
        while metric(server, 'weir_config_reloads_total{result="failed"}') != 1:
            pass
        self.assertEqual(burst(server), 6)
        swap("..4")
        while burst(server) != 7:
            pass


class Whole(unittest.TestCase):
    def test_a_reload_never_applies_half(self):
        server = Server(self, POLICY + "overrides: overrides.yaml\n", files={"overrides.yaml": ""})
        changed = POLICY.replace("burst: 5", "burst: 6") + "overrides: overrides.yaml\nheaders: {ratelimit: ietf}\n"
        # The file itself is fine, one that it names is not.
        replace(os.path.join(server.directory, "overrides.yaml"), "orders:nobody: {burst: 0}\nnope:1: {rate: 1/s}\n")
        replace(server.config, changed)
        server.process.send_signal(signal.SIGHUP)
        seen = wait_for_line(server, "reload failed; keeping the running configuration")
        self.assertTrue(any("burst 0 must be at least 1" in line for line in seen), seen)
        self.assertTrue(any("nope" in line for line in seen), "every problem is told, not only the first")
        status, headers, body = server.post("/v1/peek", {"limit": "orders", "id": "nobody"})
        self.assertEqual((status, json.loads(body)["burst"]), (200, 5))
        self.assertIn("X-RateLimit-Limit", headers)
        # The file it names is mended: now everything applies.
        replace(os.path.join(server.directory, "overrides.yaml"), "orders:nobody: {burst: 9, count: 1, period: 1h}\n")
        while burst(server) != 9:
            pass
        status, headers, body = server.post("/v1/peek", {"limit": "orders", "id": "other"})
        self.assertEqual((status, json.loads(body)["burst"]), (200, 6))
        self.assertNotIn("X-RateLimit-Limit", headers)
        self.assertIn("RateLimit", headers)

    def test_buckets_are_kept(self):
        server = Server(self)
        self.assertEqual(server.post("/v1/check", {"limit": "orders", "id": "1", "cost": 4})[0], 200)
        server.write(POLICY.replace("burst: 5", "burst: 7"))
        while burst(server) != 7:
            pass
        self.assertLessEqual(json.loads(server.post("/v1/peek", {"limit": "orders", "id": "1"})[2])["remaining"], 3)

    def test_what_needs_a_restart_is_named_and_the_rest_applies(self):
        server = Server(self)
        text = POLICY.replace("threads: 2", "threads: 1\nstate: {live: /nowhere/state}\nfailure_code: 503\nheaders: {reset: delta}")
        replace(server.config, text.replace('"127.0.0.1:0", speak: resp', '"127.0.0.1:1", speak: resp'))
        server.process.send_signal(signal.SIGHUP)
        line = wait_for_line(server, "changed settings that need a restart")[-1]
        for name in ("listen[1].address", "threads", "state.live"):
            self.assertIn(name, line)
        for name in ("failure_code", "headers", "limits"):
            self.assertNotIn(name, line)
        wait_for_line(server, "reloaded")
        self.assertEqual(server.resp("PING"), "+PONG\r\n")
        headers = server.post("/v1/check", {"limit": "orders", "id": "1"})[1]
        self.assertLessEqual(int(headers["X-RateLimit-Reset"]), 3600, "seconds from now, not since 1970")

    def test_an_idle_timeout_applies_to_connections_that_are_open(self):
        text = HEAD.replace("speak: http", "speak: http, idle_timeout: 1h").replace(
            "threads", '  - {address: "127.0.0.1:0", speak: proxy}\nthreads')
        text += "backend: http://127.0.0.1:1\nproxy: {idle_timeout: 1h}\n"
        server = Server(self, text)
        with server.connect("http") as client, server.connect("proxy") as browser:
            replace(server.config, text.replace("1h", "1ms"))
            server.process.send_signal(signal.SIGHUP)
            self.assertFalse([line for line in wait_for_line(server, "reloaded") if "need a restart" in line])
            self.assertEqual((client.recv(1), browser.recv(1)), (b"", b""))

    def test_the_log_can_change_its_form_and_its_level(self):
        server = Server(self)
        replace(server.config, POLICY + "log: {format: json, level: info}\n")
        server.process.send_signal(signal.SIGHUP)
        event = json.loads(wait_for_line(server, "reloaded")[-1])
        self.assertEqual((event["level"], event["message"]), ("info", "reloaded"))
        self.assertRegex(event["time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
        replace(server.config, POLICY + "log: {format: text, level: error}\n")
        server.process.send_signal(signal.SIGHUP)
        while metric(server, 'weir_config_reloads_total{result="ok"}') < 2:
            pass
        replace(server.config, "nonsense: 1\n")
        server.process.send_signal(signal.SIGHUP)
        seen = wait_for_line(server, "reload failed")
        self.assertTrue(all(" error " in line for line in seen), seen)


class End(unittest.TestCase):
    def test_a_second_signal_ends_a_drain_at_once(self):
        server = Server(self, POLICY + "drain_timeout: 10m\n")
        with server.connect("resp") as busy:
            # An answer that the peer does not take keeps the drain waiting.
            busy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            busy.setblocking(False)
            try:
                for _ in range(2000):
                    busy.send(b"*2\r\n$4\r\nECHO\r\n$10000\r\n" + b"x" * 10000 + b"\r\n")
            except BlockingIOError:
                pass
            server.process.send_signal(signal.SIGTERM)
            wait_for_line(server, "draining")
            server.process.send_signal(signal.SIGTERM)
            wait_for_line(server, "second signal")
            self.assertEqual(server.process.wait(timeout=25), 0)


if __name__ == "__main__":
    unittest.main()
