"""The completion timeout by itself."""

import pytest
from hdl import simulate


@pytest.mark.parametrize(
    ("high", "low", "ids"),
    [
        (2, 3, (0x00, 0x45, 0xC7)),  # a few bits at both ends
        pytest.param(8, 4, (0x00, 0x4F, 0x8B, 0xFF), marks=pytest.mark.slow),  # all of them
    ],
)
def test_timeout(high, low, ids):
    cycles = 4 << min(high + low, 8)
    simulate(
        "nvme_timeout",
        "cocotb_timeout",
        filelists=["hw/ip/nvme_ctrl/nvme_ctrl.f"],
        parameters={"HighBits": high, "LowBits": low, "Cycles": cycles},
        env={"CYCLES": str(cycles), "IDS": ",".join(map(str, ids))},
    )
