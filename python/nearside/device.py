# SPDX-License-Identifier: Apache-2.0
"""The device as Python objects: wrappers of the native module that return typed dictionaries."""

from __future__ import annotations

import json
import operator
import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

from nearside import _native
from nearside._native import NearsideError
from nearside.renamed import former_method, former_names, renamed
from nearside.types import (
    ChannelCounters,
    ChannelTiming,
    DesignValues,
    EngineInfo,
    EventList,
    Info,
    LateReads,
    MasterLimits,
    MediaProfile,
    ReplayReport,
    StreamReport,
    TransferReport,
    WorkloadReport,
)

Progress = Callable[[int, int], None]
BuildProgress = Callable[[str, int, int], None]

# The environment variable that names the model of devices that are not asked for one.
MODEL = "NEARSIDE_MODEL"
# The environment variable that asks for builds with assertions.
CHECKED = "NEARSIDE_CHECKED"

ALL_NAMESPACES = 0xFFFF_FFFF
# Seeds and counts are 64 bits wide.
MAX_U64 = (1 << 64) - 1


class LateReadsWarning(UserWarning):
    """Warns of a media profile with reads faster than the DRAM of the memory can serve."""


def as_text(what: str, value: str) -> str:
    """The text itself, after a check. The command line passes bytes that aren't UTF-8 as lone surrogates."""
    if not isinstance(value, str):
        raise TypeError(f"{what} must be text, not {type(value).__name__}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise NearsideError(f"{value!r}: {what} must be UTF-8") from None
    return value


def toml_text(what: str, value: str) -> str:
    """The text as a string of TOML: as in JSON, except for surrogate pairs and DEL."""
    return json.dumps(as_text(what, value), ensure_ascii=False).replace("\x7f", "\\u007f")


def root() -> Path:
    """The checkout, which compiling the RTL needs. An error where there is none."""
    return Path(_native.root())


def media_profile(name: str) -> MediaProfile:
    """A media profile by name or path."""
    return _native.profile(as_text("the name of a media profile", name))


class Design:
    """The configuration of a device (`designs/*.toml`)."""

    def __init__(self, native: _native.Design, path: Path | None = None) -> None:
        self.native = native
        self.path = path

    @classmethod
    def load(cls, name: str = "default") -> Design:
        """Loads a design by name, or by path: a path contains `/` or ends in `.toml`."""
        native = _native.Design.load(as_text("the name of a design", name))
        return cls(native, native.path)

    def with_values(self, toml: str) -> Design:
        """A copy with values replaced, as TOML: `design.with_values("[media]\\nprofile = 'dram'")`."""
        return Design(self.native.with_values(toml), self.path)

    @property
    def files(self) -> list[Path]:
        """The design file, and the media files of its storage and local memory, if it has them."""
        media = self.values["media"].get("file")
        local = media and self.values.get("memory") and f"{media}.local"
        return [Path(path) for path in (self.path, media, local) if path]

    @property
    def name(self) -> str:
        """The name of the design: that of its file without the suffix."""
        return self.native.name

    @property
    def hash(self) -> str:
        """SHA-256 of the values. They include neither the RTL (see `hardware`) nor media profiles' content."""
        return self.native.hash

    @property
    def hardware(self) -> str:
        """Identifies the hardware: a hash of the RTL, its parameters, and the compiler's options."""
        return self.native.hardware

    def late_reads(self, profile: str | None = None, memory: str = "storage") -> LateReads | None:
        """Describes a media profile with reads that the DRAM is too slow for; `None` if there are
        none.

        Without `profile` that of the memory in this design is checked.
        """
        name = None if profile is None else as_text("the name of a media profile", profile)
        return self.native.late_reads(name, as_text("the name of a memory", memory))

    @property
    def values(self) -> DesignValues:
        """All values of the design, with defaults filled in."""
        return self.native.values()


def assertions() -> bool:
    """True if devices stop when an RTL assertion fails: `NEARSIDE_CHECKED` is set. They are slower."""
    return os.environ.get(CHECKED, "") not in ("", "0")


def compile_design(
    design: Design, progress: BuildProgress | None = None, train: bool = False, checked: bool = False
) -> Path:
    """Compiles a design unless it was compiled before; returns the path of the shared object.

    With `train` it is compiled twice, the second time with profile counts of a first run. Every
    device of the design uses that faster build from then on. With `checked` the build has
    assertions in any case, see `assertions`.
    """
    return Path(_native.compile(design.native, progress, train, checked))


def model_of(name: str | None) -> str:
    """Checks the name of a model, "rtl" or "fast". `None` is that of `NEARSIDE_MODEL`, or "rtl"."""
    return _native.model(name)


def engine_of(name: str | None) -> str:
    """The former name of `model_of`."""
    warnings.warn("engine_of is model_of now", DeprecationWarning, stacklevel=2)
    return model_of(name)


def _peers(peers: Sequence[tuple[Design, str | None]]) -> list[tuple[_native.Design, str | None]]:
    """Checks peers and converts them for the native module."""
    allowed = "allowed are pairs of a Design and the name of a model, or None"
    if not isinstance(peers, list | tuple):
        raise TypeError(f"peers = {type(peers).__name__}: {allowed}, in a list")
    for number, pair in enumerate(peers):
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            kind = type(pair).__name__ + (f" of {len(pair)}" if isinstance(pair, list | tuple) else "")
            raise TypeError(f"peers[{number}] = {kind}: {allowed}")
        if not isinstance(pair[0], Design) or not isinstance(pair[1], str | None):
            kinds = ", ".join(type(part).__name__ for part in pair)
            raise TypeError(f"peers[{number}] = ({kinds}): {allowed}")
    return [(peer.native, name) for peer, name in peers]


def _find_engine(engines: list[EngineInfo], name: str, whose: str) -> EngineInfo:
    """The engine with this name."""
    name = as_text("the name of an engine", name)
    found = {engine["name"]: engine for engine in engines}
    if name not in found:
        raise NearsideError(f"engine = {name!r}: {whose} has {', '.join(found) or 'none'}")
    return found[name]


class Peer:
    """Another device of the same host, without a driver.

    The host and the device use its PM window and its engines. `Device.workload(peer=number)` keeps
    its data there.
    """

    def __init__(self, device: Device, number: int) -> None:
        self.device = device
        self._native = device.native
        self.number = number

    def engine(self, name: str) -> PeerEngine:
        """An engine of the peer, by name."""
        engines = self._native.peer_engines(self.number)
        return PeerEngine(self, self.device, _find_engine(engines, name, f"the design of peer {self.number}"))

    def set_qos(
        self,
        master: str,
        reads: int | None = None,
        writes: int | None = None,
        weight: int | None = None,
        beside: int | None = None,
    ) -> None:
        """As `Device.set_qos`."""
        self._native.peer_qos_set(self.number, as_text("master", master), reads, writes, weight, beside)

    def delay_set(self, profile: str) -> None:
        """Changes flow-control limits; see `Device.set_qos`."""
        self._native.peer_delay_set(self.number, as_text("the name of a media profile", profile))

    def pm_read(self, offset: int, length: int) -> bytes:
        """Loads from the peer's PM window."""
        return self._native.peer_read(self.number, offset, length)

    def pm_write(self, offset: int, data: bytes) -> None:
        """Stores to the peer's PM window."""
        self._native.peer_write(self.number, offset, data)


@renamed(engine="model")
class Device:
    """A simulated device with its link, host and driver."""

    def __init__(
        self,
        design: Design,
        progress: BuildProgress | None = None,
        model: str | None = None,
        peers: Sequence[tuple[Design, str | None]] = (),
        **options: Any,
    ) -> None:
        """Switches a device on, simulated by `model`: "rtl" (clock by clock) or "fast" (by
        transactions).

        Without `model` it is that of the environment's `NEARSIDE_MODEL`, or "rtl". `peers` are
        other devices of the same host, each a design and a model; models may differ.
        """
        self.design = design
        others = _peers(peers)
        self.native = _native.Device(design.native, progress, model=model, peers=others, **options)
        self.peers = [Peer(self, number) for number in range(len(others))]
        """The other devices of the same host."""
        self.model = self.native.model
        """The model that simulates the device: "rtl" or "fast"."""
        self.late_reads: LateReads | None = None
        """Describes late reads under the present timing of the storage; see `Design.late_reads`."""
        self._report_late_reads(None)
        for memory in design.values.get("memory", []):
            self._report_late_reads(None, memory["name"])

    def __enter__(self) -> Device:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.native.shutdown()
        else:
            self.native.close()

    @property
    def build(self) -> str:
        """The kind of bitstream: "checked" has assertions, "running" has none; ", trained" may follow."""
        return self.native.build

    @property
    def now_ns(self) -> float:
        """Simulated time since power-on, in ns."""
        return self.native.now_ns

    @property
    def namespace_bytes(self) -> int:
        """Bytes of the selected namespace."""
        return self.native.namespace_bytes

    @property
    def block_bytes(self) -> int:
        """Bytes of a logical block."""
        return self.native.block_bytes

    def info(self) -> Info:
        """Controller, capabilities, queues, namespaces, memories and blocks, as the device reports them."""
        return self.native.info()

    def write(self, data: bytes, offset: int = 0, **shape: Any) -> TransferReport:
        """Writes data through several queues (options `queues`, `depth`, `chunk`, `progress`)."""
        return self.native.write(data, offset, **shape)

    def read(self, length: int, offset: int = 0, **shape: Any) -> tuple[bytes, TransferReport]:
        """Reads data through several queues (options `queues`, `depth`, `chunk`, `progress`)."""
        return self.native.read(length, offset, **shape)

    def workload(self, **job: Any) -> WorkloadReport:
        """Runs a job with fio-like parameters; see `help(nearside._native.Device.workload)`."""
        return self.native.workload(**job)

    def replay(self, commands: Sequence[tuple[int, str, int, int]], progress: Progress | None = None) -> ReplayReport:
        """Issues recorded commands at their times, on the first I/O queue.

        A command is (time in ps from the first one's, "read", "write" or "flush", LBA, blocks); they are in the order
        of time. A command does not wait for those before it, unless the queue is full. All share one buffer, so the
        data are lost.
        """
        return self.native.replay(commands, progress=progress)

    def set_priority(self, queue: int, priority: str) -> None:
        """Sets the priority of an I/O queue, counted from 0. Needs a design with `weights`.

        The queue is deleted and created again.
        """
        self.native.set_priority(queue, priority)

    def delay_get(self) -> list[ChannelTiming]:
        """The timing of each channel."""
        return self.native.delay_get()

    def delay_set(self, profile: str, channel: int | None = None, memory: str = "storage") -> None:
        """Applies a media profile to the channels of a memory, while the device runs.

        `memory` is "storage" or "local". With `channel`, counted from 0, only that channel changes.
        """
        self.native.delay_set(
            as_text("the name of a media profile", profile), channel, as_text("the name of a memory", memory)
        )
        self._report_late_reads(profile, memory)

    def delay_set_latency(
        self, read_ns: float, write_ns: float, channel: int | None = None, memory: str = "storage"
    ) -> None:
        """Sets fixed latencies for the channels of a memory, or for one channel, while the device runs."""
        self.native.delay_set_latency(read_ns, write_ns, channel, as_text("the name of a memory", memory))
        name = f"name = '{read_ns:g} ns'\ndescription = ''\n"
        profile = f"{name}[read]\nbase_ns = {float(read_ns)}\n[write]\nbase_ns = {float(write_ns)}\n"
        self._report_late_reads(profile, memory)

    def _report_late_reads(self, profile: str | None, memory: str = "storage") -> None:
        late = self.design.late_reads(profile, memory)
        if memory == "storage":
            self.late_reads = late
        if late:
            warnings.warn(late["message"], LateReadsWarning, stacklevel=3)

    def delay_counters(self, clear: bool = False) -> list[ChannelCounters]:
        """Counters of each channel's `nvm_delay`; `clear` resets them."""
        return self.native.delay_counters(clear)

    def pm_read(self, offset: int, length: int) -> bytes:
        """Loads from the PM window."""
        return self.native.pm_read(offset, length)

    def pm_write(self, offset: int, data: bytes) -> None:
        """Stores to the PM window."""
        self.native.pm_write(offset, data)

    def pm_stream(self, kind: str, **stream: Any) -> StreamReport:
        """Runs a stream of loads ("load") or posted stores ("store") of the PM window.

        See `help(nearside._native.Device.pm_stream)`.
        """
        return self.native.pm_stream(kind, **stream)

    def select_namespace(self, nsid: int) -> None:
        """Directs later commands to another active namespace (`info()["namespaces"]`)."""
        self.native.select_namespace(nsid)

    def format(self, nsid: int | None = None, erase: str = "none") -> None:
        """Formats the selected namespace, that of `nsid`, or all (`ALL_NAMESPACES`).

        `erase` is "none" or "user-data".
        """
        self.native.format(nsid, erase)

    def write_zeroes(self, length: int, offset: int = 0) -> None:
        """Zeroes whole blocks without data transfer."""
        self.native.write_zeroes(length, offset)

    def deallocate(self, *ranges: tuple[int, int]) -> None:
        """Deallocates whole blocks. Each range is (offset, length) in bytes; it reads as zeros afterwards."""
        self.native.deallocate(list(ranges))

    def compare(self, data: bytes, offset: int = 0) -> bool:
        """True if whole blocks of the media equal `data`."""
        return self.native.compare(data, offset)

    def compare_and_write(self, expected: bytes, data: bytes, offset: int = 0) -> bool:
        """Writes whole blocks if the media equals `expected`, atomically; returns whether it did."""
        return self.native.compare_and_write(expected, data, offset)

    def verify(self, length: int, offset: int = 0) -> None:
        """Verifies that whole blocks are readable; raises an error if they are not."""
        self.native.verify(length, offset)

    def trace_start(self, path: str | Path) -> None:
        """Starts a trace of all commands in a file: `*.jsonl`, or `*.json` for Perfetto."""
        self.native.trace_start(path)

    def trace_stop(self) -> int | None:
        """Ends the trace; returns the number of commands in it. Allowed after the shutdown, too."""
        return self.native.trace_stop()

    def single(self, **job: Any) -> list[EventList]:
        """Runs commands one at a time with all their events; see `help(nearside._native.Device.single)`."""
        return self.native.single(**job)

    def engines(self) -> list[EngineInfo]:
        """The engines of the design: kind, arguments, outputs, error names, register offset in BAR4."""
        return self.native.engines

    def engine(self, name: str) -> Engine:
        """An engine of the device, by its name in the design."""
        return Engine(self, _find_engine(self.engines(), name, f"the design {self.design.name}"))

    def qos(self) -> dict[str, MasterLimits]:
        """Flow-control limits, in each memory channel, of "pm", "nvme" and every engine.

        `reads` and `writes` limit the lines of 64 bytes in flight; 0 is no limit. `beside` is such
        a limit for both while the controller has accesses in flight in the channel; 0 is none.
        `weight` is the share of an arbitration round among masters that compete. The PM window has
        priority.
        """
        return self.native.qos_get()

    def set_qos(
        self,
        master: str,
        reads: int | None = None,
        writes: int | None = None,
        weight: int | None = None,
        beside: int | None = None,
    ) -> None:
        """Changes the given limits from the next burst on: 0 to 1023 lines, a weight of 1 to 255."""
        self.native.qos_set(as_text("master", master), reads, writes, weight, beside)

    def flush(self) -> None:
        """Sends an NVMe Flush and waits for it."""
        self.native.flush()

    def advance_time(self, ns: int) -> None:
        """Lets simulated time pass without host activity."""
        self.native.rest(ns)

    rest = former_method("rest", "advance_time")

    def counters(self) -> dict[str, float]:
        """Counters of the model, by name."""
        return {name: cast("float", value) for name, (value, _unit) in self.native.counters().items()}

    def reset(self) -> None:
        """Resets the controller and initialises the driver again."""
        self.native.reset()

    def shutdown(self) -> None:
        """Shuts the controller down in the normal way."""
        self.native.shutdown()


class SubmittedCommand(NamedTuple):
    """A command that was submitted through an engine's command page."""

    line: int
    number: int
    engine: Engine


class RegisterEngine(ABC):
    """An engine that is launched through its registers, of a device or of a peer."""

    def __init__(self, device: Device, values: EngineInfo) -> None:
        self.device = device
        self.values = values
        self.name: str = values["name"]

    def _ordered_arguments(self, arguments: dict[str, int]) -> list[int]:
        """The values of all arguments, in the order of the engine's registers."""
        expected = self.values["arguments"]
        given = dict.fromkeys(self.values["optional"], 0) | arguments
        if wrong := sorted(given.keys() ^ set(expected)):
            raise NearsideError(f"{self.name}: {', '.join(wrong)}: its arguments are {', '.join(expected)}")
        for name in expected:
            try:
                fits = 0 <= operator.index(given[name]) <= MAX_U64
            except TypeError:
                fits = False
            if not fits:
                raise NearsideError(f"{self.name}: {name} = {given[name]!r}: allowed are integers from 0 to {MAX_U64}")
        return [given[name] for name in expected]

    def _error_names(self, result: int) -> list[str]:
        """The names of the error bits that are set in a return value."""
        names = dict(enumerate(self.values["results"]))
        return [names.get(bit, f"bit {bit}") for bit in range(32) if result >> bit & 1]

    @abstractmethod
    def _start(self, arguments: list[int]) -> None:
        """Starts the engine with all of its arguments."""

    @abstractmethod
    def _wait(self, timeout_us: int) -> int | None:
        """The return value, or `None` if the engine has not ended within that simulated time."""

    def start(self, **arguments: int) -> None:
        """Starts the engine through its registers; each argument by name."""
        self._start(self._ordered_arguments(arguments))

    def wait(self, timeout_us: int = 1_000_000) -> list[str]:
        """Waits in simulated time for the end of the job; returns the names of errors."""
        value = self._wait(timeout_us)
        if value is None:
            raise NearsideError(f"{self.name} has not ended in {timeout_us} us")
        return self._error_names(value)

    def launch(self, timeout_us: int = 1_000_000, **arguments: int) -> float:
        """Starts the engine and waits for its end; returns the simulated ns that passed on the host."""
        _native.check_timeout(timeout_us)  # before the engine is started
        begin = self.device.now_ns
        self.start(**arguments)
        if wrong := self.wait(timeout_us):
            raise NearsideError(f"{self.name}: {', '.join(wrong)}")
        return self.device.now_ns - begin


class PeerEngine(RegisterEngine):
    """An engine of a peer."""

    def __init__(self, peer: Peer, device: Device, values: EngineInfo) -> None:
        super().__init__(device, values)
        self.peer = peer

    def _start(self, arguments: list[int]) -> None:
        self.device.native.peer_engine_start(self.peer.number, self.name, arguments)

    def _wait(self, timeout_us: int) -> int | None:
        return self.device.native.peer_engine_wait(self.peer.number, self.name, timeout_us)


class Engine(RegisterEngine):
    """An engine of a device: launched by registers, by its command page, or by NVMe I/O commands."""

    def _start(self, arguments: list[int]) -> None:
        self.device.native.engine_start(self.name, arguments)

    def _wait(self, timeout_us: int) -> int | None:
        return self.device.native.engine_wait(self.name, timeout_us)

    def stop(self) -> None:
        """Requests an early end of the job."""
        self.device.native.engine_stop(self.name)

    def submit(self, **arguments: int) -> SubmittedCommand:
        """Writes a command to the engine's command page, by one 64-byte store; each argument by
        name.

        Up to 64 commands may be in flight. The engine executes them in order, after all earlier
        stores to the PM window. Pass the returned value to `finish`.
        """
        return SubmittedCommand(*self.device.native.engine_submit(self.name, self._ordered_arguments(arguments)), self)

    def finish(self, command: SubmittedCommand, timeout_us: int = 1_000_000) -> dict[str, int]:
        """Waits in simulated time for the end of a submitted command; returns its outputs by name.

        Raises an error if the command has failed, or if a later command has reused its line.
        """
        if not isinstance(command, SubmittedCommand):
            raise TypeError(f"a command is what submit returns, not {type(command).__name__}")
        engine = command.engine
        if (engine.device, engine.name) != (self.device, self.name):
            raise NearsideError(f"{self.name}: the command was submitted to {engine.name}, which finishes it")
        end = self.device.native.engine_finish(self.name, command.line, command.number, timeout_us)
        if end is None:
            raise NearsideError(f"{self.name} has not ended in {timeout_us} us")
        result, value = end
        if wrong := self._error_names(result):
            raise NearsideError(f"{self.name}: {', '.join(wrong)}")
        return dict.fromkeys(self.values["outputs"], value)

    def outputs(self) -> dict[str, int]:
        """The outputs of the last job: 64-bit values, by name."""
        return dict(zip(self.values["outputs"], self.device.native.engine_outputs(self.name), strict=True))

    def command(self, name: str, nsid: int = 1, **dwords: int) -> int:
        """Runs one of the engine's NVMe I/O commands (`commands`); returns dword 0 of its
        completion.

        `cdw2`, `cdw3`, `cdw10` to `cdw15` are the dwords of the command, 0 by default; the engine's
        README describes them. A status other than success raises an error that names it.
        """
        opcodes = {command["name"]: command["opcode"] for command in self.values["commands"]}
        if name not in opcodes:
            raise NearsideError(f"command = {name!r}: {self.name} has {', '.join(opcodes) or 'none'}")
        numbers = {f"cdw{n}": n for n in (2, 3, *range(10, 16))}
        if wrong := sorted(dwords.keys() - numbers.keys()):
            raise NearsideError(f"{', '.join(wrong)}: allowed are {', '.join(numbers)}")
        values = [(numbers[key], value) for key, value in dwords.items()]
        return self.device.native.io_command(opcodes[name], nsid, values)


__getattr__ = former_names(__name__, Submitted="SubmittedCommand", Launched="RegisterEngine")
