# SPDX-License-Identifier: Apache-2.0
"""Plots of result documents."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from nearside import files
from nearside._native import NearsideError
from nearside.types import QosCurve, SortTrace, TimelineDocument, TimelineSpan


def check(path: Path) -> None:
    """Refuses a plot's name with an unknown suffix, before long work on its content."""
    from matplotlib.backend_bases import FigureCanvasBase

    kinds = FigureCanvasBase.get_supported_filetypes()
    kind = path.suffix.removeprefix(".")
    if kind and kind.lower() not in kinds:
        raise NearsideError(
            f"{files.printable(path)}: no plot is called *.{files.printable(kind)}: "
            f"allowed are {', '.join(sorted(kinds))}"
        )
    files.check_output(path)


def literal(text: str) -> str:
    """Text that is drawn literally: dollar signs start no formula, lone surrogates are escaped."""
    return text.encode(errors="backslashreplace").decode().replace("$", r"\$")


def demo(doc: dict[str, Any], path: Path) -> None:
    """Bandwidth and latency under both timings, and the error of nvm_delay by target."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, middle, right) = pyplot.subplots(1, 3, figsize=(14, 4.2))
    names = [literal(trip["profile"]) for trip in doc["trips"]]
    colours = ["#4c72b0", "#dd8452"]
    for number, (trip, colour) in enumerate(zip(doc["trips"], colours, strict=False)):
        places = [p + 0.4 * number for p in range(2)]
        left.bar(places, [trip[k]["bandwidth_gb_s"] for k in ("write", "read")], 0.38, color=colour)
        keys = ("mean_ns", "p50_ns", "p99_ns", "p999_ns")
        places = [p + 0.4 * number for p in range(4)]
        middle.bar(places, [trip["read_512"]["latency"][k] / 1e3 for k in keys], 0.38, color=colour)
    left.set_xticks([0.2, 1.2], ["write", "read"])
    left.set_ylabel("GB/s, simulated")
    left.set_title("file, 16 KiB x 32 in flight")
    left.legend(names)
    middle.set_xticks([p + 0.2 for p in range(4)], ["mean", "p50", "p99", "p99.9"])
    middle.set_ylabel("us, simulated")
    middle.set_title("512 B reads, one at a time")
    middle.legend(names)
    for kind, marker in (("read", "o"), ("write", "s")):
        rows = [row for row in doc["accuracy"] if row["kind"] == kind]
        if rows:
            errors = [max(abs(row["mean_error_percent"]), 1e-4) for row in rows]
            right.plot([row["target_ns"] for row in rows], errors, marker, label=f"{kind}s")
    if doc["accuracy"]:
        right.axhline(0.1, color="grey", linewidth=0.8, linestyle="--", label="bound: 0.1 %")
        right.set_xscale("log")
        right.set_yscale("log")
        right.set_xlabel("target latency, ns")
        right.set_ylabel("error of the mean, %")
        right.set_title("nvm_delay, 64 B random")
        right.legend()
    else:
        right.set_axis_off()
    _save(figure, path)


def latency(doc: dict[str, Any], path: Path) -> None:
    """The terms of single commands in sequence; the controller's are highlighted."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    rows = doc["rows"]
    figure, axes = pyplot.subplots(figsize=(11, 0.8 * len(rows) + 1.2))
    blues = {"doorbell": "#c6d4e8", "fetch": "#9db7d9", "memory": "#7499c8", "transfer": "#4c72b0", "entry": "#b7c9e2"}
    for place, row in enumerate(reversed(rows)):
        start = 0.0
        for term in row["terms"]:
            width = term["mean_ns"]
            axes.barh(place, width, left=start, color="#dd8452" if term["added"] else blues[term["term"]])
            if width > 200 and not term["added"]:
                axes.text(start + width / 2, place, term["term"], ha="center", va="center", fontsize=8)
            start += width
        text = f"{row['added_cycles']:.0f} cycles" + (", the memory's included" if row["memory_included"] else "")
        axes.text(start + 15, place, text, va="center", fontsize=8)
    axes.set_yticks(range(len(rows)), [literal(f"{row['kind']}, {row['profile']}") for row in reversed(rows)])
    axes.set_xlim(0, 1.3 * max(row["total_ns"] for row in rows))
    axes.set_xlabel("ns from the doorbell's store to the entry in host memory, simulated; orange: the controller")
    axes.set_title("4 KiB, one command at a time")
    _save(figure, path)


