# SPDX-License-Identifier: Apache-2.0
"""ns_dma by itself."""

import pytest
from hdl import simulate


@pytest.mark.parametrize("burst", [1024, pytest.param(128, marks=pytest.mark.slow)])
def test_dma(burst):
    simulate(
        "dma_tb",
        "cocotb_dma",
        filelists=["hw/lib/lib.f"],
        extra_sources=["stable_check.sv", "dma_tb.sv"],
        parameters={"BurstBytes": burst},
        testcase=None if burst == 1024 else "every_alignment,random_commands,errors",
    )
