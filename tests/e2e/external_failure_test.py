"""The limits service is killed, or accepts and never answers; Redis goes away; both: limiting goes on, and all mends itself."""

import http.client
import json
import threading
import unittest

from external_test import OWN, Asking
from limits_service import LimitsService
from redis_servers import Redis, until
from serving import Server

POLICY = """
listen:
  - {{address: "127.0.0.1:0", speak: http}}
  - {{address: "127.0.0.1:0", speak: resp}}
  - {{address: "127.0.0.1:0", speak: admin}}
threads: 2
memory: {{max_buckets: 100000}}
{store}
limits:
  per-tenant:
    key: "header:X-Tenant-Id"
    burst: 7
    count: 7
    period: 1h
    external: {{enabled: true, http: {{url: "{url}"}}, timeout: {timeout}, cache_ttl: {cache_ttl}}}
"""


def policy(service, store="", timeout="500ms", cache_ttl="1s"):
    return POLICY.format(url=service.url, store=store, timeout=timeout, cache_ttl=cache_ttl)


def on_redis(redis, cache=None):
    text = f'store: redis\nredis: {{endpoints: ["{redis.address}"], timeout: 1s, fallback_buckets: 1000}}'
    return text + (f'\ncache_redis: {{endpoints: ["{cache.address}"], timeout: 1s}}' if cache else "")


class Load:
    """Clients that ask for tenants in turn, over connections they keep, until told to stop."""

    def __init__(self, server, tenants, clients=4):
        self.lock = threading.Lock()
        self.ended = False
        self.failures = []
        self.bursts = {}  # of the last answer, by tenant
        self.asked = 0
        self.threads = [threading.Thread(target=self.run, args=(server.ports["http"], tenants[i::clients])) for i in range(clients)]
        for thread in self.threads:
            thread.start()

    def run(self, port, tenants):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        while not self.ended:
            for tenant in tenants:
                body = json.dumps({"limit": "per-tenant", "id": tenant})
                try:
                    connection.request("POST", "/v1/check", body, {"Content-Type": "application/json"})
                    answer = connection.getresponse()
                    text = answer.read()
                except OSError as error:
                    with self.lock:
                        self.failures.append(repr(error))
                    connection.close()
                    continue
                with self.lock:
                    self.asked += 1
                    if answer.status not in (200, 429):
                        self.failures.append((answer.status, text))
                    else:
                        self.bursts[tenant] = json.loads(text)["burst"]
                if self.ended:
                    break
        connection.close()

    def rounds(self, count):
        """Waits until every client has asked for all of its tenants that often, more or less."""
        with self.lock:
            target = self.asked + count * sum(1 for _ in self.bursts)
        until("the load goes on", lambda: self.asked >= target)

    def end(self):
        self.ended = True
        for thread in self.threads:
            thread.join(timeout=60)