def qos(doc: QosCurve, path: Path) -> None:
    """Loads on the left, bandwidth on the right, by the engines' credits."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    from nearside.qos import label

    rows = doc["rows"]
    places = range(len(rows))
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4))
    left.plot(places, [row["load_p99_ns"] for row in rows], "o-", color="#dd8452", label="p99")
    left.plot(places, [row["load_mean_ns"] for row in rows], "o-", color="#4c72b0", label="mean")
    left.axhline(doc["load_alone_ns"], color="grey", linewidth=0.8, linestyle="--", label="alone, mean")
    left.set_ylabel("64-byte load at the host, ns, simulated")
    left.set_ylim(0)
    right.plot(places, [row["copied_gb_s"] for row in rows], "o-", color="#dd8452", label="copied")
    right.plot(places, [row["nvme_gb_s"] for row in rows], "o-", color="#4c72b0", label="NVMe reads")
    right.axhline(doc["ideal_copies_gb_s"], color="grey", linewidth=0.8, linestyle="--", label="ideal masters copy")
    right.set_ylabel("GB/s, simulated")
    right.set_ylim(0)
    for axes in (left, right):
        axes.set_xticks(places, [label(row["credits"]).replace(" after", "\nafter") for row in rows])
        axes.set_xlabel("credits of each engine, lines a channel and direction")
        axes.legend()
    _save(figure, path)


def correlation(doc: dict[str, Any], path: Path) -> None:
    """The fast model over the RTL: mean latency and bandwidth of each row, with the band of the bound."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, 2, figsize=(11, 5))
    bound = doc["within_percent"] / 100
    for axes, key, scale, unit in zip(panels, ("mean_ns", "gb_s"), (1e-3, 1), ("us", "GB/s"), strict=True):
        every = [row for row in doc["rows"] if row["rtl"] and row["rtl"][key] is not None]
        for name, held, colour, marker in (("seen", False, "#4c72b0", "o"), ("held out", True, "#dd8452", "s")):
            rows = [row for row in every if row["held_out"] == held]
            places = [[scale * row[model][key] for row in rows] for model in ("rtl", "fast")]
            axes.plot(*places, marker, color=colour, markersize=5, alpha=0.7, label=f"{name}, {len(rows)} rows")
        ends = [scale * pick(row["rtl"][key] for row in every) for pick in (min, max)] if every else [1, 10]
        ends = [0.7 * ends[0], 1.4 * ends[1]]
        axes.plot(ends, ends, color="grey", linewidth=0.8)
        low, high = ([end * (1 + sign * bound) for end in ends] for sign in (-1, 1))
        axes.fill_between(ends, low, high, color="grey", alpha=0.15, label=f"within {doc['within_percent']:g} %")
        axes.set_xscale("log")
        axes.set_yscale("log")
        what = "mean latency" if key == "mean_ns" else "bandwidth"
        axes.set_xlabel(f"rtl: {what}, {unit}, simulated")
        axes.set_ylabel(f"fast: {what}, {unit}, simulated")
        axes.legend()
    _save(figure, path)


