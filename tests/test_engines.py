# SPDX-License-Identifier: Apache-2.0
"""Engines in a device: launched by their registers, in parallel with NVMe, within their bounds."""

import random

import pytest
from nearside.device import Design, Device, NearsideError

MIB = 1 << 20


@pytest.fixture(scope="module")
def device():
    with Device(Design.load("engines")) as device:
        yield device


def test_engine_list_is_complete(device):
    blocks = [b for b in device.info()["device"]["blocks"] if b["name"] == "copy"]
    engines = device.engines()
    assert [(b["instance"], b["offset"], b["size"]) for b in blocks] == [(0, 0x8_0000, 4096), (1, 0x8_1000, 4096)]
    places = [(e["kind"], e["instance"], e["offset"], e["bytes"]) for e in engines]
    assert places == [("copy", 0, 0x8_0000, 4096), ("copy", 1, 0x8_1000, 4096), ("scan", 0, 0x8_2000, 4096)]
    assert engines[1]["media"] == [512 * MIB, 768 * MIB]


@pytest.mark.both
@pytest.mark.parametrize("seed", range(3))
def test_engine_copies_of_any_alignment_and_length(device, seed):
    rng = random.Random(seed)
    base, span = rng.randrange(64) * MIB, 40_000
    before = rng.randbytes(span)
    device.pm_write(base, before)
    for _ in range(12):
        length = rng.choice([1, 63, 64, 65, 4096, rng.randint(1, 300), rng.randint(1, 15_000)])
        src, dst = rng.randrange(span // 2 - length), span // 2 + rng.randrange(span // 2 - length)
        expected = bytearray(device.pm_read(base, span))
        expected[dst : dst + length] = expected[src : src + length]
        device.engine("copy0").launch(src=base + src, dst=base + dst, bytes=length)
        assert device.pm_read(base, span) == expected, (src, dst, length)


def test_engine_copies_data_of_nvme_for_nvme(device):
    data = random.Random(1).randbytes(MIB)
    device.write(data, offset=3 * MIB)
    device.engine("copy0").launch(src=3 * MIB, dst=5 * MIB, bytes=MIB)
    assert device.read(MIB, offset=5 * MIB)[0] == data


def test_engine_copies_in_parallel_with_nvme(device):
    data = random.Random(2).randbytes(2 * MIB)
    device.write(data, offset=128 * MIB)
    device.pm_write(600 * MIB, data[:MIB])
    one, two = device.engine("copy0"), device.engine("copy1")
    one.start(src=128 * MIB, dst=160 * MIB + 5, bytes=2 * MIB)
    two.start(src=600 * MIB, dst=610 * MIB + 9, bytes=MIB)
    device.workload(read_percent=50, commands=300, queues=4, depth=8, span=32 * MIB, verify=True)
    assert one.wait() == two.wait() == []
    assert device.pm_read(160 * MIB + 5, 2 * MIB) == data
    assert device.pm_read(610 * MIB + 9, MIB) == data[:MIB]


@pytest.mark.parametrize(
    ("src", "dst", "length", "wrong"),
    [
        (0, 513 * MIB, 64, ["read_error"]),  # another namespace
        (512 * MIB - 64, 513 * MIB, 128, ["read_error"]),  # its last bytes
        (513 * MIB, 0, 64, ["write_error"]),
        (513 * MIB, 768 * MIB - 4096, 4097, ["write_error"]),
        (513 * MIB, 768 * MIB, 1, ["write_error"]),
        (2**64 - 64, 513 * MIB, 64, ["read_error"]),
        (513 * MIB, 2**63, 64, ["write_error"]),
        (2**64 - 64, 513 * MIB, 65, ["invalid"]),
        (513 * MIB, 2**64 - 1, 2, ["invalid"]),
        (513 * MIB, 514 * MIB, 0, ["invalid"]),
        (1, 2, 2**64 - 1, ["invalid"]),
    ],
)
def test_engine_stays_within_its_bounds(device, src, dst, length, wrong):
    """Data outside the bounds are neither read nor written, inside the same copy or not."""
    rng = random.Random(4)
    around = [(max(0, at - 8192), 16384) for at in (src, dst) if at < 1024 * MIB - 8192]
    for at, size in around:
        device.pm_write(at, rng.randbytes(size))
    before = {span: device.pm_read(*span) for span in around}
    engine = device.engine("copy1")
    engine.start(src=src, dst=dst, bytes=length)
    assert engine.wait() == wrong
    for (at, size), data in before.items():
        now = device.pm_read(at, size)
        changed = [at + i for i in range(size) if now[i] != data[i]]
        assert all(512 * MIB <= i < 768 * MIB for i in changed)
        assert all(dst <= i < dst + length for i in changed)
    engine.launch(src=513 * MIB, dst=514 * MIB, bytes=4096)  # the engine still works


def test_engine_copy_can_be_stopped(device):
    engine = device.engine("copy0")
    device.pm_write(0, bytes(range(256)) * 16)
    engine.start(src=0, dst=64 * MIB, bytes=32 * MIB)
    with pytest.raises(NearsideError, match="works already"):
        engine.start(src=0, dst=64 * MIB, bytes=64)
    with pytest.raises(NearsideError, match="has not ended in 0 us"):
        engine.wait(timeout_us=0)
    engine.stop()
    assert engine.wait() == ["stopped"]
    assert device.pm_read(64 * MIB, 4096) == bytes(range(256)) * 16
    engine.stop()  # while idle
    assert engine.launch(src=0, dst=64 * MIB, bytes=64) > 0


def nvme_copy(device, source, target, blocks, nsid=1, **dwords):
    """Copies blocks by an NVMe command."""
    values = {"cdw10": source & 0xFFFF_FFFF, "cdw11": source >> 32, "cdw12": blocks - 1}
    values |= {"cdw14": target & 0xFFFF_FFFF, "cdw15": target >> 32}
    return device.engine("copy0").command("copy", nsid, **values | dwords)


@pytest.mark.both
def test_engine_copy_by_nvme_commands(device):
    rng = random.Random(4)
    data = rng.randbytes(256 * 512)
    for nsid in (1, 2):
        device.select_namespace(nsid)
        device.write(data, offset=MIB)
        for source, target, blocks in [(0, 256, 1), (1, 257, 255), (7, 1000, 9), (8, 16, 8)]:
            expected = device.read(blocks * 512, offset=MIB + 512 * source)[0]
            assert nvme_copy(device, 2048 + source, 2048 + target, blocks, nsid) == 0
            assert device.read(blocks * 512, offset=MIB + 512 * target)[0] == expected
    device.select_namespace(1)


def test_engine_copy_by_wrong_nvme_commands_is_refused(device):
    blocks = device.namespace_bytes // 512
    engine = device.engine("copy0")
    # Up to the last block of the namespace.
    assert nvme_copy(device, 0, blocks - 8, 8) == 0
    for values, why in [
        ((0, blocks - 7, 8), "LBA Out of Range"),
        ((blocks - 7, 0, 8), "LBA Out of Range"),
        ((0, (1 << 64) - 4, 8), "LBA Out of Range"),
        ((100, 107, 8), "Invalid Field"),
        ((107, 100, 8), "Invalid Field"),
        ((100, 100, 1), "Invalid Field"),
        ((0, 100, (1 << 24) + 1), "Invalid Field"),
    ]:
        with pytest.raises(NearsideError, match=why):
            nvme_copy(device, *values)
    with pytest.raises(NearsideError, match="Invalid Field"):
        nvme_copy(device, 0, 100, 1, cdw13=1)
    # The second engine of a kind has commands if the design assigns opcodes.
    with pytest.raises(NearsideError, match="copy1 has none"):
        device.engine("copy1").command("copy")
    assert [c["opcode"] for c in engine.values["commands"]] == [0xC4]


def test_engine_registers_and_nvme_commands_alternate(device):
    data = random.Random(5).randbytes(MIB)
    device.write(data, offset=200 * MIB)
    engine = device.engine("copy0")
    engine.start(src=200 * MIB, dst=210 * MIB, bytes=MIB)
    nvme_copy(device, 200 * 2048, 220 * 2048, 2048)
    assert engine.wait() == []
    for target in (210, 220):
        assert device.read(MIB, offset=target * MIB)[0] == data


@pytest.mark.both
def test_engine_survives_a_controller_reset(device):
    engine = device.engine("copy0")
    data = random.Random(5).randbytes(MIB)
    device.pm_write(32 * MIB, data)
    engine.start(src=32 * MIB, dst=40 * MIB, bytes=MIB)
    device.reset()
    assert engine.wait() == []
    assert device.pm_read(40 * MIB, MIB) == data


def test_engine_wrong_names_and_arguments_list_those_allowed(device):
    with pytest.raises(NearsideError, match=r"'copy9': the design engines has copy0, copy1, scan0"):
        device.engine("copy9")
    with pytest.raises(NearsideError, match=r"copy0: bytes, length: its arguments are src, dst, bytes"):
        device.engine("copy0").start(src=0, dst=1, length=3)
    with pytest.raises(NearsideError, match="arguments = 2 of them: engine copy0 takes 3"):
        device.native.engine_start("copy0", [1, 2])
    with pytest.raises(NearsideError, match="timeout_us = 18446744073709551615"):
        device.native.engine_wait("copy0", 2**64 - 1)
    for value in (-1, 2**64, "x", None, 1.5):
        with pytest.raises((NearsideError, TypeError, OverflowError, ValueError)):
            device.engine("copy0").start(src=value, dst=0, bytes=1)


def test_engine_qos_changes_while_the_device_runs(device):
    """All data are right with any credits and weights; values out of range change nothing."""
    first = device.qos()
    assert first == {
        "pm": {"reads": 0, "writes": 0, "weight": 0, "beside": 0},
        "nvme": {"reads": 0, "writes": 0, "weight": 128, "beside": 0},
        "copy0": {"reads": 32, "writes": 32, "weight": 32, "beside": 16},
        "copy1": {"reads": 32, "writes": 32, "weight": 32, "beside": 16},
        "scan0": {"reads": 32, "writes": 32, "weight": 32, "beside": 16},
    }
    data = random.Random(6).randbytes(2 * MIB)
    device.pm_write(64 * MIB, data)
    rng = random.Random(7)
    for turn in range(6):
        device.engine("copy0").start(src=64 * MIB, dst=(70 + 4 * turn) * MIB + 3, bytes=2 * MIB)
        for _ in range(3):
            for master in first:
                values = {key: rng.choice([1, 2, 3, 8, 100]) for key in ("reads", "writes", "weight", "beside")}
                device.set_qos(master, **values)
                assert device.qos()[master] == values
            device.workload(read_percent=50, commands=60, queues=2, depth=8, span=16 * MIB, verify=True, loads_every=9)
        assert device.engine("copy0").wait() == []
        assert device.pm_read((70 + 4 * turn) * MIB + 3, 2 * MIB) == data
    for master, values in first.items():
        device.set_qos(master, reads=values["reads"], writes=values["writes"], beside=values["beside"])
        if master != "pm":
            device.set_qos(master, weight=values["weight"])
    device.set_qos("pm", weight=0)
    assert device.qos() == first
    for master, values, wrong in [
        ("nvme", {"reads": 1024}, "reads = 1024: allowed is 0 to 1023"),
        ("copy0", {"writes": 1024}, "writes = 1024: allowed is 0 to 1023"),
        ("copy0", {"weight": 0}, "weight = 0: allowed is 1 to 255"),
        ("copy0", {"beside": 1024}, "beside = 1024: allowed is 0 to 1023"),
        ("copy1", {"weight": 256}, "weight = 256: allowed is 1 to 255"),
        ("copy2", {}, 'master = "copy2": allowed are pm, nvme, copy0, copy1, scan0'),
    ]:
        with pytest.raises(NearsideError, match=wrong):
            device.set_qos(master, **values)
    assert device.qos() == first
