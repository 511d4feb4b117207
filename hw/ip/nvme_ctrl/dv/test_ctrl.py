# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of the NVMe controller."""

import re

import pytest
from hdl import simulate

SOURCES = {"filelists": ["hw/ip/nvme_ctrl/nvme_ctrl.f"], "extra_sources": ["nvme_ctrl_tb.sv"]}
QUICK = "io_ignored_fields,io_unused_bits,io_malformed,range_commands_stopped_early"


@pytest.mark.slow
def test_ctrl():
    """A small controller: its limits are reached quickly."""
    simulate("nvme_ctrl_tb", "cocotb_ctrl", **SOURCES)


def test_ctrl_io_quick():
    """I/O commands other than Read, Write and Flush, as far as they need little simulation."""
    simulate("nvme_ctrl_tb", "cocotb_ctrl_io", testcase=QUICK, **SOURCES)


@pytest.mark.long
def test_gates_cannot_be_observed(monkeypatch):
    """Tests end at the same time whether the clock of an idle controller stops or not."""
    ends = []
    for bypass in "01":
        monkeypatch.setenv("CLOCK_GATE_BYPASS", bypass)
        results = simulate("nvme_ctrl_tb", "cocotb_ctrl_io", testcase=QUICK, **SOURCES)
        ends.append(re.findall(r'name="sim_time_stop" value="([^"]+)"', results.read_text()))
    assert len(ends[0]) == 4
    assert ends[0] == ends[1]


@pytest.mark.slow
def test_ctrl_io():
    """I/O commands other than Read, Write and Flush."""
    simulate("nvme_ctrl_tb", "cocotb_ctrl_io", **SOURCES)


@pytest.mark.slow
def test_ctrl_data():
    """Descriptions of data by commands."""
    simulate("nvme_ctrl_tb", "cocotb_ctrl_data", **SOURCES)


@pytest.mark.slow
def test_ctrl_fused_statuses():
    """Fused Compare and Write, as far as the plan of coverage needs it: each status of a pair."""
    simulate("nvme_ctrl_tb", "cocotb_ctrl_fused", testcase="fused_pairs,fused_malformed", **SOURCES)


@pytest.mark.long
def test_ctrl_fused():
    """Fused Compare and Write."""
    simulate("nvme_ctrl_tb", "cocotb_ctrl_fused", **SOURCES)


@pytest.mark.parametrize(
    "topic", [*(pytest.param(name, marks=pytest.mark.slow) for name in ("admin", "logs")), "events", "time"]
)
def test_admin(topic):
    """Abort and unused bits, logs, asynchronous events, time; with a number of slots that is no
    power of two."""
    simulate("nvme_ctrl_tb", f"cocotb_{topic}", parameters={"NumSlots": 12}, **SOURCES)


@pytest.mark.slow
def test_queues():
    """Arbitration, shadow doorbells, subsystem reset."""
    simulate("nvme_ctrl_tb", "cocotb_queues", **SOURCES)


def test_doorbell_registers():
    """A controller without Doorbell Buffer Config."""
    simulate("nvme_ctrl_tb", "cocotb_doorbell_registers", parameters={"DoorbellBuffer": "1'b0"}, **SOURCES)


def namespaces(*blocks: int) -> dict[str, object]:
    """The parameters of a controller with namespaces of these sizes."""
    packed = sum(size << 64 * n for n, size in enumerate(blocks))
    return {"NumNamespaces": len(blocks), "NsBlocks": f"1024'h{packed:x}"}


@pytest.mark.slow
def test_namespaces():
    """Five namespaces: sizes that are no multiple of 4 KiB, an inactive one, one of less than a
    page."""
    sizes = (1001, 520, 0, 7, 1200)
    simulate(
        "nvme_ctrl_tb",
        "cocotb_namespaces",
        parameters=namespaces(*sizes),
        env={"NVME_CTRL_NS": " ".join(map(str, sizes))},
        **SOURCES,
    )


def test_format():
    """Format NVM of namespaces of more than one data command."""
    sizes = (65536, 1, 65537, 0, (1 << 20) - 1)
    simulate(
        "nvme_format",
        "cocotb_format",
        filelists=SOURCES["filelists"],
        parameters=namespaces(*sizes),
        env={"NVME_CTRL_NS": " ".join(map(str, sizes))},
    )


@pytest.mark.slow
def test_smart():
    """Minutes of the SMART log."""
    simulate(
        "nvme_log_smart", "cocotb_smart", filelists=SOURCES["filelists"], parameters={"NumSlots": 4, "ClockKhz": 1}
    )


@pytest.mark.long
def test_ctrl_64_queues():
    """64 I/O queue pairs and 65 vectors."""
    simulate(
        "nvme_ctrl_tb",
        "cocotb_ctrl",
        parameters={"NumIoQueues": 64, "QueueEntries": 1024, "NumSlots": 128, "FetchDepth": 32},
        env={"NVME_CTRL_TB": "64 1024 128"},
        testcase="registers,start_like_linux,queue_management,interrupts,io_random_mix_fast",
        **SOURCES,
    )


@pytest.mark.long
def test_ctrl_default():
    """The default size: 16 queue pairs of 1024 entries, 128 slots; eight channels."""
    simulate(
        "nvme_ctrl_tb",
        "cocotb_ctrl",
        parameters={
            "NumIoQueues": 16,
            "QueueEntries": 1024,
            "NumSlots": 128,
            "FetchDepth": 32,
            "NumChannels": 8,
        },
        env={"NVME_CTRL_TB": "16 1024 128"},
        testcase="registers,start_like_linux,identify,queue_management,io_random_mix_fast,slots_exhausted,deep_queue",
        **SOURCES,
    )


@pytest.mark.long
def test_ctrl_channels():
    """16 channels with 4 walkers a direction: the widest host port IDs of these tests."""
    simulate(
        "nvme_ctrl_tb",
        "cocotb_ctrl",
        parameters={"NumChannels": 16},
        testcase="registers,start_like_linux,identify,io_random_mix_fast,slots_exhausted",
        **SOURCES,
    )
