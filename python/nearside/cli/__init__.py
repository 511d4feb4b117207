# SPDX-License-Identifier: Apache-2.0
"""The command line: `nearside --help`.

`app` is its root. Each of the other modules has the commands of one group of the help; `options` has what several
commands share. The commands of claims, experiments and correlation are beside what they run.
"""

from __future__ import annotations

import io
import os
import sys
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import typer

from nearside import files
from nearside._native import NearsideError
from nearside.claims import cli as claims_cli
from nearside.cli import attach, develop, first_steps, guest, measure, persistent_memory, tables  # noqa: F401
from nearside.cli.app import app
from nearside.commands import MEASURE, UsageError
from nearside.correlate import cli as correlate_cli
from nearside.device import LateReadsWarning
from nearside.experiments import cli as experiments_cli

app.add_typer(claims_cli.app, name="claim", rich_help_panel=MEASURE)
app.add_typer(experiments_cli.app, name="experiment", rich_help_panel=MEASURE)
app.command("report", group=MEASURE, epilog=experiments_cli.REPORT_EPILOG)(experiments_cli.report)
app.command("correlate", group=MEASURE, epilog=correlate_cli.EPILOG)(correlate_cli.correlate)

# Exit status after Ctrl-C, as of a shell.
INTERRUPTED = 130

ClickException = UsageError.__mro__[1]


def main() -> None:
    """The entry point: every expected failure is one line on standard error and a non-zero exit status."""
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", errors="backslashreplace")  # noqa: SIM115
    if sys.stdout is None:
        sys.exit(_complain("standard output is closed; send it to /dev/null if nobody needs it", 1))
    warnings.showwarning = _warn
    # Names of files need not be text, and an encoding need not have all of it. Standard error
    # does this by itself.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    files.on_stdout = _print_apart
    try:
        status = _run()
        sys.stdout.flush()
    except OSError as error:
        # What is left to print goes nowhere: the interpreter would fail at it once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        named = error.filename or "standard output"
        status = 1 if isinstance(error, BrokenPipeError) else _complain(f"{named}: {error.strerror}", 1)
    sys.exit(status)


def _print_apart() -> None:
    """Data have gone to standard output: what is for people goes to standard error, if that is another one."""
    with suppress(OSError):
        mixed = os.path.sameopenfile(1, 2) and not os.isatty(1)
        sys.stdout = Path(os.devnull).open("w", errors="backslashreplace") if mixed else sys.stderr  # noqa: SIM115


def _run() -> int:
    """Runs the command; returns the exit status."""
    try:
        status = app(standalone_mode=False)
        if status == INTERRUPTED:  # typer has caught the exception itself
            raise KeyboardInterrupt
    except NearsideError as error:
        status = _complain(str(error), getattr(error, "status", 1))
    except ClickException as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            print(error.format_message())
            status = 2
        else:
            status = _complain(f"{error.format_message()} (see {_help_of(error)} --help)", 2)
    except (KeyboardInterrupt, typer.Abort):
        status = _complain("interrupted", INTERRUPTED)
    return status if isinstance(status, int) else 0


def _help_of(error: Exception) -> str:
    context = getattr(error, "ctx", None)
    return context.command_path if context is not None else "nearside"


def _warn(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: Any, **_options: Any
) -> None:
    """Warnings that are meant for people are one line, too; others say where they come from."""
    place = "" if issubclass(category, LateReadsWarning) else f"{filename}:{lineno}: {category.__name__}: "
    with suppress(OSError):
        print(f"nearside: warning: {place}{message}", file=sys.stderr)


def _complain(text: str, status: int) -> int:
    with suppress(OSError):  # there is nowhere else to report it
        print(f"nearside: {text}", file=sys.stderr)
    return status
