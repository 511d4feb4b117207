# SPDX-License-Identifier: Apache-2.0
"""The page of claims: tables and plots first, then every claim."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from nearside.claims import matrices
from nearside.claims.registry import all_claims
from nearside.claims.report import TITLES, combined, comparison_summary, describe_run, number, published, what
from nearside.page import html as h
from nearside.page import svg

TITLE = "Nearside: validation"


def html(*docs: dict[str, Any]) -> str:
    """The page of one run of claims, or of several; for repeated claims the last run counts."""
    entries = combined(docs)
    failing = [e for e in entries if not e["holds"]]
    missing = sorted(set(all_claims()) - {e["name"] for e in entries})
    body = [f"<h1>{h.text(TITLE)}</h1>"]
    body.append(
        "<p>Every figure that this project states is a claim: a name, a bound, and a measurement that anyone can rerun "
        "with <code>nearside claim run NAME</code>. <b>Simulated</b> time is that of the device's and the link's "
        "clocks, wall-clock time that of the machine.</p>"
    )
    body.append(f"<p><b>{len(entries) - len(failing)} of {len(entries)} claims hold.</b></p>")
    if failing:
        names = ", ".join(f"{e['name']} ({_value(e)}, bound {e['bound']})" for e in failing)
        body.append(f'<p class="warn">Do not hold: {h.text(names)}.</p>')
    if missing:
        body.append(f"<p>Not measured: {h.text(', '.join(missing))}.</p>")
    body += [f"<p>{h.prose(line)}</p>" for line in comparison_summary(entries)]
    runs = [describe_run(n, doc, [e for e in entries if e["run"] == n]) for n, doc in enumerate(docs, 1)]
    body.append(f"<ul>{''.join(f'<li>{h.prose(run)}</li>' for run in runs)}</ul>")
    body.append(svg.figures(matrices.plots(entries), "plot"))
    for matrix in matrices.matrices(entries):
        rows = [(label, *map(_cell, cells)) for label, cells in matrix.rows]
        body.append(h.table((matrix.corner, *matrix.columns), rows, caption=matrix.title))
    body.append("<h2>Every claim</h2>")
    for group, members in groupby(entries, key=lambda e: e["name"].split(".")[0]):
        listed = list(members)
        held = sum(e["holds"] for e in listed)
        body.append(
            h.details(f"{TITLES.get(group, group)}: {held} of {len(listed)} hold", _rows(listed, len(docs) > 1))
        )
    return h.page(TITLE, "\n".join(body))


def _value(entry: dict[str, Any]) -> str:
    return f"{number(entry['value'])} {entry['unit']}".strip()


def _cell(entry: dict[str, Any] | str | None) -> h.Raw:
    if not isinstance(entry, dict):
        return h.Raw(h.text(entry or ""))
    kind = "" if entry["holds"] else ' class="no"'
    title = f"{entry['name']}, bound {entry['bound']}"
    return h.Raw(f'<span{kind} title="{h.text(title)}">{h.text(number(entry["value"]))}</span>')


def _rows(entries: list[dict[str, Any]], runs: bool) -> str:
    rows = []
    for e in entries:
        note = (e["error"] or e["detail"] or "").partition("\n")[0]
        lines = "<br>".join(map(h.text, what(e)))
        text = f'<code>{h.text(e["name"])}</code><br>{lines}<br><span class="soft">{h.text(note)}</span>'
        theirs = h.Raw("<br>".join(map(h.text, published(e))))
        holds = h.Raw('<span class="yes">yes</span>' if e["holds"] else '<span class="no">no</span>')
        kind = f"{e['engine']}, {e['time']}" + (f", run {e['run']}" if runs else "")
        rows.append((h.Raw(text), _value(e), e["bound"], holds, theirs, kind, f"{e['duration_s']:.1f} s"))
    return h.table(("claim", "value", "bound", "holds", "published", "model, time", "took"), rows, "cards")
