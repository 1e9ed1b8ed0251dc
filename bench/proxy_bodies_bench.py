#!/usr/bin/env python3
"""A body of 5 GB through the edge proxy, to the backend and back: prints throughput and by how much the proxy grew."""

import argparse
import sys
import time

from proxy_serving import ProxyServer
from server_bench import machine

from streaming import Bodies, stream_body


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=5000)
    options = parser.parse_args()
    print(machine())
    size = options.megabytes * 1_000_000
    backend = Bodies(size)
    proxy = ProxyServer(backend.url)
    try:
        cpu, began = proxy.cpu_seconds(), time.monotonic()
        came, grown = stream_body(proxy.port, size, proxy.resident_bytes)
        seconds, cpu = time.monotonic() - began, proxy.cpu_seconds() - cpu
    finally:
        proxy.end()
        backend.end()
    print(f"body to the backend   {backend.read} of {size} bytes")
    print(f"body to the client    {came} of {size} bytes")
    print(f"throughput            {2 * size / seconds / 1e6:.0f} MB/s, {1e9 * cpu / (2 * size):.2f} ns of CPU per byte")
    print(f"growth of the proxy   {grown / 1024:.0f} KiB")
    return 0 if (backend.read, came) == (size, size) and grown < 8 << 20 else 1


if __name__ == "__main__":
    sys.exit(main())
