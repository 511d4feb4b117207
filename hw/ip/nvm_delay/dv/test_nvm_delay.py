"""nvm_delay in simulation: `pytest hw/ip/nvm_delay`."""

from hdl import simulate

LISTS = ["hw/ip/nvm_delay/nvm_delay.f"]


def test_quick():
    simulate("nvm_delay", "cocotb_nvm_delay", filelists=LISTS, parameters={"DataWidth": 128})
