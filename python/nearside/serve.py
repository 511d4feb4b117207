# SPDX-License-Identifier: Apache-2.0
"""`nearside serve`: devices as vfio-user servers, for virtual machines and user-space drivers."""

from __future__ import annotations

import json
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
from nearside.types import ServedDevice, ServerCounters

# The time limit of clients for a register access; afterwards they give the device up.
MESSAGE_TIMEOUT_MS = 60_000
# The longest time of a command in a guest, in seconds. With 1024 commands of 1 MiB in flight each
# took up to 58 s on the RTL; the kernel's default limit is 30 s.
COMMAND_TIMEOUT_S = {"fast": 60, "rtl": 300}


def assign_sockets(
    designs: Sequence[str], sockets: Sequence[Path], media: Sequence[Path], traces: Sequence[Path] = ()
) -> list[tuple[Design, Path]]:
    """Assigns a design, a media file and a trace to each socket; a single design serves all of them."""
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
    for socket in sockets:
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
    for path in traces:
        if any(_shared(path, other) for other in (*kept, *sockets)):
            raise NearsideError(f"{files.printable(path)}: a trace can't be a media file or a socket, too")
    return list(zip(chosen, sockets, strict=True))


def _shared(one: Path, other: Path) -> bool:
    """Whether a file would have two purposes; character devices such as /dev/null may."""
    return files.same(one, other) and not one.is_char_device()


def qemu_options(sockets: Sequence[Path], memory: str = "1G") -> list[str]:
    """Options for the command line of QEMU (11 or newer), without the system to boot."""
    options = ["-machine", "q35,memory-backend=m0,aux-ram-share=on", "-m", memory]
    options += ["-object", f"memory-backend-memfd,id=m0,size={memory},share=on"]
    for number, socket in enumerate(sockets, 1):
        # A separate port, as in a real machine. Firmware needs it, too: on the root complex SeaBIOS
        # puts BAR0 above 4 GiB next to a large BAR2, out of reach of its driver. A bridge's window
        # for BAR0 is below 4 GiB.
        options += ["-device", f"pcie-root-port,id=slot{number},slot={number},chassis={number}"]
        device = {
            "driver": "vfio-user-pci",
            "bus": f"slot{number}",
            "socket": {"type": "unix", "path": str(socket)},
            "x-msg-timeout": MESSAGE_TIMEOUT_MS,
        }
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
        summarize: bool = False,
    ) -> None:
        """`clock`: the devices run in simulated time, as an emulator says through this socket.

        With `summarize`, `native.summaries` has the durations of commands.
        """
        every: Sequence[Path | None] = traces or [None] * len(devices)
        wanted = [(design.native, socket, trace) for (design, socket), trace in zip(devices, every, strict=True)]
        self.native = _native.Server(wanted, progress, model, clock, summarize)

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


@renamed(engine="model")
def serve_until_signal(
    devices: Sequence[tuple[Design, Path]], quiet: bool, traces: Sequence[Path] = (), model: str | None = None
) -> list[ServedDevice]:
    """Serves until SIGINT or SIGTERM; returns the counters of each device. `traces` has a file for each, or none."""
    late = [design.late_reads() for design, _ in devices]
    for message in dict.fromkeys(reads["message"] for reads in late if reads):
        warnings.warn(message, LateReadsWarning, stacklevel=1)
    with ended_by_signals() as ended:
        with show.building(devices[0][0].name, not quiet) as progress:
            running = Server(devices, progress, traces, model)
        with running as server:
            if not quiet:
                _announce(devices, server.native.builds)
            while not ended:
                server.wait(0.1)
            counters, builds = server.counters(), server.native.builds
    return [
        {"design": design.name, "socket": str(socket), "build": build, "late_reads": reads, "counters": counts}
        for (design, socket), build, reads, counts in zip(devices, builds, late, counters, strict=True)
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


def _announce(devices: Sequence[tuple[Design, Path]], builds: Sequence[str]) -> None:
    for (design, socket), build in zip(devices, builds, strict=True):
        media = design.values["media"]
        kept = f"media {media['file']}" if media.get("file") else "media in memory, lost at the end"
        print(f"serving {design.name} ({show.size(media['bytes'])}, {kept}; {build} build) at {socket}")
    print("attach it to a guest with QEMU 11 or newer:\n")
    print("  qemu-system-x86_64 " + shlex.join(qemu_options([socket for _, socket in devices])) + " ...\n")
    limit = max(COMMAND_TIMEOUT_S["fast" if build == "fast" else "rtl"] for build in builds)
    print(f"and in its kernel's command line: nvme_core.io_timeout={limit} nvme_core.admin_timeout={limit}")
    print("Wall-clock: a guest sees the speed of this simulation, not the device's. End with Ctrl-C.", flush=True)


__getattr__ = former_names(__name__, run="serve_until_signal", pair="assign_sockets")
