"""The scan engine: counts values between bounds in ranges of the media."""

import random
import struct

import pytest
from nearside.device import Design, Device, NearsideError

pytestmark = pytest.mark.slow

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
    """The values next to which comparisons go wrong."""
    _, bits = KINDS[kind]
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if kind & 2 else (0, (1 << bits) - 1)
    words = [1 << 31, (1 << 31) - 1, 1 << 32, (1 << 32) - 1, (1 << 32) + 1, -(1 << 32)]
    near = [low, low + 1, -1, 0, 1, *words, high - 1, high]
    return [value for value in near if low <= value <= high]


@pytest.mark.parametrize("kind", KINDS)
def test_values_of_all_kinds_between_all_bounds(device, kind):
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
            # With 32 bits the upper half of a bound says nothing.
            low=(low & mask) if bits == 64 else (low & 0xFFFF_FFFF) | rng.getrandbits(32) << 32,
            high=(high & mask) if bits == 64 else (high & 0xFFFF_FFFF) | rng.getrandbits(32) << 32,
            kind=kind,
        )
        expected = sum(low <= value <= high for value in values[first:limit])
        assert count == expected, (first, limit, low, high)


def test_blocks_that_nvme_wrote_beside_an_nvme_workload(device):
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


@pytest.mark.parametrize(
    ("arguments", "wrong"),
    [
        ({"bytes": 0}, "invalid"),
        ({"src": 2}, "invalid"),
        ({"bytes": 6}, "invalid"),
        ({"src": 4, "kind": 1}, "invalid"),
        ({"bytes": 12, "kind": 3}, "invalid"),
        ({"kind": 4}, "invalid"),
        ({"kind": 1 << 32}, "invalid"),
        ({"src": 2**64 - 64, "bytes": 128}, "invalid"),
        ({"src": 8, "bytes": 2**64 - 8}, "read_error"),  # ends at 2^64
        ({"src": 2**64 - 64, "bytes": 64}, "read_error"),
        ({"src": 2**63, "bytes": 8192}, "read_error"),
        ({"src": 1024 * MIB, "bytes": 4}, "read_error"),
        ({"src": 1024 * MIB - 64, "bytes": 128}, "read_error"),
    ],
)
def test_wrong_ranges_are_told_and_it_works_on(device, arguments, wrong):
    engine = device.engine("scan0")
    engine.start(**{"src": 0, "bytes": 64, "low": 0, "high": 2**64 - 1, "kind": 0} | arguments)
    assert engine.wait() == [wrong]
    assert scan(device, src=1024 * MIB - 4096, bytes=4096, low=0, high=2**64 - 1, kind=1)[0] == 512


def test_a_scan_can_be_stopped(device):
    engine = device.engine("scan0")
    engine.start(src=0, bytes=512 * MIB, low=0, high=0, kind=0)
    with pytest.raises(NearsideError, match="works already"):
        engine.start(src=0, bytes=64, low=0, high=0, kind=0)
    engine.stop()
    assert engine.wait(timeout_us=10) == ["stopped"]
    engine.stop()  # of what does not work
    device.pm_write(0, bytes(4096))
    assert scan(device, src=0, bytes=4096, low=0, high=0, kind=0)[0] == 1024


def halves(value):
    return value & 0xFFFF_FFFF, value >> 32 & 0xFFFF_FFFF


def nvme_count(device, lba, blocks, low, high, kind, nsid=1):
    """The same by an NVMe command."""
    (low_0, low_1), (high_0, high_1), (lba_0, lba_1) = halves(low), halves(high), halves(lba)
    dwords = {"cdw10": lba_0, "cdw11": lba_1, "cdw12": blocks - 1, "cdw13": kind}
    bounds = {"cdw2": low_0, "cdw3": low_1, "cdw14": high_0, "cdw15": high_1}
    return device.engine("scan0").command("count", nsid, **dwords, **bounds)


@pytest.mark.parametrize("kind", KINDS)
def test_nvme_commands_count_the_same(device, kind):
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
def test_nvme_commands_end_by_themselves(device, profile):
    """Nobody reads a register meanwhile: the device must not rest before the entry is posted, however late it is."""
    device.write(struct.pack("<4096I", *range(4096)), offset=4 * MIB)
    device.delay_set(profile)
    try:
        for blocks in (1, 2, 7, 8, 9, 32):
            assert nvme_count(device, 4 * MIB // 512, blocks, 0, 499, 0) == min(500, 128 * blocks)
    finally:
        device.delay_set("dram")


def test_registers_and_nvme_commands_take_turns(device):
    data = struct.pack("<1024I", *range(1024)) * 64
    device.write(data, offset=5 * MIB)
    engine = device.engine("scan0")
    engine.start(src=5 * MIB, bytes=len(data), low=0, high=9, kind=0)
    assert nvme_count(device, 5 * MIB // 512, 8, 0, 99, 0) == 100
    assert engine.wait() == []
    # What the registers tell is of their own scan.
    assert engine.outputs() == {"count": 640}


def test_wrong_nvme_commands(device):
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
        (lambda: engine.command("counts"), "'counts': scan0 has count"),
        (lambda: engine.command("count", cdw1=1), "cdw1: allowed are cdw2, cdw3, cdw10"),
        (lambda: device.engine("copy0").command("x"), "copy0 has"),
        (lambda: device.native.io_command(2, 1, []), "opcode = 0x2: allowed are vendor specific"),
        (lambda: device.native.io_command(0xC1, 1, []), "opcode = 0xc1: allowed are vendor specific"),
        (lambda: device.native.io_command(0x80, 1, []), "Invalid Command Opcode"),
    ]:
        with pytest.raises(NearsideError, match=why):
            call()
