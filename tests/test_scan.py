# SPDX-License-Identifier: Apache-2.0
"""The scan engine: counts values between bounds in ranges of the media."""

import random
import struct

import pytest
from nearside.device import Design, Device, NearsideError

MIB = 1 << 20
# Kinds of values: their format in Python, bits.
KINDS = {0: ("I", 32), 1: ("Q", 64), 2: ("i", 32), 3: ("q", 64)}


@pytest.fixture(scope="module")
def device():
    with Device(Design.load("engines")) as device:
        yield device


def scan(device, **arguments):
    engine = device.engine("scan0")
    ns = engine.launch(**arguments)
    return engine.outputs()["count"], ns


def edges(kind):
    """The values near which comparisons may be wrong."""
    _, bits = KINDS[kind]
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if kind & 2 else (0, (1 << bits) - 1)
    words = [1 << 31, (1 << 31) - 1, 1 << 32, (1 << 32) - 1, (1 << 32) + 1, -(1 << 32)]
    near = [low, low + 1, -1, 0, 1, *words, high - 1, high]
    return [value for value in near if low <= value <= high]


@pytest.mark.parametrize("kind", KINDS)
def test_scan_values_of_all_kinds_between_all_bounds(device, kind):
    """Ranges begin and end at any value, within a beat, a granule, or over many."""
    form, bits = KINDS[kind]
    size = bits // 8
    rng = random.Random(kind)
    base = 7 * MIB - 20_000 // size * size
    values = [rng.choice([*edges(kind), rng.choice(edges(kind)) // 3]) for _ in range(40_000 // size)]
    device.pm_write(base, struct.pack(f"<{len(values)}{form}", *values))
    mask = (1 << 64) - 1
    spans = [(0, len(values)), (0, 1), (len(values) - 1, len(values))]
    for _ in range(20):
        first = rng.randrange(len(values))
        most = rng.choice([1, 2, 16, 64, 1024, len(values)])
        spans.append((first, rng.randint(first + 1, min(len(values), first + most))))
    for first, limit in spans:
        low, high = rng.choice(edges(kind)), rng.choice(edges(kind))
        count, _ = scan(
            device,
            src=base + first * size,
            bytes=(limit - first) * size,
            # With 32 bits the upper half of a bound is ignored.
            low=(low & mask) if bits == 64 else (low & 0xFFFF_FFFF) | rng.getrandbits(32) << 32,
            high=(high & mask) if bits == 64 else (high & 0xFFFF_FFFF) | rng.getrandbits(32) << 32,
            kind=kind,
        )
        expected = sum(low <= value <= high for value in values[first:limit])
        assert count == expected, (first, limit, low, high)


def test_scan_blocks_of_nvme_in_parallel_with_nvme(device):
    rng = random.Random(9)
    data = rng.randbytes(MIB)
    device.write(data, offset=130 * MIB)
    engine = device.engine("scan0")
    engine.start(src=130 * MIB, bytes=MIB, low=1 << 30, high=(1 << 31) + 5, kind=0)
    device.engine("copy0").start(src=130 * MIB, dst=140 * MIB, bytes=MIB)
    device.workload(read_percent=50, commands=300, queues=4, depth=8, span=32 * MIB, verify=True)
    assert engine.wait() == []
    values = struct.unpack(f"<{MIB // 4}I", data)
    assert engine.outputs() == {"count": sum(1 << 30 <= value <= (1 << 31) + 5 for value in values)}
    assert device.engine("copy0").wait() == []


def bitmap(values, low, high):
    """Bit n, from the lowest bit of the first byte on: value n lies between the bounds."""
    bits = sum((low <= value <= high) << n for n, value in enumerate(values))
    return bits.to_bytes(-(-len(values) // 8), "little")


@pytest.mark.parametrize("kind", KINDS)
def test_scan_bitmaps_of_all_kinds_of_values(device, kind):
    """Ranges from any beat on, of any number of values, to any place; bytes beside the bitmap stay."""
    form, bits = KINDS[kind]
    size, rng, mask = bits // 8, random.Random(kind), (1 << bits) - 1
    base, room = 7 * MIB, 300_000 // size
    values = [rng.choice(edges(kind)) for _ in range(room)]
    device.pm_write(base, struct.pack(f"<{room}{form}", *values))
    for turn in range(24):
        first = rng.randrange(room) * size // 64 * 64 // size
        most = [1, 2, 8, 16, 17, 1024, 5000, room][turn % 8]
        limit = min(room, first + rng.randint(1, most))
        low, high = sorted(rng.sample(edges(kind), 2))
        dst = 20 * MIB + rng.randrange(0, 20_000, 2 if bits == 32 else 1)
        expected = bitmap(values[first:limit], low, high)
        around = rng.randbytes(len(expected) + 200)
        device.pm_write(dst - 100, around)
        # With 32 bits the 16 bits of a beat are written: the last byte may be zeros.
        written = len(expected) + (bits == 32 and len(expected) % 2)
        arguments = {"src": base + first * size, "bytes": (limit - first) * size, "dst": dst, "kind": kind | 4}
        count, _ = scan(device, **arguments, low=low & mask, high=high & mask)
        assert count == sum(low <= value <= high for value in values[first:limit])
        found = device.pm_read(dst - 100, len(around))
        assert found[100 : 100 + len(expected)] == expected, (first, limit)
        assert found[:100] == around[:100]
        assert found[100 + written :] == around[100 + written :]


@pytest.mark.parametrize(
    ("arguments", "wrong"),
    [
        ({"src": 32}, "invalid"),
        ({"dst": 1}, "invalid"),
        ({"dst": 2**64 - 2}, "invalid"),  # 4 bytes from there on
        ({"dst": 2**64 - 4}, "write_error"),  # up to 2^64
        ({"dst": 1024 * MIB - 2}, "write_error"),
        ({"dst": 2**63}, "write_error"),
    ],
)
def test_scan_bitmaps_without_a_target(device, arguments, wrong):
    engine = device.engine("scan0")
    engine.start(**{"src": 0, "bytes": 128, "low": 0, "high": 0, "kind": 4} | arguments)
    assert engine.wait() == [wrong]
    last = 1024 * MIB - 8
    assert scan(device, src=0, bytes=256, low=0, high=2**32 - 1, kind=4, dst=last)[0] == 64
    assert device.pm_read(last, 8) == b"\xff" * 8


@pytest.mark.both
def test_scan_bitmaps_by_nvme_commands(device):
    rng = random.Random(3)
    values = [rng.getrandbits(8) for _ in range(128 * 77)]
    device.write(struct.pack(f"<{len(values)}I", *values), offset=6 * MIB + 512)
    before = rng.randbytes(4096)
    device.write(before, offset=9 * MIB)
    blocks, page = 77, 9 * MIB // 4096

    def run(lba, blocks, page, kind=0):
        dwords = {"cdw10": lba, "cdw12": blocks - 1, "cdw13": kind | page << 2}
        return device.engine("scan0").command("filter", **dwords, cdw2=100, cdw14=150)

    assert run(6 * MIB // 512 + 1, blocks, page) == sum(100 <= value <= 150 for value in values)
    expected = bitmap(values, 100, 150)
    assert device.read(4096, offset=9 * MIB)[0] == expected + before[len(expected) :]
    last = device.namespace_bytes // 4096 - 1
    assert run(0, 8 * 32, last) >= 0
    assert run(0, 16 * 32, last, kind=1) >= 0
    for lba, count, page, kind, why in [
        (0, 8 * 32 + 1, last, 0, "LBA Out of Range"),
        (0, 16 * 32 + 1, last, 1, "LBA Out of Range"),
        (0, 8, last + 1, 0, "LBA Out of Range"),
        (0, 8, 0, 0, "Invalid Field"),  # the bitmap would lie in the range
        (0, 9, 1, 0, "Invalid Field"),
        (8 + 1, 1, 1, 0, "LBA"),
    ]:
        if why == "LBA":  # the bitmap ends before the range
            assert run(lba, count, page, kind) >= 0
            continue
        with pytest.raises(NearsideError, match=why):
            run(lba, count, page, kind)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "wrong"),
    [
        ({"bytes": 0}, "invalid"),
        ({"src": 2}, "invalid"),
        ({"bytes": 6}, "invalid"),
        ({"src": 4, "kind": 1}, "invalid"),
        ({"bytes": 12, "kind": 3}, "invalid"),
        ({"kind": 8}, "invalid"),
        ({"kind": 1 << 32}, "invalid"),
        ({"src": 2**64 - 64, "bytes": 128}, "invalid"),
        ({"src": 8, "bytes": 2**64 - 8}, "read_error"),  # ends at 2^64
        ({"src": 2**64 - 64, "bytes": 64}, "read_error"),
        ({"src": 2**63, "bytes": 8192}, "read_error"),
        ({"src": 1024 * MIB, "bytes": 4}, "read_error"),
        ({"src": 1024 * MIB - 64, "bytes": 128}, "read_error"),
    ],
)
def test_scan_wrong_ranges_are_reported_and_it_continues(device, arguments, wrong):
    engine = device.engine("scan0")
    engine.start(**{"src": 0, "bytes": 64, "low": 0, "high": 2**64 - 1, "kind": 0} | arguments)
    assert engine.wait() == [wrong]
    assert scan(device, src=1024 * MIB - 4096, bytes=4096, low=0, high=2**64 - 1, kind=1)[0] == 512


def test_scan_can_be_stopped(device):
    engine = device.engine("scan0")
    engine.start(src=0, bytes=512 * MIB, low=0, high=0, kind=0)
    with pytest.raises(NearsideError, match="works already"):
        engine.start(src=0, bytes=64, low=0, high=0, kind=0)
    engine.stop()
    assert engine.wait(timeout_us=10) == ["stopped"]
    engine.stop()  # while idle
    device.pm_write(0, bytes(4096))
    assert scan(device, src=0, bytes=4096, low=0, high=0, kind=0)[0] == 1024


def test_scan_stopped_bitmap_leaves_nothing_to_the_next_one():
    """With a granule above the 4 KiB that a channel reads at a time, a stop leaves parts of a line."""
    with Device(Design.load("engines").with_values('granule = "8 KiB"')) as device:
        engine = device.engine("scan0")
        device.pm_write(32 * MIB, b"\xa5" * 4096)
        stopped = 0
        for n in range(12):
            # Lines of the bitmap do not begin where reads of the range do.
            engine.start(src=0, dst=48 * MIB + 2 + 4 * n, bytes=16 * MIB, low=0, high=0, kind=4)
            device.advance_time(2000 + 137 * n)
            engine.stop()
            stopped += engine.wait() == ["stopped"]
            # 16 zeros make two bytes of ones.
            engine.launch(src=0, dst=32 * MIB + 128 * n + 6, bytes=64, low=0, high=0, kind=4)
            line = device.pm_read(32 * MIB + 128 * n, 128)
            assert line == b"\xa5" * 6 + b"\xff\xff" + b"\xa5" * 120, n
        assert stopped == 12


def halves(value):
    return value & 0xFFFF_FFFF, value >> 32 & 0xFFFF_FFFF


def nvme_count(device, lba, blocks, low, high, kind, nsid=1):
    """The same by an NVMe command."""
    (low_0, low_1), (high_0, high_1), (lba_0, lba_1) = halves(low), halves(high), halves(lba)
    dwords = {"cdw10": lba_0, "cdw11": lba_1, "cdw12": blocks - 1, "cdw13": kind}
    bounds = {"cdw2": low_0, "cdw3": low_1, "cdw14": high_0, "cdw15": high_1}
    return device.engine("scan0").command("count", nsid, **dwords, **bounds)


@pytest.mark.parametrize("kind", KINDS)
def test_scan_nvme_commands_count_the_same(device, kind):
    form, bits = KINDS[kind]
    rng = random.Random(kind)
    mask = (1 << bits) - 1
    data = b"".join(struct.pack(f"<{form}", rng.choice(edges(kind))) for _ in range(8192 * 8 // bits))
    device.write(data, offset=3 * MIB)
    for _ in range(8):
        first = rng.randrange(16)
        blocks = rng.randint(1, 16 - first)
        low, high = rng.choice(edges(kind)), rng.choice(edges(kind))
        values = struct.unpack(f"<{blocks * 4096 // bits}{form}", data[512 * first : 512 * (first + blocks)])
        count = nvme_count(device, 3 * MIB // 512 + first, blocks, low & mask, high & mask, kind)
        assert count == sum(low <= value <= high for value in values)


@pytest.mark.parametrize("profile", ["dram", "optane-dcpmm", "nand"])
def test_scan_nvme_commands_complete_without_registers(device, profile):
    """Without register accesses: the device must not become idle before the entry is posted, however late it is."""
    device.write(struct.pack("<4096I", *range(4096)), offset=4 * MIB)
    device.delay_set(profile)
    try:
        for blocks in (1, 2, 7, 8, 9, 32):
            assert nvme_count(device, 4 * MIB // 512, blocks, 0, 499, 0) == min(500, 128 * blocks)
    finally:
        device.delay_set("dram")


@pytest.mark.both
def test_scan_registers_and_nvme_commands_alternate(device):
    data = struct.pack("<1024I", *range(1024)) * 64
    device.write(data, offset=5 * MIB)
    engine = device.engine("scan0")
    engine.start(src=5 * MIB, bytes=len(data), low=0, high=9, kind=0)
    assert nvme_count(device, 5 * MIB // 512, 8, 0, 99, 0) == 100
    assert engine.wait() == []
    # The registers report their scan only.
    assert engine.outputs() == {"count": 640}


def test_scan_wrong_nvme_commands(device):
    blocks = device.namespace_bytes // 512
    assert nvme_count(device, blocks - 1, 1, 0, (1 << 32) - 1, 0) == 128
    for values, why in [
        ((blocks - 1, 2, 0, 0, 0), "LBA Out of Range"),
        ((blocks, 1, 0, 0, 0), "LBA Out of Range"),
        (((1 << 64) - 1, 2, 0, 0, 0), "LBA Out of Range"),
        ((0, (1 << 24) + 1, 0, 0, 0), "Invalid Field"),
        ((0, 1, 0, 0, 4), "Invalid Field"),
        ((0, 1, 0, 0, 1 << 31), "Invalid Field"),
        ((0, 1, 0, 0, 0, 99), "Invalid Namespace"),
    ]:
        with pytest.raises(NearsideError, match=why):
            nvme_count(device, *values)
    engine = device.engine("scan0")
    for call, why in [
        (lambda: engine.command("counts"), "'counts': scan0 has count, filter"),
        (lambda: engine.command("count", cdw1=1), "cdw1: allowed are cdw2, cdw3, cdw10"),
        (lambda: device.engine("copy0").command("x"), "copy0 has"),
        (lambda: device.native.io_command(2, 1, []), "opcode = 0x2: allowed are vendor specific"),
        (lambda: device.native.io_command(0xC1, 1, []), "opcode = 0xc1: allowed are vendor specific"),
        (lambda: device.native.io_command(0x80, 1, []), "Invalid Command Opcode"),
    ]:
        with pytest.raises(NearsideError, match=why):
            call()
