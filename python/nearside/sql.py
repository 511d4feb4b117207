# SPDX-License-Identifier: Apache-2.0
"""ORDER BY of DataFusion's Python package on devices: an optimizer rule, and resident tables.

    ctx = datafusion.SessionContext()
    sort = nearside.sql.rule(devices=2, model="fast")
    ctx.add_physical_optimizer_rule(sort)
    ctx.sql("select * from t order by a, b desc").to_arrow_table()
    sort.reports[-1]  # simulated time of each stage, as of nearside.sort_table

    lines = nearside.sql.table("lineitem", ["d0.img", "d1.img"], model="fast")  # after `nearside table put`
    ctx.register_table("lineitem", lines)

`EXPLAIN` shows `NearsideSortExec` where rows go to devices to be sorted, and `NearsideScanExec: sorted in
place` for resident tables. Where the CPU sorts it shows `NearsideDeclined` with the reason.
"""

from __future__ import annotations

import re
import threading
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nearside import _native, tables
from nearside._native import NearsideError
from nearside.device import BuildProgress, Design, as_text, model_of
from nearside.renamed import renamed
from nearside.types import ArrowStream, DeclinedSort, PutReport

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


class _SortProvider:
    """The interface of the extension for sorts."""

    def __init__(self, design: Design, devices: int, model: str | None, build: BuildProgress | None) -> None:
        import pyarrow as pa  # DataFusion has it

        self.label = f"devices={devices}, design={design.name}, model={model_of(model)}"
        self.design, self.devices, self.model, self.build = design, devices, model, build
        self.reports: list[PutReport | DeclinedSort] = []
        empty = pa.table({"key": pa.array([], pa.int32())})
        self._sort(empty, "key", None)  # raises an error for invalid options

    def _sort(
        self, table: ArrowStream, by: str, progress: Callable[[int, int], None] | None
    ) -> tuple[PutReport, _native.ArrowTable | None]:
        return _native.sort_table(
            self.design.native,
            table,
            by,
            devices=self.devices,
            model=self.model,
            build=self.build,
            progress=progress,
        )

    def declines(self, empty: ArrowStream, by: str) -> str | None:
        """Why no table with the columns of this empty one can be sorted on devices."""
        try:
            self._sort(empty, by, None)
        except NearsideError as error:
            return str(error)
        return None

    def sort(self, table: ArrowStream, by: str, progress: Callable[[int, int], None]) -> ArrowStream | str:
        """The sorted table, or the reason why the CPU has to sort it."""
        try:
            report, sorted_ = self._sort(table, by, progress)
        except NearsideError as error:
            self.reports.append({"declined": str(error)})
            return str(error)
        self.reports.append(report)
        assert sorted_ is not None
        return sorted_


class Rule:
    """An argument of `SessionContext.add_physical_optimizer_rule`."""

    def __init__(self, devices: _SortProvider) -> None:
        self._rule = _extension().Rule(devices)
        #: The report of each sort, as of `nearside.sort_table`; `{"declined": reason}` if the CPU
        #: sorted.
        self.reports = devices.reports

    def __datafusion_physical_optimizer_rule__(self, *session: Any) -> Any:
        return self._rule.__datafusion_physical_optimizer_rule__(*session)


@renamed(engine="model")
def rule(
    devices: int = 1, model: str | None = None, design: Design | None = None, build: BuildProgress | None = None
) -> Rule:
    """Makes a DataFusion session sort on simulated devices; for arguments see
    `nearside.sort_table`.

    Rows of a partition that is being sorted are in memory. A key is a column or an expression of
    columns. The CPU sorts what devices can't: tables that are too large, keys without an order.
    `EXPLAIN` and `reports` show that.
    """
    return Rule(_SortProvider(design or Design.load(tables.DESIGN), devices, model, build))


_LOCKS: dict[Path, threading.Lock] = {}
_LOCKS_LOCK = threading.Lock()


@contextmanager
def _locked_media(
    media: Sequence[Path], progress: Callable[[int, int], None] = lambda _done, _total: None
) -> Iterator[None]:
    """Locks media files: a plan may read several tables of them, but one simulation can open them.

    `progress` is called while it waits, and may end the wait by an exception.
    """
    with ExitStack() as stack:
        for path in sorted({path.resolve() for path in media}):
            with _LOCKS_LOCK:
                lock = _LOCKS.setdefault(path, threading.Lock())
            while not lock.acquire(timeout=0.05):
                progress(0, 1)
            stack.callback(lock.release)
        yield


class _ResidentTable:
    """The interface of the extension for a resident table."""

    def __init__(
        self, name: str, media: Sequence[Path], model: str | None, design: Design, build: BuildProgress | None
    ) -> None:
        self._where = (design.native, [str(path) for path in media], name)
        self._media, self._model, self._build = media, model, build
        with _locked_media(media):
            resident = tables.resident(media, model, design, build)
            self.empty = tables.as_table(_native.table_schema(*self._where, model=model, build=build))
        self.keys = next((table["keys"] for table in resident if name in (table["name"], table["id"])), [])
        self.label = f"table={name}, devices={len(media)}, design={design.name}, model={model_of(model)}"
        self.reports: list[PutReport] = []

    def declines(self, _empty: ArrowStream, by: str) -> str | None:
        """Why it can't be sorted in place; `by` is in the extension's syntax."""
        first = re.match(r'"((?:[^"]|"")*)"', by)
        key = first[1].replace('""', '"') if first else by
        return None if key in self.keys else f"the table has no key {key!r} there, but {', '.join(self.keys) or 'none'}"

    def read(self, columns: list[str], by: str | None, progress: Callable[[int, int], None]) -> ArrowStream:
        """Columns of the table, sorted if `by` is given."""
        with _locked_media(self._media, progress):
            tables.check_media_exist(self._media)
            report, data = _native.table_get(
                *self._where, by=by, progress=progress, model=self._model, build=self._build
            )
        assert data is not None
        table = tables.as_table(data)
        if not table.schema.equals(self.empty.schema):
            name = self._where[2]
            raise NearsideError(
                f"table {name!r} has other columns than when nearside.sql.table was called: call it again"
            )
        self.reports.append(report)
        return table.select(columns)


class Table:
    """An argument of `SessionContext.register_table`."""

    def __init__(self, resident: _ResidentTable) -> None:
        self._provider = _extension().Provider(resident, resident.empty)
        #: The report of each read, as of `nearside.tables.get`.
        self.reports = resident.reports

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
    """A resident table, written by `nearside table put`, for queries.

    In a session with the `rule`, ORDER BY with one of the table's keys first is sorted in place:
    the rows are not written to devices again. Every query reads the whole table, whichever columns
    it selects.
    """
    design = design or Design.load(tables.DESIGN)
    return Table(_ResidentTable(as_text("name", name), [Path(path) for path in media], model, design, build))
