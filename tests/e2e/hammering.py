"""Clients that ask as fast as they can and note what was admitted when, and the check that it was never too much.

A request was decided after it was sent and before its answer was read; both instants are the client's own, on the one
CLOCK_MONOTONIC of the machine. So a window of time holds for certain what was sent and answered inside of it. If that is
more than the limit allows, the limit was broken, however the rest is placed; nothing is reported that need not be true.
"""

import collections
import concurrent.futures
import contextlib
import glob
import multiprocessing
import os
import random
import re
import signal
import socket
import time

# One bucket that is asked for: `limit` and `id` as sent; tokens come back one per `interval` (ns), `burst` at most.
Bucket = collections.namedtuple("Bucket", "limit id burst interval costs")
Spend = collections.namedtuple("Spend", "begin end cost")

REPLY = re.compile(rb"\*5\r\n:([01])\r\n(?::-?\d+\r\n){4}|-([^\r]*)\r\n")
DEPTH = 8  # questions on their way on one connection


def most_promised(spends, interval):
    """The most, over all windows, of the tokens spent in it for certain times the interval, less its length: what the
    bucket must have held at once, in ns. It may be `burst * interval`, and no more.

    Only windows from a begin to an end matter. Ends are taken in their order; a tree over the begins knows for each how much
    began at or after it and has ended: a node holds the sum of its leaves, and the best of begin + what lies to the right.
    """
    ordered = sorted(spends)
    leaves = 1
    while leaves < len(ordered):
        leaves *= 2
    sums = [0] * (2 * leaves)
    best = [-(1 << 63)] * (2 * leaves)
    most = 0
    for leaf in sorted(range(len(ordered)), key=lambda i: ordered[i].end):
        spend = ordered[leaf]
        node = leaves + leaf
        sums[node] = spend.cost * interval
        best[node] = spend.begin + sums[node]
        while node > 1:
            node //= 2
            left, right = 2 * node, 2 * node + 1
            sums[node] = sums[left] + sums[right]
            best[node] = max(best[right], best[left] + sums[right])
        most = max(most, best[1] - spend.end)
    return most


class History:
    """What clients saw: spends by bucket, and how many were denied or not decided."""

    def __init__(self):
        self.spends = collections.defaultdict(list)
        self.denied = collections.Counter()
        self.undecided = 0  # an error instead of an answer
        self.lost = 0  # no answer: nobody was admitted
        # Redis reads its clock in whole microseconds.
        self.slack = 1000

    def add(self, other):
        for bucket, spends in other.spends.items():
            self.spends[bucket] += spends
        self.denied += other.denied
        self.undecided += other.undecided
        self.lost += other.lost

    def beyond(self, bucket):
        """Tokens beyond the limit in the worst window; zero or less: the limit was kept."""
        promised = most_promised(self.spends[bucket], bucket.interval)
        return (promised - self.slack) / bucket.interval - bucket.burst

    def violations(self):
        return {f"{bucket.limit}:{bucket.id}": beyond for bucket in self.spends if (beyond := self.beyond(bucket)) > 0}

    def admitted(self, bucket):
        return sum(spend.cost for spend in self.spends[bucket])


class Client:
    """One connection to one server, DEPTH questions at a time. A server that goes away is asked again when it is back."""

    def __init__(self, port, buckets, seed, rest):
        self.port = port
        self.rest = rest
        self.random = random.Random(seed)
        self.questions = []
        for bucket in buckets:
            for cost in bucket.costs:
                words = [b"WEIR.CHECK", bucket.limit.encode(), bucket.id.encode(), b"%d" % cost]
                command = b"*4\r\n" + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)
                self.questions.append((bucket, cost, command))
        self.history = History()
        self.connection = None

    def run(self, until_ns):
        while time.monotonic_ns() < until_ns:
            if self.rest and self.random.random() < 0.01:
                time.sleep(self.random.random() * self.rest)
            asked = self.random.choices(self.questions, k=DEPTH)
            answered = 0
            try:
                if self.connection is None:
                    self.connection = socket.create_connection(("127.0.0.1", self.port), timeout=20)
                for answered, _ in enumerate(self.ask(asked), 1):
                    pass
            except OSError:
                self.history.lost += len(asked) - answered
                self.hang_up()
                time.sleep(0.02)
        self.hang_up()
        return self.history

    def hang_up(self):
        if self.connection is not None:
            self.connection.close()
            self.connection = None

    def ask(self, asked):
        """Notes one answer after the other."""
        begin = time.monotonic_ns()
        self.connection.sendall(b"".join(command for _, _, command in asked))
        seen = b""
        at = 0
        for bucket, cost, _ in asked:
            while (reply := REPLY.match(seen, at)) is None:
                piece = self.connection.recv(65536)
                end = time.monotonic_ns()
                if not piece:
                    raise ConnectionError("the server hung up")
                seen += piece
            at = reply.end()
            if reply[1] == b"1":
                self.history.spends[bucket].append(Spend(begin, end, cost))
            elif reply[1] == b"0":
                self.history.denied[bucket] += 1
            else:
                self.history.undecided += 1
            yield


def skewed(seconds):
    """The environment of a program whose clocks are ahead by so much."""
    library = glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")[0]
    return {"LD_PRELOAD": library, "FAKETIME": f"{seconds:+d}s"}


def kill(server):
    server.end(signal.SIGKILL)
    # What libfaketime keeps for a program outlives one that is killed.
    for kind in ("faketime_shm", "sem.faketime_sem"):
        with contextlib.suppress(FileNotFoundError):
            os.remove(f"/dev/shm/{kind}_{server.process.pid}")


def wall_offset():
    """CLOCK_REALTIME less CLOCK_MONOTONIC. Redis's clock is the first, ours the second."""
    return min(time.time_ns() - time.monotonic_ns() for _ in range(20))


def run_client(port, buckets, until_ns, seed, rest):
    return Client(port, buckets, seed, rest).run(until_ns)


def hammer(ports, buckets, seconds, meanwhile=lambda ended: None, rest=0):
    """One process per port asks for `seconds`. `meanwhile` runs beside them and is told by a function when they ended. Each
    rests for up to `rest` seconds now and then, so that buckets fill up in between."""
    before = wall_offset()
    until_ns = time.monotonic_ns() + int(seconds * 1e9)
    whole = History()
    with concurrent.futures.ProcessPoolExecutor(len(ports), mp_context=multiprocessing.get_context("fork")) as pool:
        running = [pool.submit(run_client, port, buckets, until_ns, seed, rest) for seed, port in enumerate(ports)]
        meanwhile(lambda: time.monotonic_ns() >= until_ns)
        for client in running:
            whole.add(client.result())
    # Somebody set the machine's clock: Redis refilled by as much.
    whole.slack += abs(wall_offset() - before)
    return whole
