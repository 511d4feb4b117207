# SPDX-License-Identifier: Apache-2.0
"""Types of the results of this package, with units. All are plain dictionaries, ready for JSON.

Times are simulated unless a field says "wall-clock".
"""

from __future__ import annotations

from typing import NotRequired, Protocol, TypedDict


class ArrowStream(Protocol):
    """A table of any library that knows the Arrow PyCapsule interface, such as pyarrow or polars."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The table as a capsule with a stream of batches."""


class MediaDirection(TypedDict):
    """The read or write side of a media profile."""

    base_ns: float
    """Latency of an access without its data, in ns."""
    beat_ns: float
    """Additional latency of each beat of 64 bytes, in ns."""
    cap_gb_s: float
    """Bandwidth cap of the whole device, in GB/s; 0 is no cap."""
    source: NotRequired[str]
    """The publication of the values."""


class MediaRegion(TypedDict):
    """A part of the media with separate timing."""

    first: int
    """First byte of the media."""
    bytes: int
    """Size, in bytes."""
    read: MediaDirection
    """Timing of reads."""
    write: MediaDirection
    """Timing of writes."""


class MediaProfile(TypedDict):
    """A media profile (`media/*.toml`)."""

    name: str
    """The name of the profile."""
    description: str
    """A description of the memory technology."""
    enable: bool
    """Whether delays are applied."""
    read: MediaDirection
    """Timing of reads."""
    write: MediaDirection
    """Timing of writes."""
    region: NotRequired[list[MediaRegion]]
    """Parts of the media with separate timing."""


class LateReads(TypedDict):
    """A media profile with reads that the DRAM is too slow for."""

    profile: str
    """The name of the profile."""
    target_ns: float
    """The latency that the profile asks for, in ns."""
    dram_ns: float
    """The least latency of the DRAM with a closed row, in ns."""
    open_row_ns: float
    """The least latency of the DRAM with an open row, in ns."""
    path_ns: float
    """Latency of the path to `nvm_delay` and back, which is part of the target, in ns."""
    all: bool
    """Whether reads from open rows are late, too."""
    message: str
    """A description in one line."""


class Latency(TypedDict):
    """Statistics of latencies."""

    count: int
    """The number of samples."""
    min_ns: float
    """The smallest, in ns."""
    mean_ns: float
    """The mean, in ns."""
    p50_ns: float
    """The median, in ns."""
    p99_ns: float
    """The 99th percentile, in ns."""
    p999_ns: float
    """The 99.9th percentile, in ns."""
    max_ns: float
    """The largest, in ns."""


class TransferReport(TypedDict):
    """A transfer through NVMe commands."""

    time: str
    """"simulated"."""
    bytes: int
    """Bytes moved."""
    commands: int
    """Commands completed."""
    commands_by_queue: list[int]
    """Commands of each I/O queue."""
    elapsed_ns: float
    """Simulated time of the transfer, in ns."""
    bandwidth_gb_s: float
    """Bandwidth, in GB/s."""
    iops: float
    """Commands a second."""
    latency: Latency | None
    """Latencies of all commands; None without any."""
    read_latency: Latency | None
    """Latencies of reads; None without any."""
    write_latency: Latency | None
    """Latencies of writes; None without any."""


class WorkloadReport(TransferReport):
    """The report of a job."""

    verified_bytes: int
    """Bytes that were compared with the expected data."""
    loads: NotRequired[Latency | None]
    """Latencies of loads of the PM window; with `loads_every`."""
    before: NotRequired[Latency | None]
    """Latencies before the change of timing; with `switch`."""
    after: NotRequired[Latency | None]
    """Latencies after the change of timing; with `switch`."""


class ReplayReport(TransferReport):
    """The report of recorded commands that were issued again."""

    late_ns: float
    """The longest time by which a command was issued later than recorded, in ns."""


class LinkTraffic(TypedDict):
    """Traffic in one direction of the link."""

    tlps: int
    """Number of TLPs."""
    payload: int
    """Bytes of payload."""
    wire: int
    """Bytes on the wire."""


class LinkReport(TypedDict):
    """Traffic of the link."""

    gb_s: float
    """Bandwidth of one direction, in GB/s."""
    down: LinkTraffic
    """From host to device."""
    up: LinkTraffic
    """From device to host."""


class StreamReport(TypedDict):
    """A stream of loads or stores of the PM window."""

    time: str
    """"simulated"."""
    bytes: int
    """Bytes moved."""
    elapsed_ns: float
    """Simulated time of the stream, in ns."""
    bandwidth_gb_s: float
    """Bandwidth, in GB/s."""
    latency: Latency | None
    """Latencies of loads; None for posted stores."""
    link: LinkReport
    """Traffic of the link."""


class WireMeasurement(TypedDict):
    """The bandwidth of a workload beside what the link allows."""

    kind: str
    """"read", "write" or "mix"."""
    bytes: int
    """Bytes of a command."""
    pattern: str
    """"random" or "sequential"."""
    queues: int
    """The number of queues."""
    depth: int
    """Commands in flight in each queue."""
    gb_s: float
    """The bandwidth, in GB/s."""
    kiops: float
    """Commands a second, in thousands."""
    bound_gb_s: float
    """The bandwidth that the link allows, in GB/s."""
    percent: float
    """The share of that bound, in percent."""


class LatencyTerm(TypedDict):
    """A part of the latency of a command."""

    term: str
    """The name; see `nearside.latency`."""
    mean_ns: float
    """The mean, in ns."""
    cycles: float
    """The mean, in clocks of the device."""
    added: bool
    """Whether the controller adds it; else a controller without delay would have it, too."""
    how: str
    """How it was found."""


class LatencyBreakdown(TypedDict):
    """The latency of single commands of 4 KiB by terms."""

    kind: str
    """"read" or "write"."""
    commands: int
    """The number of commands."""
    period_ns: float
    """The period of the device's clock, in ns."""
    terms: list[LatencyTerm]
    """The terms, in the order of time."""
    total_ns: float
    """The mean latency, in ns."""
    physical_ns: float
    """The part that a controller without delay would have, in ns."""
    added_ns: float
    """The part of the controller, in ns."""
    added_cycles: float
    """The part of the controller, in clocks."""
    added_cycles_max: float
    """The largest part of the controller among the commands, in clocks."""
    memory_included: bool
    """Whether that part includes the time in which the memory accepts the data."""