class ServiceFails(Asking):
    """On 200 keys: the service as a whole is given up before single keys are, so recovery takes a second, not 30."""

    def survive(self, break_it, mend_it):
        service = LimitsService(self)
        server = Server(self, policy(service))
        known = [f"known-{i}" for i in range(200)]
        load = Load(server, known)
        self.addCleanup(load.end)
        until("all are known", lambda: len(load.bursts) == 200 and set(load.bursts.values()) == {1000})
        break_it(service)
        until("answers expire", lambda: self.metric(server, 'weir_external_service_open{limit="per-tenant"}') == 1)
        load.rounds(3)
        self.assertEqual(set(load.bursts.values()), {1000}, "known tenants keep their numbers")
        self.assertGreater(self.metric(server, 'weir_external_cache_total{result="stale"}'), 0)
        cold = [self.burst(server, f"cold-{i}") for i in range(20)]
        self.assertEqual(set(cold), {OWN}, "others get the limit's own")
        mend_it(service)
        service.faults(answer={"burst": 555})
        until("all have new numbers", lambda: set(load.bursts.values()) == {555})
        until("the service works again", lambda: self.metric(server, 'weir_external_service_open{limit="per-tenant"}') == 0)
        self.assertEqual(self.burst(server, "cold-0"), 555)
        load.end()
        self.assertEqual(load.failures, [])

    def test_killed(self):
        self.survive(lambda service: service.kill(), lambda service: service.start())

    def test_accepts_and_never_answers(self):
        self.survive(lambda service: service.faults(hang=True), lambda service: service.faults())

    def test_an_answer_that_may_not_be_stale_gives_way_to_the_own_numbers(self):
        service = LimitsService(self)
        service.faults(headers={"Cache-Control": "max-age=1, no-store"})
        server = Server(self, policy(service))
        self.assertEqual(self.burst(server, "tenant"), 1000)
        service.kill()
        until("its own numbers count", lambda: self.burst(server, "tenant") == OWN)
        service.start()

    def test_a_key_that_fails_is_given_up_alone(self):
        service = LimitsService(self)
        server = Server(self, policy(service))
        service.faults(keys=["broken"], status=500)
        for i in range(30):
            self.assertEqual(self.burst(server, "broken"), OWN)
            self.assertEqual(self.burst(server, f"fine-{i}"), 1000)
        self.assertEqual(service.calls("broken"), 5)
        self.assertEqual(self.metric(server, "weir_breaker_open"), 1)


class Sharing(Asking):
    def test_the_second_server_reads_what_the_first_was_told(self):
        service, redis = LimitsService(self), Redis(self)
        one, two = (Server(self, policy(service, on_redis(redis), cache_ttl="10m")) for _ in range(2))
        self.assertEqual(self.burst(one, "free"), 3)
        until("it is on Redis", lambda: redis("EXISTS", "weir:extcache:per-tenant:free") == 1)
        self.assertEqual(redis("EXISTS", "weir:extcache:stale:per-tenant:free"), 1)
        self.assertEqual(self.check(two, "free")[1]["remaining"], 1)
        self.assertEqual(service.calls("free"), 1)
        self.assertEqual(self.metric(two, 'weir_external_cache_total{result="shared"}'), 1)
        _, body = self.admin(two, "GET", "/ratelimit/clients/per-tenant/free")
        self.assertEqual(json.loads(body)["external"]["source"], "shared")

    def test_a_purge_acts_on_all_servers(self):
        service, redis = LimitsService(self), Redis(self)
        one, two = (Server(self, policy(service, on_redis(redis), cache_ttl="10m")) for _ in range(2))
        self.assertEqual((self.burst(one, "tenant"), self.burst(two, "tenant")), (1000, 1000))
        service.faults(answer={"burst": 5})
        self.assertEqual((self.burst(one, "tenant"), self.burst(two, "tenant")), (1000, 1000))
        status, body = self.admin(one, "DELETE", "/ratelimit/external/per-tenant/tenant")
        self.assertEqual((status, json.loads(body)), (200, {"forgotten": True}))
        self.assertEqual(self.burst(one, "tenant"), 5)
        until("the other one heard of it", lambda: self.burst(two, "tenant") == 5)

    def test_a_stale_copy_of_another_server_helps(self):
        service, redis = LimitsService(self), Redis(self)
        one = Server(self, policy(service, on_redis(redis)))
        self.assertEqual(self.burst(one, "tenant"), 1000)
        until("the fresh copy is over", lambda: redis("EXISTS", "weir:extcache:per-tenant:tenant") == 0)
        service.kill()
        two = Server(self, policy(service, on_redis(redis)))
        self.assertEqual(self.burst(two, "tenant"), 1000)
        service.start()

    def test_a_second_redis_has_the_answers(self):
        service, redis, cache = LimitsService(self), Redis(self), Redis(self)
        one, two = (Server(self, policy(service, on_redis(redis, cache), cache_ttl="10m")) for _ in range(2))
        self.assertEqual(self.burst(one, "free"), 3)
        until("it is on that Redis", lambda: cache("EXISTS", "weir:extcache:per-tenant:free") == 1)
        self.assertEqual(redis("EXISTS", "weir:extcache:per-tenant:free"), 0)
        self.assertEqual(self.burst(two, "free"), 3)
        self.assertEqual(service.calls("free"), 1)

    def test_in_memory_with_a_redis_for_answers(self):
        service, cache = LimitsService(self), Redis(self)
        store = f'store: memory\ncache_redis: {{endpoints: ["{cache.address}"]}}'
        one, two = (Server(self, policy(service, store, cache_ttl="10m")) for _ in range(2))
        self.assertEqual(self.check(one, "free")[1]["remaining"], 2)
        until("it is on that Redis", lambda: cache("EXISTS", "weir:extcache:per-tenant:free") == 1)
        self.assertEqual(self.check(two, "free")[1]["remaining"], 2, "buckets are not shared")
        self.assertEqual(service.calls("free"), 1)


