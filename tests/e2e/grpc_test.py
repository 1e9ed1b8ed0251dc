"""Calls of gRPC frame by frame: drain, keepalive, caps, deadlines and messages that come in pieces.

What a call ended with is read from the server's metrics; only bodies are read from the frames."""

import json
import os
import pathlib
import re
import signal
import time
import unittest

import http2_frames as h2
import rls
from redis_servers import Redis
from serving import Server

RULES = """
domain: edge
descriptors:
  - {key: ten, rate_limit: {unit: hour, requests_per_unit: 10}}
  - {key: much, rate_limit: {unit: hour, requests_per_unit: 1000000}}
"""
POLICY = """
listen:
  - {{address: "127.0.0.1:0", speak: [http, grpc]{listener}}}
  - {{address: "127.0.0.1:0", speak: admin}}
threads: 1
envoy: [rules.yaml]
{more}
"""
WATCH = b"/grpc.health.v1.Health/Watch"
SERVING, NOT_SERVING, SERVICE_UNKNOWN = (rls.prefixed(rls.field(1, status)) for status in (1, 2, 3))
STREAMS_MAX = 128
ENHANCE_YOUR_CALM, REFUSED_STREAM, CANCEL = 11, 7, 8
MUCH = rls.request([("much", "x")])


class GrpcTest(unittest.TestCase):
    def serve(self, more="", listener=""):
        return Server(self, POLICY.format(more=more, listener=listener), files={"rules.yaml": RULES})

    def serve_on_redis(self):
        """Questions wait for as long as Redis is paused."""
        self.redis = Redis(self)
        server = self.serve(f"store: redis\nredis: {{endpoints: ['127.0.0.1:{self.redis.port}'], timeout: 25s}}")
        server.wait_for_metric("weir_store_up 1\n")
        return server

    def connect(self, server):
        connection = h2.Connection(h2.connect(server.ports["http"]))
        self.addCleanup(connection.socket.close)
        return connection

    @staticmethod
    def sync(client, payload=b"received"):
        """Everything sent before has been read. Returns the frames that came meanwhile, but for credit."""
        client.send(h2.frame(h2.PING, 0, 0, payload))
        seen = []
        while (found := client.next()) != (h2.PING, h2.ACK, 0, payload):
            assert found is not None, "the connection ended"
            seen += [found] if found[0] != h2.WINDOW_UPDATE else []
        return seen

    @staticmethod
    def calls(server, code):
        found = re.search(rf'weir_grpc_requests_total{{method="ShouldRateLimit",code="{code}"}} (\d+)', server.get("admin", "/metrics"))
        return int(found[1]) if found else 0

    def assert_answers(self, client, stream):
        client.send(rls.call(stream, MUCH))
        self.assertEqual(rls.decision(client.body(stream))[0], rls.OK)

    def ends_without_a_message(self, client, stream):
        """Trailers only: one HEADERS frame."""
        kind, flags, _, _ = client.until(h2.HEADERS, stream)
        self.assertEqual((kind, flags & h2.END_STREAM), (h2.HEADERS, h2.END_STREAM))

    def test_a_drain_finishes_calls_in_flight_and_names_the_last_stream(self):
        server = self.serve_on_redis()
        client = self.connect(server)
        self.assert_answers(client, 1)
        self.redis.pause()
        client.send(rls.call(3, MUCH) + rls.call(5, MUCH))
        self.sync(client)
        server.process.send_signal(signal.SIGTERM)
        _, _, _, notice = client.until(h2.GOAWAY)
        self.assertEqual(notice[:8], b"\x7f\xff\xff\xff\0\0\0\0", "open no more streams")
        _, _, _, ping = client.until(h2.PING)
        client.send(rls.call(7, MUCH) + h2.frame(h2.PING, h2.ACK, 0, ping))  # was on its way
        _, _, _, final = client.until(h2.GOAWAY)
        self.assertEqual(final[:8], b"\0\0\0\7\0\0\0\0", "the last stream that is served")
        self.redis.resume()
        bodies = {3: b"", 5: b"", 7: b""}
        while (found := client.next()) is not None:
            if found[0] == h2.DATA:
                bodies[found[2]] += found[3]
        self.assertEqual([rls.decision(body)[0] for body in bodies.values()], [rls.OK] * 3)
        self.assertEqual(server.process.wait(timeout=30), 0)

    def test_a_connection_that_is_too_old_is_told_to_make_room_for_a_new_one(self):
        server = self.serve(listener=", max_connection_age: 1s, idle_timeout: 0s")
        client = self.connect(server)
        self.assert_answers(client, 1)
        _, _, _, notice = client.until(h2.GOAWAY)
        self.assertEqual(notice[:8], b"\x7f\xff\xff\xff\0\0\0\0", "open no more streams")
        _, _, _, ping = client.until(h2.PING)
        client.send(rls.call(3, MUCH) + h2.frame(h2.PING, h2.ACK, 0, ping))  # was on its way
        last, body = None, b""
        while (found := client.next()) is not None:
            last = found[3][:8] if found[0] == h2.GOAWAY else last
            body += found[3] if found[0] == h2.DATA else b""
        self.assertEqual((rls.decision(body)[0], last), (rls.OK, b"\0\0\0\3\0\0\0\0"))
        self.assert_answers(self.connect(server), 1)

    def test_a_watched_health_tells_that_the_drain_is_near(self):
        server = self.serve("drain_delay: 1h")
        self.addCleanup(server.process.kill)
        client = self.connect(server)
        client.send(rls.call(1, b"", path=WATCH) + rls.call(3, rls.field(1, b"other"), path=WATCH))
        self.assertEqual(client.until(h2.DATA, 1)[3], SERVING)
        self.assertEqual(client.until(h2.DATA, 3)[3], SERVICE_UNKNOWN)
        server.process.send_signal(signal.SIGTERM)
        self.assertEqual(client.until(h2.DATA, 1)[3], NOT_SERVING)
        client.send(rls.call(5, b"", path=b"/grpc.health.v1.Health/Check"))
        self.assertEqual(client.body(5), NOT_SERVING)

    def test_a_watched_health_does_not_hold_up_the_drain(self):
        server = self.serve("drain_timeout: 1h")
        self.addCleanup(server.process.kill)
        client = self.connect(server)
        client.send(rls.call(1, b"", path=WATCH))
        self.assertEqual(client.until(h2.DATA, 1)[3], SERVING)
        server.process.send_signal(signal.SIGTERM)
        seen = []
        while (found := client.next()) is not None:
            kind, flags, stream, payload = found
            seen.append((kind, flags, stream))
            if kind == h2.PING:
                client.send(h2.frame(h2.PING, h2.ACK, 0, payload))
        self.assertIn((h2.HEADERS, h2.END_STREAM | h2.END_HEADERS, 1), seen)
        self.assertEqual(server.process.wait(timeout=60), 0)

    def test_keepalive_pings_are_answered_also_while_a_call_waits(self):
        server = self.serve_on_redis()
        client = self.connect(server)
        for i in range(50):
            self.assertEqual(self.sync(client, b"idle%4d" % i), [])
        self.redis.pause()
        client.send(rls.call(1, MUCH))
        for i in range(50):
            self.assertEqual(self.sync(client, b"wait%4d" % i), [])
        self.redis.resume()
        self.assertEqual(rls.decision(client.body(1))[0], rls.OK)

    def test_streams_beyond_the_cap_are_refused_and_the_others_answered(self):
        server = self.serve_on_redis()
        self.redis.pause()
        client = self.connect(server)
        streams = [1 + 2 * i for i in range(STREAMS_MAX)]
        beyond = streams[-1] + 2
        # All at once, as a client does that has not heard of the cap yet.
        client.send(b"".join(rls.call(stream, MUCH) for stream in [*streams, beyond]))
        kind, _, stream, code = client.until(h2.RST_STREAM)
        self.assertEqual((kind, stream, int.from_bytes(code, "big")), (h2.RST_STREAM, beyond, REFUSED_STREAM))
        self.redis.resume()
        ended = set()
        while len(ended) < STREAMS_MAX:
            kind, flags, stream, _ = client.next()
            self.assertNotIn(kind, (h2.RST_STREAM, h2.GOAWAY))
            if flags & h2.END_STREAM and kind == h2.HEADERS:
                ended.add(stream)
        self.assertEqual(ended, set(streams))
        self.assert_answers(client, beyond + 2)

    def test_a_client_that_only_opens_and_resets_is_sent_away(self):
        server = self.serve()
        client = self.connect(server)
        try:
            for i in range(2000):
                client.send(rls.head(1 + 2 * i) + h2.frame(h2.RST_STREAM, 0, 1 + 2 * i, CANCEL.to_bytes(4, "big")))
        except OSError:
            pass  # it has hung up
        _, _, _, goaway = client.until(h2.GOAWAY)
        self.assertEqual(int.from_bytes(goaway[4:8], "big"), ENHANCE_YOUR_CALM)
        self.assert_answers(self.connect(server), 1)

    def test_a_call_ends_at_its_deadline_and_leaves_the_connection_alone(self):
        server = self.serve_on_redis()
        client = self.connect(server)
        self.redis.pause()
        client.send(rls.call(1, MUCH, [(b"grpc-timeout", b"20S")]) + rls.call(3, MUCH, [(b"grpc-timeout", b"20m")]))
        self.ends_without_a_message(client, 3)
        self.assertEqual(self.calls(server, "DEADLINE_EXCEEDED"), 1)
        self.redis.resume()
        self.assertEqual(rls.decision(client.body(1))[0], rls.OK)
        self.assert_answers(client, 5)

    def test_what_cannot_be_read_ends_the_call_and_not_the_connection(self):
        server = self.serve()
        client = self.connect(server)
        client.send(rls.call(1, MUCH, [(b"grpc-encoding", b"gzip")], compressed=True))
        self.ends_without_a_message(client, 1)
        self.assertEqual(self.calls(server, "UNIMPLEMENTED"), 1)
        client.send(rls.call(3, MUCH, [(b"grpc-encoding", b"gzip")]))  # announced, and this message is not compressed
        self.assertEqual(rls.decision(client.body(3))[0], rls.OK)
        client.send(rls.call(5, b"\xff\xff"))
        self.ends_without_a_message(client, 5)
        self.assertEqual(self.calls(server, "INTERNAL"), 1)
        client.send(rls.call(7, b"", path=b"/some.Service/Method"))
        self.ends_without_a_message(client, 7)
        # The prefix of a message one byte over the bound is enough.
        client.send(rls.head(9) + h2.frame(h2.DATA, 0, 9, b"\0" + ((256 << 10) + 1).to_bytes(4, "big")))
        self.ends_without_a_message(client, 9)
        self.assertEqual(self.calls(server, "RESOURCE_EXHAUSTED"), 1)
        self.assert_answers(client, 11)

    def test_a_message_in_frames_of_one_byte(self):
        server = self.serve()
        client = self.connect(server)
        body = rls.prefixed(rls.request([("ten", "x")], hits=3))
        client.send(rls.head(1) + b"".join(h2.frame(h2.DATA, 0, 1, bytes([byte])) for byte in body) + h2.frame(h2.DATA, h2.END_STREAM, 1))
        self.assertEqual(rls.decision(client.body(1)), (rls.OK, [(rls.OK, 7)]))

    def test_a_directory_of_rules_is_a_configmap(self):
        def rules(limit, domain="edge"):
            return f"domain: {domain}\ndescriptors: [{{key: ten, rate_limit: {{unit: hour, requests_per_unit: {limit}}}}}]\n"

        files = {"rules/..1/edge.yaml": rules(10), "rules/..2/edge.yaml": rules(11), "rules/notes.txt": "[", "rules/sub/x.yaml": "["}
        server = Server(self, POLICY.format(listener="", more="").replace("rules.yaml", "rules"), start=False, files=files)
        root = pathlib.Path(server.directory) / "rules"
        (root / "..data").symlink_to("..1")
        (root / "edge.yaml").symlink_to("..data/edge.yaml")
        server.start()

        def wait_for(limit, domain="edge"):
            request = {"domain": domain, "descriptors": [{"entries": [{"key": "ten", "value": "x"}]}]}
            while json.loads(server.post("/json", request)[2])["statuses"][0].get("currentLimit", {}).get("requestsPerUnit") != limit:
                time.sleep(0.01)

        wait_for(10)
        (root / "..data_tmp").symlink_to("..2")
        os.rename(root / "..data_tmp", root / "..data")
        wait_for(11)
        (root / "more.yml").write_text(rules(5, "more"))
        wait_for(5, "more")
        # One bad file keeps all of the old policy.
        (root / "bad.yaml").write_text("domain: bad\ndescriptors: [{ket: a}]\n")
        server.wait_for_metric('weir_config_reloads_total{result="failed"} 1\n')
        os.remove(root / "more.yml")
        server.wait_for_metric('weir_config_reloads_total{result="failed"} 2\n')
        wait_for(5, "more")
        os.remove(root / "bad.yaml")
        wait_for(None, "more")
        wait_for(11)

    def test_a_listener_with_a_token_asks_for_it(self):
        server = self.serve(listener=", token: 'a-token-of-the-listener'")
        client = self.connect(server)
        client.send(rls.call(1, MUCH))
        self.ends_without_a_message(client, 1)
        self.assertEqual(self.calls(server, "UNAUTHENTICATED"), 1)
        token = b"a-token-of-the-listener"
        for stream, field in ((3, (b"x-weir-token", token)), (5, (b"authorization", b"Bearer " + token))):
            client.send(rls.call(stream, MUCH, [field]))
            self.assertEqual(rls.decision(client.body(stream))[0], rls.OK)
        client.send(rls.call(7, b"", path=b"/grpc.health.v1.Health/Check"))
        self.assertEqual(client.body(7), rls.prefixed(rls.field(1, 1)), "health is for everybody")

    def test_without_redis_the_failure_policy_answers(self):
        for policy, code in (("passThrough", rls.OK), ("inMemoryFallback", rls.OK), ("failClosed", rls.OVER_LIMIT)):
            with self.subTest(policy):
                redis = Redis(self)
                server = self.serve(f"store: redis\nredis: {{endpoints: ['127.0.0.1:{redis.port}']}}\nfailure_policy: {policy}")
                server.wait_for_metric("weir_store_up 1\n")
                client = self.connect(server)
                self.assert_answers(client, 1)
                redis.kill()
                server.wait_for_metric("weir_store_up 0\n")
                client.send(rls.call(3, rls.request([("ten", "x")], [("much", "x")])))
                overall, statuses = rls.decision(client.body(3))
                self.assertEqual((overall, len(statuses)), (code, 2))
                self.assertEqual(self.calls(server, "OK"), 2)


if __name__ == "__main__":
    unittest.main()
