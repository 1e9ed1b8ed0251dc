#!/usr/bin/env python3
"""Checks the rules of the house that a compiler does not: see RULES at the end, one function each.

usage: tools/tidy.py [ROOT]

Prints `path:line: sentence` for each problem and exits 1 if there is one. The layers, and which folder may use which
library, are in tools/layers.txt.
"""

import ast
import os
import re
import subprocess
import sys
from collections import namedtuple

FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 70
LINE_CHARACTERS_MAX = 120
PYTHON_LINE_CHARACTERS_MAX = 140  # tests quote whole lines of output
DECISION_LINES_MAX = 40

TEST_SOURCE = re.compile(r"_(test|stress|fuzz|bench)\.(cc|c|h)$")
CODE = re.compile(r"\.(cc|c|h|py|lua|cmake|js|css|html)$|(^|/)CMakeLists\.txt$|^script/|^\.ci/")
CPP = re.compile(r"\.(cc|c|h)$")
DATA = re.compile(r"(^|/)(corpus|testdata)/")
BANNED_SUFFIX = re.compile(r"\b(?:class|struct|using)\s+(?:\[\[.*?\]\]\s*)?"
                           r"(\w*(?:Manager|Helper|Impl|Base|Utils?|Data|Info|Context|Processor))\b")
BANNED_PLACE = re.compile(r"(^|/)(utils?|common|helpers?|impl|detail|misc)/"
                          r"|(^|/)(types|utils?|helpers?|common)\.(h|cc)$")

Problem = namedtuple("Problem", "path line sentence")
Include = namedtuple("Include", "line header quoted")


class Layers:
    """tools/layers.txt: its head says what the words mean."""

    def __init__(self, text):
        self.number, self.libraries, self.system, self.public = {}, {}, [], set()
        for line in text.splitlines():
            words = line.split("#")[0].split()
            if not words:
                continue
            if words[0] == "layer" and len(words) > 2:
                self.number.update((folder, float(words[1])) for folder in words[2:])
            elif words[0] == "library" and len(words) > 2:
                self.libraries[words[1]] = words[2:]
            elif words[0] == "system":
                self.system += words[1:]
            elif words[0] == "public":
                self.public.update(words[1:])
            else:
                raise ValueError(f"tools/layers.txt: cannot read the line {line!r}")

    def library_of(self, header):
        return next((prefix for prefix in self.libraries if header.startswith(prefix)), None)

    def is_system(self, header):
        known = any(header == name or name[-1] == "/" and header.startswith(name) for name in self.system)
        return known or re.fullmatch(r"\w+", header)


class Tree:
    """The files of the project: tracked ones and new ones, as they are on disk; what is not text has no lines."""

    def __init__(self, root):
        self.text = {}
        for path in sorted(self._paths(root)):
            try:
                with open(os.path.join(root, path), encoding="utf-8") as file:
                    self.text[path] = file.read()
            except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
                continue
        self.paths = list(self.text)
        self.files = set(self._paths(root))  # also what is not text
        self.cpp = [path for path in self.paths if CPP.search(path) and not DATA.search(path)]
        self.code = [path for path in self.paths if CODE.search(path) and not DATA.search(path)]
        self.weir = [path for path in self.cpp if path.startswith("weir/")]
        self.includes = {path: list(_includes(self.text[path])) for path in self.cpp}
        self.bare = {path: without_comments_and_strings(self.text[path]) for path in self.cpp}
        self.layers = Layers(self.text.get("tools/layers.txt", ""))

    @staticmethod
    def _paths(root):
        command = ["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        if os.path.exists(os.path.join(root, ".git")):
            return [path for path in subprocess.check_output(command, text=True).split("\0") if path]
        found = (os.path.join(folder, name) for folder, _, files in os.walk(root) for name in files)
        return [os.path.relpath(path, root) for path in found]


def _includes(text):
    for number, line in enumerate(text.splitlines(), 1):
        match = re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line)
        if match:
            yield Include(number, match[2], match[1] == '"')


def without_comments_and_strings(text, keep_comments=False):
    """The same lines without what is only text to the compiler."""
    token = re.compile(r'//[^\n]*|/\*.*?\*/|R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"'
                       r"|(?<!\w)'(?:\\.|[^'\\\n])+'", re.DOTALL)

    def replacement(match):
        if match[0][0] == "/" and keep_comments:
            return match[0]
        return ("" if match[0][0] == "/" else '""') + "\n" * match[0].count("\n")

    return token.sub(replacement, text)


