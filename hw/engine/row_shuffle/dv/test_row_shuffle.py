# SPDX-License-Identifier: Apache-2.0
"""The gather engine's core as a block."""

import pytest
from hdl import simulate


@pytest.mark.slow
@pytest.mark.parametrize("id_bits", [4, 3])
def test_row_shuffle(id_bits):
    simulate(
        "row_shuffle_tb",
        "cocotb_row_shuffle",
        filelists=["hw/engine/row_shuffle/row_shuffle.f"],
        extra_sources=["row_shuffle_tb.sv"],
        parameters={"IdBits": id_bits},
    )
