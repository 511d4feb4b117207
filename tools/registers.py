# SPDX-License-Identifier: Apache-2.0
"""Registers of the device that have no reset, and the lists that say why each of them needs none.

After power-on a register without a reset holds anything. So each of them, and each memory, stands in a list
`lint/no_reset.txt` of its block, under a comment with the reason why nobody reads it before it is written:

    # The command that is under way: valid_q says that there is one.
    nearpm_decode: command_q line_q
    # Written in each cycle from what has a reset.
    nearpm_table: match_q

A member of a struct is written `name.member`. `make lint-hw` fails at:

- a register without a reset that is in no list,
- a listed register that has a reset, does not exist, or is listed twice,
- a line without a reason above it,
- a reason that names a register (`valid_q`) without a reset.

A reset is a `negedge` or `posedge`, next to that of the clock, of a wire whose name begins with `rst`, `arst` or `por`.
It assigns a constant to a register, and not under a further `if` or `case`. Elements are reset by a loop over all of
them: `for (int unsigned i = 0; i < N; i++)`, where the register is declared with `[N]` or `[N-1:0]`. Writes by a task
in a process of registers are not followed: its call counts as a register without a reset.

The sources are read as for synthesis, but not elaborated: what a parameter leaves out is looked at, too. What is
there only for assertions, proofs or recorders is no part of the device, and is not looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from filelist import ROOT
from pyslang import Bag, SourceManager
from pyslang.parsing import PreprocessorOptions
from pyslang.syntax import SyntaxNode, SyntaxTree

LIST = "no_reset.txt"
ENTRY = re.compile(r"(\w+): (\w+(?:\.\w+)*(?: \w+(?:\.\w+)*)*)")
WITNESS = re.compile(r"\b[A-Za-z]\w*_[qo]\b")  # in a reason: what says that there is something
VARIABLE = re.compile(r"\b[A-Za-z]\w*_[qdio]\b|\b[A-Za-z]\w*_n[io]\b")
RESET = re.compile(r"(a?rst|por)(_\w+)?")
ELEMENT = re.compile(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]")
LOOP = re.compile(r"for\(int(?:unsigned)?(\w+)=0;\1<(.+?);\1\+\+\)")
EACH = "[each of "  # in a place: the index of a loop over this number of elements
ASSIGNMENT = re.compile(r"(Nonblocking)?\w*AssignmentExpression")
STEP = re.compile(r"\w*(Pre|Post)(in|de)crement\w*Expression", re.IGNORECASE)


@dataclass(frozen=True)
class Place:
    """What an assignment writes: a variable, and of it members and elements (the text of their index)."""

    name: str
    parts: tuple[str, ...] = ()

    def register(self) -> str:
        """As it is listed: without elements."""
        return ".".join([self.name, *(p for p in self.parts if not p.startswith("["))])

    def covers(self, other: Place, sizes: list[str]) -> bool:
        """Is all of `other` in it? `sizes`: how many elements there are."""
        if self.name != other.name or len(self.parts) > len(other.parts):
            return False
        return all(
            a == b or (a.startswith(EACH) and sizes[n : n + 1] == [a.removeprefix(EACH)])
            for n, (a, b) in enumerate(zip(self.parts, other.parts, strict=False))
        )


def count(dimension: str) -> str:
    """Elements of `[N]` or `[N-1:0]`, in the source's words."""
    high = re.fullmatch(r"(.+):0", dimension)
    if not high:
        return dimension
    if high[1].isdecimal():
        return str(int(high[1]) + 1)
    return high[1][:-2] if high[1].endswith("-1") else dimension


@dataclass(frozen=True)
class Found:
    """Where a register is written."""

    path: Path
    line: int


@dataclass
class Block:
    """A process that makes registers: what it writes in reset, and what else."""

    in_reset: list[Place] = field(default_factory=list)
    sizes: dict[str, list[str]] = field(default_factory=dict)
    written: list[tuple[Place, int]] = field(default_factory=list)

    def without(self) -> Iterator[tuple[str, int]]:
        """Registers that have no reset, and the lines that write them."""
        for place, line in self.written:
            sizes = self.sizes.get(place.name, [])
            if not any(reset.covers(place, sizes) for reset in self.in_reset):
                yield place.register(), line


