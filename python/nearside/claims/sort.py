# SPDX-License-Identifier: Apache-2.0
"""The engines that sort tables: `sorter`, `row_shuffle`, `dict_decode`, against the limits of link and memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nearside import baselines, ideal, kernels, platforms
from nearside.claims.registry import Bound, Context, Measured, Published, at_least, at_most, claim
from nearside.device import Design, Device
from nearside.experiments import nascent, nascent_fig13

KI, MIB = 1 << 10, 1 << 20
# Design: the memory that engines work in, and its channels.
MEMORY = {"sort": ("storage", 2), "smartssd": ("local", 1)}
LINK_GB_S = 3.0
# A chunk is in the sorter before anything comes out: 8 records a cycle.
FILL_MS = 0.066
SHUFFLES = ("shuffle0", "shuffle1", "shuffle2")


def opened(context: Context, design: str, model: str) -> Device:
    """A device of a design with the timing of that design, shared."""

    def start() -> Device:
        device = Device(Design.load(design), model=model)
        if design == "smartssd":
            kernels.remove_limits(device, ("sorter0", "decode0", *SHUFFLES))
        return device

    return context.once(("device", design, model), start)


def sorted_(context: Context, design: str, model: str, count: int) -> tuple[kernels.SortTimes, list[float]]:
    """The time of a sort of random 32-bit keys, and its bounds."""

    def run() -> tuple[kernels.SortTimes, list[float]]:
        device = opened(context, design, model)
        memory, channels = MEMORY[design]
        at = kernels.memory_base(device, memory)
        elapsed = kernels.sort(device, kernels.random_keys(count, 32, context.seed), at, at + 64 * MIB)
        return elapsed, kernels.sort_bounds(device.design, count, 4, channels)

    return context.once(("sort", design, model, count), run)


def _sort(design: str, model: str, count: int, ms: float, quick: int, where: str) -> None:
    name = f"{count // KI}k" if count < MIB else f"{count // MIB}m"
    less, bound = "", ms
    if quick not in (0, count):
        bound = ms * quick / count + FILL_MS
        less = f"; a quick run sorts {quick // KI} Ki, bound in proportion and {FILL_MS} ms for the first chunk's way"

    @claim(
        f"sort.{design}.{name}.{model}", "ms", at_most(ms),
        f"{count // KI} Ki random keys of 32 bits and their indexes sorted {where}{less}.",
        quick_bound=at_most(bound), model=model, quick=bool(quick),
    )  # fmt: skip
    def measure(context: Context) -> Measured:
        keys = (quick or count) if context.quick else count
        elapsed, bounds = sorted_(context, design, model, keys)
        passes = ", ".join(f"{ns / 1e6:.3f}" for ns in elapsed.passes)
        return Measured(elapsed.ns / 1e6, f"{keys // KI} Ki keys; passes {passes} ms; bound {sum(bounds) / 1e6:.3f} ms")


DEFAULT = "in two DDR4-2400 channels (design sort)"
LOCAL = "in one DDR4-2400 channel (design smartssd)"
for _model in ("rtl", "fast"):
    _sort("sort", _model, 128 * KI, 0.23, 128 * KI, DEFAULT)
    _sort("sort", _model, 8 * MIB, 9.5, MIB, DEFAULT)
    # The RTL of smartssd takes minutes to compile: in full runs only, here and below.
    _sort("smartssd", _model, 8 * MIB, 18.7, MIB if _model == "fast" else 0, LOCAL)


def _passes(design: str, where: str, model: str) -> None:
    @claim(
        f"sort.{design}.passes.{model}", "% of ideal masters", at_least(90),
        f"Each pass of a sort of 8 Mi keys of 32 bits {where}, the slower one, against the rate of the DDR4 model for "
        f"that pattern and {ideal.MASTERS}, at most 8 records a cycle. A quick run takes both passes of 1 Mi keys "
        "together, where the first chunk's way through the sorter has eight times the weight.",
        quick_bound=at_least(85), model=model, quick=model == "fast",
    )  # fmt: skip
    def measure(context: Context) -> Measured:
        elapsed, bounds = sorted_(context, design, model, MIB if context.quick else 8 * MIB)
        shares = [100 * bound / ns for bound, ns in zip(bounds, elapsed.passes, strict=True)]
        whole = 100 * sum(bounds) / elapsed.ns
        detail = f"passes {', '.join(f'{share:.1f} %' for share in shares)}; together {whole:.1f} %"
        return Measured(whole if context.quick else min(shares), detail)


for _model in ("rtl", "fast"):
    _passes("sort", DEFAULT, _model)
    _passes("smartssd", LOCAL, _model)


@claim(
    "sort.adversarial", "% more than random", at_most(2),
    "Keys that are sorted, reversed, equal, of four values, at the ends of their range, in the form of an organ pipe, "
    "or half NaN: the slowest of them in two passes, against random ones.",
)  # fmt: skip
def adversarial(context: Context) -> Measured:
    device = opened(context, "sort", "rtl")
    count = 192 * KI if context.quick else MIB
    ns = {
        name: kernels.sort(device, keys, 0, 64 * MIB).ns
        for name, keys in kernels.adversarial(count, context.seed).items()
    }
    more = {name: 100 * (value / ns["random"] - 1) for name, value in ns.items() if name != "random"}
    detail = ", ".join(f"{name} {value:+.1f} %" for name, value in more.items())
    return Measured(max(more.values()), f"{count // KI} Ki keys, {ns['random'] / 1e6:.3f} ms random; {detail}")


def gathered(
    context: Context, row: int, source: str, engines: tuple[str, ...], model: str, size: int
) -> tuple[float, int]:
    """GB/s of rows copied in random order from a memory of smartssd to its local one, and the rows."""
    device = opened(context, "smartssd", model)
    rows = size // row
    rng = np.random.default_rng(context.seed)
    at = kernels.memory_base(device, "local")
    places = {"source": kernels.memory_base(device, source) + 64 * MIB, "target": at + 512 * MIB, "index": at}
    ns = kernels.gather_rows(device, engines, rng.permutation(rows), row, data=rng.bytes(size), **places)
    return size / ns, rows


def _gather(row: int) -> None:
    size = f"{row // KI} KiB" if row >= KI else f"{row} bytes"
    for model in ("rtl", "fast"):

        @claim(
            f"sort.shuffle.memory.{row}.{model}", "% of ideal masters", at_least(90),
            f"Rows of {size} of a table of 16 MiB (32 MiB on the fast model) in random order within one DDR4-2400 "
            "channel (design smartssd), one engine, against the rate of the DDR4 model for that pattern and "
            f"{ideal.MASTERS}.", model=model, quick=model == "fast",
        )  # fmt: skip
        def memory(context: Context, model: str = model) -> Measured:
            rate, rows = gathered(context, row, "local", SHUFFLES[:1], model, (16 if model == "rtl" else 32) * MIB)
            bound = kernels.gather_bound(Design.load("smartssd"), rows, row, 1, context.seed)
            return Measured(100 * rate / bound, f"{rate:.2f} GB/s of {bound:.2f}")

    @claim(
        f"sort.shuffle.link.{row}", "% of the link", at_least(90),
        f"Rows of {size} in random order from storage on a link of 3 GB/s to the local memory (design smartssd), "
        "three engines.", model="fast",
    )  # fmt: skip
    def link(context: Context) -> Measured:
        rate, _ = gathered(context, row, "storage", SHUFFLES, "fast", context.commands(32) * MIB)
        return Measured(100 * rate / LINK_GB_S, f"{rate:.2f} GB/s")


for _row in (256, 1024, 4096, 65536):
    _gather(_row)


def _decode(bits: int, value: int, bound: Bound, paper: float, model: str) -> None:
    @claim(
        f"sort.decode.smartssd.{bits}_{value}", "GB/s", bound,
        f"Keys of {bits} bits from storage on a link of 3 GB/s decoded to {value} bits in the local memory (design "
        "smartssd): bytes of keys and dictionary a second.",
        paper=Published(
            f"{paper:g} GB/s", "NASCENT, figure 10", "hardware; the paper brings keys to the memory first and decodes "
            "from there, ours are decoded as they come", paper,
        ),
        clocks="from the host's start of the engine until the host notices its end, with the values in memory.",
        model=model, quick=model == "fast",
    )  # fmt: skip
    def measure(context: Context) -> Measured:
        device = opened(context, "smartssd", model)
        keys = (context.commands(16) if model == "fast" else 2) * MIB // (bits // 8)
        target = kernels.memory_base(device, "local") + 512 * MIB
        elapsed = kernels.decode(device, bits, value // 8, keys, 0, target, context.seed)
        read = elapsed["key_bytes"] + elapsed["dictionary_bytes"]
        written = elapsed["key_bytes"] * value / bits
        return Measured(read / elapsed["ns"], f"{(read + written) / elapsed['ns']:.2f} GB/s with what is written")


# 90 % of the link; and of 2.27 GB/s, at which the values fill the memory's 19.2 GB/s but for
# refreshes.
for _bits in (8, 16):
    for _value in (16, 32, 64):
        if (_bits, _value) == (8, 64):
            _decode(_bits, _value, at_least(2.04), 2.3, "rtl")
        else:
            _decode(_bits, _value, at_least(2.7), 3.0, "fast")


@dataclass(frozen=True)
class System:
    """Times in ns: of 1 and of 12 devices, of the card with one SSD, of one core with a table; bytes of an SSD."""

    elapsed: dict[int, float]
    card: dict[str, float]
    stored: int
    tables: list[platforms.Table]


def system(context: Context, table: str) -> System:
    def run() -> System:
        tables = nascent_fig13.tables(context.seed, table, 1.0)
        elapsed = {n: platforms.sort_tables(platforms.smartssd(), tables, n)["all"] for n in (1, 12)}
        card = platforms.sort_tables(platforms.card(), tables)
        return System(elapsed, card, platforms.stored(tables), tables)

    return context.once(("system", table), run)


def core_ns(context: Context, table: str) -> tuple[float, str]:
    """The least time to sort and gather on one core of this machine, and by which sort."""

    def run() -> tuple[float, str]:
        parts = system(context, table).tables
        sorts = baselines.core_ns(baselines.sorts(kernels.random_keys(len(parts[0].keys), 32, context.seed), 1))
        best = nascent.fastest(sorts)
        gather = sum(nascent.cpu_gather_ns(len(part.keys), part.row_bytes, context.seed) for part in parts)
        return len(parts) * sorts[best] + gather, best

    return context.once(("system.core", table), run)


ENDS = (
    "ours goes from the host's start of the first stage on the first device, with the tables in flash, until the host "
    "notices the end of the last stage on the last device, with the sorted rows in the devices' memories. They are "
    "not moved to the host, or back to flash."
)
CARD_ENDS = f"{ENDS} The card's goes from the same start until the rows are in its memory; it is simulated with one SSD"
OVERLAPPED = (
    f"{CARD_ENDS}, and with 12 it is the longer of the link's time for all tables and of the work of "
    f"{platforms.CARD_COPIES:.1f} copies of the engines without gaps: the best that such a card could do."
)


def _system(name: str, table: str, bounds: dict[str, float], paper: Published, quick: bool) -> None:
    """Claims beside the baselines of 12 devices, the strongest first."""
    what = f"12 devices with {table} each"
    options: dict[str, Any] = {"model": "fast", "quick": quick}

    @claim(
        f"sort.system.{name}.card_overlapped", "x", at_least(bounds["card_overlapped"]),
        f"{what}: times faster than an FPGA card with 12 SSDs that reads the next tables while it works.",
        clocks=OVERLAPPED, **options,
    )  # fmt: skip
    def overlapped(context: Context) -> Measured:
        found = system(context, table)
        card = platforms.card_overlapped(found.card, found.stored, 12)
        return Measured(card / found.elapsed[12], f"{found.elapsed[12] / 1e6:.3f} ms of {card / 1e6:.3f} ms")

    @claim(
        f"sort.system.{name}.cpu_overlapped", "x", at_least(bounds["cpu_overlapped"]),
        f"{what}: times faster than a CPU with 12 SSDs, all of whose {platforms.CPU_CORES} cores, as many as the "
        "paper's has, sort and gather while the next tables come over 16 lanes.",
        clocks=f"{ENDS} The CPU's is the longer of the link's time for all tables and of the work on all cores. That "
        "is measured on one core of this machine (CPU time, its best sort) and divided by the number of cores.",
        time="wall-clock", **options,
    )  # fmt: skip
    def cores(context: Context) -> Measured:
        found = system(context, table)
        core, by = core_ns(context, table)
        cpu = platforms.cpu_overlapped(core, found.stored, 12)
        text = f"{found.elapsed[12] / 1e6:.3f} ms simulated, of {cpu / 1e6:.3f} ms; {core / 1e6:.3f} ms of a core, {by}"
        return Measured(cpu / found.elapsed[12], text)

    @claim(
        f"sort.system.{name}.card_one_by_one", "x", at_least(bounds["card_one_by_one"]),
        f"{what}: times faster than an FPGA card with 12 SSDs that serves these one after another.", paper,
        clocks=f"{CARD_ENDS}, and with 12 it takes 12 times as long.", **options,
    )  # fmt: skip
    def one_by_one(context: Context) -> Measured:
        found = system(context, table)
        card = platforms.card_one_by_one(found.card, 12)
        return Measured(card / found.elapsed[12], f"{found.elapsed[12] / 1e6:.3f} ms of {card / 1e6:.3f} ms")

    @claim(
        f"sort.system.{name}.flat", "x", at_most(1.1), f"{what}: their time by that of one.", clocks=ENDS, **options
    )  # fmt: skip
    def flat(context: Context) -> Measured:
        elapsed = system(context, table).elapsed
        return Measured(elapsed[12] / elapsed[1], f"{elapsed[12] / 1e6:.3f} ms of {elapsed[1] / 1e6:.3f} ms")


SYSTEM_DIFFERS = (
    "hardware; the paper's card reads an SSD, works, and then turns to the next one, which an overlapped card does not"
)
_system(
    "wide", nascent_fig13.WIDE, {"card_overlapped": 2.2, "cpu_overlapped": 2.1, "card_one_by_one": 9.9},
    Published("9.9 x, NASCENT 7.6 x", "NASCENT2; NASCENT, figure 13", SYSTEM_DIFFERS, 9.9), True,
)  # fmt: skip
_system(
    "order_line", nascent_fig13.LINES, {"card_overlapped": 1.75, "cpu_overlapped": 1.5, "card_one_by_one": 9.2},
    Published(
        "9.2 x", "NASCENT, figure 14", f"{SYSTEM_DIFFERS}; its figure is the mean of scale factors 1 to 20, ours of 1",
        9.2,
    ), False,
)  # fmt: skip