def lines_matching(pattern, text):
    for number, line in enumerate(text.splitlines(), 1):
        for match in re.finditer(pattern, line):
            yield number, match


def folder_of(path):
    """The folder below weir/ that a path such as weir/store/memory/table.h belongs to; "." for weir/ itself."""
    return os.path.dirname(path)[len("weir/"):] or "."


def is_test(path):
    return bool(TEST_SOURCE.search(path)) or "/testing/" in path


def functions(bare):
    """(signature, first line, last line) of each function in C++ text without comments and strings. Best effort."""
    bare = re.sub(r"^[ \t]*#(?:.*\\\n)*.*", lambda match: "\n" * match[0].count("\n"), bare, flags=re.MULTILINE)
    stack, statement, first, line = [], "", 1, 1
    for part in re.split(r"([{};\n])", bare):
        if part == "\n":
            line += 1
            statement += " "
        elif part == ";":
            statement = ""
        elif part == "{":
            kind = _block_kind(statement, any(outer[0] == "function" for outer in stack))
            stack.append((kind, first, statement))
            statement = statement if kind == "value" else ""
        elif part == "}":
            kind, began, before = stack.pop() if stack else ("scope", 1, "")
            if kind == "function":
                yield " ".join(before.split()), began, line
            statement = before if kind == "value" else ""
        elif part.strip():
            first = first if statement.strip() else line
            statement += part


def _block_kind(statement, inside_a_function):
    statement = re.sub(r"\b(public|protected|private)\s*:(?!:)", "", statement).strip()
    if inside_a_function:
        return "inner"
    if re.match(r"(template\s*<.*>\s*)?(inline\s+)?(class|struct|union|enum|namespace|extern)\b", statement):
        return "scope"
    # A brace inside parentheses, after `=`, or in a constructor's list of initialisers does not end the statement.
    flat = re.sub(r"\([^()]*\)", "()", re.sub(r"operator\s*[^\s\w]+", "operator", statement))
    if statement.count("(") != statement.count(")") or re.search(r"[^=!<>]=[^=]|=$", flat):
        return "value"
    if re.search(r"\)\s*(noexcept\s*)?:[^:]", statement) and re.search(r"[\w>]$", statement):
        return "value"
    return "function" if ")" in statement else "scope"


def layering(tree):
    """Includes go to strictly lower layers or stay in the folder; quotes are for our own headers, from the root.

    A test may use any folder: those of policy/ write their policies as YAML."""
    number = tree.layers.number
    for path in tree.weir:
        folder = folder_of(path)
        if folder not in number:
            yield Problem(path, 1, f"folder '{folder}' has no layer in tools/layers.txt")
            continue
        for include in tree.includes[path]:
            if not include.quoted:
                continue
            if not include.header.startswith("weir/"):
                yield Problem(path, include.line, f'"{include.header}": quotes are for our own headers ("weir/…")')
                continue
            if include.header not in tree.text:
                yield Problem(path, include.line, f'"{include.header}" does not exist')
                continue
            other = folder_of(include.header)
            if other == folder or other not in number:
                continue
            if number[other] >= number[folder] and not is_test(path):
                yield Problem(path, include.line, f"{folder} (layer {number[folder]:g}) may not include {other} (layer "
                              f"{number[other]:g}): includes go to strictly lower layers")
            elif "/testing/" in include.header and not is_test(path):
                yield Problem(path, include.line, f'"{include.header}" is for tests only')


def third_party(tree):
    """A third-party library lives in the .cc files of the folders that tools/layers.txt names, and in no header."""
    for path in tree.weir:
        folder, test = folder_of(path), is_test(path)
        for include in (i for i in tree.includes[path] if not i.quoted):
            library = tree.layers.library_of(include.header)
            if library is None:
                if not tree.layers.is_system(include.header):
                    yield Problem(path, include.line, f"<{include.header}>: not standard, not in tools/layers.txt")
                continue
            allowed = tree.layers.libraries[library]
            if test and "tests" in allowed:
                continue
            if folder not in allowed:
                yield Problem(path, include.line, f"<{include.header}> may be used in {', '.join(allowed)} only")
            elif path.endswith(".h"):
                yield Problem(path, include.line, f"<{include.header}>: a third-party library may not show in a header")


