# SPDX-License-Identifier: Apache-2.0
"""The frame of a page: style, tables, escaping. It loads nothing from outside."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

# No network access, whatever a result contains.
POLICY = "default-src 'none'; style-src 'unsafe-inline'"

STYLE = """
:root { color-scheme: light dark; --back: #ffffff; --text: #1c2330; --soft: #5b6575; --line: #d6dbe3; --panel: #f5f7fa;
  --warn: #9a4b00; --warn-back: #fff1e0; --good: #1a6b3c;
  --c0: #1f5fb4; --c1: #c2410c; --c2: #0f7b6c; --c3: #8b3fa8; --limit: #77808f; --grid: #e3e7ee; }
@media (prefers-color-scheme: dark) {
  :root { --back: #14181f; --text: #e4e8ef; --soft: #9aa5b5; --line: #343c49; --panel: #1c222c;
    --warn: #ffb86b; --warn-back: #3a2a14; --good: #6fd398;
    --c0: #7ab0ff; --c1: #ff9d66; --c2: #5fd3bf; --c3: #d79bf0; --limit: #8f99a8; --grid: #2b333f; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem 1.2rem 4rem; max-width: 76rem; background: var(--back); color: var(--text);
  overflow-wrap: break-word; font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
h1 { font-size: 1.7rem; margin: 0.6rem 0; } h2 { font-size: 1.3rem; margin: 2.4rem 0 0.4rem; }
h3 { font-size: 1.05rem; margin: 1.4rem 0 0.3rem; } p { margin: 0.5rem 0; max-width: 70ch; }
a { color: var(--c0); } code { font: 0.9em ui-monospace, "DejaVu Sans Mono", monospace; overflow-wrap: anywhere; }
pre { background: var(--panel); border: 1px solid var(--line); border-radius: 6px; padding: 0.6rem 0.8rem;
  overflow-x: auto; }
.soft { color: var(--soft); } .source { color: var(--soft); margin-top: 0; }
.warn { color: var(--warn); background: var(--warn-back); border-left: 4px solid var(--warn); padding: 0.5rem 0.8rem;
  border-radius: 4px; } .no { color: var(--warn); font-weight: 600; } .yes { color: var(--good); }
.scroll { overflow-x: auto; margin: 0.6rem 0; }
table { border-collapse: collapse; font-size: 0.92rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding: 0.3rem 0; }
th, td { padding: 0.3rem 0.7rem; border-bottom: 1px solid var(--line); text-align: right; vertical-align: top; }
th { color: var(--soft); font-weight: 600; } th:first-child, td:first-child, .left td { text-align: left; }
.left th { text-align: left; } b, .unit { white-space: nowrap; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 22rem), 1fr)); gap: 1rem;
  margin: 1rem 0; }
figure { margin: 0; background: var(--panel); border: 1px solid var(--line); border-radius: 8px; padding: 0.6rem; }
figcaption { font-weight: 600; font-size: 0.95rem; } figure svg { width: 100%; height: auto; display: block; }
details { margin: 0.8rem 0; } summary { cursor: pointer; color: var(--c0); }
@media (max-width: 42rem) {
  body { padding: 0.6rem 0.8rem 3rem; }
  table.cards thead { display: none; }
  table.cards, table.cards tbody, table.cards tr, table.cards td { display: block; width: 100%; text-align: left; }
  table.cards tr { border-bottom: 2px solid var(--line); padding: 0.5rem 0; }
  table.cards td { border: 0; padding: 0.1rem 0; }
  table.cards td:not(:first-child) { display: inline-block; width: auto; margin-right: 1.2rem; }
  table.cards td:first-child { font-weight: 600; }
  table.cards td[data-label]::before { content: attr(data-label) ": "; color: var(--soft); }
}
"""


class Raw(str):
    """Text that is already HTML."""

    __slots__ = ()


def text(value: object) -> str:
    """The escaped text, unless it is already HTML."""
    return str(value) if isinstance(value, Raw) else escape(str(value))


def table(columns: Sequence[object], rows: Iterable[Sequence[object]], kind: str = "", caption: str = "") -> Raw:
    """A table. With "cards" a narrow screen shows each row as a separate block, with the columns'
    names.

    With "left" all cells are aligned to the left.
    """
    head = "".join(f'<th scope="col">{text(column)}</th>' for column in columns)
    body = []
    for row in rows:
        cells = []
        for number, (column, cell) in enumerate(zip(columns, row, strict=True)):
            label = f' data-label="{escape(str(column))}"' if "cards" in kind and number and column else ""
            cells.append(f"<td{label}>{text(cell)}</td>")
        body.append(f"<tr>{''.join(cells)}</tr>")
    title = f"<caption>{text(caption)}</caption>" if caption else ""
    top = f"<thead><tr>{head}</tr></thead>" if any(columns) else ""
    inner = f"{title}{top}<tbody>{''.join(body)}</tbody>"
    return Raw(f'<div class="scroll"><table class="{kind}">{inner}</table></div>')


def prose(line: str) -> Raw:
    """A line of text in which `words` between backticks are code."""
    return Raw(re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(line)))


def details(summary: str, inner: str) -> Raw:
    return Raw(f"<details><summary>{text(summary)}</summary>{inner}</details>")


def page(title: str, body: str) -> str:
    """The complete file."""
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{text(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )
