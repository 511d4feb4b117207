# SPDX-License-Identifier: Apache-2.0
"""Options and small functions that several commands share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from nearside import show
from nearside.commands import App

DesignOption = Annotated[
    str, typer.Option("--design", "-d", metavar="NAME|FILE", help="A design: a name of designs/, or a TOML file.")
]
TrainOption = Annotated[
    bool,
    typer.Option(help="Compile twice, the second time with counts of a run: faster ever after. Never with --checked."),
]
ModelOption = Annotated[
    str | None,
    typer.Option(
        metavar="rtl|fast",
        help="rtl: the SystemVerilog, compiled at its first use, which takes minutes. fast: the fast model, which "
        "needs no compilation. [default: $NEARSIDE_MODEL, or rtl]",
    ),
]
TraceOption = Annotated[
    Path | None,
    typer.Option("--trace", help="Write what happens to every command: *.jsonl is JSON lines, *.json for Perfetto."),
]
PacedOption = Annotated[
    bool, typer.Option("--paced", help="Hold each completion until its modelled time on the wall clock.")
]
DilateOption = Annotated[
    float | None,
    typer.Option(
        metavar="K",
        help="With --paced: the device is K times slower than modelled, so that a slow guest or simulator keeps up. "
        "Times are to be divided by K. From 0.01 to 100000. [default: 1]",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]

# Longest latency that a media profile may have.
MAX_LATENCY_NS = 4_000_000


def command_group(help: str) -> App:
    """An empty group of commands, as `nearside table` is one."""
    return App(help=help, no_args_is_help=True, rich_markup_mode=None)


def print_json(value: Any) -> None:
    print(json.dumps(value, indent=1))


def open_device(name: str, model: str | None, quiet: bool) -> Any:
    """Give a device of a design power, with progress on a terminal unless `quiet`."""
    from nearside.device import Design, Device

    design = Design.load(name)
    with show.building(design.name, not quiet) as progress:
        return Device(design, progress, model)


def print_delay(channels: list[dict[str, Any]]) -> None:
    """Print the timing of each channel."""
    table = show.table(
        "nvm_delay, by channel",
        "channel",
        "memory",
        "on",
        "read",
        "read beat",
        "write",
        "write beat",
        "caps, GB/s",
        "regions",
    )
    for number, channel in enumerate(channels):
        times = [show.nanoseconds(channel[side][key]) for side in ("read", "write") for key in ("base_ns", "beat_ns")]
        caps = "/".join(
            "-" if channel[s]["cap_gb_s"] is None else f"{channel[s]['cap_gb_s']:.2f}" for s in ("read", "write")
        )
        place = (str(number), channel["memory"], "yes" if channel["enabled"] else "no")
        table.add_row(*place, *times, caps, str(len(channel["regions"])))
    show.out.print(table)
