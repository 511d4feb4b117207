"""Types of the compiled part of the package (`crates/py`). `tests/test_types.py` compares them with the module."""

from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import TypeAlias, final

from nearside.types import (
    ArrowStream,
    BenchmarkResult,
    ChannelCounters,
    ChannelTiming,
    CopyResult,
    Counter,
    CrashResult,
    DelayBenchResult,
    DesignValues,
    DramTiming,
    EngineInfo,
    EventList,
    FuzzResult,
    GuestPhase,
    Info,
    KvReport,
    LateReads,
    LockstepResult,
    MasterLimits,
    MediaProfile,
    Pacing,
    PmdkCost,
    PoolCheck,
    PutReport,
    ReplayReport,
    ResidentTable,
    ServerCounters,
    SortPlan,
    SortResult,
    StreamReport,
    ThreadCounts,
    TimelineResult,
    TransactionsResult,
    TransferReport,
    WorkloadReport,
)

StrPath: TypeAlias = str | PathLike[str]
Progress: TypeAlias = Callable[[int, int], object]
BuildProgress: TypeAlias = Callable[[str, int, int], object]

# Runs that the engine `sorter` merges in a pass, and the most keys that it sorts in one pass.
LEAVES: int
ONE_PASS_KEYS: int

@final
class ArrowTable:
    """A table in memory, for every library that knows the Arrow PyCapsule interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The table as a capsule with a stream of batches; a requested schema is ignored."""

@final
class DelayBench:
    """`nvm_delay` alone, with the clock and the DRAM of a design."""

    def __init__(self, design: Design, progress: BuildProgress | None = None) -> None: ...
    def measure(
        self, kind: str, base_ns: float, beat_ns: float, beats: int, samples: int, seed: int
    ) -> DelayBenchResult:
        """Measures single accesses ("read", "write") at random addresses; times are in ns."""
    @property
    def period_ns(self) -> float:
        """The clock period, in ns."""
    def pipelined_reads(self, reads: int, delay: float) -> int:
        """Cycles of `reads` pipelined reads with a delay in cycles, from first address to last beat."""

@final
class Design:
    """The configuration of a device."""

    def filelist(self, path: str) -> str:
        """The file list of the device top at `path`; other paths are relative to the repository."""
    @property
    def hardware(self) -> str:
        """A hash of the RTL, its parameters, and the compiler's options."""
    @property
    def hash(self) -> str:
        """SHA-256 of the values."""
    def header(self) -> str:
        """The address map, as a C header."""
    def late_reads(self, profile: str | None = None, memory: str = ...) -> LateReads | None:
        """Describes a media profile with reads that the DRAM is too slow for, or None."""
    @staticmethod
    def load(name: str) -> Design:
        """Loads a design by name or path."""
    @property
    def name(self) -> str:
        """The name of the design."""
    @property
    def path(self) -> Path | None:
        """The file that it was read from, if there is one."""
    def top(self) -> str:
        """The device top with its engines and parameters, in SystemVerilog."""
    def values(self) -> DesignValues:
        """All values, with defaults filled in."""
    def with_values(self, overrides: str) -> Design:
        """A copy with values replaced by those of a TOML text."""

