# SPDX-License-Identifier: Apache-2.0
"""Sorting of tables, from files and from pyarrow, on simulated devices."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from nearside import _native, bounds, dictionaries, files, plots, show
from nearside._native import NearsideError
from nearside.device import BuildProgress, Design, Progress, as_text
from nearside.renamed import former_names, renamed
from nearside.types import ArrowStream, PlanDocument, PutReport, ResidentTable, SortPlan, SortReport, SortResult

if TYPE_CHECKING:
    import pyarrow

DESIGN = "sort"
# File formats by suffix. Output with any other suffix is Parquet.
FORMATS = {
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".arrows": "stream",
    ".csv": "csv",
}


# The format is recognised by the first bytes of the file.
BY_CONTENT = "content"


def format_of(path: Path, given: str | None = None) -> str:
    """The format of an output file: the given one, else that of the suffix, else Parquet."""
    return given or FORMATS.get(path.suffix.lower(), "parquet")


def format_of_source(path: Path, given: str | None = None) -> str:
    """The format of an input file: the given one, else that of the suffix, else by content."""
    return given or FORMATS.get(path.suffix.lower(), BY_CONTENT)


@renamed(engine="model")
def sort_file(
    source: str | Path,
    target: str | Path,
    by: str,
    devices: int = 1,
    model: str | None = None,
    design: Design | None = None,
    build: BuildProgress | None = None,
    progress: Progress | None = None,
    *,
    source_format: str | None = None,
    target_format: str | None = None,
    compression: str = "snappy",
    trace: str | Path | None = None,
    plot: str | Path | None = None,
) -> SortReport:
    """Sorts the table of a file into another file, completely or not at all; returns the report.

    `trace` is a file for Perfetto with the stages of each device and the traffic of its memory
    channels; `plot` is a picture of the same. Sampling the channels' counters costs some wall-clock
    time.
    """
    design = design or Design.load(DESIGN)
    (source, target), trace, plot = _as_paths([source, target]), _optional_path(trace), _optional_path(plot)
    _check_outputs(target, trace, plot, [source, *design.files])
    files.check_regular(source)
    with files.replaced(target) as part:
        report, _ = _native.sort_table(
            design.native, source, as_text("by", by), files.printable(source),
            source=format_of_source(source, source_format), target=format_of(target, target_format),
            compression=compression, devices=devices, model=model, build=build, progress=progress,
            trace=bool(trace or plot), output=(part, files.printable(target)),
        )  # fmt: skip
    return _with_bounds(design, report, trace, plot)


def _check_outputs(target: Path, trace: Path | None, plot: Path | None, inputs: Sequence[Path]) -> None:
    if trace is not None and trace.suffix != ".json":
        raise NearsideError(f"{files.printable(trace)}: the name of a sort's trace ends in .json (for Perfetto)")
    files.check_apart([target, trace, plot], inputs)
    if plot is not None:
        plots.check(plot)
    for path in (target, trace):
        if path is not None:
            files.check_output(path)


def explain(
    source: str | Path, by: str, devices: int = 1, design: Design | None = None, *, source_format: str | None = None
) -> PlanDocument:
    """The plan of `sort_file`: rows and partitions of each device, and the bound of each stage."""
    design, source = design or Design.load(DESIGN), Path(source)
    files.check_regular(source)
    plan = _native.explain_sort(
        design.native, source, as_text("by", by), files.printable(source),
        source=format_of_source(source, source_format), devices=devices,
    )  # fmt: skip
    return _plan_document(design, plan)


@renamed(engine="model")
def explain_resident(
    name: str,
    media: Sequence[str | Path],
    by: str,
    model: str | None = None,
    design: Design | None = None,
    build: BuildProgress | None = None,
) -> PlanDocument:
    """The plan for a resident table, see `explain`."""
    design, media = design or Design.load(DESIGN), _as_paths(media)
    check_media_exist(media)
    names = (as_text("name", name), as_text("by", by))
    return _plan_document(design, _native.table_explain(design.native, _paths(media), *names, model=model, build=build))


def _plan_document(design: Design, plan: SortPlan) -> PlanDocument:
    return {"design": design.name, "plan": plan, "bounds": bounds.of_plan(design, plan)}


def _with_bounds(design: Design, doc: SortResult, trace: Path | None = None, plot: Path | None = None) -> SortReport:
    """Adds the bound of each stage and the share that was reached; writes trace and plot."""
    events = doc.pop("trace", None)
    if trace is not None:
        files.write_bytes(trace, json.dumps(events).encode())
    if plot is not None:
        assert events is not None  # `plot` requests them
        plots.sort(events, plot)
    # A table that is read back without a sort has no plan.
    planned = bounds.of_plan(design, doc["plan"]) if doc["plan"] else []
    known = {bound["stage"]: bound for bound in planned}
    for stage in doc["stages"]:
        bound = known.get(stage["stage"])
        if bound and stage["ns"]:
            bound["reached_percent"] = 100 * bound["ns"] / stage["ns"]
    return cast("SortReport", doc | {"bounds": list(known.values())})


@renamed(engine="model")
def put(
    source: str | Path,
    media: Sequence[str | Path],
    name: str,
    keys: str,
    model: str | None = None,
    design: Design | None = None,
    build: BuildProgress | None = None,
    progress: Progress | None = None,
    *,
    source_format: str | None = None,
) -> PutReport:
    """Writes the table of a file to the devices of these media files, a shard to each.

    `keys` are the columns by which it can be sorted there: `"a, b"`.
    """
    design = design or Design.load(DESIGN)
    source, media = Path(source), _as_paths(media)
    files.check_apart(media, [source, *design.files])
    files.check_regular(source)
    return _native.table_put(
        design.native, _paths(media), source, as_text("name", name), as_text("keys", keys), files.printable(source),
        source=format_of_source(source, source_format), model=model, build=build, progress=progress,
    )  # fmt: skip


@renamed(engine="model")
def resident(
    media: Sequence[str | Path],
    model: str | None = None,
    design: Design | None = None,
    build: BuildProgress | None = None,
) -> list[ResidentTable]:
    """The resident tables on the devices of these media files.

    Where several tables have the same name on different media files, the id identifies one.
    """
    design, media = design or Design.load(DESIGN), _as_paths(media)
    check_media_exist(media)
    return _native.table_list(design.native, _paths(media), model=model, build=build)


@renamed(engine="model")
def get(
    name: str,
    media: Sequence[str | Path],
    target: str | Path,
    by: str | None = None,
    model: str | None = None,
    design: Design | None = None,
    build: BuildProgress | None = None,
    progress: Progress | None = None,
    *,
    target_format: str | None = None,
    compression: str = "snappy",
    trace: str | Path | None = None,
    plot: str | Path | None = None,
) -> SortReport:
    """Reads the resident table of this name or id into a file, completely or not at all.

    With `by` the devices sort it in place first. Returns the report. For `trace` and `plot` see
    `sort_file`.
    """
    design = design or Design.load(DESIGN)
    media, target, trace, plot = _as_paths(media), Path(target), _optional_path(trace), _optional_path(plot)
    _check_outputs(target, trace, plot, [*media, *design.files])
    check_media_exist(media)
    key = None if by is None else as_text("by", by)
    with files.replaced(target) as part:
        report, _ = _native.table_get(
            design.native, _paths(media), as_text("name", name), key,
            target=format_of(target, target_format), compression=compression, model=model, build=build,
            progress=progress, trace=bool(trace or plot), output=(part, files.printable(target)),
        )  # fmt: skip
    return _with_bounds(design, report, trace, plot)


@renamed(engine="model")
def drop(
    name: str,
    media: Sequence[str | Path],
    model: str | None = None,
    design: Design | None = None,
    build: BuildProgress | None = None,
) -> None:
    """Deletes the resident table of this name or id, or what is left of it."""
    design, media = design or Design.load(DESIGN), _as_paths(media)
    check_media_exist(media)
    _native.table_drop(design.native, _paths(media), as_text("name", name), model=model, build=build)


def _optional_path(path: str | Path | None) -> Path | None:
    return None if path is None else Path(path)


def _as_paths(paths: Sequence[str | Path]) -> list[Path]:
    """The paths as a list; a single path is accepted, too."""
    return [Path(path) for path in ([paths] if isinstance(paths, str | Path) else paths)]


def _paths(media: Sequence[Path]) -> list[str]:
    return [as_text("the name of a media file", str(path)) for path in media]


def check_media_exist(media: Sequence[Path]) -> None:
    """Raises an error for missing media files, which are not created in this case."""
    for path in media:
        files.check_regular(path)


@renamed(engine="model")
def sort_table(
    table: ArrowStream | str | Path,
    by: str,
    devices: int = 1,
    model: str | None = None,
    design: Design | None = None,
    build: BuildProgress | None = None,
    progress: Progress | None = None,
) -> tuple[pyarrow.Table, SortReport]:
    """Sorts a table, in memory or of a file, on simulated devices; returns the table and the
    report.

    A table in memory is one of pyarrow, or of any library that knows the Arrow PyCapsule interface.

    `by` names columns: `"a, b desc nulls last"`. The sort is stable. Nulls are last in ascending
    and first in descending order.
    """
    design = design or Design.load(DESIGN)
    source, name, schema = "parquet", "table", None  # a format is for files
    if isinstance(table, str | Path):
        data = Path(table)
        files.check_regular(data)
        source, name = format_of_source(data), files.printable(table)
    else:
        given = as_table(table, " or the path of a file")
        data, schema = dictionaries.widened(given), given.schema
    report, sorted_ = _native.sort_table(
        design.native, data, as_text("by", by), name, source=source, devices=devices, model=model, build=build,
        progress=progress,
    )  # fmt: skip
    found = _pyarrow().table(sorted_)
    return found if schema is None else dictionaries.narrowed(found, schema), _with_bounds(design, report)


def as_table(table: ArrowStream, other: str = "") -> pyarrow.Table:
    """The table as one of pyarrow; `other` names a further allowed kind for the error."""
    pa = _pyarrow()
    if isinstance(table, pa.Table):
        return table
    if not hasattr(table, "__arrow_c_stream__"):
        raise TypeError(f"table must be a pyarrow.Table{other}, not {type(table).__name__}")
    try:
        reader = pa.RecordBatchReader.from_stream(table)
    except pa.ArrowInvalid as error:
        # A stream may have one column of any type, as that of a ChunkedArray has.
        raise TypeError(f"table must have rows of columns: {_first_line(error)}") from error
    try:
        return reader.read_all()
    except pa.ArrowInvalid as error:
        raise NearsideError(f"the table's stream ends with an error: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0].split(" Detail: ")[0]


def to_stream(table: pyarrow.Table) -> bytes:
    """A table of pyarrow as an Arrow IPC stream."""
    pa = _pyarrow()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return sink.getvalue().to_pybytes()


def of_stream(data: bytes) -> pyarrow.Table:
    """The table of an Arrow IPC stream."""
    with _pyarrow().ipc.open_stream(data) as stream:
        return stream.read_all()


def _pyarrow() -> Any:
    try:
        import pyarrow
    except ImportError:
        raise NearsideError("tables in Python need pyarrow: pip install pyarrow") from None
    return pyarrow


def print_report(doc: PutReport | SortReport) -> None:
    """Prints the report of a sort as a table."""
    count, parts = len(doc["devices"]), doc["partitions"]
    devices = f"{count} device{'s' if count > 1 else ''}"
    if parts > count:
        devices += f", {parts} partitions"
    key = f", key: {doc['key']}" if doc["key"] else ""
    title = f"{doc['rows']} rows on {devices} ({doc['engine']}){key}"
    table = show.table(title, "stage", "simulated time", "bytes", "GB/s", "NVMe commands", "of its bound")
    reached = {bound["stage"]: bound.get("reached_percent") for bound in cast("SortReport", doc).get("bounds", [])}
    for stage in doc["stages"]:
        rate = f"{stage['bytes'] / stage['ns']:.2f}" if stage["ns"] else "-"
        share = reached.get(stage["stage"])
        row = (show.nanoseconds(stage["ns"]), show.size(stage["bytes"]), rate, str(stage["commands"]))
        table.add_row(stage["stage"], *row, "-" if share is None else f"{share:.0f} %")
    table.add_row("all", show.nanoseconds(doc["elapsed_ns"]), "", "", "", "")
    show.out.print(table)
    host = doc["host"]
    spilled = f", {show.size(host['spilled_bytes'])} waited in temporary files" if host["spilled_bytes"] else ""
    show.out.print(
        f"host, memory at most: {show.size(host['memory_bytes'])}, and {show.size(host['media_bytes'])} of media that "
        f"the simulation holds{spilled}"
    )
    ties = f", {doc['ties']} ties" if doc["ties"] else ""
    show.out.print(
        f"host, wall-clock: {show.nanoseconds(host['prepare_ns'])} to make keys and rows, "
        f"{show.nanoseconds(host['merge_ns'])} to merge{ties}"
    )
    for number, device in enumerate(doc["devices"]):
        if device["failed"]:
            show.out.print(f"device {number} failed, and others did its part: {device['failed']}")


def print_plan(doc: PlanDocument) -> None:
    """Prints the plan of a sort as a table."""
    plan = doc["plan"]
    show.out.print(f"{plan['rows']} rows of {plan['row_bytes']} bytes, key: {plan['key']}")
    for number, partitions in enumerate(plan["devices"]):
        if not partitions:
            continue
        rows = [part["rows"] for part in partitions]
        nulls = sum(part["rows"] - part["sorted"] for part in partitions)
        each = f"{min(rows)} to {max(rows)}" if len(set(rows)) > 1 else f"{rows[0]}"
        pages = ", keys as in the file's pages" if partitions[0]["pages"] else ""
        several = f" in {len(rows)} partitions of {each}" if len(rows) > 1 else ""
        without = f", {nulls} of them without a key" if nulls else ""
        show.out.print(f"device {number}: {sum(rows)} rows{several}{without}{pages}")
    if not doc["bounds"]:
        return
    table = show.table("at best, simulated", "stage", "time", "bound by", "source")
    most = max(bound["ns"] for bound in doc["bounds"])
    for bound in doc["bounds"]:
        limits = " (the longest)" if bound["ns"] == most else ""
        table.add_row(bound["stage"], show.nanoseconds(bound["ns"]) + limits, bound["limit"], bound["source"])
    show.out.print(table)


def print_resident(tables: list[ResidentTable]) -> None:
    """Prints resident tables as a table."""
    table = show.table("tables", "name", "id", "rows", "bytes of a row", "keys", "size", "parts", "devices")
    for entry in tables:
        parts = f"{entry['parts']} of {entry['of_parts']}"
        row = (str(entry["rows"]), str(entry["row_bytes"]), ", ".join(entry["keys"]), show.size(entry["bytes"]), parts)
        table.add_row(entry["name"], entry["id"], *row, " ".join(map(str, entry["devices"])))
    show.out.print(table)


__getattr__ = former_names(
    __name__, standing="resident", explain_standing="explain_resident", print_standing="print_resident"
)
