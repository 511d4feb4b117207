# SPDX-License-Identifier: Apache-2.0
"""The reference of the registers: a page for each map in SystemRDL, and for each engine."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from systemrdl import RDLCompiler
from systemrdl.node import AddressableNode, AddrmapNode, FieldNode, RegNode

sys.path.append(str(Path(__file__).resolve().parents[1]))
import engines

INDEX = """# Registers

Every register map is written once: those of engines in `engine.toml`, the others in SystemRDL. `make regs` makes the
SystemVerilog and the Rust module `spec::regs` of it, and the book these pages. Where a block stands in the device is
in [Architecture](../../architecture.md#bars).

| map | what | source |
|---|---|---|
"""
ACCESS = {"r": "read", "w": "write", "rw": "read, write", "rw1": "read, write once", "na": "none"}


def pages(root: Path) -> dict[str, str]:
    """Pages by their place in the book."""
    sources = sorted(
        [*root.glob("hw/ip/*/regs/*.rdl"), *root.glob("hw/engine/*/regs/*.rdl")], key=lambda path: path.stem
    )
    found, rows = {}, {}
    for rdl in sources:
        compiler = RDLCompiler()
        compiler.compile_file(str(rdl))
        top = compiler.elaborate(top_def_name=rdl.stem).top
        name = rdl.stem.removesuffix("_regs").removesuffix("_map")
        where = rdl.relative_to(root)
        found[f"reference/registers/{name}.md"] = "\n".join(_page(name, top, where)) + "\n"
        rows[name] = f"{_name(top)} | `{where}`"
    for path in engines.manifests():
        manifest, where = engines.load(path), path.relative_to(root)
        name = manifest["name"]
        found[f"reference/registers/{name}.md"] = "\n".join(_engine(name, manifest, where)) + "\n"
        rows[name] = f"{manifest['description']} | `{where}`"
    index = INDEX + "".join(f"| [`{name}`]({name}.md) | {row} |\n" for name, row in sorted(rows.items()))
    return {"reference/registers/index.md": index, **found}


def _engine(name: str, manifest: dict, source: Path) -> Iterator[str]:
    texts = manifest["descriptions"]
    yield from (f"# `{name}`", "", f"{manifest['description']}.", "")
    yield f"Generated from `{source}`. Offsets count from the start of the engine's registers."
    yield from (f"In Rust the same names are `spec::regs::{name}`.", "")
    yield from ("Control, interrupt and status registers are [those of every engine](engine.md).", "")
    yield from ("## Arguments and outputs", "", "64 bits each, low word first. Arguments are 0 after a reset.", "")
    yield from ("| offset | name | access | meaning |", "|---|---|---|---|")
    for value, offset in engines.values(manifest):
        access = "read, write" if value in manifest["arguments"] else "read"
        access += ", optional" if value in manifest["optional"] else ""
        yield f"| `{offset:#05x}` | `{value}` | {access} | {_cell(texts[value])} |"
    yield from ("", "Programs can omit optional arguments; they are 0 then.", "", "## `result`", "")
    yield from ("Return value, at `0x010`, read-only. 0 is success.", "", "| bit | name | meaning |", "|---|---|---|")
    for bit, result in enumerate(manifest["results"]):
        yield f"| {bit} | `{result}` | {_cell(texts[result])} |"
    yield ""
    if manifest["words"]:
        yield from ("## Further registers", "", "Read-only, 32 bits each.", "", "| offset | name | meaning |")
        yield "|---|---|---|"
    for word in manifest["words"]:
        more = (f"[{word['count']}]", " + 0x4·n") if "count" in word else ("", "")
        yield f"| `{word['offset']:#05x}{more[1]}` | `{word['name']}{more[0]}` | {_cell(word['description'])} |"
    for group, fields in manifest["fields"].items():
        yield from ("", f"## `{group}`", "", "The other bits are 0.", "", "| bits | field | meaning |", "|---|---|---|")
        for field, entry in fields.items():
            yield f"| {entry['bits']} | `{field}` | {_cell(entry['description'])} |"


def _page(name: str, top: AddrmapNode, source: Path) -> Iterator[str]:
    yield from (f"# `{name}`", "", f"{_name(top)}. {_text(top)}".strip(), "")
    yield f"Generated from `{source}`. Offsets count from the start of the block; a register has 32 bits where no other"
    yield from ("width stands. In Rust the same offsets and fields are `spec::regs::" + name + "`.", "")
    yield from ("| offset | register | name | access |", "|---|---|---|---|")
    registers = list(_registers(top, "", 0))
    for path, offset, register in registers:
        accesses = dict.fromkeys(_access(field) for field in register.fields())
        yield f"| {offset} | [`{path}`](#{_anchor(path)}) | {_cell(_name(register))} | {'; '.join(accesses)} |"
    yield ""
    for path, offset, register in registers:
        yield from _register(path, offset, register)


def _registers(node: AddressableNode, prefix: str, base: int, steps: str = "") -> Iterator[tuple[str, str, RegNode]]:
    """Registers of a map with their path and offset; an array has one line, with its step."""
    for child in node.children(unroll=False):
        if not isinstance(child, AddressableNode):
            continue
        path, offset, step = f"{prefix}{child.inst_name}", base + child.raw_address_offset, steps
        if child.is_array:
            path += f"[{child.n_elements}]"
            step += f" + {child.array_stride:#x}·{'nmk'[steps.count('·')]}"
        if isinstance(child, RegNode):
            yield path, f"`{offset:#05x}{step}`", child
        else:
            yield from _registers(child, f"{path}.", offset, step)


def _register(path: str, offset: str, register: RegNode) -> Iterator[str]:
    width = register.get_property("regwidth")
    yield from (f"## `{path}` {{: #{_anchor(path)} }}", "")
    bits = "" if width == 32 else f", {width} bits"
    yield from (f"{_name(register)}, at {offset}{bits}. {_text(register)}".strip(), "")
    yield from ("| bits | field | access | reset | meaning |", "|---|---|---|---|---|")
    for field in sorted(register.fields(), key=lambda field: field.low, reverse=True):
        bits = f"{field.high}:{field.low}" if field.width > 1 else str(field.low)
        reset = field.get_property("reset")
        shown = f"`{reset:#x}`" if isinstance(reset, int) else ""
        yield f"| {bits} | `{field.inst_name}` | {_access(field)} | {shown} | {_cell(_meaning(field, register))} |"
    yield ""
    for field in register.fields():
        encoding = field.get_property("encode")
        if encoding:
            yield from (f"Values of `{field.inst_name}`:", "", "| value | name | meaning |", "|---|---|---|")
            for member in encoding:
                yield f"| `{member.value:#x}` | `{member.name}` | {_cell(member.rdl_desc or member.rdl_name or '')} |"
            yield ""


def _access(field: FieldNode) -> str:
    text = ACCESS.get(field.get_property("sw").name, field.get_property("sw").name)
    how = field.get_property("onwrite")
    if how:
        text += {"woclr": ", 1 clears", "woset": ", 1 sets"}.get(how.name, f", {how.name}")
    if field.get_property("singlepulse"):
        text += ", 1 acts"
    return text + (", clears on read" if getattr(field.get_property("onread"), "name", "") == "rclr" else "")


def _meaning(field: FieldNode, register: RegNode) -> str:
    text = " ".join((field.get_property("desc") or "").split())
    return text or (_name(register) if len(list(register.fields())) == 1 else "")


def _name(node: AddressableNode) -> str:
    return (node.get_property("name") or node.inst_name).rstrip(".")


def _text(node: AddressableNode) -> str:
    return " ".join((node.get_property("desc") or "").split())


def _anchor(path: str) -> str:
    return path.replace("[", "-").replace("]", "").replace(".", "-")


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")
