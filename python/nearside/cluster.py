# SPDX-License-Identifier: Apache-2.0
"""The sort of `nearside.sort_table` on a Ray cluster, with devices on each worker.

    ray.init()
    table, reports = nearside.cluster.sort_table(table, "a, b desc", workers=8, devices=4, model="fast")

A worker sorts a contiguous part of the rows on its devices, and the caller merges the parts. The result
equals that of a single machine.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from nearside import _native, dictionaries, tables
from nearside._native import NearsideError
from nearside.device import Design, as_text, model_of
from nearside.renamed import renamed
from nearside.types import ArrowStream, SortReport

if TYPE_CHECKING:
    import pyarrow

MOST_WORKERS = 4096


@renamed(engine="model")
def sort_table(
    table: ArrowStream,
    by: str,
    workers: int = 2,
    devices: int = 1,
    model: str | None = None,
    design: str = tables.DESIGN,
) -> tuple[pyarrow.Table, list[SortReport]]:
    """Sorts a table on a Ray cluster that the caller has joined (`ray.init`).

    Returns the sorted table, and each worker's report as of `nearside.sort_table`.

    workers: parts of the table, 1 to 4096. Ray runs each where a CPU is free, and again if its
    machine is lost.

    design: a name, or the path of a file that exists on every machine.
    """
    try:
        import ray
    except ImportError:
        raise NearsideError("a cluster needs Ray: pip install ray") from None
    if not ray.is_initialized():
        raise NearsideError(
            "this process has joined no Ray cluster: ray.init() starts one here, ray.init(address=..) joins one"
        )
    if not isinstance(workers, int) or not 1 <= workers <= MOST_WORKERS:
        raise NearsideError(f"workers = {workers}: allowed are 1 to {MOST_WORKERS}")
    rows = tables.as_table(table)
    Design.load(design)  # reports an unknown name before anything is started
    by, model = as_text("by", by), model_of(model)
    part = ray.remote(_part)
    schema, rows = rows.schema, dictionaries.widened(rows)
    bounds = [rows.num_rows * n // workers for n in range(workers + 1)]
    parts = [rows.slice(start, end - start) for start, end in pairwise(bounds)]
    jobs = [part.remote(tables.to_stream(one), by, devices, model, design) for one in parts]
    try:
        done = ray.get(jobs)
    except ray.exceptions.RayTaskError as error:
        # Cancelling a task that is about to end can abort this process. (Ray 2.60: "Tried to
        # complete task that was not pending".) So the other tasks are awaited: no task outlives the
        # sort.
        ray.wait(jobs, num_returns=len(jobs))
        raise NearsideError(f"a worker: {error.cause or error}") from None
    except ray.exceptions.RayError as error:
        raise NearsideError(f"the cluster: {error}") from None
    try:
        merged = _native.merge_tables([tables.of_stream(stream) for stream, _ in done], by)
    except NearsideError as error:
        raise NearsideError(f"the sorted parts of {workers} workers can't be merged: {error}") from None
    return dictionaries.narrowed(tables.as_table(merged), schema), [report for _, report in done]


def _part(stream: bytes, by: str, devices: int, model: str, design: str) -> tuple[bytes, SortReport]:
    """The task of a worker."""
    table, report = tables.sort_table(
        tables.of_stream(stream), by, devices=devices, model=model, design=Design.load(design)
    )
    return tables.to_stream(table), report
