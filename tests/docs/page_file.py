"""Writes a file that stands on a page: page_file.py PAGE FILE OUTPUT. For programs that CMake builds."""

import pathlib
import sys

from pages import blocks_of

page, name, output = map(pathlib.Path, sys.argv[1:])
[block] = [block for block in blocks_of(page, page.name) if block.file == str(name)]
output.write_text(block.text, encoding="utf-8")
