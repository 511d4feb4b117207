# SPDX-License-Identifier: Apache-2.0
"""Classes that all commands of the command line share."""

from __future__ import annotations

import copy
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin

import typer
from typer.core import TyperCommand, TyperGroup

from nearside.files import printable

# The base class of all usage errors. Its module depends on the version of typer.
UsageError: Any = typer.BadParameter.__mro__[1]
Called = TypeVar("Called", bound=Callable[..., Any])


# The groups of `nearside --help`, in its order.
GROUPS = TRY, MEASURE, TABLES, PERSISTENT, ATTACH, DEVELOP = (
    "Try",
    "Measure",
    "Tables",
    "Persistent memory",
    "Attach",
    "Develop",
)


def value_name(parameter: Any) -> str:
    """What the help calls the value of an option or argument that has no name of its author's."""
    kind = parameter.type_descriptor.annotation
    kinds = [one for one in get_args(kind) or (kind,) if one is not type(None)]
    if get_origin(kind) is Literal:
        return "|".join(map(str, kinds))
    if isinstance(kinds[0], type) and issubclass(kinds[0], Enum):
        return "|".join(str(member.value) for member in kinds[0])
    if parameter.param_type_name == "argument":
        return str(parameter.name).upper()
    return {int: "INTEGER", float: "NUMBER", Path: "FILE"}.get(kinds[0], "TEXT")


def one_a_line(examples: str | None) -> str | None:
    """The examples of a command, which are written `Examples: first · second`, a line each."""
    match = re.fullmatch(r"(Examples?:) (.*)", examples or "", re.DOTALL)
    return f"\b\n{match[1]}\n" + "\n".join(f"  {one}" for one in match[2].split(" · ")) if match else examples


class Command(TyperCommand):
    """A command whose options refuse to be given twice unless they are lists.

    It also has the former option `--engine` for `--model`; the help does not show it.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options | {"epilog": one_a_line(options.get("epilog"))})
        for parameter in self.params:
            if not parameter.metavar and not getattr(parameter, "is_flag", False):
                parameter.metavar = value_name(parameter)
        for parameter in [p for p in self.params if "--model" in p.opts]:
            former: Any = copy.copy(parameter)
            former.name, former.opts, former.hidden, former.default = "engine", ["--engine"], True, None
            self.params.append(former)

    def make_parser(self, ctx: Any) -> Any:
        parser = super().make_parser(ctx)
        given: dict[int, Any] = {}
        options: list[Any] = [*parser._long_opt.values(), *parser._short_opt.values()]
        for option in {id(one): one for one in options}.values():
            if option.action in ("store", "store_const"):
                option.process = _once(option.process, option, given, ctx)
        return parser

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            rest = super().parse_args(ctx, args)
        except UsageError as error:
            if getattr(error, "possibilities", None):
                error.possibilities = [option for option in error.possibilities if option != "--engine"]
            raise
        former = ctx.params.pop("engine", None)
        if former is not None:
            with suppress(OSError):
                print("nearside: warning: --engine is deprecated: it is --model now", file=sys.stderr)
            model = ctx.params["model"]
            if ctx.get_parameter_source("model").name == "COMMANDLINE" and model != former:
                raise UsageError(
                    f"--model {printable(model)}, --engine {printable(former)}: --engine is --model now", ctx=ctx
                )
            ctx.params["model"] = former
        return rest


def _once(process: Callable[..., None], option: Any, given: dict[int, Any], ctx: Any) -> Callable[..., None]:
    """`process` of an option's parser. A second value is an error, and so is a flag beside its opposite."""

    def checked(value: Any, state: Any) -> None:
        flag, parameter = option.action == "store_const", option.obj
        value = option.const if flag else value
        before = given.setdefault(id(parameter), value) if flag else given.get(id(parameter))
        if flag and before != value:
            raise UsageError(f"{parameter.opts[0]} and {parameter.secondary_opts[0]} are opposites: give one", ctx=ctx)
        if not flag and id(parameter) in given:
            name = max(parameter.opts, key=len)
            several = parameter.metavar == "COLUMNS" and before != value
            hint = f'give one, such as {name} "{before}, {value}"' if several else "give one"
            raise UsageError(f"{name} stands twice: {printable(before)} and {printable(value)}; {hint}", ctx=ctx)
        given[id(parameter)] = value
        process(value, state)

    return checked


class Group(TyperGroup):
    """A group whose help lists commands by the headings of `GROUPS`, in that order."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        groups: dict[str, list[Any]] = {heading: [] for heading in GROUPS}
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            assert command is not None
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
    ) -> Callable[[Called], Called]:
        return super().command(name, **{"cls": Command, "rich_help_panel": group} | options)
