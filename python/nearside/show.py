# SPDX-License-Identifier: Apache-2.0
"""Tables, progress bars and numbers for people."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

# Text is shown literally: file names may hold brackets and colons. Formatted text is a
# rich.text.Text, or has a `style`.
PLAIN: dict[str, Any] = {"highlight": False, "markup": False, "emoji": False}
# Without a terminal tables have a fixed width.
out = Console(**PLAIN, width=None if sys.stdout and sys.stdout.isatty() else 120)
err = Console(**PLAIN, stderr=True)


def nanoseconds(ns: float | None) -> str:
    """A time with a suitable unit."""
    if ns is None:
        return "-"
    for limit, divisor, unit in ((1e4, 1, "ns"), (1e7, 1e3, "us"), (1e10, 1e6, "ms")):
        if ns < limit:
            return f"{ns / divisor:.5g} {unit}"
    return f"{ns / 1e9:.4g} s"


def size(count: float) -> str:
    """A number of bytes with a suitable unit."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.4g} {unit}"
        count /= 1024
    return f"{count:.4g} TiB"


def table(title: str, *columns: str) -> Table:
    """A table with its first column aligned to the left and the others to the right."""
    result = Table(title=title, title_justify="left", title_style="bold", header_style="bold")
    for number, column in enumerate(columns):
        result.add_column(column, justify="right" if number else "left")
    return result


class Bar:
    """A progress bar on standard error, if that is a terminal."""

    def __init__(self, progress: Progress, task: Any) -> None:
        self.progress = progress
        self.task = task

    def __call__(self, done: int, total: int) -> None:
        self.progress.update(self.task, completed=done, total=total)

    def build(self, step: str, done: int, total: int) -> None:
        """Shows the progress of a build."""
        self.progress.update(self.task, description=step, completed=done, total=total or None)


@contextmanager
def bar(text: str, enabled: bool = True) -> Iterator[Bar]:
    """Shows progress while the block runs: `with bar("reading") as progress: device.read(n, progress=progress)`."""
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=err, transient=True, disable=not (enabled and sys.stderr.isatty())) as progress:
        yield Bar(progress, progress.add_task(text, total=None))


@contextmanager
def building(name: str, enabled: bool = True) -> Iterator[Callable[[str, int, int], None]]:
    """Shows the progress of a compilation: a bar on a terminal, else a line for each step."""
    if not enabled:
        yield lambda *_: None
        return
    if sys.stderr.isatty():
        with bar(f"{name}: preparing") as progress:
            yield lambda step, done, total: progress.build(f"{name}: {step}", done, total)
        return
    last = ""

    def line(step: str, done: int, total: int) -> None:
        nonlocal last
        if step != last:
            last = step
            print(f"{name}: {step}", file=sys.stderr, flush=True)

    yield line
