"""Logs of the crash-consistency engine on the media, and the whole of what its commands do, as README.md says it."""

import struct

(POOL_MAP, POOL_UNMAP, LOG_OPEN, SYNC) = (1, 2, 3, 4)
(UNDO, REDO, CHECKPOINT) = (0x10, 0x11, 0x12)
(COMMIT, COMMIT_REDO, APPLY, DELETE, ABORT, RECOVER) = (0x18, 0x19, 0x1A, 0x1B, 0x1C, 0x1D)
(COPY, SWITCH) = (0x20, 0x21)
READ_ERROR, WRITE_ERROR, INVALID, UNMAPPED, WRONG_PROCESS, OUT_OF_POOL, LOG_FULL, TORN, BUSY = (
    1 << n for n in range(9)
)
KINDS = {UNDO: 1, REDO: 2, CHECKPOINT: 3}

_TABLE = []
for _n in range(256):
    for _ in range(8):
        _n = _n >> 1 ^ (0x82F63B78 if _n & 1 else 0)
    _TABLE.append(_n)


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def padded(count):
    return -(-count // 64) * 64


def seal(line):
    line = line.ljust(60, b"\0")
    return line + struct.pack("<I", crc32c(line))


def descriptor(generation, state=0, records=0, transaction=0):
    return seal(struct.pack("<8sQIIQ", b"NPMLOG\0\x01", generation, state, records, transaction))


def header(kind, pool, thread, generation, place, payload, number, previous, transaction):
    payload_crc = crc32c(payload.ljust(padded(len(payload)), b"\0"))
    return seal(
        struct.pack(
            "<4sBBBBQQIIQQQI",
            *(b"NPMR", kind, pool, thread, 0, generation, place, len(payload), number, previous, transaction, 0),
            payload_crc,
        )
    )


def record(kind, pool, thread, generation, place, payload, number, previous, transaction):
    """Header and payload."""
    first = header(kind, pool, thread, generation, place, payload, number, previous, transaction)
    return first + payload.ljust(padded(len(payload)), b"\0")
