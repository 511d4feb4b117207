"""Names of files and whatever else comes from outside are printed as they are: not as markup, not as emoji."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from nearside import accuracy, demo, fuzzing, latency, show, trace, wire

ROOT = Path(__file__).resolve().parent.parent
# Where they are markup, a closing tag of nothing ends in an error, a style is silently gone, and the third is an emoji.
NAMES = ["[/x]", "[red]", ":smile:"]


def command(*arguments: str) -> list[str]:
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


@pytest.mark.parametrize("name", NAMES)
def test_files_and_folders(tmp_path, printed, name):
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


def test_the_demonstration(tmp_path, printed):
    name = "".join(NAMES).replace("/", "") + ".bin"
    folder = "".join(NAMES)
    (tmp_path / name).write_bytes(b"x" * 5000)
    out = printed("demo", name, NEARSIDE_RESULTS=folder)
    assert out.startswith(f"{name} (4.883 KiB) through 4 NVMe queues\n")
    assert f"Results: {folder}/demo.json\nPlot:    {folder}/demo.png\n" in out


def test_served_sockets(tmp_path):
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
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    header = out.split("served")[-1].splitlines()[2]
    assert [cell.strip() for cell in header.split("┃")[2:-1]] == names


@pytest.mark.parametrize("name", NAMES)
def test_every_table_and_line(capsys, name):
    """What the commands print of their documents, where names stand in the place of all texts."""
    counts = {"seed": 1, "commands": 5, "simulated_ns": 1.0, "kinds": {name: 1}, "outcomes": {f"io {name} 0": 1}}
    failure = {"steps": 1, "of_steps": 2, "history": [name, f" {name}"]}
    fuzzing.print_report(counts | {"failure": failure})
    assert capsys.readouterr().out.count(name) == 4
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
    demo.print_document({"file": file, "intact": True, "trips": [trip], "accuracy": [], "saved": name, "plot": name})
    assert capsys.readouterr().out.count(name) == 7
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
def test_progress(name):
    with show.bar(name) as bar:
        assert name in "".join(column(bar.progress.tasks[0]).plain for column in bar.progress.columns[1:2])


def test_markup_stays_off():
    """One pair of consoles, both plain; nothing turns markup on again."""
    for console in (show.out, show.err):
        assert [console.render_str(name).plain for name in NAMES] == NAMES
    sources = {path: path.read_text() for path in (ROOT / "python/nearside").rglob("*.py")}
    assert [path.name for path, text in sources.items() if "Console(" in text] == ["show.py"]
    assert not [path.name for path, text in sources.items() if "from_markup" in text or "markup=True" in text]
