"""Runs one part of a suite: part.py MODULE PART PARTS runs every PARTS-th test of the module, from the PART-th on."""

import sys
import unittest


def tests_of(suite):
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from tests_of(item)
        else:
            yield item


def main():
    module, part, parts = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    tests = list(tests_of(unittest.defaultTestLoader.loadTestsFromName(module)))[part - 1::parts]
    if not tests:
        sys.exit(f"part.py: part {part} of {parts} of {module} has no tests")
    done = unittest.TextTestRunner().run(unittest.TestSuite(tests))
    sys.exit(not done.wasSuccessful())


if __name__ == "__main__":
    main()
