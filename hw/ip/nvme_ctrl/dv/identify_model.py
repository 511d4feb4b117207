# SPDX-License-Identifier: Apache-2.0
"""Identify and log pages as the specification lays them out (NVMe 1.4, 5.14, 5.15), to compare with
the device."""

from __future__ import annotations

import random
import string
import struct
from dataclasses import dataclass

PAGE = 4096
ERRORS = 64
WARNING_TEMPERATURE = 343  # K


@dataclass(frozen=True)
class Identity:
    """The identity of a device: all its names follow from this."""

    serial: str
    eui64: int  # of namespace 1

    @staticmethod
    def random(rng: random.Random) -> Identity:
        serial = rng.choices(string.ascii_letters + string.digits + "-_.", k=rng.randint(1, 20))
        return Identity("".join(serial), rng.getrandbits(60) << 4)


def page(**fields: bytes) -> bytes:
    """A page of zeros with bytes at offsets: page(_4=b"x", _63=b"y")."""
    data = bytearray(PAGE)
    for name, value in fields.items():
        at = int(name[1:])
        data[at : at + len(value)] = value
    return bytes(data)


def le(size: int, value: int) -> bytes:
    return value.to_bytes(size, "little")


def controller(serial: str, *, vid: int = 0x4E53, aerl: int = 3, nn: int = 1, doorbell_buffer: bool = True) -> bytes:
    return page(
        _0=le(2, vid),  # VID
        _2=le(2, vid),  # SSVID
        _4=serial.encode().ljust(20),  # SN
        _24=b"Nearside NVMe controller".ljust(40),  # MN
        _64=b"1.0".ljust(8),  # FR
        _77=le(1, 8),  # MDTS: 2**8 pages
        _78=le(2, 1),  # CNTLID
        _80=le(4, 0x10400),  # VER, the same as VS
        _84=le(4, 100_000),  # RTD3R
        _88=le(4, 1_000_000),  # RTD3E
        _92=le(4, 1 << 8),  # OAES: namespace attribute notices
        _111=le(1, 1),  # CNTRLTYPE: I/O
        _128=le(2, 1),  # CRDT1: 100 ms
        _256=le(2, 1 << 1 | doorbell_buffer << 8),  # OACS: Format NVM, Doorbell Buffer Config
        _258=le(1, 3),  # ACL
        _259=le(1, aerl),  # AERL
        _260=le(1, 0x03),  # FRMW: one slot, read only
        _261=le(1, 0x06),  # LPA: log 05h, offsets
        _262=le(1, ERRORS - 1),  # ELPE
        _266=le(2, WARNING_TEMPERATURE),  # WCTEMP
        _268=le(2, WARNING_TEMPERATURE + 10),  # CCTEMP
        _320=le(2, 1),  # KAS: 100 ms
        _512=le(1, 0x66),  # SQES
        _513=le(1, 0x44),  # CQES
        _516=le(4, nn),  # NN
        # ONCS: Compare, Dataset Management, Write Zeroes, Save and Select, Timestamp, Verify
        _520=le(2, 1 << 0 | 1 << 2 | 1 << 3 | 1 << 4 | 1 << 6 | 1 << 7),
        _522=le(2, 1),  # FUSES: Compare and Write
        _526=le(2, 0),  # AWUN: 1 block
        _528=le(2, 0),  # AWUPF: 1 block
        _532=le(2, 2047),  # ACWU: 2048 blocks
        _524=le(1, 0),  # FNA: a namespace at a time, no cryptographic erase
        # SGLS: dword granularity, bit buckets, longer than the data
        _536=le(4, 2 | 1 << 16 | 1 << 18),
        _525=le(1, 0x06),  # VWC: none, Flush takes FFFFFFFFh
        _768=b"nqn.2026-11.example.nearside:nvme_ctrl:sn" + serial.encode(),  # SUBNQN
        _2048=struct.pack("<H", 2500),  # PSD0.MP, 25 W
    )


def nguid(eui64: int) -> bytes:
    return bytes.fromhex("02004e564d450000") + eui64.to_bytes(8, "big")


def uuid(eui64: int) -> bytes:
    """Version 8, variant 10b; all other bits are free."""
    value = int.from_bytes(b"Nearsi", "big") << 80 | 0x8465 << 64 | 2 << 62 | eui64 & (1 << 62) - 1
    data = value.to_bytes(16, "big")
    assert data[6] >> 4 == 8
    assert data[8] >> 6 == 2
    return data


