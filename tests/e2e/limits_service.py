"""The example limits service of examples/limits-service as a process of its own, ended with the test."""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import urllib.request

from redis_servers import free_port

EXAMPLE = pathlib.Path(__file__).resolve().parents[2] / "examples" / "limits-service"
PYTHON = "/usr/bin/python3"  # Debian's, which has Debian's gRPC

TENANTS = {
    "default": {"average": 1000, "burst": 1000, "period": "1s"},
    "tenants": {
        "free": {"average": 3, "burst": 3, "period": "1h"},
        "acme": {"average": 100, "burst": 40, "period": "1h", "tenant_key": "acme-corp"},
        "acme-staging": {"average": 100, "burst": 40, "period": "1h", "tenant_key": "acme-corp"},
        "internal": {"average": 0, "burst": 1, "period": "1s"},
        "open": {"average": 100, "burst": 100, "period": "1h", "failure_policy": "passThrough"},
        "closed": {"average": 100, "burst": 100, "period": "1h", "failure_policy": "failClosed", "failure_code": 503},
    },
}


class LimitsService:
    """Killed, started again on the same port, paused, and made to misbehave."""

    def __init__(self, test, tenants=None, grpc=False, tls=None):
        self.test = test
        self.directory = tempfile.mkdtemp(prefix="weir-limits-")
        test.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)
        self.tenants = os.path.join(self.directory, "tenants.json")
        with open(self.tenants, "w", encoding="utf-8") as file:
            json.dump(tenants or TENANTS, file)
        self.port = free_port()
        self.grpc_port = free_port() if grpc else None
        self.tls = tls
        self.process = None
        test.addCleanup(self.end)
        self.start()

    def start(self):
        command = [PYTHON, str(EXAMPLE / "limits_service.py"), "--http", f"127.0.0.1:{self.port}", "--faults"]
        if self.grpc_port:
            command += ["--grpc", f"127.0.0.1:{self.grpc_port}"]
        if self.tls:
            command += ["--tls", *self.tls]
        self.process = subprocess.Popen([*command, self.tenants], stdout=subprocess.PIPE, text=True)
        ready = self.process.stdout.readline()
        assert re.match("ready: ", ready), "the service did not start: " + ready

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(timeout=30)
        self.process.stdout.close()

    def end(self):
        if self.process.poll() is None:
            self.kill()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/limits"

    def faults(self, **fields):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/faults", json.dumps(fields).encode(), method="PUT")
        with urllib.request.urlopen(request, timeout=20):
            pass

    def calls(self, key=None):
        """All there is to know, or how many for one key."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/calls", timeout=20) as answer:
            calls = json.load(answer)
        return calls if key is None else calls["by_key"].get(key, 0)
