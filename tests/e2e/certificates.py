"""Certificates for a test: an authority, and what it signs."""

import os
import subprocess


class Authority:
    """Writes NAME.pem and NAME.key into the directory; its own certificate is ca.pem."""

    def __init__(self, directory, name="ca"):
        self.directory, self.name = directory, name
        self.cert = self.path(name + ".pem")
        self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", self.path(name + ".key"),
                     "-out", self.cert, "-days", "30", "-subj", f"/CN={name}")

    def path(self, name):
        return os.path.join(self.directory, name)

    @staticmethod
    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], check=True, capture_output=True)

    def sign(self, name, names, days=30):
        """`names`: "DNS:a.test,IP:127.0.0.1". Negative `days`: expired. Returns the paths of certificate and key."""
        cert, key, request, extensions = (self.path(name + end) for end in (".pem", ".key", ".csr", ".ext"))
        with open(extensions, "w", encoding="ascii") as file:
            file.write(f"subjectAltName={names}\n")
        self.openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-out", request,
                     "-subj", f"/CN={name}")
        self.openssl("x509", "-req", "-in", request, "-CA", self.cert, "-CAkey", self.path(self.name + ".key"), "-CAcreateserial",
                     "-out", cert, "-days", str(days), "-extfile", extensions)
        return cert, key
