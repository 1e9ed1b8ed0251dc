"""The package works where it is installed: this build goes to a fresh prefix, and other people's programs are built
against that and nothing else.

- examples/embed with find_package(weir), and in one line with pkg-config;
- a C program with weir::shared and weir::weir, and with pkg-config;
- the shared library shows the C face and nothing else;
- with WEIR_LIBRARY_ONLY the source asks for no other package.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

C_PROJECT = """
cmake_minimum_required(VERSION 3.16)
project(c_program LANGUAGES C CXX)
find_package(weir REQUIRED)
add_executable(with_shared main.c)
target_link_libraries(with_shared PRIVATE weir::shared)
add_executable(with_archive main.c)
target_link_libraries(with_archive PRIVATE weir::weir)
set_target_properties(with_archive PROPERTIES LINKER_LANGUAGE CXX)
"""


def run(*command, **variables):
    """What the command printed; ends the test if it fails."""
    done = subprocess.run([str(word) for word in command], env={**os.environ, **variables}, text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        sys.exit(f"install: {' '.join(map(str, command))} failed:\n{done.stdout}")
    return done.stdout


class Package:
    """An installed package and how this build compiles."""

    def __init__(self, arguments, scratch):
        self.arguments, self.scratch, self.prefix = arguments, scratch, scratch / "prefix"
        self.source = pathlib.Path(arguments.source)
        run(arguments.cmake, "--install", arguments.build, "--prefix", self.prefix, "--component", "library")
        self.libraries = next(self.prefix.glob("**/libweir.a")).parent

    def configure_and_build(self, source, name):
        build = self.scratch / name
        run(self.arguments.cmake, "-G", "Ninja", "-S", source, "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}",
            f"-DCMAKE_CXX_COMPILER={self.arguments.cxx}", f"-DCMAKE_C_COMPILER={self.arguments.cc}",
            f"-DCMAKE_CXX_FLAGS={self.arguments.flags}", f"-DCMAKE_C_FLAGS={self.arguments.flags}")
        run(self.arguments.cmake, "--build", build)
        return build

    def compile_in_one_line(self, compiler, source, package, *more):
        search = str(self.libraries / "pkgconfig")
        flags = run("pkg-config", "--cflags", "--libs", package, PKG_CONFIG_PATH=search).split()
        program = self.scratch / f"one_line_{package}"
        run(compiler, *more, *self.arguments.flags.split(), source, *flags, "-o", program)
        return program


def check_headers(package):
    """Everything a header of ours includes is installed with it."""
    include = package.prefix / "include"
    for header in include.glob("weir/**/*.h"):
        for wanted in re.findall(r'^#include "(.+)"', header.read_text(), re.MULTILINE):
            if not (include / wanted).exists():
                sys.exit(f"install: {header.relative_to(include)} includes {wanted}, which is not installed")


def check_needs(package):
    """The library alone is configured where nothing else of what the program uses exists."""
    absent = ("GTest", "rapidcheck", "Python3", "OpenSSL", "yaml-cpp", "simdjson", "nlohmann_json", "CLI11")
    run(package.arguments.cmake, "-G", "Ninja", "-S", package.source, "-B", package.scratch / "alone", "-DWEIR_LIBRARY_ONLY=ON",
        f"-DCMAKE_CXX_COMPILER={package.arguments.cxx}", f"-DCMAKE_C_COMPILER={package.arguments.cc}",
        *(f"-DCMAKE_DISABLE_FIND_PACKAGE_{name}=ON" for name in absent))


def check_exports(package):
    listing = run("nm", "-D", "--defined-only", package.libraries / "libweir.so")
    strangers = [name for name in re.findall(r" \w (\S+)$", listing, re.MULTILINE) if not name.startswith("weir_")]
    if strangers:
        sys.exit(f"install: libweir.so shows {', '.join(strangers[:5])}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for option in ("--cmake", "--build", "--source", "--cxx", "--cc", "--flags"):
        parser.add_argument(option, required=True)
    with tempfile.TemporaryDirectory() as scratch:
        package = Package(parser.parse_args(), pathlib.Path(scratch))
        check_headers(package)
        check_needs(package)
        check_exports(package)
        embed = package.source / "examples/embed"
        print(run(package.configure_and_build(embed, "embed") / "sign_in"))
        run(package.compile_in_one_line(package.arguments.cxx, embed / "main.cc", "weir", "-std=c++20"))

        c_project = package.scratch / "c"
        c_project.mkdir()
        (c_project / "CMakeLists.txt").write_text(C_PROJECT)
        main_c = pathlib.Path(__file__).parent / "main.c"
        (c_project / "main.c").write_bytes(main_c.read_bytes())
        built = package.configure_and_build(c_project, "c_build")
        run(built / "with_shared")
        run(built / "with_archive")
        one_line = package.compile_in_one_line(package.arguments.cc, main_c, "weir-c", "-std=c11", "-Wall", "-Werror")
        print(run(one_line, LD_LIBRARY_PATH=str(package.libraries)))


if __name__ == "__main__":
    main()
