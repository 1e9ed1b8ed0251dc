"""Real redis-server processes on free ports, in a directory of their own, ended with the test."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time


def free_port():
    """A port that nobody has, nor the one 10,000 above it, where a cluster's bus will listen."""
    for _ in range(1000):
        with socket.socket() as probe, socket.socket() as bus:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
            if port > 55000:
                continue
            try:
                bus.bind(("127.0.0.1", port + 10000))
            except OSError:
                continue
            return port
    raise AssertionError("no free port")


def until(what, holds, seconds=60):
    """Waits until `holds` is true: for readiness, never for a measured time. A lost connection is one more look: a new
    master hangs up on its clients."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(ConnectionError):
            if holds():
                return
        time.sleep(0.02)
    raise AssertionError(f"not within {seconds} s: {what}")


def speak(port, *words, timeout=20):
    """One command; its reply as Python has it, an error as an exception."""
    with socket.create_connection(("127.0.0.1", port), timeout=timeout) as connection:
        parts = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        connection.sendall(b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts))
        with connection.makefile("rb") as file:
            return read_reply(file)


class RedisError(Exception):
    pass


def read_reply(file):
    line = file.readline()
    if not line.endswith(b"\r\n"):
        raise ConnectionError("the server hung up")
    kind, rest = line[:1], line[1:-2].decode()
    if kind == b"+":
        return rest
    if kind == b"-":
        raise RedisError(rest)
    if kind == b":":
        return int(rest)
    if int(rest) < 0:
        return None
    if kind == b"$":
        text = file.read(int(rest) + 2)
        return text[:-2].decode(errors="replace")
    return [read_reply(file) for _ in range(int(rest))]


class Redis:
    """One redis-server, or sentinel. It may be killed, paused, and started again on the same port."""

    def __init__(self, test, *options, config=None, port=None):
        self.port = port or free_port()
        self.directory = tempfile.mkdtemp(prefix="weir-redis-")
        test.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        self.options = list(options)
        self.config = None
        if config is not None:
            self.config = os.path.join(self.directory, "redis.conf")
            with open(self.config, "w", encoding="utf-8") as file:
                file.write(config)
        self.process = None
        test.addCleanup(self.kill)
        self.start()

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def start(self, loaded=True):
        """Until it answers; unless `loaded`, only until it says that it is loading."""
        command = ["redis-server"] + ([self.config] if self.config else [])
        command += ["--port", str(self.port), "--bind", "127.0.0.1", "--dir", self.directory, "--save", "",
                    "--appendonly", "no", "--repl-diskless-sync-delay", "0", *self.options]
        if self.config:  # a sentinel takes none of these
            command = ["redis-server", self.config, *self.options]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until(f"redis-server on {self.port} answers", lambda: self.answers(loaded))

    def answers(self, loaded=True):
        assert self.process.poll() is None, "redis-server ended by itself"
        try:
            speak(self.port, "PING")
            return True
        except RedisError as error:
            return "NOAUTH" in str(error) or (not loaded and "LOADING" in str(error))
        except OSError:
            return False

    def __call__(self, *words):
        return speak(self.port, *words)

    def kill(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait(timeout=30)

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)


class Proxy:
    """Stands between a server and Redis; cuts connections and delays replies when told."""

    def __init__(self, test, port):
        self.target = port
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.delay = 0
        self.cut_after = None  # bytes of a script's reply that still pass, then the connection is cut
        self.connections = set()
        self.ended = False
        test.addCleanup(self.end)
        threading.Thread(target=self.accept, daemon=True).start()

    def end(self):
        self.ended = True
        self.listener.close()
        self.cut()

    def cut(self):
        for connection in list(self.connections):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def accept(self):
        while not self.ended:
            try:
                client, _ = self.listener.accept()
                server = socket.create_connection(("127.0.0.1", self.target), timeout=20)
            except OSError:
                continue
            threading.Thread(target=self.carry, args=(client, server), daemon=True).start()

    def carry(self, client, server):
        with client, server:
            self.connections |= {client, server}
            back = threading.Thread(target=self.relay, args=(server, client, True), daemon=True)
            back.start()
            self.relay(client, server, False)
            back.join()
            self.connections -= {client, server}

    def relay(self, source, sink, replies):
        try:
            while piece := source.recv(65536):
                if replies and self.delay:
                    time.sleep(self.delay)
                # Of a script: what servers know together is asked for all the time, in between.
                if replies and self.cut_after is not None and piece.startswith((b"*", b":")):
                    sink.sendall(piece[:self.cut_after])
                    self.cut_after = None
                    break
                sink.sendall(piece)
        except OSError:
            pass
        for connection in (source, sink):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