def streams(tree):
    """<iostream> costs static constructors and invites printing: only the command line may have it."""
    for path in tree.weir:
        if folder_of(path) in ("app", "cli") or is_test(path):
            continue
        for include in tree.includes[path]:
            if include.header == "iostream":
                yield Problem(path, include.line, "<iostream> in a library folder")


def header_form(tree):
    """A header starts with #pragma once; x.cc includes x.h first; macros are called WEIR_…."""
    for path in tree.weir:
        if path.endswith(".h") and "#pragma once" not in tree.text[path] and "#ifndef WEIR_" not in tree.text[path]:
            yield Problem(path, 1, "a header without #pragma once")
        own = re.sub(r"\.cc$", ".h", path)
        if path.endswith(".cc") and own in tree.text and tree.includes[path] and tree.includes[path][0].header != own:
            yield Problem(path, tree.includes[path][0].line, f'the first include must be its own header, "{own}"')
        for line, match in lines_matching(r"^\s*#\s*define\s+(\w+)", tree.bare[path]):
            if not match[1].startswith("WEIR_"):
                yield Problem(path, line, f"macro {match[1]}: write a constant or a function, or call it WEIR_…")


def sizes(tree):
    """Files, functions and lines short enough to read."""
    for path in tree.code:
        lines = tree.text[path].splitlines()
        if len(lines) > FILE_LINES_MAX:
            yield Problem(path, len(lines), f"{len(lines)} lines; a file has at most {FILE_LINES_MAX}")
        for number, line in enumerate(lines, 1):
            longest = PYTHON_LINE_CHARACTERS_MAX if path.endswith(".py") else LINE_CHARACTERS_MAX
            if len(line) > longest:
                yield Problem(path, number, f"{len(line)} characters; a line has at most {longest}")
    for path in tree.cpp:
        for signature, first, last in functions(tree.bare[path]):
            if last - first + 1 > FUNCTION_LINES_MAX:
                yield Problem(path, first, f"a function of {last - first + 1} lines (`{signature[:60]}`); at most "
                              f"{FUNCTION_LINES_MAX}")
    for path in (path for path in tree.code if path.endswith(".py")):
        for node in ast.walk(ast.parse(tree.text[path])):
            if isinstance(node, ast.FunctionDef) and node.end_lineno - node.lineno >= FUNCTION_LINES_MAX:
                yield Problem(path, node.lineno, f"a function of {node.end_lineno - node.lineno + 1} lines "
                              f"(`{node.name}`); at most {FUNCTION_LINES_MAX}")


def fuzzed(tree):
    """The headers that fuzzers reach: each walks through the headers and sources of its own folder, and reaches what
    those include."""
    reached = set()
    for fuzzer in (path for path in tree.weir if path.endswith("_fuzz.cc")):
        folder, seen, ahead = os.path.dirname(fuzzer), set(), [fuzzer]
        while ahead:
            for include in tree.includes.get(ahead.pop(), ()):
                if include.header in seen:
                    continue
                seen.add(include.header)
                if os.path.dirname(include.header) == folder:
                    ahead += [include.header, re.sub(r"h$", "cc", include.header)]
        reached |= seen
    return reached


def fuzzers(tree):
    """What a header calls parse() or receive() takes bytes from strangers: a fuzzer must reach it."""
    reached = fuzzed(tree)
    declared = re.compile(r"(?P<before>[\w>&*\]]+)\s+[*&]?(?P<name>parse(?:_\w+)?|receive)\s*\((?P<rest>[^;{]*)")
    for path in tree.weir:
        if not path.endswith(".h") or is_test(path):
            continue
        if path in reached:
            continue
        for match in declared.finditer(tree.bare[path]):
            if match["before"] in ("return", "else", "case", "throw") or match["rest"].rstrip().endswith("= 0"):
                continue
            line = tree.bare[path].count("\n", 0, match.start("name")) + 1
            yield Problem(path, line, f"{match['name']}() has no fuzzer: no *_fuzz.cc reaches this header")
            break