class InterferenceReport(TypedDict):
    """Traffic alone, and beside copies by all units of `nearpm`."""

    kind: str
    """The traffic; see `nearside.beside.TRAFFIC`."""
    credits: int
    """Lines of credit of the engine in each channel and direction; 0: those after reset."""
    alone_gb_s: float
    """The bandwidth alone, in GB/s."""
    beside_gb_s: float
    """The bandwidth beside the copies, in GB/s."""
    kept_percent: float
    """The share of the bandwidth that is kept, in percent."""
    alone_p99_ns: float | None
    """The 99th percentile of the latency alone, in ns; None for posted stores."""
    beside_p99_ns: float | None
    """The 99th percentile beside the copies, in ns; None for posted stores."""
    lost_p99_ns: float | None
    """Their difference, in ns; None for posted stores."""


class QosPoint(TypedDict):
    """Loads, NVMe commands and copies at the same time, by the credits of the engines."""

    credits: int | None
    """Lines of credit in each channel and direction; 0: no limit; None: the values after reset."""
    loads: int
    """The number of loads."""
    load_mean_ns: float
    """The mean latency of loads, in ns."""
    load_p99_ns: float
    """The 99th percentile of the latency of loads, in ns."""
    nvme_gb_s: float
    """The bandwidth of NVMe commands, in GB/s."""
    nvme_percent: float
    """The share of their bandwidth alone, in percent."""
    copied_gb_s: float
    """Bytes copied a second, in GB/s."""
    copied_percent: float
    """The share of what ideal masters without a limit copy, in percent."""
    copied_percent_of_same: float
    """The share of what ideal masters with the same credits copy, in percent."""


class QosCurve(TypedDict):
    """Quality of service by the credits of the engines."""

    engine: str
    """The model: "rtl" or "fast"."""
    time: str
    """"simulated"."""
    seed: int
    """The seed."""
    nvme_alone_gb_s: float
    """The bandwidth of NVMe commands alone, in GB/s."""
    ideal_copies_gb_s: float
    """Bytes a second that ideal masters without a limit copy, in GB/s."""
    load_alone_ns: float
    """The mean latency of loads alone, in ns."""
    rows: list[QosPoint]
    """The points of the curve."""
    plot: NotRequired[str]
    """The file of the picture; added by `nearside qos --plot`."""


class ChannelDirectionTiming(TypedDict):
    """The timing of reads or writes of a channel."""

    base_ns: float
    """Latency of an access without its data, in ns."""
    beat_ns: float
    """Additional latency of each beat of 64 bytes, in ns."""
    cap_gb_s: float | None
    """Bandwidth cap in GB/s; None is no cap."""


class TimingRegion(TypedDict):
    """A range of a channel with separate timing."""

    first_page: int
    """First page of 4 KiB."""
    last_page: int
    """Last page of 4 KiB."""
    read: ChannelDirectionTiming
    """Timing of reads."""
    write: ChannelDirectionTiming
    """Timing of writes."""


class ChannelTiming(TypedDict):
    """The timing of a memory channel."""

    memory: str
    """"storage" or "local"."""
    enabled: bool
    """Whether delays are applied."""
    commits: int
    """The number of commits of timing registers."""
    read: ChannelDirectionTiming
    """Timing of reads."""
    write: ChannelDirectionTiming
    """Timing of writes."""
    regions: list[TimingRegion]
    """Ranges with separate timing."""


class DirectionCounters(TypedDict):
    """Counters of reads or writes in an `nvm_delay`."""

    transactions: int
    """Number of transactions."""
    beats: int
    """Number of beats of 64 bytes."""
    late: int
    """Transactions that the DRAM answered after the target."""
    min_ns: float | None
    """The smallest latency, in ns; None without transactions."""
    mean_ns: float | None
    """The mean latency, in ns; None without transactions."""
    max_ns: float | None
    """The largest latency, in ns; None without transactions."""
    buckets: list[int]
    """Histogram of latencies; see `hw/ip/nvm_delay`."""


class ChannelCounters(TypedDict):
    """Counters of an `nvm_delay`."""

    read: DirectionCounters
    """Counters of reads."""
    write: DirectionCounters
    """Counters of writes."""


class DelayBenchResult(TypedDict):
    """Single accesses through `nvm_delay`, timed at its ports."""

    samples: int
    """The number of accesses."""
    beat_bytes: int
    """Bytes of a beat."""
    mean_ns: float
    """The mean latency, in ns."""
    min_ns: float
    """The smallest latency, in ns."""
    max_ns: float
    """The largest latency, in ns."""
    on_time: int
    """Accesses that ended at most a clock after their target."""
    on_time_mean_ns: float
    """The mean latency of those, in ns; 0 without any."""
    late: int
    """Accesses that the memory answered after the target, as counted by `nvm_delay`."""
    late_after_memory_clocks: int | None
    """The longest time from the memory's answer to the end of a late access, in clocks; None without any."""
    early_clocks: float
    """The most clocks by which a beat came before its target; 0 without any."""
    counted_mean_ns: float
    """The mean latency as counted by `nvm_delay`, in ns."""


class AccuracyRow(DelayBenchResult):
    """A measurement of the accuracy of `nvm_delay`."""

    name: str
    """The name of the measurement."""
    kind: str
    """"read" or "write"."""
    target_ns: float
    """The target latency of all beats, in ns."""
    beats: int
    """Beats of an access."""
    mean_error_percent: float
    """The error of the mean, in percent of the target."""
    max_error_clocks: float
    """The largest error of an access, in clocks."""
    paper: str | None
    """The error of the mean in the paper; None without one."""


class DramTiming(TypedDict):
    """Timing of a DDR4 channel."""

    data_rate_mts: int
    """Transfers per second, in 10^6."""
    cl: int
    """CAS latency, in clocks of the DRAM."""
    rcd: int
    """Time from the activation of a row to a column access (tRCD), in clocks of the DRAM."""
    rp: int
    """Time of a precharge (tRP), in clocks of the DRAM."""
    burst: int
    """Time of a burst on the data pins, in clocks of the DRAM."""
    frontend_ns: int
    """Latency from the acceptance of a request to the scheduler, in ns."""
    backend_ns: int
    """Latency from the last data on the pins to the answer, in ns."""
    peak_gb_s: float
    """Peak bandwidth, in GB/s."""


class Capabilities(TypedDict):
    """Capabilities of the controller (register CAP)."""

    contiguous_queues_required: bool
    """Whether queues have to be contiguous."""
    doorbell_stride: int
    """Bytes between doorbells."""
    max_queue_entries: int
    """The most entries of a queue."""
    persistent_memory_region: bool
    """Whether the controller has a persistent memory region."""
    timeout_ms: int
    """The longest time of a controller reset, in ms."""


