"""The engines that sort tables: `sorter`, `row_shuffle`, `dict_decode`, against what link and memory allow."""

from __future__ import annotations

import numpy as np

from nearside import kernels, platforms
from nearside.claims.registry import Bound, Context, Measured, at_least, at_most, claim
from nearside.device import Design, Device
from nearside.experiments import nascent_fig13

KI, MIB = 1 << 10, 1 << 20
# Design: the memory that engines work in, and its channels.
MEMORY = {"sort": ("storage", 2), "smartssd": ("local", 1)}
LINK_GB_S = 3.0
# A chunk is in the sorter before anything comes out: 8 records a cycle.
FILL_MS = 0.066
SHUFFLES = ("shuffle0", "shuffle1", "shuffle2")


def opened(context: Context, design: str, engine: str) -> Device:
    """A device of a design with the timing of its design, shared."""

    def start() -> Device:
        device = Device(Design.load(design), engine=engine)
        if design == "smartssd":
            kernels.unlimited(device, ("sorter0", "decode0", *SHUFFLES))
        return device

    return context.once(("device", design, engine), start)


def sorted_(context: Context, design: str, engine: str, count: int) -> tuple[kernels.Sorted, list[float]]:
    """What a sort of random keys of 32 bits took, and its bounds."""

    def run() -> tuple[kernels.Sorted, list[float]]:
        device = opened(context, design, engine)
        memory, channels = MEMORY[design]
        at = kernels.base(device, memory)
        took = kernels.sort(device, kernels.random_keys(count, 32, context.seed), at, at + 64 * MIB)
        return took, kernels.sort_bounds(device.design, count, 4, channels)

    return context.once(("sort", design, engine, count), run)


def _sort(design: str, engine: str, count: int, ms: float, quick: int, where: str) -> None:
    name = f"{count // KI}k" if count < MIB else f"{count // MIB}m"
    less, bound = "", ms
    if quick not in (0, count):
        bound = ms * quick / count + FILL_MS
        less = f"; a quick run sorts {quick // KI} Ki, bound in proportion and {FILL_MS} ms for the first chunk's way"

    @claim(
        f"sort.{design}.{name}.{engine}", "ms", at_most(ms),
        f"{count // KI} Ki random keys of 32 bits and their indexes sorted {where}{less}.",
        quick_bound=at_most(bound), engine=engine, quick=bool(quick),
    )  # fmt: skip
    def measure(context: Context) -> Measured:
        keys = (quick or count) if context.quick else count
        took, bounds = sorted_(context, design, engine, keys)
        passes = ", ".join(f"{ns / 1e6:.3f}" for ns in took.passes)
        return Measured(took.ns / 1e6, f"{keys // KI} Ki keys; passes {passes} ms; bound {sum(bounds) / 1e6:.3f} ms")


DEFAULT = "in two DDR4-2400 channels (design sort)"
LOCAL = "in one DDR4-2400 channel (design smartssd)"
for _engine in ("rtl", "fast"):
    _sort("sort", _engine, 128 * KI, 0.23, 128 * KI, DEFAULT)
    _sort("sort", _engine, 8 * MIB, 9.5, MIB, DEFAULT)
    # The RTL of smartssd takes minutes to compile: in full runs only, here and below.
    _sort("smartssd", _engine, 8 * MIB, 18.7, MIB if _engine == "fast" else 0, LOCAL)


def _passes(design: str, where: str, engine: str) -> None:
    @claim(
        f"sort.{design}.passes.{engine}", "% of the bound", at_least(90),
        f"Each pass of a sort of 8 Mi keys of 32 bits {where}, the slower one: against what the DDR4 model gives to "
        "ideal masters for that pattern, at most 8 records a cycle. Of a quick run's 1 Mi both passes together, in "
        "which the first chunk's way through the sorter counts for eight times as much.",
        quick_bound=at_least(85), engine=engine, quick=engine == "fast",
    )  # fmt: skip
    def measure(context: Context) -> Measured:
        took, bounds = sorted_(context, design, engine, MIB if context.quick else 8 * MIB)
        shares = [100 * bound / ns for bound, ns in zip(bounds, took.passes, strict=True)]
        whole = 100 * sum(bounds) / took.ns
        detail = f"passes {', '.join(f'{share:.1f} %' for share in shares)}; together {whole:.1f} %"
        return Measured(whole if context.quick else min(shares), detail)


for _engine in ("rtl", "fast"):
    _passes("sort", DEFAULT, _engine)
    _passes("smartssd", LOCAL, _engine)


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
    context: Context, row: int, source: str, engines: tuple[str, ...], engine: str, size: int
) -> tuple[float, int]:
    """GB/s of rows copied in random order from a memory of smartssd to its local one, and the rows."""
    device = opened(context, "smartssd", engine)
    rows = size // row
    rng = np.random.default_rng(context.seed)
    at = kernels.base(device, "local")
    places = {"source": kernels.base(device, source) + 64 * MIB, "target": at + 512 * MIB, "index": at}
    ns = kernels.gather_rows(device, engines, rng.permutation(rows), row, data=rng.bytes(size), **places)
    return size / ns, rows


