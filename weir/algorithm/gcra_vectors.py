#!/usr/bin/env python3
"""Writes gcra_vectors.txt: python3 weir/algorithm/gcra_vectors.py > weir/algorithm/gcra_vectors.txt

An independent reference, in exact fractions: it knows a bucket as a level of tokens that rises by 1/interval every
nanosecond up to burst, and turns it into an instant only at the end. It shares no formula with gcra.h or gcra.lua.
"""

import random
from fractions import Fraction

NS = 1
US = 1000
MS = 1000 * US
S = 1000 * MS
MINUTE = 60 * S
HOUR = 60 * MINUTE
DAY = 24 * HOUR
CENTURY = 36525 * DAY
INT64_MAX = 2**63 - 1
NEVER = -1

HEADER = """\
# Golden vectors of the generic cell rate algorithm: every implementation gives these answers, line by line.
# Written by gcra_vectors.py from a reference in exact fractions; do not edit by hand.
#
# op        spend | peek | refund | undo
# count     tokens added every period
# period    nanoseconds
# burst     what a bucket holds
# tat       state before, nanoseconds; 0 is an untouched bucket
# now       the reading, nanoseconds
# cost      tokens asked for, or given back
# since     undo: the reading of the spend that is taken back; else the latest instant the numbers may have changed,
#           -: now, as always on Redis
# ->
# allowed   1 or 0; - for undo, which answers only with a state
# remaining whole tokens
# retry     nanoseconds; -1: never
# reset     nanoseconds until full
# tat'      state after, nanoseconds
#
# op count period burst tat now cost since -> allowed remaining retry reset tat'"""


