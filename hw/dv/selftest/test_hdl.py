# SPDX-License-Identifier: Apache-2.0
"""The simulation runner must report passing tests as passed and failing ones as failed."""

import pytest
from hdl import simulate

COUNTER = {"top": "counter", "test_module": "cocotb_counter", "extra_sources": ["counter.sv"]}


def test_runner_passes():
    simulate(**COUNTER, testcase="passes")


@pytest.mark.parametrize("testcase", ["fails", "breaks_assertion"])
def test_runner_fails(testcase):
    with pytest.raises(pytest.fail.Exception, match="1 of 1 cocotb tests failed"):
        simulate(**COUNTER, testcase=testcase)


def test_runner_fails_without_tests():
    with pytest.raises(pytest.fail.Exception, match="0 of 0 cocotb tests"):
        simulate(**COUNTER, testcase="does_not_exist")


def test_runner_stops_a_hang():
    with pytest.raises(pytest.fail.Exception, match="stopped after 1 s of CPU time"):
        simulate(**COUNTER, testcase="hangs", limit_s=1)


def test_runner_fails_on_a_warning():
    with pytest.raises(pytest.fail.Exception, match="building counter failed"):
        simulate(**COUNTER, testcase="passes", parameters={"Limit": "4'd20"})


def test_power_up_rejects_other_values(monkeypatch):
    monkeypatch.setenv("POWER_UP", "twos")
    with pytest.raises(pytest.fail.Exception, match="POWER_UP is 'twos'; it may be zeros, ones, random"):
        simulate(**COUNTER, testcase="passes")
