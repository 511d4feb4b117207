# SPDX-License-Identifier: Apache-2.0
"""nvm_delay in simulation: `pytest hw/ip/nvm_delay`. The test plan is in docs/hardware/nvm_delay.md."""

import pytest
from hdl import simulate

LISTS = ["hw/ip/nvm_delay/nvm_delay.f"]
NARROW = {"DataWidth": 128}  # the same logic with less to move


@pytest.mark.slow
def test_quick():
    simulate("nvm_delay", "cocotb_nvm_delay", filelists=LISTS, parameters=NARROW)


@pytest.mark.parametrize("slots", [32, 128])
def test_sizes(slots):
    """Other numbers of slots: all of them in use, and random traffic."""
    simulate(
        "nvm_delay",
        "cocotb_nvm_delay",
        filelists=LISTS,
        parameters=NARROW | {"ReadSlots": slots, "WriteSlots": slots},
        env={"SLOTS": str(slots)},
        testcase="many_outstanding,registers,random_traffic",
    )


def test_many_writes():
    """The largest number of writes."""
    simulate(
        "nvm_delay",
        "cocotb_nvm_delay",
        filelists=LISTS,
        parameters=NARROW | {"ReadSlots": 128, "WriteSlots": 512},
        env={"SLOTS": "128", "WRITE_SLOTS": "512"},
        testcase="many_outstanding,registers,random_traffic",
    )


def test_counters():
    """The counters of one direction alone."""
    simulate("nvm_delay_stats", "cocotb_nvm_delay_stats", filelists=LISTS)


@pytest.mark.slow
def test_long():
    """Millisecond delays and long random traffic."""
    simulate(
        "nvm_delay",
        "cocotb_nvm_delay",
        filelists=LISTS,
        parameters=NARROW,
        env={"SLOW": "1"},
        testcase="long_delays,random_traffic_long",
    )


@pytest.mark.slow
def test_axi_models():
    """Full width, between independent models."""
    simulate("nvm_delay", "cocotb_nvm_delay_axi", filelists=LISTS)
