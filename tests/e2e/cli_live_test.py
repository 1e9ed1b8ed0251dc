"""`weir top` and `weir watch` on a real pseudo-terminal: what is on the screen, resizes, and that the terminal is what it was before."""

import os
import signal
import sys
import unittest

from serving import Server
from program import BINARY, weir
from terminal import Terminal

POLICY = """
listen:
  - {address: "127.0.0.1:0", speak: http}
  - {address: "127.0.0.1:0", speak: admin}
threads: 2
memory: {max_buckets: 100000}
limits:
  per-ip: {key: ip, burst: 3, count: 3, period: 1h}
  orders: {burst: 5, count: 5, period: 1h}
  trial: {burst: 1, count: 1, period: 1h, mode: shadow}
"""


class Live(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.server = Server(self, POLICY)
        self.env = {name: value for name, value in os.environ.items() if name != "NO_COLOR"} | {
            "WEIR_ADMIN": f"http://127.0.0.1:{self.server.ports['admin']}", "TERM": "xterm"}

    def start(self, *words, columns=80, rows=24, env=None):
        return Terminal(self, [BINARY, *words], columns, rows, self.env | (env or {}))

    def spend(self, limit, client, times=1):
        for _ in range(times):
            self.server.post("/v1/check", {"limit": limit, "id": client})

    def ended(self, terminal, code=0):
        """It ended so, and the terminal is as it was."""
        self.assertEqual(terminal.wait(), code)
        self.assertTrue(terminal.restored(), repr(terminal.raw[-200:]))

    def ways_out(self):
        """(what to do, exit status): every way to leave a live view."""
        return ((lambda terminal: terminal.type("q"), 0),
                (lambda terminal: terminal.type("\x03"), 0),
                (lambda terminal: terminal.signal(signal.SIGTERM), -signal.SIGTERM),
                (lambda terminal: terminal.signal(signal.SIGHUP), -signal.SIGHUP))


class Top(Live):
    def test_shows_a_screen_and_follows_the_size(self):
        self.spend("orders", "7", 6)
        self.spend("per-ip", "192.0.2.1", 2)
        top = self.start("top", "--every", "100ms")
        top.until(lambda text: "192.0.2.1" in text and "PER_SECOND" in text)
        lines = top.screen.lines()
        self.assertRegex(lines[0], r"^weir top by requests  http://127\.0\.0\.1:\d+ +every 100ms  \d\d:\d\d:\d\dZ$")
        self.assertRegex(lines[1], r"^8 requests \(0/s\), 1 denied \(12.5 %, 0/s\); up \d+s, store memory$")
        self.assertEqual(lines[3:6], ["LIMIT   ID         REQUESTS  PER_SECOND  ERROR",
                                      "orders  7                 6           0      0",
                                      "per-ip  192.0.2.1         2           0      0"])
        self.assertEqual(lines[6:23], [""] * 17)
        self.assertEqual(lines[23], "q quit  r requests  d denied  s shadow denied  space pause")
        self.assertIn(b"\x1b[1m", top.raw, "there are colors")
        top.resize(40, 10)
        top.until(lambda text: "q quit  r d s sort  space pause" in text)
        top.until(lambda text: len(top.screen.lines()) == 10 and "192.0.2.1" in text)
        self.assertEqual(top.screen.lines()[9], "q quit  r d s sort  space pause")
        self.assertEqual(top.screen.lines()[3], "LIMIT   ID         REQUESTS  PER_SECOND")
        self.assertRegex(top.screen.lines()[0], r"^weir top by requests  http://127\.0\.0\.1:\d*…$")
        self.assertRegex(top.screen.lines()[1], r"^8 requests \(0/s\), 1 denied \(12\.5 %, 0/s…$")
        top.resize(100, 30)
        top.until(lambda text: top.screen.lines()[29].startswith("q quit  r requests") and "192.0.2.1" in text)
        top.type("q")
        self.ended(top)

    def test_keys_sort_and_pause(self):
        self.spend("orders", "7", 6)
        self.spend("trial", "x", 3)
        top = self.start("top", "--every", "50ms")
        top.until(lambda text: "weir top by requests" in text)
        top.type("d")
        top.until(lambda text: "weir top by denied" in text and "DENIED" in text)
        top.type("s")
        top.until(lambda text: "weir top by shadow denied" in text and "trial" in text)
        top.type("\x1b[A\x1bOq")  # arrows and other keys of several bytes are no letters
        top.type("r")
        top.until(lambda text: "weir top by requests" in text)
        top.type(" ")
        top.until(lambda text: "weir top by requests, paused  http://" in text)
        self.spend("orders", "8", 1)
        top.type(" ")
        top.until(lambda text: "paused" not in text and "orders  8" in text)
        top.type("q")
        self.ended(top)

    def test_every_way_out_restores_the_terminal(self):
        for leave, code in self.ways_out():
            top = self.start("top")
            top.until(lambda text: "no clients yet" in text)
            leave(top)
            self.ended(top, code)
            self.assertEqual(top.screen.text().replace("^C", ""), "", "the alternate screen is gone")

    def test_a_server_that_goes_away_ends_it(self):
        top = self.start("top", "--every", "50ms")
        top.until(lambda text: "no clients yet" in text)
        self.server.end()
        self.ended(top, 1)
        self.assertIn("weir: no answer from the admin API at", top.screen.text())

    def test_without_colors_and_without_a_cursor(self):
        self.spend("orders", "7")
        top = self.start("top", env={"NO_COLOR": "1"})
        top.until(lambda text: "orders  7" in text)
        top.type("q")
        self.ended(top)
        self.assertNotRegex(top.raw, rb"\x1b\[\d+m")
        dumb = self.start("top", env={"TERM": "dumb"})
        self.ended(dumb)
        self.assertEqual(dumb.screen.text(), "LIMIT   ID  REQUESTS  ERROR\norders  7          1      0")

    def test_is_printed_once_where_there_is_no_terminal(self):
        self.spend("orders", "7")
        done = weir("top", env={"WEIR_ADMIN": self.env["WEIR_ADMIN"]})
        self.assertEqual((done.returncode, done.stdout), (0, "LIMIT   ID  REQUESTS  ERROR\norders  7          1      0\n"))


class Watch(Live):
    def watch(self, *words, columns=80, rows=24):
        """A `weir watch` that the server knows: it shows what happens from now on."""
        watch = self.start("watch", *words, columns=columns, rows=rows)
        watch.until(lambda text: "q quit" in text)
        # The stream may begin after the first line is drawn.
        while "hello" not in watch.screen.text():
            self.spend("orders", "hello")
            watch.read_some(0.05)
        return watch

    def test_shows_decisions_above_a_status_line(self):
        watch = self.watch()
        self.spend("per-ip", "192.0.2.1", 4)
        self.spend("trial", "x", 2)
        watch.until(lambda text: "shadow   trial  x" in text)
        text = watch.screen.text()
        self.assertRegex(text, r"(?m)^\d\d:\d\d:\d\d\.\d{3}  allowed  per-ip  192\.0\.2\.1  2 of 3 left$")
        self.assertRegex(text, r"(?m)^\d\d:\d\d:\d\d\.\d{3}  denied   per-ip  192\.0\.2\.1  0 of 3 left, retry in (19m\d+s|20m)$")
        self.assertRegex(text, r"(?m)^\d\d:\d\d:\d\d\.\d{3}  shadow   trial  x  0 of 1 left, retry in (59m\d+s|1h)$")
        self.assertRegex(text.splitlines()[-1], r"^q quit  \d+ decisions, \d+ denied  http://127\.0\.0\.1:\d+$")
        watch.type("q")
        self.ended(watch)
        self.assertNotIn("q quit", watch.screen.text(), "the status line is erased")
        self.assertIn("denied   per-ip", watch.screen.text(), "and the decisions stay")

    def test_lines_are_cut_to_the_width(self):
        watch = self.watch(columns=40, rows=10)
        self.spend("orders", "a-client-with-a-name-that-is-much-longer-than-the-screen")
        watch.until(lambda text: "a-client" in text)
        self.assertIn("allowed  orders  a-client…", watch.screen.text())
        watch.resize(60, 12)
        watch.until(lambda text: "q quit" in text)
        self.spend("orders", "another-client-with-a-name-that-is-longer-than-the-screen")
        watch.until(lambda text: "another-client-with-a-name-t…" in text)
        watch.type("q")
        self.ended(watch)

    def test_filters(self):
        watch = self.start("watch", "--denied", "--limit", "per-ip", "-n", "1")
        watch.until(lambda text: "q quit" in text)
        while watch.process.poll() is None:
            self.spend("orders", "7")
            self.spend("per-ip", "192.0.2.1")
            watch.read_some(0.02)
        self.ended(watch)
        self.assertRegex(watch.screen.text(), r"\A\S+  denied   per-ip  192\.0\.2\.1  0 of 3 left, retry in \S+\Z")

    def test_every_way_out_restores_the_terminal(self):
        for leave, code in self.ways_out():
            watch = self.start("watch")
            watch.until(lambda text: "q quit" in text)
            leave(watch)
            self.ended(watch, code)

    def test_a_server_that_goes_away_ends_it(self):
        watch = self.watch()
        self.server.end()
        self.ended(watch, 1)
        self.assertRegex(watch.screen.text(), r"weir: .*127\.0\.0\.1")

    def test_control_characters_are_shown_not_sent(self):
        watch = self.watch()
        self.server.post("/v1/throttle", {"key": "a\x1b[2Jb\x07\x9b", "burst": 5, "count": 5, "period": "1h"})
        watch.until(lambda text: "a\\x1b[2Jb\\x07\\xc2\\x9b" in text)
        watch.type("q")
        self.ended(watch)
        self.assertNotRegex(watch.raw.decode(), "\x1b\\[2J|\x07|\x9b")

    def test_more_than_a_screen_at_once_is_counted(self):
        watch = self.watch(rows=6)
        checks = [{"limit": "orders", "id": f"client-{number}"} for number in range(500)]
        self.server.post("/v1/check", checks)
        watch.until(lambda text: "client-499" in text)
        self.assertIn("more, too many to show", "\n".join(watch.screen.scrolled) + watch.screen.text())
        watch.type("q")
        self.ended(watch)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=1)
