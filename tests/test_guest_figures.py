# SPDX-License-Identifier: Apache-2.0
"""NVMulator's figures in a guest: what is measured is what the guest did, and small runs of each."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from nearside import Design, NearsideError
from nearside.experiments import document, find, nvmulator_fig9, nvmulator_fio, nvmulator_guest
from nearside.experiments import run as runs
from nearside.experiments.registry import Run
from nearside.guest import kit


@pytest.fixture(scope="module")
def guests():
    try:
        kit.install_kit(quiet=True)
    except kit.NoKit as reason:
        pytest.skip(str(reason))


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.setenv("NEARSIDE_RESULTS", str(tmp_path / "results"))


def small(name: str, **parameters):
    """The rows and figures of a small run, as they are saved."""
    experiment = replace(find(name), quick=parameters)
    loaded = document.load(Path(runs.run(experiment, "fast", quick=True)["saved"]))
    assert (loaded["status"], len(loaded["rows"])) == ("complete", loaded["cases"])
    return loaded


def command(begin_us: int, lba: int, kind: str = "Read", blocks: int = 8, doorbell: bool = True) -> dict:
    begin = begin_us * 1_000_000
    times = {"fetch": begin + 100, "landed": begin + 2_000_000}
    return {
        "command": kind, "lba": lba, "blocks": blocks, "times_ps": times | ({"doorbell": begin} if doorbell else {}),
    }  # fmt: skip


def mark(begin_us: int, number: int) -> dict:
    return command(begin_us, nvmulator_guest.mark_place(number) // 512)


def test_guest_figures_extents_of_files():
    text = """Filesystem type is: ef53
File size of /mnt/file.0 is 67108864 (16384 blocks of 4096 bytes)
 ext:     logical_offset:        physical_offset: length:   expected: flags:
   0:        0..   14335:     131072..    145407:  14336:
   1:    14336..   16383:     147456..    149503:   2048:     145408: last,eof
/mnt/file.0: 2 extents found
File size of /mnt/file.1 is 4096 (1 block of 4096 bytes)
 ext:     logical_offset:        physical_offset: length:   expected: flags:
   0:        0..       0:       5000..      5000:      1:             last,eof
/mnt/file.1: 1 extent found
"""
    assert nvmulator_guest.parse_extents(text) == {
        "/mnt/file.0": [(1048576, 1163264), (1179648, 1196032)],
        "/mnt/file.1": [(40000, 40008)],
    }


def test_guest_figures_split_a_trace_at_marks():
    """Commands come in the order of their ends, and some have no doorbell."""
    trace = [mark(0, 0), command(30, 8), mark(20, 1), command(10, 16, doorbell=False), mark(40, 2)]
    parts = nvmulator_guest.split_at_marks(trace, 2)
    assert [[one["lba"] for one in part] for part in parts] == [[16], [8]]
    with pytest.raises(NearsideError, match="the trace lacks the mark 3 of 3"):
        nvmulator_guest.split_at_marks(trace, 3)


def test_guest_figures_bandwidth_is_that_of_all_threads_at_work():
    """Two threads of one write each 10 us; the second begins later, and its begin and the first one's end count not."""
    run = Run(parameters={"warm_up": 2})
    case = {"kind": "write", "threads": 2, "pattern": "random", "way": nvmulator_fio.DIRECT}
    extents = [[(0, 1000)], [(1000, 2000)]]
    part = [command(10 * n, 8 * n, "Write") for n in range(20)]
    part += [command(50 + 10 * n, 1000 + 8 * n, "Write") for n in range(20)]
    part += [command(100, 5000, "Write")]  # the journal
    job = {
        "write": {"clat_ns": {"mean": 1.0, "percentile": {"99.000000": 1.0}}, "bw_bytes": 1},
        "sync": {"lat_ns": {"mean": 500.0}},
    }
    row = nvmulator_fio.measure_cell(run, case, sorted(part, key=lambda one: one["lba"]), extents, job)
    assert row["mb_s"] == pytest.approx(2 * 4096 / 10)
    assert (row["turn_us"], row["command_us"], row["fsync_us"]) == (pytest.approx(10), pytest.approx(2), 0.5)
    assert row["commands_each"] == pytest.approx(1 + 1 / 24)
    apart = [*part[:20], *(command(900 + n, 1000 + 8 * n, "Write") for n in range(20))]
    with pytest.raises(NearsideError, match="2 threads of fio were never at work at the same time"):
        nvmulator_fio.measure_cell(run, case, apart, extents, job)


