# SPDX-License-Identifier: Apache-2.0
"""Commands for whoever changes the device: build, fuzz, diff, soak."""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Annotated

import typer

from nearside import files, show
from nearside._native import NearsideError
from nearside.cli.app import app
from nearside.cli.options import DesignOption, JsonOption, ModelOption, TrainOption, print_json
from nearside.commands import DEVELOP
from nearside.device import MAX_U64, LateReadsWarning


@app.command(group=DEVELOP, epilog="Example: nearside build --design designs/default.toml --no-train")
def build(
    design: DesignOption = "default",
    train: TrainOption = True,
    top: Annotated[
        Path | None,
        typer.Option(help="Write the device top with its engines and parameters, and its file list (.f)."),
    ] = None,
    header: Annotated[Path | None, typer.Option(help="Write the address map as a C header.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Compile a design with Verilator.

    The result is cached by content: a second build is instant. Every command compiles what it needs by itself; what is
    built here runs faster from then on.
    With --top or --header nothing is compiled.
    """
    from nearside.device import Design, assertions, compile_design

    loaded = Design.load(design)
    filelist = top and top.with_suffix(".f")
    files.check_apart([top, filelist, header], loaded.files)
    if top or header:
        if top and filelist:
            files.write_text(top, loaded.native.top())
            files.write_text(filelist, loaded.native.filelist(str(top.resolve())))
        if header:
            files.write_text(header, loaded.native.header())
        outputs = {"top": top, "filelist": filelist, "header": header}
        doc = {name: None if path is None else str(path) for name, path in outputs.items()}
        if as_json:
            print_json({"design": {"name": loaded.name, "hash": loaded.hash}, **doc})
        else:
            show.out.print("\n".join(filter(None, doc.values())), soft_wrap=True)
        return
    late = loaded.late_reads()
    if late:
        warnings.warn(late["message"], LateReadsWarning, stacklevel=1)
    with show.building(loaded.name, not as_json) as progress:
        path = compile_design(loaded, progress, train and not assertions())
    if as_json:
        design_doc = {"name": loaded.name, "hash": loaded.hash}
        print_json({"design": design_doc, "bitstream": str(path), "late_reads": late})
    else:
        show.out.print(f"{loaded.name} ({loaded.hash[:12]}): {path}", soft_wrap=True)


@app.command(group=DEVELOP, epilog="Examples: nearside fuzz --commands 100000 · nearside fuzz --replay 7:3:0-12,40")
def fuzz(
    design: Annotated[
        str, typer.Argument(metavar="NAME|FILE", help="A design; its media is compared whole, so keep it small.")
    ] = "fuzz",
    commands: Annotated[int, typer.Option(help="Commands in all.", min=1, max=MAX_U64)] = 10_000,
    seed: Annotated[int, typer.Option(help="Seed of everything; the same seed does the same.", min=0, max=MAX_U64)] = 1,
    replay: Annotated[str | None, typer.Option(help="Run this again: what a failure has printed.")] = None,
    torn_blocks: Annotated[bool, typer.Option(help="Accept blocks with parts of several contents.")] = False,
    model: ModelOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run random and malformed commands against a reference model.

    They include hostile PRPs and SGLs, and resets at any moment. Checked are every access of the device to host memory,
    every status, and the media at the end. For a design with the engine nearpm the commands are those of that engine. A
    failure is reduced to fewer steps, and printed with what is needed to replay it.
    """
    from nearside import fuzzing
    from nearside.device import Design, compile_design, model_of

    loaded = Design.load(design)
    model = model_of(model)
    if model == "rtl":
        with show.building(loaded.name, not as_json) as progress:
            compile_design(loaded, progress, checked=True)
    options = {"replay": replay, "torn_blocks": torn_blocks, "model": model}
    with show.bar("fuzzing", not as_json) as progress:
        doc = fuzzing.run_campaign(loaded, commands, seed, progress=progress, **options)
    if as_json:
        print_json(doc)
    else:
        fuzzing.print_report(doc)
    if doc["mismatches"]:
        failure = doc["failure"]
        assert failure is not None
        raise NearsideError(f"{failure['what']} (replay {failure['replay']})")


@app.command(group=DEVELOP, epilog="Examples: nearside diff --commands 100000 · nearside diff --replay 7:3:0-12,40")
def diff(
    design: Annotated[
        str,
        typer.Option(
            "--design", "-d", metavar="NAME|FILE", help="A design, used without its engines; keep its media small."
        ),
    ] = "fuzz",
    commands: Annotated[int, typer.Option(help="Commands in all.", min=1, max=MAX_U64)] = 10_000,
    seed: Annotated[int, typer.Option(help="Seed of everything; the same seed does the same.", min=0, max=MAX_U64)] = 1,
    replay: Annotated[str | None, typer.Option(help="Run this again: what a difference has printed.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Run the RTL model and the fast model in lockstep.

    Both get the same random sequences: commands, the PM window, registers, interrupts, resets and power cuts.
    Everything that a host can see is compared. What the specification leaves open is no difference. A difference is
    reduced to fewer steps, and printed with what is needed to replay it.
    """
    from nearside import differential, fuzzing
    from nearside.device import compile_design

    loaded = differential.load_design(design)
    with show.building(loaded.name, not as_json) as progress:
        compile_design(loaded, progress, checked=True)
    with show.bar("comparing", not as_json) as progress:
        doc = differential.run_campaign(loaded, commands, seed, replay=replay, progress=progress)
    if as_json:
        print_json(doc)
    else:
        fuzzing.print_report(doc)
    if doc["mismatches"]:
        failure = doc["failure"]
        assert failure is not None
        raise NearsideError(f"{failure['what']} (replay {failure['replay']})")


@app.command(group=DEVELOP, epilog="Example: nearside soak --gigabytes 10 --result soak.json")
def soak(
    design: Annotated[str, typer.Argument(metavar="NAME|FILE", help="A design.")] = "fuzz",
    gigabytes: Annotated[float, typer.Option(help="Bytes of the media to move, in 10^9.", min=0.001, max=1e9)] = 1.0,
    seed: Annotated[int, typer.Option(help="Seed of everything.", min=0, max=MAX_U64)] = 1,
    result: Annotated[
        Path | None, typer.Option(help="Keep the result here after every episode, and continue from it.")
    ] = None,
    model: ModelOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run verified traffic for long.

    Reads, writes, compares and zeroes of random sizes on all queues, every byte checked: some 10 MB/s on the RTL model.
    """
    from nearside import fuzzing
    from nearside.device import Design, compile_design, model_of

    if math.isnan(gigabytes):
        raise NearsideError("--gigabytes nan: a number is needed")
    loaded = Design.load(design)
    files.check_apart([result], loaded.files)
    model = model_of(model)
    if result is not None:
        fuzzing.resume(result, loaded, seed, model)
    if model == "rtl":
        with show.building(loaded.name, not as_json) as progress:
            compile_design(loaded, progress, checked=True)
    with show.bar("soaking", not as_json) as progress:
        doc = fuzzing.soak(loaded, int(gigabytes * 1e9), seed, result, progress, model)
    if as_json:
        print_json(doc)
    else:
        fuzzing.print_report(doc)
    if doc["mismatches"]:
        failure = doc["failure"]
        assert failure is not None
        raise NearsideError(failure["what"])
