"""The commands of `weir` that call a server, each against a real one: on memory and on Redis, with tokens, TLS and a UNIX socket."""

import csv
import io
import json
import os
import re
import socket
import sys
import tempfile
import unittest
import urllib.request

from redis_servers import Redis
from serving import Server
from tls_test import make_certificate
from program import BINARY, weir
from terminal import Terminal

POLICY = """
listen:
  - {address: "127.0.0.1:0", speak: http%(tls)s}
  - {address: "127.0.0.1:0", speak: admin%(tls)s}
  - {address: "unix:%(directory)s/admin.sock", speak: admin}
threads: 2
%(store)s
%(admin)s
limits:
  per-ip: {key: ip, burst: 3, count: 3, period: 1h}
  logins: {key: ip, burst: 10, count: 10, period: 1m}
  orders: {burst: 5, count: 5, period: 1h}
  partners: {key: apikey, burst: 3, count: 3, period: 1h}
  daily: {quota: 100/day}
"""
MEMORY = "memory: {max_buckets: 100000}"
KEY = "key-abc-123-a-long-one"
EVIL = "a\x1b[2Jb\x07\u202e\x9b1m"


class Remote(unittest.TestCase):
    maxDiff = None
    store = MEMORY

    def serve(self, admin="", tls=""):
        directory = tempfile.mkdtemp()
        self.addCleanup(os.rmdir, directory)
        server = Server(self, POLICY % {"tls": tls, "directory": directory, "store": self.store, "admin": admin})
        if "redis" in self.store:
            server.wait_for_metric("weir_store_up 1\n")
        self.socket = f"unix:{directory}/admin.sock"
        self.env = {"WEIR_SERVER": f"http://127.0.0.1:{server.ports['http']}",
                    "WEIR_ADMIN": f"http://127.0.0.1:{server.ports['admin']}"}
        return server

    def run_weir(self, *words, code=0, env=None):
        done = weir(*words, env=self.env | (env or {}))
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done

    def shows(self, expected, *words, code=0):
        """Standard output is this text; … stands for anything on the line."""
        done = self.run_weir(*words, code=code)
        self.assertRegex(done.stdout, rf"\A{re.escape(expected).replace('…', '[^' + chr(10) + ']*')}\Z")

    def complains(self, expected, *words, code):
        done = self.run_weir(*words, code=code)
        self.assertEqual(done.stdout, "")
        self.assertRegex(done.stderr, rf"\Aweir: {re.escape(expected).replace('…', '.*')}\n\Z")

    def json(self, *words):
        return json.loads(self.run_weir(*words, "--output", "json").stdout)

    def rows(self, *words):
        return list(csv.reader(io.StringIO(self.run_weir(*words, "--output", "csv").stdout)))

    def spend(self, limit, client, times):
        for _ in range(times):
            weir("check", limit, client, env=self.env)