def namespace(media_bytes: int, eui64: int) -> bytes:
    blocks = le(8, media_bytes // 512)
    return page(
        _0=blocks,  # NSZE
        _8=blocks,  # NCAP
        _16=blocks,  # NUSE
        _24=le(1, 1 << 1),  # NSFEAT: the following are valid
        _34=le(2, 0),  # NAWUN: as AWUN
        _36=le(2, 0),  # NAWUPF: as AWUPF
        _38=le(2, 0),  # NACWU: as ACWU
        _40=le(2, 0),  # NABSN: no boundary
        _42=le(2, 0),  # NABO
        _44=le(2, 0),  # NABSPF
        _33=le(1, 1 | 1 << 3),  # DLFEAT: deallocated blocks read as zeros; DEAC of Write Zeroes
        _104=nguid(eui64),  # NGUID
        _120=eui64.to_bytes(8, "big"),  # EUI64
        _128=struct.pack("<HBB", 0, 9, 0),  # LBAF0: no metadata, 512 bytes
    )


def namespaces(above: int, active: tuple[int, ...] = (1,)) -> bytes:
    return changed(*(nsid for nsid in active if nsid > above))


def descriptors(eui64: int) -> bytes:
    return page(
        _0=bytes((1, 8, 0, 0)) + eui64.to_bytes(8, "big"),
        _12=bytes((2, 16, 0, 0)) + nguid(eui64),
        _32=bytes((3, 16, 0, 0)) + uuid(eui64),
    )


def command_set() -> bytes:
    """CNS 06h of the NVM command set: Verify and Write Zeroes of up to 2**13 pages; no other
    limit."""
    return page(_0=b"\x0d", _1=b"\x0d")


def independent() -> bytes:
    """CNS 08h: NSTAT, ready."""
    return page(_14=b"\1")


def controllers(*ids: int) -> bytes:
    """A Controller List."""
    return struct.pack(f"<{len(ids) + 1}H", len(ids), *ids).ljust(PAGE, b"\0")


# Logs.


def supported() -> bytes:
    return struct.pack("<6I", *[1] * 6).ljust(1024, b"\0")


def firmware() -> bytes:
    return page(_0=b"\1", _8=b"1.0".ljust(8))[:512]


def effects(doorbell_buffer: bool = True) -> bytes:
    # Format NVM: changes content, and excludes other commands in its namespace.
    admin = dict.fromkeys((0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 0x18), 1) | {0x80: 1 | 1 << 1 | 1 << 16}
    admin[0x7C] = int(doorbell_buffer)
    io = {0: 1, 1: 3, 2: 1, 5: 1, 8: 3, 9: 3, 0xC: 1}
    dwords = [admin.get(op, 0) for op in range(256)] + [io.get(op, 0) for op in range(256)]
    return struct.pack("<512I", *dwords).ljust(PAGE, b"\0")


def smart(
    *,
    units: tuple[int, int] = (0, 0),
    commands: tuple[int, int] = (0, 0),
    media_errors: int = 0,
    errors: int = 0,
    hours: int = 0,
    temperature: int = 308,
    warning: int = 0,
) -> bytes:
    return page(
        _0=le(1, warning),
        _1=le(2, temperature),
        _3=le(1, 100),  # Available Spare
        _32=le(16, units[0]),
        _48=le(16, units[1]),
        _64=le(16, commands[0]),
        _80=le(16, commands[1]),
        _112=le(16, 1),  # Power Cycles
        _128=le(16, hours),
        _160=le(16, media_errors),
        _176=le(16, errors),
    )[:512]


def changed(*nsids: int) -> bytes:
    return struct.pack(f"<{len(nsids)}I", *nsids).ljust(PAGE, b"\0")


def error(count: int, sqid: int, cid: int, status: int, *, phase: int = 0, dnr: bool = True, lba=0, nsid=0) -> bytes:
    """One entry; `status` is SCT << 8 | SC."""
    field = dnr << 15 | status << 1 | phase
    return struct.pack("<QHHHHQI", count, sqid, cid, field, 0xFFFF, lba, nsid).ljust(64, b"\0")
