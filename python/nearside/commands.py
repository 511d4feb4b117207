"""What all commands of the command line have in common."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import typer
from typer.core import TyperCommand

# The base class of all complaints about the command line. Which module it is in depends on the version of typer.
UsageError = typer.BadParameter.__mro__[1]


class Command(TyperCommand):
    """A command whose option `--model` has its former name, too: `--engine`, which no help shows."""

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


class App(typer.Typer):
    """Commands, each of them a `Command`."""

    def command(self, name: str | None = None, **options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        return super().command(name, **{"cls": Command} | options)
