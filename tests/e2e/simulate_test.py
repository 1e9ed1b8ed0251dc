"""`weir simulate --trace`: histories replayed exactly."""

import json
import os
import subprocess
import sys
import unittest
from random import Random

from program import BINARY, SOURCE, ProgramTest, weir

TWENTY = "limits: {x: {burst: 20, count: 20, period: 1s}}\n"
MS = 1_000_000


def seconds(ns):
    """Nanoseconds as the shortest decimal of seconds, by integer arithmetic only."""
    whole, fraction = divmod(ns, 1_000_000_000)
    return str(whole) + (f".{fraction:09d}".rstrip("0") if fraction else "")


def line(t, limit="x", id="y", **more):
    """A line whose time is exact: t is in nanoseconds."""
    rest = json.dumps({"limit": limit, "id": id, **more})
    return f'{{"t": {seconds(t)}, {rest[1:]}'


def charges(t, *pairs, **more):
    rest = json.dumps({"charges": [{"limit": limit, "id": id} for limit, id in pairs], **more})
    return f'{{"t": {seconds(t)}, {rest[1:]}'


class WorkedExample(ProgramTest):
    def test_holds_to_the_nanosecond(self):
        """Burst 20, count 20, period 1s: the model's own example."""
        times = [0, 5 * MS]
        # 18 more between 5 and 49 ms, the last of them at 49 ms.
        times += [5 * MS + (44 * MS * i) // 18 for i in range(1, 19)]
        self.assertEqual(times[-1], 49 * MS)
        answers = self.replay(TWENTY, [line(t) for t in times] + [line(49 * MS)])
        for i, (t, answer) in enumerate(zip(times, answers)):
            tat = 50 * MS * (i + 1)
            self.assertEqual(
                list(answer.items()),
                [
                    ("t", seconds(t)),
                    ("limit", "x"),
                    ("id", "y"),
                    ("allowed", True),
                    ("remaining", str((1000 * MS - (tat - t)) // (50 * MS))),
                    ("retry_after", "0"),
                    ("reset_after", seconds(tat - t)),
                    ("tat", seconds(tat)),
                ],
            )
        self.assertEqual((answers[0]["remaining"], answers[0]["reset_after"]), ("19", "0.05"))
        self.assertEqual((answers[1]["remaining"], answers[1]["reset_after"]), ("18", "0.095"))
        self.assertEqual(answers[19]["remaining"], "0")
        denied = answers[20]
        self.assertEqual((denied["allowed"], denied["remaining"], denied["retry_after"]), (False, "0", "0.001"))
        self.assertEqual((denied["reset_after"], denied["tat"]), ("0.951", "1"))

    def test_then_one_request_every_interval_for_ever(self):
        spent = [line(49 * MS)] * 20
        after = []
        for i in range(1, 100):
            t = 49 * MS + 50 * MS * i
            after += [line(t - 1), line(t)]
        answers = self.replay(TWENTY, spent + after)[20:]
        self.assertEqual([a["allowed"] for a in answers], [False, True] * 99)
        self.assertEqual({a["retry_after"] for a in answers[::2]}, {"0.000000001"})

    def test_bytes_are_exactly_these(self):
        config = self.file("weir.yaml", TWENTY)
        done = weir("simulate", "--config", config, "--trace", "-", stdin=b'{"t": 0.005, "limit": "x", "id": "y"}')
        self.assertEqual(
            done.stdout,
            '{"t":0.005,"limit":"x","id":"y","allowed":true,"remaining":19,"retry_after":0,"reset_after":0.05,"tat":0.055}\n',
        )
        self.assertEqual((done.returncode, done.stderr), (0, ""))


class Operations(ProgramTest):
    def test_peek_takes_nothing(self):
        answers = self.replay(TWENTY, [line(0, cost=15), line(0, op="peek", cost=5), line(0, op="peek", cost=6)])
        self.assertEqual([a["allowed"] for a in answers], [True, True, False])
        self.assertEqual([a["remaining"] for a in answers], ["5", "5", "5"])
        self.assertEqual(answers[2]["retry_after"], "0.05")

    def test_cost_zero_is_a_peek(self):
        answers = self.replay(TWENTY, [line(0, cost=0), line(0, cost=20), line(0, cost=0)])
        self.assertEqual([(a["allowed"], a["remaining"]) for a in answers], [(True, "20"), (True, "0"), (True, "0")])

    def test_refund_and_reset_print_the_state_after(self):
        answers = self.replay(
            TWENTY,
            [line(0, cost=20), line(0, op="refund", cost=3), line(0, op="refund", cost=99), line(0, cost=7), line(0, op="reset")],
        )
        self.assertEqual([a["remaining"] for a in answers], ["0", "3", "20", "13", "20"])
        self.assertEqual(answers[1]["reset_after"], "0.85")
        self.assertTrue(all(a["allowed"] for a in answers))

    def test_a_cost_beyond_the_burst_never_passes(self):
        (answer,) = self.replay(TWENTY, [line(0, cost=21)])
        self.assertEqual((answer["allowed"], answer["retry_after"], answer["remaining"]), (False, "-1", "20"))

    def test_a_clock_that_runs_back_costs_at_most_one_window(self):
        answers = self.replay(TWENTY, [line(10**12, cost=20), line(0), line(10**9), line(10**9)])
        self.assertEqual([a["allowed"] for a in answers], [True, False, True, True])
        self.assertEqual(answers[1]["retry_after"], "0.05")

    def test_ids_and_limits_are_apart(self):
        config = "limits: {x: {rate: 1/s}, z: {rate: 1/s}}\n"
        answers = self.replay(config, [line(0), line(0), line(0, id="other"), line(0, limit="z")])
        self.assertEqual([a["allowed"] for a in answers], [True, False, True, True])


class SeveralCharges(ProgramTest):
    CONFIG = "limits: {a: {rate: 2/s}, b: {rate: 1/s}, s: {rate: 1/s, mode: shadow}}\n"

    def test_together_takes_all_or_none(self):
        both = charges(0, ("a", "1"), ("b", "1"))
        answers = self.replay(self.CONFIG, [both, both, line(0, "a", "1", op="peek")])
        self.assertEqual([(a["allowed"], a["limit"]) for a in answers[:2]], [(True, "b"), (False, "b")])
        self.assertEqual(answers[2]["remaining"], "1")

    def test_in_order_keeps_what_came_before_the_denial(self):
        forth = charges(0, ("a", "1"), ("b", "1"), charge="in-order")
        answers = self.replay(self.CONFIG, [forth, forth, line(0, "a", "1", op="peek")])
        self.assertEqual([(a["allowed"], a["limit"]) for a in answers[:2]], [(True, "b"), (False, "b")])
        self.assertEqual(answers[2]["remaining"], "0")

    def test_in_order_leaves_what_comes_after_the_denial(self):
        back = charges(0, ("b", "1"), ("a", "1"), charge="in-order")
        answers = self.replay(self.CONFIG, [back, back, line(0, "a", "1", op="peek")])
        self.assertEqual([a["allowed"] for a in answers[:2]], [True, False])
        self.assertEqual(answers[2]["remaining"], "1")

    def test_the_same_bucket_twice_is_charged_once_with_the_sum(self):
        twice = charges(0, ("a", "1"), ("a", "1"))
        answers = self.replay(self.CONFIG, [twice, twice])
        self.assertEqual([(a["allowed"], a["remaining"]) for a in answers], [(True, "0"), (False, "0")])
        self.assertEqual(answers[1]["retry_after"], "1")

    def test_a_shadow_limit_is_charged_and_never_denies(self):
        answers = self.replay(self.CONFIG, [line(0, "s"), line(0, "s"), charges(0, ("a", "1"), ("s", "y"))])
        self.assertEqual([a["allowed"] for a in answers], [True, True, True])
        self.assertEqual(answers[1]["retry_after"], "1")
        self.assertEqual(answers[2]["limit"], "a")

    def test_peek_answers_for_the_strictest_and_takes_nothing(self):
        look = charges(0, ("a", "1"), ("b", "1"), op="peek")
        answers = self.replay(self.CONFIG, [look, look])
        self.assertEqual([(a["allowed"], a["limit"], a["remaining"]) for a in answers], [(True, "b", "1")] * 2)


class Policies(ProgramTest):
    def test_overrides_decide(self):
        config = """
limits: {a: {rate: 1/s}}
overrides:
  a:vip: {burst: 3, count: 3, period: 1s}
  a:free: {unlimited: true}
  a:bad: {blocked: true}
"""
        answers = self.replay(config, [line(0, "a", id) for id in ("vip", "free", "bad", "else")])
        self.assertEqual([a["allowed"] for a in answers], [True, True, False, True])
        self.assertEqual([a["remaining"] for a in answers], ["2", "-1", "0", "0"])
        self.assertEqual((answers[2]["retry_after"], answers[2]["reset_after"], answers[2]["tat"]), ("-1", "-1", "-1"))
        self.assertEqual((answers[1]["retry_after"], answers[1]["reset_after"]), ("0", "0"))

    def test_prints_the_canonical_id(self):
        config = "limits: {a: {key: ip, rate: 1/s}}\naccess: {ipv6_prefix: 64}\n"
        (first, second) = self.replay(config, [line(0, "a", "2001:DB8:0::1"), line(0, "a", "2001:db8::2")])
        self.assertEqual(first["id"], second["id"])
        self.assertEqual([first["allowed"], second["allowed"]], [True, False])

    def test_a_quota_starts_anew_with_its_window(self):
        config = "limits: {a: {quota: 2/hour}}\n"
        hour = 3600 * 10**9
        answers = self.replay(config, [line(0, "a"), line(1, "a"), line(hour - 1, "a"), line(hour, "a")])
        self.assertEqual([a["allowed"] for a in answers], [True, True, False, True])
        self.assertEqual(answers[0]["reset_after"], "3600")
        self.assertEqual(answers[2]["retry_after"], "0.000000001")
        self.assertEqual(answers[0]["tat"], "3600")

    def test_of_numbers_and_quota_the_stricter_answers(self):
        config = "limits: {a: {rate: 2/s, quota: 3/day}}\n"
        answers = self.replay(config, [line(0, "a"), line(0, "a"), line(0, "a"), line(10**9, "a"), line(2 * 10**9, "a")])
        self.assertEqual([a["allowed"] for a in answers], [True, True, False, True, False])
        self.assertEqual(answers[2]["retry_after"], "0.5")
        self.assertEqual(answers[4]["retry_after"], seconds((86400 - 2) * 10**9))

    def test_a_schedule_follows_the_clock_of_the_trace(self):
        config = """
limits:
  a: {burst: 5, count: 5, period: 1s, schedule: [{days: mon-fri, hours: "09:00-18:00", count: 1, burst: 1}]}
"""
        # 1970-01-01 was a Thursday.
        morning = 9 * 3600 * 10**9
        answers = self.replay(config, [line(morning - 10**9, "a"), line(morning, "a")])
        self.assertEqual([a["remaining"] for a in answers], ["4", "0"])

    def test_examples_acme_decides(self):
        config = SOURCE / "examples" / "acme" / "weir.yaml"
        if not config.exists():
            self.skipTest("examples/acme is not here yet")
        trace = line(0, "NewOrdersPerAccount", "12345678").encode()
        done = weir("simulate", "--config", config, "--trace", "-", stdin=trace)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertTrue(json.loads(done.stdout)["allowed"])


class Model:
    """The model in plain integers, written from its description and sharing no code with the program."""

    LIMITS = {"fast": (5, 3, 10**9), "slow": (2, 1, 10**9), "wide": (40, 7, 10**9), "shade": (3, 2, 10**9)}
    SHADOW = {"shade"}

    def __init__(self):
        self.tat = {}
        self.written = {}
        self.last = self.since = 0

    def window(self, name):
        burst, count, period = self.LIMITS[name]
        return -(-period // count) * burst

    @classmethod
    def config(cls):
        limits = ", ".join(
            f"{name}: {{burst: {burst}, count: {count}, period: {period}ns{', mode: shadow' if name in cls.SHADOW else ''}}}"
            for name, (burst, count, period) in cls.LIMITS.items()
        )
        return f"limits: {{{limits}}}\n"

    def load(self, now, name, id):
        """The bucket's TAT, settled: one further ahead than a window counts as empty since the clock was set back."""
        bucket, window = (name, id), self.window(name)
        ahead = self.written.get(bucket, 0) - now
        if self.tat.get(bucket, 0) > now + window and not 0 < ahead <= window:
            self.tat[bucket] = self.since + window
            self.written[bucket] = now
        return self.tat.get(bucket, 0)

    def look(self, now, name, id, cost):
        """(allowed, remaining, retry_after, backlog, price), nothing taken."""
        burst, count, period = self.LIMITS[name]
        interval = -(-period // count)
        window = interval * burst
        backlog = min(max(self.load(now, name, id) - now, 0), window)
        price = interval * cost
        allowed = backlog + price <= window
        retry = 0 if allowed else -1 if cost > burst else backlog + price - window
        return allowed, (window - backlog) // interval, retry, backlog, price

    def spend(self, now, name, id, cost):
        allowed, remaining, retry, backlog, price = self.look(now, name, id, cost)
        if not allowed or cost == 0:
            return allowed, remaining, retry, backlog
        self.tat[name, id] = now + backlog + price
        self.written[name, id] = now
        return True, remaining - cost, 0, backlog + price

    def ask(self, now, op, order, asked):
        """(limit, id, allowed, remaining, retry_after, reset_after) of the strictest."""
        if now < self.last:
            self.since = now
        self.last = now
        merged = {}
        for name, id, cost in asked:
            merged[name, id] = merged.get((name, id), 0) + cost
        answers = []
        verdict = True
        if op == "spend" and order == "in-order" and any(
                cost > self.LIMITS[name][0] for (name, _), cost in merged.items() if name not in self.SHADOW):
            op = "peek"  # no wait helps: nothing is taken, though limits before it have room
        if op == "spend" and order == "together":
            verdict = all(self.look(now, n, i, c)[0] for (n, i), c in merged.items() if n not in self.SHADOW)
        for (name, id), cost in merged.items():
            enforced = name not in self.SHADOW
            if op == "reset":
                self.tat.pop((name, id), None)
                self.written.pop((name, id), None)
                answer = (True, self.LIMITS[name][0], 0, 0)
            elif op == "refund":
                _, _, _, _, price = self.look(now, name, id, cost)
                if self.tat.get((name, id), 0) > now:
                    self.tat[name, id] = max(self.tat[name, id] - price, now)
                    self.written[name, id] = max(self.written[name, id], now)
                _, remaining, _, backlog, _ = self.look(now, name, id, 0)
                answer = (True, remaining, 0, backlog)
            elif op == "spend" and (verdict or not enforced):
                answer = self.spend(now, name, id, cost)
            else:
                allowed, remaining, retry, backlog, _ = self.look(now, name, id, cost)
                answer = (allowed, remaining, retry, backlog)
            answers.append((name, id, *answer))
            if enforced and not answer[0]:
                verdict = False
                if order == "in-order":
                    break
        speaking = [a for a in answers if a[0] not in self.SHADOW] or answers
        wait = lambda a: float("inf") if a[4] == -1 else a[4]
        strictest = min(speaking, key=lambda a: (a[2], -wait(a), a[3]))
        return (*strictest[:2], verdict, *strictest[3:])


class AgainstTheModel(ProgramTest):
    def test_random_histories_agree_to_the_nanosecond(self):
        for seed in range(20):
            random = Random(seed)
            model = Model()
            now = 10**9 * random.randrange(2 * 10**9)
            lines, expected = [], []
            for _ in range(500):
                forth = [0, 1, random.randrange(10**9), random.randrange(10**10)]
                now = max(now + random.choice([*forth, -random.randrange(10**9), -random.randrange(10**10)]), 0)
                op = random.choices(["spend", "peek", "refund", "reset"], [12, 3, 2, 1])[0]
                order = random.choice(["together", "in-order"])
                asked = [
                    (random.choice(list(Model.LIMITS)), random.choice("xyz"), random.choices([0, 1, 2, 3, 6], [1, 9, 3, 2, 1])[0])
                    for _ in range(random.choice([1, 1, 2, 3, 5]))
                ]
                several = json.dumps([dict(zip(("limit", "id", "cost"), charge)) for charge in asked])
                lines.append(f'{{"t": {seconds(now)}, "op": "{op}", "charge": "{order}", "charges": {several}}}')
                limit, id, allowed, remaining, retry, reset = model.ask(now, op, order, asked)
                expected.append(
                    {
                        "t": seconds(now),
                        "limit": limit,
                        "id": id,
                        "allowed": allowed,
                        "remaining": str(remaining),
                        "retry_after": "-1" if retry == -1 else seconds(retry),
                        "reset_after": seconds(reset),
                        "tat": seconds(now + reset),
                    }
                )
            answers = self.replay(Model.config(), lines)
            for number, (answer, wanted) in enumerate(zip(answers, expected)):
                self.assertEqual(answer, wanted, f"seed {seed}, line {number + 1}: {lines[number]}")
            self.assertEqual(len(answers), len(expected))


class BadLines(ProgramTest):
    def test_are_answered_in_their_place_and_the_exit_is_1(self):
        lines = ["{", line(10**9), '{"t": 1.5, "limit": "nope", "id": "y"}', "", '{"t": 2, "x": 1}', "  ", line(2 * 10**9)]
        answers = self.replay(TWENTY, lines, code=1)
        self.assertEqual([list(a) for a in answers if "error" in a], [["t", "error"]] * 3)
        self.assertEqual([a["t"] for a in answers], [None, "1", "1.5", "2", "2"])
        self.assertIn("nope", answers[2]["error"])

    def test_are_counted_on_stderr(self):
        config = self.file("weir.yaml", TWENTY)
        done = weir("simulate", "--config", config, "--trace", "-", stdin=b'{"t": 0, "limit": "x", "id": "y"}\n\n{\n}\n')
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr, "weir: 2 lines of standard input could not be replayed; the first is line 3\n")

    def test_a_line_may_have_a_mebibyte_and_not_a_byte_more(self):
        start = line(0)
        longest = start + " " * (2**20 - len(start))
        answers = self.replay(TWENTY, [longest, longest + " ", start], code=1)
        self.assertEqual([a.get("remaining") for a in answers], ["19", None, "18"])
        self.assertEqual(answers[1], {"t": None, "error": "the line is longer than 1048576 bytes"})


class Streams(ProgramTest):
    def test_answers_each_line_before_it_waits_for_the_next(self):
        config = self.file("weir.yaml", TWENTY)
        with subprocess.Popen(
            [BINARY, "simulate", "--config", config, "--trace", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as process:
            for i in range(3):
                process.stdin.write((line(i) + "\n").encode())
                process.stdin.flush()
                self.assertIn(b'"allowed":true', process.stdout.readline())
            process.stdin.close()
            self.assertEqual(process.wait(60), 0)

    def test_a_reader_that_goes_away_ends_it_quietly(self):
        config = self.file("weir.yaml", TWENTY)
        trace = self.file("trace.jsonl", (line(0) + "\n") * 50_000)
        with subprocess.Popen(
            [BINARY, "simulate", "--config", config, "--trace", trace], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:
            process.stdout.readline()
            process.stdout.close()
            self.assertEqual(process.stderr.read(), b"")
            self.assertEqual(process.wait(60), 1)

    def test_a_full_disk_is_a_failure_with_a_sentence(self):
        if not os.path.exists("/dev/full"):
            self.skipTest("no /dev/full")
        config = self.file("weir.yaml", TWENTY)
        trace = self.file("trace.jsonl", line(0) + "\n")
        with open("/dev/full", "wb") as full:
            done = subprocess.run(
                [BINARY, "simulate", "--config", config, "--trace", trace], stdout=full, stderr=subprocess.PIPE, timeout=60
            )
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr, b"weir: cannot write: No space left on device\n")

    def test_a_missing_trace_is_a_failure_and_a_missing_config_is_refused(self):
        config = self.file("weir.yaml", TWENTY)
        missing = self.directory / "missing"
        done = weir("simulate", "--config", config, "--trace", missing)
        self.assertEqual((done.returncode, done.stderr), (1, f"weir: cannot open {missing}: No such file or directory\n"))
        done = weir("simulate", "--config", missing, "--trace", "-")
        self.assertEqual(done.returncode, 2)
        self.assertIn(str(missing), done.stderr)

    def test_a_directory_is_not_a_trace(self):
        config = self.file("weir.yaml", TWENTY)
        done = weir("simulate", "--config", config, "--trace", self.directory)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr, f"weir: cannot read {self.directory}: Is a directory\n")


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=1)
