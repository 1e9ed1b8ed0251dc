"""More than one Redis: a replicated master that moves, sentinels that say so, and a cluster that loses nodes and moves
slots under load."""

import collections
import json
import subprocess
import threading
import unittest
import urllib.request

from redis_failover_test import Failing
from redis_servers import Redis, free_port, until
from serving import Server


def replica_of(test, master):
    replica = Redis(test, "--replicaof", "127.0.0.1", str(master.port))
    until("the replica has caught up", lambda: replica("ROLE")[3] == "connected")
    return replica


class Replication(Failing):
    def test_follows_the_master_to_another_server(self):
        first = Redis(self)
        second = replica_of(self, first)
        server = self.serve(second.port, first.port, mode="replication")
        self.until_recovered(server)
        self.assert_healthy(server)
        who = self.fresh()
        self.assertEqual(self.ask(server, "open", who)[1]["remaining"], 2)
        until("the spend is replicated", lambda: second("DBSIZE") == first("DBSIZE"))
        second("REPLICAOF", "NO", "ONE")
        first("REPLICAOF", "127.0.0.1", second.port)
        self.until_recovered(server)
        self.assertEqual(self.ask(server, "open", who)[1]["remaining"], 1, "the new master knows of the spend")
        self.assert_healthy(server)
        second.kill()
        self.until_degraded(server)
        self.assert_policies(server)
        first("REPLICAOF", "NO", "ONE")
        self.until_recovered(server)
        self.assert_healthy(server)

    def test_finds_a_master_that_only_a_replica_names(self):
        master = Redis(self)
        server = self.serve(replica_of(self, master).port, mode="replication")
        self.until_recovered(server)
        self.assert_healthy(server)


WAITING = """
listen:
  - {{address: "127.0.0.1:0", speak: http}}
  - {{address: "127.0.0.1:0", speak: admin}}
threads: 1
store: redis
redis: {{endpoints: ["127.0.0.1:{port}"], timeout: {timeout}, wait_replicas: 1}}
limits:
  open: {{burst: 100, count: 1, period: 1h}}
"""


class WaitReplicas(Failing):
    def test_an_answer_waits_for_the_replica_and_stands_without_it(self):
        master = Redis(self)
        replica = replica_of(self, master)
        until("the master counts it", lambda: "state=online" in master("INFO", "replication"))
        server = Server(self, WAITING.format(port=master.port, timeout="2s"))
        server.wait_for_metric("weir_store_up 1\n")
        for left in range(99, 89, -1):
            self.assertEqual(self.ask(server, "open", "x")[1]["remaining"], left)
            self.assertEqual(replica("GET", "weir:b:open:x"), master("GET", "weir:b:open:x"), "it is there already")
        self.assertIn("cmdstat_wait:", master("INFO", "commandstats"))
        self.assertIn("\nweir_store_unreplicated_total 0\n", server.get("admin", "/metrics"))
        replica.pause()
        for left in range(89, 79, -1):
            status, answer = self.ask(server, "open", "x")
            self.assertEqual((status, answer["remaining"]), (200, left))
            self.assertNotIn("degraded", answer)
        self.assertNotIn("\nweir_store_unreplicated_total 0\n", server.get("admin", "/metrics"))
        replica.resume()

    def test_without_a_replica_reads_do_not_wait_and_changes_are_made(self):
        master = Redis(self)
        policy = WAITING.format(port=master.port, timeout="1s")
        server = Server(self, policy)
        server.wait_for_metric("weir_store_up 1\n")

        def admin(method, path, body=None):
            request = urllib.request.Request(f"http://127.0.0.1:{server.ports['admin']}{path}", method=method,
                                             data=json.dumps(body or {}).encode(), headers={"Content-Type": "application/json"})
            with urllib.request.urlopen(request, timeout=20) as answer:
                return json.loads(answer.read())
        for i in range(3):
            admin("POST", "/ratelimit/access/deny", {"limit": "open", "id": f"bad-{i}"})
            admin("PUT", "/ratelimit/adjust/open/x", {"burst": 50})
            self.ask(server, "open", f"good-{i}")
        self.assertEqual(admin("POST", "/ratelimit/reset/all?confirm=all"), {"reset": 3})
        self.assertIn("\nweir_store_up 1\n", server.get("admin", "/metrics"))
        self.assertNotIn("Redis unavailable", server.end()[1])
        second = Server(self, policy)
        self.assertNotIn("could not be asked", second.said)
        self.assertEqual(self.ask(second, "open", "bad-2")[0], 403, "known before the first request")


