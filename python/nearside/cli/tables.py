# SPDX-License-Identifier: Apache-2.0
"""Commands about tables: sort, table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nearside import show
from nearside.cli.app import app
from nearside.cli.options import DesignOption, JsonOption, ModelOption, command_group, print_json
from nearside.commands import TABLES, UsageError

table_app = command_group("Keep tables on devices and sort them in place.")
app.add_typer(table_app, name="table", rich_help_panel=TABLES)


FORMATS = "parquet|arrow|stream|csv"
MediaOption = Annotated[
    list[Path],
    typer.Option("--media", help="The media file of a device; once for each. All devices of a table, in any order."),
]
ByOption = Annotated[
    str,
    typer.Option(
        metavar="COLUMNS",
        help='Names with commas between them, each with asc or desc, and nulls first or nulls last: "a, b desc". '
        "Case matters. A name with a space or a comma needs double quotes.",
    ),
]
FromOption = Annotated[str | None, typer.Option("--from", metavar=FORMATS, help="Format of the file.")]
ToOption = Annotated[str | None, typer.Option("--to", metavar=FORMATS, help="Format of the output.")]
OutputOption = Annotated[
    Path | None, typer.Option("--output", "-o", help="Where the table goes; replaced if it is there.")
]
CompressionOption = Annotated[
    str, typer.Option(metavar="snappy|zstd|lz4|gzip|none", help="Compression of the pages of a Parquet output.")
]


@app.command(
    group=TABLES,
    epilog='Examples: nearside sort t.parquet --by "a, b desc nulls last" --devices 2 -o sorted.parquet · '
    "nearside sort t.csv --by a --explain · nearside sort --table t --media d0 --media d1 --by a -o sorted.arrow",
)
def sort(
    by: ByOption,
    file: Annotated[
        Path | None,
        typer.Argument(metavar="TABLE", help="The table: *.parquet, *.arrow, *.feather, *.arrows or *.csv."),
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
        bool, typer.Option("--explain", help="Don't sort: show the plan, and what bounds each stage.")
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
    """Sort a table on simulated devices.

    Keys and rows are written to the devices, engines sort them in place, and rows come back. The sort is stable. Nulls
    are last in ascending order, first in descending order. With several devices each has a part of the rows, and the
    host merges what comes back. What does not fit is sorted in partitions, one after another. The suffix of a file, or
    --from and --to, say what format it has; without either it is Parquet.
    """
    from nearside import tables
    from nearside.device import Design

    if (file is None) == (table is None):
        raise UsageError("name a file, or a table that is resident on devices: --table NAME --media FILE")
    if table is not None and not media:
        raise UsageError("--table goes with --media")
    if table is None and media:
        raise UsageError("--media goes with --table: a file's table goes to devices whose storage is memory")
    loaded = Design.load(design)
    if explain:
        with show.building(loaded.name, not as_json) as build:
            if table is not None:
                plan = tables.explain_resident(table, media, by, model, loaded, build)
            else:
                assert file is not None
                plan = tables.explain(file, by, devices, loaded, source_format=source_format)
        print_json(plan) if as_json else tables.print_plan(plan)
        return
    if output is None:
        raise UsageError("name an output: -o FILE")
    with show.building(loaded.name, not as_json) as build, show.bar("sorting", not as_json) as progress:
        if table is not None:
            doc = tables.get(
                table, media, output, by, model, loaded, build, progress, target_format=target_format,
                compression=compression, trace=trace, plot=plot,
            )  # fmt: skip
        else:
            assert file is not None
            doc = tables.sort_file(
                file, output, by, devices, model, loaded, build, progress, source_format=source_format,
                target_format=target_format, compression=compression, trace=trace, plot=plot,
            )  # fmt: skip
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
        str,
        typer.Option(
            metavar="COLUMNS", help='What it can be sorted by: "a, b". These are stored separately from the rows.'
        ),
    ],
    name: Annotated[str | None, typer.Option(help="What it is called; without it as the file.")] = None,
    design: DesignOption = "sort",
    model: ModelOption = None,
    source_format: FromOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write a table to devices, where it stays.

    Each device has a part of its rows. Missing media files are created. The table exists once all of it is written: a
    put that is cut off leaves what was there before.
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
        doc = tables.resident(media, model, loaded, build)
    if as_json:
        print_json(doc)
    else:
        tables.print_resident(doc)


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
    with show.building(loaded.name, not as_json) as build, show.bar("reading", not as_json) as progress:
        doc = tables.get(
            name, media, output, None, model, loaded, build, progress, target_format=target_format,
            compression=compression,
        )  # fmt: skip
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
    """Delete a table on devices, or what is left of it."""
    from nearside import tables
    from nearside.device import Design

    loaded = Design.load(design)
    with show.building(loaded.name) as build:
        tables.drop(name, media, model, loaded, build)
