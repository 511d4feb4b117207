# SPDX-License-Identifier: Apache-2.0
"""Models of the systems that NASCENT compares: constants with sources, and times for the tables of
M SSDs.

Devices are simulated (`TableSort`). Computed from models are: the card with several SSDs (from one
that
is simulated), the CPU's link to the SSDs, and all power. `NASCENT` is Salamat et al., FPGA 2021.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nearside import kernels, wire
from nearside._native import NearsideError
from nearside.device import BuildProgress, Design, Device, Peer, RegisterEngine
from nearside.renamed import renamed

MIB = 1 << 20

# GB/s from an SSD to the processor: NASCENT, table 1.
SSD_GB_S = 3.0
# FPGA and memory of a SmartSSD, without the flash, "as we use the same SSD for all": NASCENT, 4.1
# and 4.2.
SMARTSSD_W = 7.5
# The paper states no power of the others, only ratios. Energy over time gives the same power each
# time.
# Cores of the CPU, a Core i7-8700 (NASCENT, 4.2): Intel's product specifications.
CPU_CORES = 6
# CPU alone, quick sort. Figure 8: 1.8 times the time and 13.6 times the energy, thus 56.7 W. Figure
# 9: 8.25 and 61.6, thus 56.0 W.
CPU_W = 56.3
# CPU with 12 SSDs: figure 13, 147.2 and 131.4 of 12 devices.
CPU_SYSTEM_W = 12 * SMARTSSD_W * 131.4 / 147.2
# Card (Alveo U250), of 12 devices. Figure 13: 7.6 and 5.6, thus 66.3 W. NASCENT2: 9.9 and 7.3, thus
# 66.4 W. Figure 14: 9.2 and 6.8, thus 66.5 W.
CARD_W = 66.4
# The card's LUTs in multiples of a SmartSSD's, 1,728 K to 391 K (NASCENT, footnote 1): the number
# of copies of the engines that fit.
CARD_COPIES = 1728 / 391
# 77 GB/s, NASCENT, footnote 1: four channels of DDR4-2400 (16 GiB here, of 64 GB). 16 lanes of
# Gen3: Alveo U250 data sheet (DS962).
CARD = """
[pcie]
lanes = 16
[[memory]]
name = "local"
bytes = "16 GiB"
channels = 4
[memory.delay]
write_slots = 128
"""
# The most SSDs: the host's slots, NASCENT, 4.3.
MAX_SSDS = 12

SHUFFLES = ("shuffle0", "shuffle1", "shuffle2")
ENGINES = ("sorter0", "decode0", *SHUFFLES)
# Rows smaller than a flash block are loaded to the memory in one piece and gathered there.
BLOCK = 4096


def smartssd() -> Design:
    """A device like the SmartSSD."""
    return Design.load("smartssd")


def card() -> Design:
    """The card with one SSD on its link of 3 GB/s."""
    return smartssd().with_values(CARD)


def card_link_gb_s() -> float:
    """The card's link bandwidth, headers and acknowledgements deducted."""
    return wire.bound(card(), "write", 128 << 10)


def joules(watts: float, ns: float) -> float:
    """Energy."""
    return watts * ns / 1e9


@dataclass(frozen=True)
class Table:
    """A table: a key column of 32 bits, plain or dictionary-encoded with 16-bit keys, and rows of one size."""

    keys: np.ndarray  # 32 bits, or 16 bits with a dictionary
    dictionary: np.ndarray | None
    rows: bytes
    row_bytes: int

    @property
    def values(self) -> np.ndarray:
        """The decoded key column."""
        return self.keys if self.dictionary is None else self.dictionary[self.keys]

    @property
    def stored(self) -> int:
        """Bytes that a sort reads from storage."""
        of_dictionary = 0 if self.dictionary is None else self.dictionary.nbytes
        return self.keys.nbytes + of_dictionary + len(self.rows)

    @classmethod
    def drawn(cls, rows: int, row_bytes: int, coded: bool, seed: int) -> Table:
        """A table of random keys and bytes."""
        rng = np.random.default_rng(seed)
        data = rng.bytes(rows * row_bytes)
        if not coded:
            return cls(kernels.random_keys(rows, 32, seed), None, data, row_bytes)
        dictionary = kernels.random_keys(min(rows, 1 << 16), 32, seed)
        return cls(rng.integers(0, len(dictionary), rows, dtype=np.uint16), dictionary, data, row_bytes)


