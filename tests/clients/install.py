#!/usr/bin/env python3
"""Installs the npm packages of package-lock.json into a directory, unless exactly these are there already.

usage: install.py DIRECTORY

The registry is the one npm is configured to use; the lock file names none, only what each package must hash to.
"""

import filecmp
import os
import pathlib
import shutil
import subprocess
import sys

SOURCE = pathlib.Path(__file__).parent
FILES = ("package.json", "package-lock.json")


def main():
    directory = pathlib.Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    # Copied only after the packages were installed: a run that was interrupted begins anew.
    stamps = [(SOURCE / name, directory / f"installed-{name}") for name in FILES]
    if all(stamp.exists() and filecmp.cmp(given, stamp, shallow=False) for given, stamp in stamps):
        print("the packages are installed already")
        return
    for name in FILES:
        shutil.copy(SOURCE / name, directory / name)
    done = subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"], cwd=directory, check=False,
                          env={**os.environ, "NO_UPDATE_NOTIFIER": "1"})
    if done.returncode != 0:
        sys.exit("install.py: npm could not install the clients that the tests use")
    for given, stamp in stamps:
        shutil.copy(given, stamp)


if __name__ == "__main__":
    main()