def test_guest_figures_count_lost_records():
    """What a database had reported and does not have is lost, and so is a gap in what it has."""
    reports = "... thread 0: (50,1850) ops and (1.0,1.0) ops/second\n... thread 0: (50,1900) ops and\n"
    files = {
        "cut.readseq": "readseq : 0.9 micros/op 1110 ops/sec 0.002 seconds 1895 operations;",
        "cut.readrandom": "readrandom : 3.1 micros/op (1893 of 1895 found)",
    }
    row = nvmulator_fig9.recovered(reports, files, "cut")
    assert row == {"acknowledged": 1900, "there": 1895, "lost": 5 + 2}
    with pytest.raises(NearsideError, match="the database that was cut reports nothing: Corruption"):
        nvmulator_fig9.recovered(reports, files | {"cut.readseq": "Corruption: bad block"}, "cut")


def test_guest_figures_failed_script_is_one_line(monkeypatch):
    report = {"status": 3, "output": "begun\nit broke\n", "files": []}
    monkeypatch.setattr(nvmulator_guest, "run_job", lambda *_, **__: report)
    run = Run("fast", design=Design.load("default"))
    with pytest.raises(NearsideError, match="the guest's script ends with status 3: it broke"):
        nvmulator_guest.run_script(run, run.required_design, "exit 3\n")


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("name", ["nvmulator_fig7", "nvmulator_fig8"])
def test_guest_figures_of_fio(guests, results, name):
    parameters = {"profiles": ["pcm"], "cpus": [1], "ways": list(nvmulator_fio.WAYS), "threads": [1, 2]}
    loaded = small(name, **parameters, warm_up=20, measured=150)
    for row in loaded["rows"]:
        assert 0 < row["mb_s"] < row["limit_mb_s"], row
        # fio counts whole ms, from the begin of the first thread to the end of the last one.
        assert row["fio_mb_s"] < 1.1 * row["mb_s"], row
        if row["threads"] == 1 and not nvmulator_fio.merged(row):
            assert row["turn_us"] > row["fio_us"] + row["fsync_us"] > row["command_us"], row
            assert row["command_kib"] == 4, row
    writes = [row for row in loaded["rows"] if row["kind"] == "write" and row["way"] == nvmulator_fio.DIRECT]
    assert all(row["command_us"] > 20 for row in writes), "PCM takes 26 us for 4 KiB"


@pytest.mark.slow
@pytest.mark.long
def test_guest_figures_of_a_database(guests, results):
    loaded = small("nvmulator_fig9", profiles=["optane-dcpmm"], records=2000, reads=200)
    figures = {figure["name"].partition(".")[2]: figure for figure in loaded["figures"]}
    assert figures["fillrandom_sync"]["value"] < 0.7 * figures["fillrandom"]["value"], "each record waits for a write"
    assert figures["fillrandom_sync"]["of_limit"] < 0.8
    assert all(figures[f"replay.{kind}"]["value"] < 5 for kind in ("read", "write"))
    for row in loaded["rows"][-2:]:
        assert (row["lost"], 0 < row["acknowledged"] <= row["there"]) == (0, True), row


@pytest.mark.slow
@pytest.mark.long
def test_guest_figures_of_a_driver_of_the_window(guests, results):
    loaded = small("nvmulator_pm", profiles=["optane-dcpmm"], blocks=8)
    rows = {(row["way"], row["pattern"], row["kind"]): row for row in loaded["rows"]}
    assert {row["blocks"] for row in rows.values()} == {8}
    for (_, _, kind), row in rows.items():
        # A load of 8 bytes waits for the link and the media, a posted store does not.
        assert (row["us"] > 200) is (kind == "read"), row
