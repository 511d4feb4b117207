# SPDX-License-Identifier: Apache-2.0
"""`nearside serve`: devices as vfio-user servers, for virtual machines and user-space drivers."""

from __future__ import annotations

import json
import math
import shlex
import signal
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from nearside import _native, files, show
from nearside._native import NearsideError
from nearside.device import BuildProgress, Design, LateReadsWarning, toml_text
from nearside.renamed import former_names, renamed
from nearside.types import Pacing, ServedDevice, ServerCounters

# The time limit of clients for a register access; afterwards they give the device up.
MESSAGE_TIMEOUT_MS = 60_000
# The longest time of a command in a guest, in seconds. With 1024 commands of 1 MiB in flight each
# took up to 58 s on the RTL; the kernel's default limit is 30 s.
COMMAND_TIMEOUT_S = {"fast": 60, "rtl": 300}
# The longest modelled time of a command, in seconds. 1024 commands of 1 MiB in flight take 3.4 s at
# the 0.32 GB/s of the profile `pcm`.
MODELLED_TIMEOUT_S = 5


def assign_sockets(
    designs: Sequence[str],
    sockets: Sequence[Path],
    media: Sequence[Path],
    traces: Sequence[Path] = (),
    clock: Path | None = None,
) -> list[tuple[Design, Path]]:
    """Assigns a design, a media file and a trace to each socket; a single design serves all of them.

    `clock` is the socket of the channel for time, which has to be another one.
    """
    if not sockets:
        raise NearsideError("name a socket: --socket PATH")
    if len(designs) not in (1, len(sockets)):
        raise NearsideError(
            f"{len(sockets)} sockets and {len(designs)} designs: give one design, or one for each socket"
        )
    if media and len(media) != len(sockets):
        raise NearsideError(
            f"{len(sockets)} sockets and {len(media)} media files: give one file for each socket, or none"
        )
    if traces and len(traces) != len(sockets):
        raise NearsideError(f"{len(sockets)} sockets and {len(traces)} traces: give one file for each socket, or none")
    every_socket = [*sockets, *([] if clock is None else [clock])]
    for socket in every_socket:
        # Checked before anything long starts.
        if socket.is_dir():
            raise NearsideError(f"{files.printable(socket)} is a directory: name a socket in it")
        if not socket.parent.is_dir():
            raise NearsideError(f"{files.printable(socket)}: its directory doesn't exist")
    names = list(designs) * (len(sockets) if len(designs) == 1 else 1)
    chosen = [Design.load(name) for name in names]
    if media:
        chosen = [
            design.with_values(f"[media]\nfile = {toml_text('the name of a media file', str(path))}")
            for design, path in zip(chosen, media, strict=True)
        ]
    kept = [Path(d.values["media"]["file"]) for d in chosen if d.values["media"].get("file")]
    for what, paths in (("socket", sockets), ("media file", kept), ("trace", traces)):
        for number, path in enumerate(paths):
            if any(_shared(path, other) for other in paths[:number]):
                raise NearsideError(f"{files.printable(path)}: two devices can't share a {what}")
    if clock is not None and any(_shared(clock, other) for other in sockets):
        raise NearsideError(f"{files.printable(clock)}: --clock and --socket need different sockets")
    for path in traces:
        if any(_shared(path, other) for other in (*kept, *every_socket)):
            raise NearsideError(f"{files.printable(path)}: a trace can't be a media file or a socket, too")
    return list(zip(chosen, sockets, strict=True))


def _shared(one: Path, other: Path) -> bool:
    """Whether a file would have two purposes; character devices such as /dev/null may."""
    return files.same(one, other) and not one.is_char_device()


def choose_dilation(paced: bool, dilate: float | None) -> float | None:
    """How many times slower than modelled devices are on the wall clock; None: they are not paced."""
    if not paced and dilate is not None:
        raise NearsideError("--dilate K: only with --paced")
    return (1.0 if dilate is None else dilate) if paced else None


def kernel_timeouts(seconds: int, dilation: float | None) -> str:
    """Options of a guest's kernel: a command may take `seconds` of wall-clock time, and what a paced device needs."""
    limit = max(seconds, math.ceil(MODELLED_TIMEOUT_S * (dilation or 0)))
    return f"nvme_core.io_timeout={limit} nvme_core.admin_timeout={limit}"


