# SPDX-License-Identifier: Apache-2.0
"""Commands to try the device: demo, info, delay."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from nearside import show
from nearside._native import NearsideError
from nearside.cli.app import app
from nearside.cli.options import (
    MAX_LATENCY_NS,
    DesignOption,
    JsonOption,
    ModelOption,
    TraceOption,
    command_group,
    open_device,
    print_delay,
    print_json,
)
from nearside.commands import TRY

delay_app = command_group("Show or set the timing of the memory, at run time.")
app.add_typer(delay_app, name="delay", rich_help_panel=TRY)


@app.command(group=TRY, epilog="Example: nearside demo photo.jpg --design dram")
def demo(
    file: Annotated[Path | None, typer.Argument(help="Any file; without one, 8 MiB are generated.")] = None,
    design: DesignOption = "default",
    model: ModelOption = None,
    trace: TraceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Send a file through the device and back.

    It is written through several NVMe queues, read back, and compared by SHA-256, under DRAM and under NVM timing.
    Shown are bandwidth and latency under both timings, how exactly nvm_delay hits its targets, and where results and
    plot were saved. At the end the engines of two devices sort a table.
    """
    from nearside import demo as demonstration
    from nearside.device import Design

    doc = demonstration.run(file, Design.load(design), quiet=as_json, trace=trace, model=model)
    if as_json:
        print_json(doc)
    else:
        demonstration.print_document(doc)
    if not doc["intact"]:
        raise NearsideError("the data that came back is not the data that was sent")
    if doc["sort"] and not doc["sort"]["equal"]:
        raise NearsideError("the table came back in another order than pyarrow's")


@app.command(group=TRY, epilog="Example: nearside info --json | jq .device.blocks")
def info(design: DesignOption = "default", model: ModelOption = None, as_json: JsonOption = False) -> None:
    """Show controller, namespaces, queues, blocks and engines."""
    with open_device(design, model, as_json) as device:
        doc = {"design": {"name": device.design.name, "hash": device.design.hash}, "engine": device.model}
        doc |= {"build": device.build, "late_reads": device.late_reads}
        doc |= device.info() | {"delay": device.delay_get(), "engines": device.engines()}
    if as_json:
        print_json(doc)
        return
    for part in ("controller", "capabilities", "queues"):
        table = show.table(part, "field", "value")
        for key, value in doc[part].items():
            table.add_row(key, str(value))
        show.out.print(table)
    table = show.table("namespaces", "NSID", "size", "blocks", "block", "NGUID")
    for ns in doc["namespaces"]:
        table.add_row(str(ns["nsid"]), show.size(ns["bytes"]), str(ns["blocks"]), f"{ns['block_bytes']} B", ns["nguid"])
    show.out.print(table)
    table = show.table("memories (BAR2)", "memory", "from", "size", "channels", "granule")
    for memory in doc["device"]["memories"]:
        place = (f"{memory['base']:#x}", show.size(memory["bytes"]))
        table.add_row(memory["name"], *place, str(memory["channels"]), show.size(memory["granule"]))
    show.out.print(table)
    table = show.table(
        "blocks (BAR4 offset 0)", "block", "version", "instance", "BAR", "offset", "size", "capabilities"
    )
    for block in doc["device"]["blocks"]:
        capabilities = " ".join(f"{c:#x}" for c in block["capabilities"])
        place = (f"{block['offset']:#x}", f"{block['size']:#x}")
        table.add_row(block["name"], block["version"], str(block["instance"]), str(block["bar"]), *place, capabilities)
    show.out.print(table)
    if doc["engines"]:
        columns = (
            "name",
            "kind",
            "BAR4 offset",
            "command page",
            "arguments",
            "NVMe commands",
            "media that it may touch",
        )
        table = show.table("engines", *columns)
        for engine in doc["engines"]:
            first, limit = engine["media"]
            arguments = ", ".join(engine["arguments"])
            commands = ", ".join(f"{command['opcode']:#x} {command['name']}" for command in engine["commands"])
            page = "" if engine["page"] is None else f"{engine['page']:#x}"
            media = f"{first:#x} to {limit - 1:#x}{', local' if engine['local'] else ''}"
            shown = (f"{engine['offset']:#x}", page, arguments, commands, media)
            table.add_row(engine["name"], engine["kind"], *shown)
        show.out.print(table)
    print_delay(doc["delay"])


