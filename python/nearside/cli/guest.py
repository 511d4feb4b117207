# SPDX-License-Identifier: Apache-2.0
"""`nearside guest`: programs in a stock Linux guest, in the device's own time."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nearside import files, results, show
from nearside._native import NearsideError
from nearside.cli.app import app
from nearside.cli.options import (
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

if TYPE_CHECKING:
    from nearside.guest.job import Setup

guest_app = command_group("Run programs in a stock Linux guest, in the device's own time.")
app.add_typer(guest_app, name="guest", rich_help_panel=ATTACH)

DesignsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--design", metavar="NAME|FILE", help="A design; for several devices repeat it: /dev/nearside0, 1, .. in order."
    ),
]
ProfileOption = Annotated[
    str | None, typer.Option(metavar="NAME|FILE", help="A media profile in place of the designs'; `media/*.toml`.")
]
MediaOption = Annotated[
    list[Path] | None,
    typer.Option("--media", "-m", help="A file that keeps a device's data: a disk of the guest. One for each design."),
]
FolderOption = Annotated[
    list[Path] | None, typer.Option("--folder", help="A folder to copy into /job; may be repeated.")
]
ImageOption = Annotated[
    list[Path] | None,
    typer.Option("--image", help="A folder to copy to a read-only disk, /image/NAME; may be repeated."),
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
HostOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME|FILE",
        help="A host profile with the guest's CPU, by default kernel; `hosts/*.toml`, table [guest].",
    ),
]
CpusOption = Annotated[int, typer.Option(help="CPUs of the guest.", min=1, max=8)]
InstructionOption = Annotated[
    int | None, typer.Option(help="Time of an instruction in ps, in place of the profile's.", min=1, max=1_000_000)
]


def _prepare(
    designs: list[str] | None,
    profile: str | None,
    media: list[Path] | None,
    time: str,
    cpus: int,
    memory: int,
    host: str | None,
    instruction: int | None,
    model: str | None,
    paced: bool,
    dilate: float | None,
) -> Setup:
    """The machine that options describe."""
    from nearside.guest.job import Setup
    from nearside.guest.machine import CpuModel
    from nearside.serve import choose_dilation

    if time not in ("simulated", "wall"):
        raise NearsideError(f"--time {files.printable(time)}: allowed are simulated and wall")
    if paced and time == "simulated":
        raise NearsideError("--paced: only with --time wall; in simulated time each completion is at its time anyway")
    dilation = choose_dilation(paced, dilate)
    names = designs or ["default"]
    if media and len(media) != len(names):
        raise NearsideError(
            f"{len(names)} designs and {len(media)} media files: give one file for each design, or none"
        )
    chosen = []
    for number, name in enumerate(names):
        keys = ""
        if profile is not None:
            keys += f"profile = {toml_text('the name of a media profile', profile)}\n"
        if media:
            if any(files.same(media[number], other) for other in media[:number]):
                raise NearsideError(f"{files.printable(media[number])}: two devices can't share a media file")
            keys += f"file = {toml_text('the name of a media file', str(media[number]))}\n"
        design = Design.load(name)
        chosen.append(design.with_values(f"[media]\n{keys}") if keys else design)
    if time == "wall" and (host is not None or instruction is not None):
        raise NearsideError(
            "--host, --instruction: only with --time simulated; in wall-clock time the CPU is this machine's"
        )
    cpu = CpuModel.load(host or "kernel", instruction) if time == "simulated" else None
    return Setup(chosen, model, cpu, memory, dilation, cpus)


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
    folder: FolderOption = None,
    image: ImageOption = None,
    design: DesignsOption = None,
    profile: ProfileOption = None,
    media: MediaOption = None,
    time: TimeOption = "simulated",
    paced: PacedOption = False,
    dilate: DilateOption = None,
    cpus: CpusOption = 1,
    memory: MemoryOption = 512,
    host: HostOption = None,
    instruction: InstructionOption = None,
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
    `mark NAME` in a script begins another table of the report. Ctrl-C interrupts the command, and what there is by
    then is saved and reported as partial.
    """
    from nearside.guest import job, report

    # The trace is opened before the job's files are read.
    files.check_apart([trace], [*(Path(word) for word in command if os.path.isfile(word)), *(media or [])])
    target = results.folder() / "guest"
    found = job.run_job(
        job.Job(command, folder or [], image or []),
        _prepare(design, profile, media, time, cpus, memory, host, instruction, model, paced, dilate),
        trace=trace,
        results=target,
        output=sys.stderr.buffer if as_json else sys.stdout.buffer,
        timeout_s=limit,
        quiet=as_json,
    )
    if as_json:
        print_json(found)
    else:
        report.print_report(found, target)
    raise typer.Exit(found["status"])


@guest_app.command(epilog="Example: nearside guest shell --profile pcm")
def shell(
    folder: FolderOption = None,
    image: ImageOption = None,
    design: DesignsOption = None,
    profile: ProfileOption = None,
    media: MediaOption = None,
    time: TimeOption = "simulated",
    paced: PacedOption = False,
    dilate: DilateOption = None,
    cpus: CpusOption = 1,
    memory: MemoryOption = 512,
    host: HostOption = None,
    instruction: InstructionOption = None,
    model: ModelOption = None,
) -> None:
    """Boot a guest on a device, and start a shell in it.

    `exit` ends the guest; Ctrl-A X ends it at once. While the guest is idle, its clock is not ahead of the wall clock.
    """
    from nearside.guest import job

    setup = _prepare(design, profile, media, time, cpus, memory, host, instruction, model, paced, dilate)
    job.run_shell(setup, folder or [], image or [])


@guest_app.command(epilog="Example: nearside guest check")
def check(
    qemu: Annotated[
        Path | None,
        typer.Option(
            help="Another QEMU to check, of any version; the default is the kit's.", exists=True, dir_okay=False
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Check whether simulated time works with the kit's QEMU or another one.

    A small job runs twice on the fast model, with a DRAM and with a slower medium. It must be the same twice, and
    differ by what the media differ. If not, the exit status is 1.
    """
    from nearside.guest import check as checking

    report = checking.check_clock(quiet=as_json, qemu=qemu)
    if as_json:
        print_json(report)
    else:
        table = show.table("simulated time", "", "result")
        for name, result in report.items():
            table.add_row(name.replace("_", " "), str(result))
        show.out.print(table)
    if failure := checking.explain_failure(report):
        raise NearsideError(failure)
