"""The C face from Python: ctypes on libweir.so, as any language with a foreign function interface would use it.

usage: weir_test.py PATH_OF_LIBWEIR_SO
"""

import ctypes
import sys
import threading
import unittest
from ctypes import POINTER, byref, c_bool, c_char_p, c_int64, c_size_t, c_uint64, c_void_p

SECOND = 1_000_000_000
CLOCK = ctypes.CFUNCTYPE(c_int64, c_void_p)


class Limit(ctypes.Structure):
    _fields_ = [("count", c_int64), ("period_ns", c_int64), ("burst", c_int64)]


class Decision(ctypes.Structure):
    _fields_ = [("allowed", c_bool), ("burst", c_int64), ("remaining", c_int64), ("retry_after_ns", c_int64),
                ("reset_after_ns", c_int64)]


class Options(ctypes.Structure):
    _fields_ = [("max_buckets", c_uint64), ("clock_ns", CLOCK), ("clock_context", c_void_p), ("names", c_bool)]


class Failure(ctypes.Structure):
    _fields_ = [("text", ctypes.c_char * 256)]


class Key(ctypes.Structure):
    _fields_ = [("text", c_char_p), ("bytes", c_size_t)]


class Charge(ctypes.Structure):
    _fields_ = [("limiter", c_void_p), ("key", Key), ("cost", c_int64)]


def load(path):
    library = ctypes.CDLL(path)
    library.weir_version.restype = c_char_p
    library.weir_limiter_create.restype = c_void_p
    library.weir_limiter_create.argtypes = [POINTER(Limit), POINTER(Options), POINTER(Failure)]
    library.weir_limiter_create_shared.restype = c_void_p
    library.weir_limiter_create_shared.argtypes = [c_void_p, c_char_p, POINTER(Limit), POINTER(Failure)]
    library.weir_limiter_destroy.argtypes = [c_void_p]
    library.weir_buckets_create.restype = c_void_p
    library.weir_buckets_create.argtypes = [POINTER(Options), POINTER(Failure)]
    library.weir_buckets_destroy.argtypes = [c_void_p]
    library.weir_spend.restype = c_bool
    library.weir_spend.argtypes = [c_void_p, c_char_p, c_size_t, c_int64, POINTER(Decision)]
    library.weir_spend_batch.argtypes = [c_void_p, POINTER(Key), c_size_t, c_int64, POINTER(Decision)]
    library.weir_spend_together.restype = c_bool
    library.weir_spend_together.argtypes = [c_void_p, POINTER(Charge), c_size_t, POINTER(Decision), POINTER(c_size_t),
                                            POINTER(Failure)]
    return library


class CFace(unittest.TestCase):
    def setUp(self):
        self.now = SECOND
        self.clock = CLOCK(lambda _: self.now)  # kept: the library calls it
        self.options = Options(clock_ns=self.clock)

    def limiter(self, count, burst):
        limiter = weir.weir_limiter_create(byref(Limit(count, SECOND, burst)), byref(self.options), None)
        self.addCleanup(weir.weir_limiter_destroy, limiter)
        return limiter

    @staticmethod
    def spend(limiter, key, cost=1):
        decision = Decision()
        weir.weir_spend(limiter, key, len(key), cost, byref(decision))
        return decision

    def test_tells_its_version(self):
        self.assertRegex(weir.weir_version().decode(), r"^\d+\.\d+\.\d+$")

    def test_waits_exactly_as_long_as_told(self):
        limiter = self.limiter(20, 20)
        self.assertEqual(self.spend(limiter, b"a").reset_after_ns, 50_000_000)
        self.assertEqual(self.spend(limiter, b"a", 19).remaining, 0)
        denied = self.spend(limiter, b"a")
        self.assertFalse(denied.allowed)
        self.now += denied.retry_after_ns - 1
        self.assertEqual(self.spend(limiter, b"a").retry_after_ns, 1)
        self.now += 1
        self.assertTrue(self.spend(limiter, b"a").allowed)

    def test_says_never(self):
        self.assertEqual(self.spend(self.limiter(1, 1), b"a", 2).retry_after_ns, -1)

    def test_names_the_rule_that_a_limit_breaks(self):
        failure = Failure()
        self.assertIsNone(weir.weir_limiter_create(byref(Limit(1, SECOND, 0)), None, byref(failure)))
        self.assertEqual(failure.text, b"burst 0 must be at least 1")

    def test_answers_a_batch(self):
        limiter = self.limiter(2, 2)
        keys = (Key * 100)(*[Key(b"%d" % (i % 25), len(b"%d" % (i % 25))) for i in range(100)])
        decisions = (Decision * 100)()
        weir.weir_spend_batch(limiter, keys, 100, 1, decisions)
        self.assertEqual([d.allowed for d in decisions], [True] * 50 + [False] * 50)

    def test_charges_several_at_once(self):
        buckets = weir.weir_buckets_create(byref(self.options), None)
        wide = weir.weir_limiter_create_shared(buckets, b"wide", byref(Limit(10, SECOND, 10)), None)
        tight = weir.weir_limiter_create_shared(buckets, b"tight", byref(Limit(1, SECOND, 1)), None)
        charges = (Charge * 2)(Charge(wide, Key(b"x", 1), 1), Charge(tight, Key(b"x", 1), 1))
        decisions, strictest = (Decision * 2)(), c_size_t()
        answers = [weir.weir_spend_together(buckets, charges, 2, decisions, byref(strictest), None) for _ in range(3)]
        self.assertEqual(answers, [True, False, False])
        self.assertEqual(strictest.value, 1)
        self.assertEqual(decisions[0].remaining, 9)
        for limiter in (wide, tight):
            weir.weir_limiter_destroy(limiter)
        weir.weir_buckets_destroy(buckets)

    def test_admits_exactly_the_burst_to_many_threads(self):
        limiter = self.limiter(1000, 1000)
        allowed = []

        def run():
            allowed.append(sum(weir.weir_spend(limiter, b"hot", 3, 1, None) for _ in range(500)))

        threads = [threading.Thread(target=run) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sum(allowed), 1000)


if __name__ == "__main__":
    weir = load(sys.argv.pop(1))
    unittest.main()
