# SPDX-License-Identifier: Apache-2.0
"""Finds combinational loops in a flat netlist that Yosys has mapped to UltraScale+ (`synth.py`).

A loop is a set of nets each of which depends on itself within one clock cycle. Dependences are known bit by bit for
carry chains and port by port for distributed memory. So a carry that leaves a chain and returns at a later bit is no
loop, nor is one port of a memory that addresses another. Registers, latches and hard blocks end every path. A DSP block
without registers inside would be overlooked.
"""

from __future__ import annotations

import re
from collections.abc import Callable


def sources(cell: dict, port: str, index: int, ends_path: Callable[[str], bool]) -> list[int | str]:
    """The bits that bit `index` of an output port depends on within the cycle."""
    kind, connections = cell["type"], cell["connections"]
    if ends_path(kind):
        return []
    inputs = {p: connections.get(p, []) for p, d in cell["port_directions"].items() if d == "input"}
    if re.fullmatch(r"CARRY[48]", kind):
        # O[i] = S[i] ^ carry[i]; CO[i] = carry[i + 1], from the selects and data up to i.
        data = index + (port == "CO")
        first = [bit for name in ("CI", "CI_TOP", "CYINIT") for bit in inputs.get(name, [])]
        return [*first, *inputs["S"][: index + 1], *inputs["DI"][:data]]
    if kind.startswith("RAM"):
        letter = port[2:] if re.fullmatch(r"DO[A-H]", port) else ""
        address = f"ADDR{letter}" if letter else "DPRA" if port == "DPO" else "A(?!DDR)"
        return [bit for name, bits in inputs.items() if re.match(address, name) for bit in bits]
    if kind.startswith("SRL"):
        return [] if port == "Q31" else [bit for name, bits in inputs.items() if name.startswith("A") for bit in bits]
    return [bit for bits in inputs.values() for bit in bits]


def loops(module: dict, ends_path: Callable[[str], bool]) -> list[list[str]]:
    """The loops of a netlist, each as the sorted names of its cells. `ends_path` says which kinds of cell end paths."""
    driver: dict[int | str, str] = {}
    graph: dict[int | str, list[int | str]] = {}
    for name, cell in module["cells"].items():
        for port, bits in cell["connections"].items():
            if cell["port_directions"].get(port) == "output":
                for index, bit in enumerate(bits):
                    driver[bit] = name
                    graph[bit] = sources(cell, port, index, ends_path)
    return sorted(sorted({driver[bit] for bit in part}) for part in _circular(graph))


def _circular(graph: dict[int | str, list[int | str]]) -> list[list[int | str]]:
    """The strongly connected parts that have an edge within (Tarjan's algorithm, without recursion)."""
    number: dict[int | str, int] = {}
    low: dict[int | str, int] = {}
    stack: list[int | str] = []
    inside: set[int | str] = set()
    found = []
    for root in graph:
        if root in number:
            continue
        number[root] = low[root] = len(number)
        stack.append(root)
        inside.add(root)
        work = [(root, iter(graph[root]))]
        while work:
            node, edges = work[-1]
            for target in edges:
                if target not in graph:
                    continue  # an input, a constant
                if target not in number:
                    number[target] = low[target] = len(number)
                    stack.append(target)
                    inside.add(target)
                    work.append((target, iter(graph[target])))
                    break
                if target in inside:
                    low[node] = min(low[node], number[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == number[node]:
                    part = [stack.pop()]
                    while part[-1] != node:
                        part.append(stack.pop())
                    inside.difference_update(part)
                    if len(part) > 1 or node in graph[node]:
                        found.append(part)
    return found
