# SPDX-License-Identifier: Apache-2.0
"""`nearside claim`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from nearside import files, results, show
from nearside._native import NearsideError
from nearside.claims import report as reports
from nearside.claims.registry import Claim, all_claims, find
from nearside.claims.run import run_claims
from nearside.commands import App
from nearside.device import MAX_U64

app = App(
    help="List and rerun the figures that this project states.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]


@app.command("list", epilog="Example: nearside claim list --json | jq '.[].name'")
def list_claims(as_json: JsonOption = False) -> None:
    """Show every claim: name, bound, the paper's figure, and what it says."""
    claims = all_claims().values()
    if as_json:
        keys = ("name", "unit", "text", "clocks", "time", "model", "quick")

        def entry(c: Claim) -> dict[str, Any]:
            paper = {"paper": str(c.paper), "differs": c.paper.differs} if c.paper else {"paper": None, "differs": None}
            return {"engine" if k == "model" else k: getattr(c, k) for k in keys} | paper | {"bound": str(c.bound)}

        print(json.dumps([entry(c) for c in claims], indent=1))
        return
    table = show.table(f"{len(claims)} claims", "claim", "bound", "paper", "what")
    table.columns[3].justify = table.columns[2].justify = "left"
    # Users copy names: they are never cut.
    table.columns[0].no_wrap = True
    table.columns[0].min_width = max(len(name) for name in all_claims())
    for c in claims:
        table.add_row(c.name, f"{c.bound} {c.unit}", str(c.paper or "-"), c.text)
    show.out.print(table)


def choose(claims: list[Claim], quick: bool, simulated: bool) -> tuple[list[Claim], dict[str, list[Claim]]]:
    """The claims to run, and those left out by reason."""
    left_out: dict[str, list[Claim]] = {}
    chosen = []
    for c in claims:
        if simulated and c.time == "wall-clock":
            left_out.setdefault("measured in wall-clock time", []).append(c)
        elif quick and not c.quick:
            left_out.setdefault("no quick variant", []).append(c)
        else:
            chosen.append(c)
    return chosen, left_out


@app.command(epilog="Examples: nearside claim run nvme --quick · nearside claim run 'nvm_delay.targets.*' --json")
def run(
    names: Annotated[list[str] | None, typer.Argument(help="Names, prefixes or patterns; none runs all.")] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="Smaller runs, under 30 seconds each; claims that have none are left out, or run whole if named.",
        ),
    ] = False,
    simulated: Annotated[
        bool, typer.Option("--simulated", help="Leave out what depends on the speed of this machine.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Seed of everything random.", min=0, max=MAX_U64)] = 1,
    report: Annotated[Path | None, typer.Option(help="Also write the validation page here.")] = None,
    exit_zero: Annotated[
        bool, typer.Option("--exit-zero", help="Exit with status 0 even if a claim does not hold.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Measure claims. The exit status is 1 when one of them does not hold. What is measured is saved after each."""
    claims, left_out = choose(find(names or []), quick and not names, simulated)
    width = max((len(c.name) for c in claims), default=0)

    def report_claim(entry: dict[str, Any]) -> None:
        verdict = "holds" if entry["holds"] else "DOES NOT HOLD"
        value = f"{reports.number(entry['value'])} {entry['unit']}"
        text = f"{entry['name']:{width}}  {value:>20}  ({entry['bound']})  {verdict}"
        where = f"{entry['engine']}, seed {entry['seed']}, {entry['time']}, {entry['duration_s']:.1f} s"
        if entry["reaches"] is False:
            text += f", less good than {entry['paper']}"
        line = Text.assemble(f"{text}  ", (where, "dim"))
        show.out.print(line, style=None if entry["holds"] else "red", soft_wrap=True)
        if entry["error"]:
            show.out.print(f"  {entry['error']}", style="red", soft_wrap=True)

    def save(doc: dict[str, Any]) -> None:
        results.save("claims", doc)
        if report is not None:
            files.write_text(report, reports.markdown(doc))

    results.check_outputs(["claims.json"], [report])
    if report is not None and not report.parent.is_dir():
        raise NearsideError(f"{files.printable(report)}: its folder doesn't exist")
    doc = run_claims(claims, quick, seed, None if as_json else report_claim, save)
    failing = [e["name"] for e in doc["claims"] if not e["holds"]]
    if as_json:
        print(json.dumps(doc, indent=1))
    else:
        for reason, others in left_out.items():
            show.out.print(f"left out, {reason}: {', '.join(c.name for c in others)}", soft_wrap=True)
        if failing:
            show.out.print(f"DO NOT HOLD: {', '.join(failing)}", style="red", soft_wrap=True)
        held = len(claims) - len(failing)
        show.out.print(f"{held} of {len(claims)} hold. Results: {results.folder() / 'claims.json'}", soft_wrap=True)
    if failing and not exit_zero:
        raise typer.Exit(1)


@app.command(
    "report", epilog="Examples: nearside claim run && nearside claim report · nearside claim report -o claims.html"
)
def write_report(
    documents: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="RESULT",
            help="Results of `nearside claim run`, by default the last; of several, the later one counts.",
        ),
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write it.")] = Path("docs/validation.md"),
    as_json: JsonOption = False,
) -> None:
    """Write the validation page from a run of claims, or from several: long ones can be measured apart.

    A name that ends in .html makes a page that opens from disk, with plots.
    """
    paths = documents or [results.folder() / "claims.json"]
    files.check_apart([output], paths)
    docs = [reports.load(path) for path in paths]
    if not output.parent.is_dir():
        raise NearsideError(
            f"{files.printable(output)}: its folder doesn't exist; make it, or name another file with -o"
        )
    if output.suffix == ".html":
        from nearside.page import claims as page

        files.write_text(output, page.html(*docs))
    else:
        files.write_text(output, reports.markdown(*docs))
    sources = [str(path) for path in paths]
    if as_json:
        print(json.dumps({"written": str(output), "from": sources}))
    else:
        show.out.print(f"{output}: written from {', '.join(sources)}", soft_wrap=True)
