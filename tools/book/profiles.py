# SPDX-License-Identifier: Apache-2.0
"""The reference of media and host profiles: keys, and the values and sources of those that come with Nearside."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rust_schema import Schema

MEDIA = """# Media profiles

A media profile is the timing of a memory technology: `media/NAME.toml`. `nvm_delay` gives it to each channel, when a
design names it (`media.profile`) and at run time (`nearside delay set NAME`). A transaction of n beats of 64 bytes
takes `base_ns + n * beat_ns`, and `cap_gb_s` bounds the bandwidth of the whole device. Each value has its published
source.

## Profiles

| profile | reads: `base_ns` | `beat_ns` | `cap_gb_s` | writes: `base_ns` | `beat_ns` | `cap_gb_s` | what |
|---|---|---|---|---|---|---|---|
"""
HOST = """# Host profiles

A host profile states what operations cost on the CPU of the simulated host, and how a device is attached:
`hosts/NAME.toml`. A design names one (`cpu.profile`). Each value stands beside its source, as
`{ value = 25, source = "..." }`.

## Profiles

| profile | what | a driver: submit, complete, interrupt | `load_ns` | attached: CPU to root complex, link |
|---|---|---|---|---|
"""


def media_page(root: Path) -> str:
    """Media profiles."""
    profiles = _read(root / "media")
    rows, sources = "", ["## Sources", ""]
    for name, profile in profiles.items():
        read, write = profile.get("read", {}), profile.get("write", {})
        numbers = [_number(part, key) for part in (read, write) for key in ("base_ns", "beat_ns", "cap_gb_s")]
        rows += f"| `{name}` | {' | '.join(numbers)} | {profile['description']} |\n"
        for direction, timing in (("reads", read), ("writes", write)):
            if timing.get("source"):
                sources.append(f"- `{name}`, {direction}: {timing['source']}")
    return "\n".join([MEDIA + rows, *sources, "", *_keys(root, "Profile")])


def host_page(root: Path) -> str:
    """Host profiles."""
    rows, sources = "", ["## Sources", ""]
    for name, profile in _read(root / "hosts").items():
        driver = " / ".join(
            f"{profile['driver'][key]['value']:g}" for key in ("submit_ns", "complete_ns", "interrupt_ns")
        )
        attach = profile.get("attach")
        link = "of the design"
        if attach:
            value = {key: entry["value"] for key, entry in attach.items()}
            phy = value["device_phy_ns"] + value["propagation_ns"] + value["root_phy_ns"]
            link = f"{value['mmio_ns']} ns, {phy} ns, Gen{value['generation']} x{value['lanes']}"
        load = f"{profile['core']['load_ns']['value']:g}"
        rows += f"| `{name}` | {profile['description']} | {driver} ns | {load} | {link} |\n"
        sources += [f"### `{name}`", "", "| key | value | source |", "|---|---|---|"]
        for table, keys in profile.items():
            for key, entry in keys.items() if isinstance(keys, dict) else ():
                sources.append(f"| `{table}.{key}` | {entry['value']} | {entry['source']} |")
        sources.append("")
    return "\n".join([HOST + rows, *_keys(root, "HostProfile"), *sources])


def _read(folder: Path) -> dict[str, dict[str, Any]]:
    return {path.stem: tomllib.loads(path.read_text()) for path in sorted(folder.glob("*.toml"))}


def _number(timing: dict[str, Any], key: str) -> str:
    return f"{timing[key]:g}" if timing.get(key) else ""


def _keys(root: Path, struct: str) -> Iterator[str]:
    yield from ("## Keys", "", "| key | type | needed | meaning |", "|---|---|---|---|")
    for key in Schema(root).keys(struct):
        yield f"| `{key.path}` | {key.kind} | {'' if key.optional else 'yes'} | {key.text} |"
    yield ""
