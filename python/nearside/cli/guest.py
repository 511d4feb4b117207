# SPDX-License-Identifier: Apache-2.0
"""`nearside guest`: programs in a stock Linux guest, in the device's own time."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from nearside import files, results, show
from nearside._native import NearsideError
from nearside.cli.app import app
from nearside.cli.options import (
    DesignOption,
    DilateOption,
    JsonOption,
    ModelOption,
    PacedOption,
    TraceOption,
    command_group,
    print_json,
)
from nearside.commands import ATTACH
from nearside.device import Design, toml_text

guest_app = command_group("Run programs in a stock Linux guest, in the device's own time.")
app.add_typer(guest_app, name="guest", rich_help_panel=ATTACH)

ProfileOption = Annotated[
    str | None, typer.Option(metavar="NAME|FILE", help="A media profile in place of the design's; `media/*.toml`.")
]
TimeOption = Annotated[
    str,
    typer.Option(
        "--time",
        metavar="simulated|wall",
        help="simulated: the guest's clock is the device's. wall: the guest sees the speed of this machine.",
    ),
]
MemoryOption = Annotated[int, typer.Option(help="Memory of the guest, in MiB.", min=384, max=16384)]
InstructionOption = Annotated[
    int, typer.Option(help="Time of an instruction of the guest's CPU, in ps.", min=1, max=1_000_000)
]


def _choose_design(name: str, profile: str | None) -> Design:
    design = Design.load(name)
    if profile is None:
        return design
    return design.with_values(f"[media]\nprofile = {toml_text('the name of a media profile', profile)}")


def _is_simulated(time: str) -> bool:
    if time not in ("simulated", "wall"):
        raise NearsideError(f"--time {files.printable(time)}: allowed are simulated and wall")
    return time == "simulated"


def _choose_dilation(time: str, paced: bool, dilate: float | None) -> float | None:
    from nearside.serve import choose_dilation

    if paced and _is_simulated(time):
        raise NearsideError("--paced: only with --time wall; in simulated time each completion is at its time anyway")
    return choose_dilation(paced, dilate)


@guest_app.command(
    epilog="Examples: nearside guest run --profile optane-dcpmm -- fio job.fio · nearside guest run ./script.sh",
)
def run(
    command: Annotated[
        list[str],
        typer.Argument(
            metavar="[--] COMMAND [ARGUMENT]...",
            help="What the guest runs, in its folder /job. A word that names a file of this machine becomes a copy of "
            "that file there. The kit has fio, nvme, db_bench, sqlite3, mke2fs and the tools of busybox.",
        ),
    ],
    folder: Annotated[
        list[Path] | None, typer.Option("--folder", help="A folder to copy into /job; may be repeated.")
    ] = None,
    design: DesignOption = "default",
    profile: ProfileOption = None,
    media: Annotated[
        Path | None, typer.Option("--media", "-m", help="A file that keeps the device's data: the guest's disk.")
    ] = None,
    time: TimeOption = "simulated",
    paced: PacedOption = False,
    dilate: DilateOption = None,
    memory: MemoryOption = 512,
    instruction: InstructionOption = 250,
    limit: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="End the guest after this wall-clock time.", min=0)
    ] = None,
    trace: TraceOption = None,
    model: ModelOption = None,
    as_json: JsonOption = False,
) -> None:
    """Boot a guest on a device, run a command in it, and switch it off.

    In simulated time the guest's clock advances by its instructions and by what its device takes. So what a program
    measures is the device with its link, plus the guest's own code at the stated time for each instruction. The same
    command gives the same result, whatever else this machine does.

    Files that the command makes or changes in /job are saved in results/guest. The exit status is the command's.
    """
    from nearside.guest import job, machine

    chosen = _choose_design(design, profile)
    if media is not None:
        chosen = chosen.with_values(f"[media]\nfile = {toml_text('the name of a media file', str(media))}")
    simulated = _is_simulated(time)
    dilation = _choose_dilation(time, paced, dilate)
    report = job.run_job(
        job.Job(command, folder or []),
        chosen,
        model=model,
        simulated=simulated,
        dilation=dilation,
        memory_mib=memory,
        cpu=machine.CpuModel(insn_ps=instruction),
        trace=trace,
        results=results.folder() / "guest",
        output=sys.stderr.buffer if as_json else sys.stdout.buffer,
        timeout_s=limit,
        quiet=as_json,
    )
    if as_json:
        print_json(report)
    else:
        job.print_report(report)
    raise typer.Exit(report["status"])


@guest_app.command(epilog="Example: nearside guest shell --profile pcm")
def shell(
    folder: Annotated[
        list[Path] | None, typer.Option("--folder", help="A folder to copy into /job; may be repeated.")
    ] = None,
    design: DesignOption = "default",
    profile: ProfileOption = None,
    time: TimeOption = "simulated",
    paced: PacedOption = False,
    dilate: DilateOption = None,
    memory: MemoryOption = 512,
    instruction: InstructionOption = 250,
    model: ModelOption = None,
) -> None:
    """Boot a guest on a device, and start a shell in it.

    `exit` ends the guest; Ctrl-A X ends it at once. While the guest is idle, its clock is not ahead of the wall clock.
    """
    from nearside.guest import job, machine

    job.run_shell(
        _choose_design(design, profile),
        model=model,
        simulated=_is_simulated(time),
        dilation=_choose_dilation(time, paced, dilate),
        memory_mib=memory,
        cpu=machine.CpuModel(insn_ps=instruction),
        folders=folder or [],
    )


@guest_app.command(epilog="Example: nearside guest check")
def check(as_json: JsonOption = False) -> None:
    """Check whether simulated time works with the kit's QEMU.

    A small job runs twice on the fast model, with a DRAM and with a slower medium. It must be the same twice, and
    differ by what the media differ.
    """
    from nearside.guest import check as checking

    report = checking.check_clock(quiet=as_json)
    if as_json:
        print_json(report)
    else:
        table = show.table("simulated time", "", "result")
        for name, result in report.items():
            table.add_row(name.replace("_", " "), str(result))
        show.out.print(table)
