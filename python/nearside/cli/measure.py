# SPDX-License-Identifier: Apache-2.0
"""Commands that measure: wire, latency, qos, trace."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nearside import files, show
from nearside._native import NearsideError
from nearside.cli.app import app
from nearside.cli.options import DesignOption, JsonOption, ModelOption, TraceOption, print_json
from nearside.commands import MEASURE
from nearside.device import MAX_U64


@app.command(group=MEASURE, epilog="Examples: nearside wire · nearside wire gen3x16 --json")
def wire(
    link: Annotated[str, typer.Argument(help="gen3x8, gen3x16 or gen4x8.")] = "gen3x8",
    design: DesignOption = "default",
    seed: Annotated[int, typer.Option(help="Seed of addresses and order.", min=0, max=MAX_U64)] = 1,
    model: ModelOption = None,
    trace: TraceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure bandwidth by size beside what the wire allows.

    Sizes are 512 B to 128 KiB; the ratio is shown.
    """
    from nearside import wire as table
    from nearside.device import Design, Device

    if link not in table.LINKS:
        raise NearsideError(f"no link is called {link!r}: allowed are {', '.join(table.LINKS)}")
    loaded = Design.load(design).with_values(table.LINKS[link])
    files.check_apart([trace], loaded.files)
    with show.building(loaded.name, not as_json) as progress:
        device = Device(loaded, progress, model, commands=trace)
    rows = []
    with device, show.bar("measuring", not as_json) as progress:
        device.delay_set("dram")
        for done, case in enumerate(table.cases()):
            progress(done, len(table.cases()))
            rows.append(table.measure(device, case, case.commands(), seed))
    device.trace_stop()
    if as_json:
        print_json({"link": link, "engine": device.model, "time": "simulated", "seed": seed, "rows": rows})
    else:
        table.print_table(link, rows)


@app.command(group=MEASURE, epilog="Examples: nearside qos · nearside qos 8 --plot qos.png")
def qos(
    credits: Annotated[
        list[int] | None,
        typer.Argument(help="Lines that each engine may have in flight in a channel; 0: no limit.", min=0, max=1023),
    ] = None,
    commands: Annotated[int, typer.Option(help="NVMe commands of each row.", min=400, max=MAX_U64)] = 6400,
    seed: Annotated[int, typer.Option(help="Seed of addresses.", min=0, max=MAX_U64)] = 1,
    plot: Annotated[Path | None, typer.Option(help="Draw the curve here (*.png).")] = None,
    model: ModelOption = None,
    as_json: JsonOption = False,
) -> None:
    """Measure loads, NVMe and engines that share a memory.

    Loads, NVMe reads and two copies run at the same time, with several credits of the engines.
    """
    from nearside import plots
    from nearside import qos as curve

    if plot is not None:
        plots.check(plot)
    with show.building("engines", not as_json) as build, show.bar("measuring", not as_json) as progress:
        doc = curve.measure(credits or curve.CURVE, commands, seed, build, progress, model)
    if plot is not None:
        plots.qos(doc, plot)
        doc["plot"] = str(plot)
    if as_json:
        print_json(doc)
    else:
        curve.print_table(doc)


@app.command(group=MEASURE, epilog="Examples: nearside latency · nearside latency --profile pcm --json")
def latency(
    profile: Annotated[
        list[str] | None, typer.Option(help="Media profiles; without one, DRAM and the design's own.")
    ] = None,
    commands: Annotated[int, typer.Option(min=1, max=1000, help="How many of each.")] = 20,
    design: DesignOption = "default",
    seed: Annotated[int, typer.Option(help="Seed of addresses.", min=0, max=MAX_U64)] = 1,
    model: ModelOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show where the time of a single command goes.

    4 KiB reads and writes, stage by stage: link, host, memory, controller.
    """
    from nearside import latency as breakdown
    from nearside.device import Design, media_profile

    loaded = Design.load(design)
    chosen = profile or list(dict.fromkeys(["dram", loaded.values["media"]["profile"]]))
    for name in chosen:
        media_profile(name)
    doc = breakdown.run(loaded, chosen, commands, seed, quiet=as_json, model=model)
    if as_json:
        print_json(doc)
    else:
        breakdown.print_document(doc)


@app.command(group=MEASURE, epilog="Example: nearside demo --trace t.jsonl && nearside trace t.jsonl")
def trace(
    file: Annotated[Path, typer.Argument(help="A trace of JSON lines (*.jsonl).")],
    plot: Annotated[Path | None, typer.Option(help="Draw the first commands of I/O queues here (*.png).")] = None,
    first: Annotated[int, typer.Option(min=1, max=200, help="How many to draw.")] = 40,
    as_json: JsonOption = False,
) -> None:
    """Summarise the stages of commands in a trace.

    Percentiles of each stage of each kind of command. Perfetto shows `*.json` traces.
    """
    from nearside import plots
    from nearside import trace as traces

    files.check_apart([plot], [file])
    commands = traces.load(file)
    if not commands:
        raise NearsideError(f"{files.printable(file)}: no commands in it")
    rows = traces.summary(commands)
    if plot is not None:
        drawn = [c for c in commands if c["queue"]][:first] or commands[:first]
        plots.trace(drawn, plot)
    if as_json:
        print_json({"trace": str(file), "time": "simulated", "commands": len(commands), "stages": rows})
    else:
        traces.print_summary(rows)
