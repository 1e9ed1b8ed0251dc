"""HTTP/2 frames written by hand, for tests that need a client that misbehaves or stands still."""

import socket
import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
END_STREAM, ACK, END_HEADERS = 1, 1, 4


def frame(kind, flags=0, stream=0, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def settings(**values):
    names = {"initial_window_size": 4}
    return frame(SETTINGS, payload=b"".join(struct.pack(">HI", names[name], value) for name, value in values.items()))


def text(value):
    """A string of HPACK (RFC 7541 §5.2) under 127 bytes, not compressed."""
    assert len(value) < 127
    return bytes([len(value)]) + value


def request(stream, path, method=b"GET", fields=(), end=True):
    head = [(b":method", method), (b":scheme", b"http"), (b":authority", b"localhost"), (b":path", path), *fields]
    block = b"".join(b"\0" + text(name) + text(value) for name, value in head)
    return frame(HEADERS, END_HEADERS | (END_STREAM if end else 0), stream, block)


def post(stream, path, body):
    return (request(stream, path, b"POST", [(b"content-type", b"application/json")], end=False)
            + frame(DATA, END_STREAM, stream, body))


class Connection:
    """A client's end. Acknowledges settings; everything else is up to the test."""

    def __init__(self, connection, **announced):
        self.socket = connection
        self.unread = b""
        self.socket.sendall(PREFACE + settings(**announced))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def next(self):
        """The next frame but SETTINGS: kind, flags, stream, payload; None at the end of the connection."""
        while True:
            while len(self.unread) < 9 or len(self.unread) < 9 + int.from_bytes(self.unread[:3], "big"):
                try:
                    piece = self.socket.recv(1 << 16)
                except ConnectionResetError:
                    piece = b""
                if not piece:
                    return None
                self.unread += piece
            size = 9 + int.from_bytes(self.unread[:3], "big")
            kind, flags, stream = struct.unpack(">BBI", self.unread[3:9])
            payload = self.unread[9:size]
            self.unread = self.unread[size:]
            if kind != SETTINGS:
                return kind, flags, stream, payload
            if not flags & ACK:
                self.send(frame(SETTINGS, ACK))

    def until(self, kind, stream=None):
        """Skips to the next frame of this kind."""
        while True:
            found = self.next()
            if found is None:
                raise AssertionError(f"the connection ended before a frame of type {kind}")
            if found[0] == kind and stream in (None, found[2]):
                return found

    def body(self, stream):
        """The rest of a stream's response."""
        content = b""
        while True:
            found = self.next()
            if found is None:
                raise AssertionError("the connection ended in the middle of a response")
            kind, flags, on, payload = found
            if on != stream:
                continue
            if kind == DATA:
                content += payload
            if kind in (DATA, HEADERS) and flags & END_STREAM:
                return content


def connect(port):
    return socket.create_connection(("127.0.0.1", port), timeout=60)
