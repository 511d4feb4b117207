# SPDX-License-Identifier: Apache-2.0
"""Sums up the functional coverage of the controller's tests after they have run.

Each simulation writes its counts to build/coverage/nvme_ctrl/ (dv/nvme_coverage.py). Their sum is
printed as a table and written to build/coverage/nvme_ctrl.json and .md. If every test of the
controller has run and passed, including slow ones and except long ones, a bin of the plan without a
hit fails the run.
"""

from __future__ import annotations

import importlib.util
import json
import re
from collections import Counter
from pathlib import Path

import pytest

HERE = Path(__file__).parent
spec = importlib.util.spec_from_file_location("nvme_coverage", HERE / "dv" / "nvme_coverage.py")
nvme_coverage = importlib.util.module_from_spec(spec)
spec.loader.exec_module(nvme_coverage)
PARTS = nvme_coverage.PARTS


class Collector:
    """Lives in the process that starts the tests, not in pytest-xdist's workers."""

    def __init__(self) -> None:
        self.passed: set[str] = set()
        self.text: list[str] = []
        self.missed = 0

    def pytest_runtest_logreport(self, report) -> None:
        if report.when == "call" and report.passed:
            self.passed.add(report.nodeid.split("::")[-1].split("[")[0])

    def whole(self) -> bool:
        """Every test that drives the controller has passed, except long ones."""
        text = (HERE / "dv" / "test_ctrl.py").read_text()
        tests = re.findall(r"^((?:@.*\n)*)def (test_\w+)", text, re.MULTILINE)
        return {name for marks, name in tests if "mark.long" not in marks} <= self.passed

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session) -> None:
        parts = sorted(PARTS.glob("part-*.json"))
        if not parts:
            return
        hits: Counter[tuple[str, str]] = Counter()
        for part in parts:
            for group, name, count in json.loads(part.read_text()):
                hits[group, name] += count
        plan, whole = nvme_coverage.plan(), self.whole()
        rows = {group: [(name, hits[group, name]) for name in names] for group, names in plan.items()}
        others: dict[str, list[tuple[str, int]]] = {}
        for (group, name), count in sorted(hits.items()):
            if name not in plan.get(group, ()):
                others.setdefault(group, []).append((name, count))
        missed = [(group, name) for group, bins in rows.items() for name, count in bins if not count]
        self.missed = len(missed) if whole else 0
        total = sum(map(len, rows.values()))
        title = f"functional coverage of nvme_ctrl: {total - len(missed)} of {total} bins of the plan hit"
        if not whole:
            title += " (not judged: not all of the controller's tests have run and passed)"
        self.text = [title]
        for group, bins in rows.items():
            hit = sum(count > 0 for _, count in bins)
            self.text.append(f"  {group:20} {hit:4} of {len(bins):3}, {sum(count for _, count in bins):8} times")
        self.text += [f"  not hit: {group}: {name}" for group, name in missed] if whole else []
        folder = PARTS.parent
        folder.mkdir(parents=True, exist_ok=True)
        content = {"whole": whole, "plan": rows, "others": others}
        (folder / f"{PARTS.name}.json").write_text(json.dumps(content, indent=1) + "\n")
        table = [f"# {title[0].upper()}{title[1:]}", "", "| group | bin | times |", "|---|---|---|"]
        table += [
            f"| {group} | {name} | {count or '**none**'} |" for group, bins in rows.items() for name, count in bins
        ]
        table += ["", "Known holes, not in the plan:", "", *(f"- {name}" for name in sorted(nvme_coverage.HOLES))]
        table += ["", "Beyond the plan:", "", "| group | bin | times |", "|---|---|---|"]
        table += [f"| {group} | {name} | {count} |" for group, bins in others.items() for name, count in bins]
        (folder / f"{PARTS.name}.md").write_text("\n".join(table) + "\n")
        if self.missed and session.exitstatus == 0:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter) -> None:
        for line in self.text:
            terminalreporter.write_line(line)
        if self.missed:
            terminalreporter.write_line(f"{self.missed} bins of the plan were not hit: the run has failed", red=True)


def pytest_configure(config) -> None:
    if not hasattr(config, "workerinput"):
        for part in PARTS.glob("part-*.json"):
            part.unlink()
        config.pluginmanager.register(Collector(), "nvme_coverage")
