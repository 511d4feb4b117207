"""ORDER BY of DataFusion's Python package on devices: a rule for its sessions, and tables that stand on devices.

    ctx = datafusion.SessionContext()
    sort = nearside.sql.rule(devices=2, model="fast")
    ctx.add_physical_optimizer_rule(sort)
    ctx.sql("select * from t order by a, b desc").to_arrow_table()
    sort.reports[-1]  # simulated time of each stage, as of nearside.sort_table

    lines = nearside.sql.table("lineitem", ["d0.img", "d1.img"], model="fast")  # after `nearside table put`
    ctx.register_table("lineitem", lines)

`EXPLAIN` shows `NearsideSortExec` where rows go to devices to be sorted, `NearsideScanExec: sorted in place` where they
stand there, and `NearsideDeclined` with the reason where the CPU sorts.
"""

from __future__ import annotations

import json
import re
import threading
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nearside import _native, tables
from nearside._native import NearsideError
from nearside.device import BuildProgress, Design, as_text, model_of
from nearside.renamed import renamed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


def _extension() -> Any:
    try:
        import nearside_datafusion
    except ImportError:
        raise NearsideError(
            "SQL needs the extension nearside_datafusion: make datafusion (Rust 1.94 or newer), or "
            "pip install ./extensions/datafusion"
        ) from None
    return nearside_datafusion


class _Devices:
    """What the extension asks: tables come and go as Arrow IPC streams."""

    def __init__(self, design: Design, devices: int, model: str | None, build: BuildProgress | None) -> None:
        import pyarrow as pa  # DataFusion has it

        self.label = f"devices={devices}, design={design.name}, model={model_of(model)}"
        self.design, self.devices, self.model, self.build = design, devices, model, build
        self.reports: list[dict[str, Any]] = []
        nothing = pa.table({"key": pa.array([], pa.int32())})
        self._sort(tables.to_stream(nothing), "key", None)  # refuses what no table can be sorted with

    def _sort(self, table: bytes, by: str, going: Callable[[int, int], None] | None) -> tuple[str, bytes]:
        return _native.sort_table(
            self.design.native,
            table,
            by,
            source="stream",
            target="stream",
            devices=self.devices,
            model=self.model,
            build=self.build,
            progress=going,
        )

    def declines(self, schema: bytes, by: str) -> str | None:
        """Why no table of this schema can be sorted so: what a table without rows is told."""
        try:
            self._sort(schema, by, None)
        except NearsideError as error:
            return str(error)
        return None

    def sort(self, table: bytes, by: str, going: Callable[[int, int], None]) -> bytes | str:
        """The sorted table, or why the CPU has to sort it."""
        try:
            report, table = self._sort(table, by, going)
        except NearsideError as error:
            self.reports.append({"declined": str(error)})
            return str(error)
        self.reports.append(json.loads(report))
        return table


class Rule:
    """For `SessionContext.add_physical_optimizer_rule`."""

    def __init__(self, devices: _Devices) -> None:
        self._rule = _extension().Rule(devices)
        #: Of each sort the report that `nearside.sort_table` gives; `{"declined": reason}` where the CPU had to.
        self.reports = devices.reports

    def __datafusion_physical_optimizer_rule__(self, *session: Any) -> Any:
        return self._rule.__datafusion_physical_optimizer_rule__(*session)


@renamed(engine="model")
def rule(
    devices: int = 1, model: str | None = None, design: Design | None = None, build: BuildProgress | None = None
) -> Rule:
    """Has a session of DataFusion sort on simulated devices, whatever it sorts; arguments as of `nearside.sort_table`.

    Rows of a partition that is sorted are in memory. A key is a column or any expression of columns. What the devices
    can't take (a table that is too large, a key without an order) the CPU sorts, which `EXPLAIN` and `reports` tell.
    """
    return Rule(_Devices(design or Design.load(tables.DESIGN), devices, model, build))


_LOCKS: dict[Path, threading.Lock] = {}
_LOCKS_LOCK = threading.Lock()


@contextmanager
def _reading(media: Sequence[Path], going: Callable[[int, int], None] = lambda _done, _total: None) -> Iterator[None]:
    """Holds media files: a plan may read tables of the same ones at once, and only one simulation can have them.

    `going` is called while it waits, and ends that with an exception.
    """
    with ExitStack() as stack:
        for path in sorted({path.resolve() for path in media}):
            with _LOCKS_LOCK:
                lock = _LOCKS.setdefault(path, threading.Lock())
            while not lock.acquire(timeout=0.05):
                going(0, 1)
            stack.callback(lock.release)
        yield


class _Standing:
    """What the extension asks of a table that stands on devices."""

    def __init__(
        self, name: str, media: Sequence[Path], model: str | None, design: Design, build: BuildProgress | None
    ) -> None:
        self._where = (design.native, [str(path) for path in media], name)
        self._how = {"model": model, "build": build}
        self._media = media
        with _reading(media):
            standing = tables.standing(media, model, design, build)
            self.schema = _native.table_schema(*self._where, **self._how)
        self._columns = tables.of_stream(self.schema).schema
        self.keys = next((table["keys"] for table in standing if name in (table["name"], table["id"])), [])
        self.label = f"table={name}, devices={len(media)}, design={design.name}, model={model_of(model)}"
        self.reports: list[dict[str, Any]] = []

    def declines(self, _schema: bytes, by: str) -> str | None:
        """Why it isn't sorted where it stands; `by` is as the extension writes it."""
        first = re.match(r'"((?:[^"]|"")*)"', by)
        key = first[1].replace('""', '"') if first else by
        return None if key in self.keys else f"the table has no key {key!r} there, but {', '.join(self.keys) or 'none'}"

    def read(self, columns: list[str], by: str | None, going: Callable[[int, int], None]) -> bytes | str:
        """Columns of it, in an order if one is asked for."""
        with _reading(self._media, going):
            tables.check_there(self._media)
            report, data = _native.table_get(*self._where, by=by, target="stream", progress=going, **self._how)
        table = tables.of_stream(data)
        if not table.schema.equals(self._columns):
            name = self._where[2]
            raise NearsideError(
                f"table {name!r} has other columns than when nearside.sql.table was called: call it again"
            )
        self.reports.append(json.loads(report))
        return tables.to_stream(table.select(columns))


class Table:
    """For `SessionContext.register_table`."""

    def __init__(self, standing: _Standing) -> None:
        self._provider = _extension().Provider(standing, standing.schema)
        #: Of each reading the report that `nearside.tables.get` gives.
        self.reports = standing.reports

    def __datafusion_table_provider__(self, session: Any) -> Any:
        return self._provider.__datafusion_table_provider__(session)


@renamed(engine="model")
def table(
    name: str,
    media: Sequence[str | Path],
    model: str | None = None,
    design: Design | None = None,
    build: BuildProgress | None = None,
) -> Table:
    """A table that `nearside table put` has written to devices with these media files, for queries.

    In a session that has the `rule`, ORDER BY whose first key is one that it was put with is done where it stands: its
    rows don't go to the devices again. A query reads the whole table, whichever columns it wants.
    """
    design = design or Design.load(tables.DESIGN)
    return Table(_Standing(as_text("name", name), [Path(path) for path in media], model, design, build))
