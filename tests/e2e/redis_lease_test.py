"""Leases on Redis: servers that hold tokens of a hot bucket ask Redis seldom, and together pass no more than the limit."""

import json
import random
import signal
import socket
import subprocess
import threading
import unittest

from redis_servers import Redis, until
from serving import Server

POLICY = """
listen:
  - {{address: "127.0.0.1:0", speak: resp}}
  - {{address: "127.0.0.1:0", speak: admin}}
threads: 2
store: redis
redis: {{endpoints: ["127.0.0.1:{port}"], timeout: 5s, mode: {mode}}}
limits:
  hot: {{burst: {burst}, count: 1, period: 30m, lease: {{tokens: 64, servers: 4}}}}
"""
CHECK = b"*3\r\n$10\r\nWEIR.CHECK\r\n$3\r\nhot\r\n$1\r\nx\r\n"


class Client(threading.Thread):
    """Checks so many at a time, again and again, and counts what passed."""

    def __init__(self, server, rounds, depth=1):
        super().__init__()
        self.connection = socket.create_connection(("127.0.0.1", server.ports["resp"]), timeout=30)
        self.rounds, self.depth = rounds, depth
        self.passed = self.answered = 0
        self.start()

    def run(self):
        try:
            with self.connection, self.connection.makefile("rb") as file:
                for _ in range(self.rounds):
                    self.connection.sendall(CHECK * self.depth)
                    for _ in range(self.depth):
                        if not file.readline():
                            return
                        allowed, *_ = [int(file.readline()[1:]) for _ in range(5)]
                        self.passed += allowed
                        self.answered += 1
        except (OSError, ValueError):
            pass  # the server was killed


def commands(redis):
    for line in redis("INFO", "commandstats").splitlines():
        if line.startswith("cmdstat_evalsha:"):
            return int(line.split("calls=")[1].split(",")[0])
    return 0


class LeaseTest(unittest.TestCase):
    def start(self, redis, burst, mode="single"):
        server = Server(self, POLICY.format(port=redis.port, burst=burst, mode=mode))
        server.wait_for_metric("weir_store_up 1\n")
        return server

    def test_a_hot_bucket_costs_redis_a_tenth_of_the_commands_at_most(self):
        redis = Redis(self)
        server = self.start(redis, 4500)
        before = commands(redis)
        # Many at a time: a lease ends after 100 ms, and a busy machine may take longer from one answer to the next question.
        clients = [Client(server, 10, depth=40) for _ in range(8)]
        for client in clients:
            client.join()
        requests = sum(client.answered for client in clients)
        self.assertEqual(sum(client.passed for client in clients), requests)
        self.assertEqual(requests, 3200)
        self.assertLessEqual((commands(redis) - before) * 10, requests)
        metric = next(line for line in server.get("admin", "/metrics").splitlines() if line.startswith("weir_lease_hits_total"))
        self.assertGreater(int(metric.split()[1]), 0)
        # Operators see the bucket as its clients do: without what may be out on lease.
        row = json.loads(server.get("admin", "/ratelimit/clients"))["clients"][0]
        self.assertEqual(row["burst"], 4500 - 64 * 4)
        self.assertLessEqual(row["remaining"], row["burst"] - 3200 + 64)

    def test_servers_that_are_killed_pass_no_more_than_the_limit(self):
        redis = Redis(self)
        burst = 4000
        servers = [self.start(redis, burst) for _ in range(3)]
        clients = [Client(server, 400, depth=random.randint(1, 8)) for server in servers for _ in range(3)]
        clients[0].join(0.2)
        servers[0].end(signal.SIGKILL)
        again = self.start(redis, burst)
        clients += [Client(again, 400, depth=4) for _ in range(3)]
        for client in clients:
            client.join()
        # What is left, asked for one at a time. A killed server's lease is lost, and answers that it owed.
        left = Client(again, 600)
        left.join()
        passed = sum(client.passed for client in clients) + left.passed
        self.assertLessEqual(passed, burst)
        self.assertGreaterEqual(passed, burst - 4 * 64 - 64 - 3 * 8)

    def test_a_slot_that_moves_between_masters_takes_its_leases_along(self):
        nodes = [Redis(self, "--cluster-enabled", "yes") for _ in range(3)]
        subprocess.run(["redis-cli", "--cluster", "create", *(node.address for node in nodes), "--cluster-yes"],
                       check=True, capture_output=True, timeout=120)
        for node in nodes:
            until("the cluster is there", lambda n=node: "cluster_state:ok" in n("CLUSTER", "INFO"))
        servers = [self.start(nodes[0], 4000, mode="cluster") for _ in range(2)]
        clients = [Client(server, 500, depth=4) for server in servers for _ in range(2)]
        slot = nodes[0]("CLUSTER", "KEYSLOT", "weir:b:hot:x")
        until("the bucket is leased", lambda: any(node("CLUSTER", "COUNTKEYSINSLOT", slot) == 2 for node in nodes))
        source = next(node for node in nodes if node("CLUSTER", "COUNTKEYSINSLOT", slot) > 0)
        target = next(node for node in nodes if node is not source)
        target("CLUSTER", "SETSLOT", slot, "IMPORTING", source("CLUSTER", "MYID"))
        source("CLUSTER", "SETSLOT", slot, "MIGRATING", target("CLUSTER", "MYID"))
        while keys := source("CLUSTER", "GETKEYSINSLOT", slot, 10):
            for key in keys:
                source("MIGRATE", "127.0.0.1", target.port, key, 0, 5000)
        for node in (target, source, *nodes):
            node("CLUSTER", "SETSLOT", slot, "NODE", target("CLUSTER", "MYID"))
        for client in clients:
            client.join()
        self.assertEqual([client.answered for client in clients], [2000] * 4)
        passed = sum(client.passed for client in clients)
        self.assertLessEqual(passed, 4000)
        self.assertGreaterEqual(passed, 4000 - 4 * 64 - 2 * 64)


if __name__ == "__main__":
    unittest.main()
