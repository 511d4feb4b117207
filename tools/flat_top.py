# SPDX-License-Identifier: Apache-2.0
"""A top with flat ports for a module whose ports are interfaces, which Yosys cannot take as a top."""

from __future__ import annotations

import filelist
from pyslang.ast import ArgumentDirection
from pyslang.driver import Driver

DIRECTION = {ArgumentDirection.In: "input", ArgumentDirection.Out: "output"}


def wrapper(top: str, files: filelist.FileList, parameters: list[str], defines: tuple[str, ...] = ()) -> str | None:
    """Source of module `flat_<top>`, which holds one `top` with these parameters; None if no port is an interface."""
    driver = Driver()
    driver.addStandardArgs()
    options = ["slang", "--top", top, "--threads 1", "--allow-toplevel-iface-ports", "-D SYNTHESIS"]
    options += [f"-D {d}" for d in defines] + [f"-G {p}" for p in parameters] + [f"-I {d}" for d in files.incdirs]
    if not driver.parseCommandLine(" ".join([*options, *map(str, files.sources)])):
        raise ValueError(f"{top}: bad options")
    if not (driver.processOptions() and driver.parseAllSources()):
        raise ValueError(f"{top}: its sources do not parse")
    tops = driver.createCompilation().getRoot().topInstances
    ports = list(tops[0].body.portList) if tops else []
    if not any(is_bus(port) for port in ports):
        return None
    declared, buses, assigned, connected = [], [], [], []
    for port in ports:
        connected.append(f".{port.name}({port.name})")
        if not is_bus(port):
            declared.append(f"{DIRECTION[port.direction]} logic [{port.type.bitWidth - 1}:0] {port.name}")
            continue
        bounds = port.declaredRange or []
        count = bounds[0].width if bounds else 1
        buses.append(f"{port.interfaceDef.name} {port.name}{f'[{count}]' if bounds else ''} ();")
        modport = port.connection[1]
        for signal in modport:
            direction, width = DIRECTION[signal.direction], signal.type.bitWidth
            flat = f"{port.name}_{signal.name}"
            declared.append(f"{direction} logic [{count * width - 1}:0] {flat}")
            for i in range(count):
                member = f"{port.name}{f'[{i}]' if bounds else ''}.{signal.name}"
                part = f"{flat}[{i * width}+:{width}]"
                target, source = (member, part) if direction == "input" else (part, member)
                assigned.append(f"assign {target} = {source};")
    values = ", ".join(".{}({})".format(*p.split("=", 1)) for p in parameters)
    return "\n".join([
        f"module flat_{top} (", ",\n".join(declared), ");", *buses, *assigned,
        f"{top} #({values}) u_top (", ",\n".join(connected), ");", "endmodule", "",
    ])  # fmt: skip


def is_bus(port: object) -> bool:
    return type(port).__name__ == "InterfacePortSymbol"
