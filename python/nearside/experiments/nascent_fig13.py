# SPDX-License-Identifier: Apache-2.0
"""NASCENT, figures 13 and 14: tables on 1 to 12 devices, beside a CPU and one FPGA card with as many SSDs."""

from __future__ import annotations

from typing import Any

from nearside import baselines, platforms
from nearside.experiments import nascent
from nearside.experiments.registry import Experiment, Row, Run, figure, plot

WIDE, LINES = "1024 rows of 4 KiB", "TPC-C order-line"
# Clause 1.2.1 of TPC-C: rows of order-line at scale factor 1, and bytes of each.
ORDER_LINES, LINE_BYTES = 300_000, 54
PARTITIONS = 4
# Speed-up and energy ratio of 12 devices: section 4.3; and those of its successor, which are the
# goal.
PAPER = {WIDE: (7.6, 5.6), LINES: (9.2, 6.8)}
SUCCESSOR = {WIDE: (9.9, 7.3)}
PAPER_CPU = (147.2, 131.4)
# Energies are the paper's watts times seconds: simulated ones, or those of this machine's CPU.
MIXED = {False: "simulated seconds, no power is measured", True: "this machine's seconds, no power is measured"}
SOURCE = {WIDE: "figure 13, section 4.3", LINES: "figure 14, section 4.3"}
TWELVE = platforms.MAX_SSDS


def cases(run: Run) -> list[dict[str, Any]]:
    """The devices of each table; the card is simulated with one SSD."""
    wide = [{"table": WIDE, "scale": 1.0, "devices": n} for n in run.parameters["devices"]]
    lines = [{"table": LINES, "scale": scale, "devices": n} for scale, n in run.parameters["order_lines"]]
    return wide + lines


def tables(seed: int, name: str, scale: float) -> list[platforms.Table]:
    if name == WIDE:
        return [platforms.Table.drawn(1024, 4096, True, seed)]
    rows = int(ORDER_LINES * scale) // PARTITIONS
    return [platforms.Table.drawn(rows, LINE_BYTES, False, seed + n) for n in range(PARTITIONS)]


def measure(run: Run, case: dict[str, Any]) -> Row:
    name, scale, count = case["table"], case["scale"], case["devices"]

    def once() -> dict[str, Any]:
        """Values that don't depend on the number of devices: the card with one SSD, the CPU with one table."""
        parts = tables(run.seed, name, scale)
        card = platforms.sort_tables(platforms.card(), parts, model=run.model, build=run.build)
        gather = sum(nascent.cpu_gather_ns(len(p.keys), p.row_bytes, run.seed) for p in parts)
        sorts = nascent.cpu_sorts(run, len(parts[0].keys))
        cpu = {key: ns * len(parts) + gather for key, ns in baselines.core_ns(sorts).items()}
        return {"parts": parts, "card": card, "cpu": cpu, "stored": platforms.stored(parts)}

    made = run.once((name, scale), once)
    stages = platforms.sort_tables(run.required_design, made["parts"], count, run.model, run.build)
    stored = made["stored"]
    best = nascent.fastest(made["cpu"])
    return {
        **case, "stored": stored, "stages": stages, "ns": stages["all"], "bound_ns": stored / platforms.SSD_GB_S,
        "card_one_by_one_ns": platforms.card_one_by_one(made["card"], count),
        "card_overlapped_ns": platforms.card_overlapped(made["card"], stored, count),
        "cpu_plain_ns": platforms.cpu_one_by_one(made["cpu"][baselines.PLAIN], stored, count),
        "cpu_best_ns": platforms.cpu_overlapped(made["cpu"][best], stored, count),
        "cpu_best": best, **nascent.cpu_parts(),
    }  # fmt: skip


def size_of(row: Row) -> str:
    return row["table"] + (f", scale factor {row['scale']:g}" if row["table"] == LINES else "")


def energy(row: Row) -> float:
    """Energy of all devices, in joules."""
    return platforms.joules(row["devices"] * platforms.SMARTSSD_W, row["ns"])