class ControllerInfo(TypedDict):
    """Identification of the controller."""

    model: str
    """The model number."""
    serial: str
    """The serial number."""
    firmware: str
    """The firmware revision."""
    subnqn: str
    """The NVM subsystem's qualified name."""
    vendor_id: int
    """The PCI vendor ID."""
    controller_id: int
    """The controller ID."""
    nvme_version: str
    """The version of NVMe."""
    namespaces: int
    """The number of namespaces."""
    max_transfer_bytes: int
    """The most bytes of a command."""
    abort_limit: int
    """The most concurrent Abort commands."""
    async_event_limit: int
    """The most concurrent asynchronous event requests."""
    volatile_write_cache: bool
    """Whether there is a volatile write cache."""


class BlockInfo(TypedDict):
    """A block in the status block of the device."""

    name: str
    """The name of the block."""
    type: int
    """The number of its type."""
    version: str
    """Its version."""
    instance: int
    """Its number among blocks of the type."""
    bar: int
    """The BAR of its registers."""
    offset: int
    """Offset of its registers, in bytes."""
    size: int
    """Size of its registers, in bytes."""
    capabilities: list[int]
    """Capability words; their meaning depends on the type."""


class MemoryInfo(TypedDict):
    """A memory of the device."""

    name: str
    """"storage" or "local"."""
    base: int
    """Offset in the PM window, in bytes."""
    bytes: int
    """Size, in bytes."""
    channels: int
    """The number of channels."""
    first_channel: int
    """The number of its first channel."""
    granule: int
    """Bytes that stay in one channel."""


class DeviceInfo(TypedDict):
    """The status block of the device."""

    layout: int
    """The version of the status block."""
    clock_khz: int
    """The clock frequency, in kHz."""
    channels: int
    """The number of channels of the storage."""
    granule: int
    """Bytes that stay in one channel."""
    media_bytes: int
    """Size of the storage, in bytes."""
    memories: list[MemoryInfo]
    """The memories."""
    blocks: list[BlockInfo]
    """The blocks."""


class NamespaceInfo(TypedDict):
    """A namespace."""

    nsid: int
    """The namespace ID."""
    blocks: int
    """The number of logical blocks."""
    block_bytes: int
    """Bytes of a logical block."""
    bytes: int
    """Size, in bytes."""
    nguid: str
    """The globally unique identifier."""


class QueueInfo(TypedDict):
    """The I/O queues of the driver."""

    io_queues: int
    """The number of queues."""
    entries: int
    """Entries of each."""


class Info(TypedDict):
    """Identification of a device; see `Device.info`."""

    controller: ControllerInfo
    """The controller."""
    capabilities: Capabilities
    """Its capabilities."""
    queues: QueueInfo
    """The queues of the driver."""
    namespace: NamespaceInfo
    """The selected namespace."""
    namespaces: list[NamespaceInfo]
    """All active namespaces."""
    device: DeviceInfo
    """The status block."""


class EngineCommand(TypedDict):
    """An NVMe I/O command of an engine."""

    name: str
    """The name of the command."""
    opcode: int
    """The opcode."""
    changes: bool
    """Whether it changes the media."""


class EngineInfo(TypedDict):
    """An engine of a design."""

    name: str
    """The name in the design."""
    kind: str
    """The kind: a folder of `hw/engine`."""
    instance: int
    """Its number among engines of the kind."""
    offset: int
    """Offset of its registers in BAR4, in bytes."""
    bytes: int
    """Size of its registers, in bytes."""
    page: int | None
    """Offset of its command page in BAR4, in bytes; None without one."""
    local: bool
    """Whether it may access the local memory."""
    media: list[int]
    """First byte of the storage that it may access, and the end of the range."""
    namespaces: list[int]
    """The namespaces for which it has I/O commands."""
    arguments: list[str]
    """The names of its arguments, in order."""
    optional: list[str]
    """Arguments that may be left out; they are 0 then."""
    outputs: list[str]
    """The names of its outputs."""
    results: list[str]
    """The names of its error bits."""
    commands: list[EngineCommand]
    """Its NVMe I/O commands."""


class MasterLimits(TypedDict):
    """Flow-control limits of a master in each memory channel."""

    reads: int
    """Lines of reads in flight; 0 is no limit."""
    writes: int
    """Lines of writes in flight; 0 is no limit."""
    weight: int
    """The share of an arbitration round."""
    beside: int
    """The limit of both while the controller is active; 0 is none."""


class StageReport(TypedDict):
    """A stage of a sort."""

    stage: str
    """"put", "decode", "sort", "shuffle" or "get"."""
    ns: float
    """Simulated time, in ns."""
    bytes: int
    """Bytes moved."""
    commands: int
    """NVMe commands."""


class SortDeviceReport(TypedDict):
    """The part of a device in a sort."""

    rows: int
    """Rows of its shard."""
    nulls: int
    """Rows without a key."""
    partitions: int
    """Partitions, one after another."""
    failed: str | None
    """Why the device failed; None if it did not."""
    stages: list[StageReport]
    """Its stages."""


class SortHostReport(TypedDict):
    """The part of the host in a sort."""

    time: str
    """"wall-clock"."""
    prepare_ns: int
    """Time to make keys and rows, in ns."""
    merge_ns: int
    """Time to merge, in ns."""
    memory_bytes: int
    """The most memory in use, in bytes."""
    media_bytes: int
    """Memory of the simulated media, in bytes."""
    spilled_bytes: int
    """Bytes in temporary files."""


class PagesPlan(TypedDict):
    """A key column that is decoded on the device."""

    dictionary: int
    """Bytes of the dictionary."""
    encoded: int
    """Bytes of the encoded keys."""


class PartitionPlan(TypedDict):
    """A partition in the plan of a sort."""

    rows: int
    """Rows of the partition."""
    sorted: int
    """Rows with a key."""
    pages: PagesPlan | None
    """The encoded key column; None if keys are plain."""


class SortPlan(TypedDict):
    """The plan of a sort."""

    rows: int
    """Rows of the table."""
    row_bytes: int
    """Bytes of a row on the device."""
    key: str
    """A description of the sort key."""
    key_bytes: int
    """Bytes of the sort key."""
    partitions: int
    """Partitions of all devices."""
    stands: bool
    """Whether the table is resident."""
    devices: list[list[PartitionPlan]]
    """The partitions of each device."""


