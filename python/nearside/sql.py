"""ORDER BY of DataFusion's Python package on devices: a rule for its sessions.

    ctx = datafusion.SessionContext()
    sort = nearside.sql.rule(devices=2, engine="fast")
    ctx.add_physical_optimizer_rule(sort)
    ctx.sql("select * from t order by a, b desc").to_arrow_table()
    sort.reports[-1]  # simulated time of each stage, as of nearside.sort_table

`EXPLAIN` shows `NearsideSortExec` where devices sort, and `NearsideDeclined` with the reason where the CPU does.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from nearside import _native, tables
from nearside._native import NearsideError
from nearside.device import BuildProgress, Design, engine_of

if TYPE_CHECKING:
    from collections.abc import Callable


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

    def __init__(self, design: Design, devices: int, engine: str | None, build: BuildProgress | None) -> None:
        import pyarrow as pa  # DataFusion has it

        self.label = f"devices={devices}, design={design.name}, engine={engine_of(engine)}"
        self.design, self.devices, self.engine, self.build = design, devices, engine, build
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
            engine=self.engine,
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


def rule(
    devices: int = 1, engine: str | None = None, design: Design | None = None, build: BuildProgress | None = None
) -> Rule:
    """Has a session of DataFusion sort on simulated devices, whatever it sorts; arguments as of `nearside.sort_table`.

    Rows of a partition that is sorted are in memory. A key is a column or any expression of columns. What the devices
    can't take (a table that is too large, a key without an order) the CPU sorts, which `EXPLAIN` and `reports` tell.
    """
    return Rule(_Devices(design or Design.load(tables.DESIGN), devices, engine, build))
