"""The command line: `nearside --help`."""

from __future__ import annotations

import json
import math
import os
import signal
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from nearside import files, show
from nearside._native import NearsideError
from nearside.claims import cli as claims_cli
from nearside.commands import App, UsageError
from nearside.correlate import cli as correlate_cli
from nearside.device import CHECKED, MAX_U64, LateReadsWarning
from nearside.experiments import cli as experiments_cli

EPILOG = """\b
Examples:
  nearside demo                  an 8 MiB file through the device and back
  nearside demo FILE             your own file
  nearside info --json           what the device says of itself
  nearside build --design dram   compile a design for speed
  nearside --checked demo        with the assertions of the RTL
  nearside delay show            the timing of each channel
  nearside delay set pcm         change it while the device runs
  nearside fuzz                  random and malformed commands against a reference model
  nearside diff                  the RTL and its model do the same: random sequences into both
  nearside crashtest btree       the power fails at many moments of a program with transactions
  nearside timeline --plot t.png who waits for whom in transactions: CPU, units, devices
  nearside latency               where the time of a single command goes
  nearside qos                   loads, NVMe and engines beside each other
  nearside sort t.parquet --by "a, b desc" -o s.parquet   a table, sorted by the engines of devices
  nearside table list --media D  tables that stand on devices
  nearside correlate             the fast model beside the RTL
  nearside soak --gigabytes 10   mixed traffic, every byte checked
  nearside serve --socket S      attach the device to a virtual machine
  nearside pm serve redis        a store in persistent memory, for Redis's clients
  nearside pmdk run -- PROGRAM   a program with libpmemobj, its logs kept by a device
  nearside claim list            every figure that this project states
  nearside claim run nvm_delay.read_305ns.mean_error
  nearside experiment run all --quick   the papers' figures, measured here
  nearside report                a page of them, ours beside theirs
"""

# Longest latency that a media profile may have.
MAX_LATENCY_NS = 4_000_000

# Exit status after Ctrl-C, as of a shell.
INTERRUPTED = 130

ClickException = UsageError.__mro__[1]

