"""`weir simulate` on access logs: what a configuration would have done to real traffic."""

import csv
import gzip
import io
import json
import sys
import unittest

from program import BINARY, ProgramTest, weir
from terminal import Terminal

PER_IP = "limits: {per-ip: {key: ip, burst: %d, count: %d, period: 1s}}\n"


def combined(second, client="203.0.113.9", request="GET / HTTP/1.1"):
    return f'{client} - - [18/Nov/2026:05:{second // 60:02}:{second % 60:02} +0000] "{request}" 200 1 "-" "curl/8"\n'


class LogTest(ProgramTest):
    def simulate(self, config, *logs, code=0, stdin=b"", flags=()):
        """The report, and what was written to stderr."""
        path = self.file("weir.yaml", config)
        done = weir("simulate", "--config", path, *logs, "--output", "json", *flags, stdin=stdin)
        self.assertEqual(done.returncode, code, done.stderr)
        return json.loads(done.stdout), done.stderr

    def limit(self, report, name="per-ip"):
        return next(limit for limit in report["limits"] if limit["limit"] == name)


class Formats(LogTest):
    def test_all_formats_of_the_same_traffic_give_the_same_report(self):
        seen = []
        for form in ("envoy", "haproxy", "json"):
            log = self.file(form, weir("simulate", "--generate", "3000", "--format", form).stdout)
            report, _ = self.simulate(PER_IP % (10, 10), log)
            self.assertEqual(report["files"][0]["format"], form)
            self.assertEqual((report["lines"], report["skipped"]), (3000, 0))
            limit = self.limit(report)
            seen.append((limit["allowed"], limit["denied"], limit["clients"]))
        self.assertGreater(seen[0][1], 0)
        # A JSON log is finer than a millisecond, so a few decisions may differ.
        self.assertEqual(seen[0], seen[1])
        self.assertAlmostEqual(seen[0][1], seen[2][1], delta=5)

    def test_gzip_and_standard_input_are_read_like_files(self):
        text = "".join(combined(i // 5) for i in range(50))
        plain, _ = self.simulate(PER_IP % (2, 1), self.file("access.log", text))
        packed = self.directory / "access.log.gz"
        # Two members, as logs that were appended to have.
        packed.write_bytes(gzip.compress(text[:1000].encode()) + gzip.compress(text[1000:].encode()))
        unpacked, _ = self.simulate(PER_IP % (2, 1), packed)
        piped, _ = self.simulate(PER_IP % (2, 1), "-", stdin=text.encode())
        self.assertEqual(self.limit(plain), self.limit(unpacked))
        self.assertEqual(self.limit(plain), self.limit(piped))
        self.assertGreater(plain["denied"], 0)

    def test_a_truncated_gzip_file_is_an_error(self):
        packed = self.directory / "cut.gz"
        packed.write_bytes(gzip.compress("".join(combined(i) for i in range(3000)).encode())[:-20])
        done = weir("simulate", "--config", self.file("weir.yaml", PER_IP % (2, 1)), packed)
        self.assertEqual(done.returncode, 1)
        self.assertIn("ends early", done.stderr)

    def test_fields_of_a_json_log_are_mapped(self):
        config = "limits: {tenant: {key: header:x-tenant-id, rate: 1/s}}\n"
        log = self.file("a.json", '{"when":1,"who":{"tenant":"acme"}}\n{"when":1.1,"who":{"tenant":"acme"}}\n')
        report, _ = self.simulate(config, log, flags=("--field", "time=when", "--field", "header:x-tenant-id=who.tenant"))
        self.assertEqual(self.limit(report, "tenant")["denied_clients"][0]["identifier"], "tenant:acme")


class Lines(LogTest):
    def test_malformed_lines_are_counted_shown_and_skipped(self):
        log = self.file("access.log", combined(1) + "what is this\n\n" + combined(2) + "x" * 100_000 + "\n" + combined(3))
        report, stderr = self.simulate(PER_IP % (2, 1), log)
        self.assertEqual((report["lines"], report["skipped"], report["requests"]), (5, 2, 3))
        self.assertEqual([line["line"] for line in report["skipped_lines"]], [2, 5])
        self.assertIn("access.log:2: client", stderr)
        self.assertIn("longer than 65536 bytes", stderr)

    def test_lines_out_of_order_are_replayed_in_order_within_the_window(self):
        log = self.file("access.log", combined(100) + combined(41) + combined(100) + combined(10) + combined(101))
        report, stderr = self.simulate(PER_IP % (1, 1), log)
        self.assertEqual((report["late"], report["skipped"], report["requests"]), (1, 1, 4))
        self.assertIn("more than 1m late", stderr)
        wide, _ = self.simulate(PER_IP % (1, 1), log, flags=("--window", "2m"))
        self.assertEqual(wide["skipped"], 0)

    def test_lines_of_equal_time_are_spread_over_the_second(self):
        log = self.file("access.log", "".join(combined(i // 4) for i in range(40)))
        even, _ = self.simulate(PER_IP % (1, 4), log)
        self.assertEqual(even["denied"], 0)
        none, _ = self.simulate(PER_IP % (1, 4), log, flags=("--spread", "none"))
        self.assertEqual(none["denied"], 30)

    def test_rotated_logs_are_put_in_order(self):
        newer = self.file("access.log", "".join(combined(i) for i in range(200, 220)))
        older = self.file("access.log.1", "".join(combined(i) for i in range(0, 20)))
        report, _ = self.simulate(PER_IP % (1, 1), newer, older)
        self.assertEqual((report["skipped"], report["requests"]), (0, 40))


class Reports(LogTest):
    def test_limits_routes_and_clients_say_who_was_hit_and_when(self):
        config = """
limits: {per-ip: {key: ip, burst: 2, count: 1, period: 1s}}
routes:
  - {name: signin, match: {path: /signin, methods: [POST]}, limits: [per-ip]}
  - {name: rest, match: {path: "/**"}, limits: none}
"""
        text = "".join(combined(10, "203.0.113.9", "POST /signin HTTP/1.1") for _ in range(5)) + combined(11)
        report, _ = self.simulate(config, self.file("access.log", text), flags=("--spread", "none"))
        self.assertEqual(report["routes"], [{"route": "signin", "allowed": 2, "denied": 3}, {"route": "rest", "allowed": 1, "denied": 0}])
        limit = self.limit(report)
        self.assertEqual((limit["allowed"], limit["denied"], limit["clients"], limit["clients_denied"]), (2, 3, 1, 1))
        hit = limit["denied_clients"][0]
        self.assertEqual((hit["identifier"], hit["denied"]), ("ip:203.0.113.9", 3))
        self.assertEqual(hit["first_denied"], "2026-11-18T05:00:10Z")

    def test_what_the_log_lacks_is_named_and_not_judged(self):
        config = "limits: {per-ip: {key: ip, rate: 9/s}, tenant: {key: [header:x-tenant-id, path:1], rate: 1/s, missing: reject}}\n"
        report, stderr = self.simulate(config, self.file("access.log", combined(1) + combined(1)))
        self.assertIn("cannot judge limit tenant: the log has no header:x-tenant-id", stderr)
        self.assertEqual(report["unjudged"], [{"limit": "tenant", "lacks": ["header:x-tenant-id"]}])
        self.assertEqual((report["allowed"], report["refused"]), (2, 0))

    def test_compare_names_the_clients_that_are_newly_denied(self):
        text = "".join(combined(i, "203.0.113.7") + combined(i, "203.0.113.8") * (4 if i == 5 else 1) for i in range(10))
        log = self.file("access.log", text)
        stricter = self.file("stricter.yaml", PER_IP % (2, 1))
        report, _ = self.simulate(PER_IP % (9, 9), log, flags=("--compare", stricter, "--spread", "none"))
        self.assertEqual(report["denied"], 0)
        compared = report["compare"]
        self.assertEqual(compared["newly_denied_count"], 1)
        self.assertEqual([client["identifier"] for client in compared["newly_denied"]], ["ip:203.0.113.8"])
        self.assertEqual((compared["denied"], compared["no_longer_denied"]), (2, []))

    def test_advised_numbers_deny_at_most_what_was_asked_and_one_less_denies_more(self):
        log = self.file("access.log", weir("simulate", "--generate", "5000").stdout)
        for percent in ("0", "1"):
            flags = ("--deny-at-most", percent)
            report, _ = self.simulate(PER_IP % (8, 8), log, flags=flags)
            limit = self.limit(report)
            self.assertGreater(limit["denied"], 50, "or there is nothing to advise")
            most = 5000 * int(percent) // 100
            burst, rate = limit["advice"]["burst"], limit["advice"]["rate"]
            self.assertLessEqual(self.denied(log, burst["burst"], 8), most)
            self.assertGreater(self.denied(log, burst["burst"] - 1, 8), most)
            self.assertLessEqual(self.denied(log, 8, rate["count"]), most)
            self.assertGreater(self.denied(log, 8, rate["count"] - 1), most)

    def denied(self, log, burst, count):
        return self.simulate(PER_IP % (burst, count), log)[0]["denied"]

    def test_the_report_fits_a_terminal_of_80_columns_without_cutting_numbers(self):
        limits = "limits: {per-ip: {key: ip, burst: 40, count: 20, period: 1s}, login: {key: ip, rate: 10/minute}}\n"
        config = self.file("weir.yaml", limits)
        log = self.file("access.log", weir("simulate", "--generate", "5000").stdout)
        report = Terminal(self, [BINARY, "simulate", "--config", str(config), str(log)], columns=80, rows=100)
        self.assertEqual(report.wait(), 0)
        text = report.screen.text()
        for whole in ("20/s, burst 40", "10 per 1m, burst 10"):
            self.assertIn(whole, text)
        self.assertRegex(text, r"(?m)^ip:203\.0\.113\.66 .*  11-18 09:00:\d\d  11-18 09:00:\d\d$")

    def test_csv_has_a_row_per_limit(self):
        log = self.file("access.log", combined(1) * 5)
        done = weir("simulate", "--config", self.file("weir.yaml", PER_IP % (2, 1)), log, "--output", "csv")
        (row,) = csv.DictReader(io.StringIO(done.stdout))
        self.assertEqual((row["limit"], row["burst"], int(row["allowed"]) + int(row["denied"])), ("per-ip", "2", 5))


class Usage(ProgramTest):
    def test_mistakes_are_named(self):
        config = self.file("weir.yaml", PER_IP % (2, 1))
        log = self.file("access.log", combined(1))
        for arguments, sentence in (
            (["--config", config], "give access logs, --trace FILE or --generate N"),
            ([log], "missing --config"),
            (["--config", config, log, "--window", "soon"], '--window "soon" must be a duration'),
            (["--config", config, log, "--clients", "0"], '--clients "0" must be a whole number'),
            (["--config", config, log, "--deny-at-most", "100"], "must be a percentage"),
            (["--config", config, log, "--field", "x"], "must be FIELD=NAME"),
        ):
            done = weir("simulate", *arguments)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn(sentence, done.stderr)
        for path, sentence in ((self.directory / "no.log", "cannot open"), (self.file("odd.log", "what\n"), "no line is of a format")):
            done = weir("simulate", "--config", config, path)
            self.assertEqual(done.returncode, 1)
            self.assertIn(sentence, done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv, verbosity=2)
