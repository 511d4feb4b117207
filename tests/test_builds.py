"""Tests run devices with assertions, users run devices without; neither gets the other's build."""

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
def test_devices_of_tests_have_assertions():
    assert os.environ["NEARSIDE_CHECKED"] == "1"
    with Device(Design.load("fuzz")) as device:
        assert device.build == "checked"


@pytest.mark.rtl
def test_commands_of_tests_have_assertions(tmp_path):
    command = [sys.executable, "-m", "nearside.cli", "info", "--design", "fuzz", "--json"]
    env = os.environ | {"NEARSIDE_ROOT": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=900, check=True)
    assert json.loads(done.stdout)["build"] == "checked"


class Wanted(Exception):
    """A build has begun."""


def folder(**options) -> Path | None:
    """Where the build of a design is; nothing when it is not there: then its building is ended as it begins."""

    def progress(*_):
        raise Wanted

    try:
        return compile_design(Design.load("fuzz"), progress, **options).parent
    except Wanted:
        return None


@pytest.mark.parametrize("value", [None, "", "0"])
def test_without_the_tests_environment_it_is_another_build(monkeypatch, value):
    checked = folder()
    assert checked is not None
    if value is None:
        monkeypatch.delenv("NEARSIDE_CHECKED")
    else:
        monkeypatch.setenv("NEARSIDE_CHECKED", value)
    assert folder() != checked
    assert folder(checked=True) == checked
    # A hash that names the hardware does not depend on who asks.
    without = Design.load("fuzz").hardware
    monkeypatch.setenv("NEARSIDE_CHECKED", "1")
    assert Design.load("fuzz").hardware == without == checked.name


@pytest.mark.rtl
def test_the_command_lines_option(monkeypatch, capsys):
    monkeypatch.setenv("NEARSIDE_CHECKED", "0")
    monkeypatch.setattr(sys, "argv", ["nearside", "--checked", "info", "--design", "fuzz", "--json"])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert not end.value.code
    assert json.loads(capsys.readouterr().out)["build"] == "checked"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["engines", "default"])
def test_the_top_for_other_tools_stands_by_itself(tmp_path, monkeypatch, capsys, name):
    """Verilator takes the written top and its list, and sets no parameter."""
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


def test_the_top_takes_the_place_of_no_other_file(tmp_path, monkeypatch, capsys):
    (tmp_path / "x.toml").write_text((ROOT / "designs" / "fuzz.toml").read_text().replace('"fuzz"', '"x"'))
    for options in (["--top", "x.toml"], ["--top", "a.sv", "--header", "a.f"], ["--header", "x.toml"]):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["nearside", "build", "--design", "./x.toml", *options])
        with pytest.raises(SystemExit) as end:
            cli.main()
        assert end.value.code == 1
        assert "the same file, too" in capsys.readouterr().err