@final
class Device:
    """A simulated device with its link, host and driver. Calls must not overlap."""

    def __init__(
        self,
        design: Design,
        progress: BuildProgress | None = None,
        timeout_us: int = 100000,
        queue_entries: int | None = None,
        trace: tuple[StrPath, int, int] | None = None,
        skip_idle: bool = True,
        commands: StrPath | None = None,
        weights: tuple[int, int, int] | None = None,
        model: str | None = None,
        peers: Sequence[tuple[Design, str | None]] = ...,
    ) -> None: ...
    @property
    def block_bytes(self) -> int:
        """Bytes of a logical block."""
    @property
    def build(self) -> str:
        """The kind of bitstream: "checked" or "running", with ", trained" if it is; or "fast"."""
    def close(self) -> None:
        """Removes the device without a shutdown, as a power cut does."""
    def compare(self, data: bytes, offset: int) -> bool:
        """True if whole blocks equal `data`."""
    def compare_and_write(self, expected: bytes, data: bytes, offset: int) -> bool:
        """Writes whole blocks if the media equals `expected`, atomically; true if it did."""
    def counters(self) -> dict[str, Counter]:
        """Counters of the model: name to [value, unit]."""
    def deallocate(self, ranges: Sequence[tuple[int, int]]) -> None:
        """Deallocates ranges of whole blocks: (offset, length) in bytes."""
    def delay_counters(self, clear: bool = False) -> list[ChannelCounters]:
        """Counters of each channel's `nvm_delay`."""
    def delay_get(self) -> list[ChannelTiming]:
        """The timing of each channel."""
    def delay_set(self, profile: str, channel: int | None = None, memory: str = ...) -> None:
        """Applies a media profile (name, path or TOML text) to the channels of a memory."""
    def delay_set_latency(self, read_ns: float, write_ns: float, channel: int | None = None, memory: str = ...) -> None:
        """Sets fixed latencies, in ns, for the channels of a memory."""
    def engine_finish(self, name: str, line: int, number: int, timeout_us: int = 1000000) -> tuple[int, int] | None:
        """Waits for a command of the command page: (error bits, output), or None at the timeout."""
    def engine_outputs(self, name: str) -> list[int]:
        """The outputs of an engine's last job, in their order."""
    def engine_start(self, name: str, arguments: Sequence[int]) -> None:
        """Sets an engine's arguments and starts it."""
    def engine_stop(self, name: str) -> None:
        """Requests an early end of an engine's job."""
    def engine_submit(self, name: str, arguments: Sequence[int]) -> tuple[int, int]:
        """Writes a command to an engine's command page: (line, number) for `engine_finish`."""
    def engine_wait(self, name: str, timeout_us: int = 1000000) -> int | None:
        """Waits for the end of an engine's job: its return value, or None at the timeout."""
    @property
    def engines(self) -> list[EngineInfo]:
        """The engines of the design."""
    def flush(self) -> None:
        """Sends an NVMe Flush."""
    def format(self, nsid: int | None = None, erase: str = "none") -> None:
        """Formats a namespace, the selected one, or all (4294967295)."""
    def info(self) -> Info:
        """Controller, queues, namespaces, memories and blocks."""
    def io_command(self, opcode: int, nsid: int, dwords: Sequence[tuple[int, int]]) -> int:
        """Runs a vendor-specific I/O command with (dword number, value) pairs; dword 0 of its completion."""
    @property
    def model(self) -> str:
        """The model: "rtl" or "fast"."""
    @property
    def namespace_bytes(self) -> int:
        """Bytes of the selected namespace."""
    @property
    def now_ns(self) -> float:
        """Simulated time since power-on, in ns."""
    def peer_delay_set(self, peer: int, profile: str) -> None:
        """Applies a media profile to a peer's storage."""
    def peer_engine_start(self, peer: int, name: str, arguments: Sequence[int]) -> None:
        """Sets the arguments of a peer's engine and starts it."""
    def peer_engine_wait(self, peer: int, name: str, timeout_us: int = 1000000) -> int | None:
        """Waits for the end of a peer's engine, as `engine_wait`."""
    def peer_engines(self, peer: int) -> list[EngineInfo]:
        """The engines of a peer, as `engines`."""
    def peer_qos_set(
        self,
        peer: int,
        master: str,
        reads: int | None = None,
        writes: int | None = None,
        weight: int | None = None,
        beside: int | None = None,
    ) -> None:
        """Changes limits of a peer's master, as `qos_set`."""
    def peer_read(self, peer: int, offset: int, length: int) -> bytes:
        """Loads from a peer's PM window."""
    def peer_write(self, peer: int, offset: int, data: bytes) -> None:
        """Stores to a peer's PM window; stores are posted."""
    def pm_read(self, offset: int, length: int) -> bytes:
        """Loads from the PM window."""
    def pm_stream(
        self,
        kind: str,
        *,
        bytes: int = 64,
        in_flight: int = 64,
        count: int = 4000,
        start: int = 0,
        span: int = 0,
        pattern: str = "random",
        seed: int = 1,
        verify: bool = False,
        pause_ns: int = 0,
        progress: Progress | None = None,
    ) -> StreamReport:
        """Runs a stream of loads ("load") or stores ("store") of the PM window; a report."""
    def pm_write(self, offset: int, data: bytes) -> None:
        """Stores to the PM window; stores are posted."""
    def qos_get(self) -> dict[str, MasterLimits]:
        """Limits of each master in a channel: name to reads, writes, weight, beside."""
    def qos_set(
        self,
        master: str,
        reads: int | None = None,
        writes: int | None = None,
        weight: int | None = None,
        beside: int | None = None,
    ) -> None:
        """Changes limits of a master: "pm", "nvme" or an engine's name."""
    def read(
        self,
        length: int,
        offset: int = 0,
        queues: int = 4,
        depth: int = 8,
        chunk: int = 16384,
        progress: Progress | None = None,
    ) -> tuple[bytes, TransferReport]:
        """Reads bytes through several queues: the data, and a report."""
    def reset(self) -> None:
        """Resets the controller and initialises the driver again."""
    def rest(self, ns: int) -> None:
        """Lets simulated time pass without host activity."""
    def select_namespace(self, nsid: int) -> None:
        """Directs later commands to another namespace."""
    def set_priority(self, queue: int, priority: str) -> None:
        """Sets the priority of an I/O queue, which is created again."""
    def shutdown(self) -> None:
        """Shuts the controller down in the normal way."""
    def replay(
        self, commands: Sequence[tuple[int, str, int, int]], *, progress: Progress | None = None
    ) -> ReplayReport:
        """Issues recorded commands at their times: (ps from the first one's, kind, LBA, blocks); a report."""
    def single(self, write: bool = False, bytes: int = 4096, commands: int = 20, seed: int = 1) -> list[EventList]:
        """Runs commands one at a time; all events of each."""
    def trace_start(self, path: StrPath) -> None:
        """Starts a trace of all commands in a file (`*.jsonl`, or `*.json` for Perfetto)."""
    def trace_stop(self) -> int | None:
        """Ends the trace: the number of commands in it, or None without a trace."""
    def verify(self, length: int, offset: int) -> None:
        """Verifies that whole blocks are readable."""
    def workload(
        self,
        *,
        read_percent: int = 100,
        pattern: str = "random",
        min_bytes: int = 4096,
        max_bytes: int | None = None,
        queues: int = 10,
        depth: int = 8,
        commands: int = 4000,
        start: int = 0,
        span: int = 0,
        scattered: bool = False,
        list_offset: int = 0,
        verify: bool = False,
        seed: int = 1,
        switch: tuple[int, str] | None = None,
        loads_every: int = 0,
        peer: int | None = None,
        progress: Progress | None = None,
    ) -> WorkloadReport:
        """Runs a job; a report. `switch` is (commands, media profile) for a change under load."""
    def write(
        self,
        data: bytes,
        offset: int = 0,
        queues: int = 4,
        depth: int = 8,
        chunk: int = 16384,
        progress: Progress | None = None,
    ) -> TransferReport:
        """Writes data through several queues, padded to whole blocks; a report."""
    def write_zeroes(self, length: int, offset: int) -> None:
        """Zeroes whole blocks."""

