"""wrk and ab drive the decision API: whatever they send is answered, with 200 or 429."""

import re
import subprocess
import unittest

from serving import Server

BODY = '{"key":"k","burst":500,"count":1,"period":"1h"}'

# Counts what is neither 200 nor 429; wrk itself calls a denial an error.
SCRIPT = f"""
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.body = '{BODY}'
allowed, denied, other = 0, 0, 0
function setup(thread) only = thread end
function response(status)
  if status == 200 then allowed = allowed + 1 elseif status == 429 then denied = denied + 1 else other = other + 1 end
end
function done(summary)
  local e = summary.errors
  print(string.format("seen %d %d %d lost %d %d %d %d",
                      only:get("allowed"), only:get("denied"), only:get("other"), e.connect, e.read, e.write, e.timeout))
end
"""


class LoadTools(unittest.TestCase):
    def test_wrk_sees_nothing_but_200_and_429(self):
        server = Server(self)
        script = server.directory + "/throttle.lua"
        with open(script, "w", encoding="utf-8") as file:
            file.write(SCRIPT)
        done = subprocess.run(["wrk", "-t1", "-c32", "-d1s", "-s", script, f"http://127.0.0.1:{server.ports['http']}/v1/throttle"],
                              capture_output=True, text=True, check=True)
        allowed, denied, *bad = map(int, re.search(r"seen (\d+) (\d+) (\d+) lost (\d+) (\d+) (\d+) (\d+)", done.stdout).groups())
        self.assertEqual(bad, [0] * 5, done.stdout)
        self.assertEqual(allowed, 500)
        self.assertGreater(denied, 0)

    def test_ab_keeps_its_connections_and_loses_no_request(self):
        server = Server(self)
        body = server.directory + "/body.json"
        with open(body, "w", encoding="utf-8") as file:
            file.write(BODY)
        for keep, count in ((["-k"], "2000"), ([], "200")):
            # -l: answers may differ in length.
            done = subprocess.run(["ab", "-q", "-l", *keep, "-n", count, "-c", "20", "-p", body, "-T", "application/json",
                                   f"http://127.0.0.1:{server.ports['http']}/v1/throttle"], capture_output=True, text=True, check=True)
            said = {name: value for name, value in re.findall(r"^([\w -]+):\s+(\d+)", done.stdout, re.MULTILINE)}
            self.assertEqual((said["Complete requests"], said["Failed requests"]), (count, "0"), done.stdout)
            if keep:
                self.assertEqual(said["Keep-Alive requests"], count)
                # Non-2xx are the denials: all but the burst.
                self.assertEqual(said["Non-2xx responses"], str(2000 - 500))
            else:
                self.assertEqual(said["Non-2xx responses"], count)
        metrics = server.get("admin", "/metrics")
        self.assertIn('weir_rate_limit_requests_total{limit="",limiter_type="",status="allowed"} 500\n', metrics)


if __name__ == "__main__":
    unittest.main()
