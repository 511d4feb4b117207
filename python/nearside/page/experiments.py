# SPDX-License-Identifier: Apache-2.0
"""The page of experiments: parameters, our figures, the paper's, the limit, and the command to repeat it."""

from __future__ import annotations

import math
from typing import Any

from nearside.claims.report import number as four_digits
from nearside.page import html as h
from nearside.page import svg

TIMES = {"simulated": "simulated time", "wall-clock": "wall-clock time", "none": "no times in it"}
TITLE = "Nearside: figures of the papers, measured"


def html(docs: list[dict[str, Any]]) -> str:
    """The page of these documents, which are its only source."""
    body = [f"<h1>{h.text(TITLE)}</h1>"]
    body.append(
        "<p>Each figure stands beside the paper's and beside its limit, also where ours is worse, and where the "
        "comparison flatters us the text says so. <b>Simulated</b> time is that of the device's and the link's clocks; "
        "it does not depend on the machine that simulates.</p>"
    )
    partial = [doc for doc in docs if doc["status"] == "partial"]
    if partial:
        names = ", ".join(f"{doc['name']} ({doc['engine']})" for doc in partial)
        body.append(
            f'<p class="warn">Partial: {h.text(names)}. These were ended early; what is missing is not shown.</p>'
        )
    body.append(_overview(docs))
    body += [_section(doc) for doc in docs]
    return h.page(TITLE, "\n".join(body))


def number(value: float | None) -> str:
    """Four significant digits, and all digits before the decimal point."""
    return f"{value:,.0f}" if value is not None and abs(value) >= 1000 else four_digits(value)


def deviation(figure: dict[str, Any]) -> str:
    """The deviation of several runs from their mean, to two digits; empty for a single run."""
    off = figure.get("deviation")
    return "" if off is None else f"± {off:.2g}"


def _anchor(doc: dict[str, Any]) -> str:
    return f"{doc['name']}-{doc['engine']}"


def _variant(doc: dict[str, Any]) -> str:
    return "quick" if doc["quick"] else "full"


def _state(doc: dict[str, Any]) -> h.Raw:
    if doc["status"] == "complete":
        return h.Raw('<span class="yes">complete</span>')
    return h.Raw(f'<span class="no">partial, {len(doc["rows"])} of {h.text(doc["cases"])} rows</span>')


def _overview(docs: list[dict[str, Any]]) -> str:
    rows = []
    for doc in docs:
        link = h.Raw(f'<a href="#{h.text(_anchor(doc))}">{h.text(doc["title"])}</a>')
        stated = sum(f["source"] is not None for f in doc["figures"])
        count = f"{stated} beside the paper's, {len(doc['figures'])} in all"
        rows.append((link, doc["source"], doc["engine"], _variant(doc), _state(doc), count))
    columns = ("figure", "where it is", "model", "run", "state", "values")
    return h.table(columns, rows, "cards left")


def _section(doc: dict[str, Any]) -> str:
    parts = [f'<section id="{h.text(_anchor(doc))}">', f"<h2>{h.text(doc['title'])}</h2>"]
    parts.append(f'<p class="source">{h.text(doc["source"])}</p>')
    if doc["status"] == "partial":
        why = f"Partial: {len(doc['rows'])} of {doc['cases']} rows ({doc['reason'] or 'ended early'})."
        parts.append(f'<p class="warn">{h.text(why)}</p>')
    parts += [f"<p>{h.prose(line)}</p>" for line in doc["text"]]
    parts.append(svg.figures(doc["plots"], _anchor(doc)))
    published = [f for f in doc["figures"] if f["source"] is not None]
    others = [f for f in doc["figures"] if f["source"] is None]
    if published:
        parts.append(_figures(doc, published))
    if others:
        parts.append(h.details(f"{len(others)} figures that the paper states no number for", _figures(doc, others)))
    parts.append(_how(doc))
    parts.append(h.details(f"All {len(doc['rows'])} rows", _rows(doc["rows"])))
    return "\n".join([*parts, "</section>"])


def _figures(doc: dict[str, Any], figures: list[dict[str, Any]]) -> str:
    def with_unit(value: float | None, figure: dict[str, Any]) -> str:
        return "-" if value is None else f"{number(value)} {figure['unit']}".strip()

    rows = []
    for f in figures:
        theirs = f["paper_text"] or with_unit(f["paper"], f)
        if f["source"]:
            theirs = h.Raw(
                f'{h.text(theirs).replace(" %", "&nbsp;%")}<br><span class="soft">{h.text(f["source"])}</span>'
            )
        limit = with_unit(f["limit"], f)
        if f["limit_text"]:
            limit = h.Raw(f'{h.text(limit)}<br><span class="soft">{h.text(f["limit_text"])}</span>')
        of_limit = "-" if f["of_limit"] is None else f"{100 * f['of_limit']:.4g} %"
        wish = {"higher": "more is better", "lower": "less is better", "equal": "equal is best"}.get(f["better"], "")
        what = h.Raw(f'{h.text(f["text"])} <span class="soft">({wish})</span>')
        ours = h.Raw(f"<b>{h.text(with_unit(f['value'], f))}</b>")
        if off := deviation(f):
            ours = h.Raw(f'{ours}<br><span class="soft">{h.text(off)}, {h.text(f.get("runs"))} runs</span>')
        model = f"{doc['engine']}, {f['time']}" if f["time"] != "none" else doc["engine"]
        rows.append((what, ours, theirs, number(f["ratio"]), limit, of_limit, model))
    columns = ("what was measured", "ours", "the paper's", "ours / theirs", "limit", "ours / limit", "model, time")
    return h.table(columns, rows, "cards")


def _how(doc: dict[str, Any]) -> str:
    design = doc["design"]
    rows = [
        ("model", f"{doc['engine']}; {TIMES.get(doc['time'], doc['time'])}"),
        ("design", f"{design['name']}, hash of its values {design['hash'][:16]}" if design else "none"),
        ("seed", doc["seed"]),
        ("parameters", ", ".join(f"{key} = {value}" for key, value in doc["parameters"].items())),
        ("run", f"{_variant(doc)}, {len(doc['rows'])} of {doc['cases']} rows, {doc['duration_s']:.1f} s wall-clock"),
        ("when, revision", f"{doc['when']}, {doc['revision'] or 'unknown'}"),
        ("machine", doc["machine"]),
    ]
    table = h.table(("", ""), rows, "left")
    return f"<h3>To have it again</h3><pre><code>{h.text(doc['command'])}</code></pre>{table}"


def _rows(rows: list[dict[str, Any]]) -> str:
    """The rows as measured; numbers to four digits."""

    def shown(value: Any) -> Any:
        if value is None:
            return ""
        return number(value) if isinstance(value, float) and math.isfinite(value) else value

    columns = list(dict.fromkeys(key for row in rows for key in row))
    return h.table(columns, [[shown(row.get(column)) for column in columns] for row in rows])
