# SPDX-License-Identifier: Apache-2.0
"""Classes that all commands of the command line share."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

# The base class of all usage errors. Its module depends on the version of typer.
UsageError = typer.BadParameter.__mro__[1]


# The groups of `nearside --help`, in its order.
GROUPS = TRY, MEASURE, TABLES, PERSISTENT, ATTACH, DEVELOP = (
    "Try",
    "Measure",
    "Tables",
    "Persistent memory",
    "Attach",
    "Develop",
)


class Command(TyperCommand):
    """A command with the former option `--engine` for `--model`; the help does not show it."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        for parameter in [p for p in self.params if "--model" in p.opts]:
            former = copy.copy(parameter)
            former.name, former.opts, former.hidden, former.default = "engine", ["--engine"], True, None
            self.params.append(former)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        rest = super().parse_args(ctx, args)
        former = ctx.params.pop("engine", None)
        if former is not None:
            with suppress(OSError):
                print("nearside: warning: --engine is deprecated: it is --model now", file=sys.stderr)
            model = ctx.params["model"]
            if ctx.get_parameter_source("model").name == "COMMANDLINE" and model != former:
                raise UsageError(f"--model {model}, --engine {former}: --engine is --model now", ctx=ctx)
            ctx.params["model"] = former
        return rest


class Group(TyperGroup):
    """A group whose help lists commands by the headings of `GROUPS`, in that order."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        groups: dict[str, list[Any]] = {heading: [] for heading in GROUPS}
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if not command.hidden:
                groups.setdefault(getattr(command, "rich_help_panel", None) or "Commands", []).append((name, command))
        width = max(len(name) for commands in groups.values() for name, _ in commands)
        for heading, commands in groups.items():
            if not commands:
                continue
            with formatter.section(heading):
                limit = formatter.width - 6 - width
                formatter.write_dl([(f"{name:{width}}", one.get_short_help_str(limit)) for name, one in commands])


class App(typer.Typer):
    """An application of `Command`s; `group` is the heading of a command in the help."""

    def __init__(self, **options: Any) -> None:
        super().__init__(cls=Group, **options)

    def command(
        self, name: str | None = None, *, group: str | None = None, **options: Any
    ) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        return super().command(name, **{"cls": Command, "rich_help_panel": group} | options)
