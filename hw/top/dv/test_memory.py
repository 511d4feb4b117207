"""The memory of the shell beside its device."""

from hdl import simulate


def test_stopped_memory():
    simulate(
        "memory_tb",
        "cocotb_memory",
        filelists=["hw/top/shell.f"],
        extra_sources=["memory_tb.sv"],
    )
