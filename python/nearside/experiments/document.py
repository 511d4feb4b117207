# SPDX-License-Identifier: Apache-2.0
"""Result documents of experiments: location, format, and validation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from nearside import files, results
from nearside._native import NearsideError

# The version that is written and read; other versions are refused.
FORMAT = 1
WHAT = "experiment"
FOLDER = "experiments"

TEXT, NUMBER, ANY_NUMBER = (str,), (int, float), (int, float, type(None))
KEYS: dict[str, tuple[type, ...]] = {
    "name": TEXT, "title": TEXT, "source": TEXT, "text": (list,), "engine": TEXT, "when": TEXT, "seed": NUMBER,
    "design": (dict, type(None)), "revision": (str, type(None)), "machine": TEXT, "time": TEXT, "quick": (bool,),
    "parameters": (dict,), "status": TEXT, "reason": (str, type(None)), "cases": NUMBER, "rows": (list,),
    "figures": (list,), "plots": (list,), "command": TEXT, "duration_s": NUMBER,
}  # fmt: skip
FIGURE: dict[str, tuple[type, ...]] = {
    "name": TEXT, "text": TEXT, "value": NUMBER, "unit": TEXT, "time": TEXT, "better": TEXT, "paper": ANY_NUMBER,
    "paper_text": (str, type(None)), "source": (str, type(None)), "limit": ANY_NUMBER,
    "limit_text": (str, type(None)), "ratio": ANY_NUMBER, "of_limit": ANY_NUMBER,
}  # fmt: skip
# Keys of figures and series of several runs; older documents lack them.
DEVIATION, COUNT = "deviation", "runs"
PLOT: dict[str, tuple[type, ...]] = {
    "title": TEXT, "kind": TEXT, "log": (bool,), "floor": NUMBER, "x": (list,), "x_label": TEXT, "y_label": TEXT,
    "series": (list,),
}  # fmt: skip
# Limits of a page that is drawn in a few seconds, and that a reader can grasp.
MOST_PLOTS, MOST_CATEGORIES, MOST_SERIES = 50, 400, 16
SERIES: dict[str, tuple[type, ...]] = {"name": TEXT, "of": TEXT, "y": (list,)}


def file_name(name: str, model: str) -> str:
    """The file name within the results folder."""
    return f"{FOLDER}/{name}.{model}.json"


def folder() -> Path:
    """The folder of these documents, created if it does not exist."""
    path = results.folder() / FOLDER
    try:
        path.mkdir(exist_ok=True)
    except FileExistsError:
        raise NearsideError(f"{files.printable(path)} is no folder; results of experiments are saved there") from None
    except OSError as error:
        raise NearsideError(f"{files.printable(path)}: {error.strerror}") from None
    return path


def save(doc: dict[str, Any]) -> Path:
    """Writes a document completely or not at all; until then the previous one stays."""
    path = folder() / Path(file_name(doc["name"], doc["engine"])).name
    files.write_text(path, json.dumps(doc, indent=1, allow_nan=False) + "\n")
    return path


def load(path: Path) -> dict[str, Any]:
    """Reads and validates a document; the error is one line that names the file."""
    again = f"run `nearside experiment run {path.name.partition('.')[0]}` again, or remove it"
    try:
        doc = json.loads(files.read_text(path))
    except NearsideError as error:
        raise NearsideError(f"{error}; `nearside experiment run` makes one") from None
    except (ValueError, RecursionError) as error:
        raise NearsideError(f"{files.printable(path)}: damaged ({error}); {again}") from None
    if not isinstance(doc, dict) or doc.get("what") != WHAT:
        raise NearsideError(f"{files.printable(path)}: this is no result of `nearside experiment run`")
    if doc.get("format") != FORMAT:
        raise NearsideError(
            f"{files.printable(path)}: version {doc.get('format')!r} of the format, "
            f"this nearside reads {FORMAT}; {again}"
        )
    fault = _fault(doc)
    if fault:
        raise NearsideError(f"{files.printable(path)}: damaged ({fault}); {again}")
    return doc


def load_all(path: Path) -> tuple[list[dict[str, Any]], list[Path]]:
    """All documents of a folder in the order of their names; and the files that are left out.

    Left out are files whose names belong to no result, such as copies: their content may be present
    twice.
    """
    from nearside.experiments.registry import natural

    found = sorted(path.glob("*.json"), key=lambda p: natural(p.name))
    docs, left_out = [], []
    for one in found:
        doc = load(one)
        if one.name == Path(file_name(doc["name"], doc["engine"])).name:
            docs.append(doc)
        else:
            left_out.append(one)
    return docs, left_out


def _fault(doc: dict[str, Any]) -> str | None:
    """The fault of a document, or None."""
    fault = _wrong(doc, KEYS, "")
    if fault:
        return fault
    if doc["status"] not in ("complete", "partial"):
        return f"status: {doc['status']!r}"
    if not all(isinstance(line, str) for line in doc["text"]):
        return "text: holds what is no text"
    if not all(isinstance(row, dict) for row in doc["rows"]):
        return "rows: holds what is no row"
    if doc["design"] is not None and (fault := _wrong(doc["design"], {"name": TEXT, "hash": TEXT}, "design.")):
        return fault
    for number, one in enumerate(doc["figures"]):
        beside = {DEVIATION: ANY_NUMBER, COUNT: NUMBER}
        own = {key: types for key, types in beside.items() if isinstance(one, dict) and key in one}
        if fault := _wrong(one, FIGURE | own, f"figures[{number}]."):
            return fault
    if fault := _too_many("plots", doc["plots"], MOST_PLOTS):
        return fault
    for number, one in enumerate(doc["plots"]):
        if fault := _wrong(one, PLOT, f"plots[{number}]."):
            return fault
        if fault := _too_many(f"plots[{number}].x", one["x"], MOST_CATEGORIES):
            return fault
        if fault := _too_many(f"plots[{number}].series", one["series"], MOST_SERIES):
            return fault
        if one["kind"] not in ("lines", "bars"):
            return f"plots[{number}].kind: {one['kind']!r}"
        if not all(isinstance(value, str) for value in one["x"]):
            return f"plots[{number}].x: holds what is no text"
        for line, series in enumerate(one["series"]):
            place = f"plots[{number}].series[{line}]."
            if fault := _wrong(series, SERIES, place):
                return fault
            for key in ("y", DEVIATION):
                values = series.get(key, []) if key == "y" or key in series else [None] * len(one["x"])
                if not isinstance(values, list) or len(values) != len(one["x"]) or not all(map(_drawable, values)):
                    return f"{place}{key}: no list of {len(one['x'])} numbers"
    return None


def _too_many(place: str, values: list[Any], most: int) -> str | None:
    return f"{place}: {len(values)} of them, allowed are at most {most}" if len(values) > most else None


def _drawable(value: Any) -> bool:
    return value is None or (isinstance(value, NUMBER) and not isinstance(value, bool) and _finite(value))


def _wrong(part: Any, keys: dict[str, tuple[type, ...]], place: str) -> str | None:
    """The first key of a part that is missing or has another type, with its place."""
    if not isinstance(part, dict):
        return f"{place.rstrip('.')}: no table"
    for key, types in keys.items():
        if key not in part:
            return f"{place}{key}: missing"
        value = part[key]
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            return f"{place}{key}: {type(value).__name__}"
        if isinstance(value, NUMBER) and not _finite(value):
            return f"{place}{key}: no number"
    return None


def _finite(value: float) -> bool:
    """Whether a value can be shown: other programs' JSON may hold NaN, infinities, and very large integers."""
    return abs(value) < 1e300
