# SPDX-License-Identifier: Apache-2.0
"""Result documents: what was run, on what, and the figures, each with the paper's figure."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import tempfile
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nearside import files
from nearside._native import NearsideError
from nearside.device import Design, root

FORMAT = 1


def document(what: str, design: Design | None, seed: int | None, model: str, **content: Any) -> dict[str, Any]:
    """The frame of a result document. `model` has simulated it; `figures` in the content come from `figure`."""
    return {
        "format": FORMAT,
        "what": what,
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "engine": model,
        "design": design and {"name": design.name, "hash": design.hash, "values": design.values},
        "seed": seed,
        "revision": revision(),
        "machine": f"{platform.machine()}, {os.cpu_count()} CPUs",
        **content,
    }


def revision() -> str | None:
    """The commit of the sources, with the suffix `-dirty` after changes; None without git or without a checkout."""
    try:
        command = ["git", "-C", str(root()), "describe", "--always", "--dirty", "--exclude=*"]
        done = subprocess.run(command, capture_output=True, text=True)
    except (OSError, NearsideError):
        return None
    return done.stdout.strip() or None


def figure(
    name: str, value: float | str, unit: str, time: str = "simulated", paper: str | None = None
) -> dict[str, Any]:
    """A figure; `time` is "simulated" or "wall-clock", `paper` the paper's statement, with its name."""
    return {"name": name, "value": value, "unit": unit, "time": time, "paper": paper}


def folder_path() -> Path:
    """`results` in the working directory, or `$NEARSIDE_RESULTS`; it may not exist yet."""
    return Path(os.environ.get("NEARSIDE_RESULTS", "results"))


def folder() -> Path:
    """The results folder, created if it does not exist."""
    path = folder_path()
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise NearsideError(
            f"{files.printable(path)} is no folder; results are saved in `results`, or in $NEARSIDE_RESULTS"
        ) from None
    except OSError as error:
        raise NearsideError(f"{files.printable(path)}: {error.strerror}") from None
    return path


def check_outputs(
    names: Iterable[str], outputs: Iterable[Path | None] = (), inputs: Iterable[Path | None] = ()
) -> None:
    """Checks that results of these names can be saved, before the long measurement.

    Neither they nor the other outputs may overwrite an input or each other.
    """
    path = folder()
    files.check_apart([*(path / name for name in names), *outputs], inputs)
    try:
        # A trial, since permissions don't apply to root and say nothing of read-only file systems.
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise NearsideError(f"{files.printable(path)}: {error.strerror}") from None


def save(name: str, doc: dict[str, Any]) -> Path:
    """Saves a document as `<name>.json` in the results folder."""
    path = folder() / f"{name}.json"
    files.write_text(path, json.dumps(doc, indent=1) + "\n")
    return path
