"""The pages as a whole: every block is run or says why not, every link leads somewhere, the README leads to every page."""

import json
import os
import pathlib
import re
import sys
import tempfile
import unittest

from pages import COMMANDS, LANGUAGES, PROGRAMS, blocks_of, steps_of

SOURCE = pathlib.Path(os.environ["WEIR_SOURCE"])
# Each is a test of its own (page_test.py): CMake hands the list over.
RUN = set(os.environ["PAGES"].split(":"))
# Pages whose blocks somebody else runs, or that measure.
ELSEWHERE = {"docs/cli.md": "e2e/docs runs it", "docs/benchmarks.md": "script/bench measures for hours",
             "examples/embed/README.md": "the test install builds it",
             "examples/envoy/README.md": "e2e/envoy runs its files",
             **{f"examples/{front}/README.md": "e2e/fronts runs its files" for front in ("caddy", "haproxy", "nginx")}}
GUIDES = sorted(str(path.relative_to(SOURCE)) for path in [SOURCE / "README.md", *(SOURCE / "docs").glob("*.md"),
                                                           *(SOURCE / "examples").glob("*/README.md")])
PAGES = sorted(str(path.relative_to(SOURCE)) for path in SOURCE.glob("**/*.md")
               if not {"build", "node_modules", ".git"} & set(path.relative_to(SOURCE).parts))


def without_code(text):
    """The page without fenced blocks and code spans, in which nothing is a link or a heading."""
    return re.sub(r"`[^`\n]*`", "`", re.sub(r"^ *```.*?^ *```$", "", text, flags=re.MULTILINE | re.DOTALL))


