# SPDX-License-Identifier: Apache-2.0
"""The reference of the design file: keys and types from the Rust structures, defaults and ranges from the reader.

A default is what the native module reads from a design that states nothing. The range is what its error names when it
is asked for a value that no key takes, so the page states what is enforced.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rust_schema import NUMBERS, Key, Schema

HEAD = """# Design file

A design is one TOML file: the device and the host that it is attached to. `designs/*.toml` are those that come with
Nearside; `--design NAME` takes one of them, `--design FILE.toml` takes yours. An unknown key or an impossible value is
an error of one line that names the file, the line, the key and what is allowed. A **size** is an integer (bytes) or a
string with a unit, such as `"64 KiB"`. [Your own file and design](../guides/own-design.md) shows how to use it.

Keys, types and meanings on this page come from the sources of `crates/design` and `crates/sim`. Defaults and ranges
come from the reader.
"""
# Of the headings: what stands before the keys of a table.
TABLES = {
    "": "Top level",
    "media.": "The media, and the [media profile](media-profiles.md) that gives it its timing.",
    "delay.": "Sizes of each channel's `nvm_delay`.",
    "nvme.": "Sizes of the NVMe controller.",
    "memory[].": "Memories beside the storage; at most one, the local memory.",
    "memory[].delay.": "As `[delay]`, of the memory's channels.",
    "memory[].dram.": "As `[dram]`, of the memory's channels; without it `[dram]` holds for them, too.",
    "engine[].": "Engines, in the order of their registers. See [Engines](../engines.md).",
    "pcie.": "The PCIe link.",
    "dram.": "The DDR4 channel and its controller.",
    "host.": "The host's memory and root complex.",
    "cpu.": "The host's CPUs: a [host profile](host-profiles.md), and what deviates from it.",
}
MINIMAL = """name = "x"
[media]
bytes = "1 GiB"
"""
LISTED = {
    "memory": {"name": "local", "bytes": "1 MiB"},
    "engine": {"name": "copy0", "engine": "copy"},
}
PROBES = {
    "integer": (3, 0, 255, 5000, 2**32 - 1, 2**62),
    "size": (3, 0, 1 << 62),
    "text": ('"\\u0001"', '""', '"0123456789012345678901"'),
}


def page(root: Path) -> str:
    """The page in Markdown."""
    schema = Schema(root)
    keys = list(schema.keys("Design"))
    groups: dict[str, list[Key]] = {}
    for key in keys:
        groups.setdefault(key.path.rpartition(".")[0] + "." if "." in key.path else "", []).append(key)
    reader = Reader()
    lines = [HEAD]
    for prefix, group in groups.items():
        lines += _group(prefix, group, reader)
    lines += _manifest(schema)
    return "\n".join(lines)


def _group(prefix: str, group: list[Key], reader: Reader) -> Iterator[str]:
    name = prefix.rstrip(".")
    written = name.replace("[]", "")
    header = f"[[{written}]]" if name.endswith("[]") else f"[{written}]"
    yield from (f"## `{header}`" if name else f"## {TABLES['']}", "")
    if name and (about := TABLES.get(prefix)):
        yield from (about, "")
    yield from ("| key | type | default | allowed | meaning |", "|---|---|---|---|---|")
    for key in group:
        default = reader.default(key)
        yield f"| `{key.path.rpartition('.')[2]}` | {key.kind} | {default} | {reader.allowed(key)} | {key.text} |"
    yield ""


def _manifest(schema: Schema) -> Iterator[str]:
    yield from (
        "## `engine.toml`",
        "",
        "What the folder of an engine states about it, for designs that plug it in.",
        "",
    )
    yield from ("| key | type | needed | meaning |", "|---|---|---|---|")
    for key in schema.keys("Manifest"):
        yield f"| `{key.path}` | {key.kind} | {'' if key.optional else 'yes'} | {key.text} |"
    yield ""


class Reader:
    """Asks the native module what it makes of a design."""

    def __init__(self) -> None:
        from nearside.device import Design, NearsideError

        self.error = NearsideError
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "minimal.toml")
            path.write_text(MINIMAL)
            self.design = Design.load(str(path))
        tables = "".join(f"[[{name}]]\n{_toml(values)}" for name, values in LISTED.items())
        self.values = self.design.with_values(tables).values

    def default(self, key: Key) -> str:
        value: Any = self.values
        for part in key.path.split("."):
            name = part.removesuffix("[]")
            value = value.get(name) if isinstance(value, dict) else None
            value = value[0] if part.endswith("[]") and value else value
        if not key.optional and self._is_given(key):
            return "required"
        return "" if value in (None, [], {}, "") else f"`{_shown(value, key)}`"

    @staticmethod
    def _is_given(key: Key) -> bool:
        names = {"name", "media.bytes", *(f"{table}[].{name}" for table, keys in LISTED.items() for name in keys)}
        return key.path in names

    def allowed(self, key: Key) -> str:
        """What an error names as allowed when the key has a value that it does not take."""
        kind = "integer" if key.rust in NUMBERS else key.kind
        for probe in PROBES.get(kind, ()):
            path = key.path.replace("[]", "[0]")
            try:
                self.design.with_values(self._override(key.path, probe))
            except self.error as error:
                match = re.search(rf"(?:^|\s){re.escape(path)} = .*?: allowed (?:is|are) (.*)$", str(error))
                if match:
                    return match[1].replace("|", "\\|")
        return ""

    @staticmethod
    def _override(path: str, value: Any) -> str:
        """The key alone, as a text that is read over the design; of a list, with what its table needs."""
        head, _, name = path.rpartition(".")
        if "[]" not in head:
            return f"[{head}]\n{name} = {value}\n" if head else f"{name} = {value}\n"
        table, _, inner = head.partition("[]")
        given = {key: text for key, text in LISTED[table].items() if inner or key != name}
        table_of = f"[{table}{inner}]\n" if inner else ""
        return f"[[{table}]]\n{_toml(given)}{table_of}{name} = {value}\n"


def _toml(values: dict[str, str]) -> str:
    return "".join(f'{key} = "{text}"\n' for key, text in values.items())


def _shown(value: Any, key: Key) -> str:
    if key.kind == "size" and isinstance(value, int):
        for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
            if value and value % unit == 0:
                return f'"{value // unit} {name}"'
    return str(value).lower() if isinstance(value, bool) else f'"{value}"' if isinstance(value, str) else str(value)
