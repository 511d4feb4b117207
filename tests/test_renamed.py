# SPDX-License-Identifier: Apache-2.0
"""Former names of options, functions and modules: they work for one more release, and warn."""

from __future__ import annotations

import importlib
import inspect
import json
import os
import subprocess
import sys
from pathlib import Path

import guest
import pytest
from nearside import Design, Device, NearsideError, device, fuzzing, kv_server, serve, tables
from nearside.experiments.registry import Run
from nearside.renamed import renamed

ROOT = Path(__file__).resolve().parent.parent
OPTION = "nearside: warning: --engine is deprecated: it is --model now"
VARIABLE = "nearside: warning: NEARSIDE_ENGINE is deprecated: it is NEARSIDE_MODEL now"


@renamed(engine="model")
def called(model="rtl"):
    return model


def nearside(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "nearside.cli", *words]
    others = {key: value for key, value in os.environ.items() if key not in ("NEARSIDE_MODEL", "NEARSIDE_ENGINE")}
    environment = others | {"NEARSIDE_ROOT": str(ROOT)} | environment
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)


def test_renamed_keyword_warns():
    with pytest.warns(DeprecationWarning, match="called: engine is model now"):
        assert called(engine="fast") == "fast"
    with pytest.warns(DeprecationWarning, match="engine is model now"):
        assert called(engine="fast", model="fast") == "fast"
    with (
        pytest.warns(DeprecationWarning, match="engine is model now"),
        pytest.raises(NearsideError, match="model = 'rtl', engine = 'fast': engine is model now"),
    ):
        called(engine="fast", model="rtl")


def test_renamed_present_keyword_does_not_warn(recwarn):
    assert (called("fast"), called(model="fast"), called()) == ("fast", "fast", "rtl")
    assert not recwarn.list


def test_renamed_keyword_of_public_functions():
    with pytest.warns(DeprecationWarning, match="Device: engine is model now") as warned:
        device = Device(Design.load("default"), engine="fast")
    assert warned[0].filename == __file__
    with device:
        assert device.model == "fast"
    with pytest.warns(DeprecationWarning, match="resident: engine"), pytest.raises(NearsideError, match='model = "x"'):
        tables.resident([], engine="x")
    with pytest.warns(DeprecationWarning, match=r"Run\.engine is model now"):
        assert Run("fast").engine == "fast"
    assert "model" in inspect.signature(Device).parameters


def test_renamed_functions_and_types_warn():
    names = {
        tables: {"standing": "resident", "explain_standing": "explain_resident"},
        device: {"Submitted": "SubmittedCommand", "Launched": "RegisterEngine"},
        fuzzing: {"run": "run_campaign"},
        serve: {"run": "serve_until_signal", "pair": "assign_sockets"},
    }
    for module, pairs in names.items():
        for former, present in pairs.items():
            with pytest.warns(DeprecationWarning, match=f"{former} is {present} now") as warned:
                assert getattr(module, former) is getattr(module, present)
            assert warned[0].filename == __file__
    with pytest.raises(AttributeError, match=r"module 'nearside\.tables' has no attribute 'none'"):
        _ = tables.none


def test_renamed_method_warns():
    with Device(Design.load("default"), model="fast") as one:
        begin = one.now_ns
        with pytest.warns(DeprecationWarning, match=r"Device\.rest is advance_time now"):
            one.rest(1000)
        assert one.now_ns == begin + 1000


def test_renamed_module_warns():
    with pytest.warns(DeprecationWarning, match=r"nearside\.front is nearside\.kv_server now"):
        front = importlib.import_module("nearside.front")
    assert front.Front is kv_server.KvServer
    assert front.run is kv_server.serve_until_signal


def test_renamed_option_of_commands():
    done = nearside("info", "--json", "--engine", "fast")
    assert (done.returncode, done.stderr.splitlines()) == (0, [OPTION])
    present = nearside("info", "--json", "--model", "fast")
    assert (present.returncode, present.stderr) == (0, "")
    assert json.loads(done.stdout) == json.loads(present.stdout)
    assert json.loads(done.stdout)["engine"] == "fast"
    assert nearside("info", "--json", "--engine=fast", "--model=fast").returncode == 0


def test_renamed_option_that_contradicts_the_present_one():
    for command in (["info"], ["experiment", "run", "all"], ["table", "list", "--media", "x"]):
        done = nearside(*command, "--engine", "fast", "--model", "rtl")
        error = done.stderr.splitlines()
        assert (done.returncode, done.stdout, error[0]) == (2, "", OPTION)
        assert "--model rtl, --engine fast" in error[-1]


def test_renamed_option_is_not_in_the_help():
    for command in (["info"], ["experiment", "run"], ["pm", "serve"]):
        text = nearside(*command, "--help").stdout
        assert "--model" in text
        assert "--engine" not in text


def test_renamed_variable():
    done = nearside("info", "--json", NEARSIDE_ENGINE="fast")
    assert (done.returncode, done.stderr.splitlines()) == (0, [VARIABLE])
    assert json.loads(done.stdout)["engine"] == "fast"
    done = nearside("info", "--json", NEARSIDE_ENGINE="none", NEARSIDE_MODEL="fast")
    assert (done.returncode, done.stderr) == (0, "")
    done = nearside("info", NEARSIDE_ENGINE="none")
    assert done.returncode != 0
    assert 'NEARSIDE_ENGINE: model = "none"' in done.stderr


def test_renamed_option_of_the_guest(monkeypatch, capsys):
    given = []
    monkeypatch.setattr(guest, "test", lambda seed, model, tasks: given.append(model) or 0)
    for words in ([], ["--model", "rtl"], ["--engine", "rtl"]):
        monkeypatch.setattr(sys, "argv", ["guest.py", "test", *words])
        assert guest.main() == 0
    assert given == ["fast", "rtl", "rtl"]
    assert capsys.readouterr().err == "guest: --engine is deprecated: it is --model now\n"
    monkeypatch.setattr(sys, "argv", ["guest.py", "test", "--engine", "rtl", "--model", "fast"])
    with pytest.raises(SystemExit):
        guest.main()
    assert "--model fast, --engine rtl" in capsys.readouterr().err
