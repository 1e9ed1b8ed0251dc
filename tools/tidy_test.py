#!/usr/bin/env python3
"""Each rule of tidy.py against a small tree that breaks it, and against one that does not."""

import contextlib
import io
import os
import tempfile
import unittest

import tidy

LAYERS = """
layer 0   base
layer 1   core wire
layer 3   store
layer 3.1 store/testing
layer 3.2 store/memory
layer 4   .
layer 7   app
library yaml-cpp/ core
library gtest/    tests
system unistd.h sys/
public weir/limiter.h
"""

# Breaks nothing. The tests add to it or replace a file of it.
CLEAN = {
    "tools/layers.txt": LAYERS,
    "weir/CMakeLists.txt": "set(folders base core wire store/memory store/testing app)\n",
    "weir/base/CMakeLists.txt": "weir_library(base)\nweir_test(base)\n",
    "weir/base/time.h": "#pragma once\n#include <chrono>\n",
    "weir/core/CMakeLists.txt": "weir_library(core DEPENDS base)\nweir_test(core)\n",
    "weir/core/limit.h": '#pragma once\n#include "weir/base/time.h"\n',
    "weir/core/limit.cc": '#include "weir/core/limit.h"\n#include <unistd.h>\n#include <yaml-cpp/yaml.h>\n',
    "weir/core/limit_test.cc": '#include <gtest/gtest.h>\n#include "weir/core/limit.h"\n',
}