class OnMemory(Remote):
    kind = "memory"

    def test_check_and_throttle(self):
        self.serve()
        self.shows("allowed\nLIMIT   ID  ALLOWED  BURST  REMAINING  RETRY_AFTER  RESET_AFTER\n"
                   "orders  7   yes      5      1          0s           48m\n", "check", "orders", "7", "--cost", "4")
        self.shows("denied\nLIMIT   ID  ALLOWED  BURST  REMAINING  RETRY_AFTER  RESET_AFTER\n"
                   "orders  7   no       5      1          1…m…\n", "check", "orders", "7", "--cost", "2", code=3)
        self.complains('unknown limit "order"; did you mean "orders"? (404)', "check", "order", "7", code=3)
        self.assertTrue(self.json("throttle", "user:42", "--burst", "10", "--rate", "2/s")["allowed"])

    def test_stats(self):
        self.serve()
        self.spend("orders", "7", 6)
        done = self.run_weir("stats")
        head, requests, latency, *table = done.stdout.splitlines()
        self.assertRegex(head, rf"^up \d+s, policy version 1, store {self.kind}$")
        self.assertEqual(requests, "6 requests: 5 allowed (83.3 %), 1 denied (16.7 %)")
        self.assertRegex(latency, r"^latency: p50 \S+, p99 \S+, p99.9 \S+$")
        self.assertEqual(table, ["LIMIT     ALLOWED  DENIED  SHADOW_DENIED  ACTIVE",
                                 "daily           0       0              0       0",
                                 "logins          0       0              0       0",
                                 "orders          5       1              0       1",
                                 "partners        0       0              0       0",
                                 "per-ip          0       0              0       0"])
        self.assertEqual(self.run_weir("ratelimit", "stats").stdout.splitlines()[1], requests)
        stats = self.json("stats")
        self.assertEqual(stats["totals"]["requests"], 6)
        self.assertEqual(self.rows("stats")[3], ["orders", "5", "1", "0", "1"])

    def test_clients_and_client(self):
        self.serve()
        self.shows("no active buckets\n", "clients")
        self.spend("orders", "7", 6)
        self.spend("per-ip", "192.0.2.1", 1)
        self.shows("LIMIT   ID         LEFT  BURST  RATE      ALLOWED  DENIED  SEEN\n"
                   "orders  7             0      5  5 per 1h        5       1  …\n"
                   "per-ip  192.0.2.1     2      3  3 per 1h        1       0  …\n", "clients", "--sort", "denied")
        self.shows("LIMIT   ID         LEFT  BURST  RATE      ALLOWED  DENIED  SEEN\n"
                   "per-ip  192.0.2.1     2      3  3 per 1h        1       0  …\n", "clients", "--prefix", "ip:192.")
        self.assertEqual([row["id"] for row in self.json("clients", "--limit", "orders")["clients"]], ["7"])
        first = self.run_weir("clients", "--sort", "requests", "-n", "1")
        cursor = re.search(r"--cursor (\S+) the next page", first.stderr)[1]
        self.assertEqual(len(first.stdout.splitlines()), 2)
        second = self.rows("clients", "--sort", "requests", "-n", "1", "--cursor", cursor)
        self.assertEqual(second[0][:4] + second[1][:4],
                         ["limit", "id", "identifier", "bucket", "per-ip", "192.0.2.1", "ip:192.0.2.1", "per-ip:192.0.2.1"])
        self.complains('unknown limit "order"; did you mean "orders"? (404)', "clients", "--limit", "order", code=3)
        self.shows("orders:7\nlimit         orders\nid            7\nnumbers       5 per 1h, burst 5\nsource        limit\n"
                   "remaining     0 of 5, full in …\nallowed       5\ndenied        1\nfirst seen    …Z (…)\n"
                   "last seen     …Z (…)\nlast denials  …Z (…)\n", "client", "orders", "7")
        for words in (["orders:7"], ["--limit", "orders", "--id", "7"]):
            self.assertEqual(self.json("client", *words)["denied"], 1)
        self.assertEqual(self.json("client", "--ip", "192.0.2.1")["limit"], "per-ip")
        self.assertEqual(self.rows("client", "orders", "7")[1][:3], ["orders", "7", "orders:7"])
        self.complains("client orders:8 is not known: its bucket is full (404)", "client", "orders", "8", code=3)

    def test_all_pages_are_one_list(self):
        self.serve()
        for number in range(25):
            self.spend("orders", f"client-{number}", 1)
        document = self.json("clients", "--all", "-n", "10")
        names = sorted(row["id"] for row in document["clients"])
        self.assertEqual(names, sorted(f"client-{number}" for number in range(25)))
        self.assertEqual(document["cursor"], "")
        rows = self.rows("clients", "--all", "-n", "10")
        self.assertEqual((rows[0][0], sorted(row[1] for row in rows[1:])), ("limit", names))
        self.assertEqual(len(self.run_weir("clients", "--all", "-n", "10").stdout.splitlines()), 26)
        self.assertEqual(self.json("clients", "--all", "--limit", "daily"), {"clients": [], "cursor": ""})

    def test_top(self):
        self.serve()
        self.shows("no clients yet\n", "top")
        self.spend("orders", "7", 6)
        self.spend("per-ip", "192.0.2.1", 2)
        by_requests = "LIMIT   ID         REQUESTS  ERROR\norders  7                 6      0\nper-ip  192.0.2.1         2      0\n"
        for words in (["top"], ["top", "--by", "requests"], ["top", "--by-requests"], ["ratelimit", "top", "--by-requests"]):
            self.shows(by_requests, *words)
        self.shows("LIMIT   ID  DENIED  ERROR\norders  7        1      0\n", "top", "--by", "denied")
        self.assertEqual(self.json("top", "-n", "1")["clients"], [{"limit": "orders", "id": "7", "count": 6, "error": 0}])
        self.assertEqual(self.rows("top"), [["limit", "id", "count", "error"], ["orders", "7", "6", "0"],
                                            ["per-ip", "192.0.2.1", "2", "0"]])
        self.complains("--by-requests and --by denied: give one", "top", "--by", "denied", "--by-requests", code=2)

    def test_reset(self):
        self.serve()
        self.spend("per-ip", "192.168.1.1", 4)
        self.spend("logins", "192.168.1.1", 1)
        self.spend("partners", KEY, 4)
        self.spend("orders", "7", 1)
        self.shows("2 buckets reset\n", "ratelimit", "reset", "--ip", "192.168.1.1")
        self.shows("nothing to reset: every bucket of this client is full\n", "reset", "--ip", "192.168.1.1")
        self.assertEqual(weir("check", "per-ip", "192.168.1.1", env=self.env).returncode, 0)
        self.assertEqual(self.json("ratelimit", "reset", "--apikey", KEY), {"reset": 1})
        self.assertEqual(self.rows("reset", "--limit", "orders", "--id", "7", "--block"), [["reset", "unblocked"], ["1", "false"]])
        self.complains("reset --all resets every bucket; confirm it with --yes", "reset", "--all", code=2)
        self.shows("1 bucket reset\n", "reset", "--all", "--yes")
        self.spend("daily", "7", 1)
        self.shows("1 bucket reset\n", "reset", "--limit", "daily", "--id", "7")
        self.shows("no active buckets\n", "clients", "--limit", "daily")
        self.complains('unknown limit "order"; did you mean "orders"? (404)', "reset", "--limit", "order", "--id", "7", code=3)
        self.complains("which client? Give --ip, --apikey, --limit and --id, or --all", "reset", code=2)

    def test_adjust(self):
        self.serve()
        self.shows("no adjustments\n", "adjust", "--list")
        self.shows("LIMIT   ID           RATE   BURST  EXPIRES…  ADDED_BY\n"
                   "per-ip  192.168.1.1  200/s     50  …Z  in …  127.0.0.1\n"
                   "logins  192.168.1.1  200/s     50  …Z  in …  127.0.0.1\n",
                   "ratelimit", "adjust", "--ip", "192.168.1.1", "--rate", "200", "--burst", "50")
        self.assertEqual(weir("check", "per-ip", "192.168.1.1", "--cost", "40", env=self.env).returncode, 0)
        one = self.json("adjust", "--limit", "orders", "--id", "7", "--burst", "9", "--for", "2h")
        self.assertEqual([one[field] for field in ("limit", "id", "burst", "count", "period")], ["orders", "7", 9, 5, "1h"])
        both = self.json("adjust", "--ip", "192.168.1.2", "--rate", "10/minute")
        self.assertEqual([row["limit"] for row in both["adjustments"]], ["per-ip", "logins"])
        again = self.run_weir("adjust", "--ip", "192.168.1.2", "--rate", "10/minute", "--output", "json").stdout
        self.assertEqual(again.count("\n"), 1, "several answers are one line, too")
        self.assertTrue(again.endswith("\n"))
        self.assertEqual(len(self.json("adjust", "--list")["adjustments"]), 5)
        self.assertEqual(self.rows("adjust", "--list")[0],
                         ["limit", "id", "burst", "count", "period", "expires", "added_by", "in_force"])
        self.shows("2 adjustments removed\n", "adjust", "--ip", "192.168.1.1", "--remove")
        self.complains("there is no adjustment for …192.168.1.1 (404)", "adjust", "--ip", "192.168.1.1", "--remove", code=3)
        self.complains('limit "daily" has only a quota, … (400)', "adjust", "--limit", "daily", "--id", "7", "--rate", "5", code=2)
        self.complains('--rate: "fast" is not a rate; use e.g. 100/s or 10/minute', "adjust", "--ip", "1.2.3.4", "--rate", "fast", code=2)

    def test_an_address_is_adjusted_in_limits_of_every_spelling(self):
        server = Server(self, """
listen: [{address: "127.0.0.1:0", speak: admin}]
threads: 1
limits:
  guardian: {key: ip, capacity: 5, addTokenMs: 500}
  edge: {key: ip, average: 5, period: 1s}
  daily: {key: ip, quota: 100/day}
""")
        self.env = {"WEIR_ADMIN": f"http://127.0.0.1:{server.ports['admin']}"}
        rows = self.json("adjust", "--ip", "192.168.1.1", "--rate", "10/s")["adjustments"]
        self.assertEqual([row["limit"] for row in rows], ["guardian", "edge"])

    def test_access(self):
        self.serve()
        self.shows("no entries\n", "access", "list")
        self.shows("LIST  IP              REASON    EXPIRES…  ADDED_BY\n"
                   "deny  203.0.113.0/24  scraping  …Z  in …  127.0.0.1\n",
                   "access", "add", "deny", "--ip", "203.0.113.0/24", "--reason", "scraping", "--for", "24h")
        self.shows("LIST   LIMIT   ID  REASON   EXPIRES  ADDED_BY\nallow  orders  7   partner  never    127.0.0.1\n",
                   "access", "add", "allow", "--limit", "orders", "--id", "7", "--reason", "partner")
        self.run_weir("access", "add", "deny", "--apikey", KEY)
        entries = self.json("access", "list")["entries"]
        self.assertEqual([entry["list"] for entry in entries], ["allow", "deny", "deny"])
        self.assertNotIn(KEY, json.dumps(entries))
        self.assertEqual(len(self.json("access", "list", "deny")["entries"]), 2)
        self.assertEqual(self.rows("access", "list", "allow"),
                         [["list", "ip", "apikey", "limit", "id", "reason", "expires", "added_by", "in_force"],
                          ["allow", "", "", "orders", "7", "partner", "", "127.0.0.1", "true"]])
        self.assertEqual(weir("check", "per-ip", "203.0.113.9", env=self.env).returncode, 3)
        self.complains("a deny entry must not match your own address, 127.0.0.1 (409)", "access", "add", "deny", "--ip", "127.0.0.0/8",
                       code=1)
        self.shows("1 entry removed\n", "access", "remove", "deny", "--ip", "203.0.113.0/24")
        self.assertEqual(self.json("access", "remove", "--apikey", KEY), {"removed": 1})
        self.complains("no such entry was added at run time; … (404)", "access", "remove", "deny", "--ip", "203.0.113.0/24", code=3)
        self.assertIn("must be allow or deny", self.run_weir("access", "add", "block", "--ip", "1.2.3.4", code=2).stderr)

    def test_config_show_of_a_server(self):
        self.serve()
        request = urllib.request.Request(self.env["WEIR_ADMIN"] + "/ratelimit/config", method="PUT",
                                         data=b'{"limits": {"orders": {"burst": 9}}}', headers={"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=20) as answer:
            self.assertEqual(answer.status, 200)
        lines = self.run_weir("config", "show", "--admin", self.env["WEIR_ADMIN"]).stdout.splitlines()
        self.assertIn("limits.orders.burst: 9  # api", lines)
        self.assertRegex("\n".join(lines), r"(?m)^limits\.orders\.count: 5  # .*weir\.yaml:\d+:\d+$")
        rows = self.rows("config", "show", "--admin", self.env["WEIR_ADMIN"])
        self.assertEqual(rows[0], ["path", "value", "origin"])
        self.assertIn(["limits.orders.burst", "9", "api"], rows)
        self.assertEqual(self.json("config", "show", "--admin", self.env["WEIR_ADMIN"])["overrides"], 0)

    def test_watch(self):
        server = self.serve()
        watching = Terminal(self, [BINARY, "watch", "--output", "json", "-n", "1"], env=os.environ | self.env | {"TERM": "xterm"})
        # The server counts who watches; the first decision after that is seen.
        watching.until(lambda text: "0 decisions" in text)
        while watching.process.poll() is None:
            server.post("/v1/check", {"limit": "orders", "id": "7"})
            watching.read_some(0.02)
        self.assertEqual(watching.wait(), 0)
        self.assertTrue(watching.restored())
        self.assertIn('"limit":"orders","id":"7"', watching.raw.decode().replace("\r\n", ""))

    def test_external_forget_says_where_there_is_no_service(self):
        self.serve()
        self.complains('limit "orders" has no external service (400)', "external", "forget", "orders", "7", code=2)
        self.complains('unknown limit "order"; did you mean "orders"? (404)', "external", "forget", "order", "7", code=3)

    def test_control_characters_never_reach_the_terminal(self):
        server = self.serve()
        # Limits refuse such ids; a bucket whose numbers the caller brings may have any key.
        _, _, answer = server.post("/v1/throttle", {"key": EVIL, "burst": 5, "count": 5, "period": "1h"})
        self.assertNotIn("degraded", json.loads(answer))
        for words in (["clients"], ["top", "--once"], ["clients", "--output", "csv"], ["clients", "--output", "json"],
                      ["clients", "--all", "--output", "json"], ["client", "orders", EVIL]):
            with self.subTest(words):
                shown = Terminal(self, [BINARY, *words], columns=400, env=os.environ | self.env | {"TERM": "xterm"})
                shown.wait()  # its screen refuses every control character
                self.assertNotRegex(shown.raw.decode(), "\x1b\\[2J|\x07|\u202e|\x9b")
                self.assertIn("a\\", shown.screen.text())


class OnRedis(OnMemory):
    kind = "redis"

    def setUp(self):
        redis = Redis(self)
        self.store = f'store: redis\nredis: {{endpoints: ["127.0.0.1:{redis.port}"], timeout: 10s}}'


class Ways(Remote):
    """Ways to a server: tokens, TLS, a UNIX socket, and no way at all."""

    def test_tokens(self):
        self.serve(admin="admin: {read_token: reader, write_token: writer}")
        url = self.env["WEIR_ADMIN"]
        self.complains(f"{url} asks for a token; use --token, --token-file or WEIR_TOKEN", "stats", code=1)
        self.complains(f"{url} refused the token", "stats", "--token", "wrong", code=1)
        self.run_weir("stats", "--token", "reader")
        self.run_weir("stats", env={"WEIR_TOKEN": "reader"})
        self.complains("this token allows reads only; the call needs the write token (403)",
                       "reset", "--ip", "192.0.2.1", "--token", "reader", code=1)
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("writer\n")
            file.flush()
            self.run_weir("reset", "--ip", "192.0.2.1", "--token-file", file.name, env={"WEIR_TOKEN": "wrong"})
        self.complains("--token-file: cannot read /nonexistent", "stats", "--token-file", "/nonexistent", code=2)

    def test_an_address_without_a_scheme(self):
        self.serve()
        self.run_weir("stats", "--admin", self.env["WEIR_ADMIN"].removeprefix("http://"))

    def test_a_unix_socket(self):
        self.serve()
        self.spend("orders", "7", 1)
        self.assertEqual(self.json("top", "--admin", self.socket)["clients"][0]["id"], "7")
        self.run_weir("access", "add", "deny", "--ip", "203.0.113.9", "--admin", self.socket)

    def test_tls(self):
        with tempfile.TemporaryDirectory() as directory:
            cert, key = make_certificate(directory, "a")
            server = self.serve(tls=f", tls: {{cert: {cert}, key: {key}}}")
            url = f"https://127.0.0.1:{server.ports['admin']}"
            self.run_weir("stats", "--admin", url, "--ca-file", cert)
            self.run_weir("check", "orders", "7", "--server", f"https://localhost:{server.ports['http']}", "--ca-file", cert)
            self.assertEqual(self.json("top", "--admin", url, "--ca-file", cert)["clients"][0]["id"], "7")
            stranger = self.run_weir("stats", "--admin", url, code=1).stderr
            self.assertIn("certificate", stranger)
            self.assertIn("--ca-file", stranger)
            other, _ = make_certificate(directory, "b", names="DNS:elsewhere.test")
            self.assertIn("certificate", self.run_weir("stats", "--admin", url, "--ca-file", other, code=1).stderr)
            plain = self.run_weir("stats", "--admin", f"http://127.0.0.1:{server.ports['admin']}", code=1).stderr
            self.assertIn("no answer from the admin API", plain)

    def test_no_server(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
        self.env = {"WEIR_ADMIN": f"http://127.0.0.1:{port}"}
        for words in (["stats"], ["clients"], ["client", "a", "b"], ["top"], ["watch"], ["reset", "--ip", "1.2.3.4"], ["access", "list"],
                      ["adjust", "--list"], ["external", "forget", "a", "b"]):
            with self.subTest(words):
                self.complains(f"no answer from the admin API at http://127.0.0.1:{port}: …; is the server running? "
                               "Choose another with --admin or WEIR_ADMIN", *words, code=1)
        with socket.create_server(("127.0.0.1", 0)) as silent:
            url = f"http://127.0.0.1:{silent.getsockname()[1]}"
            self.complains(f"no answer from the admin API at {url}: …; --timeout waits longer",
                           "stats", "--admin", url, "--timeout", "50ms", code=1)
        self.complains('--admin: "ftp://x" is not host:port, http://host:port, https://host:port or unix:/path',
                       "stats", "--admin", "ftp://x", code=2)


class Questions(Remote):
    """What is asked on a terminal."""

    def ask(self, answer, *words):
        terminal = Terminal(self, [BINARY, *words], env=os.environ | self.env | {"TERM": "xterm"})
        terminal.until(lambda text: "[y/N]" in text)
        terminal.type(answer + "\n")
        return terminal.wait(), terminal.screen.text()

    def test_reset_of_everything_is_asked_about(self):
        self.serve()
        self.spend("orders", "7", 1)
        code, text = self.ask("n", "reset", "--all")
        self.assertEqual(code, 1)
        self.assertIn("Reset all buckets (1 now) of http://127.0.0.1:", text)
        self.assertIn("weir: nothing was reset", text)
        code, text = self.ask("y", "reset", "--all")
        self.assertEqual(code, 0)
        self.assertIn("1 bucket reset", text)

    def test_a_very_large_network_is_asked_about(self):
        self.serve()
        code, text = self.ask("", "access", "add", "deny", "--ip", "8.0.0.0/6")
        self.assertEqual(code, 1)
        self.assertIn("Deny every client in 8.0.0.0/6? [y/N]", text)
        self.assertEqual(self.json("access", "list")["entries"], [])
        self.run_weir("access", "add", "deny", "--ip", "8.0.0.0/6", "--yes")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=1)
