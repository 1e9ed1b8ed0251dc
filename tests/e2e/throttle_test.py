"""CL.THROTTLE over real time and the server's own clock: what redis-cell promises, and what it does not keep."""

import json
import math
import threading
import time
import unittest

from serving import Server

AGE_MAX = 100e-6  # of the reading that a decision uses


class Client:
    """Pipelines CL.THROTTLE and reads the answers as lists of five integers."""

    def __init__(self, test, server):
        self.socket = server.connect("resp")
        test.addCleanup(self.socket.close)
        self.file = self.socket.makefile("rb")
        test.addCleanup(self.file.close)

    def throttle(self, *words, times=1):
        self.socket.sendall(("CL.THROTTLE " + " ".join(map(str, words)) + "\r\n").encode() * times)
        return [self._answer() for _ in range(times)]

    def _answer(self):
        head = self.file.readline()
        assert head == b"*5\r\n", head
        return [int(self.file.readline()[1:]) for _ in range(5)]


class RedisCell(unittest.TestCase):
    def test_the_example_of_its_documentation_is_answered_as_it_says(self):
        client = Client(self, Server(self))
        self.assertEqual(client.throttle("user123", 15, 30, 60), [[0, 16, 15, -1, 2]])

    def test_sixteen_pass_at_once_and_the_next_waits(self):
        client = Client(self, Server(self))
        answers = client.throttle("user123", 15, 30, 3600, times=17)
        self.assertEqual([answer[:3] for answer in answers], [[0, 16, left] for left in range(15, -1, -1)] + [[1, 16, 0]])
        self.assertEqual([answer[3] for answer in answers[:16]], [-1] * 16)
        self.assertEqual(answers[16][3], 120)

    def test_a_max_burst_of_0_lets_one_through_and_then_limits(self):
        client = Client(self, Server(self))
        answers = client.throttle("one", 0, 1, 3600, times=3)
        self.assertEqual(answers, [[0, 1, 0, -1, 3600], [1, 1, 0, 3600, 3600], [1, 1, 0, 3600, 3600]])

    def test_a_cost_above_the_bucket_never_passes(self):
        client = Client(self, Server(self))
        self.assertEqual(client.throttle("a", 4, 1, 60, 6), [[1, 5, 5, -1, 0]])

    def test_six_thousand_per_second_really_limit(self):
        server = Server(self)
        threads, answers = [], []
        before = time.clock_gettime(time.CLOCK_BOOTTIME)
        for client in [Client(self, server) for _ in range(2)]:
            threads.append(threading.Thread(target=lambda c=client: [
                answers.extend(c.throttle("hot", 99, 6000, 1, times=500)) for _ in range(40)]))
            threads[-1].start()
        for thread in threads:
            thread.join()
        seconds = time.clock_gettime(time.CLOCK_BOOTTIME) - before
        allowed = sum(answer[0] == 0 for answer in answers)
        interval = math.ceil(1e9 / 6000) / 1e9
        self.assertEqual(len(answers), 40_000)
        self.assertLess(allowed, len(answers), "somebody is denied")
        self.assertLessEqual(allowed, 100 + (seconds + AGE_MAX) / interval)
        self.assertGreaterEqual(allowed, 100)
        self.assertEqual({answer[3] for answer in answers if answer[0] == 1}, {1}, "a wait of 167 µs is told as 1 s, never 0")

    def test_seconds_never_round_down(self):
        server = Server(self)
        client = Client(self, server)
        for key, (max_burst, count, period) in enumerate(((0, 3, 10), (2, 7, 100), (9, 10, 60), (4, 3, 1000), (1, 1000, 3))):
            answers = client.throttle(f"key:{key}", max_burst, count, period, times=max_burst + 2)
            for limited, _, _, retry_after, reset_after in answers:
                self.assertGreaterEqual(reset_after, 1)
                self.assertGreaterEqual(retry_after, 1 if limited else -1)
            # Asked later, the exact wait of the same bucket can only be shorter than what was said, by less than a second
            # and what has passed since.
            asked = time.monotonic()
            exact = json.loads(server.post("/v1/throttle", {"key": f"key:{key}", "burst": max_burst + 1, "count": count,
                                                            "period": f"{period}s", "cost": 0})[2])
            said = client.throttle(f"key:{key}", max_burst, count, period, 0)[0]
            passed = time.monotonic() - asked + AGE_MAX
            self.assertGreaterEqual(answers[-1][4], exact["reset_after"])
            self.assertGreaterEqual(said[4], exact["reset_after"] - passed)
            self.assertLess(said[4], exact["reset_after"] + 1)

    def test_who_waits_as_long_as_told_is_let_in(self):
        client = Client(self, Server(self))
        answers = client.throttle("a", 0, 5, 1, times=2)
        self.assertEqual([answer[0] for answer in answers], [0, 1])
        time.sleep(answers[1][3])
        self.assertEqual(client.throttle("a", 0, 5, 1)[0][0], 0)


if __name__ == "__main__":
    unittest.main()