class Bound(TypedDict):
    """The least time of a work."""

    ns: float
    """The least simulated time, in ns."""
    limit: str
    """What limits it."""
    source: str
    """The model of that limit."""


class StageBound(Bound):
    """The least time of a stage."""

    stage: str
    """The stage."""
    reached_percent: NotRequired[float]
    """The share of the bound that was reached, in percent."""


class PlanDocument(TypedDict):
    """The plan of a sort with its bounds."""

    design: str
    """The name of the design."""
    plan: SortPlan
    """The plan."""
    bounds: list[StageBound]
    """The bound of each stage."""


class PutReport(TypedDict):
    """The report of a table that is written to devices, or of a sort for SQL."""

    time: str
    """"simulated"."""
    design: str
    """The name of the design."""
    engine: str
    """The model: "rtl" or "fast"."""
    build: str | None
    """The kind of bitstream; None for a table without rows."""
    rows: int
    """Rows of the table."""
    row_bytes: int
    """Bytes of a row on the device."""
    key: str
    """A description of the sort key."""
    pages: bool
    """Whether keys are decoded on the device."""
    ties: int
    """Rows that the host compared in full, as their keys begin alike."""
    partitions: int
    """Partitions of all devices."""
    elapsed_ns: float
    """Simulated time, in ns."""
    stages: list[StageReport]
    """The stages of all devices together."""
    devices: list[SortDeviceReport]
    """The devices."""
    host: SortHostReport
    """The host."""
    plan: SortPlan | None
    """The plan; None without a sort."""


class TraceEvent(TypedDict):
    """An event of a trace for Perfetto, in the Trace Event Format."""

    ph: str
    """The phase: "M" is metadata, "X" a stage, "C" the bandwidth of a channel."""
    pid: int
    """The number of the device, from 1 on."""
    tid: NotRequired[int]
    """The number of the track; not for a bandwidth."""
    name: str
    """The name of the metadata, of the stage or of the channel."""
    ts: NotRequired[float]
    """The simulated time of its begin, in us; not for metadata."""
    dur: NotRequired[float]
    """The simulated time of a stage, in us."""
    args: dict[str, str | int | float | None]
    """Values by name. Bandwidths are in GB/s, those of a channel under "read" and "written"."""


class TraceData(TypedDict):
    """Further data of a trace."""

    time: str
    """"simulated"."""


class SortTrace(TypedDict):
    """The stages of a sort and the traffic of the memory channels, in the Trace Event Format."""

    displayTimeUnit: str
    """The unit that a viewer displays."""
    traceEvents: list[TraceEvent]
    """The events."""
    otherData: TraceData
    """Further data."""


class SortResult(PutReport):
    """The report of a sort, or of a table that is read back, as the native module returns it."""

    trace: NotRequired[SortTrace]
    """The trace; if it was requested."""


class SortReport(PutReport):
    """The report of a sort, or of a table that is read back."""

    bounds: list[StageBound]
    """The bound of each stage; empty without a sort."""
    output: NotRequired[str]
    """The output file; on the command line."""


class ResidentTable(TypedDict):
    """A table on devices."""

    name: str
    """The name of the table."""
    id: str
    """Identifies it among tables of the same name."""
    rows: int
    """Rows of the table."""
    row_bytes: int
    """Bytes of a row on the device."""
    bytes: int
    """Bytes on all devices."""
    keys: list[str]
    """The columns that it can be sorted by."""
    parts: int
    """The shards that were found."""
    of_parts: int
    """The shards that it has."""
    devices: list[int]
    """The numbers of the devices, in the order of the media files."""


class DeclinedSort(TypedDict):
    """A sort that the devices declined."""

    declined: str
    """The reason."""


class PoolCheck(TypedDict):
    """The result of `Pool.check`."""

    bytes: int
    """Bytes of the pool."""
    generation: int
    """1, and one more after each growth."""
    objects: list[list[int]]
    """Offset and bytes of each object."""


class ThreadCounts(TypedDict):
    """Counts of a pool's thread since it was opened."""

    transactions: int
    """Transactions committed."""
    aborts: int
    """Transactions aborted."""
    allocations: int
    """Objects allocated."""
    fences: int
    """Fences."""
    orders: int
    """Fences that only order a command after stores."""
    lines: int
    """Lines flushed."""
    copied_bytes: int
    """Bytes that the CPU copied with non-temporal stores."""
    records: int
    """Log records."""
    payload_bytes: int
    """Bytes in log records."""
    commands: int
    """Commands to the engine."""
    time_ps: int
    """Simulated time within transactions, in ps."""
    consistency_ps: int
    """The part of it that exists for crash consistency only, in ps."""


class CopyResult(TypedDict):
    """Times of copies of persistent data."""

    mean_ns: float
    """The mean, in simulated ns."""
    least_ns: float
    """The shortest, in simulated ns."""
    most_ns: float
    """The longest, in simulated ns."""


class TransactionMeans(TypedDict):
    """Means over transactions."""

    ns: float
    """Time of a transaction with the program's computation, in simulated ns."""
    consistency_ns: float
    """The part of it in code for crash consistency, in ns."""
    creation_ns: float
    """The part of that until the copies of old content have been requested, in ns."""
    fences_ns: float
    """The part of that in fences, in ns."""
    commands: float
    """Commands to the engine."""
    acknowledged_ns: float
    """From the begin of a transaction until it is known to be durable, in ns."""
    acknowledged_p99_ns: float
    """The 99th percentile of that, in ns."""


class TransactionsResult(TransactionMeans):
    """Insertions into a B-tree: means per transaction."""

    per_us: float
    """Transactions of all threads per simulated us."""
    copies_ns: float
    """Time of copies of old and new bytes by the CPU, in ns."""
    flushes_ns: float
    """Time of write-backs of lines, in ns."""
    commands_ns: float
    """Time of commands to the engine, in ns."""
    fences: float
    """Fences."""
    lines: float
    """Lines written back."""
    records: float
    """Log records."""
    payload: float
    """Bytes in log records."""
    copied: float
    """Bytes that the CPU copied."""


class BenchmarkResult(TransactionMeans):
    """Transactions of a benchmark program: means per transaction."""

    units_ns: float
    """Time in which at least one unit works, in ns."""
    both_ns: float
    """The part of it outside of fences, in ns: CPU and units work in parallel."""
    records: float
    """Log records."""
    aborted: float
    """The fraction of transactions that were aborted."""