def text(node: object) -> str:
    """Without comments and white space."""
    return re.sub(r"\s+", "", re.sub(r"//.*|/\*.*?\*/", "", str(node)))


def nodes(node: SyntaxNode, kind: str | None = None) -> Iterator[SyntaxNode]:
    """All below a node, itself first, in the order of the text."""
    if kind is None or node.kind.name == kind:
        yield node
    for child in node:
        if isinstance(child, SyntaxNode):
            yield from nodes(child, kind)


def places(target: SyntaxNode) -> Iterator[Place]:
    """What the left side of an assignment names."""
    if target.kind.name == "ConcatenationExpression":
        for part in target.expressions:
            if isinstance(part, SyntaxNode):
                yield from places(part)
        return
    parts = re.findall(r"\w+|\[(?:[^\[\]]|\[[^\]]*\])*\]", text(target))
    if parts and not parts[0].startswith("["):
        yield Place(parts[0], tuple(parts[1:]))


class Reader:
    """Reads one source."""

    def __init__(self, path: Path, manager: SourceManager) -> None:
        options = PreprocessorOptions()
        options.predefines = ["SYNTHESIS"]
        self.tree = SyntaxTree.fromFile(str(path), manager, Bag([options]))
        self.manager = manager
        errors = [d for d in self.tree.diagnostics if d.isError()]
        if errors:
            line = manager.getLineNumber(errors[0].location)
            raise ValueError(f"{path.relative_to(ROOT)}:{line}: can't be read, {errors[0].code}")

    def modules(self) -> Iterator[tuple[str, SyntaxNode]]:
        for kind in ("ModuleDeclaration", "InterfaceDeclaration"):
            for module in nodes(self.tree.root, kind):
                yield module.header.name.valueText, module

    def blocks(self) -> Iterator[tuple[str, Block]]:
        """Module, and each of its processes that make registers."""
        for name, module in self.modules():
            sizes = self.sizes(module)
            for kind in ("AlwaysFFBlock", "AlwaysLatchBlock", "AlwaysBlock"):
                for process in nodes(module, kind):
                    yield name, self.block(process, sizes)

    def sizes(self, module: SyntaxNode) -> dict[str, list[str]]:
        """Elements of what is declared, the outermost ones first. What a type hides is not known."""
        found = {}
        for declarator in nodes(module, "Declarator"):
            above = declarator.parent
            kind = getattr(above, "type", None) or getattr(getattr(above, "header", None), "dataType", "")
            dimensions = ELEMENT.findall(text(declarator).split("=")[0]) + ELEMENT.findall(text(kind))
            found[declarator.name.valueText] = [count(dimension) for dimension in dimensions]
        return found

    def block(self, process: SyntaxNode, sizes: dict[str, list[str]]) -> Block:
        block = Block(sizes=sizes)
        statement, resets = process.statement, {}
        if statement.kind.name == "TimingControlStatement":
            events = list(nodes(statement.timingControl, "SignalEventExpression"))
            # The first one is the clock.
            for event in events[1:]:
                if not RESET.fullmatch(text(event.expr)):
                    continue
                rises = event.edge.valueText == "posedge"
                wire = text(event.expr)
                resets |= {wire: True} if rises else {f"!{wire}": True, f"~{wire}": True}
            statement = statement.statement
        for part in self.parts(statement):
            if part.kind.name == "ConditionalStatement" and text(part.predicate) in resets:
                block.in_reset += self.reset(part.statement)
                block.written += self.assigned(part.statement)
                if part.elseClause:
                    block.written += self.assigned(part.elseClause)
            else:
                block.written += self.assigned(part)
        return block

    def parts(self, statement: SyntaxNode) -> list[SyntaxNode]:
        if statement.kind.name != "SequentialBlockStatement":
            return [statement]
        return [item for item in statement.items if isinstance(item, SyntaxNode)]

    def reset(self, statement: SyntaxNode) -> list[Place]:
        """What a statement gives a value, whatever else holds."""
        kind = statement.kind.name
        if kind == "SequentialBlockStatement":
            return [place for part in self.parts(statement) for place in self.reset(part)]
        if kind == "ForLoopStatement":
            return self.elements(statement)
        if kind != "ExpressionStatement" or not ASSIGNMENT.fullmatch(statement.expr.kind.name):
            return []
        if VARIABLE.search(text(statement.expr.right)):
            return []
        found = places(statement.expr.left)
        return [place for place in found if not any(VARIABLE.search(part) for part in place.parts if part[0] == "[")]

    def elements(self, loop: SyntaxNode) -> list[Place]:
        """The same of a loop: each element of what has as many as it goes up to."""
        head = LOOP.match(text(loop))
        if not head:
            return []
        index, each = f"[{head[1]}]", EACH + head[2]
        found = self.reset(loop.statement)
        return [replace(place, parts=tuple(each if p == index else p for p in place.parts)) for place in found]

    def assigned(self, statement: SyntaxNode) -> list[tuple[Place, int]]:
        """What is assigned in a statement, but for what is declared there."""
        own = {d.name.valueText for d in nodes(statement, "Declarator")}
        found = []
        for node in nodes(statement):
            if ASSIGNMENT.fullmatch(node.kind.name):
                target = node.left
            elif STEP.fullmatch(node.kind.name):
                target = node.operand
            elif node.kind.name == "ExpressionStatement" and node.expr.kind.name == "InvocationExpression":
                target = node.expr.left
                if text(target).startswith("$"):
                    continue
            else:
                continue
            line = self.manager.getLineNumber(node.sourceRange.start)
            found += [(place, line) for place in places(target) if place.name not in own]
        return found


