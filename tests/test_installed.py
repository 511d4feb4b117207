# SPDX-License-Identifier: Apache-2.0
"""The installed package runs designs without a checkout, and says in one line what needs one."""

from __future__ import annotations

import json
import os
import subprocess
import sys


def nearside(folder, *arguments: str) -> subprocess.CompletedProcess:
    """Runs a command where no checkout is looked for."""
    command = [sys.executable, "-m", "nearside.cli", *arguments]
    environment = os.environ | {"NEARSIDE_ROOT": ""}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


def test_installed_package_runs_its_designs_on_the_fast_model(tmp_path):
    done = nearside(tmp_path, "info", "--design", "nearpm", "--model", "fast", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["build"] == "fast"


def test_installed_package_names_what_needs_a_checkout(tmp_path):
    done = nearside(tmp_path, "info", "--design", "nearpm", "--model", "rtl", "--json")
    assert done.returncode != 0
    assert "nearside: this needs a checkout of Nearside" in done.stderr
    assert len(done.stderr.splitlines()) == 1
