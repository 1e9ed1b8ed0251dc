"""Long streams and large bodies through a proxy, for tests and for script/bench proxy_streams and proxy_bodies.

A backend numbers its messages and sends one per second on every stream; the client checks that each arrives, in order. On
WebSockets the client sends each number back, and the backend checks those."""

import asyncio
import base64
import hashlib
import os
import re
import socket
import subprocess
import sys
import threading

WEBSOCKET_ID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
MASK = b"\1\2\3\4"
UPGRADE = ("Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
           "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n")


def frame(text, mask=b""):
    """A text frame of fewer than 126 bytes (RFC 6455 5.2); what a client sends is masked."""
    head = bytes([0x81, len(text) | (0x80 if mask else 0)]) + mask
    return head + (bytes(byte ^ mask[i % 4] for i, byte in enumerate(text)) if mask else text)


async def read_frame(reader):
    """The text of one frame; nothing if it closes the connection."""
    head = await reader.readexactly(2)
    mask = await reader.readexactly(4) if head[1] & 0x80 else b""
    text = await reader.readexactly(head[1] & 0x7F)
    if head[0] != 0x81:
        return b""
    return bytes(byte ^ mask[i % 4] for i, byte in enumerate(text)) if mask else text


class Numbers:
    """The backend: `count` numbers on every stream, one per second, then the end of the stream."""

    def __init__(self, count):
        self.count = count
        self.wrong = 0  # numbers that did not come back in order

    async def serve(self, reader, writer):
        try:
            while head := (await reader.readuntil(b"\r\n\r\n")).decode("latin-1"):
                if "\nUpgrade: websocket" in head:
                    await self.socket(head, reader, writer)
                    return
                if head.startswith("GET /wrong "):
                    text = b"%d" % self.wrong
                    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(text), text))
                    continue
                await self.events(writer)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def socket(self, head, reader, writer):
        key = re.search(r"\r\nSec-WebSocket-Key: (\S+)", head, re.IGNORECASE)[1]
        accept = base64.b64encode(hashlib.sha1((key + WEBSOCKET_ID).encode()).digest()).decode()
        writer.write(f"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                     f"Sec-WebSocket-Accept: {accept}\r\n\r\n".encode())
        for number in range(self.count):
            writer.write(frame(b"%d" % number))
            self.wrong += await read_frame(reader) != b"%d" % number
            await asyncio.sleep(1)
        writer.write(b"\x88\0")
        await reader.read()

    async def events(self, writer):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        for number in range(self.count):
            event = b"data: %d\n\n" % number
            writer.write(b"%x\r\n%s\r\n" % (len(event), event))
            await asyncio.sleep(1)
        writer.write(b"0\r\n\r\n")


async def serve_numbers(count):
    server = await asyncio.start_server(Numbers(count).serve, "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await server.serve_forever()


class NumberServer:
    """The backend in a process of its own."""

    def __init__(self, count):
        self.process = subprocess.Popen([sys.executable, __file__, str(count)], stdout=subprocess.PIPE, text=True)
        self.url = f"http://127.0.0.1:{int(self.process.stdout.readline())}"

    def end(self):
        self.process.terminate()
        self.process.wait(20)
        self.process.stdout.close()


class Streams:
    """The client: so many WebSockets and event streams at once. `resident`: returns the proxy's resident bytes."""

    def __init__(self, port, sockets, events, count, resident):
        self.port, self.count, self.resident = port, count, resident
        self.kinds = ["socket"] * sockets + ["event"] * events
        self.received = 0
        self.faults = []  # what came instead of the next number
        self.open = 0
        self.bytes_each = 0

    def run(self):
        asyncio.run(self.run_all())
        return self

    async def run_all(self):
        before = self.resident()
        watch = asyncio.create_task(self.watch(before))
        await asyncio.gather(*(self.stream(kind, i) for i, kind in enumerate(self.kinds)))
        watch.cancel()

    async def watch(self, before):
        """The memory of each stream, at the most."""
        while True:
            await asyncio.sleep(0.5)
            if self.open == len(self.kinds):
                self.bytes_each = max(self.bytes_each, (self.resident() - before) / self.open)

    async def stream(self, kind, index):
        next_number = 0
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
            writer.write(f"GET /{index} HTTP/1.1\r\nHost: h\r\n{UPGRADE if kind == 'socket' else ''}\r\n".encode())
            head = await reader.readuntil(b"\r\n\r\n")
            if not head.startswith(b"HTTP/1.1 101" if kind == "socket" else b"HTTP/1.1 200"):
                raise AssertionError(head)
            self.open += 1
            numbers = self.socket_numbers(reader, writer) if kind == "socket" else self.event_numbers(reader)
            async for number in numbers:
                if number != next_number:
                    self.faults.append((kind, index, next_number, number))
                next_number = number + 1
                self.received += 1
            writer.close()
        except (OSError, asyncio.IncompleteReadError, AssertionError) as fault:
            self.faults.append((kind, index, next_number, repr(fault)))
        if next_number != self.count:
            self.faults.append((kind, index, next_number, "end"))

    async def socket_numbers(self, reader, writer):
        while text := await read_frame(reader):
            writer.write(frame(text, MASK))
            yield int(text)

    async def event_numbers(self, reader):
        while size := int(await reader.readline(), 16):
            event = await reader.readexactly(size + 2)
            yield int(re.fullmatch(rb"data: (\d+)\n\n\r\n", event)[1])


class Bodies:
    """A backend that reads `size` bytes and then sends as many, for one request."""

    def __init__(self, size):
        self.size = size
        self.read = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def serve(self):
        connection, _ = self.listener.accept()
        with connection:
            self.read = read_body(connection, self.size)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % self.size)
            send_body(connection, self.size)

    def end(self):
        self.listener.close()
        self.thread.join(60)


def read_body(connection, size, each=lambda: None):
    """Reads a head and so many bytes behind it; returns how many came. Calls `each` after every 16 MiB."""
    head = b""
    while b"\r\n\r\n" not in head:
        piece = connection.recv(65536)
        if not piece:
            return 0
        head += piece
    count = len(head.split(b"\r\n\r\n", 1)[1])
    buffer = bytearray(1 << 20)
    while count < size:
        got = connection.recv_into(buffer)
        if got == 0:
            break
        if (count + got) >> 24 != count >> 24:
            each()
        count += got
    return count


def send_body(connection, size, each=lambda: None):
    block = bytes(1 << 20)
    for sent in range(0, size, len(block)):
        connection.sendall(block[:size - sent])
        if sent & ((16 << 20) - 1) == 0:
            each()


def stream_body(port, size, resident):
    """Sends a body of so many bytes and reads one. Returns how many came back and by how many bytes the proxy grew at most."""
    before = resident()
    grown = 0

    def sample():
        nonlocal grown
        grown = max(grown, resident() - before)
    with socket.create_connection(("127.0.0.1", port), timeout=120) as connection:
        connection.sendall(b"PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n" % size)
        send_body(connection, size, sample)
        came = read_body(connection, size, sample)
    return came, grown


def resident_bytes(pid):
    with open(f"/proc/{pid}/statm", encoding="ascii") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    asyncio.run(serve_numbers(int(sys.argv[1])))
