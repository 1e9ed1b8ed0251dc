"""Clients that pipeline as many questions as they can, and one that asks one at a time beside them."""

import contextlib
import multiprocessing
import selectors
import socket
import time

ALLOWED, OVERLOADED = b"*5\r\n:1\r\n", b"-ERR overloaded\r\n"


def command(*words):
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in map(str.encode, words))


class Flooder:
    """One connection that keeps `depth` questions without an answer, each about a bucket that never denies."""

    BLOCK = 16

    def __init__(self, port, name, depth):
        self.depth = depth
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.socket.setblocking(False)
        self.block = b"".join(command("WEIR.CHECK", "flood", f"{name}-{i}") for i in range(self.BLOCK))
        self.unsent = b""
        self.unanswered = 0
        self.tail = b""
        self.counts = {ALLOWED: 0, OVERLOADED: 0, b"-": 0}

    def turn(self):
        with contextlib.suppress(BlockingIOError):
            data = self.socket.recv(1 << 18)
            if not data:
                raise ConnectionError("the server hung up")
            self.count(data)
        while self.unanswered + self.BLOCK <= self.depth and len(self.unsent) < 1 << 16:
            self.unsent += self.block
            self.unanswered += self.BLOCK
        with contextlib.suppress(BlockingIOError):
            while self.unsent:
                self.unsent = self.unsent[self.socket.send(self.unsent):]

    def count(self, data):
        data = self.tail + data
        end = data.rfind(b"\r\n") + 2
        # Up to the last answer that has begun: what comes behind it may be half of one.
        end = max(data.rfind(b"*5\r\n", 0, end), data.rfind(b"\r\n-", 0, end) + 2)
        whole, self.tail = data[:max(end, 0)], data[max(end, 0):]
        errors = whole.count(b"\r\n-") + whole.startswith(b"-")
        answers = whole.count(b"*5\r\n") + errors
        self.counts[ALLOWED] += whole.count(ALLOWED)
        self.counts[OVERLOADED] += whole.count(OVERLOADED)
        self.counts[b"-"] += errors
        self.unanswered -= answers


def run_flood(port, depths, stop, started, results):
    flooders = [Flooder(port, f"{port}-{i}", depth) for i, depth in enumerate(depths)]
    with selectors.DefaultSelector() as selector:
        for flooder in flooders:
            selector.register(flooder.socket, selectors.EVENT_READ, flooder)
            flooder.turn()
        started.set()
        while not stop.is_set():
            for key, _ in selector.select(0.1):
                key.data.turn()
    results.put([flooder.counts for flooder in flooders])
    for flooder in flooders:
        flooder.socket.close()


@contextlib.contextmanager
def flood(port, depths):
    """A process that floods meanwhile; yields a list that holds, afterwards, what each connection was answered."""
    context = multiprocessing.get_context("fork")
    stop, started, results = context.Event(), context.Event(), context.Queue()
    process = context.Process(target=run_flood, args=(port, depths, stop, started, results))
    process.start()
    found = []
    try:
        if not started.wait(60):
            raise AssertionError("the flood did not begin")
        yield found
    finally:
        stop.set()
        with contextlib.suppress(Exception):
            found += results.get(timeout=60)
        process.join(60)
        if process.is_alive():
            process.kill()


class Polite:
    """One question at a time; how long each took, and what came."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.times = []
        self.pings = []
        self.errors = []

    def close(self):
        self.socket.close()

    def ask(self, *words):
        """True: allowed."""
        begin = time.monotonic()
        self.socket.sendall(command(*words))
        answer = self.read()
        self.times.append(time.monotonic() - begin)
        return answer

    def ping(self):
        """How long the machine and the server take where no store is asked: what the other times are compared with."""
        begin = time.monotonic()
        self.socket.sendall(command("PING"))
        answer = b""
        while not answer.endswith(b"\r\n"):
            answer += self.socket.recv(4096)
        self.pings.append(time.monotonic() - begin)

    def read(self):
        answer = b""
        while not (answer.startswith(b"-") and answer.endswith(b"\r\n")) and answer.count(b"\r\n") < 6:
            answer += self.socket.recv(4096)
        if answer.startswith(b"-"):
            self.errors.append(answer)
        return answer.startswith(ALLOWED)

    @staticmethod
    def percentile(times, share):
        return sorted(times)[int((len(times) - 1) * share)]