@final
class DramChannel:
    """A DDR4 channel of a design. Times are in ps and must not decrease."""

    def __init__(self, design: Design, refresh: bool = True) -> None: ...
    def next_event(self) -> int | None:
        """The time of the next useful call of `poll`, or None."""
    def poll(self, now: int) -> tuple[int, int] | None:
        """A completion that is due: (address, time), or None."""
    def push(self, now: int, addr: int, is_write: bool) -> bool:
        """Submits a request of 64 bytes; false if the queue is full."""
    def timing(self) -> DramTiming:
        """Timing constraints in clocks, latencies and peak bandwidth."""

@final
class Front:
    """A key-value store that is being served, in background threads, until `stop`."""

    def __init__(
        self,
        protocol: str,
        design: Design,
        model: str,
        mechanism: str,
        by: str,
        bytes: int,
        host: str,
        port: int,
        socket: StrPath | None,
        password: str | None,
        protected: bool,
        cut_after: int | None,
        cut_at_ps: int | None,
    ) -> None: ...
    @property
    def port(self) -> int | None:
        """The TCP port; None with a Unix socket."""
    def stop(self) -> KvReport | None:
        """Ends all connections; the first call returns a report, others None."""

class NearsideError(Exception):
    """An expected failure, with a one-line message."""