class Tidy(unittest.TestCase):
    def problems(self, files):
        """What tidy prints about the clean tree with these files added, and its exit status."""
        with tempfile.TemporaryDirectory() as root:
            for path, text in {**CLEAN, **files}.items():
                full = os.path.join(root, path)
                os.makedirs(os.path.dirname(full), exist_ok=True)
                with open(full, "w", encoding="utf-8") as file:
                    file.write(text)
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                status = tidy.main([root])
        *lines, summary = output.getvalue().splitlines()
        self.assertTrue(summary.endswith(f"{len(lines)} problems"), summary)
        self.assertEqual(status, 1 if lines else 0)
        return lines

    def finds(self, files, *expected):
        """Exactly these problems, each given by how its line begins."""
        lines = self.problems(files)
        self.assertEqual(len(lines), len(expected), lines)
        for line, start in zip(lines, sorted(expected)):
            self.assertTrue(line.startswith(start), f"{line!r} does not start with {start!r}")

    def test_a_clean_tree_has_no_problems(self):
        self.finds({})

    def test_an_include_upwards_is_found(self):
        self.finds({"weir/base/time.h": '#pragma once\n#include "weir/core/limit.h"\n'},
                   "weir/base/time.h:2: base (layer 0) may not include core (layer 1)")

    def test_an_include_sideways_is_found(self):
        self.finds({"weir/wire/json.h": '#pragma once\n#include "weir/core/limit.h"\n',
                    "weir/wire/json.cc": '#include "weir/wire/json.h"\n', "weir/wire/CMakeLists.txt": ""},
                   "weir/wire/json.h:2: wire (layer 1) may not include core (layer 1)")

    def test_a_nested_folder_may_include_the_one_around_it_and_not_the_other_way(self):
        self.finds({"weir/store/store.h": '#pragma once\n#include "weir/store/memory/table.h"\n',
                    "weir/store/memory/table.h": '#pragma once\n#include "weir/store/store.h"\n'},
                   "weir/store/store.h:2: store (layer 3) may not include store/memory (layer 3.2)")

    def test_the_front_door_is_above_what_it_shows(self):
        self.finds({"weir/limiter.h": '#pragma once\n#include "weir/core/limit.h"\n'})
        self.finds({"weir/core/limit.h": '#pragma once\n#include "weir/limiter.h"\n#include "weir/base/time.h"\n',
                    "weir/limiter.h": "#pragma once\n"},
                   "weir/core/limit.h:2: core (layer 1) may not include . (layer 4)")

    def test_a_folder_without_a_layer_is_found(self):
        self.finds({"weir/extra/x.h": "#pragma once\n", "weir/core/limit_test.cc": '#include "weir/extra/x.h"\n'},
                   "weir/extra/x.h:1: folder 'extra' has no layer")

    def test_only_tests_include_testing_headers(self):
        kit = {"weir/store/testing/kit.h": "#pragma once\n#include <gtest/gtest.h>\n",
               "weir/store/memory/CMakeLists.txt": "weir_library(store/memory)\nweir_test(store/memory)\n"}
        self.finds({**kit, "weir/store/memory/a_test.cc": '#include "weir/store/testing/kit.h"\n'})
        self.finds({**kit, "weir/store/memory/a.cc": '#include "weir/store/testing/kit.h"\n'},
                   'weir/store/memory/a.cc:1: "weir/store/testing/kit.h" is for tests only')

    def test_quotes_are_for_headers_that_exist_by_their_full_path(self):
        self.finds({"weir/core/limit.cc": '#include "weir/core/limit.h"\n#include "limit.h"\n'
                                          '#include "weir/core/gone.h"\n'},
                   'weir/core/limit.cc:2: "limit.h": quotes', 'weir/core/limit.cc:3: "weir/core/gone.h" does not exist')

    def test_a_library_outside_its_folder_is_found(self):
        self.finds({"weir/base/a.cc": "#include <yaml-cpp/yaml.h>\n"},
                   "weir/base/a.cc:1: <yaml-cpp/yaml.h> may be used in")

    def test_a_library_in_a_header_is_found_even_in_its_folder(self):
        self.finds({"weir/core/limit.h": '#pragma once\n#include "weir/base/time.h"\n#include <yaml-cpp/yaml.h>\n'},
                   "weir/core/limit.h:3: <yaml-cpp/yaml.h>: a third-party library may not show in a header")

    def test_the_test_library_outside_tests_is_found(self):
        self.finds({"weir/base/a.cc": "#include <gtest/gtest.h>\n"},
                   "weir/base/a.cc:1: <gtest/gtest.h> may be used in tests")

    def test_an_unknown_library_is_found(self):
        self.finds({"weir/base/a.cc": "#include <sys/mman.h>\n#include <fmt/core.h>\n"},
                   "weir/base/a.cc:2: <fmt/core.h>: not standard")

    def test_iostream_is_for_the_command_line(self):
        self.finds({"weir/base/a.cc": "#include <iostream>\n", "weir/app/main.cc": "#include <iostream>\n",
                    "weir/app/CMakeLists.txt": ""},
                   "weir/base/a.cc:1: <iostream>")

    def test_the_form_of_headers_is_checked(self):
        self.finds({"weir/core/limit.h": '#include "weir/base/time.h"\n#define MAX(a, b) a\n',
                    "weir/core/limit.cc": '#include <unistd.h>\n#include "weir/core/limit.h"\n'},
                   "weir/core/limit.cc:1: the first include", "weir/core/limit.h:1: a header without #pragma once",
                   "weir/core/limit.h:2: macro MAX")

    def test_long_files_and_lines_are_found_one_past_the_bound(self):
        self.finds({"weir/base/a.cc": "\n" * 600, "script/a": "#" * 120})
        self.finds({"weir/base/a.cc": "\n" * 601, "script/a": "#" * 121},
                   "script/a:1: 121 characters", "weir/base/a.cc:601: 601 lines")

    def test_long_functions_are_found_one_past_the_bound(self):
        self.finds({"weir/base/a.cc": "namespace a {\nint f(int x) {" + "\n" * 69 + "}\n}\n"})
        self.finds({"weir/base/a.cc": "namespace a {\nint f(int x) {" + "\n" * 70 + "}\n}\n"},
                   "weir/base/a.cc:2: a function of 71 lines (`int f(int x)`)")
        self.finds({"tools/a.py": "def f():\n" + "    pass\n" * 70}, "tools/a.py:1: a function of 71 lines (`f`)")

    def test_functions_are_told_from_other_braces(self):
        text = """
            namespace n {
            struct S : B<int> {
             public:
              S(int a) noexcept : a_{a}, b_(f({1, 2})) { if (a) { } }
              bool operator==(const S&) const = default;
              int get() const { return "}"[0] + '{'; }
            };
            constexpr int kTable[] = {1, 2, 3};
            const auto kLambda = [](int x) { return x; };
            template <class T>
            Result<T> make(T t = {}) {
              for (int i = 0; i < 3; ++i) { }
              auto f = [&](int) { return 1; };
            }
            enum class E { a, b };
            }"""
        found = [signature for signature, _, _ in tidy.functions(tidy.without_comments_and_strings(text))]
        self.assertEqual(len(found), 3, found)
        self.assertIn("S(int a)", found[0])
        self.assertIn("int get() const", found[1])
        self.assertIn("Result<T> make(T t = )", found[2])

    def test_a_parser_without_a_fuzzer_is_found(self):
        header = {"weir/core/limit.h": '#pragma once\n#include "weir/base/time.h"\n'
                                       "// parse() in a comment\nResult<Limit> parse(std::string_view text);\n"}
        self.finds(header, "weir/core/limit.h:4: parse() has no fuzzer")
        self.finds({**header, "weir/core/other_fuzz.cc": "\n"}, "weir/core/limit.h:4: parse() has no fuzzer")
        self.finds({**header, "weir/core/limit_fuzz.cc": '#include "weir/core/limit.h"\n'})

    def test_a_fuzzer_reaches_parsers_through_the_sources_of_its_folder(self):
        self.finds({"weir/core/part.h": "#pragma once\nint parse_part(std::string_view text);\n",
                    "weir/core/limit.cc": '#include "weir/core/limit.h"\n#include "weir/core/part.h"\n',
                    "weir/core/limit_fuzz.cc": '#include "weir/core/limit.h"\n'})

    def test_a_seam_and_a_call_need_no_fuzzer(self):
        self.finds({"weir/core/limit.h": '#pragma once\n#include "weir/base/time.h"\n'
                                         "virtual int receive(std::string_view bytes,\n   int& out) = 0;\n"
                                         "inline int f() { return parse(1); }\n"})

    def test_dead_files_are_found(self):
        self.finds({"weir/base/alone.h": "#pragma once\n", "weir/wire/a.cc": "\n", "weir/store/redis/a.cc": "\n",
                    "weir/core/CMakeLists.txt": "weir_library(core)\n", "weir/base/corpus/gone/1": "seed",
                    "tools/layers.txt": LAYERS + "layer 3.2 store/redis\n", "weir/store/redis/CMakeLists.txt": "\n"},
                   "weir/base/alone.h:1: nobody includes", "weir/base/corpus/gone/1:1: seeds of a fuzzer",
                   "weir/core/limit_test.cc:1: is never run",
                   "weir/store/redis/a.cc:1: is never built: weir/CMakeLists.txt",
                   "weir/wire/a.cc:1: is never built: its folder has no CMakeLists.txt")

    def test_leftover_markers_are_found(self):
        mark = "TO" + "DO"
        self.finds({"weir/base/a.cc": f"// {mark}(perf): prefetch\n// {mark}: later\n// {mark}(me): later\n"
                                      "// FIX" "ME\nauto zone = \"XX" "X\";\n"},
                   *(f"weir/base/a.cc:{line}: leftover" for line in (2, 3, 4)))

    def test_names_that_say_nothing_are_found(self):
        self.finds({"weir/base/a.cc": "class BucketManager;\nstruct Database;\nusing LimitInfo = int;\n"
                                      "// class XHelper\n",
                    "bench/utils/x.cc": "\n"},
                   "bench/utils/x.cc:1: a place name", "weir/base/a.cc:1: 'BucketManager'",
                   "weir/base/a.cc:3: 'LimitInfo'")

    def test_decisions_are_numbered_and_short(self):
        self.finds({"docs/decisions/0001-a.md": "line\n" * 40})
        self.finds({"docs/decisions/0001-a.md": "line\n" * 41, "docs/decisions/0001-b.md": "b\n",
                    "docs/decisions/notes.md": "c\n"},
                   "docs/decisions/0001-a.md:41: 41 lines", "docs/decisions/0001-b.md:1: number 0001 is taken",
                   "docs/decisions/notes.md:1: a decision's file")

    def test_links_lead_somewhere(self):
        self.finds({"README.md": "[a](weir/core/limit.h) [b](weir/core) [c](https://example.com) [d](#here)\n",
                    "docs/a.md": "[e](../README.md#top) [f](gone.md)\n"},
                   "docs/a.md:1: link to gone.md")

    def test_paths_of_a_workplace_are_found(self):
        self.finds({"README.md": "see /ho" "me/somebody/weir, https://example.com/work/x, a/work/b, <b>/wo" "rk/x\n"},
                   "README.md:1: an absolute path", "README.md:1: an absolute path")

    def test_files_that_are_not_text_are_left_alone(self):
        with tempfile.TemporaryDirectory() as root:
            with open(os.path.join(root, "picture.png"), "wb") as file:
                file.write(b"\xff\xfe\x00")
            self.assertEqual(tidy.Tree(root).paths, [])


if __name__ == "__main__":
    unittest.main()
