#!/usr/bin/env python3
"""1,000 WebSockets and 1,000 event streams through the edge proxy, each with a numbered message per second for 30 s: counts what is
missing or out of order, and prints how much memory a stream takes and how much CPU time the proxy used."""

import argparse
import sys
import urllib.request

from proxy_serving import ProxyServer
from server_bench import machine

from streaming import NumberServer, Streams


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=1000, help="of each kind")
    parser.add_argument("--seconds", type=int, default=30)
    options = parser.parse_args()
    print(machine())
    backend = NumberServer(options.seconds)
    # A stream takes a connection to the backend.
    connections = f"proxy: {{backend_connections: {4 * options.streams}}}\n"
    proxy = ProxyServer(backend.url, "limits: {per-ip: {key: ip, rate: 1000000/s}}\n" + connections)
    try:
        cpu = proxy.cpu_seconds()
        seen = Streams(proxy.port, options.streams, options.streams, options.seconds, proxy.resident_bytes).run()
        cpu = proxy.cpu_seconds() - cpu
        with urllib.request.urlopen(f"{backend.url}/wrong", timeout=20) as answer:
            wrong = int(answer.read())
    finally:
        proxy.end()
        backend.end()
    expected = 2 * options.streams * options.seconds
    print(f"{options.streams} WebSockets and {options.streams} event streams, a message per second for {options.seconds} s")
    print(f"messages to clients   {seen.received} of {expected}, faults {len(seen.faults)}")
    print(f"messages to backend   {options.streams * options.seconds - wrong} of {options.streams * options.seconds} in order")
    print(f"memory per stream     {seen.bytes_each / 1024:.1f} KiB (proxy only, both of its connections)")
    print(f"CPU of the proxy      {cpu:.2f} s, {1e6 * cpu / (seen.received + options.streams * options.seconds):.1f} us per message")
    for fault in seen.faults[:10]:
        print("fault:", fault, file=sys.stderr)
    return 0 if not seen.faults and not wrong and seen.received == expected else 1


if __name__ == "__main__":
    sys.exit(main())
