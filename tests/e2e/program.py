"""Runs the program under test. WEIR names the binary, WEIR_SOURCE the source tree; ctest sets both."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

BINARY = os.environ.pop("WEIR")
SOURCE = pathlib.Path(os.environ.pop("WEIR_SOURCE"))


def weir(*arguments, stdin=b"", env=None):
    """The finished process, its output as text. The caller's WEIR_* variables would be configuration, so none pass."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("WEIR_")}
    clean.update(env or {})
    done = subprocess.run([BINARY, *map(str, arguments)], input=stdin, capture_output=True, env=clean, timeout=60)
    done.stdout = done.stdout.decode()
    done.stderr = done.stderr.decode()
    return done


class ProgramTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)

    def file(self, name, text):
        path = self.directory / name
        path.write_text(text)
        return path

    def replay(self, config, lines, code=0):
        """The answers to a trace, each line parsed with its numbers as text."""
        trace = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
        done = weir("simulate", "--config", self.file("weir.yaml", config), "--trace", "-", stdin=trace.encode())
        self.assertEqual(done.returncode, code, done.stderr)
        return [json.loads(line, parse_float=str, parse_int=str) for line in done.stdout.splitlines()]
