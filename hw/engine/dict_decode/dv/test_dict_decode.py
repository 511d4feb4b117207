"""The dictionary decoder by itself."""

import pytest
from hdl import simulate


@pytest.mark.parametrize("dict_bytes", [4096, 65536])
def test_dict_decode(dict_bytes):
    simulate(
        "dict_decode_tb",
        "cocotb_dict_decode",
        filelists=["hw/engine/dict_decode/dict_decode.f"],
        extra_sources=["dict_decode_tb.sv"],
        parameters={"DictBytes": dict_bytes},
    )


def test_ways_to_start_it():
    simulate(
        "dict_decode_top_tb",
        "cocotb_dict_decode_top",
        filelists=["hw/engine/dict_decode/dict_decode.f"],
        extra_sources=["dict_decode_top_tb.sv"],
    )