def dead_files(tree):
    """Headers that nobody includes, sources that nobody builds, tests that nobody runs, seeds that nobody reads."""
    included = {include.header for path in tree.cpp for include in tree.includes[path] if include.header != path}
    folders_built = set(re.findall(r"[\w/]+", tree.text.get("weir/CMakeLists.txt", "")))
    for path in tree.weir:
        if path.endswith(".h"):
            if path not in included and path not in tree.layers.public:
                yield Problem(path, 1, "nobody includes this header")
            continue
        folder = folder_of(path)
        recipe = tree.text.get(os.path.dirname(path) + "/CMakeLists.txt")
        if recipe is None:
            yield Problem(path, 1, "is never built: its folder has no CMakeLists.txt")
        elif folder != "." and folder not in folders_built:
            yield Problem(path, 1, f"is never built: weir/CMakeLists.txt does not list '{folder}'")
        elif re.search(r"_(test|stress)\.cc$", path) and "weir_test(" not in recipe:
            yield Problem(path, 1, "is never run: its folder's CMakeLists.txt has no weir_test()")
    for path in tree.paths:
        match = re.match(r"(weir/.*/)corpus/([^/]+)/", path)
        if match and f"{match[1]}{match[2]}_fuzz.cc" not in tree.text:
            yield Problem(path, 1, f"seeds of a fuzzer that does not exist: {match[1]}{match[2]}_fuzz.cc")


def markers(tree):
    """Nothing is left for later without a kind: TODO(perf|test|port): what."""
    leftover = r"\b(FIX" r"ME|XX" r"X|HA" r"CK|TO" r"DO(?!\((?:perf|test|port)\): \S))\b"
    for path in tree.code:
        text = tree.text[path]
        if CPP.search(path):
            text = without_comments_and_strings(text, keep_comments=True)  # a string is data
        for line, match in lines_matching(leftover, text):
            if path not in ("tools/tidy.py", "tools/tidy_test.py"):
                yield Problem(path, line, f"leftover {match[1]}: do it, drop it, or write TODO(perf|test|port): what")


def names(tree):
    """No names that say nothing."""
    for path in tree.cpp:
        if BANNED_PLACE.search(path):
            yield Problem(path, 1, "a place name that says nothing: name the file or folder for what it holds")
        for line, match in lines_matching(BANNED_SUFFIX, tree.bare[path]):
            yield Problem(path, line, f"'{match[1]}' says nothing; if only such a name fits, the split is wrong")


def decisions(tree):
    """docs/decisions/NNNN-what.md: one number each, short enough to be read."""
    taken = {}
    for path in (path for path in tree.paths if path.startswith("docs/decisions/")):
        match = re.fullmatch(r"docs/decisions/(\d{4})-[a-z0-9-]+\.md", path)
        if not match:
            yield Problem(path, 1, "a decision's file is called NNNN-what-was-decided.md")
            continue
        if match[1] in taken:
            yield Problem(path, 1, f"number {match[1]} is taken by {taken[match[1]]}")
        taken[match[1]] = path
        count = len(tree.text[path].splitlines())
        if count > DECISION_LINES_MAX:
            yield Problem(path, count, f"{count} lines; a decision has at most {DECISION_LINES_MAX}")


def links(tree):
    """Relative links in documents lead somewhere."""
    for path in (path for path in tree.paths if path.endswith(".md") and not DATA.search(path)):
        for line, match in lines_matching(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", tree.text[path]):
            target = os.path.normpath(os.path.join(os.path.dirname(path), match[1]))
            if ":" in match[1] or target in tree.files or any(other.startswith(target + "/") for other in tree.paths):
                continue
            yield Problem(path, line, f"link to {match[1]}, which does not exist")


def workplaces(tree):
    """Nothing depends on, or tells of, the place where it was written."""
    for path in tree.paths:
        for line, match in lines_matching(r"(?<![\w.\]})*-])/(?:home/\w+|Users/\w+|work|root)/\w", tree.text[path]):
            yield Problem(path, line, f"an absolute path of some workplace ({match[0]}…)")


RULES = (layering, third_party, streams, header_form, sizes, fuzzers, dead_files, markers, names, decisions, links,
         workplaces)


def main(arguments):
    if any(argument in ("-h", "--help") for argument in arguments):
        print(__doc__)
        return 0
    root = arguments[0] if arguments else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    tree = Tree(root)
    problems = sorted({problem for rule in RULES for problem in rule(tree)})
    for problem in problems:
        print(f"{problem.path}:{problem.line}: {problem.sentence}")
    print(f"tidy: {len(tree.paths)} files, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
