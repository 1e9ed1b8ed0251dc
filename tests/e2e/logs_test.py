"""What a real `weir serve` logs and counts for its operators."""

import json
import os
import signal
import tempfile
import unittest
import urllib.request

from serving import Server

POLICY = """
listen:
  - {address: "127.0.0.1:0", speak: http}
  - {address: "127.0.0.1:0", speak: admin}
threads: 1
limits:
  per-key: {key: apikey, burst: 2, count: 2, period: 1h}
  orders: {burst: 5, count: 5, period: 1h}
routes:
  - {name: all, match: {path: "/**"}, limits: [per-key]}
"""


class Logs(unittest.TestCase):
    def serve(self, more=""):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.server = Server(self, POLICY + more, self.folder.name)
        return self.server

    def until(self, text):
        """The lines up to the first that has the text."""
        lines = []
        while line := self.server.process.stderr.readline():
            lines.append(line.rstrip())
            if text in line:
                return lines
        raise AssertionError(f"the server ended and never said {text!r}: {lines}")

    def admin(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.server.ports['admin']}{path}", data=data,
                                         headers={"Content-Type": "application/json"} if data else {}, method=method)
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.read().decode()

    def test_the_start_names_version_file_limits_routes_and_store(self):
        server = self.serve()
        line = next(line for line in server.said.splitlines() if "weir started:" in line)
        self.assertRegex(line, r"info weir started: version=\S+ config=\S+\.yaml limits=2 routes=1 store=memory$")

    def test_a_reload_says_what_it_changed(self):
        server = self.serve()
        path = next(word for word in server.said.split() if word.startswith("config="))[len("config="):]
        with open(path + ".new", "w") as file:
            file.write(POLICY.replace("burst: 5, count: 5", "burst: 9, count: 9"))
        os.replace(path + ".new", path)
        lines = self.until("info reloaded")
        self.assertIn("reload changed limit orders: 5 per 1h, burst 5; id text -> 9 per 1h, burst 9", lines[-2])
        text = self.admin("GET", "/metrics")
        self.assertIn("weir_config_last_reload_successful 1", text)

    def test_denials_bad_requests_and_blocks_are_logged_without_the_key(self):
        self.serve("log: {level: debug}\naccess: {block: {after: 2, within: 1m, for: 10m}}\n")
        asked = {"request": {"ip": "203.0.113.9", "method": "GET", "path": "/", "headers": {"x-api-key": "sk_live_4242424242"}}}
        for _ in range(4):
            self.server.post("/v1/check", asked)
        lines = self.until("client blocked:")
        denied = next(line for line in lines if "request denied:" in line)
        self.assertRegex(denied, r"debug request denied: client=apikey:sk_l…#[0-9a-f]{12} limit=per-key route=all ")
        self.assertRegex(lines[-1], r"warn client blocked: client=apikey:sk_l…#[0-9a-f]{12} limit=per-key denials=2 ")
        self.assertNotIn("sk_live", "".join(lines))
        self.server.post("/v1/check", {"limit": "nope", "id": "7"})
        self.assertRegex(self.until("bad request:")[-1], r"debug bad request: client=127\.0\.0\.1 error=unknown limit")
        self.assertIn('weir_blocks_total{limit="per-key"} 1', self.admin("GET", "/metrics"))

    def test_audit_records_are_fields_of_json_lines(self):
        self.serve("log: {format: json}\n")
        self.admin("PUT", "/ratelimit/adjust/orders/7", {"burst": 50})
        line = json.loads(self.until('"audit"')[-1])
        self.assertEqual((line["message"], line["level"], line["who"], line["action"], line["target"]),
                         ("audit", "info", "127.0.0.1", "adjust", "orders:7"))
        self.assertIsNone(line["before"])
        self.assertEqual(line["after"]["burst"], 50)

    def test_the_first_eviction_is_logged_once(self):
        self.serve("memory: {max_buckets: 64}\n")
        for i in range(2000):
            self.server.post("/v1/check", {"limit": "orders", "id": str(i)})
        self.assertIn("warn table full", self.until("table full")[-1])
        self.server.process.send_signal(signal.SIGTERM)
        self.assertNotIn("table full", "".join(self.until("stopped")))

    def test_every_limit_and_the_process_are_in_the_metrics_from_the_start(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.serve(f"state: {{snapshot: {folder.name}/snapshot}}\n")
        text = self.admin("GET", "/metrics")
        for series in ['weir_rate_limit_requests_total{limit="orders",limiter_type="",status="denied"} 0',
                       'weir_blocks_total{limit="orders"} 0', "weir_snapshot_failures_total 0",
                       "weir_snapshot_age_seconds ", "process_resident_memory_bytes ", "process_open_fds ",
                       "process_cpu_seconds_total ", "weir_config_last_reload_timestamp_seconds ",
                       "weir_build_info{version="]:
            self.assertIn("\n" + series, text)


if __name__ == "__main__":
    unittest.main()