class Sentinels(Failing):
    def test_follow_a_failover(self):
        master = Redis(self)
        replica = replica_of(self, master)
        sentinels = []
        for _ in range(3):
            port = free_port()
            sentinels.append(Redis(self, "--sentinel", port=port, config=(
                f"port {port}\nbind 127.0.0.1\nsentinel monitor main 127.0.0.1 {master.port} 2\n"
                "sentinel down-after-milliseconds main 1000\nsentinel failover-timeout main 5000\n")))
        for sentinel in sentinels:
            until("sentinels know each other and the replica", lambda s=sentinel: known(s))
        # The first of them is not there: the others are asked.
        server = self.serve(free_port(), *(s.port for s in sentinels), mode="sentinel", more="master_name: main")
        self.until_recovered(server)
        self.assert_healthy(server)
        who = self.fresh()
        self.assertEqual(self.ask(server, "open", who)[1]["remaining"], 2)
        until("the spend is replicated", lambda: replica("DBSIZE") == master("DBSIZE"))
        master.kill()
        self.until_degraded(server)
        self.assert_policies(server)
        until("the replica is promoted", lambda: replica("ROLE")[0] == "master")
        self.until_recovered(server)
        self.assertEqual(self.ask(server, "open", who)[1]["remaining"], 1, "the new master knows of the spend")
        self.assert_healthy(server)
        self.assert_metrics(server, 1)


def known(sentinel):
    state = sentinel("SENTINEL", "MASTER", "main")
    fields = dict(zip(state[::2], state[1::2]))
    return fields["num-other-sentinels"] == "2" and fields["num-slaves"] == "1"


def cluster_of_six(test):
    return cluster_of(test, 6, "--cluster-replicas", "1")


def cluster_of(test, size, *options):
    nodes = [Redis(test, "--cluster-enabled", "yes", "--cluster-node-timeout", "1500") for _ in range(size)]
    subprocess.run(["redis-cli", "--cluster", "create", *(node.address for node in nodes), *options, "--cluster-yes"],
                   check=True, capture_output=True, timeout=120)
    for node in nodes:
        until("the cluster is there for every node", lambda n=node: "cluster_state:ok" in n("CLUSTER", "INFO"))
    return nodes


def masters_of(nodes):
    return [node for node in nodes if node.process.poll() is None and node("ROLE")[0] == "master"]