app = App(
    help="An NVM device that you can run without owning the hardware: NVMe controller and memory-timing emulator in "
    "RTL, with link, memory and host simulated around it. Times are simulated unless marked as wall-clock.",
    epilog=EPILOG,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
delay_app = App(help="Read and set the timing of the memory, at run time.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(delay_app, name="delay")
table_app = App(
    help="Tables that stand on devices: put them there once, and sort them where they stand.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(table_app, name="table")
pmdk_app = App(
    help="Unmodified programs with libpmemobj, whose transactions' logs a device keeps.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(pmdk_app, name="pmdk")
pm_app = App(
    help="Stores in persistent memory, for programs that know nothing of it.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(pm_app, name="pm")
app.add_typer(claims_cli.app, name="claim")
app.add_typer(experiments_cli.app, name="experiment")
app.command("correlate", epilog=correlate_cli.EPILOG)(correlate_cli.correlate)
app.command("report", epilog=experiments_cli.REPORT_EPILOG)(experiments_cli.report)

DesignOption = Annotated[
    str, typer.Option("--design", "-d", metavar="NAME|FILE", help="A design: a name of designs/, or a TOML file.")
]
TrainOption = Annotated[
    bool,
    typer.Option(help="Compile twice, the second time with counts of a run: faster ever after. Never with --checked."),
]
ModelOption = Annotated[
    str | None,
    typer.Option(metavar="rtl|fast", help="The SystemVerilog, or its model: far faster. [$NEARSIDE_MODEL, or rtl]"),
]
TraceOption = Annotated[
    Path | None,
    typer.Option("--trace", help="Write what happens to every command: *.jsonl is JSON lines, *.json for Perfetto."),
]
FORMATS = "parquet|arrow|stream|csv"
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]


@app.callback()
def options(
    checked: Annotated[
        bool, typer.Option("--checked", help="With the assertions of the RTL, for who changes it. Slower.")
    ] = False,
) -> None:
    if checked:
        os.environ[CHECKED] = "1"


def print_json(value: Any) -> None:
    print(json.dumps(value, indent=1))


@app.command(epilog="Example: nearside demo photo.jpg --design dram")
def demo(
    file: Annotated[Path | None, typer.Argument(help="Any file; without one, 8 MiB are generated.")] = None,
    design: DesignOption = "default",
    model: ModelOption = None,
    trace: TraceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Send a file through the device and back, under DRAM and under NVM timing.

    Writes it through several NVMe queues, reads it back and compares SHA-256; shows bandwidth and latency under both
    timings, how exactly nvm_delay hits its targets, and where results and plot were saved. At the end a table is sorted
    by the engines of two devices.
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


@app.command(epilog="Example: nearside info --json | jq .device.blocks")
def info(design: DesignOption = "default", model: ModelOption = None, as_json: JsonOption = False) -> None:
    """Show what the device says of itself: controller, namespaces, queues, and the list of its blocks."""
    with _device(design, model, as_json) as device:
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
            place = (f"{engine['offset']:#x}", page, arguments, commands, media)
            table.add_row(engine["name"], engine["kind"], *place)
        show.out.print(table)
    _print_delay(doc["delay"])


@app.command(epilog="Example: nearside build --design designs/default.toml --no-train")
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
    """Compile a design with Verilator. The result is cached by content: a second build is instant.

    Every command compiles what it needs by itself; what is built here runs faster from then on.
    With --top or --header nothing is compiled.
    """
    from nearside.device import Design, assertions, compile_design

    loaded = Design.load(design)
    filelist = top and top.with_suffix(".f")
    files.check_apart([top, filelist, header], loaded.files)
    if top or header:
        if top:
            files.write_text(top, loaded.native.top())
            files.write_text(filelist, loaded.native.filelist(str(top.resolve())))
        if header:
            files.write_text(header, loaded.native.header())
        doc = {"top": top and str(top), "filelist": filelist and str(filelist), "header": header and str(header)}
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


@app.command(epilog="Examples: nearside wire · nearside wire gen3x16 --json")
def wire(
    link: Annotated[str, typer.Argument(help="gen3x8, gen3x16 or gen4x8.")] = "gen3x8",
    design: DesignOption = "default",
    seed: Annotated[int, typer.Option(help="Seed of addresses and order.", min=0, max=MAX_U64)] = 1,
    model: ModelOption = None,
    trace: TraceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Bandwidth from 512 B to 128 KiB beside what the wire allows, and the ratio."""
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


@app.command(epilog="Examples: nearside qos · nearside qos 8 --plot qos.png")
def qos(
    credits: Annotated[
        list[int] | None,
        typer.Argument(help="Lines that each engine may have outstanding in a channel; 0: no limit.", min=0, max=1023),
    ] = None,
    commands: Annotated[int, typer.Option(help="NVMe commands of each row.", min=400, max=MAX_U64)] = 6400,
    seed: Annotated[int, typer.Option(help="Seed of addresses.", min=0, max=MAX_U64)] = 1,
    plot: Annotated[Path | None, typer.Option(help="Draw the curve here (*.png).")] = None,
    model: ModelOption = None,
    as_json: JsonOption = False,
) -> None:
    """What loads, NVMe reads and two copies get beside each other, by the engines' credits."""
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


MediaOption = Annotated[
    list[Path],
    typer.Option("--media", help="The media file of a device; once for each. All devices of a table, in any order."),
]
ByOption = Annotated[
    str,
    typer.Option(
        help='Columns, each with asc or desc, and nulls first or nulls last, if it is to have them: "a, b desc".'
    ),
]
FromOption = Annotated[str | None, typer.Option("--from", metavar=FORMATS, help="What the file is.")]
ToOption = Annotated[str | None, typer.Option("--to", metavar=FORMATS, help="What the output is.")]
OutputOption = Annotated[
    Path | None, typer.Option("--output", "-o", help="Where the table goes; replaced if it is there.")
]
CompressionOption = Annotated[
    str, typer.Option(metavar="snappy|zstd|lz4|gzip|none", help="Of the pages of a Parquet file that is written.")
]


@app.command(
    epilog='Examples: nearside sort t.parquet --by "a, b desc nulls last" --devices 2 -o sorted.parquet · '
    "nearside sort t.csv --by a --explain · nearside sort --table t --media d0 --media d1 --by a -o sorted.arrow"
)
def sort(
    by: ByOption,
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[TABLE]", help="The table: *.parquet, *.arrow, *.feather, *.arrows or *.csv."),
    ] = None,
    output: OutputOption = None,
    devices: Annotated[
        int, typer.Option(help="Devices that share the rows and work at the same time.", min=1, max=16)
    ] = 1,
    table: Annotated[
        str | None, typer.Option(help="Instead of a file: a table on the devices (nearside table), or its id.")
    ] = None,
    media: MediaOption = [],  # noqa: B006
    explain: Annotated[
        bool, typer.Option("--explain", help="Don't sort: say what would be done, and what bounds each stage.")
    ] = False,
    design: DesignOption = "sort",
    model: ModelOption = None,
    source_format: FromOption = None,
    target_format: ToOption = None,
    compression: CompressionOption = "snappy",
    trace: Annotated[
        Path | None,
        typer.Option("--trace", help="A trace for Perfetto (*.json): stages, and what passed the memories' channels."),
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="The same as a picture (*.png).")] = None,
    as_json: JsonOption = False,
) -> None:
    """Sort a table on simulated devices: keys and rows go there, engines sort them in place, rows come back.

    The sort is stable. Nulls are last, and first where the greatest is. Several devices have a part of the rows each,
    and the host merges what comes back; what doesn't fit goes in partitions, one after another. What the files are tell
    the ends of their names, or --from and --to; else Parquet.
    """
    from nearside import tables
    from nearside.device import Design

    if (file is None) == (table is None):
        raise UsageError("name a file, or a table that stands on devices: --table NAME --media FILE")
    if table is not None and not media:
        raise UsageError("--table goes with --media")
    if table is None and media:
        raise UsageError("--media goes with --table: a file's table goes to devices whose storage is memory")
    loaded = Design.load(design)
    if explain:
        with show.building(loaded.name, not as_json) as build:
            if table is not None:
                doc = tables.explain_standing(table, media, by, model, loaded, build)
            else:
                doc = tables.explain(file, by, devices, loaded, source_format=source_format)
        print_json(doc) if as_json else tables.print_plan(doc)
        return
    if output is None:
        raise UsageError("name an output: -o FILE")
    target = {"target_format": target_format, "compression": compression, "trace": trace, "plot": plot}
    with show.building(loaded.name, not as_json) as build, show.bar("sorting", not as_json) as progress:
        if table is not None:
            doc = tables.get(table, media, output, by, model, loaded, build, progress, **target)
        else:
            shape = (devices, model, loaded, build, progress)
            doc = tables.sort_file(file, output, by, *shape, source_format=source_format, **target)
    doc["output"] = str(output)
    if as_json:
        print_json(doc)
    else:
        tables.print_report(doc)


@table_app.command("put", epilog='Example: nearside table put t.parquet --keys "a, b" --media d0.img --media d1.img')
def table_put(
    file: Annotated[
        Path, typer.Argument(metavar="TABLE", help="The table: *.parquet, *.arrow, *.feather, *.arrows or *.csv.")
    ],
    media: MediaOption,
    keys: Annotated[
        str, typer.Option(help='Columns that it can be sorted by: "a, b". They stand apart from the rows.')
    ],
    name: Annotated[str | None, typer.Option(help="What it is called; without it as the file.")] = None,
    design: DesignOption = "sort",
    model: ModelOption = None,
    source_format: FromOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write a table to devices, where it stays: each has a part of its rows. Media files that aren't there are made.

    It counts once all of it is written: a put that is cut off leaves what was there before.
    """
    from nearside import tables
    from nearside.device import Design

    loaded = Design.load(design)
    with show.building(loaded.name, not as_json) as build, show.bar("writing", not as_json) as progress:
        shape = (model, loaded, build, progress)
        doc = tables.put(file, media, file.stem if name is None else name, keys, *shape, source_format=source_format)
    if as_json:
        print_json(doc)
    else:
        tables.print_report(doc)


@table_app.command("list", epilog="Example: nearside table list --media d0.img --media d1.img")
def table_list(
    media: MediaOption, design: DesignOption = "sort", model: ModelOption = None, as_json: JsonOption = False
) -> None:
    """Show the tables on devices."""
    from nearside import tables
    from nearside.device import Design

    loaded = Design.load(design)
    with show.building(loaded.name, not as_json) as build:
        doc = tables.standing(media, model, loaded, build)
    if as_json:
        print_json(doc)
    else:
        tables.print_standing(doc)


@table_app.command("get", epilog="Example: nearside table get t --media d0.img --media d1.img -o t.parquet")
def table_get(
    name: Annotated[str, typer.Argument(help="The table, or its id.")],
    media: MediaOption,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where it goes; replaced if it is there.")],
    design: DesignOption = "sort",
    model: ModelOption = None,
    target_format: ToOption = None,
    compression: CompressionOption = "snappy",
    as_json: JsonOption = False,
) -> None:
    """Read a table back from devices, in the order that it was put in."""
    from nearside import tables
    from nearside.device import Design

    loaded = Design.load(design)
    target = {"target_format": target_format, "compression": compression}
    with show.building(loaded.name, not as_json) as build, show.bar("reading", not as_json) as progress:
        doc = tables.get(name, media, output, None, model, loaded, build, progress, **target)
    doc["output"] = str(output)
    if as_json:
        print_json(doc)
    else:
        tables.print_report(doc)


@table_app.command("drop", epilog="Example: nearside table drop t --media d0.img --media d1.img")
def table_drop(
    name: Annotated[str, typer.Argument(help="The table, or its id.")],
    media: MediaOption,
    design: DesignOption = "sort",
    model: ModelOption = None,
) -> None:
    """Forget a table on devices, or what is left of it."""
    from nearside import tables
    from nearside.device import Design

    loaded = Design.load(design)
    with show.building(loaded.name) as build:
        tables.drop(name, media, model, loaded, build)


@app.command(epilog="Examples: nearside fuzz --commands 100000 · nearside fuzz --replay 7:3:0-12,40")
def fuzz(
    design: Annotated[
        str, typer.Argument(metavar="[NAME|FILE]", help="A design; its media is compared whole, so keep it small.")
    ] = "fuzz",
    commands: Annotated[int, typer.Option(help="Commands in all.", min=1, max=MAX_U64)] = 10_000,
    seed: Annotated[int, typer.Option(help="Seed of everything; the same seed does the same.", min=0, max=MAX_U64)] = 1,
    replay: Annotated[str | None, typer.Option(help="Run this again: what a failure has printed.")] = None,
    torn_blocks: Annotated[bool, typer.Option(help="Take blocks with parts of several contents for right.")] = False,
    model: ModelOption = None,
    as_json: JsonOption = False,
) -> None:
    """Random and malformed commands, hostile PRPs and SGLs, and resets at any moment, against a reference model.

    Every access of the device to host memory is checked as it comes, every status, and the media at the end. Of a
    design with the engine nearpm the commands are those of that engine.
    A failure is run again with fewer steps, and printed with what is needed to replay it.
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
        doc = fuzzing.run(loaded, commands, seed, progress=progress, **options)
    if as_json:
        print_json(doc)
    else:
        fuzzing.print_report(doc)
    if doc["mismatches"]:
        raise NearsideError(f"{doc['failure']['what']} (replay {doc['failure']['replay']})")


@app.command(epilog="Examples: nearside diff --commands 100000 · nearside diff --replay 7:3:0-12,40")
def diff(
    design: Annotated[
        str,
        typer.Option(
            "--design", "-d", metavar="NAME|FILE", help="A design, taken without its engines; keep its media small."
        ),
    ] = "fuzz",
    commands: Annotated[int, typer.Option(help="Commands in all.", min=1, max=MAX_U64)] = 10_000,
    seed: Annotated[int, typer.Option(help="Seed of everything; the same seed does the same.", min=0, max=MAX_U64)] = 1,
    replay: Annotated[str | None, typer.Option(help="Run this again: what a difference has printed.")] = None,
    as_json: JsonOption = False,
) -> None:
    """The same random sequences into the RTL and into its fast model, and everything that a host can see compared.

    Commands, the PM window, registers, interrupts, resets and losses of power. What may be done in several ways is no
    difference. One that is found is run again with fewer steps, and printed with what is needed to replay it.
    """
    from nearside import differential, fuzzing
    from nearside.device import compile_design

    loaded = differential.load(design)
    with show.building(loaded.name, not as_json) as progress:
        compile_design(loaded, progress, checked=True)
    with show.bar("comparing", not as_json) as progress:
        doc = differential.run(loaded, commands, seed, replay=replay, progress=progress)
    if as_json:
        print_json(doc)
    else:
        fuzzing.print_report(doc)
    if doc["mismatches"]:
        raise NearsideError(f"{doc['failure']['what']} (replay {doc['failure']['replay']})")


@app.command(
    epilog="Examples: nearside crashtest btree · nearside crashtest all --by device --cuts sampled:10000 · "
    "nearside crashtest --check './program check {}/pool' -- ./program run {}/pool",
)
def crashtest(
    context: typer.Context,
    workload: Annotated[
        list[str],
        typer.Argument(
            metavar="WORKLOAD | -- PROGRAM [ARGUMENT]...",
            help="btree, rbtree, skiplist, hashmap, pmemkv, tatp, tpcc, redis, memcached; several with commas, or all. "
            "Or a program with libpmemobj, libpmem or flushes of its own; {} in its arguments is a folder for pools.",
        ),
    ],
    mechanism: Annotated[
        str, typer.Option(metavar="undo|redo|checkpoint|shadow|all", help="What makes a workload's transactions whole.")
    ] = "all",
    check: Annotated[
        str | None,
        typer.Option(metavar="COMMAND", help="Looks at what a program has left; without it the program itself does."),
    ] = None,
    by: Annotated[str, typer.Option(metavar="cpu|device|all", help="Who does that.")] = "all",
    cuts: Annotated[
        str,
        typer.Option(
            metavar="sampled:N|all|commands|at:CUT,...",
            help="Drawn, of a program by what happens at its moments and where; or at every clock edge, with all "
            "sets of lines that may have left the cache; or behind each command to an engine, of several devices each "
            "alone; or these. Of a program all are the moments from its first transaction on; where it has none, from "
            "its first mapping on. They are at calls and at instructions that flush, and not between stores: see "
            "--torn.",
        ),
    ] = "sampled:200",
    torn: Annotated[
        bool,
        typer.Option(
            "--torn",
            help="Lines of a program leave the cache in words of 8 bytes, in any order: finds stores that have to be "
            "whole and are not. Calls a program wrong that relies on the order of stores to one line, as x86 allows.",
        ),
    ] = False,
    limit: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="A program or a check that takes longer is killed, with all it has started; in a loss of power that "
            "is a violation. Without it 10 times what a run without a loss of power takes, and at least 60.",
        ),
    ] = None,
    transactions: Annotated[int, typer.Option(help="Transactions of a workload's run.", min=1, max=100_000)] = 24,
    seed: Annotated[int, typer.Option(help="Seed of everything; the same seed does the same.", min=0, max=MAX_U64)] = 1,
    without: Annotated[
        str | None,
        typer.Option(
            metavar="snapshots|fences|hook|commands|domain|peers",
            help="A control: leave this out. It fails unless violations are found then.",
        ),
    ] = None,
    devices: Annotated[int, typer.Option(metavar="1|2|4", help="Devices that a workload's pool is over.")] = 1,
    synchronise: Annotated[
        str, typer.Option(metavar="devices|host", help="Who has logs of several devices deleted together.")
    ] = "devices",
    jobs: Annotated[
        int | None, typer.Option(help="Copies at a time; without it one for each CPU.", min=1, max=256)
    ] = None,
    design: Annotated[
        str | None, typer.Option("--design", "-d", metavar="NAME|FILE", help="[default for cpu, nearpm for device]")
    ] = None,
    model: Annotated[str, typer.Option(metavar="rtl|fast", help="The SystemVerilog, or its model.")] = "fast",
    as_json: JsonOption = False,
) -> None:
    """The power fails at many moments of a program with transactions; each time it recovers, and nothing may be torn.

    The program runs once; copies of it end in a loss of power of the host and, then or later, of the device. Lines
    leave the cache by themselves before, stores that no load has proven are lost, and power fails again in recovery.
    Afterwards there must be what n transactions have left, or n + 1, and the program must go on from there.
    """
    from nearside import crashtest as crashing
    from nearside.device import compile_design, model_of

    def chosen(text: str, names: Sequence[str]) -> Sequence[str]:
        return names if text == "all" else text.split(",")

    model = model_of(model)
    if len(workload) > 1 or "/" in workload[0] or check is not None:
        for name in ("mechanism", "transactions", "devices", "synchronise", "jobs"):
            if context.get_parameter_source(name).name != "DEFAULT":
                raise NearsideError(f"--{name} is for workloads, not for programs (-- PROGRAM)")
        options = {"seed": seed, "without": without, "torn": torn, "limit_s": limit}
        options |= {"design": design or "nearpm", "model": model}
        _crashtest_program(workload, check, chosen(by, crashing.SIDES), cuts, options, as_json)
        return
    if torn:
        raise NearsideError(f"--torn is for programs (-- PROGRAM); the lines of {workload[0]} leave whole")
    if limit is not None:
        raise NearsideError(f"--limit is for programs (-- PROGRAM); {workload[0]} takes simulated time")
    docs = []
    for side in chosen(by, crashing.SIDES):
        loaded = crashing.load(side, design)
        if model == "rtl":
            with show.building(loaded.name, not as_json) as progress:
                compile_design(loaded, progress, checked=True)
        for name in chosen(workload[0], crashing.WORKLOADS):
            for kind in chosen(mechanism, crashing.MECHANISMS):
                with show.bar(f"{name}, {kind} by the {side}", not as_json) as progress:
                    options = {"model": model, "transactions": transactions, "seed": seed, "without": without}
                    options |= {"at_once": jobs, "progress": progress, "devices": devices, "synchronise": synchronise}
                    docs.append(crashing.run(loaded, name, kind, side, cuts, **options))
    if as_json:
        print_json({"engine": model, "time": "simulated", "campaigns": docs})
    else:
        crashing.print_reports(docs)
    wrong = [doc for doc in docs if crashing.failed(doc)]
    if wrong and without is None:
        raise NearsideError(f"{wrong[0]['violation']['what']} (again: {wrong[0]['violation']['replay']})")
    if wrong:
        names = ", ".join(f"{doc['workload']} {doc['mechanism']} by the {doc['by']}" for doc in wrong)
        raise NearsideError(f"without {without} no violation was found: {names}")


@app.command(epilog="Example: nearside timeline checkpoint --objects 3 --bytes 4096 --plot timeline.png")
def timeline(
    mechanism: Annotated[
        str, typer.Argument(metavar="undo|redo|checkpoint|shadow", help="What makes a transaction whole.")
    ] = "undo",
    objects: Annotated[int, typer.Option(help="Objects that a transaction changes.", min=1, max=8)] = 2,
    size: Annotated[int, typer.Option("--bytes", help="Bytes of each, a multiple of 8.", min=8, max=16384)] = 4096,
    transactions: Annotated[int, typer.Option(help="Transactions, one after another.", min=1, max=8)] = 2,
    plot: Annotated[Path | None, typer.Option(help="Draw it here (*.png, *.svg).")] = None,
    design: DesignOption = "nearpm-paper",
    as_json: JsonOption = False,
) -> None:
    """What CPU, units and devices do during transactions, and who waits for whom, in each way to run them.

    After NearPM's figures 5 and 6, on the fast model. A fence is a wait of the CPU for what it has sent.
    """
    from nearside import plots
    from nearside import timeline as drawing
    from nearside.device import Design

    if plot is not None:
        plots.check(plot)
    loaded = Design.load(design)
    files.check_apart([plot], loaded.files)
    doc = drawing.measure(loaded, mechanism, objects, size, transactions)
    if plot is not None:
        plots.timeline(doc, plot)
        doc["plot"] = str(plot)
    if as_json:
        print_json(doc)
    else:
        drawing.print_table(doc)


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """As by Ctrl-C: what has been started has a session of its own, and would go on."""
    before = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _crashtest_program(
    program: list[str],
    check: str | None,
    sides: Sequence[str],
    cuts: str,
    options: Mapping[str, Any],
    as_json: bool,
) -> None:
    from nearside import pmdk_crash as crashing

    docs = []
    for side in sides:
        with show.bar(f"{program[0]}, logs by the {side}", not as_json) as progress, _ended_by_sigterm():
            docs.append(crashing.run(program, check, side, cuts, progress=progress, **options))
    if as_json:
        print_json({"engine": options["model"], "campaigns": docs})
    else:
        crashing.print_reports(docs)
    wrong = [doc for doc in docs if crashing.failed(doc)]
    if wrong and options["without"] is None:
        raise NearsideError(f"{wrong[0]['violation']['what']} (again: {wrong[0]['violation']['replay']})")
    if wrong:
        raise NearsideError(f"without {options['without']} no violation was found")


@app.command(epilog="Examples: nearside latency · nearside latency --profile pcm --json")
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
    """Where the time of a single 4 KiB read or write goes, stage by stage: link, host, memory, controller."""
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


@app.command(epilog="Example: nearside demo --trace t.jsonl && nearside trace t.jsonl")
def trace(
    file: Annotated[Path, typer.Argument(help="A trace of JSON lines (*.jsonl).")],
    plot: Annotated[Path | None, typer.Option(help="Draw the first commands of I/O queues here (*.png).")] = None,
    first: Annotated[int, typer.Option(min=1, max=200, help="How many to draw.")] = 40,
    as_json: JsonOption = False,
) -> None:
    """Percentiles of each stage of each kind of command in a trace. Perfetto shows `*.json` traces."""
    from nearside import plots
    from nearside import trace as traces

    files.check_apart([plot], [file])
    commands = traces.load(file)
    if not commands:
        raise NearsideError(f"{file}: no commands in it")
    rows = traces.summary(commands)
    if plot is not None:
        drawn = [c for c in commands if c["queue"]][:first] or commands[:first]
        plots.trace(drawn, plot)
    if as_json:
        print_json({"trace": str(file), "time": "simulated", "commands": len(commands), "stages": rows})
    else:
        traces.print_summary(rows)


@app.command(epilog="Example: nearside soak --gigabytes 10 --result soak.json")
def soak(
    design: Annotated[str, typer.Argument(metavar="[NAME|FILE]", help="A design.")] = "fuzz",
    gigabytes: Annotated[float, typer.Option(help="Bytes of the media to move, in 10^9.", min=0.001, max=1e9)] = 1.0,
    seed: Annotated[int, typer.Option(help="Seed of everything.", min=0, max=MAX_U64)] = 1,
    result: Annotated[
        Path | None, typer.Option(help="Keep the result here after every episode, and go on with what is there.")
    ] = None,
    model: ModelOption = None,
    as_json: JsonOption = False,
) -> None:
    """Reads, writes, compares and zeroes of random sizes on all queues, every byte checked: some 10 MB/s on the RTL."""
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
        raise NearsideError(doc["failure"]["what"])


@app.command(epilog="Example: nearside serve default --socket device.sock --media disk.img")
def serve(
    socket: Annotated[list[Path], typer.Option("--socket", "-s", help="Where clients connect; once for each device.")],
    design: Annotated[
        list[str] | None,
        typer.Argument(metavar="[DESIGN]...", help="Names or files: one for all devices, or one for each. [default]"),
    ] = None,
    media: Annotated[
        list[Path] | None, typer.Option("--media", "-m", help="A file that keeps the data; once for each device.")
    ] = None,
    trace: Annotated[
        list[Path] | None,
        typer.Option("--trace", help="A trace of all commands: *.jsonl, *.json for Perfetto; once for each device."),
    ] = None,
    model: ModelOption = None,
    as_json: JsonOption = False,
) -> None:
    """Serve devices to virtual machines: a vfio-user server that QEMU attaches to.

    Runs until Ctrl-C or SIGTERM. The device is simulated while the guest waits, so the latency and
    bandwidth that a guest sees are the simulator's speed in wall-clock time, not the device's.
    """
    from nearside import serve as serving

    devices = serving.pair(design or ["default"], socket, media or [], trace or [])
    doc = serving.run(devices, quiet=as_json, traces=trace or [], model=model)
    if as_json:
        print_json(doc)
        return
    table = show.table("served", "", *(str(device["socket"]) for device in doc))
    for key in doc[0]["counters"]:
        table.add_row(key.replace("_", " "), *(str(device["counters"][key]) for device in doc))
    show.out.print(table)


@pm_app.command(
    "serve",
    epilog="Example: nearside pm serve redis --port 6380 --mechanism undo --by device, then redis-cli -p 6380 set a b",
)
def pm_serve(
    protocol: Annotated[str, typer.Argument(metavar="redis|memcached", help="Whose clients connect.")],
    port: Annotated[int, typer.Option(help="0: any that is free.")] = 0,
    host: Annotated[
        str,
        typer.Option(help="An IP address of this machine. One that others reach needs a password, or --no-protected."),
    ] = "127.0.0.1",
    socket: Annotated[Path | None, typer.Option("--socket", "-s", help="A Unix socket instead of a port.")] = None,
    password: Annotated[
        str | None,
        typer.Option(
            envvar="NEARSIDE_PASSWORD", help="What clients have to say first: AUTH of Redis; memcached has none."
        ),
    ] = None,
    protected: Annotated[
        bool, typer.Option("--protected/--no-protected", help="Without a password only this machine reaches the store.")
    ] = True,
    mechanism: Annotated[
        str, typer.Option(metavar="undo|redo|checkpoint|shadow", help="What makes transactions whole.")
    ] = "undo",
    by: Annotated[str, typer.Option(metavar="cpu|device", help="Who does the mechanism's work.")] = "device",
    length: Annotated[int, typer.Option(help="Bytes of the pool, a multiple of 4096.")] = 64 << 20,
    cut_after: Annotated[
        int | None, typer.Option(help="The power fails 400 simulated ns behind so many writes.")
    ] = None,
    cut_at_us: Annotated[float | None, typer.Option(help="The power fails after so much simulated time.")] = None,
    design: DesignOption = "nearpm",
    model: Annotated[str, typer.Option(metavar="rtl|fast", help="The SystemVerilog, or its model.")] = "fast",
    as_json: JsonOption = False,
) -> None:
    """Serve a store in persistent memory to real clients of Redis or memcached.

    A write is answered when its transaction is persistent in the simulated device. The power fails where options say,
    or at a client's word: DEBUG POWERCUT [NS] in Redis's protocol, powercut [NS] in memcached's, now or so many
    simulated ns later. Then connections end, the pool is recovered, and clients that come again find all that was
    acknowledged. Runs until Ctrl-C or SIGTERM, and tells what requests took, in simulated time; its data end with it,
    unless the design has a media file: then the next server goes on with them.
    """
    from nearside import front

    doc = front.run(
        protocol,
        as_json,
        port=port,
        host=host,
        socket=socket,
        password=password,
        protected=protected,
        mechanism=mechanism,
        by=by,
        length=length,
        cut_after=cut_after,
        cut_at_us=cut_at_us,
        design=design,
        model=model,
    )
    if as_json:
        print_json(doc)
        return
    table = show.table("requests", "simulated, ns", "count", "mean", "longest")
    for kind in ("reads", "writes"):
        took = doc[kind]
        mean, most = (f"{took[key]:.0f}" for key in ("simulated_mean_ns", "simulated_max_ns"))
        table.add_row(kind, str(took["requests"]), mean, most)
    show.out.print(table)
    print(f"{doc['mechanism']} by {doc['by']}; losses of power: {doc['power_losses']}; refused: {doc['refused']}")


@pmdk_app.command(
    "run",
    epilog="Example: nearside pmdk run -- ./program /dev/shm/pool",
)
def pmdk_run(
    program: Annotated[list[str], typer.Argument(metavar="-- PROGRAM [ARGUMENT]...", help="What is run.")],
    socket: Annotated[
        Path | None,
        typer.Option(
            "--socket", "-s", help="A device that is being served; without it one that ends with the program."
        ),
    ] = None,
    without: Annotated[
        str | None, typer.Option(metavar="snapshots", help="A control: the device makes no records.")
    ] = None,
    design: DesignOption = "nearpm",
    model: Annotated[str, typer.Option(metavar="rtl|fast", help="The SystemVerilog, or its model.")] = "fast",
    as_json: JsonOption = False,
) -> None:
    """Run a program with libpmemobj, its pools on a device whose engine keeps the logs of its transactions.

    A pool is named by its file as ever; its contents are in the device's PM window. The device is simulated while the
    program waits, so the program's speed is the simulator's.
    """
    from nearside import pmdk

    status, doc = pmdk.run(program, socket=socket, without=without, design=design, model=model, quiet=as_json)
    if as_json:
        print_json(doc)
    else:
        pmdk.print_report(doc)
    if status != 0:
        raise typer.Exit(status)


@pmdk_app.command(
    "gain",
    epilog="Example: nearside pmdk gain -- ./program {}/pool",
)
def pmdk_gain(
    program: Annotated[
        list[str], typer.Argument(metavar="-- PROGRAM [ARGUMENT]...", help="What is run; {} is an empty folder.")
    ],
    profile: Annotated[str, typer.Option(metavar="NAME|FILE", help="A host profile: the CPU's costs.")] = "nearpm",
    fence: Annotated[
        str, typer.Option(metavar="posted|read_back|completion", help="What a fence waits for.")
    ] = "read_back",
    design: DesignOption = "nearpm",
    model: Annotated[str, typer.Option(metavar="rtl|fast", help="The SystemVerilog, or its model.")] = "fast",
    as_json: JsonOption = False,
) -> None:
    """What crash consistency takes a program with libpmemobj, alone and with its logs kept by a device.

    The program runs twice, its pools in an empty folder ({}) each time. All flushes, fences, copies and commands of its
    transactions are then done again on the simulated host and device. What the program itself computes is not in it.
    """
    from nearside import pmdk

    doc = pmdk.gain(program, profile=profile, fence=fence, design=design, model=model, quiet=as_json)
    if as_json:
        print_json(doc)
    else:
        pmdk.print_gain(doc)


@delay_app.command("show", epilog="Example: nearside delay show --design dram --json")
def delay_show(design: DesignOption = "default", model: ModelOption = None, as_json: JsonOption = False) -> None:
    """Show the timing of each channel, as its registers hold it."""
    with _device(design, model, as_json) as device:
        channels = device.delay_get()
    if as_json:
        print_json({"channels": channels, "late_reads": device.late_reads})
    else:
        _print_delay(channels)


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
    with _device(design, model, as_json) as device:
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
    _print_delay(channels)


def _latency(device: Any, memory: str) -> dict[str, Any]:
    """The latency of single reads of a memory: by NVMe, or by loads of one that holds no namespace."""
    if memory == "storage":
        return device.workload(queues=1, depth=1, commands=200)["latency"]
    place = next(m for m in device.info()["device"]["memories"] if m["name"] == memory)
    stream = {"in_flight": 1, "count": 200, "start": place["base"], "span": place["bytes"]}
    return device.pm_stream("load", **stream)["latency"]


def _device(name: str, model: str | None, quiet: bool) -> Any:
    from nearside.device import Design, Device

    design = Design.load(name)
    with show.building(design.name, not quiet) as progress:
        return Device(design, progress, model)


def _print_delay(channels: list[dict[str, Any]]) -> None:
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


def main() -> None:
    """The entry point: every expected failure is one line on standard error and a non-zero exit status."""
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", errors="backslashreplace")  # noqa: SIM115
    if sys.stdout is None:
        sys.exit(_complain("standard output is closed; send it to /dev/null if nobody needs it", 1))
    warnings.showwarning = _warn
    # Names of files need not be text, and an encoding need not have all of it. Standard error does this by itself.
    sys.stdout.reconfigure(errors="backslashreplace")
    files.on_stdout = _print_apart
    try:
        status = _run()
        sys.stdout.flush()
    except OSError as error:
        # What is left to print goes nowhere: the interpreter would fail at it once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        named = error.filename or "standard output"
        status = 1 if isinstance(error, BrokenPipeError) else _complain(f"{named}: {error.strerror}", 1)
    sys.exit(status)


def _print_apart() -> None:
    """Data have gone to standard output: what is for people goes to standard error, if that is another one."""
    with suppress(OSError):
        mixed = os.path.sameopenfile(1, 2) and not os.isatty(1)
        sys.stdout = Path(os.devnull).open("w", errors="backslashreplace") if mixed else sys.stderr  # noqa: SIM115


def _run() -> int:
    """Runs the command; returns the exit status."""
    try:
        status = app(standalone_mode=False)
        if status == INTERRUPTED:  # typer has caught the exception itself
            raise KeyboardInterrupt
    except NearsideError as error:
        status = _complain(str(error), getattr(error, "status", 1))
    except ClickException as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            print(error.format_message())
            status = 2
        else:
            status = _complain(f"{error.format_message()} (see {_help_of(error)} --help)", 2)
    except (KeyboardInterrupt, typer.Abort):
        status = _complain("interrupted", INTERRUPTED)
    return status if isinstance(status, int) else 0


def _help_of(error: Exception) -> str:
    context = getattr(error, "ctx", None)
    return context.command_path if context is not None else "nearside"


def _warn(message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: Any) -> None:
    """Warnings that are meant for people are one line, too; others say where they come from."""
    place = "" if issubclass(category, LateReadsWarning) else f"{filename}:{lineno}: {category.__name__}: "
    with suppress(OSError):
        print(f"nearside: warning: {place}{message}", file=sys.stderr)


def _complain(text: str, status: int) -> int:
    with suppress(OSError):  # nobody else can be told
        print(f"nearside: {text}", file=sys.stderr)
    return status


if __name__ == "__main__":
    main()
