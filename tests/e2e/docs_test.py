"""The user pages say what the program does: every transcript is run, every configuration is checked."""

import os
import pathlib
import re
import subprocess
import sys
import unittest

from program import BINARY, SOURCE, ProgramTest, weir

FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page):
    """(language, text) of every fenced block."""
    return FENCE.findall((SOURCE / "docs" / page).read_text())


def steps(transcript):
    """(command, expected output) of a transcript: a command is a line that begins with `$ `."""
    parts = re.split(r"^\$ (.*)\n", transcript, flags=re.MULTILINE)
    return list(zip(parts[1::2], parts[2::2]))


class Transcripts(ProgramTest):
    def run_step(self, command):
        program = pathlib.Path(BINARY).resolve()
        clean = {name: value for name, value in os.environ.items() if not name.startswith("WEIR_")}
        clean["PATH"] = f"{program.parent}:{clean['PATH']}"
        done = subprocess.run(
            ["bash", "-c", command], cwd=self.directory, env=clean, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60
        )
        return done.stdout.decode()

    def test_of_the_algorithm_are_what_the_program_prints(self):
        self.file("limits.yaml", "limits: {login: {rate: 3/hour}}\n")
        self.assertEqual(self.check_page("algorithm.md"), 2)

    def test_of_the_command_line_are_what_the_program_prints(self):
        self.assertGreaterEqual(self.check_page("cli.md"), 10)

    def test_of_the_replay_are_what_the_program_prints(self):
        self.assertGreaterEqual(self.check_page("simulate.md"), 4)

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
    def test_on_the_configuration_page_are_valid(self):
        self.file("defaults.yaml", "NewOrdersPerAccount: {burst: 300, count: 300, period: 180m}\n")
        self.file("overrides.yaml", "NewOrdersPerAccount:12345678: {rate: 600/h}\n")
        # The public key of RFC 7515, A.3.
        self.file("keys.json", '{"keys": [{"kty": "EC", "crv": "P-256", "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",'
                  ' "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}]}')
        pages = [text for language, text in blocks("configuration.md") if language == "yaml"]
        self.assertGreaterEqual(len(pages), 4)
        for text in pages:
            with self.subTest(text.splitlines()[0]):
                done = weir("config", "check", self.file("weir.yaml", text))
                self.assertEqual(done.returncode, 0, done.stderr)

    def test_on_the_tuning_page_are_valid(self):
        pages = [text for language, text in blocks("tuning.md") if language == "yaml"]
        self.assertEqual(len(pages), 4)
        for text in pages:
            with self.subTest(text.splitlines()[0]):
                done = weir("config", "check", self.file("weir.yaml", text))
                self.assertEqual(done.returncode, 0, done.stderr)

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