def qemu_options(sockets: Sequence[Path], memory: str = "1G", timed: bool = False) -> list[str]:
    """Options for the command line of QEMU (11 or newer), without the system to boot.

    With `timed` each access to a device waits until the device has it: for simulated time.
    """
    # The HPET's timers are 10 ns apart, and each of them would be a step of simulated time.
    machine = "q35,hpet=off" if timed else "q35"
    options = ["-machine", f"{machine},memory-backend=m0,aux-ram-share=on", "-m", memory]
    options += ["-object", f"memory-backend-memfd,id=m0,size={memory},share=on"]
    for number, socket in enumerate(sockets, 1):
        # A separate port, as in a real machine. Firmware needs it, too: on the root complex SeaBIOS
        # puts BAR0 above 4 GiB next to a large BAR2, out of reach of its driver. A bridge's window
        # for BAR0 is below 4 GiB.
        options += ["-device", f"pcie-root-port,id=slot{number},slot={number},chassis={number}"]
        device: dict[str, object] = {
            "driver": "vfio-user-pci",
            "bus": f"slot{number}",
            "socket": {"type": "unix", "path": str(socket)},
            "x-msg-timeout": MESSAGE_TIMEOUT_MS,
        }
        if timed:
            device["x-no-posted-writes"] = True
        options += ["-device", json.dumps(device, separators=(",", ":"))]
    return options


@renamed(engine="model")
class Server:
    """Devices that are being served to vfio-user clients."""

    def __init__(
        self,
        devices: Sequence[tuple[Design, Path]],
        progress: BuildProgress | None = None,
        traces: Sequence[Path | None] = (),
        model: str | None = None,
        clock: Path | None = None,
        dilation: float | None = None,
        summarize: bool = False,
    ) -> None:
        """By default the devices run as fast as they can be simulated.

        `clock`: they run in simulated time, as an emulator says through this socket. `dilation`: they are paced, and
        that many times slower than modelled on the wall clock, from 0.01 to 100000. With `summarize`,
        `native.summaries` has the durations of commands.
        """
        every: Sequence[Path | None] = traces or [None] * len(devices)
        wanted = [(design.native, socket, trace) for (design, socket), trace in zip(devices, every, strict=True)]
        self.native = _native.Server(wanted, progress, model, clock, dilation, summarize)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.native.stop()

    def wait(self, seconds: float) -> None:
        """Serves for a wall-clock time."""
        self.native.wait(seconds)

    def counters(self) -> list[ServerCounters]:
        """Counters of each device since the start."""
        return self.native.counters()

    def pacing(self) -> list[Pacing]:
        """How precisely each device was paced since the start; empty if they are not paced."""
        return self.native.pacing()


@renamed(engine="model")
def serve_until_signal(
    devices: Sequence[tuple[Design, Path]],
    quiet: bool,
    traces: Sequence[Path] = (),
    model: str | None = None,
    clock: Path | None = None,
    dilation: float | None = None,
) -> list[ServedDevice]:
    """Serves until SIGINT or SIGTERM; returns the counters of each device. `traces` has a file for each, or none.

    `clock` and `dilation` are those of `Server`.
    """
    late = [design.late_reads() for design, _ in devices]
    for message in dict.fromkeys(reads["message"] for reads in late if reads):
        warnings.warn(message, LateReadsWarning, stacklevel=1)
    with ended_by_signals() as ended:
        with show.building(devices[0][0].name, not quiet) as progress:
            running = Server(devices, progress, traces, model, clock, dilation)
        with running as server:
            if not quiet:
                _announce(devices, server.native.builds, clock, dilation)
            while not ended:
                server.wait(0.1)
            counters, builds = server.counters(), server.native.builds
            pacing: list[Pacing | None] = [*server.pacing()] or [None] * len(devices)
    return [
        {
            "design": design.name,
            "socket": str(socket),
            "build": build,
            "late_reads": reads,
            "counters": counts,
            "pacing": paced,
        }
        for (design, socket), build, reads, counts, paced in zip(devices, builds, late, counters, pacing, strict=True)
    ]


