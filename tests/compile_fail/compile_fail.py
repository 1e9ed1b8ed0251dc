"""What must not compile does not, and for the stated reason.

Each .cc file here is compiled twice: as it stands, which must work, and with WRONG defined, which must fail with an
error (or a note to it) that matches the regular expression after "// error: ". The two differ in one expression, so
that a case cannot pass because of something else that is broken.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys


def compiles(compiler, include, source, *flags):
    """(whether it compiled, what the compiler said)."""
    command = [compiler, "-std=c++20", "-fsyntax-only", f"-I{include}", *flags, str(source)]
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C"}  # messages in English
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    return done.returncode == 0, done.stderr


def flaw(compiler, include, source):
    """Why this case does not hold, or None."""
    expected = re.search(r"^// error: (.+)$", source.read_text(), re.MULTILINE)
    if not expected:
        return "has no line '// error: REGEX' that says how it must fail"
    good, said = compiles(compiler, include, source)
    if not good:
        return f"must compile when WRONG is not defined:\n{said}"
    good, said = compiles(compiler, include, source, "-DWRONG")
    if good:
        return "compiles, and must not"
    if not any(re.search(expected[1], line) for line in said.splitlines() if re.search("(error|note): ", line)):
        return f"fails, but not with an error that matches {expected[1]!r}:\n{said}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--include", required=True)
    arguments = parser.parse_args()
    cases = sorted(pathlib.Path(__file__).parent.glob("*.cc"))
    if not cases:
        sys.exit("compile_fail: no cases found")
    failed = 0
    for case in cases:
        problem = flaw(arguments.compiler, arguments.include, case)
        failed += problem is not None
        print(f"{case.name}: {problem or 'ok'}")
    sys.exit(failed != 0)


if __name__ == "__main__":
    main()
