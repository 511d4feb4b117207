# SPDX-License-Identifier: Apache-2.0
"""Names of files and other external texts are printed literally: without markup and emoji.

Bytes that are not text, or not in the encoding of the output, are escaped; where text is needed,
one line reports it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from nearside import accuracy, demo, fuzzing, latency, plots, show, trace, wire

ROOT = Path(__file__).resolve().parent.parent
# As markup, the first would raise an error, the second would vanish, and the third is an emoji.
NAMES = ["[/x]", "[red]", ":smile:"]


def command(*arguments: str | bytes) -> list[str | bytes]:
    return [sys.executable, "-m", "nearside.cli", *arguments]


def environment(**more: str) -> dict[str, str]:
    return os.environ | {"NEARSIDE_ROOT": str(ROOT)} | more


def trace_of(*names: str) -> str:
    entry = {"queue": 1, "blocks": 1, "status": 0, "times_ps": {"doorbell": 0, "fetch": 1000}}
    return "".join(json.dumps(entry | {"command": name}) + "\n" for name in names)


@pytest.fixture
def printed(tmp_path):
    def run(*arguments: str, **more: str) -> str:
        env = environment(**more)
        done = subprocess.run(command(*arguments), cwd=tmp_path, env=env, capture_output=True, text=True, timeout=900)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_output_names_files_and_folders(tmp_path, printed, name):
    profile, results = f"{name}.toml", {"NEARSIDE_RESULTS": f"./{name}"}
    (tmp_path / profile).parent.mkdir(exist_ok=True)
    (tmp_path / profile).write_text((ROOT / "media/pcm.toml").read_text())
    (tmp_path / f"{name}.jsonl").write_text(trace_of(name))
    out = printed("claim", "run", "dram.row_latency", **results)
    assert f"Results: {name}/claims.json\n" in out
    out = printed("claim", "report", f"{name}/claims.json", "-o", f"{name}.md")
    assert out == f"{name}.md: written from {name}/claims.json\n"
    out = printed("latency", "--commands", "1", "--profile", f"./{profile}", **results)
    assert f"4 KiB read, one at a time, ./{profile}: means of 1" in out
    assert f"Results: {name}/latency.json\nPlot:    {name}/latency.png\n" in out
    rows = printed("trace", f"{name}.jsonl", "--plot", f"{name}.png").splitlines()
    assert {row.split("│")[1].strip() for row in rows if row.startswith("│")} == {name}
    assert (tmp_path / f"{name}.png").stat().st_size


@pytest.mark.slow
def test_output_names_demonstration(tmp_path, printed):
    name = "".join(NAMES).replace("/", "") + ".bin"
    folder = "".join(NAMES)
    (tmp_path / name).write_bytes(b"x" * 5000)
    out = printed("demo", name, NEARSIDE_RESULTS=folder)
    assert out.startswith(f"{name} (4.883 KiB) through 4 NVMe queues\n")
    assert f"Results: {folder}/demo.json\nPlot:    {folder}/demo.png\n" in out


def test_output_names_served_sockets(tmp_path):
    names = [f"{name.replace('/', '')}.sock" for name in NAMES]
    options = [word for name in names for word in ("--socket", name)]
    process = subprocess.Popen(
        command("serve", "fuzz", *options), cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 900  # the design may have to be compiled
    while not all((tmp_path / name).is_socket() for name in names):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=600)
    assert process.returncode == 0
    header = out.split("served")[-1].splitlines()[2]
    assert [cell.strip() for cell in header.split("┃")[2:-1]] == names


@pytest.mark.parametrize("name", NAMES)
def test_output_names_tables_and_lines(capsys, name):
    """The tables of all documents, with the names in place of all texts."""
    counts = {
        "seed": 1,
        "engine": name,
        "commands": 5,
        "simulated_ns": 1.0,
        "kinds": {name: 1},
        "outcomes": {f"io {name} 0": 1},
    }
    failure = {"steps": 1, "of_steps": 2, "history": [name, f" {name}"]}
    fuzzing.print_report(counts | {"failure": failure})
    assert capsys.readouterr().out.count(name) == 5
    trace.print_summary(
        [{"command": name, "stage": name, "count": 1, "mean_ns": 1, "p50_ns": 1, "p99_ns": 1, "max_ns": 1}]
    )
    assert capsys.readouterr().out.count(name) == 2
    times = {"mean_ns": 1, "p50_ns": 1, "p99_ns": 1, "p999_ns": 1, "min_ns": 1, "max_ns": 1}
    error = {"mean_error_percent": 0, "max_error_clocks": 0, "target_ns": 1}
    accuracy.print_table([{"kind": name, "paper": name} | times | error])
    assert capsys.readouterr().out.count(name) == 2
    work = {"bandwidth_gb_s": 1, "latency": times}
    trip = {"profile": name, "sha256": name, "write": work, "read": work, "read_512": work, "read_4096": work}
    file = {"name": name, "bytes": 1, "sha256": name}
    stage = {"stage": name, "ns": 1, "bytes": 1, "commands": 1}
    report = {"rows": 1, "devices": [{"failed": name}], "partitions": 1, "engine": name, "key": name, "ties": 0}
    host = {"prepare_ns": 1, "merge_ns": 1, "memory_bytes": 1, "media_bytes": 1, "spilled_bytes": 1}
    report |= {"stages": [stage], "bounds": [], "elapsed_ns": 1, "host": host}
    doc = {"file": file, "intact": True, "trips": [trip], "accuracy": [], "saved": name, "plot": name}
    demo.print_document(doc | {"sort": {"by": name, "equal": True, "report": report}})
    assert capsys.readouterr().out.count(name) == 12
    wire.print_table(
        name,
        [{"kind": name, "bytes": 1, "pattern": name, "queues": 1, "depth": 1, "gb_s": 1, "kiops": 1, "bound_gb_s": 1,
          "percent": 1}],
    )  # fmt: skip
    assert capsys.readouterr().out.count(name) == 3
    term = {"term": name, "mean_ns": 1, "cycles": 1, "added": True, "how": name}
    row = {"kind": name, "profile": name, "commands": 1, "terms": [term], "total_ns": 1, "period_ns": 1}
    latency.print_document({"rows": [row | {"added_cycles": 1}], "saved": name, "plot": name})
    assert capsys.readouterr().out.count(name) == 6


@pytest.mark.parametrize("name", NAMES)
def test_output_names_progress(name):
    with show.bar(name) as bar:
        assert name in "".join(column(bar.progress.tasks[0]).plain for column in bar.progress.columns[1:2])


def test_output_names_markup_stays_off():
    """One pair of consoles, both plain; nothing enables markup."""
    for console in (show.out, show.err):
        assert [console.render_str(name).plain for name in NAMES] == NAMES
    sources = {path: path.read_text() for path in (ROOT / "python/nearside").rglob("*.py")}
    assert [path.name for path, text in sources.items() if "Console(" in text] == ["show.py"]
    assert not [path.name for path, text in sources.items() if "from_markup" in text or "markup=True" in text]


NOT_TEXT = b"bad\xff"
NEED_TEXT = [
    ["info", "--design", NOT_TEXT + b".toml"],
    *([command, "--design", NOT_TEXT] for command in ("info", "demo", "build", "wire", "latency")),
    ["delay", "show", "--design", NOT_TEXT],
    ["delay", "set", NOT_TEXT],
    ["latency", "--profile", NOT_TEXT],
    *([command, NOT_TEXT] for command in ("fuzz", "soak", "wire", "trace", NOT_TEXT)),
    ["fuzz", "--replay", NOT_TEXT],
    ["serve", "-s", "a", NOT_TEXT],
    ["serve", "-s", "a", "-m", NOT_TEXT],
    ["serve", "-s", NOT_TEXT + b"/none"],
    ["claim", "run", NOT_TEXT],
    ["claim", "report", NOT_TEXT],
]


@pytest.mark.slow
@pytest.mark.parametrize("arguments", NEED_TEXT, ids=lambda words: b" ".join(map(os.fsencode, words)).decode("latin"))
def test_output_names_text_errors_are_one_line(tmp_path, arguments):
    done = subprocess.run(
        command(*arguments), cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=900
    )
    assert (done.returncode in (1, 2), done.stdout) == (True, "")
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert done.stderr.startswith("nearside: ")
    assert "bad\\udcff" in done.stderr
    # Standard error may be closed.
    script = ["sh", "-c", 'exec "$@" 2>&-', "sh", *command(*arguments)]
    assert subprocess.run(script, cwd=tmp_path, env=environment(), timeout=900).returncode == done.returncode


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_output_names_are_escaped_for_the_encoding(tmp_path, printed, encoding):
    io = {"PYTHONIOENCODING": encoding}
    (tmp_path / "t.jsonl").write_text(trace_of("\ud800"))
    assert "\\ud800" in printed("trace", "t.jsonl", "--plot", "t.png", **io)
    (tmp_path / "bad\udcffä").mkdir()
    name = "bad\\udcff" + ("ä" if encoding == "utf-8" else "\\xe4")
    out = printed("claim", "run", "dram.row_latency", NEARSIDE_RESULTS="bad\udcffä", **io)
    assert f"Results: {name}/claims.json" in out
    assert "Results: " not in printed("claim", "report", "bad\udcffä/claims.json", "-o", "bad\udcff.md", **io)


def test_output_names_sockets_that_are_not_text(tmp_path):
    path = tmp_path / "bad\udcff.sock"
    env = environment(PYTHONIOENCODING="utf-8")
    words = command("serve", "fuzz", "-s", path.name)
    process = subprocess.Popen(words, cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 900
    while not path.is_socket() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=600)
    assert (process.returncode, "Traceback" in err) == (0, False), err
    assert "at bad\\udcff.sock\n" in out


@pytest.mark.parametrize("name", ["$x^$", "$", "\\$", "\ud800"])
def test_output_names_plots_without_formulas(tmp_path, name):
    entry = {"command": name, "queue": 1, "blocks": name, "status": 0, "times_ps": {"doorbell": 0, "fetch": 1000}}
    plots.trace([entry], tmp_path / "trace.png")
    term = {"term": "fetch", "mean_ns": 1000, "added": False}
    row = {
        "kind": "read",
        "profile": name,
        "terms": [term],
        "total_ns": 1000,
        "added_cycles": 1,
        "memory_included": True,
    }
    plots.latency({"rows": [row]}, tmp_path / "latency.png")
    times = {"mean_ns": 1, "p50_ns": 1, "p99_ns": 1, "p999_ns": 1}
    work = {"bandwidth_gb_s": 1, "latency": times}
    trip = {"profile": name, "write": work, "read": work, "read_512": work}
    plots.demo({"trips": [trip], "accuracy": []}, tmp_path / "demo.png")
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.slow
def test_output_names_report_that_is_not_text(tmp_path, printed):
    printed("claim", "run", "dram.row_latency")
    path = tmp_path / "results/claims.json"
    doc = json.loads(path.read_text())
    doc["machine"] = "\ud800"
    path.write_text(json.dumps(doc))
    printed("claim", "report", "-o", "x.md")
    assert "\\ud800" in (tmp_path / "x.md").read_text()
