# SPDX-License-Identifier: Apache-2.0
"""Registers of engines, from `engine.toml`: the package of their RTL, and their Rust module.

These are the engines with `engine_registers` (hw/ip/engine_launch), which have no register map in SystemRDL.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path

from filelist import ROOT

# As in engine_registers.
FIRST_VALUE, VALUE_STEP, FIRST_WORD = 0x20, 0x10, 0x100


def manifests() -> list[Path]:
    """The manifests of these engines."""
    found = sorted(ROOT.glob("hw/engine/*/engine.toml"))
    return [path for path in found if not (path.parent / "regs").exists()]


def load(path: Path) -> dict:
    """A manifest, with the optional keys."""
    optional = {"optional": [], "outputs": [], "descriptions": {}, "fields": {}, "words": []}
    return optional | tomllib.loads(path.read_text())


def values(manifest: dict) -> Iterator[tuple[str, int]]:
    """Arguments and outputs, with their offsets."""
    for n, name in enumerate([*manifest["arguments"], *manifest["outputs"]]):
        yield name, FIRST_VALUE + VALUE_STEP * n


def end(manifest: dict) -> int:
    """Bytes up to the end of the last register."""
    words = [word["offset"] + 4 * word.get("count", 1) for word in manifest["words"]]
    return max([*words, *(offset + 8 for _, offset in values(manifest))])


def bits(field: dict) -> tuple[int, int]:
    """Lowest bit and width of a field."""
    high, _, low = field["bits"].partition(":")
    return int(low or high), int(high) - int(low or high) + 1


def package(manifest: dict, header: str) -> str:
    """The SystemVerilog package with the parameters of its registers."""
    name, results = manifest["name"], manifest["results"]
    constants = {
        "NumArgs": len(manifest["arguments"]),
        "NumOutputs": max(len(manifest["outputs"]), 1),
        "NumResults": len(results),
        "StoppedBit": results.index("stopped"),
        "NumWords": (end(manifest) - FIRST_WORD) // 4 if manifest["words"] else 0,
    }
    for word in manifest["words"]:
        constants[f"{word['name'].title().replace('_', '')}Word"] = (word["offset"] - FIRST_WORD) // 4
    lines = [f"// {header}", f"package {name}_job_pkg;", ""]
    lines += [f"  localparam int unsigned {key} = {value};" for key, value in constants.items()]
    lines += ["", "  /// Return value.", "  typedef struct packed {"]
    lines += [f"    logic {result};" for result in reversed(results)]
    return "\n".join([*lines, "  } result_t;", "", "endpackage", ""])


def rust(manifest: dict, header: str) -> str:
    """The Rust module with its fields, before rustfmt."""
    texts, fields = manifest["descriptions"], manifest["fields"]
    lines = [f"//! {manifest['description']}. {header}", "", "use super::Field;", ""]
    lines += ["/// Bytes up to the end of the last register.", f"pub const SIZE: u64 = {end(manifest):#x};"]
    for word in manifest["words"]:
        name, text = word["name"].upper(), word["description"]
        lines += [f"/// {text}.", f"pub const {name}: u64 = {word['offset']:#x};"]
        if "count" in word:
            lines += ["/// Distance between two of them.", f"pub const {name}_STRIDE: u64 = 4;"]
            lines += ["/// Number of them.", f"pub const {name}_COUNT: u64 = {word['count']};"]
    results = {name: {"bits": str(n), "description": texts[name]} for n, name in enumerate(manifest["results"])}
    for group, members in {"result": results, **fields}.items():
        what = "The return value" if group == "result" else f"Fields of `{group}`"
        lines += [f"/// {what}.", f"pub mod {group} {{", "use super::Field;"]
        for name, field in members.items():
            low, width = bits(field)
            lines.append(f"/// {field['description']}.")
            lines.append(f"pub const {name.upper()}: Field = Field::new({low}, {width}, 0);")
        lines.append("}")
    return "\n".join(lines) + "\n"
