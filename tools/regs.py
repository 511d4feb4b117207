#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Generates what follows from the register maps: `make regs`; with --check it only compares (part of `make check`).

hw/{ip,engine}/<block>/regs/<name>_regs.rdl, whose top addrmap is <name>_regs, becomes:

    hw/.../rtl/gen/<name>_regs_pkg.sv and <name>_regs.sv    PeakRDL regblock, flat AXI4-Lite, reset arst_n
    crates/spec/src/regs/<name>.rs                              offsets and fields, the module spec::regs::<name>

hw/.../regs/<name>_map.rdl is a map without generated registers, of which there is the Rust module only.

hw/engine/<name>/engine.toml, of an engine without such a map, becomes:

    hw/.../rtl/gen/<name>_job_pkg.sv        parameters of its engine_registers
    crates/spec/src/regs/<name>.rs          fields of its arguments and of its return value

Their reference pages are made with the book (tools/book/register_maps.py).
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import engines
import regs_rust
from filelist import ROOT
from setup import runs

BIN = Path(sys.executable).parent
RUST = Path("crates/spec/src/regs")
# A block decodes its whole window, which has 4 KiB unless listed here. Addresses past its registers
# have no register.
ADDRESS_BITS = {"nvme_regs": 16}
GENERATED = "Generated from {} by tools/regs.py: `make regs`."


def peakrdl(*args: str | Path) -> None:
    done = subprocess.run([BIN / "peakrdl", *args], cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"peakrdl {' '.join(map(str, args))}\n{done.stdout}{done.stderr}".rstrip())


def module(rdl: Path) -> str:
    """Name of the Rust module of a map."""
    return rdl.stem.removesuffix("_regs").removesuffix("_map")


def generate(maps: list[Path], manifests: list[Path], out: Path) -> None:
    """Writes everything below `out`, which stands for the repository root."""
    if not runs("rustfmt", "--version"):
        sys.exit("the Rust modules need rustfmt: apt-get install -y rustfmt, or rustup component add rustfmt")
    rust = {}
    for rdl in maps:
        if rdl.stem.endswith("_regs"):
            peakrdl(
                *("regblock", rdl, "--top", rdl.stem, "-o", gen(rdl.parents[1], out)),
                *("--cpuif", "axi4-lite-flat", "--default-reset", "arst_n"),
                *("--addr-width", str(ADDRESS_BITS.get(rdl.stem, 12))),
            )
        rust[module(rdl)] = regs_rust.module(rdl, rdl.stem, GENERATED.format(rdl.relative_to(ROOT)))
    for path in manifests:
        manifest, header = engines.load(path), GENERATED.format(path.relative_to(ROOT))
        (gen(path.parent, out) / f"{manifest['name']}_job_pkg.sv").write_text(engines.package(manifest, header))
        rust[manifest["name"]] = engines.rust(manifest, header)
    (out / RUST).mkdir(parents=True, exist_ok=True)
    for name, text in rust.items():
        path = out / RUST / f"{name}.rs"
        path.write_text(text)
        subprocess.run(["rustfmt", "--edition", "2021", "--config-path", ROOT / "rustfmt.toml", path], check=True)


def gen(block: Path, out: Path) -> Path:
    """The folder below `out` for the generated RTL of a block."""
    folder = out / block.relative_to(ROOT) / "rtl" / "gen"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def generated(root: Path) -> dict[str, bytes]:
    """Every generated file below a root."""
    files = [*root.glob("hw/ip/*/rtl/gen/*"), *root.glob("hw/engine/*/rtl/gen/*"), *(root / RUST).rglob("*.rs")]
    files = [f for f in files if f != root / RUST / "mod.rs"]  # written by hand
    return {str(f.relative_to(root)): f.read_bytes() for f in files if f.is_file()}


def main() -> int:
    maps = sorted([*ROOT.glob("hw/ip/*/regs/*.rdl"), *ROOT.glob("hw/engine/*/regs/*.rdl")], key=lambda path: path.stem)
    manifests = engines.manifests()
    with tempfile.TemporaryDirectory() as name:
        fresh = Path(name)
        generate(maps, manifests, fresh)
        old, new = generated(ROOT), generated(fresh)
        stale = sorted(path for path in old.keys() | new.keys() if old.get(path) != new.get(path))
        if sys.argv[1:] == ["--check"]:
            for path in stale:
                print(f"{path} does not follow from the register maps; run make regs")
            print(f"{len(maps) + len(manifests)} register maps, {len(stale)} stale files")
            return 1 if stale else 0
        for path in stale:
            if path in new:
                (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(fresh / path, ROOT / path)
            else:
                (ROOT / path).unlink()
            print(f"{'wrote' if path in new else 'removed'} {path}")
        print(f"{len(maps) + len(manifests)} register maps, {len(stale)} files changed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
