# SPDX-License-Identifier: Apache-2.0
"""Commands that attach a device to something else: serve."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nearside import show
from nearside._native import NearsideError
from nearside.cli.app import app
from nearside.cli.options import DilateOption, JsonOption, ModelOption, PacedOption, print_json
from nearside.commands import ATTACH


@app.command(group=ATTACH, epilog="Example: nearside serve default --socket device.sock --media disk.img")
def serve(
    socket: Annotated[list[Path], typer.Option("--socket", "-s", help="Where clients connect; once for each device.")],
    design: Annotated[
        list[str] | None,
        typer.Argument(metavar="DESIGN", help="Names or files: one for all devices, or one for each. [default]"),
    ] = None,
    media: Annotated[
        list[Path] | None, typer.Option("--media", "-m", help="A file that keeps the data; once for each device.")
    ] = None,
    trace: Annotated[
        list[Path] | None,
        typer.Option("--trace", help="A trace of all commands: *.jsonl, or *.json for Perfetto; once for each device."),
    ] = None,
    clock: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH", help="Run in simulated time, as an emulator says through this socket: see nearside guest."
        ),
    ] = None,
    paced: PacedOption = False,
    dilate: DilateOption = None,
    model: ModelOption = None,
    as_json: JsonOption = False,
) -> None:
    """Serve devices to virtual machines (vfio-user).

    Runs until Ctrl-C or SIGTERM. By default the device is simulated while the guest waits, so the
    latency and bandwidth that a guest sees are the simulator's speed in wall-clock time, not the
    device's. With --paced the guest sees the device's times on the wall clock, as far as this machine
    is fast enough; the end reports how late completions were. With --clock an emulator follows the
    device's time.
    """
    from nearside import serve as serving

    if clock is not None and paced:
        raise NearsideError("--clock and --paced: a device runs in simulated time or is paced, not both")
    dilation = serving.choose_dilation(paced, dilate)
    devices = serving.assign_sockets(design or ["default"], socket, media or [], trace or [], clock)
    doc = serving.serve_until_signal(devices, as_json, trace or [], model, clock, dilation)
    if as_json:
        print_json(doc)
        return
    table = show.table("served", "", *(str(device["socket"]) for device in doc))
    for key in doc[0]["counters"]:
        table.add_row(key.replace("_", " "), *(str(dict(device["counters"])[key]) for device in doc))
    show.out.print(table)
    if paced:
        measured = ((device["socket"], device["pacing"]) for device in doc)
        serving.print_pacing([(name, pacing) for name, pacing in measured if pacing is not None])
