# SPDX-License-Identifier: Apache-2.0
"""ns_axi_mux and ns_axi_xbar under random traffic, and their throughput in cycles."""

import pytest
from hdl import simulate

LIB = ["hw/lib/lib.f"]
SOURCES = ["stable_check.sv", "read_check.sv", "axi_tb.sv"]


def env(masters, slaves, granule, size, mux):
    return {"MASTERS": masters, "SLAVES": slaves, "GRANULE": granule, "BYTES": size, "MUX": int(mux)}


@pytest.mark.parametrize(
    ("masters", "slaves", "granule", "order_bits"),
    [
        (3, 2, 8192, 1),
        pytest.param(4, 4, 4096, 4, marks=pytest.mark.slow),
        pytest.param(1, 4, 4096, 4, marks=pytest.mark.long),
        pytest.param(2, 1, 4096, 4, marks=pytest.mark.long),
    ],
)
def test_xbar(masters, slaves, granule, order_bits):
    parameters = {"NumMasters": masters, "NumSlaves": slaves, "Granule": granule, "OrderBits": order_bits}
    size = 3 * 8 * 8192
    simulate(
        "axi_tb",
        "cocotb_axi",
        filelists=LIB,
        extra_sources=SOURCES,
        parameters=parameters | {"Bytes": f"64'h{size:x}"},
        env={k: str(v) for k, v in env(masters, slaves, granule, size, False).items()},
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "masters", [pytest.param(1, marks=pytest.mark.long), 3, pytest.param(4, marks=pytest.mark.long)]
)
def test_mux(masters):
    simulate(
        "axi_tb",
        "cocotb_axi",
        filelists=LIB,
        extra_sources=SOURCES,
        parameters={"Mux": 1, "NumMasters": masters, "NumSlaves": 1},
        env={k: str(v) for k, v in env(masters, 1, 4096, 3 * 8 * 8192, True).items()},
    )


@pytest.mark.parametrize(
    ("n", "beats"), [(2, 1), *(pytest.param(*p, marks=pytest.mark.long) for p in [(1, 1), (4, 16), (2, 64)])]
)
def test_xbar_throughput(n, beats):
    simulate(
        "xbar_rate",
        "cocotb_xbar_rate",
        filelists=LIB,
        extra_sources=["xbar_rate.sv"],
        parameters={"N": n, "Beats": beats},
        env={"N": str(n), "BEATS": str(beats)},
    )


def test_axi_fill():
    """Zeros on request, between writes of a master."""
    simulate("axi_fill_tb", "cocotb_axi_fill", filelists=LIB, extra_sources=["axi_fill_tb.sv"])


@pytest.mark.parametrize("kind", [pytest.param(0, marks=pytest.mark.long), pytest.param(1, marks=pytest.mark.long), 2])
def test_axi_fabric(kind):
    """Eight masters on a multiplexer, on two stages of them, on a crossbar after these; few IDs at the memories."""
    simulate(
        "fabric_tb",
        "cocotb_fabric",
        filelists=LIB,
        extra_sources=["stable_check.sv", "fabric_tb.sv"],
        parameters={"Kind": kind},
        env={"KIND": str(kind)},
    )