def anchors_of(text):
    """The anchors of a page's headings, as GitHub makes them."""
    anchors = set()
    seen = {}
    fenced = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.MULTILINE | re.DOTALL)
    for heading in re.findall(r"^#{1,6} +(.*)$", fenced, re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        anchor = re.sub(r"[^\w\- ]", "", plain.strip().lower()).replace(" ", "-")
        count = seen.get(anchor, 0)
        seen[anchor] = count + 1
        anchors.add(f"{anchor}-{count}" if count else anchor)
    return anchors


def links_of(text):
    return re.findall(r"\]\(([^)\s]+)\)", without_code(text))


class Numbers(unittest.TestCase):
    def test_of_the_readme_are_those_of_the_benchmarks(self):
        table = re.search(r"^## Five numbers$.*?^## ", (SOURCE / "README.md").read_text(encoding="utf-8"), re.M | re.S)[0]
        numbers = re.findall(r"[\d.]+(?= [nµ]s)|\d+,[\d,]+\d", table)
        self.assertGreater(len(numbers), 8)
        benchmarks = (SOURCE / "docs/benchmarks.md").read_text(encoding="utf-8")
        for number in numbers:
            self.assertTrue(re.search(rf"(?<![\d,.]){re.escape(number)}(?![\d,.]\d)", benchmarks), number)


class Blocks(unittest.TestCase):
    def test_every_guide_is_run(self):
        self.assertEqual(RUN | set(ELSEWHERE), set(GUIDES))

    def test_no_block_is_run_by_nobody(self):
        """page_test.py runs, checks or compiles every block of these kinds; the others hold nothing to run."""
        for page in GUIDES:
            if page in ELSEWHERE:
                continue
            for block in blocks_of(SOURCE / page, page):
                with self.subTest(block.place):
                    self.assertIn(block.language, LANGUAGES, "write `text` behind the fence if there is nothing to run")
                    if block.language in COMMANDS and not block.not_run:
                        self.assertTrue(steps_of(block))
                    if block.language in PROGRAMS and not block.not_run and not block.fragment:
                        self.assertTrue(block.file, "a program begins with a comment that is its file's name")
                        runs = [other for other in blocks_of(SOURCE / page, page)
                                if other.language in COMMANDS and not other.not_run and block.file in other.text]
                        self.assertTrue(runs, "no command runs the program")
                    if block.language in ("text", "http"):
                        self.assertNotRegex(block.text, r"(?m)^\$ ", "a transcript is `console`")

    def test_what_is_not_run_says_why(self):
        reasons = {block.place: block.not_run for page in GUIDES for block in blocks_of(SOURCE / page, page) if block.not_run}
        self.assertTrue(reasons)
        for place, reason in reasons.items():
            self.assertGreater(len(reason), 10, place)

    def test_a_client_that_is_not_run_tells_the_reader(self):
        for page in GUIDES:
            text = (SOURCE / page).read_text(encoding="utf-8")
            for block in blocks_of(SOURCE / page, page):
                if block.not_run and block.language in PROGRAMS:
                    self.assertIn(f"*Not run by the tests: {block.not_run}.*", text, block.place)


class Links(unittest.TestCase):
    def test_lead_to_files_and_headings_that_exist(self):
        for page in PAGES:
            path = SOURCE / page
            for link in links_of(path.read_text(encoding="utf-8")):
                if re.match(r"[a-z]+:", link):
                    continue
                with self.subTest(f"{page}: {link}"):
                    target, _, anchor = link.partition("#")
                    file = (path.parent / target).resolve() if target else path
                    self.assertTrue(file.exists(), "there is no such file")
                    self.assertTrue(file.is_relative_to(SOURCE), "it leaves the repository")
                    if anchor and file.suffix == ".md":
                        self.assertIn(anchor, anchors_of(file.read_text(encoding="utf-8")))

    def test_the_readme_leads_to_every_page(self):
        linked = {link.partition("#")[0] for link in links_of((SOURCE / "README.md").read_text(encoding="utf-8"))}
        self.assertEqual({page for page in GUIDES if page.startswith("docs/")} - linked, set())

    def test_a_guide_leads_to_every_example(self):
        linked = {(SOURCE / page).parent / link for page in GUIDES if not page.startswith("examples/")
                  for link in links_of((SOURCE / page).read_text(encoding="utf-8"))}
        resolved = {path.resolve() for path in linked}
        self.assertEqual({page for page in GUIDES if page.startswith("examples/")
                          and not {SOURCE / page, (SOURCE / page).parent} & resolved}, set())

    def test_a_guide_leads_to_every_openapi_document(self):
        linked = {link for page in GUIDES for link in links_of((SOURCE / page).read_text(encoding="utf-8"))}
        documents = {f"openapi/{path.name}" for path in (SOURCE / "docs/openapi").glob("*.yaml")}
        self.assertEqual(documents - linked, set())

    def test_pictures_have_a_text(self):
        for page in PAGES:
            for text, link in re.findall(r"!\[([^\]]*)\]\(([^)]+)\)", (SOURCE / page).read_text(encoding="utf-8")):
                self.assertGreater(len(text), 20, f"{page}: {link}")


# They look like options: EdgeQuota's own, and a field of a report.
OTHERS = {("docs/migration.md", "backend.url"), ("docs/simulate.md", "limits[].advice")}


class Options(unittest.TestCase):
    def options_of(self, schema, path=""):
        """Every path of the configuration file, lists as `[]`, names of your own as `NAME`."""
        for part in schema.get("anyOf", []) + schema.get("allOf", []):
            yield from self.options_of(part, path)
        if isinstance(schema.get("items"), dict):
            yield path + "[]"
            yield from self.options_of(schema["items"], path + "[]")
            yield from self.options_of(schema["items"], path)
        if isinstance(schema.get("additionalProperties"), dict):
            yield from self.options_of(schema["additionalProperties"], path + ".NAME")
        for name, option in schema.get("properties", {}).items():
            below = f"{path}.{name}" if path else name
            yield below
            yield from self.options_of(option, below)

    def test_that_a_page_names_exist(self):
        with open(SOURCE / "schema/weir.schema.json", encoding="utf-8") as file:
            options = set(self.options_of(json.load(file)))
        tops = {option for option in options if "." not in option and not option.endswith("[]")}
        self.assertIn("redis.tls.enabled", options)
        named = re.compile(rf"`((?:{'|'.join(sorted(tops))})(?:\[\])?(?:\.[a-z_]+)+)`")
        found = 0
        for page in PAGES:
            if page.startswith("docs/decisions") or page == "CHANGELOG.md":  # history
                continue
            for option in named.findall((SOURCE / page).read_text(encoding="utf-8")):
                if option.rsplit(".", 1)[-1] in ("md", "yaml", "cc", "h", "json", "js") or (page, option) in OTHERS:
                    continue
                with self.subTest(f"{page}: {option}"):
                    found += 1
                    self.assertIn(option, options)
        self.assertGreater(found, 50)


class Reader(unittest.TestCase):
    """The reader of pages itself."""

    def blocks(self, text):
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory) / "page.md"
            path.write_text(text, encoding="utf-8")
            return blocks_of(path, "page.md")

    def test_finds_blocks_marks_and_hidden_commands(self):
        blocks = self.blocks("a\n\n<!-- run: true -->\n<!-- not run: it is long -->\n```sh\nx\n```\n\n```yaml\n# a.yaml\n{}\n```\n")
        self.assertEqual([(block.language, block.hidden, block.not_run, block.file) for block in blocks],
                         [("sh", True, "", None), ("sh", False, "it is long", None), ("yaml", False, "", "a.yaml")])

    def test_a_mark_is_for_the_next_block_only(self):
        blocks = self.blocks("*Not run by the tests: not in Debian.*\n\n```go\nx\n```\n\n```go\ny\n```\n")
        self.assertEqual([block.not_run for block in blocks], ["not in Debian", ""])

    def test_splits_a_transcript_into_commands_and_outputs(self):
        [block] = self.blocks("```console\n$ one \\\n  more\nout\n$ two\n```\n")
        self.assertEqual(steps_of(block), [("one more", "out\n"), ("two", "")])

    def test_refuses_a_block_that_is_never_closed(self):
        with self.assertRaises(ValueError):
            self.blocks("```sh\ntrue\n")

    def test_knows_anchors_as_github_makes_them(self):
        self.assertEqual(anchors_of("# A `b` (c)\n## A b c\n## --set\n```\n# no\n```\n## limits.NAME[]\n"),
                         {"a-b-c", "a-b-c-1", "--set", "limitsname"})


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=1)
