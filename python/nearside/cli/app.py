# SPDX-License-Identifier: Apache-2.0
"""The root of the command line; the modules beside it add their commands to it."""

from __future__ import annotations

import os
from importlib import metadata
from typing import Annotated

import typer

from nearside.commands import App
from nearside.device import CHECKED

EPILOG = """\b
Examples:
  nearside demo                     an 8 MiB file through the device and back
  nearside demo FILE                a file of yours
  nearside delay set pcm            change the timing of the memory while the device runs
  nearside latency                  where the time of a single command goes
  nearside experiment run all --quick && nearside report
  nearside sort t.parquet --by "a, b desc" -o sorted.parquet
  nearside crashtest btree          power cuts at many moments of a program with transactions
  nearside pm serve redis           a store in persistent memory, for Redis's clients
  nearside serve --socket S         attach the device to a virtual machine
  nearside --checked fuzz           random and malformed commands, with the assertions of the RTL
  nearside COMMAND --help           what a command does, its options, an example

\b
--model rtl is the SystemVerilog itself; its first use compiles for minutes.
--model fast needs no compilation. The book: make docs-book, or docs/index.md.
"""

app = App(
    help="An NVM device that you can run without owning the hardware: an NVMe controller, an emulator of memory timing "
    "and accelerators in SystemVerilog, with link, memory and host simulated around them. Times are simulated unless "
    "marked as wall-clock. Where to begin: nearside demo.",
    epilog=EPILOG,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"nearside {metadata.version('nearside')}")
        raise typer.Exit


@app.callback()
def options(
    checked: Annotated[
        bool, typer.Option("--checked", help="With the assertions of the RTL, for whoever changes it. Slower.")
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and end.", is_eager=True, callback=print_version)
    ] = False,
) -> None:
    if checked:
        os.environ[CHECKED] = "1"
