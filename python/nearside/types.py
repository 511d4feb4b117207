# SPDX-License-Identifier: Apache-2.0
"""Types of the results of this package, with units. All are plain dictionaries, ready for JSON.

Times are simulated unless a field says "wall-clock".
"""

from __future__ import annotations

from typing import Any, NotRequired, Protocol, TypedDict


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
    cap_gb_s: NotRequired[float | None]
    """Bandwidth cap in GB/s; None is no cap."""
    source: NotRequired[str]
    """The publication of the values."""


class MediaProfile(TypedDict):
    """A media profile (`media/*.toml`)."""

    name: str
    """The name of the profile."""
    description: str
    """A description of the memory technology."""
    enable: NotRequired[bool]
    """Whether delays are applied."""
    read: MediaDirection
    """Timing of reads."""
    write: MediaDirection
    """Timing of writes."""


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


class StageBound(TypedDict):
    """The least time of a stage."""

    stage: str
    """The stage."""
    ns: float
    """The least simulated time, in ns."""
    limit: str
    """What limits it."""
    source: str
    """The model of that limit."""
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
    build: str
    """The kind of bitstream."""
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
    replay: NotRequired[str]
    """The argument of `--replay`; not in a soak."""


class CrashViolation(TypedDict):
    """The first violation of a crash campaign."""

    cut: str
    """The cut that shows it."""
    what: str
    """A description in one line."""
    timeline: list[str]
    """The events before it."""
    replay: str
    """The command that reproduces it."""


class BrokenInvariant(TypedDict):
    """An invariant that the log of a run breaks."""

    what: str
    """The invariant and the two events, in one line."""
    timeline: list[str]
    """The events before it."""


class CrashReport(TypedDict):
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
    time: str
    """"simulated"."""
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


class TimelineRow(TypedDict):
    """The timeline of an executor."""

    name: str
    """A description of the executor."""
    offloaded: bool
    """Whether the mechanism is offloaded."""
    devices: int
    """The number of devices."""
    synchronise: str
    """Who synchronises them: "devices" or "host"."""
    took_ns: float
    """Simulated time of all transactions, in ns."""
    fences_ns: float
    """The part of it in fences, in ns."""
    spans: list[TimelineSpan]
    """The activities."""
    marks: list[TimelineMark]
    """The events."""


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


class FuzzReport(TypedDict):
    """The report of a fuzzing, soak or lockstep campaign.

    Further counts, such as `interrupts` or `power_cuts`, depend on what is fuzzed.
    """

    engine: str
    """The model: "rtl", "fast", or "fast and rtl" in lockstep."""
    time: str
    """ "simulated"."""
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
    """Failures found: 0 or 1."""
    failure: CampaignFailure | None
    """The failure; None without one."""
    completed: NotRequired[int]
    """Commands with a completion."""
    moved_bytes: NotRequired[int]
    """Bytes moved between host and media."""
    checked_bytes: NotRequired[int]
    """Bytes that were compared on their way to the host."""
    design: NotRequired[str]
    """The hash of the design; in a soak."""
    hardware: NotRequired[str]
    """The hash of the hardware; in a soak."""


DesignValues = dict[str, Any]
"""All values of a design. The reference of the design file describes them."""
EventList = list[list[Any]]
"""Events of one command: time in ps, name, and an address, offset or number."""
