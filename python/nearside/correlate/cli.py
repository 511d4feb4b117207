# SPDX-License-Identifier: Apache-2.0
"""`nearside correlate`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from nearside import files, results, show
from nearside._native import NearsideError

EPILOG = "Examples: nearside correlate --quick · nearside correlate --rows 400 --seed 7 --plot scatter.png"


def correlate(
    rows: Annotated[
        int | None, typer.Option(help="How many; by default 108, with --quick 12.", min=1, max=10_000)
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the rows.", min=0, max=(1 << 31) - 1)] = 1,
    quick: Annotated[bool, typer.Option("--quick", help="Few and short rows on one design.")] = False,
    only: Annotated[
        str | None,
        typer.Option(
            metavar="seen|held-out",
            help="Only the rows that were at hand while the fast model was written, or the others.",
        ),
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw fast over rtl here (*.png).")] = None,
    reuse: Annotated[
        Path | None, typer.Option(help="References of the RTL; by default correlate.rtl.json in the results.")
    ] = None,
    worst: Annotated[bool, typer.Option("--worst", help="Worst rows first.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")] = False,
) -> None:
    """Compare the fast model with the RTL model.

    Mean latency and bandwidth of the same workloads ("rows") on both.

    Rows are drawn by seed, with corner cases by name. A part of them is held out: the fast model was
    written without them. Results of the RTL are kept, so a second run needs the fast model only.
    Ctrl-C leaves the rows that there are, marked as partial. p99 is shown without a bound.
    """
    from nearside.correlate import measure
    from nearside.correlate import run as comparison

    def save(doc: dict[str, Any]) -> Path:
        doc["saved"] = str(results.folder() / "correlate.json")
        return results.save("correlate", doc)

    if only == "tuned":
        print("nearside: warning: --only tuned is deprecated: it is --only seen now", file=sys.stderr)
        only = "seen"
    if only not in (None, "seen", "held-out"):
        raise NearsideError(f"--only {files.printable(only)}: allowed are seen, held-out")
    if plot is not None:
        from nearside import plots

        plots.check(plot)
    results.check_outputs(["correlate.json"], [plot, reuse or results.folder_path() / measure.REFERENCES])
    count = rows or (comparison.QUICK_ROWS if quick else comparison.ROWS)
    with show.building("correlate", not as_json) as build, show.bar("comparing", not as_json) as progress:
        group = {None: None, "seen": "tuned", "held-out": "held out"}[only]
        doc = comparison.run(count, seed, quick, group, reuse, build, progress, save)
    if plot is not None:
        plots.correlation(doc, plot)
        doc["plot"] = str(plot)
        save(doc)
    if as_json:
        print(json.dumps(doc, indent=1))
    else:
        comparison.print_document(doc, worst)
        show.out.print(f"Results: {doc['saved']}", soft_wrap=True)
