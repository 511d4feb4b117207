# SPDX-License-Identifier: Apache-2.0
"""Rust constants of a register map: offsets, and the place of each field."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from systemrdl import RDLCompileError, RDLCompiler
from systemrdl.node import AddressableNode, FieldNode, RegNode

# Names that Rust has taken.
KEYWORDS = {"type", "match", "move", "ref", "loop", "mod", "use", "in", "as", "fn", "impl", "self", "static", "where"}


def module(rdl: Path, top: str, header: str) -> str:
    """The text of the module, before rustfmt. Offsets are relative to what they stand in."""
    compiler = RDLCompiler()
    try:
        compiler.compile_file(str(rdl))
        root = compiler.elaborate(top_def_name=top).top
    except RDLCompileError as error:
        sys.exit(f"{rdl}: {error}")
    size = ["/// Bytes up to the end of the last register.", f"pub const SIZE: u64 = {root.size:#x};"]
    lines = [f"//! {root.get_property('name')}. {header}", "", "use super::Field;", "", *size, *_content(root)]
    return "\n".join(lines) + "\n"


def _content(node: AddressableNode) -> Iterator[str]:
    """What stands in an address map or a register file."""
    for child in node.children(unroll=False):
        if isinstance(child, AddressableNode):
            yield from _place(child)
            yield from _inside(child)


def _place(node: AddressableNode) -> Iterator[str]:
    name, text = node.inst_name.upper(), _line(node)
    yield f"/// {text}."
    yield f"pub const {name}: u64 = {node.raw_address_offset:#x};"
    if node.is_array:
        yield f"/// From one to the next: {text}."
        yield f"pub const {name}_STRIDE: u64 = {node.array_stride:#x};"
        yield f"/// How many there are: {text}."
        yield f"pub const {name}_COUNT: u64 = {node.n_elements};"


def _inside(node: AddressableNode) -> Iterator[str]:
    name = node.inst_name
    yield f"/// Inside of `{name.upper()}`."
    yield f"pub mod {'r#' if name in KEYWORDS else ''}{name} {{"
    yield "use super::Field;"
    if isinstance(node, RegNode):
        for field in node.fields():
            yield from _field(field)
    else:
        yield from _content(node)
    yield "}"


def _field(field: FieldNode) -> Iterator[str]:
    yield f"/// {_line(field)}."
    reset = field.get_property("reset")
    reset = reset if isinstance(reset, int) else 0
    yield f"pub const {field.inst_name.upper()}: Field = Field::new({field.low}, {field.width}, {reset:#x});"


def _line(node: AddressableNode | FieldNode) -> str:
    """What it is, in a line."""
    text = node.get_property("desc" if isinstance(node, FieldNode) else "name") or node.inst_name
    return " ".join(text.split()).rstrip(".")