class Cluster(Failing):
    def test_spreads_buckets_and_survives_a_lost_node(self):
        nodes = cluster_of_six(self)
        server = self.serve(nodes[5].port, mode="cluster")
        self.until_recovered(server)
        self.assert_healthy(server)
        for who in range(40):
            self.assertEqual(self.ask(server, "open", f"spread-{who}")[1]["remaining"], 2)
        self.assertTrue(all(master("DBSIZE") > 5 for master in masters_of(nodes)), "every master has some of them")
        self.together(server)
        lost = masters_of(nodes)[0]
        lost.kill()
        answers = {"open": [], "closed": [], "local": []}
        for who in range(40):
            for limit, seen in answers.items():
                seen.append(self.ask(server, limit, f"spread-{who}"))
        self.assertEqual({"degraded" in answer for _, answer in answers["open"]}, {True, False}, "its slots get the policy, others go on")
        self.assertEqual({status for status, _ in answers["closed"]}, {200, 503})
        self.assertEqual({status for status, _ in answers["local"]}, {200})
        self.assertNotIn('weir_store_fallback_total{policy="inMemoryFallback"} 0\n', server.get("admin", "/metrics"))
        until("a replica takes over", lambda: len(masters_of(nodes)) == 3)
        until("all slots are served again", lambda: all(
            "degraded" not in self.ask(server, "open", f"again-{who}")[1] for who in range(40)))
        self.assert_healthy(server)

    def together(self, server):
        """All or none, though every bucket is on a server of its own: what was spent in vain is given back."""
        for turn in range(10):
            charges = [{"limit": "open", "id": f"{turn}-a"}, {"limit": "closed", "id": f"{turn}-b"},
                       {"limit": "teapot", "id": f"{turn}-c"}]
            self.assertEqual(server.post("/v1/check", {"limit": "closed", "id": f"{turn}-b", "cost": 2})[0], 200)
            self.assertEqual(server.post("/v1/check", {"charges": charges})[0], 200)
            self.assertEqual(server.post("/v1/check", {"charges": charges})[0], 429)
            for name, left in (("open", 2), ("closed", 0), ("teapot", 2)):
                which = dict(open="a", closed="b", teapot="c")[name]
                until("what was spent in vain is given back",
                      lambda n=name, i=f"{turn}-{which}", l=left: self.peek(server, n, i) == l)

    def peek(self, server, limit, who):
        return json.loads(server.post("/v1/peek", {"limit": limit, "id": who})[2])["remaining"]

    def test_never_admits_too_much_while_slots_move(self):
        nodes = cluster_of_six(self)
        server = self.serve(nodes[0].port, mode="cluster")
        self.until_recovered(server)
        admitted = collections.Counter()
        asked = collections.Counter()
        moved = threading.Event()

        def hammer(thread):
            turn = 0
            while not moved.is_set() or turn < 600:
                who = f"key-{turn % 200}"
                status, _ = self.ask(server, "closed", who)
                asked[(thread, who)] += 1
                if status == 200:
                    admitted[(thread, who)] += 1
                turn += 1
        threads = [threading.Thread(target=hammer, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        source, target = masters_of(nodes)[:2]
        try:
            subprocess.run(["redis-cli", "--cluster", "reshard", source.address, "--cluster-from",
                            source("CLUSTER", "MYID"), "--cluster-to", target("CLUSTER", "MYID"), "--cluster-slots", "2500",
                            "--cluster-yes"], check=True, capture_output=True, timeout=120)
        finally:
            moved.set()
            for thread in threads:
                thread.join()
        for key in range(200):
            total = sum(admitted[(thread, f"key-{key}")] for thread in range(4))
            self.assertLessEqual(total, 3, f"key-{key}")
        self.assertGreater(sum(admitted.values()), 500, "nearly everybody got what is theirs")


DESCRIPTORS = """
domain: edge
descriptors:
  - {key: gold, quota_mode: true, rate_limit: {unit: hour, requests_per_unit: 1}}
  - {key: silver, quota_mode: true, rate_limit: {unit: day, requests_per_unit: 2}}
  - {key: all, rate_limit: {unit: hour, requests_per_unit: 3}}
"""


class Descriptors(unittest.TestCase):
    """Envoy's descriptors, each on whatever server its slot is."""

    def ask(self, server, *keys, value, hits=None):
        """The status, and what every descriptor has left."""
        body = {"domain": "edge", "descriptors": [
            {"entries": [{"key": key, "value": value}], **({} if hits is None else {"hitsAddend": hits})} for key in keys]}
        status, _, answer = server.post("/json", body)
        return status, [one.get("limitRemaining", 0) for one in json.loads(answer)["statuses"]]

    def test_alternatives_on_different_servers_of_a_cluster(self):
        nodes = cluster_of(self, 3)
        server = Server(self, WAITING.replace(", wait_replicas: 1", ", mode: cluster").format(port=nodes[0].port, timeout="2s")
                        + "envoy: [rules.yaml]\n", files={"rules.yaml": DESCRIPTORS})
        server.wait_for_metric("weir_store_up 1\n")
        for turn in range(10):
            both = dict(value=f"a-{turn}")
            self.assertEqual(self.ask(server, "gold", "silver", **both), (200, [0, 1]))
            self.assertEqual(self.ask(server, "gold", "silver", **both), (200, [0, 0]), "gold is out, silver is not")
            self.assertEqual(self.ask(server, "gold", "silver", **both)[0], 429)
            # A denial by a third takes nothing from alternatives that have room.
            other = dict(value=f"b-{turn}")
            self.assertEqual(self.ask(server, "all", hits=3, **other)[0], 200)
            self.assertEqual(self.ask(server, "gold", "silver", "all", **other)[0], 429)
            until("what was taken in vain is given back",
                  lambda o=other: self.ask(server, "gold", "silver", hits=0, **o) == (200, [1, 2]))
        self.assertTrue(all(node("DBSIZE") > 2 for node in nodes), "every server has some of the buckets")


if __name__ == "__main__":
    unittest.main()
