# SPDX-License-Identifier: Apache-2.0
"""Commands about persistent memory: crashtest, timeline, pm, pmdk."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from nearside import files, show
from nearside._native import NearsideError
from nearside.cli.app import app
from nearside.cli.options import DesignOption, JsonOption, command_group, print_json
from nearside.commands import PERSISTENT
from nearside.device import MAX_U64

pm_app = command_group("Serve stores in persistent memory.")
app.add_typer(pm_app, name="pm", rich_help_panel=PERSISTENT)
pmdk_app = command_group("Run unmodified programs with libpmemobj on a device.")
app.add_typer(pmdk_app, name="pmdk", rich_help_panel=PERSISTENT)


@app.command(
    group=PERSISTENT,
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
            "Or a program with libpmemobj, libpmem or flush instructions; {} in its arguments is a folder for pools.",
        ),
    ],
    mechanism: Annotated[
        str, typer.Option(metavar="undo|redo|checkpoint|shadow|all", help="What makes a workload's transactions whole.")
    ] = "all",
    check: Annotated[
        str | None,
        typer.Option(metavar="COMMAND", help="Checks what a program has left; without it the program itself does."),
    ] = None,
    by: Annotated[str, typer.Option(metavar="cpu|device|all", help="Who runs the mechanism.")] = "all",
    cuts: Annotated[
        str,
        typer.Option(
            metavar="sampled:N|all|commands|at:CUT,...",
            help="sampled: drawn; for a program by what happens at its moments and where. all: at every clock "
            "edge, with all sets of lines that may have left the cache; for a program all moments from its first "
            "transaction or, without one, its first mapping on. commands: after each command to an engine, on each "
            "device alone. at: these. Moments of a program are at calls and at flush instructions, not between "
            "stores: see --torn.",
        ),
    ] = "sampled:200",
    torn: Annotated[
        bool,
        typer.Option(
            "--torn",
            help="Lines of a program leave the cache in words of 8 bytes, in any order. This finds stores that have to "
            "be whole and are not. It reports programs that rely on the order of stores to one line, as x86 allows.",
        ),
    ] = False,
    limit: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="A program or a check that takes longer is killed, with all it has started. After a power cut that "
            "is a violation. Without it: 10 times what a run without a power cut takes, and at least 60.",
        ),
    ] = None,
    transactions: Annotated[int, typer.Option(help="Transactions of a workload's run.", min=1, max=100_000)] = 24,
    seed: Annotated[int, typer.Option(help="Seed of everything; the same seed does the same.", min=0, max=MAX_U64)] = 1,
    without: Annotated[
        str | None,
        typer.Option(
            metavar="snapshots|fences|hook|commands|domain|peers|tracking|durability",
            help="Negative control: leave this out. It fails unless violations are found.",
        ),
    ] = None,
    devices: Annotated[int, typer.Option(metavar="1|2|4", help="Devices that a workload's pool is over.")] = 1,
    synchronise: Annotated[
        str, typer.Option(metavar="devices|host", help="Who synchronises several devices.")
    ] = "devices",
    tracked: Annotated[
        bool,
        typer.Option(
            "--tracked",
            help="The engine makes records without commands. For programs: by the device, while they have one thread.",
        ),
    ] = False,
    later: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Transactions of a workload become durable later, N at a time. A cut must leave at least those that "
            "were acknowledged, and a prefix of all. 1: each is durable on return.",
            min=1,
            max=1000,
        ),
    ] = None,
    words: Annotated[
        bool,
        typer.Option("--words", help="With --later: the engine reports in host memory what is durable; no groups."),
    ] = False,
    jobs: Annotated[
        int | None, typer.Option(help="Copies at a time; without it, one for each CPU.", min=1, max=256)
    ] = None,
    design: Annotated[
        str | None, typer.Option("--design", "-d", metavar="NAME|FILE", help="[default for cpu, nearpm for device]")
    ] = None,
    model: Annotated[str, typer.Option(metavar="rtl|fast", help="The SystemVerilog, or the fast model.")] = "fast",
    as_json: JsonOption = False,
) -> None:
    """Cut the power at many moments of a program.

    The program runs once. Copies of it end in a power cut of the host and, then or later, of the device. Some lines
    have left the cache before, stores that no load has proven are lost, and power fails again during recovery.
    Afterwards the pool must hold what n transactions have left, or n + 1, and the program must be able to go on. With
    --later it may hold less than n, but not less than what was durable.
    """
    from nearside import crashtest as crashing
    from nearside.device import compile_design, model_of

    def chosen(text: str, names: Sequence[str]) -> Sequence[str]:
        return names if text == "all" else text.split(",")

    model = model_of(model)
    if len(workload) > 1 or "/" in workload[0] or check is not None:
        for name in ("mechanism", "transactions", "devices", "synchronise", "later", "words", "jobs"):
            source = context.get_parameter_source(name)
            assert source is not None
            if source.name != "DEFAULT":
                raise NearsideError(f"--{name} is for workloads, not for programs (-- PROGRAM)")
        options: dict[str, Any] = {"seed": seed, "without": without, "torn": torn, "limit_s": limit}
        options |= {"design": design or "nearpm", "model": model, "tracked": "auto" if tracked else "never"}
        _crashtest_program(workload, check, chosen(by, crashing.EXECUTORS), cuts, options, as_json)
        return
    if torn:
        raise NearsideError(
            f"--torn is for programs (-- PROGRAM); the lines of {files.printable(workload[0])} leave whole"
        )
    if limit is not None:
        raise NearsideError(
            f"--limit is for programs (-- PROGRAM); {files.printable(workload[0])} takes simulated time"
        )
    docs = []
    for side in chosen(by, crashing.EXECUTORS):
        loaded = crashing.load_design(side, design)
        if model == "rtl":
            with show.building(loaded.name, not as_json) as build:
                compile_design(loaded, build, checked=True)
        for name in chosen(workload[0], crashing.WORKLOADS):
            for kind in chosen(mechanism, [kind for kind in crashing.MECHANISMS if not tracked or kind != "redo"]):
                with show.bar(f"{name}, {kind} by the {side}", not as_json) as progress:
                    options = {"model": model, "transactions": transactions, "seed": seed, "without": without}
                    options |= {"at_once": jobs, "progress": progress, "devices": devices, "synchronise": synchronise}
                    options |= {"tracked": tracked, "later": later, "words": words}
                    docs.append(crashing.run_campaign(loaded, name, kind, side, cuts, **options))
    if as_json:
        print_json({"engine": model, "time": "simulated", "campaigns": docs})
    else:
        crashing.print_reports(docs)
    wrong = [doc for doc in docs if crashing.campaign_failed(doc)]
    if wrong and without is None:
        violation = wrong[0]["violation"]
        assert violation is not None
        raise NearsideError(f"{violation['what']} (again: {violation['replay']})")
    if wrong:
        names = ", ".join(f"{doc['workload']} {doc['mechanism']} by the {doc['by']}" for doc in wrong)
        raise NearsideError(f"without {without} no violation was found: {names}")


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """End as by Ctrl-C: processes that were started are in another session, and would go on."""
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
        text = f"{files.printable(program[0])}, logs by the {side}"
        with show.bar(text, not as_json) as progress, _ended_by_sigterm():
            docs.append(crashing.run_campaign(program, check, side, cuts, progress=progress, **options))
    if as_json:
        print_json({"engine": options["model"], "campaigns": docs})
    else:
        crashing.print_reports(docs)
    wrong = [doc for doc in docs if crashing.campaign_failed(doc)]
    if wrong and options["without"] is None:
        violation = wrong[0]["violation"]
        assert violation is not None
        raise NearsideError(f"{violation['what']} (again: {violation['replay']})")
    if wrong:
        raise NearsideError(f"without {options['without']} no violation was found")


@app.command(
    group=PERSISTENT, epilog="Example: nearside timeline checkpoint --objects 3 --bytes 4096 --plot timeline.png"
)
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
    """Draw who waits for whom in transactions.

    CPU, units and devices over time, for each executor, on the fast model; as NearPM's figures 5 and 6. A fence is a
    wait of the CPU for what it has sent.
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
            envvar="NEARSIDE_PASSWORD", help="What clients have to send first: AUTH of Redis; memcached has none."
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
        int | None, typer.Option(help="The power fails 400 simulated ns after this number of writes.")
    ] = None,
    cut_at_us: Annotated[float | None, typer.Option(help="The power fails at this simulated time.")] = None,
    design: DesignOption = "nearpm",
    model: Annotated[str, typer.Option(metavar="rtl|fast", help="The SystemVerilog, or the fast model.")] = "fast",
    as_json: JsonOption = False,
) -> None:
    """Serve a key-value store to clients of Redis or memcached.

    A write is answered when its transaction is persistent in the simulated device. The power fails where options say,
    or when a client asks for it: DEBUG POWERCUT [NS] in Redis's protocol, powercut [NS] in memcached's, now or NS
    simulated nanoseconds later. Connections then end, the pool is recovered, and clients that connect again find all
    that was acknowledged. Runs until Ctrl-C or SIGTERM, then reports the simulated times of requests. The data end with
    it, unless the design has a media file: then the next server continues with them.
    """
    from nearside import kv_server

    doc = kv_server.serve_until_signal(
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
        elapsed = doc[kind]
        mean, most = (f"{elapsed[key]:.0f}" for key in ("simulated_mean_ns", "simulated_max_ns"))
        table.add_row(kind, str(elapsed["requests"]), mean, most)
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
        str | None, typer.Option(metavar="snapshots", help="Negative control: the device makes no records.")
    ] = None,
    tracked: Annotated[
        str, typer.Option(metavar="auto|never", help="Tracked pools, while the program has one thread.")
    ] = "never",
    design: DesignOption = "nearpm",
    model: Annotated[str, typer.Option(metavar="rtl|fast", help="The SystemVerilog, or the fast model.")] = "fast",
    as_json: JsonOption = False,
) -> None:
    """Run a program with its pools on a device.

    The device's engine keeps the logs of its transactions. A pool has the name of its file as before; its contents are
    in the device's PM window. The device is simulated while the program waits, so the program's speed is the
    simulator's.
    """
    from nearside import pmdk

    status, doc = pmdk.run_on_device(
        program, socket=socket, without=without, design=design, model=model, tracked=tracked, quiet=as_json
    )
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
    tracked: Annotated[
        str, typer.Option(metavar="auto|never", help="Whether to run it in tracked pools, too.")
    ] = "auto",
    each: Annotated[
        str | None, typer.Option(metavar="WORD,WORD...", help="Run once for each, which is {each} in the arguments.")
    ] = None,
    design: DesignOption = "nearpm",
    model: Annotated[str, typer.Option(metavar="rtl|fast", help="The SystemVerilog, or the fast model.")] = "fast",
    as_json: JsonOption = False,
) -> None:
    """Measure what crash consistency costs a program.

    The program runs twice, with its logs kept by the CPU and by the device, its pools in an empty folder ({}) each
    time. All flushes, fences, copies and commands of its transactions are then done again on the simulated host and
    device. What the program itself computes is not included.

    Offloaded is as `pmdk run` does it. Ordered: fences of a transaction only order, and its end waits. Tracked: as
    `pmdk run --tracked auto` does it.
    """
    from nearside import pmdk

    options: dict[str, Any] = {
        "profile": profile,
        "fence": fence,
        "design": design,
        "model": model,
        "tracked": tracked,
        "quiet": as_json,
    }
    if each is not None:
        docs = pmdk.measure_gains(program, each.split(","), **options)
        if as_json:
            print_json(docs)
        else:
            pmdk.print_gains(docs)
        return
    doc = pmdk.measure_gain(program, **options)
    if as_json:
        print_json(doc)
    else:
        pmdk.print_gain(doc)