class PmdkCost(TypedDict):
    """Crash consistency of a program with libpmemobj: sums over its transactions."""

    transactions: int
    """Outermost transactions."""
    tracked: int
    """Those in tracked pools."""
    lines: int
    """Lines written back."""
    fences: int
    """Fences."""
    streamed: int
    """Bytes copied past the cache."""
    commands: int
    """Commands to the engine."""
    ns: float
    """Time of all of these, in simulated ns."""
    lines_ns: float
    """The part of it in write-backs, in ns."""
    fences_ns: float
    """The part of it in fences, in ns."""
    streams_ns: float
    """The part of it in copies, in ns."""
    commands_ns: float
    """The part of it in commands, in ns."""
    whole_ns: float
    """Time from begin to end of all transactions, in simulated ns: with the stores to flushed lines, without the
    program's computation."""
    most_lines: int
    """The most lines that a transaction has stored to."""


class PmdkGain(TypedDict):
    """The crash consistency of a program with libpmemobj by the CPU, and offloaded."""

    program: list[str]
    """The program and its arguments."""
    profile: str
    """The host profile."""
    fence: str
    """What fences wait for: "read_back", "posted" or "completion"."""
    time: str
    """"simulated"."""
    alone: PmdkCost
    """The cost by the CPU."""
    offloaded: PmdkCost
    """The cost with the engine."""
    ratio: float | None
    """The time of a transaction by the CPU over that with the engine; None if the latter is 0."""
    alone_ordered: PmdkCost
    """By the CPU, with fences that only order, and one wait at the end of a transaction."""
    offloaded_ordered: PmdkCost
    """With the engine and such fences."""
    tracked: PmdkCost | None
    """In tracked pools, where the program allows it; None with tracked = "never"."""


class PmdkCounts(TypedDict):
    """Counts of the preloaded library."""

    moments: int
    """Moments at which the power can be cut."""
    first_moment: int
    """The moment of the first transaction or flush."""
    transactions: int
    """Transactions."""
    commits: int
    """Transactions committed."""
    aborts: int
    """Transactions aborted."""
    records: int
    """Log records."""
    payload_bytes: int
    """Bytes in log records."""
    ranges_repeated: int
    """Ranges that were in the log of their transaction before."""
    ranges_left_to_libpmemobj: int
    """Ranges whose log libpmemobj keeps."""
    flushes: int
    """Flushes."""
    lines: int
    """Lines flushed."""
    fences: int
    """Fences."""
    streamed_bytes: int
    """Bytes copied past the cache."""


class PmdkReport(TypedDict):
    """A program with libpmemobj that ran on a device."""

    program: list[str]
    """The program and its arguments."""
    status: int
    """The exit status, as in a shell."""
    without: str | None
    """The fault injection; None without one."""
    tracked: str
    """"auto" or "never": whether the device may track pools."""
    done: PmdkCounts | None
    """Counts of the preloaded library; None if no pool was on the device."""


class CampaignFailure(TypedDict):
    """A failure of the fuzzer, reduced to fewer steps."""

    what: str
    """A description in one line."""
    steps: int
    """Steps that are needed."""
    of_steps: int
    """Steps of the episode."""
    history: list[str]
    """The last events."""
    replay: str
    """The argument of `--replay`."""


class CrashViolation(TypedDict):
    """The first violation of a crash campaign."""

    cut: str
    """The cut that shows it."""
    what: str
    """A description in one line."""
    timeline: list[str]
    """The events before it."""
    replay: NotRequired[str]
    """The command that reproduces it; added by `crashtest.run_campaign`."""


class ProgramViolation(CrashViolation):
    """The first violation of a crash campaign of a program with libpmemobj."""

    output: list[str]
    """The last lines that the program or its check has printed."""


class ProgramCrashReport(TypedDict):
    """The report of a crash campaign of a program with libpmemobj."""

    program: list[str]
    """The program and its arguments."""
    check: list[str]
    """The check and its arguments."""
    by: str
    """The keeper of the logs: "cpu" or "device"."""
    seed: int
    """The seed."""
    without: str | None
    """The fault injection; None without one."""
    torn: bool
    """Whether a line may leave the cache word by word."""
    tracked: str
    """"auto" or "never": whether the device may track pools."""
    limit_s: float | None
    """The wall-clock time after which a program or check is killed, in s."""
    moments: int
    """Moments at which the power can be cut."""
    left_out: int
    """Moments before the first transaction or flush."""
    coverage: list[dict[str, str | int]]
    """For each class of moments: moments, places, and those with a power cut."""
    instructions: list[dict[str, str | int]]
    """For each file with flush instructions: counts by kind, or the error."""
    cuts: int
    """Cuts that were made."""
    ended: int
    """Runs that ended before their moment."""
    violated: int
    """Cuts with a violation."""
    not_ended: int
    """Cuts after which the program or its check was killed at the limit."""
    violation: ProgramViolation | None
    """The first violation."""


class BrokenInvariant(TypedDict):
    """An invariant that the log of a run breaks."""

    what: str
    """The invariant and the two events, in one line."""
    timeline: list[str]
    """The events before it."""


class CrashResult(TypedDict):
    """The result of a crash campaign, as the native module returns it."""

    transactions: int
    """Transactions of the run."""
    events: int
    """Events that were checked against the invariants; 0 if devices don't report theirs."""
    cuts: int
    """Cuts that were made."""
    violated: int
    """Cuts with a violation."""
    more: int
    """Cuts after which a transaction was complete that had not returned."""
    recoveries_cut: int
    """Cuts during recovery."""
    evicted: int
    """Lines that had left the cache."""
    spanning: int
    """Transactions over several devices."""
    broken: int
    """Cuts of runs whose log breaks an invariant."""
    simulated_ns: int
    """Simulated time of the run, in ns."""
    stopped: str | None
    """Why the campaign was stopped; None if it was not."""
    invariant: BrokenInvariant | None
    """The first broken invariant."""
    violation: CrashViolation | None
    """The first violation."""


class CrashReport(CrashResult):
    """The report of a crash campaign."""

    workload: str
    """The workload."""
    mechanism: str
    """The mechanism."""
    by: str
    """The executor: "cpu" or "device"."""
    engine: str
    """The model: "rtl" or "fast"."""
    seed: int
    """The seed."""
    without: str | None
    """The fault injection; None without one."""
    devices: int
    """The number of devices."""
    synchronise: str
    """Who synchronises them: "devices" or "host"."""
    tracked: bool
    """Whether the pool is tracked."""
    later: int | None
    """How many transactions become durable together; None if each is durable on return."""
    words: bool
    """Whether the engine reports in host memory what is durable."""
    time: str
    """"simulated"."""


