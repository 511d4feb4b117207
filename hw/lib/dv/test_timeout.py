"""The completion timeout by itself."""

import pytest
from hdl import simulate


@pytest.mark.parametrize(
    ("id_bits", "ids"),
    [
        (5, (0x00, 0x15, 0x1F)),
        pytest.param(8, (0x00, 0x4F, 0x8B, 0xFF), marks=pytest.mark.slow),
    ],
)
def test_timeout(id_bits, ids):
    cycles = 4 << id_bits
    simulate(
        "ns_axi_timeout_ids",
        "cocotb_timeout",
        filelists=["hw/lib/lib.f"],
        parameters={"IdBits": id_bits, "Cycles": cycles},
        env={"ID_BITS": str(id_bits), "CYCLES": str(cycles), "IDS": ",".join(map(str, ids))},
    )
