"""Envoy's rate limit service as bytes: protobuf messages, gRPC's prefix, and the HTTP/2 frames that carry a call."""

import struct

import http2_frames as h2

METHOD = b"/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"
OK, OVER_LIMIT = 1, 2


def varint(number):
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def field(number, value):
    """Bytes are length-delimited, a number is a varint."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def request(*descriptors, domain="edge", hits=0):
    """Each descriptor is a list of (key, value)."""
    out = field(1, domain.encode())
    for entries in descriptors:
        out += field(2, b"".join(field(1, field(1, key.encode()) + field(2, value.encode())) for key, value in entries))
    return out + (field(3, hits) if hits else b"")


def prefixed(message, compressed=False):
    return bytes([compressed]) + struct.pack(">I", len(message)) + message


def head(stream, fields=(), path=METHOD):
    return h2.request(stream, path, b"POST", [(b"content-type", b"application/grpc"), (b"te", b"trailers"), *fields], end=False)


def call(stream, message, fields=(), compressed=False, path=METHOD):
    return head(stream, fields, path) + h2.frame(h2.DATA, h2.END_STREAM, stream, prefixed(message, compressed))


def parse(message):
    """Field number to its values: numbers and bytes."""
    fields = {}
    at = 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        tag = number()
        value = number()
        if tag & 7 == 2:
            value, at = message[at:at + value], at + value
        fields.setdefault(tag >> 3, []).append(value)
    return fields


def decision(body):
    """The overall code and each status as (code, limit_remaining)."""
    assert body[:5] == prefixed(body[5:])[:5], "one message that is not compressed"
    response = parse(body[5:])
    statuses = [parse(status) for status in response.get(2, [])]
    return response[1][0], [(status[1][0], status.get(3, [0])[0]) for status in statuses]
