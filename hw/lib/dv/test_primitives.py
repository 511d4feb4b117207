# SPDX-License-Identifier: Apache-2.0
"""The primitives of hw/lib."""

import pytest
from hdl import simulate

LIB = ["hw/lib/lib.f"]


@pytest.mark.parametrize(
    ("style", "depth"), [("reg", 1), ("reg", 5), ("lutram", 2), ("lutram", 16), ("bram", 1), ("bram", 2), ("bram", 5)]
)
def test_fifo(style, depth):
    latency = 2 if style == "bram" else 1
    simulate(
        "ns_fifo",
        "cocotb_stream",
        filelists=LIB,
        parameters={"Width": 8, "Depth": depth, "Style": f'"{style}"'},
        env={"DEPTH": str(depth), "LATENCY": str(latency), "COUNT": "1"},
    )


@pytest.mark.parametrize(("depth", "latency"), [(2, 1), (64, 1), (600, 2)])
def test_fifo_auto(depth, latency):
    """Latency identifies the selected variant."""
    simulate(
        "ns_fifo",
        "cocotb_stream",
        filelists=LIB,
        parameters={"Width": 8, "Depth": depth},
        env={"DEPTH": str(depth), "LATENCY": str(latency), "COUNT": "1"},
    )


def test_skid():
    simulate(
        "ns_skid",
        "cocotb_stream",
        filelists=LIB,
        parameters={"Width": 8},
        env={"DEPTH": "2", "LATENCY": "1", "COUNT": "0"},
    )


@pytest.mark.parametrize("n", [1, 3, 8])
def test_arbiter(n):
    simulate("ns_rr_arbiter", "cocotb_arbiter", filelists=LIB, parameters={"N": n}, env={"N": str(n)})


def test_arbiter_weighted():
    simulate("ns_wrr_arbiter", "cocotb_wrr", filelists=LIB, parameters={"N": 4})


@pytest.mark.parametrize(("piece", "most"), [(8, 32), (64, 128)])
def test_read_interleaver(piece, most):
    simulate(
        "read_interleaver_tb",
        "cocotb_read_interleaver",
        filelists=LIB,
        extra_sources=["stable_check.sv", "read_interleaver_tb.sv"],
        parameters={"PieceBeats": piece, "MaxBeats": most},
        env={"PIECE_BEATS": str(piece), "MAX_BEATS": str(most)},
    )


@pytest.mark.parametrize("style", ["auto", "reg", "lutram", "bram", "uram"])
def test_ram_1r1w(style):
    simulate(
        "ns_ram_1r1w",
        "cocotb_ram",
        filelists=LIB,
        parameters={"Width": 32, "Depth": 12, "Style": f'"{style}"'},
        env={"DEPTH": "12"},
    )


@pytest.mark.parametrize(("bypass", "testcase"), [("0", "pulses"), ("1", "bypass_runs_always")])
def test_clock_gate(monkeypatch, bypass, testcase):
    monkeypatch.setenv("CLOCK_GATE_BYPASS", bypass)
    simulate("ns_clock_gate", "cocotb_clock_gate", filelists=LIB, testcase=testcase)


def test_reset_sync():
    simulate("ns_reset_sync", "cocotb_reset_sync", filelists=LIB)
