"""The Debian packages in a fresh Debian: install, start, answer, upgrade under load, purge. The box is a chroot that
debootstrap makes; it takes packages from wherever this machine does.

usage: package_test.py BUILD_DIRECTORY VERSION
"""

import glob
import http.client
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

BUILD = pathlib.Path(sys.argv[1])
VERSION = sys.argv[2]
NEXT_VERSION = VERSION + "+next"
SOURCE = pathlib.Path(os.environ["WEIR_SOURCE"])


def run(*command, **options):
    """What the command printed; the test fails if it does."""
    done = subprocess.run([str(word) for word in command], text=True, check=False, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, **options)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))} failed:\n{done.stdout}")
    return done.stdout


class Box:
    """A Debian 12 with nothing in it but what a test installs."""

    def __init__(self, test, base):
        self.test = test
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="weir-box-"))
        test.addCleanup(shutil.rmtree, self.root)
        run("tar", "-C", self.root, "-xf", base)
        for name in ("resolv.conf", "hosts"):
            shutil.copy(f"/etc/{name}", self.root / "etc" / name)
        shutil.rmtree(self.root / "etc/apt", ignore_errors=True)
        shutil.copytree("/etc/apt", self.root / "etc/apt", symlinks=True)
        # Nothing is started by an installation: there is no systemd in here.
        self("apt-get", "update", "-qq")

    def command(self, *words):
        # Nothing that is mounted here may be seen outside. In a chroot / is no mount, and its maker has to see to that.
        inside = 'mount --make-rprivate / 2>/dev/null; mount -t proc proc "$0/proc"; exec chroot "$0" ' \
                 '/usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive "$@"'
        return ["unshare", "--mount", "--propagation", "unchanged", "sh", "-c", inside, str(self.root), *map(str, words)]

    def __call__(self, *words):
        return run(*self.command(*words))

    def install(self, *packages):
        for package in packages:
            shutil.copy(package, self.root / "tmp")
        self("apt-get", "install", "-y", "-qq", "--no-install-recommends", "--allow-downgrades",
             *(f"/tmp/{package.name}" for package in packages))

    def serve(self, sockets):
        """The installed program behind sockets that systemd would have opened: name to socket."""
        descriptors = [one.fileno() for one in sockets.values()]
        moves = " ".join(f"{3 + i}<&{fd}" for i, fd in enumerate(descriptors))
        start = f'exec {moves}; export LISTEN_PID=$$; exec chroot "$0" /usr/bin/weir serve --config /etc/weir/weir.yaml'
        environment = {"PATH": os.environ["PATH"], "LISTEN_FDS": str(len(sockets)), "LISTEN_FDNAMES": ":".join(sockets)}
        process = subprocess.Popen(["bash", "-c", start, str(self.root)], pass_fds=descriptors, text=True,
                                   env=environment, stderr=subprocess.PIPE)
        for line in process.stderr:
            if "ready:" in line:
                reader = threading.Thread(target=process.stderr.read)
                reader.start()
                self.test.addCleanup(process.stderr.close)
                self.test.addCleanup(reader.join)
                self.test.addCleanup(process.kill)
                return process
        raise AssertionError("the installed server ended before it was ready")


def listening():
    one = socket.socket()
    one.bind(("127.0.0.1", 0))
    one.listen(4096)
    return one


def run_step(stage):
    """The RUN step of a stage of the Dockerfile."""
    text = (SOURCE / "deploy/Dockerfile").read_text()
    steps = re.split(r"^FROM ", text, flags=re.MULTILINE)[1:][stage]
    return re.search(r"^RUN ((?:.*\\\n)*.*)", steps, re.MULTILINE)[1].replace("\\\n", " ")


