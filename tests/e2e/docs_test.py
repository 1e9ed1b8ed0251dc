"""The page of the command line says what the program does, and the formats that the configuration page lists are read.

tests/docs runs all other pages."""

import os
import pathlib
import re
import subprocess
import sys
import unittest

from serving import Server
from program import BINARY, SOURCE, ProgramTest, weir

FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page):
    """(language, text) of every fenced block."""
    return FENCE.findall((SOURCE / "docs" / page).read_text())


def steps(transcript):
    """(command, expected output) of a transcript: a command is a line that begins with `$ `."""
    parts = re.split(r"^\$ (.*)\n", transcript, flags=re.MULTILINE)
    return list(zip(parts[1::2], parts[2::2]))


LISTEN = """
listen:
  - {address: "127.0.0.1:0", speak: http}
  - {address: "127.0.0.1:0", speak: admin}
"""


class Transcripts(ProgramTest):
    environment = {}  # where the commands find their server

    def run_step(self, command):
        program = pathlib.Path(BINARY).resolve()
        clean = {name: value for name, value in os.environ.items() if not name.startswith("WEIR_")} | self.environment
        clean["PATH"] = f"{program.parent}:{clean['PATH']}"
        done = subprocess.run(
            ["bash", "-c", command], cwd=self.directory, env=clean, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60
        )
        return done.stdout.decode()

    def test_of_the_command_line_are_what_the_program_prints(self):
        operated = next(text for language, text in blocks("cli.md") if text.startswith("# operated.yaml\n"))
        server = Server(self, LISTEN + operated)
        self.environment = {"WEIR_SERVER": f"http://127.0.0.1:{server.ports['http']}",
                            "WEIR_ADMIN": f"http://127.0.0.1:{server.ports['admin']}"}
        self.assertGreaterEqual(self.check_page("cli.md"), 30)
        # Every command that the page has a section for is run in it, except live ones, which have tests of their own.
        page = (SOURCE / "docs" / "cli.md").read_text()
        for command in ("check", "throttle", "stats", "clients", "client", "top", "reset", "adjust", "access add", "access list",
                        "access remove", "config check", "config show", "config diff", "simulate", "version"):
            self.assertRegex(page, rf"(?m)^\$ .*\bweir {command}\b")

    def check_page(self, page):
        """How many commands the page has."""
        transcripts = 0
        for language, text in blocks(page):
            name = re.match(r"# (\S+\.yaml)\n", text)
            if language == "yaml" and name:
                self.file(name[1], text)
            if language != "console":
                continue
            for command, expected in steps(text):
                # A file that is shown before it exists is made by showing it.
                made = re.fullmatch(r"cat (\S+)", command)
                if made and not (self.directory / made[1]).exists():
                    self.file(made[1], expected)
                with self.subTest(command):
                    transcripts += 1
                    pattern = re.escape(expected).replace("…", ".*")
                    self.assertRegex(self.run_step(command), rf"\A{pattern}\Z")
        return transcripts


class Configurations(ProgramTest):
    def test_use_durations_rates_and_sizes_that_are_read(self):
        page = (SOURCE / "docs" / "configuration.md").read_text()
        row = lambda name: re.findall(r"`([^`]+)`", re.search(rf"^\| {name} \|(.*)$", page, re.MULTILINE)[1])
        for duration in row("durations"):
            with self.subTest(duration):
                path = self.file("weir.yaml", f"limits: {{a: {{burst: 1, count: 1, period: {duration}}}}}\n")
                self.assertEqual(weir("config", "check", path).returncode, 0)
        for rate in row("rates"):
            with self.subTest(rate):
                path = self.file("weir.yaml", f"limits: {{a: {{rate: {rate}}}}}\n")
                self.assertEqual(weir("config", "check", path).returncode, 0)
        for size in ("65536", "50M", "64KiB"):
            with self.subTest(size):
                self.assertIn(size, row("sizes"))
                path = self.file("weir.yaml", f"memory: {{max_buckets: {size}}}\nlimits: {{a: {{rate: 1/s}}}}\n")
                self.assertEqual(weir("config", "check", path).returncode, 0)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=1)