def figures(rows: list[Row]) -> list[dict[str, Any]]:
    out = []
    for row in rows:
        n, ns, table = row["devices"], row["ns"], row["table"]
        what = f"{n} device{'s' if n > 1 else ''}, {size_of(row)}"
        name = f"{'wide' if table == WIDE else 'order_line'}_{row['scale']:g}_{n}"
        out.append(
            figure(f"{name}.time", f"time: {what}", ns / 1e6, "ms", better="lower", limit=row["bound_ns"] / 1e6,
                   limit_text="the link of 3 GB/s of each")
        )  # fmt: skip
        if n != TWELVE:
            continue
        faster, less = PAPER[table]
        more = SUCCESSOR.get(table)
        text = more and f"{faster} x; NASCENT2 {more[0]} x"
        text_less = more and f"{less} x; NASCENT2 {more[1]} x"
        cpu_paper = PAPER_CPU if table == WIDE else (None, None)
        one = [r for r in rows if (r["table"], r["scale"], r["devices"]) == (table, row["scale"], 1)]
        if one:
            out.append(
                figure(f"{name}.flat", f"time of {what} by that of one", ns / one[0]["ns"], "x", better="lower",
                       limit=1.0, limit_text="each works by itself")
            )  # fmt: skip
        for key, how, watts, speed, saving in (
            ("card_overlapped", "the card, SSDs overlapped on its link", platforms.CARD_W, None, None),
            (
                "cpu_best",
                f"the CPU's {platforms.CPU_CORES} cores, {row['cpu_best']}, SSDs overlapped",
                platforms.CPU_SYSTEM_W,
                None,
                None,
            ),
            ("card_one_by_one", "the card, SSDs one after another", platforms.CARD_W, faster, less),
            ("cpu_plain", "one core, plain quick sort, SSDs one after another", platforms.CPU_SYSTEM_W, *cpu_paper),
        ):
            other = row[f"{key}_ns"]
            serial = key == "card_one_by_one"
            time = nascent.RATIO if key.startswith("cpu") else "simulated"
            source = None if speed is None else SOURCE[table]
            out += [
                figure(f"{name}.{key}.faster", f"times faster than {how}: {what}", other / ns, "x", paper=speed,
                       paper_text=text if serial else None, source=source, time=time),
                figure(f"{name}.{key}.energy",
                       f"energy, times less than {how}, the paper's {watts:.3g} and {platforms.SMARTSSD_W:g} W times "
                       f"{MIXED[key.startswith('cpu')]}: {what}", platforms.joules(watts, other) / energy(row), "x",
                       paper=saving, paper_text=text_less if serial else None, source=source, time=time),
            ]  # fmt: skip
    return out


def plots(rows: list[Row]) -> list[dict[str, Any]]:
    out = []
    places = {
        "ns": "devices, simulated",
        "card_overlapped_ns": "card, overlapped",
        "cpu_best_ns": "CPU, all cores, its best sort, overlapped",
        "card_one_by_one_ns": "card, one after another",
        "cpu_plain_ns": "CPU, one core, plain quick sort",
    }
    wide = [row for row in rows if row["table"] == WIDE]
    lines = [row for row in rows if row["table"] == LINES]
    for part, number, x_label, x in (
        (wide, 13, "devices, or SSDs", [row["devices"] for row in wide]),
        (lines, 14, "scale factor, devices or SSDs", [f"{row['scale']:g}, {row['devices']}" for row in lines]),
    ):
        if not part:
            continue
        series = [{"name": name, "of": "ours", "y": [row[key] / 1e6 for row in part]} for key, name in places.items()]
        series.append({"name": "the link of each", "of": "limit", "y": [row["bound_ns"] / 1e6 for row in part]})
        title = f"Figure {number}: time to sort the tables, {part[0]['table']}"
        out.append(plot(title, x, series, x_label=x_label, y_label="ms", log=True))
    return out


EXPERIMENT = Experiment(
    name="nascent_fig13",
    title="Tables on 1 to 12 devices",
    source=f"{nascent.TITLE}, figure 13 and figure 14",
    text=(
        "Each device, or SSD, holds a table of the same size: 1024 rows of 4 KiB with a dictionary-encoded key column "
        "of 16 bits, or the order-line table of TPC-C (54 bytes a row) in four partitions with a plain key column. "
        "All devices are simulated together, in one host that starts each stage on one after the other. The time ends "
        "when the sorted rows are in the devices' memories; the host's merge is not included, nor in the paper's.",
        nascent.DEVICE_TEXT,
        "Rows of less than 4 KiB are loaded to the memory in one piece, while the keys are sorted and the previous "
        "partition is gathered; others are gathered from flash.",
        "The card has four memory channels, 77 GB/s, and the same engines; with one SSD it is simulated. For SSDs one "
        "after another, as in the paper, that is multiplied. Overlapped, all copies of the engines that fit (4.4) "
        "work without a gap while 16 lanes of Gen3 bring the next tables: a bound, and so the better baseline.",
        "The CPU reads over 3 GB/s, then one core works with the plain quick sort, as in the paper. Overlapped, it "
        f"reads over 16 lanes while {platforms.CPU_CORES} cores, as many as the paper's CPU has, work without a gap "
        "with the sort of the least core time: a bound, and so the better baseline. Gathering is "
        "numpy's take. " + nascent.CPU_TEXT,
        "Energies combine the paper's watts with our times; no power is measured. A device without its flash has 7.5 "
        "W, which the paper states; the card has 66.4 W and the CPU 80.3 W, from its ratios of energies and times. "
        "Times are simulated; those of the CPU are this machine's.",
        "NASCENT2 (ACM TRETS 2022) is NASCENT's successor.",
    ),
    quick={"devices": [1, 4, 12], "order_lines": [[0.2, 1], [0.2, 12]]},
    full={
        "devices": list(range(1, 13)),
        "order_lines": [[1.0, 1], [1.0, 12], [2.0, 12], [5.0, 1], [10.0, 1], [20.0, 1]],
    },
    cases=cases,
    measure=measure,
    figures=figures,
    plots=plots,
    models=("fast",),
    design="smartssd",
)
