# SPDX-License-Identifier: Apache-2.0
"""The crash-consistency engine: a unit alone, and the whole engine."""

import subprocess

import pytest
from hdl import ROOT, simulate


@pytest.fixture(scope="module", autouse=True)
def reference_model():
    """Builds the model that nearpm_model.py loads."""
    command = ["cargo", "build", "--locked", "--profile", "checked", "--target-dir", "build/nearpm_model"]
    crate = ["-p", "nearside-nearpm-model", "--example", "nearpm_model_c"]
    subprocess.run([*command, *crate], cwd=ROOT, check=True)


@pytest.mark.slow
def test_unit():
    simulate(
        "nearpm_unit_tb",
        "cocotb_nearpm_unit",
        filelists=["hw/engine/nearpm/nearpm_unit.f"],
        extra_sources=["nearpm_unit_tb.sv"],
    )


UNITS = pytest.mark.parametrize(
    "units",
    [
        pytest.param(4, marks=pytest.mark.slow),
        pytest.param(1, marks=pytest.mark.long),
        pytest.param(7, marks=pytest.mark.long),
    ],
)


def run(module, units, **parameters):
    simulate(
        "nearpm_tb",
        module,
        filelists=["hw/engine/nearpm/nearpm.f"],
        extra_sources=["nearpm_tb.sv"],
        parameters={"Units": units} | parameters,
    )


@UNITS
def test_nearpm(units):
    run("cocotb_nearpm", units)


@UNITS
def test_nearpm_copies(units):
    run("cocotb_nearpm_copies", units)


@UNITS
def test_nearpm_progress(units):
    run("cocotb_nearpm_progress", units)


@UNITS
def test_nearpm_faults(units):
    run("cocotb_nearpm_faults", units)


@UNITS
def test_nearpm_tracked(units):
    run("cocotb_nearpm_tracked", units)


@pytest.mark.long
@pytest.mark.parametrize("module", ["cocotb_nearpm_faults", "cocotb_nearpm_tracked"])
def test_units_that_share_rates(module):
    """Seven units on four rates: three pairs, and one alone."""
    run(module, 7, UnitLines=213, RateUnits=2)


@pytest.mark.long
def test_units_sixteen_complete_at_once():
    """The largest number of units complete their commands at once."""
    simulate(
        "nearpm_tb",
        "cocotb_nearpm",
        filelists=["hw/engine/nearpm/nearpm.f"],
        extra_sources=["nearpm_tb.sv"],
        parameters={"Units": 16},
        testcase="refusal_not_delayed_by_completions",
    )
