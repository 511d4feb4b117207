# SPDX-License-Identifier: Apache-2.0
"""Model of the crash-consistency engine: log format and effects of commands (docs/hardware/nearpm.md)."""

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


def is_later(line, pool, thread, generation, number):
    """Whether a line is a later header, written after all preceding records were persistent."""
    magic, _, *log, maker, generation_there = struct.unpack_from("<4sBBBBQ", line)
    alike = (magic, log, generation_there) == (b"NPMR", [pool, thread], generation)
    return alike and maker != 1 and struct.unpack_from("<I", line, 28)[0] >= number and line == seal(line[:60])


def command(op, pool=0, thread=0, process=0, address=0, size=0, target=0, transaction=0, value=0, extra=0):
    """The 64 bytes of a command."""
    word = op | pool << 8 | thread << 16 | process << 32
    return struct.pack("<8Q", 0, word, address, size, target, transaction, value, extra)


class Pool:
    def __init__(self, process, base, media, size, logs, log_bytes, threads):
        self.key = (process, base, media, size, logs, log_bytes, threads)
        self.process, self.base, self.media, self.size = process, base, media, size
        self.logs, self.log_bytes, self.threads = logs, log_bytes, threads


class Log:
    def __init__(self, generation):
        self.generation = generation
        self.empty()

    def empty(self):
        self.next, self.last, self.records, self.committed = 64, 0, 0, False