def trace(commands: list[dict[str, Any]], path: Path) -> None:
    """Commands as bars of their stages over time, one line each, by queue."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.patches import Rectangle

    from nearside.trace import STAGES, stages

    known = sorted(commands, key=lambda c: (c["queue"], min(c["times_ps"].values())))
    origin = min(min(c["times_ps"].values()) for c in known)
    colours = dict(zip(dict.fromkeys(STAGES.values()), _colours("tab20"), strict=False))
    figure, axes = pyplot.subplots(figsize=(11, 0.16 * len(known) + 1.6))
    for place, command in enumerate(known):
        for name, start, end in stages(command):
            axes.barh(place, (end - start) / 1e6, left=(start - origin) / 1e6, height=0.8, color=colours[name])
    used = {name for command in known for name, _, _ in stages(command)}
    handles = [Rectangle((0, 0), 1, 1, color=c) for name, c in colours.items() if name in used]
    names = [name for name in colours if name in used]
    axes.legend(handles, names, fontsize=7, ncol=6, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    marks = [literal(f"queue {c['queue']}: {c['command']} {c['blocks'] or ''}") for c in known]
    axes.set_yticks(range(len(known)), marks, fontsize=6)
    axes.invert_yaxis()
    axes.set_xlabel("us, simulated")
    _save(figure, path)


def sort(trace: SortTrace, path: Path) -> None:
    """The stages of each device over time, and the traffic of the first device's memory channels."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.patches import Rectangle

    events = trace["traceEvents"]
    slices = [event for event in events if event["ph"] == "X"]
    counters = [event for event in events if event["ph"] == "C" and event["pid"] == 1]
    names = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    origin = min((event["ts"] for event in slices), default=0.0)
    stages = list(dict.fromkeys(event["name"] for event in slices))
    colours = dict(zip(stages, _colours("tab10"), strict=False))
    heights = [0.3 * len(names) + 0.6, 2.4]
    figure, (upper, lower) = pyplot.subplots(
        2, 1, figsize=(11, sum(heights) + 1.2), sharex=True, gridspec_kw={"height_ratios": heights}
    )
    for event in slices:
        place, begin = event["pid"], (event["ts"] - origin) / 1000
        upper.barh(place, event["dur"] / 1000, left=begin, height=0.8, color=colours[event["name"]])
    handles = [Rectangle((0, 0), 1, 1, color=colour) for colour in colours.values()]
    upper.legend(handles, stages, fontsize=8, ncol=5, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    upper.set_yticks(list(names), list(names.values()), fontsize=8)
    upper.invert_yaxis()
    for name in dict.fromkeys(event["name"] for event in counters):
        of = [event for event in counters if event["name"] == name]
        times = [(event["ts"] - origin) / 1000 for event in of]
        for way, style in (("read", "-"), ("written", ":")):
            rates = [event["args"][way] for event in of]
            lower.step(times, rates, style, where="post", label=f"{name.removesuffix(', GB/s')}, {way}")
    if counters:
        lower.legend(fontsize=8, ncol=4)
    lower.set_ylabel(f"GB/s, {names.get(1, 'device 0')}", fontsize=8)
    lower.set_xlabel("ms, simulated")
    _save(figure, path)


def timeline(doc: TimelineDocument, path: Path) -> None:
    """A picture for each executor of the transactions, with a row for the CPU and each active unit."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.patches import Rectangle

    from nearside.timeline import CPU, CPU_COLOURS

    rows = doc["rows"]
    spans = [span for row in rows for span in row["spans"]]
    operations = dict.fromkeys(span["what"] for span in spans if span["who"] != CPU)
    colours = CPU_COLOURS | dict(zip(operations, _colours("Set2"), strict=False))
    people = [list(dict.fromkeys(span["who"] for span in sorted(row["spans"], key=_person))) for row in rows]
    heights = [len(names) + 0.6 for names in people]
    figure, panels = pyplot.subplots(
        len(rows), 1, squeeze=False, figsize=(11, 0.32 * sum(heights) + 1.8), sharex=True,
        gridspec_kw={"height_ratios": heights},
    )  # fmt: skip
    for axes, row, names in zip(panels[:, 0], rows, people, strict=True):
        for span in row["spans"]:
            begin, width = span["begin_ns"] / 1e3, (span["end_ns"] - span["begin_ns"]) / 1e3
            axes.barh(names.index(span["who"]), width, left=begin, height=0.8, color=colours[span["what"]])
        for mark in row["marks"]:
            place = 0 if mark["who"] == CPU else _first(names, mark["who"])
            style = {"begin": ">", "end": "|", "notified": "^", "deleted": "x"}[mark["what"]]
            axes.plot(mark["at_ns"] / 1e3, place - 0.45, style, color="black", markersize=5, clip_on=False)
        axes.set_yticks(range(len(names)), [literal(name) for name in names], fontsize=7)
        axes.set_ylim(len(names) - 0.4, -0.7)
        axes.set_title(f"{row['name']}: {row['took_ns'] / 1e3:.2f} us", fontsize=9, loc="left")
    handles = [Rectangle((0, 0), 1, 1, color=colour) for colour in colours.values()]
    figure.legend(handles, list(colours), fontsize=8, ncol=len(colours), loc="upper center")
    panels[-1, 0].set_xlabel("us, simulated; > begin, | end of a transaction, ^ notifies a peer, x log deleted")
    _save(figure, path, top=0.95)


def _colours(palette: str) -> Any:
    """The colours of a palette that lists its colours."""
    from matplotlib import colors, pyplot

    colour_map = pyplot.get_cmap(palette)
    assert isinstance(colour_map, colors.ListedColormap)
    return colour_map.colors


def _person(span: TimelineSpan) -> str:
    return "" if span["who"] == "CPU" else span["who"]


def _first(names: list[str], device: str) -> int:
    return next((place for place, name in enumerate(names) if name.startswith(device)), 0)


def _save(figure: Any, path: Path, top: float = 1.0) -> None:
    """Saves a figure; the layout stays below `top`, a fraction of its height."""
    from matplotlib import pyplot

    figure.tight_layout(rect=(0, 0, 1, top))
    try:
        drawn = io.BytesIO()
        figure.savefig(drawn, dpi=120, format=path.suffix.removeprefix(".") or "png")
    except ValueError as error:  # an unknown kind of file
        raise NearsideError(f"{files.printable(path)}: {error}") from None
    finally:
        pyplot.close(figure)
    files.write_bytes(path, drawn.getvalue())
