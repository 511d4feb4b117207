# SPDX-License-Identifier: Apache-2.0
"""The completion timeout by itself."""

import pytest
from hdl import simulate


@pytest.mark.parametrize(
    ("id_bits", "ids", "cycles"),
    [
        (5, (0x00, 0x15, 0x1F), 128),
        pytest.param(8, (0x00, 0x4F, 0x8B, 0xFF), 1024, marks=pytest.mark.slow),
    ],
)
def test_timeout(id_bits, ids, cycles):
    bursts = 4
    simulate(
        "ns_axi_timeout_channel",
        "cocotb_timeout",
        filelists=["hw/lib/lib.f"],
        parameters={"IdBits": id_bits, "Cycles": cycles, "MaxBursts": bursts},
        env={
            "ID_BITS": str(id_bits),
            "CYCLES": str(cycles),
            "BURSTS": str(bursts),
            "IDS": ",".join(map(str, ids)),
        },
    )
