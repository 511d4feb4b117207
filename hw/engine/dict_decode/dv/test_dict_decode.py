# SPDX-License-Identifier: Apache-2.0
"""The dictionary decoder as a block: its core, and the whole engine."""

import pytest
from hdl import simulate


# A sample with the larger dictionary, because loads of dictionaries take most of the time.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("dict_bytes", "testcase"),
    [
        (4096, None),
        pytest.param(65536, "decode_all_key_widths,decode_errors_and_stops,decode_rates", marks=pytest.mark.long),
    ],
)
def test_dict_decode(dict_bytes, testcase):
    simulate(
        "dict_decode_tb",
        "cocotb_dict_decode",
        filelists=["hw/engine/dict_decode/dict_decode.f"],
        extra_sources=["dict_decode_tb.sv"],
        parameters={"DictBytes": dict_bytes},
        testcase=testcase,
    )


def test_dict_decode_interfaces():
    simulate(
        "dict_decode_top_tb",
        "cocotb_dict_decode_top",
        filelists=["hw/engine/dict_decode/dict_decode.f"],
        extra_sources=["dict_decode_top_tb.sv"],
    )
