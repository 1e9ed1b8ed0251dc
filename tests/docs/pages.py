"""Pages as their blocks: what a reader copies, and what the tests do with it.

A fenced block is one of these, by the word behind the fence:
  console   a transcript: a line `$ COMMAND` and its output. `…` in the output stands for anything.
  sh        commands alone; each must succeed. `weir serve` and other servers stay in the background.
  yaml json js python go cpp c
            a file, if its first line is a comment with its name (`# weir.yaml`); otherwise a fragment.
  text      anything that nobody runs: output, log lines, formulas.

Directly above a block or anywhere else on a page stand comments that readers do not see:
  <!-- not run: REASON -->      nobody runs the next block
  <!-- run: COMMAND -->         a command that readers have run by other means
  <!-- fragment: NAME -->       how a fragment is checked (page_test.py: FRAGMENTS)
Where the reader should know that a client was not tried, the line is `*Not run by the tests: REASON.*`."""

import dataclasses
import re

COMMANDS = ("console", "sh")
PROGRAMS = ("js", "python", "go", "cpp", "c")
LANGUAGES = (*COMMANDS, *PROGRAMS, "yaml", "json", "text", "http")

FENCE = re.compile(r"^```(.*)$")
FILE_NAME = re.compile(r"(?:#|//) (\S+\.\w+)$")
NOT_RUN = re.compile(r"(?:<!-- not run: (.+) -->|\*Not run by the tests: (.+)\.\*)$")
HIDDEN = re.compile(r"<!-- run: (.+) -->$")
FRAGMENT = re.compile(r"<!-- fragment: (\w+) -->$")


@dataclasses.dataclass
class Block:
    page: str
    line: int
    language: str
    text: str
    not_run: str = ""   # why nobody runs it; empty: somebody does
    fragment: str = ""
    hidden: bool = False  # a comment, not a fence

    @property
    def file(self):
        """The name of the file that the block is, or None."""
        name = FILE_NAME.match(self.text.split("\n", 1)[0])
        return name[1] if name and self.language not in COMMANDS else None

    @property
    def place(self):
        return f"{self.page}:{self.line}"


def blocks_of(path, name):
    """Every block of the page, in order."""
    blocks = []
    fence = None
    before = ""  # the last line that is not empty
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
        stripped = line.strip()
        mark = FENCE.match(stripped)
        if fence is not None:
            if stripped == "```":
                blocks.append(fence)
                fence, before = None, ""
            else:
                fence.text += line + "\n"
            continue
        if mark:
            reason = NOT_RUN.match(before)
            fragment = FRAGMENT.match(before)
            fence = Block(name, number, mark[1].strip(), "", (reason[1] or reason[2]) if reason else "",
                          fragment[1] if fragment else "")
            continue
        if hidden := HIDDEN.match(stripped):
            blocks.append(Block(name, number, "sh", hidden[1] + "\n", hidden=True))
        before = stripped or before
    if fence is not None:
        raise ValueError(f"{fence.place}: the block is never closed")
    return blocks


def steps_of(block):
    """(command, expected output or None) of a block of commands. A command that ends in a backslash goes on."""
    if block.language == "sh":
        joined = re.sub(r"\\\n", "", block.text)
        return [(line, None) for line in joined.split("\n") if line.strip() and not line.lstrip().startswith("#")]
    steps = []
    for line in block.text.rstrip("\n").split("\n"):
        if line.startswith("$ "):
            steps.append([line[2:], ""])
        elif steps and steps[-1][0].endswith("\\") and not steps[-1][1]:
            steps[-1][0] = steps[-1][0][:-1] + line.strip()
        elif steps:
            steps[-1][1] += line + "\n"
        else:
            raise ValueError(f"{block.place}: a transcript begins with `$ `")
    return [(command, expected) for command, expected in steps]
