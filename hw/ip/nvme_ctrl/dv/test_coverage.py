# SPDX-License-Identifier: Apache-2.0
"""The check of the functional coverage: what a run needs to pass (conftest.py)."""

import importlib.util
import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

BLOCK = Path(__file__).parents[1]


def reported() -> list[str]:
    """The controller's tests as pytest reports them, without long ones."""
    text = (BLOCK / "dv" / "test_ctrl.py").read_text()
    tests = re.findall(r"^((?:@.*\n)*)def (test_\w+)", text, re.MULTILINE)
    return [
        f"dv/test_ctrl.py::{name}{'[case]' if 'parametrize' in marks else ''}"
        for marks, name in tests
        if "long" not in marks
    ]


@pytest.fixture
def judge(tmp_path, monkeypatch):
    """Runs the check over counts, with all or only some of the controller's tests passed."""
    spec = importlib.util.spec_from_file_location("judged_conftest", BLOCK / "conftest.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    parts = tmp_path / "parts"
    parts.mkdir()
    monkeypatch.setattr(module, "PARTS", parts)
    plan = module.nvme_coverage.plan()

    def run(missing: set[tuple[str, str]], whole: bool) -> tuple:
        counts = [(group, name, 1) for group, names in plan.items() for name in names if (group, name) not in missing]
        (parts / "part-1.json").write_text(json.dumps(counts))
        collector = module.Collector()
        if whole:
            for test in reported():
                collector.pytest_runtest_logreport(SimpleNamespace(when="call", passed=True, nodeid=test))
        session = SimpleNamespace(exitstatus=0)
        collector.pytest_sessionfinish(session)
        return session.exitstatus, collector

    run.plan = plan
    return run


def test_all_bins_hit(judge):
    status, collector = judge(set(), whole=True)
    assert status == 0
    assert collector.missed == 0


def test_a_missed_bin_fails_the_whole_run(judge):
    group = next(iter(judge.plan))
    name = judge.plan[group][0]
    status, collector = judge({(group, name)}, whole=True)
    assert status == pytest.ExitCode.TESTS_FAILED
    assert collector.missed == 1
    assert f"  not hit: {group}: {name}" in collector.text


def test_a_part_of_the_tests_is_not_judged(judge):
    group = next(iter(judge.plan))
    status, collector = judge({(group, judge.plan[group][0])}, whole=False)
    assert status == 0
    assert collector.missed == 0
    assert "not judged" in collector.text[0]