def sources() -> list[Path]:
    """The sources of the device."""
    return sorted(p for p in ROOT.glob("hw/**/*.sv") if "rtl" in p.relative_to(ROOT).parts)


def lists() -> list[Path]:
    """The lists of all blocks."""
    return sorted(ROOT.glob(f"hw/**/lint/{LIST}"))


def registers(paths: list[Path]) -> tuple[dict[tuple[str, str], Found], set[tuple[str, str]]]:
    """Modules and registers: those without a reset, and where each is first written; variables that have one."""
    manager = SourceManager()
    for folder in sorted({p.parent for p in ROOT.glob("hw/**/rtl/*.svh")}):
        manager.addUserDirectories(str(folder))
    without: dict[tuple[str, str], Found] = {}
    reset = set()
    for path in paths:
        for module, block in Reader(path, manager).blocks():
            reset |= {(module, place.name) for place in block.in_reset}
            for register, line in block.without():
                without.setdefault((module, register), Found(path, line))
    return without, reset


@dataclass(frozen=True)
class Entry:
    """A line of a list: registers of a module, and the reason above it."""

    line: int
    module: str
    registers: tuple[str, ...]
    reason: str


def entries(path: Path) -> Iterator[Entry | int]:
    """The entries of a list, and numbers of lines that are none."""
    above = ""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line and not line.startswith("#"):
            entry = ENTRY.fullmatch(line)
            # A reason is the reason of the one line below it.
            reason = above[2:] if above.startswith("# ") else ""
            yield Entry(number, entry[1], tuple(entry[2].split()), reason) if entry else number
        above = line


def problems() -> list[str]:
    """One line for each register that has neither a reset nor a reason, and for each entry that is wrong."""
    found, reset = registers(sources())
    wrong, reasons = [], {}
    for path in lists():
        for entry in entries(path):
            if isinstance(entry, int):
                place = f"{path.relative_to(ROOT)}:{entry}"
                wrong.append(f"{place}: only `module: register register ...` and `# reason` are allowed here")
                continue
            place = f"{path.relative_to(ROOT)}:{entry.line}"
            if not entry.reason:
                wrong.append(f"{place}: registers without a reason on the line above")
            for name in WITNESS.findall(entry.reason):
                if (entry.module, name) not in reset:
                    wrong.append(f"{place}: {entry.module}.{name}, which the reason names, is no register with a reset")
            for register in entry.registers:
                key = (entry.module, register)
                here = found.get(key)
                if key in reasons:
                    wrong.append(f"{place}: {entry.module}.{register} is listed at {reasons[key]}, too")
                elif here is None or path.parent.parent not in here.path.parents:
                    wrong.append(f"{place}: {entry.module}.{register} is no register without a reset of this block")
                else:
                    reasons[key] = place
    for (module, register), here in found.items():
        if (module, register) not in reasons:
            place = f"{here.path.relative_to(ROOT)}:{here.line}"
            missing = f"give it one, or a reason in lint/{LIST} of its block why nobody reads it before it is written"
            wrong.append(f"{place}: {module}.{register} has no reset: {missing}")
    return wrong
