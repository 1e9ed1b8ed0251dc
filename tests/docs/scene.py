"""Runs the commands of a page as a reader would: in one shell, in one directory, with servers in the background.

Pages use the ports that Weir has by default. Here each of them is another, free port, in commands, files and outputs."""

import os
import pathlib
import re
import shlex
import signal
import socket
import subprocess
import tempfile
import threading

SOURCE = pathlib.Path(os.environ["WEIR_SOURCE"])
WEIR = pathlib.Path(os.environ["WEIR"]).resolve()
# What the pages listen on: Weir (HTTP, TLS, RESP, admin, proxies), backends, Redis, a limits service over gRPC.
PORTS = (8080, 8081, 8443, 6380, 6390, 9090, 8000, 8001, 3000, 6379, 50052)
# For one command, on a busy machine: the first `go run` compiles Go's own library.
SECONDS = 120
# In the background, and the line that says that it is ready.
SERVERS = {"weir": "ready:", "redis-server": "Ready to accept connections", "python3 -m http.server": "Serving HTTP",
           "python3 examples/limits-service/limits_service.py": "ready:", "python3 limits_service.py": "ready:"}
# Where the shell would draw on a terminal, and here must not.
QUIET = """
curl() { command curl --silent --show-error "$@"; }
redis-cli() { command redis-cli --no-raw "$@"; }
export -f curl redis-cli
"""


def server_of(command):
    """The server that a command starts in the foreground, or None."""
    words = command.removesuffix("&").strip()
    if re.match(r"(?:\w+=\S* )*weir serve\b", words):
        return "weir"
    return next((name for name in SERVERS if name != "weir" and words.startswith(name)), None)


class Scene:
    """One page's directory, shell and servers; ended with the test."""

    def __init__(self, test, folder=None):
        """`folder`: of an example, whose page is read in it."""
        self.test = test
        directory = tempfile.TemporaryDirectory()
        test.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        self.reserve()
        for name in ("examples", "proto", "schema", "deploy", "docs"):
            (self.directory / name).symlink_to(SOURCE / name)
        for file in folder.iterdir() if folder else ():
            if file.suffix == ".py":  # it looks for the files beside it and above
                (self.directory / file.name).symlink_to(file)
            else:
                self.write(file.name, file.read_text(encoding="utf-8"))
        (self.directory / "build/release/weir/app").mkdir(parents=True)
        (self.directory / "build/release/weir/app/weir").symlink_to(WEIR)
        home = self.directory / ".home"
        home.mkdir()
        clean = {name: value for name, value in os.environ.items() if not name.startswith("WEIR") and name != "PYTHONPATH"}
        # Debian's python3 has Debian's modules; another may come first in PATH.
        self.environment = clean | {"PATH": f"{WEIR.parent}:/usr/bin:{clean['PATH']}", "HOME": str(home), "NO_COLOR": "1",
                                    "LC_ALL": "C.UTF-8", "GOTOOLCHAIN": "local"}
        self.shell = subprocess.Popen(["bash", "--norc"], cwd=self.directory, env=self.environment, stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        self.servers = {}
        test.addCleanup(self.end)
        self.run(QUIET)

    def reserve(self):
        """A free port for each of PORTS. It stays bound until a server needs it, so that nobody else takes it."""
        self.ports = {}
        self.reserved = {}
        for port in PORTS:
            holder = socket.socket()
            holder.bind(("127.0.0.1", 0))
            self.ports[port] = holder.getsockname()[1]
            self.reserved[port] = holder
            self.test.addCleanup(holder.close)
        self.numbers = re.compile(r"(?<![\w.])(" + "|".join(map(str, PORTS)) + r")(?![\w])")

    def moved(self, text):
        return self.numbers.sub(lambda found: str(self.ports[int(found[1])]), text)

    def write(self, name, text):
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.moved(text), encoding="utf-8")
        return path

    def run(self, command):
        """(output, exit status) of a command in the page's shell."""
        name = server_of(command)
        if name:
            return self.serve(name, self.moved(command.removesuffix("&").strip())), 0
        mark = "end-of-step-7f3a"
        script = f"eval {shlex.quote(self.moved(command))} </dev/null; printf '\\n{mark} %d\\n' $?\n"
        self.shell.stdin.write(script.encode())
        self.shell.stdin.flush()
        watchdog = threading.Timer(SECONDS, self.kill_shell)
        watchdog.start()
        try:
            output = ""
            while True:
                line = self.shell.stdout.readline().decode(errors="replace")
                if not line:
                    raise AssertionError(f"the shell ended, or the command took over {SECONDS} s: {command}\n{output}")
                if line.startswith(mark):
                    return output[:-1].replace("\r", ""), int(line.split()[1])
                output += line
        finally:
            watchdog.cancel()

    def serve(self, name, command):
        """Starts a server, waits until it is ready, and ends the one of that name that ran before."""
        self.stop(name)
        listens = command
        environment = {**self.environment, "PYTHONUNBUFFERED": "1"}  # a server in Python says at once that it is ready
        if name == "weir":
            config = re.search(r"[\w./-]+\.yaml", command)
            text = (self.directory / config[0]).read_text(encoding="utf-8") if config else ""
            listens += text
            if not re.search(r"^listen:", text, re.MULTILINE):
                # The default listeners.
                for word, port in (("HTTP", 8080), ("RESP", 6380), ("ADMIN", 9090)):
                    environment[f"WEIR_LISTEN_{word}"] = f"127.0.0.1:{self.ports[port]}"
                    listens += f" {self.ports[port]} "
        for port, number in self.ports.items():
            if re.search(rf"\b{number}\b", listens):
                self.reserved[port].close()
        process = subprocess.Popen(["bash", "-c", "exec " + command if "=" not in command.split()[0] else "exec env " + command],
                                   cwd=self.directory, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   stdin=subprocess.DEVNULL, start_new_session=True, text=True)
        self.servers[name] = process
        said = ""
        while SERVERS[name] not in said:
            line = process.stdout.readline()
            if not line:
                raise AssertionError(f"it ended before it was ready: {command}\n{said}")
            said += line
        # The rest is nobody's; it must not fill the pipe.
        threading.Thread(target=process.communicate, daemon=True).start()
        return said

    def kill_shell(self):
        os.killpg(self.shell.pid, signal.SIGKILL)

    def stop(self, name):
        process = self.servers.pop(name, None)
        if process is None:
            return
        process.terminate()
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def end(self):
        for name in list(self.servers):
            self.stop(name)
        self.shell.stdin.close()
        try:
            self.shell.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.kill_shell()
            self.shell.wait()
        self.shell.stdout.close()
