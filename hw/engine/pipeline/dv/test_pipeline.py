# SPDX-License-Identifier: Apache-2.0
"""The pipeline engine as a block, with small kernels."""

import pytest
from hdl import simulate


@pytest.mark.slow
def test_pipeline():
    simulate(
        "pipeline_tb",
        "cocotb_pipeline",
        filelists=["hw/engine/pipeline/pipeline.f"],
        extra_sources=["pipeline_tb.sv"],
    )
