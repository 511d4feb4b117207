"""Tables that are sorted on devices: of files, and of pyarrow."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nearside import _native, files, show
from nearside._native import NearsideError
from nearside.device import BuildProgress, Design, Progress, as_text

if TYPE_CHECKING:
    import pyarrow

DESIGN = "sort"
# What a file is by the end of its name; Parquet, if it has another one.
FORMATS = {
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".arrows": "stream",
    ".csv": "csv",
}


def format_of(path: Path, given: str | None = None) -> str:
    """How a table stands in a file: as is said, else by the end of its name."""
    return given or FORMATS.get(path.suffix.lower(), "parquet")


def sort_file(
    source: Path,
    target: Path,
    by: str,
    devices: int = 1,
    engine: str | None = None,
    design: Design | None = None,
    build: BuildProgress | None = None,
    progress: Progress | None = None,
    *,
    source_format: str | None = None,
    target_format: str | None = None,
    compression: str = "snappy",
) -> dict[str, Any]:
    """Sorts the table of a file into another one, whole or not at all; returns what it took."""
    design = design or Design.load(DESIGN)
    files.check_apart([target], [source, *design.files])
    files.check_output(target)
    shape = {"devices": devices, "engine": engine, "build": build, "progress": progress}
    formats = {"source": format_of(source, source_format), "target": format_of(target, target_format)}
    data = files.read_bytes(source)
    report, data = _native.sort_table(
        design.native, data, as_text("by", by), _text(source), compression=compression, **formats, **shape
    )
    files.write_bytes(target, data)
    return json.loads(report)


def sort_table(
    table: pyarrow.Table | str | Path,
    by: str,
    devices: int = 1,
    engine: str | None = None,
    design: Design | None = None,
    build: BuildProgress | None = None,
    progress: Progress | None = None,
) -> tuple[pyarrow.Table, dict[str, Any]]:
    """Sorts a table of pyarrow, or of a file, on simulated devices: the sorted table, and what it took.

    `by` names columns: `"a, b desc nulls last"`. The sort is stable. Nulls are last, and first where the greatest is.
    """
    pa = _pyarrow()
    design = design or Design.load(DESIGN)
    shape = {"devices": devices, "engine": engine, "build": build, "progress": progress}
    if isinstance(table, str | Path):
        data, name, source = files.read_bytes(Path(table)), _text(table), format_of(Path(table))
    elif isinstance(table, pa.Table):
        data, name, source = to_stream(table), "table", "stream"
    else:
        raise TypeError(f"table must be a pyarrow.Table or the path of a file, not {type(table).__name__}")
    report, data = _native.sort_table(
        design.native, data, as_text("by", by), name, source=source, target="stream", **shape
    )
    return of_stream(data), json.loads(report)


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
    devices = f"{len(doc['devices'])} device{'s' if len(doc['devices']) > 1 else ''}"
    title = f"{doc['rows']} rows on {devices} ({doc['engine']}), key: {doc['key']}"
    table = show.table(title, "stage", "simulated time", "bytes", "GB/s", "NVMe commands")
    for stage in doc["stages"]:
        rate = f"{stage['bytes'] / stage['ns']:.2f}" if stage["ns"] else "-"
        row = (show.nanoseconds(stage["ns"]), show.size(stage["bytes"]), rate, str(stage["commands"]))
        table.add_row(stage["stage"], *row)
    table.add_row("all", show.nanoseconds(doc["elapsed_ns"]), "", "", "")
    show.out.print(table)
    host = doc["host"]
    ties = f", {doc['ties']} ties" if doc["ties"] else ""
    show.out.print(
        f"host, wall-clock: {show.nanoseconds(host['prepare_ns'])} to make keys and rows, "
        f"{show.nanoseconds(host['merge_ns'])} to merge{ties}"
    )
