# SPDX-License-Identifier: Apache-2.0
"""The sort on a Ray cluster: a local one, with simulated devices on each worker process."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from nearside import NearsideError, cluster, sort_table, tables

ray = pytest.importorskip("ray", reason="Ray is not installed: make peers")


@pytest.fixture(scope="module", autouse=True)
def session():
    with pytest.raises(NearsideError, match="has joined no Ray cluster"):
        cluster.sort_table(table(), "a")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    yield
    ray.shutdown()


def table(rows: int = 2000) -> pa.Table:
    random = np.random.default_rng(1)
    return pa.table(
        {
            "a": pa.array(random.integers(-9, 9, rows), mask=random.random(rows) < 0.1),
            "word": [f"word {n % 37}" for n in range(rows)],
            "row": np.arange(rows),
        }
    )


@pytest.mark.slow
@pytest.mark.parametrize("by", ["a", "word desc, a"])
def test_cluster_sort_equals_that_of_one_machine(by):
    expected, _ = sort_table(table(), by, model="fast")
    found, reports = cluster.sort_table(table(), by, workers=3, devices=2, model="fast")
    assert found.equals(expected)
    assert [report["rows"] for report in reports] == [666, 667, 667]
    assert all(len(report["devices"]) == 2 and report["engine"] == "fast" for report in reports)


def test_cluster_sorts_small_tables():
    for rows in (0, 1, 2):
        found, reports = cluster.sort_table(table(rows), "row", workers=3, model="fast")
        assert found.equals(table(rows))
        assert sum(report["rows"] for report in reports) == rows


def test_cluster_sorts_any_arrow_stream_of_rows():
    expected, _ = cluster.sort_table(table(9), "a", model="fast")
    found, _ = cluster.sort_table(table(9).to_batches()[0], "a", model="fast")
    assert found.equals(expected)


def test_cluster_errors():
    with pytest.raises(NearsideError, match='a worker: no column is called "x"'):
        cluster.sort_table(table(), "x", model="fast")
    with pytest.raises(NearsideError, match="workers = 0: allowed are 1 to 4096"):
        cluster.sort_table(table(), "a", workers=0, model="fast")
    with pytest.raises(NearsideError, match='no design "none"'):
        cluster.sort_table(table(), "a", design="none", model="fast")
    for nothing in (None, "x", [table(9)]):
        with pytest.raises(TypeError, match=r"table must be a pyarrow\.Table, not"):
            cluster.sort_table(nothing, "a")
    with pytest.raises(TypeError, match="table must have rows of columns: "):
        cluster.sort_table(table(9)["a"], "a")
    with pytest.raises(NearsideError, match="devices = 17"):
        cluster.sort_table(table(), "a", devices=17, model="fast")


def test_cluster_error_is_reported_after_other_parts_have_ended(monkeypatch, tmp_path):
    """No task is cancelled: Ray may abort the caller when it cancels a task that is about to end."""

    def part(stream, *_):
        if tables.of_stream(stream).num_rows == 1:
            raise NearsideError("no")
        time.sleep(0.5)
        (tmp_path / "ended").touch()
        return stream, {}

    monkeypatch.setattr(cluster, "_part", part)
    with pytest.raises(NearsideError, match="a worker: no"):
        cluster.sort_table(table(3), "a", workers=2, model="fast")
    assert (tmp_path / "ended").exists()


def test_cluster_sort_of_dictionaries_beyond_their_key_type():
    words = [f"w{n:03}" for n in range(200)]
    chunks = [
        pa.array(words[n : n + 100]).dictionary_encode().cast(pa.dictionary(pa.int8(), pa.string())) for n in (0, 100)
    ]
    data = pa.table({"word": pa.chunked_array(chunks), "row": np.arange(200)})
    found, _ = cluster.sort_table(data, "row desc", model="fast")
    assert found.schema == data.schema
    assert found.column("word").to_pylist() == words[::-1]
    # Keys within lists are not widened.
    lists = pa.chunked_array([pa.ListArray.from_arrays(list(range(101)), chunk) for chunk in chunks])
    with pytest.raises(NearsideError, match=r"the sorted parts of 2 workers can't be merged: .* make its keys wider"):
        cluster.sort_table(pa.table({"word": lists, "row": np.arange(200)}), "row", model="fast")


def parts_at_work() -> list[int]:
    """Processes of this session's workers that sort a part."""
    found = []
    for name in Path("/proc").glob("[0-9]*"):
        try:
            if not (name / "cmdline").read_bytes().startswith(b"ray::_part"):
                continue
            pid = int(name.name)
            above = pid
            while above not in (0, os.getpid()):
                # The parent is the second word after the name, which may contain spaces.
                above = int((Path("/proc") / str(above) / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if above:
            found.append(pid)
    return found


@pytest.mark.slow
def test_cluster_survives_a_killed_worker():
    """Ray runs its part again, and the result is right."""
    data, over, killed = table(150_000), threading.Event(), []

    def kill():
        while not (over.is_set() or killed):
            for pid in parts_at_work()[:1]:
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        found, reports = cluster.sort_table(data, "a, row", workers=2, model="fast")
    finally:
        over.set()
        killer.join()
    assert len(killed) == 1
    expected, _ = sort_table(data, "a, row", model="fast")
    assert found.equals(expected)
    assert [report["rows"] for report in reports] == [75_000, 75_000]