@contextmanager
def ended_by_signals() -> Iterator[list[int]]:
    """A list that is empty until the process is asked to end."""
    received: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, lambda number, _: received.append(number)) for number in numbers]
    try:
        yield received
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


def print_pacing(devices: Sequence[tuple[str, Pacing]]) -> None:
    """Prints how late completions, interrupts and answers to reads of devices were."""
    first = devices[0][1]
    title = f"later than modelled, in the device's time: wall-clock divided by {first['dilation']:g}"
    columns = ("", "count", "mean", "p50", "p90", "p99", "p99.9", "max")
    table = show.table(title, *columns, f"later than {show.nanoseconds(first['tolerance_ns'])}")
    for name, pacing in devices:
        kinds = {"completions": pacing["completions"], "interrupts": pacing["interrupts"], "reads": pacing["reads"]}
        for kind, errors in kinds.items():
            values = [errors["mean_ns"], errors["p50_ns"], errors["p90_ns"], errors["p99_ns"], errors["p999_ns"]]
            share = f"{errors['late'] / errors['count']:.2%}" if errors["count"] else "-"
            label = kind if len(devices) == 1 else f"{name}: {kind}"
            table.add_row(
                label, str(errors["count"]), *map(show.nanoseconds, values), show.nanoseconds(errors["max_ns"]), share
            )
    show.out.print(table)
    if first["set_back_ns"]:
        span = show.nanoseconds(first["set_back_ns"])
        show.out.print(
            f"The simulator was too slow, and the device's clock was set back by {span}. Use a larger --dilate."
        )


def _announce(
    devices: Sequence[tuple[Design, Path]], builds: Sequence[str], clock: Path | None, dilation: float | None
) -> None:
    for (design, socket), build in zip(devices, builds, strict=True):
        media = design.values["media"]
        kept = f"media {media['file']}" if media.get("file") else "media in memory, lost at the end"
        print(f"serving {design.name} ({show.size(media['bytes'])}, {kept}; {build} build) at {socket}")
    options = shlex.join(qemu_options([socket for _, socket in devices], timed=clock is not None))
    if clock is not None:
        _announce_clock(options, clock)
        return
    print("attach it to a guest with QEMU 11 or newer:\n")
    print(f"  qemu-system-x86_64 {options} ...\n")
    limit = max(COMMAND_TIMEOUT_S["fast" if build == "fast" else "rtl"] for build in builds)
    print(f"and in its kernel's command line: {kernel_timeouts(limit, dilation)}")
    if dilation is None:
        print("Wall-clock: a guest sees the speed of this simulation, not the device's. End with Ctrl-C.", flush=True)
        return
    times = "as fast as" if dilation == 1 else f"{dilation:g} times slower than"
    print(f"Paced: no completion is seen before its time. On the wall clock the device is {times} modelled.")
    if dilation != 1:
        print(f"Divide the times that a guest measures by {dilation:g}.")
    print("Ctrl-C ends it and shows how late completions were.", flush=True)


def _announce_clock(options: str, clock: Path) -> None:
    from nearside.guest.clock import FLAGS, SOURCES
    from nearside.guest.kit import QEMU_VERSION
    from nearside.guest.machine import TIME_LINE

    channel = files.printable(clock)
    print(f"in simulated time: an emulator says through {channel} how far. It connects there before it connects to a")
    print("device. `nearside guest` does all of that. To start its version of QEMU yourself:\n")
    print(f"  cc {shlex.join([*FLAGS, '-o', 'clock.so', *map(str, SOURCES)])}")
    same = "-accel tcg,thread=multi -cpu max,-rdrand,-rdseed -smp 1 -seed 1 -rtc base=2026-01-01,clock=vm"
    plugin = shlex.quote(f"./clock.so,channel={clock},qemu={QEMU_VERSION}")
    print(f"  LD_PRELOAD=./clock.so qemu-system-x86_64 {same} -plugin {plugin} {options} ...\n")
    print(f"and in its kernel's command line: {TIME_LINE} tsc=reliable")
    print("Simulated time: a guest sees the device's. End with Ctrl-C.", flush=True)


__getattr__ = former_names(__name__, run="serve_until_signal", pair="assign_sockets")