def _gather(row: int) -> None:
    size = f"{row // KI} KiB" if row >= KI else f"{row} bytes"
    for engine in ("rtl", "fast"):

        @claim(
            f"sort.shuffle.memory.{row}.{engine}", "% of the bound", at_least(90),
            f"Rows of {size} of a table of 16 MiB (32 MiB on the fast engine) in random order within one DDR4-2400 "
            "channel (design smartssd), one engine: against what the DDR4 model gives to ideal masters for that "
            "pattern.", engine=engine, quick=engine == "fast",
        )  # fmt: skip
        def memory(context: Context, engine: str = engine) -> Measured:
            rate, rows = gathered(context, row, "local", SHUFFLES[:1], engine, (16 if engine == "rtl" else 32) * MIB)
            bound = kernels.gather_bound(Design.load("smartssd"), rows, row, 1, context.seed)
            return Measured(100 * rate / bound, f"{rate:.2f} GB/s of {bound:.2f}")

    @claim(
        f"sort.shuffle.link.{row}", "% of the link", at_least(90),
        f"Rows of {size} in random order from storage behind a link of 3 GB/s to the local memory (design smartssd), "
        "three engines.", engine="fast",
    )  # fmt: skip
    def link(context: Context) -> Measured:
        rate, _ = gathered(context, row, "storage", SHUFFLES, "fast", context.commands(32) * MIB)
        return Measured(100 * rate / LINK_GB_S, f"{rate:.2f} GB/s")


for _row in (256, 1024, 4096, 65536):
    _gather(_row)


def _decode(bits: int, value: int, bound: Bound, paper: str, engine: str) -> None:
    @claim(
        f"sort.decode.smartssd.{bits}_{value}", "GB/s", bound,
        f"Keys of {bits} bits from storage behind a link of 3 GB/s decoded to {value} bits in the local memory (design "
        "smartssd): bytes of keys and dictionary a second.", paper=paper, engine=engine, quick=engine == "fast",
    )  # fmt: skip
    def measure(context: Context) -> Measured:
        device = opened(context, "smartssd", engine)
        keys = (context.commands(16) if engine == "fast" else 2) * MIB // (bits // 8)
        target = kernels.base(device, "local") + 512 * MIB
        took = kernels.decode(device, bits, value // 8, keys, 0, target, context.seed)
        read = took["key_bytes"] + took["dictionary_bytes"]
        written = took["key_bytes"] * value / bits
        return Measured(read / took["ns"], f"{(read + written) / took['ns']:.2f} GB/s with what is written")


# 90 % of the link; and of 2.27 GB/s, at which the values fill the memory's 19.2 GB/s but for refreshes.
for _bits in (8, 16):
    for _value in (16, 32, 64):
        if (_bits, _value) == (8, 64):
            _decode(_bits, _value, at_least(2.04), "NASCENT, figure 10: 2.3 GB/s", "rtl")
        else:
            _decode(_bits, _value, at_least(2.7), "NASCENT, figure 10: 3 GB/s", "fast")


def system(context: Context, table: str) -> tuple[dict[int, float], float]:
    """ns of 1 and of 12 devices, and of the card with 12 SSDs one after another."""

    def run() -> tuple[dict[int, float], float]:
        tables = nascent_fig13.tables(context.seed, table, 1.0)
        took = {n: platforms.sort_tables(platforms.smartssd(), tables, n)["all"] for n in (1, 12)}
        card = platforms.sort_tables(platforms.card(), tables)
        return took, platforms.card_one_by_one(card, 12)

    return context.once(("system", table), run)


def _system(name: str, table: str, faster: float, less: float, paper: str, quick: bool) -> None:
    what = f"12 devices with {table} each beside an FPGA card with 12 SSDs, one after another"

    @claim(
        f"sort.system.{name}.faster", "x", at_least(faster), f"{what}: times faster.", paper=f"{paper} {faster} x",
        engine="fast", quick=quick,
    )  # fmt: skip
    def speed(context: Context) -> Measured:
        took, card = system(context, table)
        return Measured(card / took[12], f"{took[12] / 1e6:.3f} ms of {card / 1e6:.3f} ms")

    @claim(
        f"sort.system.{name}.energy", "x", at_least(less),
        f"{what}: times less energy, with the powers that the paper states or its ratios give.",
        paper=f"{paper} {less} x", engine="fast", quick=quick,
    )  # fmt: skip
    def energy(context: Context) -> Measured:
        took, card = system(context, table)
        joules = platforms.joules(platforms.CARD_W, card), platforms.joules(12 * platforms.SMARTSSD_W, took[12])
        return Measured(joules[0] / joules[1], f"{1e3 * joules[1]:.1f} mJ of {1e3 * joules[0]:.1f} mJ")

    @claim(
        f"sort.system.{name}.flat", "x", at_most(1.1), f"12 devices with {table} each: their time by that of one.",
        engine="fast", quick=quick,
    )  # fmt: skip
    def flat(context: Context) -> Measured:
        took, _ = system(context, table)
        return Measured(took[12] / took[1], f"{took[12] / 1e6:.3f} ms of {took[1] / 1e6:.3f} ms")


_system("wide", nascent_fig13.WIDE, 9.9, 7.3, "NASCENT2:", True)
_system("order_line", nascent_fig13.LINES, 9.2, 6.8, "NASCENT, figure 14:", False)
