"""Tables that are sorted on devices: of files, and of pyarrow."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nearside import _native, bounds, dictionaries, files, plots, show
from nearside._native import NearsideError
from nearside.device import BuildProgress, Design, Progress, as_text
from nearside.renamed import renamed

if TYPE_CHECKING:
    import pyarrow

DESIGN = "sort"
# What a file is by the end of its name. One that is written is Parquet, if it has another one.
FORMATS = {
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".arrows": "stream",
    ".csv": "csv",
}


# By how the file begins.
BY_CONTENT = "content"


def format_of(path: Path, given: str | None = None) -> str:
    """How a table is written to a file: as is said, else by the end of its name."""
    return given or FORMATS.get(path.suffix.lower(), "parquet")


def format_of_source(path: Path, given: str | None = None) -> str:
    """How a table stands in a file: as is said, else by the end of its name, else by how it begins."""
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
) -> dict[str, Any]:
    """Sorts the table of a file into another one, whole or not at all; returns what it took.

    `trace` is a file for Perfetto: stages of each device, and what passed its memories' channels; `plot` a picture of
    that. The looks at the channels' counters take some time of the host.
    """
    design = design or Design.load(DESIGN)
    (source, target), trace, plot = _all([source, target]), _path(trace), _path(plot)
    _check_outputs(target, trace, plot, [source, *design.files])
    shape = {"devices": devices, "model": model, "build": build, "progress": progress}
    formats = {"source": format_of_source(source, source_format), "target": format_of(target, target_format)}
    files.check_regular(source)
    with files.replaced(target) as part:
        report, _ = _native.sort_table(
            design.native, source, as_text("by", by), _text(source), compression=compression, trace=bool(trace or plot),
            output=(part, _text(target)), **formats, **shape,
        )  # fmt: skip
    return _bounded(design, report, trace, plot)


def _check_outputs(target: Path, trace: Path | None, plot: Path | None, inputs: Sequence[Path]) -> None:
    if trace is not None and trace.suffix != ".json":
        raise NearsideError(f"{trace}: the name of a sort's trace ends in .json (for Perfetto)")
    files.check_apart([target, trace, plot], inputs)
    if plot is not None:
        plots.check(plot)
    for path in (target, trace):
        if path is not None:
            files.check_output(path)


def explain(
    source: str | Path, by: str, devices: int = 1, design: Design | None = None, *, source_format: str | None = None
) -> dict[str, Any]:
    """What `sort_file` would do: which device gets how many rows in which partitions, and the bound of each stage."""
    design, source = design or Design.load(DESIGN), Path(source)
    files.check_regular(source)
    shape = {"source": format_of_source(source, source_format), "devices": devices}
    return _planned(design, _native.explain_sort(design.native, source, as_text("by", by), _text(source), **shape))


@renamed(engine="model")
def explain_standing(
    name: str,
    media: Sequence[str | Path],
    by: str,
    model: str | None = None,
    design: Design | None = None,
    build: BuildProgress | None = None,
) -> dict[str, Any]:
    """The same of a sort of a table that stands on devices."""
    design, media = design or Design.load(DESIGN), _all(media)
    check_there(media)
    names = (as_text("name", name), as_text("by", by))
    return _planned(design, _native.table_explain(design.native, _paths(media), *names, model=model, build=build))


def _planned(design: Design, told: str) -> dict[str, Any]:
    plan = json.loads(told)
    return {"design": design.name, "plan": plan, "bounds": bounds.of_plan(design, plan)}


def _bounded(design: Design, report: str, trace: Path | None = None, plot: Path | None = None) -> dict[str, Any]:
    """A report with the bound of each stage, and how much of it was reached; its trace goes to files."""
    doc = json.loads(report)
    events = doc.pop("trace", None)
    if trace is not None:
        files.write_bytes(trace, json.dumps(events).encode())
    if plot is not None:
        plots.sort(events, plot)
    # A table that is read back as it is has no plan.
    planned = bounds.of_plan(design, doc["plan"]) if doc["plan"] else []
    known = {bound["stage"]: bound for bound in planned}
    for stage in doc["stages"]:
        bound = known.get(stage["stage"])
        if bound and stage["ns"]:
            bound |= {"reached_percent": 100 * bound["ns"] / stage["ns"]}
    return doc | {"bounds": list(known.values())}


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
) -> dict[str, Any]:
    """Writes the table of a file to devices with these media files, each a part of its rows; `keys` are the
    columns that it can be sorted by there: `"a, b"`."""
    design = design or Design.load(DESIGN)
    source, media = Path(source), _all(media)
    files.check_apart(media, [source, *design.files])
    files.check_regular(source)
    shape = {"source": format_of_source(source, source_format), "model": model, "build": build, "progress": progress}
    names = (as_text("name", name), as_text("keys", keys))
    return json.loads(_native.table_put(design.native, _paths(media), source, *names, _text(source), **shape))


@renamed(engine="model")
def standing(
    media: Sequence[str | Path],
    model: str | None = None,
    design: Design | None = None,
    build: BuildProgress | None = None,
) -> list[dict[str, Any]]:
    """The tables on devices with these media files.

    Of each its name and its id, which stands for the name where tables of one name are on media files of their own.
    """
    design, media = design or Design.load(DESIGN), _all(media)
    check_there(media)
    return json.loads(_native.table_list(design.native, _paths(media), model=model, build=build))


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
) -> dict[str, Any]:
    """Reads the table with this name or id back into a file, whole or not at all.

    With `by` it is sorted where it stands. Returns what it took. `trace` and `plot` as of `sort_file`.
    """
    design = design or Design.load(DESIGN)
    media, target, trace, plot = _all(media), Path(target), _path(trace), _path(plot)
    _check_outputs(target, trace, plot, [*media, *design.files])
    check_there(media)
    shape = {"target": format_of(target, target_format), "compression": compression, "model": model}
    shape |= {"build": build, "progress": progress, "by": by if by is None else as_text("by", by)}
    shape |= {"trace": bool(trace or plot)}
    with files.replaced(target) as part:
        to = {"output": (part, _text(target))}
        report, _ = _native.table_get(design.native, _paths(media), as_text("name", name), **shape, **to)
    return _bounded(design, report, trace, plot)


@renamed(engine="model")
def drop(
    name: str,
    media: Sequence[str | Path],
    model: str | None = None,
    design: Design | None = None,
    build: BuildProgress | None = None,
) -> None:
    """Forgets the table with this name or id on devices with these media files, or what is left of it."""
    design, media = design or Design.load(DESIGN), _all(media)
    check_there(media)
    _native.table_drop(design.native, _paths(media), as_text("name", name), model=model, build=build)


def _path(path: str | Path | None) -> Path | None:
    return None if path is None else Path(path)


def _all(paths: Sequence[str | Path]) -> list[Path]:
    """Paths, also where they are told as text; one alone is one."""
    return [Path(path) for path in ([paths] if isinstance(paths, str | Path) else paths)]


def _paths(media: Sequence[Path]) -> list[str]:
    return [as_text("the name of a media file", str(path)) for path in media]


def check_there(media: Sequence[Path]) -> None:
    """A media file that isn't there holds no table, and isn't made for that."""
    for path in media:
        files.check_regular(path)


@renamed(engine="model")
def sort_table(
    table: pyarrow.Table | str | Path,
    by: str,
    devices: int = 1,
    model: str | None = None,
    design: Design | None = None,
    build: BuildProgress | None = None,
    progress: Progress | None = None,
) -> tuple[pyarrow.Table, dict[str, Any]]:
    """Sorts a table of pyarrow, or of a file, on simulated devices: the sorted table, and what it took.

    `by` names columns: `"a, b desc nulls last"`. The sort is stable. Nulls are last, and first where the greatest is.
    """
    design = design or Design.load(DESIGN)
    shape = {"devices": devices, "model": model, "build": build, "progress": progress}
    if isinstance(table, str | Path):
        files.check_regular(Path(table))
        data, name, source = Path(table), _text(table), format_of_source(Path(table))
    else:
        check_table(table, " or the path of a file")
        data, name, source = to_stream(dictionaries.widened(table)), "table", "stream"
    report, data = _native.sort_table(
        design.native, data, as_text("by", by), name, source=source, target="stream", **shape
    )
    found = of_stream(data)
    if not isinstance(table, str | Path):
        found = dictionaries.narrowed(found, table.schema)
    return found, _bounded(design, report)


def check_table(table: pyarrow.Table, other: str = "") -> None:
    """A TypeError if it is none; `other` is what it might have been, too."""
    if not isinstance(table, _pyarrow().Table):
        raise TypeError(f"table must be a pyarrow.Table{other}, not {type(table).__name__}")


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


def _text(path: str | Path) -> str:
    """A name as errors tell it."""
    return str(path).encode(errors="backslashreplace").decode()


def print_report(doc: dict[str, Any]) -> None:
    """As a table for people."""
    count, parts = len(doc["devices"]), doc["partitions"]
    devices = f"{count} device{'s' if count > 1 else ''}"
    if parts > count:
        devices += f", {parts} partitions"
    key = f", key: {doc['key']}" if doc["key"] else ""
    title = f"{doc['rows']} rows on {devices} ({doc['engine']}){key}"
    table = show.table(title, "stage", "simulated time", "bytes", "GB/s", "NVMe commands", "of its bound")
    reached = {bound["stage"]: bound.get("reached_percent") for bound in doc.get("bounds", [])}
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


def print_plan(doc: dict[str, Any]) -> None:
    """What would be done, as a table for people."""
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


def print_standing(tables: list[dict[str, Any]]) -> None:
    """Tables on devices, for people."""
    table = show.table("tables", "name", "id", "rows", "bytes of a row", "keys", "size", "parts", "devices")
    for entry in tables:
        parts = f"{entry['parts']} of {entry['of_parts']}"
        row = (str(entry["rows"]), str(entry["row_bytes"]), ", ".join(entry["keys"]), show.size(entry["bytes"]), parts)
        table.add_row(entry["name"], entry["id"], *row, " ".join(map(str, entry["devices"])))
    show.out.print(table)
