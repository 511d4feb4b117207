"""Result documents: what ran, on what, and the figures, with the paper's figure beside each."""

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
    """The frame of a result document: `model` has simulated; `figures` in the content is a list made by `figure`."""
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
    """The commit of the sources, with `-dirty` behind it if they have been changed since; None without git."""
    command = ["git", "-C", str(root()), "describe", "--always", "--dirty", "--exclude=*"]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError:
        return None
    return done.stdout.strip() or None


def figure(
    name: str, value: float | str, unit: str, time: str = "simulated", paper: str | None = None
) -> dict[str, Any]:
    """One figure; `time` is "simulated" or "wall-clock", `paper` what the paper states, with its name."""
    return {"name": name, "value": value, "unit": unit, "time": time, "paper": paper}


def place() -> Path:
    """`results` in the working directory, or `$NEARSIDE_RESULTS`; it may not be there yet."""
    return Path(os.environ.get("NEARSIDE_RESULTS", "results"))


def folder() -> Path:
    """The same, made if it isn't there."""
    path = place()
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise NearsideError(f"{path} is no folder; results are saved in `results`, or in $NEARSIDE_RESULTS") from None
    except OSError as error:
        raise NearsideError(f"{path}: {error.strerror}") from None
    return path


def ready(names: Iterable[str], outputs: Iterable[Path | None] = (), inputs: Iterable[Path | None] = ()) -> None:
    """Makes sure that results of these names can be saved, before minutes go into measuring them, and that neither they
    nor the other outputs take the place of anything that is read or written, too."""
    path = folder()
    files.check_apart([*(path / name for name in names), *outputs], inputs)
    try:
        # Tried, as only that tells: rights say nothing to root, nor of a file system that is read-only.
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise NearsideError(f"{path}: {error.strerror}") from None


def save(name: str, doc: dict[str, Any]) -> Path:
    """Saves a document as `<name>.json` in the results folder."""
    path = folder() / f"{name}.json"
    files.write_text(path, json.dumps(doc, indent=1) + "\n")
    return path