class Engine:
    """Executes commands sequentially on `data`, without memory errors."""

    RESERVED = 128 * 1024

    def __init__(self, data):
        self.data = data
        self.pools, self.logs = {}, {}

    def run(self, line):
        """Result and value of the 64 bytes of a command."""
        first, word, address, size, target, transaction, value, extra = struct.unpack("<8Q", line)
        op, pool, thread, process = word & 0xFF, word >> 8 & 0xFF, word >> 16 & 0xFF, word >> 32 & 0xFFFF
        names = {
            POOL_MAP: "asbvx",
            LOG_OPEN: "v",
            UNDO: "as",
            CHECKPOINT: "as",
            REDO: "asb",
            COPY: "asb",
            APPLY: "sbv",
            SWITCH: "bv",
        }.get(op, "")
        known = (
            POOL_MAP,
            POOL_UNMAP,
            LOG_OPEN,
            SYNC,
            *KINDS,
            COMMIT,
            COMMIT_REDO,
            APPLY,
            DELETE,
            ABORT,
            RECOVER,
            COPY,
            SWITCH,
        )
        if first or op not in known or pool > 15 or thread > 15 or word >> 24 & 0xFF or word >> 48:
            return INVALID, 0
        given = {"a": address, "s": size, "b": target, "v": value, "x": extra}
        if any(given[name] for name in given if name not in names):
            return INVALID, 0
        if op == POOL_MAP:
            return self._map(pool, process, address, size, target, transaction, value, extra), 0
        if "s" in names and not 1 <= size <= 65536:
            return INVALID, 0
        if (
            (op == CHECKPOINT and (address | size) % 4096)
            or (op == SWITCH and target % 8)
            or (op == APPLY and value % 64)
        ):
            return INVALID, 0
        if pool not in self.pools:
            return UNMAPPED, 0
        p = self.pools[pool]
        if p.process != process:
            return WRONG_PROCESS, 0
        log = self.logs.get((pool, thread))
        of_log = op not in (POOL_UNMAP, COPY, SWITCH)
        if of_log and thread >= p.threads:
            return UNMAPPED, 0
        if of_log and op not in (SYNC, LOG_OPEN, RECOVER) and log is None:
            return UNMAPPED, 0
        source, to = address - p.base, target - p.base
        if "a" in names and not 0 <= source <= p.size - size:
            return OUT_OF_POOL, 0
        if "b" in names and not 0 <= to <= p.size - (8 if op == SWITCH else size):
            return OUT_OF_POOL, 0
        if op == APPLY and not 64 <= value <= log.next - 64 - padded(size):
            return OUT_OF_POOL, 0
        if op == COPY and source < to + size and to < source + size:
            return INVALID, 0
        if op == LOG_OPEN and log is not None:
            return BUSY, 0
        if log is not None and log.committed and (op in KINDS or op in (COMMIT, ABORT)):
            return BUSY, 0
        if op in KINDS and log.next + 64 + padded(size) > p.log_bytes:
            return LOG_FULL, 0
        return self._do(op, p, pool, thread, log, source, to, size, transaction, value)

    def _map(self, pool, process, base, size, media, logs, log_bytes, threads):
        if (base | size | media | logs) % 4096 or size == 0 or log_bytes % 64 or not 192 <= log_bytes < 1 << 32:
            return INVALID
        if not 1 <= threads <= 16:
            return INVALID
        usable = len(self.data) - self.RESERVED
        if base + size > 1 << 64 or media + size > usable or logs + threads * log_bytes > size:
            return OUT_OF_POOL
        new = Pool(process, base, media, size, logs, log_bytes, threads)
        if any(media < p.media + p.size and p.media < media + size for n, p in self.pools.items() if n != pool):
            return BUSY
        if pool in self.pools:
            return 0 if self.pools[pool].key == new.key else BUSY
        self.pools[pool] = new
        self._close(pool)
        return 0

    def _close(self, pool):
        for thread in range(16):
            self.logs.pop((pool, thread), None)

    def _write(self, at, data):
        self.data[at : at + len(data)] = data

    def _do(self, op, p, pool, thread, log, source, to, size, transaction, value):
        at = p.media + p.logs + thread * p.log_bytes
        old = bytes(self.data[p.media + source : p.media + source + size])
        if op == POOL_UNMAP:
            del self.pools[pool]
            self._close(pool)
        elif op == LOG_OPEN:
            self.logs[pool, thread] = Log(value)
            self._write(at, descriptor(value, transaction=transaction))
        elif op in KINDS:
            place = to if op == REDO else source
            text = record(KINDS[op], pool, thread, log.generation, place, old, log.records, log.last, transaction)
            self._write(at + log.next, text)
            log.last, log.next, log.records = log.next, log.next + len(text), log.records + 1
            return 0, log.last
        elif op in (COMMIT, DELETE):
            return 0, self._end(at, log, transaction)
        elif op == COMMIT_REDO:
            log.committed = True
            self._write(at, descriptor(log.generation, 1, log.records, transaction))
        elif op == APPLY:
            kind, place, payload = self._record(at + value)
            if (kind, place, len(payload)) != (2, to, size):
                raise AssertionError("the model applies records only")
            self._write(p.media + to, payload)
        elif op == ABORT or (op == RECOVER and log is not None):
            redo = log.committed and op == RECOVER
            count = self._back(p, at, log.records, redo)
            self._end(at, log, transaction)
            return 0, count
        elif op == RECOVER:
            return self._recover(p, at, pool, thread, transaction)
        elif op == COPY:
            self._write(p.media + to, old)
        elif op == SWITCH:
            self._write(p.media + to, struct.pack("<Q", value))
        return 0, 0

    def _record(self, at):
        line = bytes(self.data[at : at + 64])
        size = struct.unpack_from("<I", line, 24)[0]
        return line[4], struct.unpack_from("<Q", line, 16)[0], bytes(self.data[at + 64 : at + 64 + size])

    def _end(self, at, log, transaction):
        log.generation += 1
        log.empty()
        self._write(at, descriptor(log.generation, transaction=transaction))
        return log.generation

    def _back(self, p, at, records, redo):
        found, offset = [], 64
        for _ in range(records):
            found.append(self._record(at + offset))
            offset += 64 + padded(len(found[-1][2]))
        count = 0
        for kind, place, payload in found if redo else reversed(found):
            if (kind == 2) == redo:
                self._write(p.media + place, payload)
                count += 1
        return count

    def _recover(self, p, at, pool, thread, transaction):
        """Recovers a closed log from the media alone."""
        line = bytes(self.data[at : at + 64])
        if line[:8] != b"NPMLOG\0\x01" or line != seal(line[:60]):
            return TORN, 0
        generation, state, records = struct.unpack_from("<QII", line, 8)
        offset, previous, number = 64, 0, 0
        limited = bool(state or records)
        while offset + 128 <= p.log_bytes and not (limited and number == records):
            text = bytes(self.data[at + offset : at + offset + 64])
            kind, place, payload = self._record(at + offset)
            size = struct.unpack_from("<I", text, 24)[0]
            transaction_there = struct.unpack_from("<Q", text, 40)[0]
            if not 1 <= size <= 65536 or place + size > p.size or offset + 64 + padded(size) > p.log_bytes:
                break
            wanted = record(kind, pool, thread, generation, place, payload, number, previous, transaction_there)
            if text[:56] != wanted[:56] or kind not in (1, 2, 3):
                break
            previous, number, offset = offset, number + 1, offset + len(wanted)
        if limited and number != records:
            return TORN, 0
        # Without a known count, a later header proves a hole.
        rest = bytes(self.data[at + offset : at + min(p.log_bytes, offset + 64 * 65536)])
        lines = [rest[n : n + 64] for n in range(0, len(rest), 64)]
        if not limited and any(is_later(line, pool, thread, generation, number) for line in lines):
            return TORN, 0
        count = self._back(p, at, number, state == 1)
        self._write(at, descriptor(generation + 1, transaction=transaction))
        return 0, count
