"""What Envoy's clients see: the files of examples/envoy, Weir killed and restarted, and rules that change under load."""

import pathlib
import re
import threading
import time
import unittest

from envoy_case import EnvoyCase


class EnvoyTest(EnvoyCase):
    def test_passes_and_denies_with_headers(self):
        self.begin()
        first = self.get("/reports", x_tenant="acme")
        self.assertEqual(first.status, 200)
        self.assertEqual(first.getheader("x-ratelimit-remaining"), "5", "the tenant's bucket is the nearest to its limit")
        self.assertEqual(self.get("/reports", x_tenant="acme").status, 200)
        denied = self.get("/reports", x_tenant="acme")
        self.assertEqual(denied.status, 429)
        self.assertEqual(denied.getheader("x-envoy-ratelimited"), "true")
        self.assertEqual(denied.getheader("x-ratelimit-remaining"), "0")
        self.assertGreater(int(denied.getheader("retry-after")), 1000)
        self.assertEqual(self.get("/reports", x_tenant="other").status, 200)

    def test_a_denial_takes_nothing_from_the_other_descriptors(self):
        self.begin()
        for _ in range(2):
            self.assertEqual(self.get("/reports", x_tenant="acme").status, 200)
        for _ in range(30):
            self.assertEqual(self.get("/reports", x_tenant="acme").status, 429)
        left = int(self.get().getheader("x-ratelimit-remaining"))
        self.assertGreaterEqual(left, 17, "of 20: two passed, and this one")

    def test_a_shadow_rule_only_counts(self):
        self.begin()
        for _ in range(3):
            self.assertEqual(self.get(x_beta="yes").status, 200)

    def test_weir_is_killed_and_returns(self):
        for deny, status in ((False, 200), (True, 500)):
            with self.subTest(failure_mode_deny=deny):
                self.begin(lambda text: text.replace("failure_mode_deny: false", f"failure_mode_deny: {str(deny).lower()}"))
                self.assertEqual(self.get().status, 200)
                self.weir.process.kill()
                self.weir.process.wait()
                self.assertEqual(self.get().status, status)
                # The same port again: Envoy knows no other.
                config = pathlib.Path(self.weir.config)
                config.write_text(re.sub(r"127\.0\.0\.1:0\", speak: \[http", f"127.0.0.1:{self.weir.ports['http']}\", speak: [http",
                                         config.read_text()))
                self.weir.start()
                deadline = time.monotonic() + 30
                while self.get().getheader("x-ratelimit-limit") is None:
                    self.assertLess(time.monotonic(), deadline, "Envoy does not ask again")

    def test_rules_change_under_load(self):
        self.begin()
        stop = threading.Event()
        seen = set()

        def load():
            while not stop.is_set():
                seen.add(self.get(x_tenant="load").status)

        threads = [threading.Thread(target=load) for _ in range(4)]
        for thread in threads:
            thread.start()
        try:
            text = self.rules.read_text()
            self.rules.write_text(text.replace("requests_per_unit: 10", "requests_per_unit: 100000").replace(
                "requests_per_unit: 20", "requests_per_unit: 200000"))
            deadline = time.monotonic() + 30
            while not self.get(x_tenant="fresh").getheader("x-ratelimit-limit", "").startswith(("100000", "200000")):
                self.assertLess(time.monotonic(), deadline, "the new rules are not in force")
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        self.assertLessEqual(seen, {200, 429})


if __name__ == "__main__":
    unittest.main()
