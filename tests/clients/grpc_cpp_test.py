"""Starts the servers that grpc_cpp_test.cc talks to. GRPC_CPP names the program."""

import os
import subprocess
import unittest

from serving import Server

POLICY = """
listen: [{address: "127.0.0.1:0", speak: [http, grpc]}]
threads: 2
envoy: [rules.yaml]
"""
RULES = """
domain: edge
descriptors:
  - {key: user, rate_limit: {unit: hour, requests_per_unit: 8}}
  - {key: user, value: bob, rate_limit: {unit: hour, requests_per_unit: 5}}
  - {key: user, value: "team-*-lead", rate_limit: {unit: hour, requests_per_unit: 6}}
  - {key: user, value: "team-*", rate_limit: {unit: hour, requests_per_unit: 7}}
  - key: path
    descriptors:
      - {key: method, rate_limit: {unit: hour, requests_per_unit: 2}}
      - {key: method, value: GET, rate_limit: {unit: hour, requests_per_unit: 3}}
      - {key: method, value: HEAD}
  - {key: free, rate_limit: {unlimited: true}}
  - {key: pair, rate_limit: {unit: hour, requests_per_unit: 2, name: pair}}
  - {key: vip, rate_limit: {unit: hour, requests_per_unit: 100, replaces: [{name: pair}]}}
  - {key: gold, quota_mode: true, rate_limit: {unit: hour, requests_per_unit: 1}}
  - {key: silver, quota_mode: true, rate_limit: {unit: hour, requests_per_unit: 2}}
  - {key: tried, shadow_mode: true, rate_limit: {unit: hour, requests_per_unit: 1}}
  - {key: ten, rate_limit: {unit: hour, requests_per_unit: 10}}
  - {key: hundred, rate_limit: {unit: day, requests_per_unit: 100}}
  - {key: a, value: b_c, rate_limit: {unit: hour, requests_per_unit: 1}}
  - {key: a_b, value: c, rate_limit: {unit: hour, requests_per_unit: 1}}
"""


class GrpcCppTest(unittest.TestCase):
    def test_all(self):
        plain = Server(self, POLICY, files={"rules.yaml": RULES})
        verbose = Server(self, POLICY + "envoy_headers: true\nenvoy_metadata: true\n", files={"rules.yaml": RULES})
        environment = os.environ | {"PLAIN": f"127.0.0.1:{plain.ports['http']}", "VERBOSE": f"127.0.0.1:{verbose.ports['http']}"}
        subprocess.run([os.environ["GRPC_CPP"], "--gtest_brief=1"], check=True, env=environment, timeout=120)


if __name__ == "__main__":
    unittest.main()
