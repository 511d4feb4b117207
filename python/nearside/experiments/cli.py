# SPDX-License-Identifier: Apache-2.0
"""`nearside experiment` and `nearside report`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from nearside import files, results, show
from nearside._native import NearsideError
from nearside.commands import App
from nearside.device import MAX_U64
from nearside.experiments import document, models
from nearside.experiments.registry import Experiment, all_experiments, find

app = App(
    help="List and run the papers' figures and tables.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

REPORT_EPILOG = "Example: nearside experiment run all --quick && nearside report -o report.html"
ALL = "all"

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]


@app.command("list", epilog="Example: nearside experiment list --json | jq '.[].name'")
def list_experiments(as_json: JsonOption = False) -> None:
    """Show every experiment: its name, where the figure is in the paper, and the models that can run it."""
    experiments = all_experiments().values()
    if as_json:
        keys = ("name", "title", "source", "models", "design", "time", "quick", "full")
        written = {"models": "engines"}  # the key in documents since the first version
        print(json.dumps([{written.get(key, key): getattr(e, key) for key in keys} for e in experiments], indent=1))
        return
    table = show.table(f"{len(experiments)} experiments", "name", "what", "the paper's", "models")
    for column in table.columns[1:]:
        column.justify = "left"
    # Users copy names: they are never cut.
    table.columns[0].no_wrap = True
    table.columns[0].min_width = max(len(e.name) for e in experiments)
    for e in experiments:
        table.add_row(e.name, e.title, e.source, ", ".join(e.models))
    show.out.print(table)
    show.out.print("Run one: nearside experiment run NAME --quick; all: nearside experiment run all", soft_wrap=True)


def chosen(name: str, model: str | None) -> tuple[list[tuple[Experiment, str]], list[Experiment]]:
    """The experiments to run, each with its model, and those that the model can't run."""
    if model is not None:
        models.check(model)
    if name != ALL:
        one = find(name)
        one.check(model or one.models[0])
        return [(one, model or one.models[0])], []
    every = list(all_experiments().values())
    able = [e for e in every if model is None or model in e.models]
    return [(e, model or e.models[0]) for e in able], [e for e in every if e not in able]


@app.command(epilog="Examples: nearside experiment run all --quick · nearside experiment run openexpress_fig4 --json")
def run(
    name: Annotated[str, typer.Argument(help="The name of an experiment, or all.")],
    quick: Annotated[bool, typer.Option("--quick", help="Fewer cases and commands: under a minute each.")] = False,
    model: Annotated[
        str | None,
        typer.Option(metavar="rtl|fast", help="What simulates the device; without it, the first that can."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of everything random.", min=0, max=MAX_U64)] = 1,
    design: Annotated[
        str | None, typer.Option("--design", "-d", metavar="NAME|FILE", help="Another design than the experiment's.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Measure a figure of a paper. Rows are saved as they come; Ctrl-C leaves them, marked as partial."""
    from nearside.experiments.run import run as measure

    several, left_out = chosen(name, model)
    docs = []
    for experiment, on in several:
        other = design if name != ALL or experiment.design else None
        with (
            show.building(experiment.name, not as_json) as build,
            show.bar(f"{experiment.name}: measuring", not as_json) as progress,
        ):
            doc = measure(experiment, on, quick, seed, other, build, progress)
        docs.append(doc)
        if not as_json:
            print_document(doc)
    if as_json:
        print(json.dumps(docs[0] if name != ALL else docs, indent=1))
        return
    if left_out:
        names = ", ".join(f"{e.name} ({e.models_text})" for e in left_out)
        show.out.print(f"left out, the model {model} can't do them: {names}", soft_wrap=True)
    show.out.print("Next: nearside report", soft_wrap=True)


def number(value: float | None) -> str:
    from nearside.claims.report import number as plain

    return plain(value)


def print_document(doc: dict[str, Any]) -> None:
    """Prints the figures that the paper states, or all if it states none; the file has all of them."""
    from nearside.page.experiments import deviation

    table = show.table(
        f"{doc['title']}: {doc['engine']}, seed {doc['seed']}", "", "ours", "the paper's", "ratio", "of the limit"
    )
    stated = [figure for figure in doc["figures"] if figure["source"] is not None]
    for figure in stated or doc["figures"]:
        ours = " ".join(filter(None, (number(figure["value"]), deviation(figure), figure["unit"])))
        theirs = figure["paper_text"] or f"{number(figure['paper'])} {figure['unit']}".strip()
        theirs = theirs if stated else "-"
        of_limit = "-" if figure["of_limit"] is None else f"{100 * figure['of_limit']:.4g} %"
        table.add_row(figure["text"], ours, theirs, number(figure["ratio"]), of_limit)
    show.out.print(table)
    times = {"simulated": "times are simulated", "wall-clock": "times are wall-clock", "none": "no times"}
    where = f"{len(doc['rows'])} rows in {doc['duration_s']:.1f} s; {times.get(doc['time'], doc['time'])}"
    show.out.print(Text(where, "dim"), soft_wrap=True)
    show.out.print(f"Results: {doc['saved']}\n", soft_wrap=True)


def report(
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to write it; by default report.html in the results.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Make one page of all results of experiments: ours beside the papers', the limits, plots, how to have it again.

    It opens from disk, without a network, and is made from results/experiments/*.json alone.
    """
    from nearside.page import experiments as page

    source = results.folder_path() / document.FOLDER
    docs, left_out = document.load_all(source)
    for one in left_out:
        print(f"{one}: left out, no result is saved by this name; rename or remove it", file=sys.stderr)
    if not docs:
        raise NearsideError(
            f"{files.printable(source)}: no results yet; run `nearside experiment run all --quick` first"
        )
    path = output or results.folder_path() / "report.html"
    if not path.parent.is_dir():
        raise NearsideError(f"{files.printable(path)}: its folder doesn't exist; make it, or name another file with -o")
    files.check_apart([path], source.glob("*.json"))
    files.write_text(path, page.html(docs))
    partial = [f"{doc['name']}.{doc['engine']}" for doc in docs if doc["status"] == "partial"]
    if as_json:
        names = [f"{doc['name']}.{doc['engine']}" for doc in docs]
        written = {"written": str(path), "from": names, "partial": partial, "left_out": [str(one) for one in left_out]}
        print(json.dumps(written))
        return
    show.out.print(f"{path}: written from {len(docs)} results in {source}", soft_wrap=True)
    if partial:
        show.out.print(f"partial: {', '.join(partial)}; run them again for the rest", soft_wrap=True)