class TimelineSpan(TypedDict):
    """An activity in a timeline."""

    who: str
    """"CPU", or a unit of a device."""
    what: str
    """The activity."""
    begin_ns: float
    """Its begin, in simulated ns."""
    end_ns: float
    """Its end, in simulated ns."""


class TimelineMark(TypedDict):
    """An event in a timeline."""

    who: str
    """"CPU", or a device."""
    what: str
    """The event: the begin or end of a transaction, a notification of a peer, the deletion of a log."""
    at_ns: float
    """Its time, in simulated ns."""


class TimelineResult(TypedDict):
    """The timeline of transactions."""

    took_ns: float
    """Simulated time of all transactions, in ns."""
    fences_ns: float
    """The part of it in fences, in ns."""
    spans: list[TimelineSpan]
    """The activities."""
    marks: list[TimelineMark]
    """The events."""


class TimelineVariant(TypedDict):
    """An executor of transactions."""

    name: str
    """A description of the executor."""
    offloaded: bool
    """Whether the mechanism is offloaded."""
    tracked: bool
    """Whether the pool is tracked: the engine makes records without commands."""
    devices: int
    """The number of devices."""
    synchronise: str
    """Who synchronises them: "devices" or "host"."""


class TimelineRow(TimelineResult, TimelineVariant):
    """The timeline of an executor."""


class DesignReference(TypedDict):
    """A design in a document."""

    name: str
    """The name of the design."""
    hash: str
    """The hash of its values."""


class TimelineDocument(TypedDict):
    """The timelines of the same transactions by several executors."""

    design: DesignReference
    """The design."""
    engine: str
    """"fast"."""
    time: str
    """"simulated"."""
    mechanism: str
    """The mechanism."""
    objects: int
    """Objects of each transaction."""
    bytes: int
    """Bytes of each object."""
    transactions: int
    """The number of transactions."""
    rows: list[TimelineRow]
    """A row for each executor."""
    plot: NotRequired[str]
    """The file of the picture."""


class ServerCounters(TypedDict):
    """Counters of a served device."""

    connections: int
    """Clients that were accepted."""
    refused_clients: int
    """Clients that were refused, since another one was connected."""
    messages: int
    """Messages of clients."""
    refused_messages: int
    """Messages that were answered with an error, or ended the connection."""
    refused_maps: int
    """Messages DMA_MAP that were refused."""
    refused_accesses: int
    """DMA outside of the client's maps, or without bus mastering."""
    register_accesses: int
    """Register accesses."""
    doorbells: int
    """Doorbell writes through the shared page."""
    interrupts: int
    """Interrupts."""
    resets: int
    """Resets by clients."""
    faults: int
    """Access faults in mapped memory."""
    bytes_read: int
    """Bytes that the device read from clients' memory."""
    bytes_written: int
    """Bytes that the device wrote to clients' memory."""


class GuestClock(TypedDict):
    """The clock of a guest in simulated time, at its last access to a device."""

    ps: int
    """The time since the guest was switched on, in ps."""
    instructions: int
    """Instructions of all CPUs."""
    skipped_ps: int
    """Time in which a CPU executed nothing: halted, or waiting for a register, in ps; the mean of the CPUs."""
    stops: int
    """How often the CPUs stopped for devices, for a timer, or for one another."""
    timers: int
    """Stops for a timer."""
    halts: int
    """How often time passed while all CPUs were halted."""
    accesses: int
    """Accesses to devices."""
    drains: int
    """How often a CPU waited for the emulator's main loop."""
    rdtsc: int
    """Reads of the time stamp counter."""


class GuestCommands(TypedDict):
    """Durations of a kind of command of a guest: from the store to the doorbell to the interrupt."""

    command: str
    """The kind of command."""
    count: int
    """The number of commands that were completed."""
    mean_ns: float
    """The mean, in ns."""
    device_ns: float
    """The device's part of the mean: from the doorbell's arrival until the completion is sent, in ns."""
    link_ns: float
    """The rest of the mean, on the way to the device and back, in ns."""
    p50_ns: float
    """The median, in ns, to three digits."""
    p99_ns: float
    """The 99th percentile, in ns, to three digits."""
    max_ns: float
    """The largest, in ns, to three digits."""


class GuestPhase(TypedDict):
    """A part of a guest's run on a device, from a mark to the next one."""

    mark: int
    """The number of the mark that begins it; 0 at the begin of the run."""
    name: str
    """Its name: "boot", "job", "end", or what `mark` in the guest has named it."""
    span_ns: float
    """Its duration, in ns, from the first command to the last or to the next mark."""
    in_flight_ns: float
    """The time with a command in flight, in ns."""
    pauses: int
    """How often no command was in flight between two commands."""
    pause_p50_ns: float | None
    """The median of such a time, in ns, to three digits: the guest's own code, if it does not wait."""
    commands: list[GuestCommands]
    """Durations by kind of command."""


class PacingErrors(TypedDict):
    """How much later than modelled a client saw something, in the device's time: wall-clock time divided by K."""

    count: int
    """How often there was something to see."""
    late: int
    """How often it was later than the tolerance."""
    mean_ns: float
    """The mean, in ns."""
    p50_ns: float
    """The median, in ns, within 1 %, as the other percentiles."""
    p90_ns: float
    """The 90th percentile, in ns."""
    p99_ns: float
    """The 99th percentile, in ns."""
    p999_ns: float
    """The 99.9th percentile, in ns."""
    max_ns: float
    """The largest, in ns."""


class Pacing(TypedDict):
    """How precisely a device followed the wall clock."""

    dilation: float
    """K: how many times slower than modelled the device was."""
    tolerance_ns: float
    """What is later than this is late, in ns of the device's time."""
    set_back_ns: float
    """By how much the clock of the devices was set back, as the simulator was too slow for them, in ns."""
    completions: PacingErrors
    """Completions: writes of at most 64 bytes into the client's memory."""
    interrupts: PacingErrors
    """Interrupts."""
    reads: PacingErrors
    """Answers to reads of registers and of the PM window."""


class GuestDevice(TypedDict):
    """A device of a guest."""

    name: str
    """Its name in the guest: /dev/NAME is its controller, /dev/NAMEn1 its first namespace."""
    design: str
    """The name of its design."""
    profile: str
    """The name of its media profile."""
    phases: list[GuestPhase]
    """Durations of commands, by phase."""
    counters: ServerCounters
    """Its counters."""
    pacing: Pacing | None
    """How precisely it was paced; None if it was not."""


