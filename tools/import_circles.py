#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds circles of imports in each crate: modules that use each other, directly or through others.

A module uses another one by a path that begins with `crate`, `self` or `super`. A folder is one part at the level above
it, so a path to a module in another folder is one to that folder. Paths to a module's own ancestors and descendants
don't count. Modules within a file, such as tests, belong to the file.

usage: import_circles.py [ROOT]
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from filelist import ROOT

Module = tuple[str, ...]
NOT_CODE = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])'", re.DOTALL)
WORDS = re.compile(r"\w+|::|[{},]|\S")
ROOTS = ("crate", "self", "super")


def tree(words: list[str], at: int, before: Module = ()) -> tuple[list[Module], int]:
    """The paths of a `use` tree that continues at a word after `before`, and the word after it."""
    while at < len(words) and words[at].isidentifier():
        before += (words[at],)
        if words[at + 1 : at + 2] != ["::"]:
            return [before], at + 1
        at += 2
    if words[at : at + 1] != ["{"]:
        return [before], at
    found, at = [], at + 1
    while at < len(words) and words[at] != "}":
        inner, after = tree(words, at, before)
        found, at = found + inner, max(after, at + 1)
    return found, at + 1


def uses(text: str, module: Module) -> set[Module]:
    """The paths, from the crate's root, that the file of a module mentions."""
    words = WORDS.findall(NOT_CODE.sub(" ", text))
    found, depth, inline, at = set(), 0, [], 0
    while at < len(words):
        if words[at] in ROOTS and words[at + 1 : at + 2] == ["::"] and words[at - 1] != "::":
            paths, at = tree(words, at)
            for path in paths:
                here = (*module, *("{}" for _ in inline))
                for name in path:
                    here = {"crate": (), "self": here, "super": here[:-1]}.get(name, (*here, name))
                found.add(here)
            continue
        depth += (words[at] == "{") - (words[at] == "}")
        if words[at] == "mod" and words[at + 2 : at + 3] == ["{"]:
            inline.append(depth)
        elif words[at] == "}" and inline[-1:] == [depth]:
            inline.pop()
        at += 1
    return found


def circles(source: Path) -> list[list[str]]:
    """The circles of a crate, given its folder of sources: the modules of each."""
    files: dict[Module, Path] = {}
    for file in source.rglob("*.rs"):
        parts = file.relative_to(source).with_suffix("").parts
        files[parts[:-1] if parts[-1] == "mod" or parts in (("lib",), ("main",)) else parts] = file
    reached: dict[Module, set[Module]] = {}
    for module, file in files.items():
        for path in uses(file.read_text(), module):
            owner = next(path[:n] for n in range(len(path), -1, -1) if path[:n] in files or not n)
            common = next((n for n, (a, b) in enumerate(zip(module, owner, strict=False)) if a != b), None)
            if common is not None:
                reached.setdefault(module[: common + 1], set()).add(owner[: common + 1])
    for middle in reached:  # Warshall's algorithm: what is reached through a module is reached
        for targets in reached.values():
            if middle in targets:
                targets |= reached[middle]
    found = {frozenset(b for b in reached[a] if a in reached.get(b, ())) for a in reached if a in reached[a]}
    return sorted(sorted("::".join(module) for module in circle) for circle in found)


def main(root: Path = ROOT) -> int:
    found = [(m.parent, c) for m in sorted(root.glob("crates/*/Cargo.toml")) for c in circles(m.parent / "src")]
    for crate, circle in found:
        print(f"{crate.relative_to(root)}: these modules use each other: {', '.join(circle)}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
