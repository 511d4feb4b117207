# SPDX-License-Identifier: Apache-2.0
"""The host's memory: the summary matches the process, and no file makes it exceed that."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

MIB = 1 << 20
TEXT = 150_000

# Devices with small media, which do not count here.
CHILD = """
import json, resource, sys
from nearside import Design, tables

def status(name):
    return next(int(line.split()[1]) << 10 for line in open("/proc/self/status") if line.startswith(name))

work, small, source, target, more = json.loads(sys.argv[1])
size = "64 MiB" if more else "512 MiB"
values = f"[media]\\nbytes = '{size}'\\n[nvme]\\nnamespaces = ['{size}']\\n[host]\\nmemory_mib = 64"
design = Design.load("sort").with_values(values)
# Memory of a first sort is not that of the file.
tables.sort_file(small, target, "row", 2, "fast", design)
if more:
    limit = status("VmSize") + more
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
if work == "put":
    report = tables.put(source, [target + ".d"], "t", "row", "fast", design)
elif work == "get":
    tables.put(source, [target + ".d"], "t", "row", "fast", design)
    report = tables.get("t", [target + ".d"], target, None, "fast", design)
elif work == "sort_table":
    _, report = tables.sort_table(source, "row", 2, "fast", design)
else:
    report = tables.sort_file(source, target, work, 2, "fast", design)
print(json.dumps({"host": report["host"], "rows": report["rows"], "peak": status("VmHWM")}))
"""


def repeated(rows: int) -> pa.Table:
    """Four texts, one in each row, with long common prefixes."""
    keys = np.random.default_rng(1).integers(0, 4, rows)
    texts = ["x" * TEXT + str(n) for n in range(4)]
    words = pa.DictionaryArray.from_arrays(pa.array(keys, pa.int32()), texts)
    return pa.table({"text": words, "row": np.arange(rows)})


def run(folder: Path, work: str, source: Path, more: int = 0) -> dict:
    small = folder / "small.parquet"
    pq.write_table(repeated(4), small)
    arguments = json.dumps([work, *map(str, (small, source, folder / "out.arrow")), more])
    # Threads that allocate reserve addresses each, by default.
    environment = os.environ | {"MALLOC_ARENA_MAX": "1"}
    done = subprocess.run([sys.executable, "-c", CHILD, arguments], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def batches_of(data: pa.Table, path: Path) -> None:
    """One batch, which is small in the file."""
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with pa.ipc.new_file(path, data.schema, options=options) as sink:
        sink.write_table(data)


@pytest.mark.slow
@pytest.mark.parametrize("work", ["row", "sort_table", "put", "get"])
def test_sort_memory_summary_matches_the_process(work, tmp_path):
    """Also while reading: the system's peak, without media and without other memory of Python."""
    source = tmp_path / "t.arrow"
    rows = 1000
    plain = repeated(rows).set_column(0, "text", repeated(rows)["text"].cast(pa.string()))
    batches_of(plain, source)
    assert source.stat().st_size < 20 * MIB
    reported = run(tmp_path, work, source)
    assert reported["rows"] == rows
    said = reported["host"]["memory_bytes"] + reported["host"]["media_bytes"]
    # More than the batch that is read: reading takes the most.
    assert reported["host"]["memory_bytes"] > rows * TEXT
    most = reported["peak"] if work != "sort_table" else said
    # The kernel updates VmHWM from counts that it has not summed up: it may lack a batch of each
    # CPU, for three counts. VmRSS, which is read before, includes them.
    cpus = os.cpu_count()
    unsummed = 3 * cpus * max(32, 2 * cpus) * resource.getpagesize()
    assert 0.9 * most - 16 * MIB <= said <= reported["peak"] + reported["host"]["media_bytes"] + unsummed


@pytest.mark.slow
def test_sort_memory_small_compressed_file_is_sorted_in_bounded_memory(tmp_path):
    """800 MiB of text under `ulimit -v`, of which 256 MiB may be held in memory. `memory.rs` of
    crates/sort has more."""
    source = tmp_path / "t.parquet"
    data = repeated(5600)
    # As text, which has a dictionary in the file.
    pq.write_table(data, source, store_schema=False)
    assert source.stat().st_size < MIB
    reported = run(tmp_path, "row desc", source, 640 * MIB)
    assert reported["rows"] == 5600
    numbers = data["text"].combine_chunks().indices.to_pylist()[::-1]
    with pa.ipc.open_file(tmp_path / "out.arrow") as found:
        batches = [found.get_batch(n) for n in range(found.num_record_batches)]
        assert [int(text[TEXT:]) for batch in batches for text in batch["text"].to_pylist()] == numbers