@final
class PmPool:
    """An open pool."""

    def bytes(self) -> int:
        """Bytes of the pool."""
    def check(self) -> PoolCheck:
        """Checks the consistency of the metadata."""
    def close(self) -> None:
        """Closes the pool; closing twice is allowed."""
    def resize(self, bytes: int) -> None:
        """Grows the pool to a number of bytes."""
    def thread(self, cpu: int) -> PmThread:
        """A thread of the pool, on a CPU."""

@final
class PmSystem:
    """A host with devices for pools. Times are simulated."""

    def __init__(self, design: Design, model: str, devices: int, synchronise: str) -> None: ...
    def close(self) -> None:
        """Closes the system; closing twice is allowed."""
    def forget(self) -> None:
        """Accepts that a device has lost data."""
    def has_power(self) -> bool:
        """False after a power cut, until `power_on`."""
    def load(self, offset: int, length: int) -> bytes:
        """Loads from the first device's window, bypassing the CPU's cache."""
    def now_ps(self) -> int:
        """Simulated time, in ps."""
    def pool_create(
        self,
        place: int,
        bytes: int,
        name: str,
        mechanism: str,
        threads: int,
        log_bytes: int,
        spare_pages: int,
        tracked: bool,
        offload: bool,
        fence: str,
        number: int,
        engine_recovers: bool,
        group_commit: int | None,
        words: bool,
    ) -> PmPool:
        """Creates a pool and opens it."""
    def pool_open(
        self,
        place: int,
        name: str,
        offload: bool,
        fence: str,
        number: int,
        engine_recovers: bool,
        group_commit: int | None,
        words: bool,
    ) -> PmPool:
        """Opens a pool and recovers it."""
    def power_cut(self, cut: str) -> int:
        """Cuts the power of the host ("host") or of all ("all"): the number of lines lost."""
    def power_cut_after(self, ps: int) -> None:
        """Schedules a power cut."""
    def power_on(self) -> None:
        """Restores the power."""
    def store(self, offset: int, data: bytes) -> None:
        """Stores to the first device's window until persistent."""
    def window_bytes(self) -> int:
        """Bytes of each device's PM window that pools may use."""

@final
class PmThread:
    """A thread of a pool."""

    def abort(self) -> None:
        """Aborts the transaction."""
    def add_range(self, offset: int, length: int) -> None:
        """Announces changes within a range."""
    def alloc(self, bytes: int) -> int:
        """Allocates an object; its offset."""
    def begin(self) -> None:
        """Begins a transaction."""
    def close(self) -> int | None:
        """Closes the thread and aborts its open transaction: the last durable ticket; None the second time."""
    def commit(self) -> None:
        """Commits the transaction."""
    def commit_later(self) -> int:
        """Commits the transaction, which becomes durable later: its ticket."""
    def counts(self) -> ThreadCounts:
        """Counts since the thread was opened; times in ps."""
    def fail(self) -> None:
        """Makes the transaction abort at its end."""
    def finish(self) -> None:
        """Waits until the engine has completed all its commands."""
    def free(self, offset: int) -> None:
        """Frees an object at the commit."""
    def is_active(self) -> bool:
        """True while a transaction is open."""
    def read(self, offset: int, length: int) -> bytes:
        """Reads bytes of an object."""
    def root(self) -> int:
        """The offset of the root object; 0 if none is set."""
    def set_root(self, offset: int) -> None:
        """Makes an object the root object."""
    def sync(self) -> None:
        """Waits until all transactions of the thread are durable."""
    def tickets(self) -> tuple[int, int]:
        """The last ticket that is known to be durable, and the last one."""
    def wait(self, ticket: int) -> None:
        """Waits until a transaction is durable."""
    def write(self, offset: int, data: bytes) -> None:
        """Writes bytes of an object."""