class RedisFails(Asking):
    def test_the_redis_for_answers_alone(self):
        service, redis, cache = LimitsService(self), Redis(self), Redis(self)
        server = Server(self, policy(service, on_redis(redis, cache)))
        self.assertEqual(self.burst(server, "free"), 3)
        until("answers are shared", lambda: self.metric(server, "weir_external_shared_up") == 1)
        cache.kill()
        until("they are not", lambda: self.metric(server, "weir_external_shared_up") == 0)
        for tenant in ("free", "acme", "another"):
            status, answer = self.check(server, tenant)
            self.assertEqual((status, "degraded" in answer), (200, False))
        self.assertEqual(self.burst(server, "acme"), 40)
        cache.start()
        until("answers are shared again", lambda: self.burst(server, "more") == 1000 and
              cache("EXISTS", "weir:extcache:per-tenant:more") == 1)
        _, log = server.end()
        self.assertEqual(log.count("answers not shared"), 1, log)

    def test_in_memory_without_the_redis_for_answers(self):
        service, cache = LimitsService(self), Redis(self)
        cache.kill()
        server = Server(self, policy(service, f'store: memory\ncache_redis: {{endpoints: ["{cache.address}"]}}'))
        for expected in (200, 200, 200, 429):
            self.assertEqual(self.check(server, "free")[0], expected)

    def test_redis_and_the_service(self):
        service, redis = LimitsService(self), Redis(self)
        server = Server(self, policy(service, on_redis(redis)))
        self.assertEqual(self.burst(server, "tenant"), 1000)
        redis.kill()
        service.kill()
        until("Redis is given up", lambda: self.check(server, "other")[1].get("degraded"))
        for _ in range(20):
            status, answer = self.check(server, "tenant")
            self.assertEqual((status, answer["allowed"]), (200, True))
        redis.start()
        service.start()
        until("all is well again", lambda: "degraded" not in self.check(server, "tenant")[1] and self.burst(server, "new") == 1000)

    def test_a_tenant_has_its_own_failure_policy_and_code(self):
        service, redis = LimitsService(self), Redis(self)
        server = Server(self, policy(service, on_redis(redis)))
        for tenant in ("open", "closed"):
            self.assertEqual(self.check(server, tenant)[0], 200)
        redis.kill()
        until("Redis is given up", lambda: self.check(server, "other")[1].get("degraded"))
        # The answers expire after a second and are asked for again: without Redis, too.
        before = service.calls("closed")
        until("the answer is a new one", lambda: self.check(server, "closed")[0] == 503 and service.calls("closed") > before)
        status, answer = self.check(server, "open")
        self.assertEqual((status, answer["degraded"]), (200, True))
        status, answer = self.check(server, "closed")
        self.assertEqual((status, answer["error"]), (503, "store_unavailable"))
        # And with the service gone as well, by the stale copy.
        service.kill()
        for _ in range(3):
            self.assertEqual((self.check(server, "open")[0], self.check(server, "closed")[0]), (200, 503))
        service.start()


if __name__ == "__main__":
    unittest.main()
