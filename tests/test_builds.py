# SPDX-License-Identifier: Apache-2.0
"""Tests run devices with assertions, users run devices without; each uses a separate build."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from nearside import Design, Device, cli
from nearside.device import compile_design

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.rtl
def test_build_has_assertions_for_devices_of_tests():
    assert os.environ["NEARSIDE_CHECKED"] == "1"
    with Device(Design.load("fuzz")) as device:
        assert device.build == "checked"


@pytest.mark.rtl
def test_build_has_assertions_for_commands_of_tests(tmp_path):
    command = [sys.executable, "-m", "nearside.cli", "info", "--design", "fuzz", "--json"]
    env = os.environ | {"NEARSIDE_ROOT": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=900, check=True)
    assert json.loads(done.stdout)["build"] == "checked"


class Wanted(Exception):
    """Raised at the begin of a build."""


def folder(**options) -> Path | None:
    """The path of a design's build, or None if there is none: its compilation is stopped as it begins."""

    def progress(*_):
        raise Wanted

    try:
        return compile_design(Design.load("fuzz"), progress, **options).parent
    except Wanted:
        return None


@pytest.mark.parametrize("value", [None, "", "0"])
def test_build_without_the_test_environment_differs(monkeypatch, value):
    checked = folder()
    assert checked is not None
    if value is None:
        monkeypatch.delenv("NEARSIDE_CHECKED")
    else:
        monkeypatch.setenv("NEARSIDE_CHECKED", value)
    assert folder() != checked
    assert folder(checked=True) == checked
    # The hash of the hardware does not depend on the environment.
    without = Design.load("fuzz").hardware
    monkeypatch.setenv("NEARSIDE_CHECKED", "1")
    assert Design.load("fuzz").hardware == without == checked.name


@pytest.mark.rtl
def test_build_option_checked_selects_assertions(monkeypatch, capsys):
    monkeypatch.setenv("NEARSIDE_CHECKED", "0")
    monkeypatch.setattr(sys, "argv", ["nearside", "--checked", "info", "--design", "fuzz", "--json"])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert not end.value.code
    assert json.loads(capsys.readouterr().out)["build"] == "checked"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["engines", "default"])
def test_build_top_for_other_tools_is_self_contained(tmp_path, monkeypatch, capsys, name):
    """Verilator compiles the written top with its file list, and without parameters."""
    top, header = tmp_path / "device.sv", tmp_path / "map.h"
    arguments = ["build", "--design", name, "--top", str(top), "--header", str(header), "--json"]
    monkeypatch.setattr(sys, "argv", ["nearside", *arguments])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert not end.value.code
    written = json.loads(capsys.readouterr().out)
    assert written["filelist"] == str(tmp_path / "device.f")
    verilator = Path(sys.executable).with_name("verilator")
    command = [verilator, "--lint-only", "-Wno-fatal", "--top", "nearside_top", "-f", tmp_path / "device.f"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    values = Design.load(name).values
    assert f"parameter int unsigned NumSlots = {values['nvme']['slots']}," in top.read_text()
    check = tmp_path / "check.c"
    check.write_text('#include "map.h"\n_Static_assert(NEARSIDE_MEDIA_BYTES == 1 << 30, "");\n')
    subprocess.run(["gcc", "-Wall", "-Werror", "-c", check, "-o", tmp_path / "check.o"], check=True)


def test_build_top_replaces_no_other_file(tmp_path, monkeypatch, capsys):
    (tmp_path / "x.toml").write_text((ROOT / "designs" / "fuzz.toml").read_text().replace('"fuzz"', '"x"'))
    for options in (["--top", "x.toml"], ["--top", "a.sv", "--header", "a.f"], ["--header", "x.toml"]):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["nearside", "build", "--design", "./x.toml", *options])
        with pytest.raises(SystemExit) as end:
            cli.main()
        assert end.value.code == 1
        assert "the same file, too" in capsys.readouterr().err
