# SPDX-License-Identifier: Apache-2.0
"""Tables of keys from the Rust structures that TOML files are read into: field, type, documentation."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

CRATES = ("design", "sim")
NUMBERS = {"u8", "u16", "u32", "u64", "usize", "i32", "i64"}
WORDS = {
    "String": "text",
    "PathBuf": "path",
    "bool": "true or false",
    "f64": "number",
    "f32": "number",
    "Bytes": "size",
}
STRUCT = re.compile(r"((?:^#\[[^\n]*\]\n)*)^pub struct (\w+)(?:<\w+>)? \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
ENUM = re.compile(r"((?:^#\[[^\n]*\]\n)*)^pub enum (\w+) \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
FIELD = re.compile(
    r"(?P<doc>(?:^ {4}///[^\n]*\n)*)(?P<attributes>(?:^ {4}#\[[^\n]*\n)*)^ {4}pub (?P<name>\w+): (?P<type>[^\n]+?),?$",
    re.MULTILINE,
)


@dataclass
class Key:
    """A key of a table."""

    path: str
    """Its tables and its name; `[]` follows the name of a list of tables."""
    kind: str
    """What it holds, in words."""
    text: str
    """What it means."""
    optional: bool
    rust: str = ""
    values: list[str] = field(default_factory=list)
    """The words that it allows, where these are listed in the source."""


class Schema:
    """The public structures of the crates that read TOML."""

    def __init__(self, root: Path) -> None:
        self.structs: dict[str, str] = {}
        self.defaulted: set[str] = set()
        self.words: dict[str, list[str]] = {}
        for crate in CRATES:
            for source in sorted((root / "crates" / crate / "src").rglob("*.rs")):
                text = source.read_text()
                for attributes, name, body in STRUCT.findall(text):
                    if name not in self.structs and re.search(r"serde\([^)]*\bdefault\b", attributes):
                        self.defaulted.add(name)
                    self.structs.setdefault(name, body)
                for attributes, name, body in ENUM.findall(text):
                    if "rename_all" in attributes:
                        self.words.setdefault(name, [v.lower() for v in re.findall(r"^ {4}(\w+),", body, re.MULTILINE)])

    def keys(self, struct: str, prefix: str = "") -> Iterator[Key]:
        """All keys of a structure, those of its tables after its scalar ones."""
        tables: list[tuple[str, str]] = []
        for match in FIELD.finditer(self.structs[struct]):
            attributes, rust = match["attributes"], match["type"]
            if "serde(skip)" in attributes:
                continue
            renamed = re.search(r'rename = "(\w+)"', attributes)
            name = renamed[1] if renamed else match["name"]
            inner, optional = rust, "default" in attributes or struct in self.defaulted
            while wrapped := re.fullmatch(r"(?:Option|Sourced)<(.+)>", inner):
                inner, optional = wrapped[1], optional or inner.startswith("Option")
            inner = re.sub(r"\w+::", "", inner)
            listed = re.fullmatch(r"Vec<(.+)>", inner)
            if listed and listed[1] in self.structs and listed[1] != "Bytes":
                tables.append((f"{prefix}{name}[].", listed[1]))
            elif inner in self.structs and inner != "Bytes":
                tables.append((f"{prefix}{name}.", inner))
            else:
                text = " ".join(line.strip().removeprefix("///").strip() for line in match["doc"].splitlines())
                yield Key(prefix + name, self._kind(inner), _markdown(text), optional, inner, self.words.get(inner, []))
        for path, name in tables:
            yield from self.keys(name, path)

    def _kind(self, rust: str) -> str:
        if rust in NUMBERS:
            return "integer"
        if rust in self.words:
            return "one of " + ", ".join(f'`"{word}"`' for word in self.words[rust])
        if listed := re.fullmatch(r"Vec<(.+)>", rust):
            return f"list of {self._kind(listed[1])}s".replace("texts", "text")
        if rust.startswith("BTreeMap"):
            return "table"
        return WORDS.get(rust, rust)


def _markdown(text: str) -> str:
    """Links of Rust documentation as code, and what would end a cell escaped."""
    text = re.sub(r"\[`?([\w:]+)`?\](?:\([^)]*\))?", r"`\1`", text)
    return text.replace("|", "\\|").replace("``", "`")
