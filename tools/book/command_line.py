# SPDX-License-Identifier: Apache-2.0
"""The reference of the command line: from the tree of commands that Typer makes of `nearside.cli`."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import Any

HEAD = """# Command line

The commands of `nearside`, as `nearside COMMAND --help` describes them. A device's times are simulated unless a
command says that they are wall-clock. With `--json` a command prints one JSON document. Its exit status is 0, 1 after
an error, 2 for wrong usage, and 130 after Ctrl-C.
"""


def page() -> str:
    """The page in Markdown."""
    import typer
    from nearside import commands as common
    from nearside.cli import app

    root = typer.main.get_command(app)
    lines = [HEAD, *_parameters(root)]
    # In the order of `nearside --help`.
    panels: dict[str, list[Any]] = {heading: [] for heading in getattr(common, "GROUPS", ())}
    for command in _visible(root):
        panel = getattr(command, "rich_help_panel", None)
        panels.setdefault(panel if isinstance(panel, str) else "Commands", []).append(command)
    for panel, commands in ((panel, commands) for panel, commands in panels.items() if commands):
        lines += [f"## {panel}", "", "| command | what it does |", "|---|---|"]
        names = [(f"nearside {command.name}", command) for command in commands]
        lines += [f"| [`{name}`](#{_anchor(name)}) | {_cell(_first(command))} |" for name, command in names]
        lines.append("")
        for name, command in names:
            lines += _command(name, command, 3)
    return "\n".join(lines)


def _visible(group: Any) -> list[Any]:
    return [command for command in group.commands.values() if not command.hidden]


def _anchor(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name)


def _first(command: Any) -> str:
    """The first sentence of a command's help."""
    text = " ".join((command.help or "").split("\n\n")[0].split())
    return re.split(r"(?<=\.)\s", text)[0]


def _command(name: str, command: Any, level: int) -> Iterator[str]:
    yield f"{'#' * level} `{name}` {{: #{_anchor(name)} }}"
    yield ""
    if hasattr(command, "commands"):
        yield from _text(command.help)
        yield from _parameters(command)
        for inner in _visible(command):
            yield from _command(f"{name} {inner.name}", inner, level + 1)
        return
    arguments = [parameter for parameter in _shown(command) if parameter.param_type_name == "argument"]
    usage = [name, "[OPTIONS]", *(_argument(argument) for argument in arguments)]
    yield from ("```text", " ".join(usage), "```", "")
    yield from _text(command.help)
    yield from _parameters(command)
    yield from _epilog(command.epilog)


def _shown(command: Any) -> list[Any]:
    hidden = ("help", "install_completion", "show_completion")
    return [p for p in command.params if not getattr(p, "hidden", False) and p.name not in hidden]


def _argument(argument: Any) -> str:
    name = (argument.metavar or argument.name).upper().strip("[]")
    name = f"{name}..." if argument.nargs == -1 and not name.endswith("...") else name
    return name if argument.required else f"[{name}]"


def _option(option: Any) -> str:
    names = [*option.opts, *option.secondary_opts]
    value = "" if getattr(option, "is_flag", False) else f" {option.metavar}"
    return ", ".join(f"`{name}{value if name == names[-1] else ''}`" for name in names)


def _parameters(command: Any) -> Iterator[str]:
    shown = _shown(command)
    if not shown:
        return
    yield from ("| argument, option | default | meaning |", "|---|---|---|")
    for parameter in shown:
        is_argument = parameter.param_type_name == "argument"
        name = f"`{_argument(parameter)}`" if is_argument else _option(parameter)
        meaning = _cell(" ".join((parameter.help or "").split())) + _range(parameter)
        yield f"| {_cell(name)} | {_default(parameter)} | {meaning} |"
    yield ""


def _default(parameter: Any) -> str:
    if parameter.required:
        return "required"
    value = parameter.default
    if callable(value) or value in (None, (), [], "", False) or "UNSET" in repr(value):
        return ""
    if value is True:
        return "on"
    return "`" + (" ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)) + "`"


def _range(parameter: Any) -> str:
    least, most = parameter.min, parameter.max
    if least is None and most is None:
        return ""
    if most is None or most >= 1 << 32:
        return f" At least {least}."
    return f" {least} to {most}." if least is not None else f" At most {most}."


def _cell(text: str) -> str:
    """Text in a cell of a table."""
    other = {"<": "&lt;", "|": "&#124;"}
    return re.sub(r"`([^`]*)`|<|\|", lambda match: other.get(match[0]) or _code(match[1]), text)


def _code(text: str) -> str:
    """Code in a cell. Between backticks a bar would end the cell or keep its backslash."""
    return "<code>" + html.escape(text, quote=False).replace("|", "&#124;") + "</code>"


def _text(text: str | None) -> Iterator[str]:
    """Paragraphs of a help text; one that begins with `\\b` keeps its lines."""
    for paragraph in re.split(r"\n\s*\n", (text or "").replace("\f", "")):
        if paragraph.lstrip().startswith("\b"):
            yield from ("```text", paragraph.lstrip().removeprefix("\b").strip("\n"), "```", "")
        elif paragraph.strip():
            yield " ".join(paragraph.split()).replace("<", "&lt;").replace("*", "\\*")
            yield ""


def _epilog(text: str | None) -> Iterator[str]:
    """Examples of a command, a line each."""
    match = re.match(r"\s*Examples?:\s*(.*)", (text or "").replace("\b", ""), re.DOTALL)
    if not match:
        yield from _text(text)
        return
    lines = [line.strip() for part in match[1].splitlines() for line in part.split(" · ")]
    yield from ("```sh", *(line for line in lines if line), "```", "")
