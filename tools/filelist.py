# SPDX-License-Identifier: Apache-2.0
"""Reads the hardware file lists: hw/lib/lib.f, hw/ip/<ip>/<ip>.f, hw/top/top.f.

One entry a line, paths relative to the repository root, or to the list's folder:

    # comment                      (or // comment)
    -f hw/lib/lib.f                another list; what two lists share is taken once
    hw/lib/rtl/fifo.sv             a source; packages before their users
    +incdir+hw/lib/rtl             where `include looks

`verilator -f hw/ip/x/x.f`, run in the repository root, reads the same lists. Lint waivers need no entry: every
lint/*.vlt beside a list belongs to it (Verilator takes them as further files on its command line), and so does
hw/lint/common.vlt, for all.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


@dataclass
class FileList:
    """The sources, include directories and waiver files of one or more lists, each once, in order."""

    sources: list[Path] = field(default_factory=list)
    incdirs: list[Path] = field(default_factory=list)
    waivers: list[Path] = field(default_factory=list)
    lists: list[Path] = field(default_factory=list)

    def add(self, path: str | Path) -> FileList:
        """Reads one list, and the lists that it includes."""
        path = ROOT / path
        if path in self.lists:
            return self
        if not path.is_file():
            raise ValueError(f"{path}: no such file list")
        self.lists.append(path)

        def place(entry: str) -> Path:
            beside = path.parent / entry
            return beside if not (ROOT / entry).exists() and beside.exists() else ROOT / entry

        for number, line in enumerate(path.read_text().splitlines(), 1):
            entry = line.split("//")[0].split("#")[0].strip()
            if not entry:
                continue
            if entry.startswith("-f "):
                self.add(place(entry[3:].strip()))
            elif entry.startswith("+incdir+"):
                _once(self.incdirs, place(entry.removeprefix("+incdir+")))
            elif entry.startswith(("-", "+")):
                raise ValueError(f"{path}:{number}: only paths, -f and +incdir+ are allowed here, not {entry!r}")
            elif not place(entry).is_file():
                raise ValueError(f"{path}:{number}: {entry} does not exist")
            else:
                _once(self.sources, place(entry))
        for waiver in sorted(path.parent.glob("lint/*.vlt")):
            _once(self.waivers, waiver)
        return self

    def top(self) -> str | None:
        """The module that the first list is named after (x.f: x or nearside_x), where there is one."""
        name = self.lists[0].stem
        stems = [source.stem for source in self.sources]
        return next((stem for stem in stems if stem in (name, f"nearside_{name}")), None)

    def inputs(self) -> list[Path]:
        """Every file whose content matters to a build."""
        headers = [h for d in self.incdirs for h in sorted(d.glob("*.*vh"))]
        return [*self.waivers, *self.sources, *headers]


def every_list() -> list[Path]:
    """All lists of the repository, relative to its root, in the order of their dependence."""
    found = [
        *ROOT.glob("hw/lib/*.f"),
        *sorted(ROOT.glob("hw/ip/*/*.f")),
        *sorted(ROOT.glob("hw/engine/*/*.f")),
        *sorted(ROOT.glob("hw/top/**/*.f")),
    ]
    return [path.relative_to(ROOT) for path in found]


def read(*paths: str | Path) -> FileList:
    """Reads lists into one."""
    result = FileList(waivers=[ROOT / "hw" / "lint" / "common.vlt"])
    for path in paths:
        result.add(path)
    return result


def _once(items: list[Path], item: Path) -> None:
    if item not in items:
        items.append(item)
