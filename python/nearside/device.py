"""The device as Python objects: thin dictionaries-for-JSON wrappers of the native module."""

from __future__ import annotations

import json
import operator
import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from nearside import _native
from nearside._native import NearsideError
from nearside.renamed import renamed

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
    """A media profile was chosen whose reads the DRAM behind it is too slow for."""


def as_text(what: str, value: str) -> str:
    """The same, if it is text: what comes from the command line holds bytes that aren't UTF-8 as lone surrogates."""
    if not isinstance(value, str):
        raise TypeError(f"{what} must be text, not {type(value).__name__}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise NearsideError(f"{value!r}: {what} must be UTF-8") from None
    return value


def root() -> Path:
    """The checkout that holds the hardware, designs and media profiles."""
    return Path(_native.root())


def media_profile(name: str) -> dict[str, Any]:
    """A media profile by name or path."""
    return json.loads(_native.profile(as_text("the name of a media profile", name)))


class Design:
    """A device configuration (`designs/*.toml`)."""

    def __init__(self, native: _native.Design, path: Path | None = None) -> None:
        self.native = native
        self.path = path

    @classmethod
    def load(cls, name: str = "default") -> Design:
        """By name, or by path (anything with a `/` or `.toml` in it)."""
        native = _native.Design.load(as_text("the name of a design", name))
        by_path = "/" in name or name.endswith(".toml")
        return cls(native, Path(name) if by_path else root() / "designs" / f"{name}.toml")

    def with_values(self, toml: str) -> Design:
        """The same design with other values, given as TOML: `design.with_values("[media]\\nprofile = 'dram'")`."""
        return Design(self.native.with_values(toml), self.path)

    @property
    def files(self) -> list[Path]:
        """Its own file, and those that keep its media and its local memory, if it has them."""
        media = self.values["media"].get("file")
        local = media and self.values.get("memory") and f"{media}.local"
        return [Path(path) for path in (self.path, media, local) if path]

    @property
    def name(self) -> str:
        return self.native.name

    @property
    def hash(self) -> str:
        """SHA-256 of its values. They hold neither the RTL (see `hardware`) nor what the media profile says."""
        return self.native.hash

    @property
    def hardware(self) -> str:
        """What identifies its hardware: a hash of the RTL, its parameters, and what it is compiled with."""
        return self.native.hardware

    def late_reads(self, profile: str | None = None, memory: str = "storage") -> dict[str, Any] | None:
        """What to know of a media profile, or a memory's own, whose reads its DRAM is too slow for; else `None`."""
        name = None if profile is None else as_text("the name of a media profile", profile)
        late = self.native.late_reads(name, as_text("the name of a memory", memory))
        return None if late is None else json.loads(late)

    @property
    def values(self) -> dict[str, Any]:
        """All of it."""
        return json.loads(self.native.json())


def assertions() -> bool:
    """Devices stop when an assertion of the RTL fails: `NEARSIDE_CHECKED` asks for it, as tests do. They are slower."""
    return os.environ.get(CHECKED, "") not in ("", "0")


def compile_design(
    design: Design, progress: BuildProgress | None = None, train: bool = False, checked: bool = False
) -> Path:
    """Compiles a design unless it was compiled before; returns the shared object.

    With `train` it is compiled twice, the second time with counts of what the first did, and runs faster. From then on
    every device of the design uses that. With `checked` it has assertions in any case, see `assertions`.
    """
    return Path(_native.compile(design.native, progress, train, checked))


def model_of(name: str | None) -> str:
    """The model of this name, "rtl" or "fast"; without one that which `NEARSIDE_MODEL` names, or "rtl"."""
    return _native.model(name)


def engine_of(name: str | None) -> str:
    """The former name of `model_of`."""
    warnings.warn("engine_of is model_of now", DeprecationWarning, stacklevel=2)
    return model_of(name)


def _peers(peers: Sequence[tuple[Design, str | None]]) -> list[tuple[_native.Design, str | None]]:
    """As the native module takes them."""
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


def _named(engines: list[dict[str, Any]], name: str, whose: str) -> dict[str, Any]:
    """Of engines the one of this name."""
    name = as_text("the name of an engine", name)
    found = {engine["name"]: engine for engine in engines}
    if name not in found:
        raise NearsideError(f"engine = {name!r}: {whose} has {', '.join(found) or 'none'}")
    return found[name]


class Peer:
    """Another device of a device's host, without a driver: its PM window is used, by the host and by the device,
    and its engines.

    `Device.workload(peer=number)` has its data there.
    """

    def __init__(self, device: Device, number: int) -> None:
        self.device = device
        self._native = device.native
        self.number = number

    def engine(self, name: str) -> PeerEngine:
        """One of its engines by name."""
        engines = json.loads(self._native.peer_engines(self.number))
        return PeerEngine(self, self.device, _named(engines, name, f"the design of peer {self.number}"))

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
        """Gives all channels of its storage the timing of a media profile, while it runs."""
        self._native.peer_delay_set(self.number, as_text("the name of a media profile", profile))

    def pm_read(self, offset: int, length: int) -> bytes:
        """Loads from its PM window."""
        return self._native.peer_read(self.number, offset, length)

    def pm_write(self, offset: int, data: bytes) -> None:
        """Stores to its PM window."""
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
        """A device with power, on a model: "rtl", clock by clock, or "fast", transaction by transaction.

        Without `model` the environment's `NEARSIDE_MODEL` says which, or it is the RTL. `peers` are other devices of
        the same host, each a design and a model, which may be another one: `peers`, `workload(peer=0)`.
        """
        self.design = design
        others = _peers(peers)
        self.native = _native.Device(design.native, progress, model=model, peers=others, **options)
        self.peers = [Peer(self, number) for number in range(len(others))]
        """Other devices of the same host."""
        self.model = self.native.model
        """What simulates it: "rtl" or "fast"."""
        self.late_reads: dict[str, Any] | None = None
        """Of the timing that its storage has: see `Design.late_reads`."""
        self._chosen(None)
        for memory in design.values.get("memory", []):
            self._chosen(None, memory["name"])

    def __enter__(self) -> Device:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.native.shutdown()
        else:
            self.native.close()

    @property
    def build(self) -> str:
        """What its bitstream was built as: "checked" has assertions, "running" has none; either may be ", trained"."""
        return self.native.build

    @property
    def now_ns(self) -> float:
        """Simulated time now."""
        return self.native.now_ns

    @property
    def namespace_bytes(self) -> int:
        """Bytes of the namespace in use."""
        return self.native.namespace_bytes

    @property
    def block_bytes(self) -> int:
        return self.native.block_bytes

    def info(self) -> dict[str, Any]:
        """What the device says of itself."""
        return json.loads(self.native.info())

    def write(self, data: bytes, offset: int = 0, **shape: Any) -> dict[str, Any]:
        """Writes through several queues (`queues`, `depth`, `chunk`, `progress`)."""
        return json.loads(self.native.write(data, offset, **shape))

    def read(self, length: int, offset: int = 0, **shape: Any) -> tuple[bytes, dict[str, Any]]:
        """Reads through several queues (`queues`, `depth`, `chunk`, `progress`)."""
        data, report = self.native.read(length, offset, **shape)
        return data, json.loads(report)

    def workload(self, **job: Any) -> dict[str, Any]:
        """Runs a job as fio knows them; see `help(nearside._native.Device.workload)`."""
        return json.loads(self.native.workload(**job))

    def set_priority(self, queue: int, priority: str) -> None:
        """Gives an I/O queue, from 0, a priority; for a device with `weights`. The queue is created again."""
        self.native.set_priority(queue, priority)

    def delay_get(self) -> list[dict[str, Any]]:
        """The timing of each channel."""
        return json.loads(self.native.delay_get())

    def delay_set(self, profile: str, channel: int | None = None, memory: str = "storage") -> None:
        """Gives the channels of a memory, "storage" or "local", the timing of a media profile, while the device runs.

        With `channel`, from 0 on, only that one of them.
        """
        self.native.delay_set(
            as_text("the name of a media profile", profile), channel, as_text("the name of a memory", memory)
        )
        self._chosen(profile, memory)

    def delay_set_latency(
        self, read_ns: float, write_ns: float, channel: int | None = None, memory: str = "storage"
    ) -> None:
        """Gives the channels of a memory, or one of them, plain latencies, while the device runs."""
        self.native.delay_set_latency(read_ns, write_ns, channel, as_text("the name of a memory", memory))
        name = f"name = '{read_ns:g} ns'\ndescription = ''\n"
        profile = f"{name}[read]\nbase_ns = {float(read_ns)}\n[write]\nbase_ns = {float(write_ns)}\n"
        self._chosen(profile, memory)

    def _chosen(self, profile: str | None, memory: str = "storage") -> None:
        late = self.design.late_reads(profile, memory)
        if memory == "storage":
            self.late_reads = late
        if late:
            warnings.warn(late["message"], LateReadsWarning, stacklevel=3)

    def delay_counters(self, clear: bool = False) -> list[dict[str, Any]]:
        """Counters of each channel's timing emulator."""
        return json.loads(self.native.delay_counters(clear))

    def pm_read(self, offset: int, length: int) -> bytes:
        """Loads from the PM window."""
        return self.native.pm_read(offset, length)

    def pm_write(self, offset: int, data: bytes) -> None:
        """Stores to the PM window."""
        self.native.pm_write(offset, data)

    def pm_stream(self, kind: str, **stream: Any) -> dict[str, Any]:
        """A stream of loads ("load") or posted stores ("store") of the PM window; see
        `help(nearside._native.Device.pm_stream)`."""
        return json.loads(self.native.pm_stream(kind, **stream))

    def select_namespace(self, nsid: int) -> None:
        """Makes all later commands go to another active namespace (`info()["namespaces"]`)."""
        self.native.select_namespace(nsid)

    def format(self, nsid: int | None = None, erase: str = "none") -> None:
        """Erases a namespace, the one in use, or all of them (`ALL_NAMESPACES`); `erase` may be "user-data"."""
        self.native.format(nsid, erase)

    def write_zeroes(self, length: int, offset: int = 0) -> None:
        """Makes whole blocks read as zeros, without moving data."""
        self.native.write_zeroes(length, offset)

    def deallocate(self, *ranges: tuple[int, int]) -> None:
        """Deallocates ranges of whole blocks, each (offset, length) in bytes; they read as zeros from then on."""
        self.native.deallocate(list(ranges))

    def compare(self, data: bytes, offset: int = 0) -> bool:
        """True if the media holds `data`, whole blocks."""
        return self.native.compare(data, offset)

    def compare_and_write(self, expected: bytes, data: bytes, offset: int = 0) -> bool:
        """Writes whole blocks if the media holds `expected`, in one step; true if it did."""
        return self.native.compare_and_write(expected, data, offset)

    def verify(self, length: int, offset: int = 0) -> None:
        """Has the device read whole blocks; an error if it cannot."""
        self.native.verify(length, offset)

    def trace_start(self, path: str | Path) -> None:
        """From now on writes what happens to each command to a file: `*.jsonl`, or `*.json` for Perfetto."""
        self.native.trace_start(path)

    def trace_stop(self) -> int | None:
        """Ends the trace; returns how many commands it holds. It may come after the shutdown."""
        return self.native.trace_stop()

    def single(self, **job: Any) -> list[list[list[Any]]]:
        """Commands one at a time, with all that happens to each; see `help(nearside._native.Device.single)`."""
        return json.loads(self.native.single(**job))

    def engines(self) -> list[dict[str, Any]]:
        """The engines of the design: name, kind, arguments, outputs, results, where their registers are in BAR4."""
        return json.loads(self.native.engines)

    def engine(self, name: str) -> Engine:
        """The engine that the design calls so."""
        return Engine(self, _named(self.engines(), name, f"the design {self.design.name}"))

    def qos(self) -> dict[str, dict[str, int]]:
        """What the PM window ("pm"), the controller ("nvme") and each engine may do in a memory channel.

        `reads` and `writes` are the lines of 64 bytes that it may have outstanding, 0 being no limit; `beside` is such
        a limit of both while the controller has something outstanding in the channel, 0 being no other one; `weight` is
        how many it may move in a round beside others that want to. The PM window goes first."""
        return json.loads(self.native.qos_get())

    def set_qos(
        self,
        master: str,
        reads: int | None = None,
        writes: int | None = None,
        weight: int | None = None,
        beside: int | None = None,
    ) -> None:
        """Changes what is given of these values, from the next burst on: 0 to 1023 lines, a weight of 1 to 255."""
        self.native.qos_set(as_text("master", master), reads, writes, weight, beside)

    def flush(self) -> None:
        self.native.flush()

    def rest(self, ns: int) -> None:
        """Lets simulated time pass without work."""
        self.native.rest(ns)

    def counters(self) -> dict[str, float]:
        """Counters of the model, by name."""
        return {name: value for name, (value, _unit) in json.loads(self.native.counters()).items()}

    def reset(self) -> None:
        """Controller reset, and a new start of the driver."""
        self.native.reset()

    def shutdown(self) -> None:
        self.native.shutdown()


class Submitted(NamedTuple):
    """A command in an engine's command page."""

    line: int
    number: int
    engine: Engine


class Launched(ABC):
    """An engine of a device, or of another device of its host: launched by its registers."""

    def __init__(self, device: Device, values: dict[str, Any]) -> None:
        self.device = device
        self.values = values
        self.name: str = values["name"]

    def _in_order(self, arguments: dict[str, int]) -> list[int]:
        """Arguments by name as the engine takes them."""
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

    def _wrong(self, result: int) -> list[str]:
        """The names of what went wrong in a return value."""
        names = dict(enumerate(self.values["results"]))
        return [names.get(bit, f"bit {bit}") for bit in range(32) if result >> bit & 1]

    @abstractmethod
    def _start(self, arguments: list[int]) -> None:
        """Starts it with all of its arguments."""

    @abstractmethod
    def _wait(self, timeout_us: int) -> int | None:
        """Its return value, when it has ended within that time."""

    def start(self, **arguments: int) -> None:
        """Starts it by its registers; each of its arguments by name."""
        self._start(self._in_order(arguments))

    def wait(self, timeout_us: int = 1_000_000) -> list[str]:
        """Waits for its end, in simulated time; the names of what went wrong."""
        value = self._wait(timeout_us)
        if value is None:
            raise NearsideError(f"{self.name} has not ended in {timeout_us} us")
        return self._wrong(value)

    def launch(self, timeout_us: int = 1_000_000, **arguments: int) -> float:
        """Starts it and waits for its end; the simulated nanoseconds that it took, as the host sees it."""
        _native.check_timeout(timeout_us)  # before it works
        begin = self.device.now_ns
        self.start(**arguments)
        if wrong := self.wait(timeout_us):
            raise NearsideError(f"{self.name}: {', '.join(wrong)}")
        return self.device.now_ns - begin


class PeerEngine(Launched):
    """An engine of another device of a device's host."""

    def __init__(self, peer: Peer, device: Device, values: dict[str, Any]) -> None:
        super().__init__(device, values)
        self.peer = peer

    def _start(self, arguments: list[int]) -> None:
        self.device.native.peer_engine_start(self.peer.number, self.name, arguments)

    def _wait(self, timeout_us: int) -> int | None:
        return self.device.native.peer_engine_wait(self.peer.number, self.name, timeout_us)


class Engine(Launched):
    """An engine of a device, launched by its registers, by its command page, or by NVMe I/O commands."""

    def _start(self, arguments: list[int]) -> None:
        self.device.native.engine_start(self.name, arguments)

    def _wait(self, timeout_us: int) -> int | None:
        return self.device.native.engine_wait(self.name, timeout_us)

    def stop(self) -> None:
        """Asks it to end early."""
        self.device.native.engine_stop(self.name)

    def submit(self, **arguments: int) -> Submitted:
        """Writes a command into its command page, one store of 64 bytes; each of its arguments by name.

        Up to 64 may be under way; the engine takes them in their order, behind the stores of the PM window before them.
        What is returned, `finish` asks for.
        """
        return Submitted(*self.device.native.engine_submit(self.name, self._in_order(arguments)), self)

    def finish(self, command: Submitted, timeout_us: int = 1_000_000) -> dict[str, int]:
        """Waits for the end of a command of its command page, in simulated time; its outputs, by name.

        What went wrong is an error, and so is a command whose line a later one has taken.
        """
        if not isinstance(command, Submitted):
            raise TypeError(f"a command is what submit returns, not {type(command).__name__}")
        engine = command.engine
        if (engine.device, engine.name) != (self.device, self.name):
            raise NearsideError(f"{self.name}: the command was submitted to {engine.name}, which finishes it")
        end = self.device.native.engine_finish(self.name, command.line, command.number, timeout_us)
        if end is None:
            raise NearsideError(f"{self.name} has not ended in {timeout_us} us")
        result, value = end
        if wrong := self._wrong(result):
            raise NearsideError(f"{self.name}: {', '.join(wrong)}")
        return dict.fromkeys(self.values["outputs"], value)

    def outputs(self) -> dict[str, int]:
        """What it told at its last end beside what went wrong: values of 64 bits, by name."""
        return dict(zip(self.values["outputs"], self.device.native.engine_outputs(self.name), strict=True))

    def command(self, name: str, nsid: int = 1, **dwords: int) -> int:
        """Runs one of its NVMe I/O commands to its end, by its name in `commands`; returns dword 0 of its completion.

        `cdw2`, `cdw3`, `cdw10` to `cdw15`: the dwords of the command, 32 bits each, 0 where not given. What they mean
        stands in the engine's README. A status other than success is an error, which names it.
        """
        opcodes = {command["name"]: command["opcode"] for command in self.values["commands"]}
        if name not in opcodes:
            raise NearsideError(f"command = {name!r}: {self.name} has {', '.join(opcodes) or 'none'}")
        numbers = {f"cdw{n}": n for n in (2, 3, *range(10, 16))}
        if wrong := sorted(dwords.keys() - numbers.keys()):
            raise NearsideError(f"{', '.join(wrong)}: allowed are {', '.join(numbers)}")
        values = [(numbers[key], value) for key, value in dwords.items()]
        return self.device.native.io_command(opcodes[name], nsid, values)