class Load(threading.Thread):
    """Asks on new connections, one after another, until it is told to stop."""

    def __init__(self, port):
        super().__init__()
        self.port, self.answered, self.failures, self.over = port, 0, [], threading.Event()

    def run(self):
        while not self.over.is_set():
            try:
                connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
                connection.request("GET", "/v1/authorize", headers={"Connection": "close"})
                status = connection.getresponse().status
                if status not in (200, 429):
                    self.failures.append(status)
                self.answered += 1
            except OSError as failure:
                self.failures.append(repr(failure))
            finally:
                connection.close()


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.base = BUILD / "debian-12.tar"
        if not cls.base.exists():
            with tempfile.TemporaryDirectory() as made:
                run("debootstrap", "--variant=minbase", "--include=ca-certificates", "bookworm", made)
                run("tar", "-C", made, "-cf", f"{cls.base}.part", ".")
            os.rename(f"{cls.base}.part", cls.base)
        cls.folder = tempfile.TemporaryDirectory()
        for version in (VERSION, NEXT_VERSION):
            run("cpack", "-B", cls.folder.name, "-D", f"CPACK_PACKAGE_VERSION={version}", cwd=BUILD)
        cls.packages = [pathlib.Path(one) for one in sorted(glob.glob(f"{cls.folder.name}/*.deb"))]

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def package(self, name, version):
        return next(one for one in self.packages if one.name.startswith(f"{name}_{version}_"))

    def test_lintian_finds_no_errors(self):
        for name in ("weir", "libweir-dev"):
            run("lintian", "--allow-root", "--fail-on", "error", self.package(name, VERSION))

    def test_what_it_depends_on_is_listed_on_the_install_page_and_in_the_image(self):
        depends = run("dpkg-deb", "--field", self.package("weir", VERSION), "Depends")
        names = set(re.findall(r"(?:^|, )([a-z0-9.+-]+)", depends)) - {"libc6", "libgcc-s1", "libstdc++6", "init-system-helpers"}
        self.assertIn("libssl3", names)
        for file in ("docs/install.md", "deploy/Dockerfile"):
            self.assertEqual({name for name in names if name not in (SOURCE / file).read_text()}, set(), file)

    def test_installs_starts_answers_upgrades_under_load_and_purges(self):
        box = Box(self, self.base)
        box.install(self.package("weir", VERSION), self.package("libweir-dev", VERSION))
        self.assertIn("libweir.so", box("ls", "-R", "/usr/lib"))
        self.assertIn(VERSION, box("weir", "version"))
        for folder in ("run/weir", "var/lib/weir"):  # systemd makes them
            (box.root / folder).mkdir()
        sockets = {name: listening() for name in ("admin", "http", "resp")}
        for one in sockets.values():
            self.addCleanup(one.close)
        port = sockets["http"].getsockname()[1]
        old = box.serve(sockets)

        load = Load(port)
        load.start()
        try:
            while load.answered < 50 and not load.failures:
                load.over.wait(0.01)
            box.install(self.package("weir", NEXT_VERSION))
            old.send_signal(signal.SIGTERM)
            self.assertEqual(old.wait(timeout=60), 0)
            new = box.serve(sockets)
            wanted = load.answered + 50
            while load.answered < wanted and not load.failures:
                load.over.wait(0.01)
        finally:
            load.over.set()
            load.join()
        self.assertEqual(load.failures, [])
        new.send_signal(signal.SIGTERM)
        self.assertEqual(new.wait(timeout=60), 0)

        (box.root / "etc/weir/weir.yaml").open("a").write("# changed by the administrator\n")
        box.install(self.package("weir", VERSION))
        self.assertIn("changed by the administrator", (box.root / "etc/weir/weir.yaml").read_text())
        box("apt-get", "purge", "-y", "-qq", "weir", "libweir-dev")
        for gone in ("etc/weir", "usr/bin/weir", "var/lib/weir", "run/weir", "lib/systemd/system/weir.service"):
            self.assertFalse((box.root / gone).exists(), gone)

    def test_the_server_s_packages_are_enough_to_configure_it(self):
        """script/bootstrap and CMake of the image's build stage, without the compilation, which takes minutes."""
        step, compilation = run_step(0).split("&& cmake --build")
        self.assertIn("script/bootstrap server", step)
        self.assertIn("cmake --install", compilation)
        box = Box(self, self.base)
        shutil.copytree(SOURCE, box.root / "src", symlinks=True, ignore=shutil.ignore_patterns("build", ".git", "node_modules"))
        box("sh", "-c", f"cd /src && {step}")

    def test_the_image_s_packages_are_enough_to_run_the_program(self):
        box = Box(self, self.base)
        box("sh", "-c", run_step(-1))
        run("cmake", "--install", BUILD, "--component", "server", "--prefix", "/usr",
            env={**os.environ, "DESTDIR": str(box.root)})
        self.assertIn(VERSION, box("weir", "version"))
        shutil.copy(SOURCE / "deploy/container.yaml", box.root / "etc/weir/weir.yaml")
        self.assertIn("", box("weir", "config", "check", "/etc/weir/weir.yaml"))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