@final
class Server:
    """Devices that are served to vfio-user clients, in background threads, until `stop`."""

    def __init__(
        self,
        devices: Sequence[tuple[Design, StrPath, StrPath | None]],
        progress: BuildProgress | None = None,
        model: str | None = None,
        clock: StrPath | None = None,
        dilation: float | None = None,
        summarize: bool = False,
    ) -> None: ...
    @property
    def builds(self) -> list[str]:
        """The kind of bitstream of each device; see `Device.build`."""
    def counters(self) -> list[ServerCounters]:
        """Counters of each device since the start."""
    def pacing(self) -> list[Pacing]:
        """How precisely each device was paced since the start; empty if they are not paced."""
    def progress(self) -> list[tuple[int, int]]:
        """Of each device with `summarize`: commands that have ended, and the time of the last in ps."""
    def summaries(self, names: dict[int, str]) -> list[list[GuestPhase]]:
        """Of each device with `summarize`: ends the summary, and returns its phases. `names` are those of marks."""
    def stop(self) -> None:
        """Ends all connections, removes the sockets and flushes the media."""
    def wait(self, seconds: float) -> None:
        """Serves for a wall-clock time, or until it is stopped."""

def check_timeout(timeout_us: int) -> None:
    """Raises an error for a timeout that is too long."""

def compile(design: Design, progress: BuildProgress | None = None, train: bool = False, checked: bool = False) -> Path:
    """Compiles a design unless it was compiled before; the path of the shared object."""

def crash_names() -> list[list[str]]:
    """Allowed values of crash campaigns: workloads, mechanisms, executors, fault injections."""

def crash_test(
    design: Design,
    workload: str,
    mechanism: str,
    by: str,
    cuts: str,
    transactions: int = 24,
    seed: int = 1,
    *,
    without: str | None = None,
    jobs: int = 1,
    model: str | None = None,
    progress: Progress | None = None,
    devices: int = 1,
    synchronise: str = "devices",
    tracked: bool = False,
    later: int | None = None,
    words: bool = False,
) -> CrashResult:
    """Runs a crash campaign; a report."""

def diff(
    design: Design,
    commands: int,
    seed: int = 1,
    *,
    first_episode: int = 0,
    replay: str | None = None,
    shrinks: int = 60,
    per_episode: int = 2000,
    models: tuple[str, str] = ...,
    progress: Progress | None = None,
) -> LockstepResult:
    """Runs two models in lockstep on random sequences; a report."""

def explain_sort(
    design: Design,
    data: ArrowStream | bytes | StrPath,
    by: str,
    name: str = "table",
    *,
    source: str = "parquet",
    devices: int = 1,
) -> SortPlan:
    """The plan of `sort_table`; nothing is compiled or run."""

def fuzz(
    design: Design,
    amount: int,
    seed: int = 1,
    *,
    calm: bool = False,
    first_episode: int = 0,
    replay: str | None = None,
    shrinks: int = 60,
    per_episode: int = 2000,
    torn_blocks: bool = False,
    model: str | None = None,
    progress: Progress | None = None,
) -> FuzzResult:
    """Runs a fuzzing campaign of `amount` commands, or bytes if `calm`; a report."""

def merge_tables(tables: Sequence[ArrowStream], by: str) -> ArrowTable:
    """Merges sorted tables; rows of earlier tables come first among equals."""

def model(name: str | None = None) -> str:
    """The model of this name; None is that of `NEARSIDE_MODEL`, or "rtl"."""

def pm_benchmark(
    design: Design,
    workload: str,
    mechanism: str,
    offloaded: bool,
    fence: str,
    transactions: int,
    work_ns: float,
    seed: int,
    build: BuildProgress | None = None,
    progress: Progress | None = None,
    devices: int = 1,
    synchronise: str = "devices",
    tracked: bool = False,
    group: int | None = None,
) -> BenchmarkResult:
    """Runs transactions of a benchmark program; times and overlap of CPU and units."""

def pm_copies(
    design: Design,
    way: str,
    bytes: int,
    count: int,
    seed: int = 1,
    model: str | None = None,
    build: BuildProgress | None = None,
    progress: Progress | None = None,
) -> CopyResult:
    """Measures copies of persistent data by the CPU or by the engine."""

