# SPDX-License-Identifier: Apache-2.0
"""A device with two memories: the storage, followed by a local memory with separate channels and timing."""

import random

import pytest
from nearside.device import Design, Device, NearsideError

MIB = 1 << 20
MEDIA = 1024 * MIB
LOCAL = 64 * MIB


@pytest.fixture(scope="module")
def device():
    with Device(Design.load("engines")) as device:
        yield device


def test_memory_list_of_a_device(device):
    memories = device.info()["device"]["memories"]
    places = [(m["name"], m["base"], m["bytes"], m["first_channel"], m["channels"], m["granule"]) for m in memories]
    assert places == [("storage", 0, MEDIA, 0, 2, 4096), ("local", MEDIA, LOCAL, 2, 1, 4096)]
    assert [channel["memory"] for channel in device.delay_get()] == ["storage", "storage", "local"]
    assert [(e["name"], e["local"]) for e in device.engines()] == [("copy0", True), ("copy1", False), ("scan0", False)]


@pytest.mark.parametrize("seed", range(3))
def test_memory_loads_and_stores_reach_each(device, seed):
    """The places of the memories are distinct: also the first and last bytes, and those at equal offsets."""
    rng = random.Random(seed)
    size = 20_000
    offset = rng.randrange(LOCAL - size)
    places = [0, MEDIA - size, MEDIA, MEDIA + LOCAL - size, offset, MEDIA + offset, MEDIA // 2 + offset]
    wanted = {}
    for at in rng.sample(places, len(places)):
        wanted[at] = rng.randbytes(size)
        device.pm_write(at, wanted[at])
    across = rng.randbytes(8000)
    device.pm_write(MEDIA - 4000, across)
    wanted[MEDIA - size] = wanted[MEDIA - size][:-4000] + across[:4000]
    wanted[MEDIA] = across[4000:] + wanted[MEDIA][4000:]
    for at in rng.sample(places, len(places)):
        if at == offset and offset < size:
            continue  # overlaps the first place
        assert device.pm_read(at, size) == wanted[at], hex(at)
    assert device.pm_read(MEDIA - 4000, 8000) == across
    with pytest.raises(NearsideError, match="reach beyond the PM window"):
        device.pm_read(MEDIA + LOCAL - 1, 2)


@pytest.mark.both
def test_memory_engines_copy_between_them(device):
    rng = random.Random(5)
    data = rng.randbytes(MIB)
    device.write(data, offset=8 * MIB)
    engine = device.engine("copy0")
    engine.launch(src=8 * MIB + 5, dst=MEDIA + 3, bytes=MIB - 5)
    assert device.pm_read(MEDIA + 3, MIB - 5) == data[5:]
    engine.launch(src=MEDIA + 3, dst=MEDIA + 2 * MIB + 77, bytes=MIB - 5)
    engine.launch(src=MEDIA + 2 * MIB + 77, dst=16 * MIB, bytes=MIB - 5)
    assert device.read(MIB, offset=16 * MIB)[0][: MIB - 5] == data[5:]
    # A range across the border of both.
    border = rng.randbytes(30_000)
    device.pm_write(MEDIA - 15_000, border)
    engine.launch(src=MEDIA - 15_000, dst=MEDIA + 1_000_001, bytes=30_000)
    assert device.pm_read(MEDIA + 1_000_001, 30_000) == border


@pytest.mark.parametrize(
    ("name", "src", "dst", "length", "wrong"),
    [
        ("copy0", MEDIA + LOCAL - 64, 4 * MIB, 128, ["read_error"]),  # over the end
        ("copy0", 4 * MIB, MEDIA + LOCAL, 64, ["write_error"]),  # past the end
        ("copy0", 2 * MEDIA, 4 * MIB, 64, ["read_error"]),
        ("copy0", 4 * MIB, 3 * MEDIA, 64, ["write_error"]),  # the same bits below
        ("copy0", (1 << 63) + MEDIA, 4 * MIB, 64, ["read_error"]),
        ("copy1", MEDIA, 600 * MIB, 64, ["read_error"]),  # barred by the design
        ("copy1", 600 * MIB, MEDIA, 64, ["write_error"]),
        ("scan0", MEDIA, 0, 64, ["read_error"]),  # has no masters there
    ],
)
def test_memory_engine_bounds_are_kept(device, name, src, dst, length, wrong):
    rng = random.Random(6)
    spans = [(4 * MIB, 4096), (600 * MIB, 4096), (MEDIA, 4096), (MEDIA + LOCAL - 4096, 4096), (0, 4096)]
    for at, size in spans:
        device.pm_write(at, rng.randbytes(size))
    before = [device.pm_read(*span) for span in spans]
    engine = device.engine(name)
    if name == "scan0":
        engine.start(src=src, bytes=length, low=0, high=1, kind=0)
    else:
        engine.start(src=src, dst=dst, bytes=length)
    assert engine.wait() == wrong
    after = [device.pm_read(*span) for span in spans]
    changed = [span for span, old, new in zip(spans, before, after, strict=True) if old != new]
    # The part of a copy within the bounds may be done.
    assert changed == [] or (name, changed) == ("copy0", [(4 * MIB, 4096)])


def test_memory_timing_is_separate(device):
    def mean(start):
        stream = device.pm_stream("load", in_flight=1, count=60, start=start, span=MIB, pause_ns=500)
        return stream["latency"]["mean_ns"]

    device.delay_set("dram")
    device.delay_set("dram", memory="local")
    fast = mean(0), mean(MEDIA)
    assert abs(fast[0] - fast[1]) < 40
    device.delay_set_latency(2000, 900, memory="local")
    assert abs(mean(0) - fast[0]) < 20
    assert mean(MEDIA) > fast[1] + 1800
    device.delay_set_latency(3000, 900)
    device.delay_set("dram", memory="local")
    assert mean(0) > fast[0] + 2800
    assert abs(mean(MEDIA) - fast[1]) < 20
    device.delay_set("dram")
    counters = device.delay_counters(clear=True)
    device.pm_read(MEDIA, 64)
    counters = device.delay_counters(clear=True)
    assert [c["read"]["transactions"] for c in counters] == [0, 0, 1]
    with pytest.raises(NearsideError, match="channel = 1: allowed are 0 to 0"):
        device.delay_set("dram", channel=1, memory="local")
    with pytest.raises(NearsideError, match='memory = "flash": allowed is "storage", "local"'):
        device.delay_set("dram", memory="flash")
    with pytest.warns(UserWarning, match="stt-mram"):
        device.delay_set("stt-mram", memory="local")
    assert device.late_reads is None
    device.delay_set("dram", memory="local")


def test_memory_access_order_spans_both(device):
    """Loads see earlier stores in either memory: posted stores to one, then the other, many at a time."""
    rng = random.Random(7)
    for _ in range(10):
        pieces = []
        for _ in range(20):
            at = rng.choice([0, MEDIA]) + 64 * rng.randrange(64)
            data = rng.randbytes(rng.randint(1, 64))
            device.pm_write(at, data)
            pieces.append((at, data))
        seen = {}
        for at, data in pieces:
            for n, byte in enumerate(data):
                seen[at + n] = byte
        for at in seen:
            assert device.pm_read(at, 1)[0] == seen[at]


def test_memory_local_content_survives_a_controller_reset(device):
    data = random.Random(8).randbytes(5000)
    device.pm_write(MEDIA + 9 * MIB, data)
    device.reset()
    assert device.pm_read(MEDIA + 9 * MIB, 5000) == data
