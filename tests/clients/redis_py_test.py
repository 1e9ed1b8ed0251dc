"""redis-py as Debian packages it (python3-redis)."""

import os
import signal
import tempfile
import unittest
import warnings

import redis
from serving import POLICY, Server


class RedisPy(unittest.TestCase):
    def setUp(self):
        warnings.simplefilter("error")

    def client(self, server, **options):
        client = redis.Redis(host="127.0.0.1", port=server.ports["resp"], **options)
        self.addCleanup(client.close)
        return client

    def test_connects_without_a_warning(self):
        client = self.client(Server(self), client_name="weir-test", decode_responses=True, health_check_interval=1)
        self.assertTrue(client.ping())
        self.assertEqual(client.client_getname(), "weir-test")
        self.assertEqual(client.echo("hello"), "hello")
        self.assertEqual(client.info()["redis_mode"], "standalone")
        self.assertIn("cl.throttle", client.command())
        self.assertEqual(client.delete("nobody"), 0)

    def test_gets_the_answer_of_redis_cell(self):
        self.assertEqual(self.client(Server(self)).execute_command("CL.THROTTLE", "user123", 15, 30, 60), [0, 16, 15, -1, 2])

    def test_pipelines_a_thousand_commands_and_gets_their_answers_in_order(self):
        client = self.client(Server(self, POLICY + "  many: {burst: 1000, count: 1, period: 1h}\n"))
        throttles = client.pipeline(transaction=False)
        for i in range(1000):
            throttles.execute_command("CL.THROTTLE", f"key:{i}", i, 1, 3600)
        # Only the i-th command has a bucket of i + 1.
        self.assertEqual(throttles.execute(), [[0, i + 1, i, -1, 3600] for i in range(1000)])
        checks = client.pipeline(transaction=False)
        for _ in range(1001):
            checks.execute_command("WEIR.CHECK", "many", "alice")
        answers = checks.execute()
        self.assertEqual([answer[2] for answer in answers], [*range(999, -1, -1), 0])
        self.assertEqual([answer[0] for answer in answers], [1] * 1000 + [0])

    def test_a_transaction_runs_its_commands_and_an_unknown_one_charges_nothing(self):
        client = self.client(Server(self, POLICY + "  few: {burst: 10, count: 1, period: 1h}\n"))
        transaction = client.pipeline()  # MULTI ... EXEC
        for _ in range(3):
            transaction.execute_command("WEIR.CHECK", "few", "alice")
        self.assertEqual([answer[:3] for answer in transaction.execute()], [[1, 10, 9], [1, 10, 8], [1, 10, 7]])
        spoiled = client.pipeline()
        spoiled.execute_command("WEIR.CHECK", "few", "alice").execute_command("NONSENSE")
        with self.assertRaisesRegex(redis.ResponseError, "unknown command"):
            spoiled.execute()
        self.assertEqual(client.execute_command("WEIR.PEEK", "few", "alice")[2], 7)

    def test_errors_are_its_own_and_only_of_the_command_that_made_them(self):
        client = self.client(Server(self))
        for words, sentence in ((("CL.THROTTLE", "a"), "wrong number of arguments for 'cl.throttle' command"),
                                (("CL.THROTTLE", "a", "x", 1, 1), "value is not an integer or out of range"),
                                (("CL.THROTTLE", "a", 1, 0, 1), "rate must be positive"),
                                (("WEIR.CHECK", "nobody", "1"), "nobody"), (("GET", "a"), "unknown command")):
            with self.assertRaisesRegex(redis.ResponseError, sentence):
                client.execute_command(*words)
        pipeline = client.pipeline(transaction=False)
        answers = pipeline.ping().execute_command("CL.THROTTLE", "a").ping().execute(raise_on_error=False)
        self.assertEqual([answers[0], type(answers[1]), answers[2]], [True, redis.ResponseError, True])

    def test_gets_in_with_the_password_and_not_without_it(self):
        server = Server(self, POLICY.replace("speak: resp", "speak: resp, password: open-sesame"))
        self.assertTrue(self.client(server, password="open-sesame").ping())
        self.assertTrue(self.client(server, username="default", password="open-sesame").ping())
        with self.assertRaises(redis.AuthenticationError):
            self.client(server).ping()
        with self.assertRaisesRegex(redis.ResponseError, "invalid username-password pair"):
            self.client(server, password="wrong").ping()

    def test_finds_the_server_again_after_it_was_killed_and_started_anew(self):
        server = Server(self)
        client = self.client(server)
        self.assertEqual(client.execute_command("CL.THROTTLE", "a", 15, 30, 60)[0], 0)
        server.end(signal.SIGKILL)
        with self.assertRaises(redis.ConnectionError):
            client.ping()
        Server(self, POLICY.replace('127.0.0.1:0", speak: resp', f'127.0.0.1:{server.ports["resp"]}", speak: resp'))
        self.assertEqual(client.execute_command("CL.THROTTLE", "a", 15, 30, 60)[0], 0)

    def test_speaks_over_a_unix_socket(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "weir.sock")
            Server(self, POLICY.replace(
                "threads: 2", f'  - {{address: "unix:{path}", speak: resp}}\nthreads: 2'))
            with redis.Redis(unix_socket_path=path) as client:
                self.assertEqual(client.execute_command("CL.THROTTLE", "a", 15, 30, 60), [0, 16, 15, -1, 2])


if __name__ == "__main__":
    unittest.main()
