"""Many streams at once and large bodies through the edge proxy. script/bench proxy_streams and proxy_bodies do the same at full
size."""

import unittest
import urllib.request

from proxying import OPEN, Proxy
from streaming import Bodies, NumberServer, Streams, stream_body

STREAMS, SECONDS = 100, 3
BODY_BYTES = 256 << 20


class LongStreams(unittest.TestCase):
    def test_every_stream_delivers_every_number_in_order(self):
        backend = NumberServer(SECONDS)
        self.addCleanup(backend.end)
        proxy = Proxy(self, OPEN.format(url=backend.url))
        seen = Streams(proxy.port, STREAMS, STREAMS, SECONDS, proxy.resident_bytes).run()
        self.assertEqual(seen.faults, [])
        self.assertEqual(seen.received, 2 * STREAMS * SECONDS)
        with urllib.request.urlopen(f"{backend.url}/wrong", timeout=20) as answer:
            self.assertEqual(answer.read(), b"0", "numbers that came back in another order")
        proxy.wait_for_metric("weir_proxy_active 0\n")
        if not proxy.is_sanitized():
            self.assertLess(seen.bytes_each, 64 << 10)


class LargeBodies(unittest.TestCase):
    def test_they_are_streamed_both_ways_in_flat_memory(self):
        backend = Bodies(BODY_BYTES)
        self.addCleanup(backend.end)
        proxy = Proxy(self, OPEN.format(url=backend.url))
        came, grown = stream_body(proxy.port, BODY_BYTES, proxy.resident_bytes)
        self.assertEqual((backend.read, came), (BODY_BYTES, BODY_BYTES))
        # The sanitizer keeps what it was given back.
        self.assertLess(grown, (512 << 20) if proxy.is_sanitized() else (8 << 20))


if __name__ == "__main__":
    unittest.main()