class GuestCpu(TypedDict):
    """The CPU of a guest in simulated time."""

    host: str
    """The host profile."""
    instruction_ns: float
    """The time of an instruction, in ns."""
    counter_ns: float
    """The additional time of a read of the time stamp counter, in ns."""


class GuestReport(TypedDict):
    """A command that has run in a guest."""

    command: list[str]
    """The command."""
    status: int
    """Its exit status; 130 if it was interrupted."""
    partial: bool
    """Whether it was interrupted: the figures are of what had run by then."""
    time: str
    """"simulated" or "wall"."""
    cpus: int
    """The number of CPUs."""
    cpu: GuestCpu | None
    """The kind of CPU; None in wall-clock time."""
    output: str
    """What it has written to its terminal."""
    files: list[str]
    """The files that it has made or changed."""
    out_of_memory: bool
    """Whether the kernel has ended a process for lack of memory."""
    clock: GuestClock | None
    """The guest's clock; None in wall-clock time, or if the guest was ended."""
    devices: list[GuestDevice]
    """Its devices, in the order of the command line."""
    wall_s: float
    """How long it took, in seconds of wall-clock time."""


class ServedDevice(TypedDict):
    """A device that was served."""

    design: str
    """The name of the design."""
    socket: str
    """The path of the socket."""
    build: str
    """The kind of bitstream."""
    late_reads: LateReads | None
    """Describes late reads; None if there are none."""
    counters: ServerCounters
    """Its counters."""
    pacing: Pacing | None
    """How precisely it was paced; None if it was not."""


class KvRequests(TypedDict):
    """Requests of a kind."""

    requests: int
    """Their number."""
    simulated_mean_ns: float
    """The mean simulated time, in ns."""
    simulated_max_ns: float
    """The longest simulated time, in ns."""


class KvConnections(TypedDict):
    """Connections that did not end in the normal way."""

    gave_way: int
    """Closed to make room for another client."""
    hung_up: int
    """Closed since the client spoke another protocol."""
    late: int
    """Closed since a request was incomplete at its deadline."""
    turned_away: int
    """Refused for lack of room."""


class KvReport(TypedDict):
    """The report of a key-value server."""

    mechanism: str
    """The mechanism."""
    by: str
    """The executor: "cpu" or "device"."""
    reads: KvRequests
    """Reads."""
    writes: KvRequests
    """Writes."""
    refused: int
    """Requests that were refused."""
    power_losses: int
    """Power cuts."""
    simulated_us: float
    """Simulated time in all, in us."""
    connections: KvConnections
    """Connections that did not end in the normal way."""


class CampaignResult(TypedDict):
    """What the results of fuzzing and lockstep campaigns have in common."""

    seed: int
    """The seed."""
    episodes: int
    """Episodes, each from reset to reset."""
    commands: int
    """Commands in all."""
    simulated_ns: float
    """Simulated time, in ns."""
    outcomes: dict[str, int]
    """Completions by queue, opcode and status."""
    kinds: dict[str, int]
    """What was generated, by kind."""
    mismatches: int
    """Failures found: 0 or 1, as the first one ends the campaign."""
    failure: CampaignFailure | None
    """The failure; None without one."""


class FuzzResult(CampaignResult):
    """The result of a fuzzing campaign or soak, as the native module returns it."""

    completed: int
    """Commands with a completion."""
    dropped: int
    """Commands that were in flight at a reset."""
    moved_bytes: int
    """Bytes of the media that completed commands have read, written, compared or cleared."""
    checked_bytes: int
    """Bytes that were compared on their way to the host."""
    compared_blocks: int
    """Blocks of the media that were compared at the ends of episodes."""
    interrupts: int
    """Interrupts."""
    disables: int
    """Controller resets by CC.EN."""
    shutdowns: int
    """Shutdowns."""
    function_resets: int
    """Function level resets."""
    subsystem_resets: int
    """NVM subsystem resets."""
    power_cuts: int
    """Power cuts."""
    fatal: int
    """Fatal statuses that the host provoked."""


class FuzzReport(FuzzResult):
    """The report of a fuzzing campaign."""

    engine: str
    """The model: "rtl" or "fast"."""
    time: str
    """"simulated"."""


class SoakReport(FuzzReport):
    """The report of a soak."""

    design: str
    """The hash of the design."""
    hardware: str
    """The hash of the hardware."""


class LockstepLatency(TypedDict):
    """Latencies of one kind of command on two models."""

    count: int
    """The number of commands."""
    ns: list[float]
    """The sum of the latencies on each model, in simulated ns."""


class LockstepResult(CampaignResult):
    """The result of two models in lockstep, as the native module returns it."""

    steps: int
    """Steps of all episodes."""
    compared_bytes: int
    """Bytes of the media that were compared."""
    latencies: dict[str, LockstepLatency]
    """Latencies by kind of command."""


class LockstepReport(LockstepResult):
    """The report of two models in lockstep."""

    engine: str
    """"fast and rtl"."""
    time: str
    """"simulated"."""


class DelaySizes(TypedDict):
    """Sizes of an `nvm_delay` that override those of the media profile."""

    read_slots: NotRequired[int]
    """Reads in flight."""
    write_slots: NotRequired[int]
    """Writes in flight."""
    buffer_beats: NotRequired[int]
    """Beats of 64 bytes in the read buffer."""


class MediaValues(TypedDict):
    """The storage of a design."""

    bytes: int
    """Size, in bytes."""
    file: NotRequired[str]
    """The file of the data; without it the media is in memory."""
    profile: str
    """The media profile."""


class NvmeValues(TypedDict):
    """The NVMe controller of a design. Keys that are missing follow from the media profile."""

    io_queues: int
    """I/O queue pairs."""
    queue_entries: int
    """Entries of the longest queue."""
    slots: int
    """Commands in flight in the controller."""
    doorbell_buffer: bool
    """The controller offers Doorbell Buffer Config (shadow doorbells)."""
    media_read_beats: NotRequired[int]
    """Beats of 64 bytes that are read ahead in each channel."""
    media_reads: NotRequired[int]
    """Reads of up to 4 KiB in flight in each channel."""
    media_write_bytes: NotRequired[int]
    """Bytes of the longest write burst to the media."""
    media_writes: NotRequired[int]
    """Write bursts in flight in each channel."""
    namespaces: NotRequired[list[int]]
    """Bytes of each namespace; 0 is an inactive one. Without this key namespace 1 is the whole media."""
    serial: NotRequired[str]
    """The serial number; without this key it is derived."""


