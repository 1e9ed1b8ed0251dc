"""Runs everything on one page: page_test.py PAGE, a path from the top of the repository."""

import json
import os
import pathlib
import re
import subprocess
import sys
import unittest

from pages import COMMANDS, LANGUAGES, PROGRAMS, blocks_of, steps_of
from scene import SOURCE, WEIR, Scene

PAGE = sys.argv.pop(1)
COMPILER = os.environ.get("CXX", "g++")

# What a fragment stands in. Its #include lines go to the top.
FRAGMENTS = {
    "function": """#include <weir/limiter.h>
#include <string_view>
template <class T> int too_many_requests(T) {{ return 429; }}
{includes}
int answer(std::string_view user) {{
  {text}
  return 200;
}}
""",
    "charges": """#include <weir/limiter.h>
#include <string_view>
template <class T> int too_many_requests(T) {{ return 429; }}
int answer(std::string_view address, std::string_view account) {{
  {text}
  return 200;
}}
""",
    "clock": """#include <weir/limiter.h>
constexpr weir::Limit kLogin = weir::Limit::per_minute(60);
void advance() {{
  {text}
}}
""",
    "c": """#include <string.h>
#include <weir/weir.h>
static int too_many_requests(int64_t wait) {{ return (int)wait; }}
int answer(const char* user);
int answer(const char* user) {{
  {text}
  return 200;
}}
""",
}


class Page(unittest.TestCase):
    maxDiff = None

    place = ""

    def setUp(self):
        example = (SOURCE / PAGE).parent
        self.scene = Scene(self, example if example.parent.name == "examples" else None)
        self.fragments = {}  # of programs, by language

    def _formatMessage(self, msg, standardMsg):
        return f"{self.place}: {super()._formatMessage(msg, standardMsg)}"

    def test_does_what_it_says(self):
        # The rest of a page builds on what came before: the first failure ends it.
        for block in blocks_of(SOURCE / PAGE, PAGE):
            self.place = block.place
            self.assertIn(block.language, LANGUAGES, block.place)
            if not block.not_run:
                self.handle(block)
        self.compile_fragments()

    def handle(self, block):
        if block.file:
            path = self.scene.write(block.file, block.text)
            # A file in a folder is part of another, and a bad one is for a command to complain about.
            if block.language == "yaml" and "/" not in block.file and not block.file.startswith("bad"):
                self.check_configuration(path)
        elif block.language in COMMANDS:
            self.run_steps(block)
        elif block.language == "yaml":
            self.check_configuration(self.scene.write("fragment.yaml", block.text))
        elif block.language == "json":
            json.loads(block.text)
        elif block.language in PROGRAMS:
            self.keep_fragment(block)

    def run_steps(self, block):
        for command, expected in steps_of(block):
            # A file that is shown before it exists is made by showing it.
            shown = re.fullmatch(r"cat ([\w.-]+)", command)
            if shown and expected and not (self.scene.directory / shown[1]).exists():
                self.scene.write(shown[1], expected)
            # A transcript shows failures too; commands alone must succeed.
            output, status = self.scene.run(command)
            if expected is None:
                self.assertEqual(status, 0, f"{command}\n{output}")
            elif expected or status != 0:
                pattern = re.escape(self.scene.moved(expected).strip()).replace("…", ".*?")
                self.assertRegex(output.strip(), re.compile(rf"\A{pattern}\Z", re.DOTALL), command)

    def check_configuration(self, path):
        secrets = self.scene.directory / "secrets"
        secrets.mkdir(exist_ok=True)
        text = path.read_text(encoding="utf-8")
        for name in re.findall(r"file:/run/secrets/([\w.-]+)", text):
            (secrets / name).write_text(f"{name}-of-the-test", encoding="utf-8")
        path.write_text(text.replace("file:/run/secrets/", f"file:{secrets}/"), encoding="utf-8")
        done = subprocess.run([WEIR, "config", "check", path.name], cwd=self.scene.directory, capture_output=True, text=True,
                              env=self.scene.environment | PLACEHOLDERS, timeout=60, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)

    def keep_fragment(self, block):
        self.assertIn(block.fragment, FRAGMENTS, "a program that is neither a file nor a known fragment")
        includes = "\n".join(re.findall(r"^#include .*$", block.text, re.MULTILINE))
        text = re.sub(r"^#include .*\n", "", block.text, flags=re.MULTILINE)
        kept = self.fragments.setdefault(block.language, [])
        body = FRAGMENTS[block.fragment].format(text=text, includes=includes)
        kept.append((block.line, body))

    def compile_fragments(self):
        """All of one language as one source: the headers are most of the work."""
        for language, kept in self.fragments.items():
            plain_c = language == "c"
            includes = sorted({line for _, text in kept for line in re.findall(r"^#include .*$", text, re.MULTILINE)})
            text = "\n".join(includes) + "\n"
            for line, body in kept:
                body = re.sub(r"^#include .*\n", "", body, flags=re.MULTILINE)
                text += body if plain_c else f"namespace line_{line} {{\n{body}}}\n"
            source = self.scene.write(f"fragments.{'c' if plain_c else 'cc'}", text)
            flags = ["-std=c11", "-x", "c"] if plain_c else ["-std=c++20"]
            flags += ["-fsyntax-only", "-Wall", "-Wextra", "-Wno-unused-variable", f"-I{SOURCE}"]
            done = subprocess.run([COMPILER, *flags, source.name],
                                  cwd=self.scene.directory, capture_output=True, text=True, timeout=300, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""))


# Secrets that configurations on the pages take from the environment.
PLACEHOLDERS = {name: "a-secret-of-the-test" for name in ("WEIR_API_TOKEN", "WEIR_READ", "REDIS_PASSWORD", "JWT_SECRET")}


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=1)
