"""The dictionary decoder by itself."""

import pytest
from hdl import simulate


# With the larger dictionary a sample: most of its time goes into dictionaries that are read.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("dict_bytes", "testcase"),
    [(4096, None), pytest.param(65536, "all_widths,errors_and_stops,rates", marks=pytest.mark.long)],
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


def test_ways_to_start_it():
    simulate(
        "dict_decode_top_tb",
        "cocotb_dict_decode_top",
        filelists=["hw/engine/dict_decode/dict_decode.f"],
        extra_sources=["dict_decode_top_tb.sv"],
    )