class DramValues(TypedDict):
    """A DDR4 channel of a design."""

    data_rate_mts: int
    """Transfers per second, in 10^6."""
    density_gbit: int
    """Density of a DRAM device, in Gbit; a channel has eight of them."""
    refresh_mode: int
    """Refreshes per 7.8 us; 0 is no refresh."""
    read_queue: int
    """Reads that the DRAM controller holds."""
    write_queue: int
    """Writes that the DRAM controller holds."""
    drain_high: int
    """Buffered writes that start a drain."""
    drain_low: int
    """Buffered writes that end a drain."""
    age_limit_ns: int
    """The wait after which a request precedes row hits, in ns."""
    frontend_ns: int
    """Latency from the acceptance of a request to the scheduler, in ns."""
    backend_ns: int
    """Latency from the last data on the pins to the answer, in ns."""


class MemoryValues(TypedDict):
    """A memory of a design in addition to the storage."""

    name: str
    """"local"."""
    bytes: int
    """Size, in bytes."""
    channels: int
    """The number of channels."""
    granule: int
    """Bytes that stay in one channel."""
    profile: str
    """The media profile of its channels."""
    delay: NotRequired[DelaySizes]
    """Sizes of each channel's `nvm_delay`."""
    dram: NotRequired[DramValues]
    """The DDR4 channel of each of its channels; without this key it is that of the storage."""


class EngineValues(TypedDict):
    """An engine of a design. The reference of the design file describes the defaults."""

    name: str
    """The name for programs."""
    engine: str
    """The kind: a folder of `hw/engine`, or a path."""
    namespaces: NotRequired[list[int]]
    """The namespaces that it may access; without this key the whole media."""
    memories: NotRequired[list[str]]
    """The memories that it may access in addition to the storage; without this key all."""
    opcodes: NotRequired[list[int]]
    """Opcodes of its NVMe I/O commands."""
    parameters: NotRequired[dict[str, int]]
    """Values of its parameters; others have their defaults."""


class LinkValues(TypedDict):
    """The PCIe link of a design."""

    generation: int
    """The PCIe generation."""
    lanes: int
    """The number of lanes."""
    max_payload_bytes: int
    """The most payload of a TLP (MPS), in bytes."""
    max_read_request_bytes: int
    """The most bytes of a read request (MRRS)."""
    read_completion_boundary_bytes: int
    """The read completion boundary of the host (RCB), in bytes."""
    max_completion_bytes: int
    """The most bytes of a completion by the host."""
    tags: int
    """Outstanding read requests of the device."""
    host_posted_headers: int
    """Posted header credits of the host."""
    host_posted_bytes: int
    """Posted data credits of the host, in bytes."""
    host_nonposted_headers: int
    """Non-posted header credits of the host."""
    device_posted_headers: int
    """Posted header credits of the device."""
    device_posted_bytes: int
    """Posted data credits of the device, in bytes."""
    device_nonposted_headers: int
    """Non-posted header credits of the device."""
    device_completion_bytes: int
    """The device's buffer for data that it has requested, in bytes; 0 is no limit."""
    device_tx_buffer_bytes: int
    """Bytes that wait for the wire before writes of the device are refused."""
    device_tx_requests: int
    """Read requests that wait for the wire before reads of the device are refused."""
    device_phy_ns: int
    """Latency of the device's PHY, MAC and bridge, each way, in ns."""
    propagation_ns: int
    """Time of flight, in ns."""
    root_phy_ns: int
    """Latency of the root port's PHY and MAC, each way, in ns."""
    ack_every_tlps: int
    """TLPs received per ACK DLLP."""
    update_fc_every_tlps: int
    """TLPs received per UpdateFC DLLP."""


class HostValues(TypedDict):
    """Memory and root complex of the host of a design."""

    memory_base: int
    """The first address of host memory."""
    memory_mib: int
    """Host memory, in MiB."""
    read_ns: int
    """Latency of a read request at the root complex, in ns."""
    read_jitter_ns: int
    """The most additional latency of a read request, which is random, in ns."""
    write_ns: int
    """Time for which a posted write keeps its credits, in ns."""
    mmio_ns: int
    """Latency between CPU and root complex for an MMIO access, one way, in ns."""
    mmio_queue: int
    """Posted MMIO writes that wait for a link before the CPU stalls."""
    cpu_loads: int
    """Loads of devices that the CPU has in flight."""
    peer_ns: int
    """Additional latency through the root complex between devices, in ns."""
    completion_timeout_us: int
    """The time after which a read of a device fails, in us."""
    seed: int
    """The seed of the host's random choices."""


class CpuValues(TypedDict):
    """The CPUs of the host of a design. Keys that are missing follow from the host profile."""

    profile: str
    """The host profile, by name or path."""
    submit_ns: NotRequired[int]
    """CPU time to build and submit a command, in ns."""
    complete_ns: NotRequired[int]
    """CPU time to process a completion, in ns."""
    mmio_write_ns: NotRequired[int]
    """CPU time of a doorbell of a driver, in ns."""
    mmio_store_ns: NotRequired[int]
    """Interval between two uncached stores that leave a CPU's store buffer, in ns."""
    interrupt_ns: NotRequired[int]
    """CPU time from an interrupt to the check of the queue, in ns; 0 is polling."""


class DesignValues(TypedDict):
    """All values of a design. The reference of the design file has the ranges and the defaults."""

    name: str
    """The name of the design."""
    clock_mhz: int
    """The clock frequency of the device, in MHz."""
    channels: int
    """The number of channels of the storage."""
    granule: int
    """Bytes that stay in one channel."""
    media: MediaValues
    """The storage."""
    delay: NotRequired[DelaySizes]
    """Sizes of each channel's `nvm_delay`."""
    nvme: NvmeValues
    """The NVMe controller."""
    memory: NotRequired[list[MemoryValues]]
    """Memories in addition to the storage."""
    engine: NotRequired[list[EngineValues]]
    """The engines."""
    pcie: LinkValues
    """The PCIe link."""
    dram: DramValues
    """The DDR4 channel of each channel of the storage."""
    host: HostValues
    """Memory and root complex of the host."""
    cpu: CpuValues
    """The CPUs of the host."""


Counter = list[float | str]
"""The value and the unit of a counter."""
EventList = list[list[int | str]]
"""Events of one command: time in ps, name, and an address, offset or number."""
