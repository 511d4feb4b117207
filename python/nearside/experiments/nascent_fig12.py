# SPDX-License-Identifier: Apache-2.0
"""NASCENT, figure 12: sorting tables by rows and columns."""

from __future__ import annotations

from typing import Any

from nearside import platforms
from nearside.experiments import nascent
from nearside.experiments.registry import Experiment, Row, Run, figure, plot

STAGES = ("sort", "gather")


def cases(run: Run) -> list[dict[str, Any]]:
    return [{"rows": rows, "columns": columns} for rows, columns in run.parameters["tables"]]


def measure(run: Run, case: dict[str, Any]) -> Row:
    table = platforms.Table.drawn(case["rows"], 4 * case["columns"], False, run.seed)
    stages = platforms.sort_tables(run.required_design, [table], model=run.model, build=run.build)
    return {**case, "stages": stages, "stored": table.stored, "bound_ns": table.stored / platforms.SSD_GB_S}


def label(row: Row) -> str:
    return f"{nascent.count_name(row['rows'])} x {nascent.count_name(row['columns'])}"


def figures(rows: list[Row]) -> list[dict[str, Any]]:
    out = []
    for row in rows:
        name = label(row).replace(" ", "")
        out += [
            figure(f"{name}.time", f"time: {label(row)}", row["stages"]["all"] / 1e6, "ms", better="lower",
                   limit=row["bound_ns"] / 1e6, limit_text="the link of 3 GB/s"),
            figure(f"{name}.sort", f"of it, sorting the key column: {label(row)}", row["stages"]["sort"] / 1e6, "ms",
                   better="lower", paper_text="gathering rows dominates", source="section 4.2"),
        ]  # fmt: skip
    return out


def plots(rows: list[Row]) -> list[dict[str, Any]]:
    series = [{"name": stage, "of": "ours", "y": [row["stages"][stage] / 1e6 for row in rows]} for stage in STAGES]
    series.append({"name": "the link", "of": "limit", "y": [row["bound_ns"] / 1e6 for row in rows]})
    title = "Figure 12: time to sort tables"
    return [
        plot(title, [label(row) for row in rows], series, x_label="rows x columns", y_label="ms, simulated", log=True)
    ]


EXPERIMENT = Experiment(
    name="nascent_fig12",
    title="Sorting tables by rows and columns",
    source=f"{nascent.TITLE}, figure 12",
    text=(
        "A plain key column of 32 bits is sorted, and rows of 4 bytes a column are gathered from flash in its order, "
        "by three engines. The time ends when the rows are in the device's memory.",
        nascent.DEVICE_TEXT,
        "The paper shows its times in a figure with a logarithmic axis and states none of them as a number; it says "
        "that time grows with the table's size and that gathering fills the link. Its tables have up to 1M rows or "
        "columns. An engine takes rows of up to 64 KiB, so ours end at 16K columns, and at what the simulated flash "
        "holds.",
    ),
    quick={"tables": [[1024, 1024], [10_240, 1024], [1024, 10_240]]},
    full={"tables": [[1024, 1024], [10_240, 1024], [102_400, 1024], [1024, 10_240], [10_240, 10_240], [1024, 16_384]]},
    cases=cases,
    measure=measure,
    figures=figures,
    plots=plots,
    models=("fast", "rtl"),
    design="smartssd",
)
