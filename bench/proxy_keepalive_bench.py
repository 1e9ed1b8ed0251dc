#!/usr/bin/env python3
"""200 requests per second for 10 minutes through the edge proxy to Node's http server, which closes connections that were idle for
5 s: counts the responses by status. Three quarters of the requests come evenly; the others come together every 5 s, give or take
half a second, so that many connections to the backend are reused just when Node closes them. Every second request is a POST, which
no client may send again by itself."""

import argparse
import asyncio
import collections
import random
import subprocess
import sys
import time

from proxy_serving import ProxyServer
from server_bench import machine

BACKEND = """
const server = require('node:http').createServer((request, response) => {
  request.resume();
  request.on('end', () => response.end('ok'));
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
"""


class Client:
    def __init__(self, port):
        self.port = port
        self.statuses = collections.Counter()
        self.kept = []

    async def connection(self):
        """The one used last, unless the proxy has closed it: it keeps idle connections for two minutes."""
        while self.kept:
            reader, writer = self.kept.pop()
            if not reader.at_eof():
                return reader, writer
            writer.close()
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def request(self, number):
        text = f"GET /{number} HTTP/1.1\r\nHost: h\r\n\r\n"
        if number % 2:
            text = f"POST /{number} HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi"
        try:
            reader, writer = await self.connection()
            writer.write(text.encode())
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]) if b"ontent-" in head else None
            if length is None:  # chunked
                while int(await reader.readline(), 16):
                    await reader.readline()
                await reader.readline()
            else:
                await reader.readexactly(length)
            self.statuses[head.split(b" ")[1].decode()] += 1
            self.kept.append((reader, writer))
        except (OSError, asyncio.IncompleteReadError) as fault:
            self.statuses[type(fault).__name__] += 1

    async def run(self, rate, seconds):
        began = time.monotonic()
        tasks, number, burst_at = set(), 0, 5.0
        even = rate * 3 // 4
        for tick in range(even * seconds):
            due = began + tick / even
            while (wait := due - time.monotonic()) > 0:
                await asyncio.sleep(wait)
            count = 1
            if time.monotonic() - began >= burst_at:
                count += rate * 5 // 4
                burst_at += 5 + random.uniform(-0.5, 0.5)
            for _ in range(count):
                number += 1
                task = asyncio.create_task(self.request(number))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
        await asyncio.gather(*tasks)
        for _, writer in self.kept:
            writer.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=int, default=200)
    parser.add_argument("--seconds", type=int, default=600)
    options = parser.parse_args()
    print(machine())
    backend = subprocess.Popen(["node", "-e", BACKEND], stdout=subprocess.PIPE, text=True)
    proxy = ProxyServer(f"http://127.0.0.1:{int(backend.stdout.readline())}")
    client = Client(proxy.port)
    try:
        asyncio.run(client.run(options.rate, options.seconds))
    finally:
        proxy.end()
        backend.terminate()
        backend.wait(20)
        backend.stdout.close()
    print(f"{sum(client.statuses.values())} requests in {options.seconds} s: "
          + ", ".join(f"{count} x {status}" for status, count in sorted(client.statuses.items())))
    return 0 if set(client.statuses) == {"200"} else 1


if __name__ == "__main__":
    sys.exit(main())