class TableSort:
    """Tables in the storage of several devices of a host, the same in each, sorted by all devices
    in parallel.

    It begins with the tables in flash and ends with their sorted rows in the device's memory.
    Several tables are partitions, sorted one by one. A device loads the rows of one to its memory
    while it gathers those of the previous one. The host starts each stage on one device after the
    other, and waits for all before the next.
    """

    KEYS, ROWS = MIB, 64 * MIB  # in storage, after the dictionary
    VALUES, INDEXES, SCRATCH, LOADED, TARGET = 0, 128 * MIB, 256 * MIB, 1024 * MIB, 2048 * MIB  # in the memory

    def __init__(self, device: Device, tables: Sequence[Table], count: int) -> None:
        self.device, self.tables = device, tables
        self.places: list[Device | Peer] = [device, *device.peers]
        del self.places[count:]
        self.memory = kernels.memory_base(device, "local")
        self.keys_step = kernels.round_up(max(table.keys.nbytes for table in tables))
        self.rows_step = kernels.round_up(max(len(table.rows) for table in tables))

    def put(self) -> None:
        """Stores the tables on all devices; not a part of the measured time."""
        for place in self.places:
            kernels.remove_limits(place, ENGINES)
            for n, table in enumerate(self.tables):
                if n == 0 and table.dictionary is not None:
                    kernels.store(place, 0, table.dictionary.tobytes())
                kernels.store(place, self.KEYS + n * self.keys_step, table.keys.tobytes())
                kernels.store(place, self.ROWS + n * self.rows_step, table.rows)

    def run(self) -> dict[str, float]:
        """Sorts the tables; simulated nanoseconds of each stage, and in all."""
        begin = self.device.now_ns
        stages: dict[str, float] = {}
        for name, jobs in self._stages():
            stages[name] = stages.get(name, 0.0) + self._stage(jobs)
        stages["all"] = self.device.now_ns - begin
        for place in self.places:
            self._check(place)
        return stages

    def _stages(self) -> list[tuple[str, dict[str, dict[str, int]]]]:
        """Name of each stage, and the arguments of its engines."""
        at, stages = self.memory, []
        gather: dict[str, Any] = {}
        for n, table in enumerate(self.tables):
            rows, source = len(table.keys), self.KEYS + n * self.keys_step
            if table.dictionary is not None:
                keys, source = source, at + self.VALUES
                entries = len(table.dictionary)
                decode = {"dict": 0, "entries": entries, "src": keys, "bytes": table.keys.nbytes, "dst": source}
                stages.append(("decode", {"decode0": decode | {"count": rows, "kind": 16 | 2 << 8 | 1 << 17}}))
            # Two buffers in turns: the gather of the previous table still reads the other one.
            index = at + self.INDEXES + n % 2 * 64 * MIB
            jobs = {"sorter0": {"src": source, "dst": index, "tmp": at + self.SCRATCH, "count": rows, "kind": 1 << 5}}
            name, place = "sort", self.ROWS + n * self.rows_step
            if table.row_bytes < BLOCK:
                size = kernels.round_up(len(table.rows), 64)
                loaded = at + self.LOADED + n % 2 * self.rows_step
                load = {"dict": 0, "entries": 0, "src": place, "bytes": size, "dst": loaded, "count": size // 8}
                jobs["decode0"] = load | {"kind": 3 << 8 | 1 << 16}
                name, place = "sort, load", loaded
            stages.append((name + (", gather" if gather else ""), jobs | gather))
            target = at + self.TARGET + n * self.rows_step
            parts = kernels.gather_jobs(rows, len(SHUFFLES), table.row_bytes, place, target, index)
            gather = dict(zip(SHUFFLES, parts, strict=False))
        return [*stages, ("gather", gather)]

    def _stage(self, jobs: dict[str, dict[str, int]]) -> float:
        begin = self.device.now_ns
        started: list[RegisterEngine] = []
        for place in self.places:
            for name, job in jobs.items():
                engine = place.engine(name)
                engine.start(**job)
                started.append(engine)
        for running in started:
            if wrong := running.wait(kernels.TIMEOUT_US):
                raise NearsideError(f"{running.name}: {', '.join(wrong)}")
        return self.device.now_ns - begin

    def _check(self, place: Device | Peer) -> None:
        """Compares some rows with a stable sort on the host."""
        for number, table in enumerate(self.tables):
            size, target = table.row_bytes, self.memory + self.TARGET + number * self.rows_step
            order = np.argsort(table.values, kind="stable")
            for n in {0, len(order) // 3, len(order) - 1}:
                wanted = table.rows[int(order[n]) * size :][:size]
                if place.pm_read(target + n * size, size) != wanted:
                    raise AssertionError(f"row {n} of table {number} is not where it should be")


@renamed(engine="model")
def sort_tables(
    design: Design, tables: Sequence[Table], count: int = 1, model: str = "fast", build: BuildProgress | None = None
) -> dict[str, float]:
    """Sorts tables on `count` devices of one host; returns the time of each stage."""
    peers = [(design, model)] * (count - 1)
    with Device(design, build, model=model, peers=peers) as device:
        sort = TableSort(device, tables, count)
        sort.put()
        return sort.run()


def stored(tables: Sequence[Table]) -> int:
    """Bytes that a sort reads from storage."""
    return sum(table.stored for table in tables)


def card_one_by_one(stages: dict[str, float], count: int) -> float:
    """ns of the card with `count` SSDs, one after another, as in NASCENT."""
    return count * stages["all"]


def card_overlapped(stages: dict[str, float], nbytes: int, count: int) -> float:
    """ns of the card when transfers and work overlap: the bound of its link, or of its engines.

    `nbytes` is the data of an SSD. All copies of the engines work without gaps. The first read and
    the work on the last table are not counted.
    """
    link = count * nbytes / min(count * SSD_GB_S, card_link_gb_s())
    work = max(stages["all"] - nbytes / SSD_GB_S, 0.0)  # the part that the link does not hide
    return max(link, count * work / CARD_COPIES, stages["all"])


def cpu_one_by_one(work_ns: float, nbytes: int, count: int) -> float:
    """ns of a CPU with `count` SSDs: read and work in turns."""
    return count * (nbytes / SSD_GB_S + work_ns)


def cpu_overlapped(core_ns: float, nbytes: int, count: int) -> float:
    """ns of a CPU with a link as wide as the card's, when transfers and work overlap: the longer of
    both.

    `core_ns` is the time of a table on one core. The work is spread evenly over the cores, without
    contention. That is a bound, and therefore a strong baseline.
    """
    return max(count * nbytes / min(count * SSD_GB_S, card_link_gb_s()), count * core_ns / CPU_CORES)
