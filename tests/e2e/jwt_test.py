"""Limits and tiers by the claims of a verified token: shared secrets, key files, and key files that change."""

import base64
import hashlib
import hmac
import http.client
import json
import os
import shutil
import subprocess
import tempfile
import time
import unittest

from reload_test import metric, replace, wait_for_line
from serving import Server

POLICY = """
listen:
  - {address: "127.0.0.1:0", speak: http}
  - {address: "127.0.0.1:0", speak: admin}
threads: 1
log: {level: debug}
limits:
  user: {key: jwt:sub, burst: 2, count: 2, period: 1h}
  per-ip: {key: ip, burst: 1000, count: 1000, period: 1h}
"""
SECRET = "a secret of thirty-two characters"


def encoded(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def claims(sub, **more):
    return {"sub": sub, "exp": int(time.time()) + 3600} | more


def token(header, payload, sign):
    text = ".".join(encoded(json.dumps(part).encode()) for part in (header, payload))
    return text + "." + encoded(sign(text.encode()))


def by_secret(payload, secret=SECRET):
    return token({"alg": "HS256"}, payload, lambda text: hmac.new(secret.encode(), text, hashlib.sha256).digest())


def openssl(*words, **more):
    return subprocess.run(["openssl", *words], check=True, capture_output=True, **more).stdout


def integers(der):
    """The two integers of an ECDSA signature, as a token has them: 32 bytes each."""
    raw = b""
    at = 2
    for _ in range(2):
        length = der[at + 1]
        raw += int.from_bytes(der[at + 2:at + 2 + length], "big").to_bytes(32, "big")
        at += 2 + length
    return raw


class Key:
    """A new private key: its public half as a JWK, and tokens that it signs."""

    def __init__(self, test, algorithm, kid):
        directory = tempfile.mkdtemp()
        test.addCleanup(shutil.rmtree, directory)
        self.path = os.path.join(directory, "key.pem")
        self.header = {"alg": algorithm, "kid": kid}
        make = {"RS256": ["RSA", "-pkeyopt", "rsa_keygen_bits:2048"],
                "ES256": ["EC", "-pkeyopt", "ec_paramgen_curve:P-256"],
                "EdDSA": ["ED25519"]}[algorithm]
        openssl("genpkey", "-algorithm", *make, "-out", self.path)
        public = openssl("pkey", "-in", self.path, "-pubout", "-outform", "DER")
        if algorithm == "RS256":
            modulus = openssl("rsa", "-in", self.path, "-noout", "-modulus", text=True).strip().partition("=")[2]
            self.jwk = {"kty": "RSA", "n": encoded(bytes.fromhex(modulus)), "e": "AQAB"}
        elif algorithm == "ES256":
            self.jwk = {"kty": "EC", "crv": "P-256", "x": encoded(public[-64:-32]), "y": encoded(public[-32:])}
        else:
            self.jwk = {"kty": "OKP", "crv": "Ed25519", "x": encoded(public[-32:])}
        self.jwk |= {"kid": kid, "alg": algorithm, "use": "sig"}

    def sign(self, text):
        if self.header["alg"] == "EdDSA":
            with open(self.path + ".text", "wb") as file:
                file.write(text)
            return openssl("pkeyutl", "-sign", "-rawin", "-inkey", self.path, "-in", self.path + ".text")
        signature = openssl("dgst", "-sha256", "-sign", self.path, input=text)
        return integers(signature) if self.header["alg"] == "ES256" else signature

    def token(self, payload):
        return token(self.header, payload, self.sign)


def key_set(*keys):
    return json.dumps({"keys": [key.jwk for key in keys]})


class Tokens(unittest.TestCase):
    def check(self, server, text):
        """The status, and the limits that were charged."""
        body = {"request": {"ip": "203.0.113.9", "path": "/", "headers": {"authorization": "Bearer " + text}}}
        status, _, answer = server.post("/v1/check?explain=true", body)
        return status, [decision["bucket"] for decision in json.loads(answer)["decisions"]]

    def authorize(self, server, headers):
        connection = http.client.HTTPConnection("127.0.0.1", server.ports["http"], timeout=20)
        self.addCleanup(connection.close)
        connection.request("GET", "/v1/authorize", headers=headers)
        answer = connection.getresponse()
        answer.read()
        return answer.status, answer.headers["X-RateLimit-Limit"]

    def rejected(self, server, reason):
        return metric(server, f'weir_jwt_rejected_total{{reason="{reason}"}}')

    def test_a_good_token_is_limited_by_its_claim(self):
        server = Server(self, POLICY + f"jwt: {{secret: {SECRET}}}\n")
        first, again = by_secret(claims("ann")), by_secret(claims("ann", jti=2))
        self.assertEqual(self.authorize(server, {"Authorization": "Bearer " + first}), (200, "2"))
        self.assertEqual(self.check(server, again), (200, ["user:ann", "per-ip:203.0.113.9"]))
        self.assertEqual(self.authorize(server, {"Authorization": "Bearer " + again})[0], 429)
        self.assertEqual(self.check(server, first)[0], 429)
        self.assertEqual(self.check(server, by_secret(claims("bob")))[0], 200)

    def test_a_token_that_does_not_verify_is_skipped_and_counted(self):
        server = Server(self, POLICY + f"jwt: {{secret: {SECRET}}}\n")
        forged = by_secret(claims("ann"), "another secret")
        expired = by_secret(claims("ann", exp=int(time.time()) - 3600))
        unsigned = token({"alg": "none"}, claims("ann"), lambda text: b"")
        for reason, text in (("signature", forged), ("expired", expired), ("unsupported", unsigned)):
            self.assertEqual(self.rejected(server, reason), 0)
            for _ in range(4):
                self.assertEqual(self.check(server, text), (200, ["per-ip:203.0.113.9"]), reason)
            self.assertEqual(self.authorize(server, {"Authorization": "Bearer " + text}), (200, "1000"), reason)
            self.assertEqual(self.rejected(server, reason), 5)
        log = server.said + server.end()[1]
        for text in (forged, expired, unsigned):
            self.assertNotIn(text[:40], log)

    def test_keys_of_every_kind_in_a_file_verify_tokens(self):
        keys = [Key(self, algorithm, algorithm.lower()) for algorithm in ("RS256", "ES256", "EdDSA")]
        server = Server(self, POLICY + "jwt: {keys: keys.json}\n", files={"keys.json": key_set(*keys)})
        for key in keys:
            name = key.jwk["kid"]
            self.assertEqual(self.check(server, key.token(claims(name))), (200, [f"user:{name}", "per-ip:203.0.113.9"]))
        # The public key is no secret: a token "signed" with it is of an algorithm that is off.
        fake = token({"alg": "HS256", "kid": "rs256"}, claims("ann"),
                     lambda text: hmac.new(keys[0].jwk["n"].encode(), text, hashlib.sha256).digest())
        self.assertEqual(self.check(server, fake), (200, ["per-ip:203.0.113.9"]))
        self.assertEqual(self.rejected(server, "algorithm"), 1)

    def test_a_replaced_key_file_puts_the_new_keys_in_force(self):
        old, new = Key(self, "ES256", "old"), Key(self, "RS256", "new")
        server = Server(self, POLICY + "jwt: {keys: keys.json}\n", files={"keys.json": key_set(old)})
        before, after = old.token(claims("ann")), new.token(claims("bob"))
        self.assertIn("user:ann", self.check(server, before)[1])
        self.assertNotIn("user:bob", self.check(server, after)[1])
        replace(os.path.join(server.directory, "keys.json"), key_set(new))
        wait_for_line(server, "reloaded")
        self.assertIn("user:bob", self.check(server, after)[1], "its rejection is forgotten")
        unknown = self.rejected(server, "unknown_key")
        self.assertNotIn("user:ann", self.check(server, before)[1], "its success is forgotten")
        self.assertEqual(self.rejected(server, "unknown_key"), unknown + 1)
        self.assertEqual(metric(server, "weir_jwt_key_failures_total"), 0)

    def test_a_bad_or_empty_key_file_keeps_the_old_keys_with_a_line_and_a_count(self):
        key = Key(self, "ES256", "a")
        server = Server(self, POLICY + "jwt: {keys: keys.json}\n", files={"keys.json": key_set(key)})
        path = os.path.join(server.directory, "keys.json")
        for count, text in enumerate(("", "{}", '{"keys": []}', '{"keys": [{"kty": "oct", "k": "AA"}]}'), 1):
            replace(path, text)
            lines = wait_for_line(server, "; keeping the keys in force")
            self.assertIn("jwt.keys: ", lines[-1])
            wait_for_line(server, "reloaded")
            self.assertGreaterEqual(metric(server, "weir_jwt_key_failures_total"), count)
            name = f"user{count}"
            self.assertIn(f"user:{name}", self.check(server, key.token(claims(name)))[1], text)
        other = Key(self, "ES256", "b")
        replace(path, key_set(other))
        wait_for_line(server, "reloaded")
        while "user:ann" not in self.check(server, other.token(claims("ann", jti=time.time())))[1]:
            pass  # a reload of the bad file was still to be told

    def test_a_claim_chooses_the_tier(self):
        server = Server(self, POLICY.replace("user: {", "user: {tier: jwt:plan, tiers: {pro: {burst: 5}}, ") +
                        f"jwt: {{secret: {SECRET}, header: X-Token}}\n")
        self.assertEqual(self.authorize(server, {"X-Token": by_secret(claims("ann", plan="pro"))}), (200, "5"))
        self.assertEqual(self.authorize(server, {"X-Token": by_secret(claims("ann"))}), (200, "2"))
        forged = by_secret(claims("ann", plan="pro"), "another secret")
        self.assertEqual(self.authorize(server, {"X-Token": forged}), (200, "1000"), "neither id nor tier")


if __name__ == "__main__":
    unittest.main()
