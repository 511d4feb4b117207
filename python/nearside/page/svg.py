# SPDX-License-Identifier: Apache-2.0
"""Plots of documents as SVG within a page: matplotlib draws them, the page's style gives the colours."""

from __future__ import annotations

import hashlib
import io
import json
import re
import warnings
from html import escape
from typing import Any

from nearside.plots import literal

WIDTH, HEIGHT = 4.4, 3.1
# Colours for matplotlib, replaced by the page's: so plots follow the light and the dark scheme.
TEXT, GRID, LIMIT = "#010203", "#010204", "#010205"
SERIES = ["#010210", "#010211", "#010212", "#010213"]
STYLE = {TEXT: "currentColor", GRID: "var(--grid)", LIMIT: "var(--limit)"}
STYLE |= {colour: f"var(--c{number})" for number, colour in enumerate(SERIES)}
MARKERS = "osD^"
# The most letters of labels along the axis that are not turned.
CROWDED = 42


def draw(plot: dict[str, Any], name: str) -> str:
    """An <svg> element, the same for the same plot; `name` makes its identifiers unique.

    Our values are lines or full bars, the paper's are points or hatched bars.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    digest = hashlib.sha256(json.dumps(plot, sort_keys=True).encode()).hexdigest()[:8]
    settings: dict[Any, Any] = {
        "svg.fonttype": "none", "svg.hashsalt": digest, "font.size": 10, "text.color": TEXT, "axes.edgecolor": TEXT,
        "axes.labelcolor": TEXT, "xtick.color": TEXT, "ytick.color": TEXT, "grid.color": GRID, "hatch.linewidth": 0.8,
    }  # fmt: skip
    # Of glyphs that a font lacks, and of axes without a value: the rest is drawn.
    with pyplot.rc_context(settings), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        figure, axes = pyplot.subplots(figsize=(WIDTH, HEIGHT))
        try:
            (_bars if plot["kind"] == "bars" else _lines)(axes, plot)
            _frame(axes, plot)
            figure.tight_layout()
            out = io.StringIO()
            figure.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
        finally:
            pyplot.close(figure)
    return _inline(out.getvalue(), plot["title"], name)


def _colour(series: list[dict[str, Any]], number: int) -> str:
    """The colour of a series. With equal numbers of series, ours and the paper's have the same colours in pairs."""
    of = series[number]["of"]
    if of == "limit":
        return LIMIT
    before = sum(one["of"] == of for one in series[:number])
    ours, theirs = (sum(one["of"] == kind for one in series) for kind in ("ours", "paper"))
    if of == "paper" and not ours == theirs > 1:
        before += ours
    return SERIES[before % len(SERIES)]


def _lines(axes: Any, plot: dict[str, Any]) -> None:
    places = range(len(plot["x"]))
    for number, one in enumerate(plot["series"]):
        colour, name = _colour(plot["series"], number), literal(one["name"])
        y = [float("nan") if value is None else value for value in one["y"]]
        marker = MARKERS[SERIES.index(colour)] if colour in SERIES else ""
        if one["of"] == "limit":
            axes.plot(places, y, "--", color=colour, linewidth=1.2, label=name)
        elif one["of"] == "paper":
            axes.plot(places, y, marker, color=colour, markerfacecolor="none", markersize=8, label=name)
        else:
            axes.plot(places, y, f"{marker}-", color=colour, markersize=4, linewidth=1.5, label=name)
        _deviations(axes, one, places, colour)


def _bars(axes: Any, plot: dict[str, Any]) -> None:
    count = len(plot["series"])
    width = 0.8 / max(count, 1)
    for number, one in enumerate(plot["series"]):
        colour, name = _colour(plot["series"], number), literal(one["name"])
        places = [place - 0.4 + width * (number + 0.5) for place in range(len(plot["x"]))]
        y = [0 if value is None else value for value in one["y"]]
        look = {"color": colour} if one["of"] == "ours" else {"facecolor": "none", "edgecolor": colour, "hatch": "///"}
        axes.bar(places, y, width * 0.92, label=name, **look)
        _deviations(axes, one, places, TEXT)


def _deviations(axes: Any, series: dict[str, Any], places: Any, colour: str) -> None:
    """Error bars: the standard deviation of several runs."""
    if not any(series.get("deviation") or ()):
        return
    y, off = ([float("nan") if v is None else v for v in series[key]] for key in ("y", "deviation"))
    axes.errorbar(list(places), y, yerr=off, fmt="none", ecolor=colour, elinewidth=1, capsize=2)


def _frame(axes: Any, plot: dict[str, Any]) -> None:
    crowded = sum(map(len, plot["x"])) > CROWDED
    look = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if crowded else {}
    axes.set_xticks(range(len(plot["x"])), [literal(x) for x in plot["x"]], **look)
    axes.set_xlabel(literal(plot["x_label"]))
    axes.set_ylabel(literal(plot["y_label"]))
    if plot["log"]:
        axes.set_yscale("log")
    else:
        top, floor = axes.get_ylim()[1], plot["floor"]
        axes.set_ylim(floor, floor + (top - floor) * 1.08)
    axes.grid(axis="y", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=9, frameon=False, ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.0))


def _inline(drawn: str, title: str, name: str) -> str:
    """The SVG element for the page: unique identifiers, the page's colours."""
    svg = drawn[drawn.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.S)
    used = set(re.findall(r'(?:href="|url\()#([^")]+)', svg))
    svg = re.sub(r' id="([^"]*)"', lambda m: f' id="{name}-{m[1]}"' if m[1] in used else "", svg)
    svg = re.sub(r'(href="|url\()#', rf"\1#{name}-", svg)
    for colour, style in STYLE.items():
        svg = svg.replace(colour, style)
    # A fixed width would keep it from following the page's.
    svg = re.sub(
        r"<svg ([^>]*?)>", lambda m: f'<svg {_attributes(m[1])} role="img" aria-label="{escape(title)}">', svg, count=1
    )
    return svg.strip()


def _attributes(text: str) -> str:
    return re.sub(r'\s*\b(?:width|height|version|xmlns(?::xlink)?)="[^"]*"', "", text).strip() + (
        ' xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    )


def figures(plots: list[dict[str, Any]], name: str) -> str:
    """All plots of a section, side by side where there is room."""
    drawn = [
        f"<figure><figcaption>{escape(plot['title'])}</figcaption>{draw(plot, f'{name}-{number}')}</figure>"
        for number, plot in enumerate(plots)
    ]
    return f'<div class="plots">{"".join(drawn)}</div>'