@delay_app.command("show", epilog="Example: nearside delay show --design dram --json")
def delay_show(design: DesignOption = "default", model: ModelOption = None, as_json: JsonOption = False) -> None:
    """Show the timing of each channel, as its registers hold it."""
    with open_device(design, model, as_json) as device:
        channels = device.delay_get()
    if as_json:
        print_json({"channels": channels, "late_reads": device.late_reads})
    else:
        print_delay(channels)


@delay_app.command(
    "set", epilog="Examples: nearside delay set pcm · nearside delay set --read-ns 500 --write-ns 150 --channel 0"
)
def delay_set(
    profile: Annotated[str | None, typer.Argument(help="A media profile: a name of media/, or a TOML file.")] = None,
    read_ns: Annotated[float | None, typer.Option(help="Latency of a read, instead of a profile.")] = None,
    write_ns: Annotated[float | None, typer.Option(help="Latency of a write, instead of a profile.")] = None,
    channel: Annotated[int | None, typer.Option(help="Only this channel of the memory.", min=0, max=63)] = None,
    memory: Annotated[str, typer.Option(help="The memory: storage, or local if the design has it.")] = "storage",
    design: DesignOption = "default",
    model: ModelOption = None,
    as_json: JsonOption = False,
) -> None:
    """Set the timing of a running device, and show what that does to 4 KiB reads, or to loads of the local memory.

    The device starts with the timing of its design; it is measured, set anew through BAR4 without a stop, and measured
    again. To start with another timing, change `media.profile` in the design.
    """
    if (profile is None) == (read_ns is None and write_ns is None):
        raise NearsideError("give a media profile, or --read-ns and --write-ns")
    if profile is None and (read_ns is None or write_ns is None):
        raise NearsideError("--read-ns and --write-ns belong together")
    for option, value in (("--read-ns", read_ns), ("--write-ns", write_ns)):
        if value is not None and not 0 <= value <= MAX_LATENCY_NS:
            raise NearsideError(f"{option} {value:g}: allowed are 0 to {MAX_LATENCY_NS}")
    if profile is not None:
        from nearside.device import media_profile

        media_profile(profile)
    with open_device(design, model, as_json) as device:
        device.design.late_reads(memory=memory)  # names those that there are
        before = _latency(device, memory)
        if profile is not None:
            device.delay_set(profile, channel, memory)
        else:
            device.delay_set_latency(read_ns, write_ns, channel, memory)
        after = _latency(device, memory)
        channels = device.delay_get()
    doc = {"before": before, "after": after, "channels": channels, "time": "simulated"}
    doc["late_reads"] = device.late_reads
    if as_json:
        print_json(doc)
        return
    what = "4 KiB reads" if memory == "storage" else "64-byte loads"
    table = show.table(f"{what}, one at a time, simulated time", "", "before", "after")
    for key, label in (("mean_ns", "mean"), ("p50_ns", "p50"), ("p99_ns", "p99"), ("max_ns", "max")):
        table.add_row(label, *(show.nanoseconds(doc[side][key]) for side in ("before", "after")))
    show.out.print(table)
    print_delay(channels)


def _latency(device: Any, memory: str) -> dict[str, Any]:
    """The latency of single reads of a memory: by NVMe, or by loads of one that holds no namespace."""
    if memory == "storage":
        return device.workload(queues=1, depth=1, commands=200)["latency"]
    place = next(m for m in device.info()["device"]["memories"] if m["name"] == memory)
    stream = {"in_flight": 1, "count": 200, "start": place["base"], "span": place["bytes"]}
    return device.pm_stream("load", **stream)["latency"]
