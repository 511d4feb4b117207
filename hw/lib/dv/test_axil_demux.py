# SPDX-License-Identifier: Apache-2.0
"""ns_axil_demux under random traffic."""

from hdl import simulate


def test_axil_demux():
    simulate(
        "axil_demux_tb",
        "cocotb_axil_demux",
        filelists=["hw/lib/lib.f"],
        extra_sources=["axil_demux_tb.sv"],
    )