class Bucket:
    """A limit and how full one bucket of it is at an instant."""

    def __init__(self, limit, tat, now, since=None):
        self.count, self.period, self.burst = limit
        # The rate in whole nanoseconds per token, never faster than promised.
        self.interval = int(-(Fraction(self.period, self.count) // -1))
        self.tat, self.now = tat, now
        # A bucket is never fuller than burst.
        self.level = self.burst - max(Fraction(tat - now, self.interval), Fraction(0))
        # Nor emptier than empty: a state that owes more is from other numbers, or from a clock that was set back. The
        # bucket was empty at `since` and has been refilling from there.
        if self.level < 0 and since is not None:
            self.level = min(Fraction(now - since, self.interval), Fraction(self.burst))
            self.tat = since + self.burst * self.interval

    def reset(self, level):
        ns = (self.burst - level) * self.interval
        assert ns.denominator == 1
        return int(ns)

    def whole(self, level):
        return level.numerator // level.denominator

    def spend(self, cost):
        if cost > self.level:
            return (0, *self.refusal(cost), self.tat)
        if cost == 0:
            return (1, self.whole(self.level), 0, self.reset(self.level), self.tat)
        left = self.level - cost
        return (1, self.whole(left), 0, self.reset(left), self.now + self.reset(left))

    def refusal(self, cost):
        wait = (cost - self.level) * self.interval
        assert wait.denominator == 1
        retry = NEVER if cost > self.burst else int(wait)
        return (self.whole(self.level), retry, self.reset(self.level))

    def peek(self, cost):
        if cost > self.level:
            return (0, *self.refusal(cost), self.tat)
        return (1, self.whole(self.level), 0, self.reset(self.level), self.tat)

    def refund(self, cost):
        level = min(self.level + cost, Fraction(self.burst))
        return (1, self.whole(level), 0, self.reset(level), self.now + self.reset(level))

    def undo(self, cost, spent_at):
        # What the refill has given since the spend is not given twice.
        refilled = Fraction(max(self.now - spent_at, 0), self.interval)
        back = max(min(cost, self.burst) - refilled, Fraction(0))
        ns = back * self.interval
        assert ns.denominator == 1
        return ("-", "-", "-", "-", self.tat - int(ns))


def title(text):
    print(f"\n# {text}")


def row(op, limit, tat, now, cost, since=None):
    if op == "undo":
        answer = Bucket(limit, tat, now).undo(cost, since)
    else:
        answer = getattr(Bucket(limit, tat, now, now if since is None else since), op)(cost)
    inputs = (op, *limit, tat, now, cost, "-" if since is None else since)
    print(*inputs, "->", *answer)
    return answer[-1]


def chain(limit, tat, steps, op="spend"):
    """Spends one after another on one bucket; each step is (now, cost)."""
    for now, cost in steps:
        tat = row(op, limit, tat, now, cost)
    return tat


TWENTY = (20, S, 20)
LOGIN = (60, MINUTE, 10)
ODD = (3, S, 3)  # interval 333333334 ns: the division leaves a rest
ODD_BURST = (7, S, 2)
SLOW = (1, CENTURY, 1)
NANO = (S, S, 5)  # one token per nanosecond
NANO_LONG = (1, 1, CENTURY)
BIG = (1000, DAY, 1000)


def worked_example():
    title("The worked example: burst 20, interval 50 ms, window 1 s.")
    steps = [(0, 1), (5 * MS, 1)] + [(5 * MS + i * 44 * MS // 17, 1) for i in range(18)] + [(49 * MS, 1)]
    tat = chain(TWENTY, 0, steps)
    title("From then on one every 50 ms, for ever.")
    for i in range(1, 5):
        tat = chain(TWENTY, tat, [(i * 50 * MS - 1, 1), (i * 50 * MS, 1), (i * 50 * MS, 1)])


def boundaries():
    title("Equality passes; one nanosecond either way.")
    for limit in (TWENTY, LOGIN, ODD, ODD_BURST):
        interval = -(-limit[1] // limit[0])
        empty = 10 * S + interval * limit[2]
        for off in (-1, 0, 1):
            row("spend", limit, empty, 10 * S + interval + off, 1)
            row("peek", limit, empty, 10 * S + interval + off, 1)
    title("Costs: nothing, one, the burst, one more, absurd; on a full, a half and an empty bucket.")
    for limit in (TWENTY, ODD, SLOW, NANO, NANO_LONG, BIG):
        interval = -(-limit[1] // limit[0])
        for taken in sorted({0, limit[2] // 2, limit[2]}):
            for cost in sorted({0, 1, limit[2], limit[2] + 1, INT64_MAX}):
                row("spend", limit, 10 * S + interval * taken, 10 * S, cost)
    title("A state in the past, at now, and far in the past is a full bucket.")
    for tat in (0, 1, 10 * S - 1, 10 * S, 10 * S + 1):
        row("spend", TWENTY, tat, 10 * S, 20)
        row("spend", TWENTY, tat, 10 * S, 1)
        row("peek", TWENTY, tat, 10 * S, 20)


def changed_numbers():
    title("A relaxed limit: the bucket was empty when its numbers changed, and whoever finds it writes that.")
    spent = 10 * S + 1000 * 86400 * MS
    for since in (None, 10 * S - 1, 10 * S - 50 * MS, 9 * S + 1, 8 * S):
        for cost in (0, 1, 20, 21):
            for op in ("spend", "peek", "refund"):
                row(op, TWENTY, spent, 10 * S, cost, since)
    title("A state that these numbers may have written counts as it is, however long ago they changed.")
    for op in ("spend", "peek", "refund"):
        for tat in (11 * S, 11 * S - 1, 10 * S + 50 * MS):
            row(op, TWENTY, tat, 10 * S, 1, 1)
    title("A grown limit: the state keeps its instant, the rest is free.")
    row("spend", BIG, 11 * S, 10 * S, 999)
    row("spend", BIG, 11 * S, 10 * S, 1000)
    title("A clock set back costs at most one window.")
    for back in (1, 50 * MS, S, DAY):
        row("spend", TWENTY, 2 * DAY, 2 * DAY - back, 1)
        row("spend", TWENTY, 2 * DAY, 2 * DAY - back, 20)
        row("refund", TWENTY, 2 * DAY, 2 * DAY - back, 1)


def extremes():
    title("One per nanosecond.")
    chain(NANO, 0, [(100, 5), (100, 1), (101, 1), (101, 1), (104, 3), (104, 1), (109, 5)])
    title("A hundred years for one token, or for all of a burst.")
    chain(SLOW, 0, [(S, 1), (S, 1), (S + CENTURY - 1, 1)])
    row("spend", SLOW, S + CENTURY, S + CENTURY, 1)
    chain(NANO_LONG, 0, [(10**18, CENTURY), (10**18, 1), (10**18 + 1, 1), (10**18 + 1, 2)])
    row("refund", NANO_LONG, 10**18 + CENTURY, 10**18, CENTURY - 1)
    title("Intervals that do not divide.")
    chain(ODD, 0, [(S, 1), (S, 1), (S, 1), (S, 1), (S + 333333333, 1), (S + 333333334, 1), (2 * S, 1), (2 * S + 2, 2)])
    chain((1000000007, 60 * S, 100), 0, [(S, 50), (S + 7, 50), (S + 59, 1), (S + 60, 1), (S + 61, 1)])
    chain((7, 10, 3), 0, [(5, 2), (5, 1), (5, 1), (6, 1), (7, 1)])


def giving_back():
    title("Refunds: part, all, more than was taken, on a full bucket; never beyond full.")
    for limit in (TWENTY, ODD, SLOW, NANO):
        interval = -(-limit[1] // limit[0])
        for taken in sorted({0, 1, limit[2]}):
            for cost in sorted({0, 1, limit[2], limit[2] + 1, INT64_MAX}):
                row("refund", limit, 10 * S + interval * taken, 10 * S, cost)
    row("refund", TWENTY, 0, 10 * S, 3)
    row("refund", TWENTY, 10 * S + 30 * MS, 10 * S, 1)
    title("Undo: at once, while it refills, when the refill has given all of it back; a reading before its spend.")
    for cost in (0, 1, 3, 20, 25):
        for age in (-MS, 0, 1, 20 * MS, 50 * MS - 1, 50 * MS, 150 * MS, DAY):
            row("undo", TWENTY, 11 * S + DAY, 10 * S + age, cost, 10 * S)
    title("Undo with the race that a plain refund loses: 1 at 0, 9 at 0.9 s, the first undone at 0.95 s.")
    ten = (1, S, 10)
    tat = row("spend", ten, 0, 100 * S, 1)
    tat = row("spend", ten, tat, 100 * S + 900 * MS, 9)
    tat = row("undo", ten, tat, 100 * S + 950 * MS, 1, 100 * S)
    tat = row("spend", ten, tat, 100 * S + 950 * MS, 1)
    row("spend", ten, tat, 101 * S, 1)


def anything():
    title("Anything, from a fixed seed.")
    rng = random.Random(20)
    for _ in range(120):
        count = rng.choice((1, 2, 3, 7, 60, 1000, rng.randrange(1, 10**6)))
        period = rng.choice((S, MINUTE, HOUR, DAY, rng.randrange(10**6, 10**12)))
        burst = rng.choice((1, 2, count, rng.randrange(1, 1000)))
        interval = -(-period // count)
        now = rng.randrange(0, 10**18)
        tat = max(0, now + rng.randrange(-interval, interval * (burst + 1)))
        cost = rng.choice((0, 1, 1, burst, rng.randrange(0, burst + 2)))
        row(rng.choice(("spend", "spend", "peek", "refund")), (count, period, burst), tat, now, cost)


if __name__ == "__main__":
    print(HEADER)
    worked_example()
    boundaries()
    changed_numbers()
    extremes()
    giving_back()
    anything()