def pm_timeline(
    design: Design,
    mechanism: str,
    offloaded: bool,
    objects: int,
    bytes: int,
    transactions: int,
    devices: int = 1,
    synchronise: str = "devices",
    tracked: bool = False,
    build: BuildProgress | None = None,
) -> TimelineResult:
    """Activities of CPU and units during transactions."""

def pm_transactions(
    design: Design,
    mechanism: str,
    offloaded: bool,
    fence: str,
    inserts: int,
    work_ns: float,
    threads: int,
    seed: int,
    model: str | None = None,
    build: BuildProgress | None = None,
    progress: Progress | None = None,
    devices: int = 1,
    synchronise: str = "devices",
    tracked: bool = False,
    group: int | None = None,
) -> TransactionsResult:
    """Measures insertions into a B-tree, a transaction each."""

def pmdk_cost(
    design: Design,
    trace: bytes,
    fence: str,
    model: str | None = None,
    build: BuildProgress | None = None,
    way: str = "waiting",
) -> PmdkCost:
    """The crash-consistency time of a trace of the shim, on the platform of a design."""

def pmdk_events(trace: bytes) -> list[str]:
    """The events of a trace of the shim, a line each."""

def pmdk_instructions(file: bytes) -> tuple[list[int], int, bytes]:
    """Flush instructions of a program file: counts by kind, the number left alone, and the table."""

def pmdk_shim() -> bytes:
    """The preloaded library, as the bytes of its file."""

def guest_cpu(host: str) -> tuple[int, int]:
    """The CPU of a guest from a host profile: ps for an instruction, and more for a read of the time stamp counter."""

def profile(name: str) -> MediaProfile:
    """A media profile by name or path."""

def root() -> Path:
    """The checkout, which compiling the RTL needs. An error where there is none."""

def sort_table(
    design: Design,
    data: ArrowStream | bytes | StrPath,
    by: str,
    name: str = "table",
    *,
    source: str = "parquet",
    target: str = "parquet",
    compression: str = "snappy",
    devices: int = 1,
    model: str | None = None,
    build: BuildProgress | None = None,
    progress: Progress | None = None,
    trace: bool = False,
    output: tuple[StrPath, str] | None = None,
) -> tuple[SortResult, ArrowTable | None]:
    """Sorts a table on devices: a report, and the table unless it goes to `output`."""

def table_drop(
    design: Design,
    media: Sequence[StrPath],
    table: str,
    *,
    model: str | None = None,
    build: BuildProgress | None = None,
) -> None:
    """Deletes a resident table, or what is left of it."""

def table_explain(
    design: Design,
    media: Sequence[StrPath],
    table: str,
    by: str,
    *,
    model: str | None = None,
    build: BuildProgress | None = None,
) -> SortPlan:
    """The plan of a sort of a resident table."""

def table_get(
    design: Design,
    media: Sequence[StrPath],
    table: str,
    by: str | None = None,
    *,
    target: str = "parquet",
    compression: str = "snappy",
    model: str | None = None,
    build: BuildProgress | None = None,
    progress: Progress | None = None,
    trace: bool = False,
    output: tuple[StrPath, str] | None = None,
) -> tuple[SortResult, ArrowTable | None]:
    """Reads a resident table, sorted if `by` is given: a report, and the table."""

def table_list(
    design: Design, media: Sequence[StrPath], *, model: str | None = None, build: BuildProgress | None = None
) -> list[ResidentTable]:
    """The resident tables on devices of media files."""

def table_put(
    design: Design,
    media: Sequence[StrPath],
    data: ArrowStream | bytes | StrPath,
    table: str,
    keys: str,
    name: str = "table",
    *,
    source: str = "parquet",
    model: str | None = None,
    build: BuildProgress | None = None,
    progress: Progress | None = None,
) -> PutReport:
    """Writes a table to devices of media files, a shard each; a report."""

def table_schema(
    design: Design,
    media: Sequence[StrPath],
    table: str,
    *,
    model: str | None = None,
    build: BuildProgress | None = None,
) -> ArrowTable:
    """A resident table without its rows."""
