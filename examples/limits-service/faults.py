"""Makes the limits service misbehave on purpose, to see what Weir does then. `--faults` turns it on.

    curl -X PUT localhost:8080/faults -d '{"hang": true}'       # accept and never answer, until the next PUT
    curl -X PUT localhost:8080/faults -d '{"delay": 0.3}'       # seconds
    curl -X PUT localhost:8080/faults -d '{"status": 503}'      # over gRPC: UNAVAILABLE
    curl -X PUT localhost:8080/faults -d '{"body": "nonsense"}' # instead of the answer, bytes as Latin-1
    curl -X PUT localhost:8080/faults -d '{"cut": 5}'           # hang up 5 bytes before the end (HTTP)
    curl -X PUT localhost:8080/faults -d '{"headers": {"Cache-Control": "max-age=1"}}'
    curl -X PUT localhost:8080/faults -d '{"answer": {"average": 7}}'   # replaces fields; null removes one
    curl -X PUT localhost:8080/faults -d '{"keys": ["acme"], "status": 500}'   # only for these keys
    curl -X PUT localhost:8080/faults -d '{}'                   # behave
    curl localhost:8080/calls                                   # how many, for which keys, at most at once
"""

import collections
import dataclasses
import json
import threading
import time

KEYS_COUNTED_MAX = 100_000


@dataclasses.dataclass
class Failure:
    """A response that is not the tenant's answer."""

    status: int
    body: bytes
    headers: dict
    cut: int


class Faults:
    """Which faults are on, and the calls so far. Thread-safe."""

    def __init__(self, enabled):
        self.enabled = enabled
        self.changed = threading.Condition()
        self.set_fields({})
        self.total = 0
        self.at_once = 0
        self.at_once_max = 0
        self.by_key = collections.Counter()
        self.last = None

    def set(self, fields):
        """Replaces all faults. Calls that hang go on."""
        with self.changed:
            self.set_fields(fields)
            self.changed.notify_all()

    def set_fields(self, fields):
        self.fields = fields
        self.headers = fields.get("headers", {})
        self.generation = object()

    def calls(self):
        with self.changed:
            return {"total": self.total, "at_once": self.at_once, "at_once_max": self.at_once_max, "by_key": self.by_key,
                    "last": self.last}

    def apply(self, request, answer):
        """answer(request), or what the faults make of it: a Failure."""
        if not self.enabled:
            return answer(request)
        with self.changed:
            self.total += 1
            self.at_once += 1
            self.at_once_max = max(self.at_once_max, self.at_once)
            self.last = request
            if len(self.by_key) < KEYS_COUNTED_MAX:
                self.by_key[request.get("key", "")] += 1
        try:
            return self.disturb(request, answer)
        finally:
            with self.changed:
                self.at_once -= 1

    def disturb(self, request, answer):
        with self.changed:
            fields, generation = self.fields, self.generation
            if fields.get("hang") and self.hits(request):
                self.changed.wait_for(lambda: self.generation is not generation)
                fields = self.fields
            if "keys" in fields and request.get("key") not in fields["keys"]:
                fields = {"headers": self.headers}
        time.sleep(fields.get("delay", 0))
        response = answer(request)
        if response is not None and "answer" in fields:
            response = {name: value for name, value in {**response, **fields["answer"]}.items() if value is not None}
        if not fields.keys() & {"status", "body", "cut"}:
            return response
        body = fields["body"].encode("latin-1") if "body" in fields else json.dumps(response).encode()
        return Failure(fields.get("status", 200), body, fields.get("headers", {}), fields.get("cut", 0))

    def hits(self, request):
        return "keys" not in self.fields or request.get("key") in self.fields["keys"]
