# SPDX-License-Identifier: Apache-2.0
"""The reference model of the engine (crates/nearpm_model), and its lines: commands, descriptors, records."""

import ctypes
import struct

from filelist import ROOT

(POOL_MAP, POOL_UNMAP, LOG_OPEN, SYNC) = (1, 2, 3, 4)
(UNDO, REDO, CHECKPOINT, UNDO_RANGES, CHECKPOINT_RANGES) = (0x10, 0x11, 0x12, 0x13, 0x14)
(COMMIT, COMMIT_REDO, APPLY, DELETE, ABORT, RECOVER) = (0x18, 0x19, 0x1A, 0x1B, 0x1C, 0x1D)
(COPY, SWITCH) = (0x20, 0x21)
READ_ERROR, WRITE_ERROR, INVALID, UNMAPPED, WRONG_PROCESS, OUT_OF_POOL, LOG_FULL, TORN, BUSY = (
    1 << n for n in range(9)
)
KINDS = {UNDO: 1, REDO: 2, CHECKPOINT: 3}

# Built by test_nearpm.py.
MODEL = ctypes.CDLL(str(ROOT / "build/nearpm_model/checked/examples/libnearpm_model_c.so"))
MODEL.nearpm_new.restype = ctypes.c_void_p


def padded(count):
    return -(-count // 64) * 64


def longs(*values):
    return (ctypes.c_uint64 * len(values))(*values)


def seal(line):
    """60 bytes of a descriptor or header, and their CRC."""
    sealed = ctypes.create_string_buffer(line, 64)
    MODEL.nearpm_seal(sealed)
    return sealed.raw


def descriptor(generation, state=0, records=0, transaction=0):
    line = ctypes.create_string_buffer(64)
    MODEL.nearpm_descriptor(longs(generation, state, records, transaction), line)
    return line.raw


def record(kind, pool, thread, generation, place, payload, number, previous, transaction):
    """Header and payload. The kind may be one that no record has."""
    line, fields = ctypes.create_string_buffer(64), (pool, thread, generation, place, number, previous, transaction)
    MODEL.nearpm_header(longs(*fields), payload, ctypes.c_size_t(len(payload)), line)
    return seal(line.raw[:4] + bytes([kind]) + line.raw[5:60]) + payload.ljust(padded(len(payload)), b"\0")


def command(op, pool=0, thread=0, process=0, address=0, size=0, target=0, transaction=0, value=0, extra=0, ranges=None):
    """The 64 bytes of a command. `ranges`: offset and bytes of each, up to seven, instead of the arguments."""
    word = op | pool << 8 | thread << 16 | process << 32
    if ranges is None:
        return struct.pack("<8Q", 0, word, address, size, target, transaction, value, extra)
    filled = [*ranges, *[(0, 0)] * (7 - len(ranges))]
    # Each word has a byte of the transaction.
    words = [at | size << 40 | (transaction >> 8 * n & 0xFF) << 56 for n, (at, size) in enumerate(filled)]
    return struct.pack("<8Q", words[0], word | len(ranges) << 24, *words[1:])


class Engine:
    """The model on the memory `data`, a bytearray that the bench may change too."""

    RESERVED = 128 * 1024

    def __init__(self, data):
        self.data = data
        self.memory = (ctypes.c_char * len(data)).from_buffer(data)
        self.engine = ctypes.c_void_p(MODEL.nearpm_new(ctypes.c_uint64(len(data) - self.RESERVED)))

    def run(self, line):
        """Result and value of the 64 bytes of a command."""
        words = struct.unpack("<8Q", line)
        value, size = ctypes.c_uint64(), ctypes.c_size_t(len(self.data))
        result = MODEL.nearpm_execute(self.engine, self.memory, size, longs(*words), ctypes.byref(value))
        return result, value.value
