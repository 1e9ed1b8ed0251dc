#!/usr/bin/env python3
"""Checks that the committed schema accepts every good configuration and refuses what it can see is bad.

Usage: validate.py SCHEMA FOLDER [FOLDER...]
"""
import json
import pathlib
import re
import sys

import jsonschema
import yaml


class Loader(yaml.SafeLoader):
    """YAML 1.2's core types, as Weir reads them: `off` is a word, dates are texts."""


Loader.yaml_implicit_resolvers = {}
for tag, pattern, first in [
    ("bool", r"^(?:true|false)$", "tf"),
    ("int", r"^-?[0-9]+$", "-0123456789"),
    ("float", r"^-?[0-9]+\.[0-9]+$", "-0123456789"),
    ("null", r"^(?:~|null|Null|NULL|)$", ["~", "n", "N", ""]),
    ("merge", r"^<<$", "<"),
]:
    Loader.add_implicit_resolver("tag:yaml.org,2002:" + tag, re.compile(pattern), list(first))

# What a schema cannot know: numbers that contradict each other, ids, files, positions, YAML itself.
SEEN_BY_SCHEMA = re.compile(
    r"^bad_(unknown_key|type|count_(zero|negative)|burst_zero|period_(no_unit|negative|bad_unit)|rate_word"
    r"|mode|missing|failure|limit_failure|quota_unit|choice|listen_(incomplete|speak)|threads|route\.|size\.|lease_incomplete)"
)


def main() -> int:
    schema = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    failures = good = bad = 0
    for folder in sys.argv[2:]:
        for path in sorted(pathlib.Path(folder).glob("*.yaml")):
            if path.name.startswith("good_") or path.name == "weir.yaml":
                good += 1
                for error in validator.iter_errors(yaml.load(path.read_text(encoding="utf-8"), Loader)):
                    failures += 1
                    print(f"{path.name}: refused by the schema: {error.json_path}: {error.message}")
            elif SEEN_BY_SCHEMA.match(path.name):
                bad += 1
                if validator.is_valid(yaml.load(path.read_text(encoding="utf-8"), Loader)):
                    failures += 1
                    print(f"{path.name}: accepted by the schema")
    print(f"{good} good and {bad} bad files, {failures} failures")
    return 1 if failures or good < 15 or bad < 15 else 0


sys.exit(main())
