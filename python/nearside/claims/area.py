# SPDX-License-Identifier: Apache-2.0
"""Resources and logic depth of the blocks, from Yosys."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from typing import Any

from nearside._native import NearsideError
from nearside.claims.registry import Context, Measured, Published, at_most, claim
from nearside.device import root

# NVMulator, table 1, as shares of an Alveo U280: 0.54 % of the LUTs, 0.19 % of the registers, 0.42
# % of the BRAM.
NVMULATOR = {"lut": ("LUT", 7040), "ff": ("FF", 4954), "bram": ("BRAM36", 8.5)}
# Claim, module, file list and most levels. 250 MHz allows 10; a block with fewer levels keeps its
# number.
MODULES = {
    "nvm_delay.levels": ("nvm_delay", "hw/ip/nvm_delay/nvm_delay.f", 10),
    "nvme.levels.front": ("nvme_front", "hw/ip/nvme_ctrl/nvme_ctrl.f", 8),
    "nvme.levels.data": ("nvme_data", "hw/ip/nvme_ctrl/nvme_data.f", 10),
}


def synthesised(context: Context, block: str) -> dict[str, Any]:
    """The result of tools/synth.py for one of MODULES; kept in build/area until a source changes."""
    module, files, _ = MODULES[block]

    def run() -> dict[str, Any]:
        sources = [*sorted((root() / "hw").glob("**/rtl/**/*.sv*")), root() / files, root() / "tools" / "synth.py"]
        content = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
        output = root() / "build" / "area" / f"{module}-{content[:16]}.json"
        if not output.is_file():
            output.parent.mkdir(parents=True, exist_ok=True)
            part = output.with_suffix(f".{os.getpid()}")
            command = [sys.executable, "tools/synth.py", module, "-f", files, "--json", str(part)]
            done = subprocess.run(command, cwd=root(), capture_output=True, text=True)
            if done.returncode != 0:
                last = (done.stderr or done.stdout).strip().splitlines()[-1:]
                raise NearsideError(f"tools/synth.py failed: {' '.join(last)}")
            part.replace(output)
        return json.loads(output.read_text())

    return context.once(("area", module), run)


def explain(result: dict[str, Any]) -> str:
    area = result["resources"]
    return f"{area['LUT']} LUT, {area['FF']} FF, {area['BRAM36']} BRAM"


def _resource(name: str, key: str, published: float) -> None:
    @claim(
        f"nvm_delay.area.{name}", key.rstrip("36"), at_most(published),
        "Resources of nvm_delay of one memory channel on UltraScale+ after synthesis with Yosys.",
        paper=Published(
            f"{published:g}", "NVMulator, table 1", "Vitis 2022.2, a part of a design that runs on a U280, rounded to "
            "0.01 % of that; ours is one block, neither placed nor routed, by a tool that packs LUTs less", published,
        ),
        clocks="none: counts of resources.", time="none", model="yosys", quick=False,
    )  # fmt: skip
    def measure(context: Context) -> Measured:
        result = synthesised(context, "nvm_delay.levels")
        return Measured(result["resources"][key], explain(result))


def _levels(block: str) -> None:
    @claim(
        block, "LUTs", at_most(MODULES[block][2]),
        f"The deepest path between registers of {MODULES[block][0]}, after synthesis with Yosys for UltraScale+.",
        time="none", model="yosys", quick=False,
    )  # fmt: skip
    def measure(context: Context) -> Measured:
        result = synthesised(context, block)
        return Measured(result["lut_levels"], f"{result['path'][-1]} -> {result['path'][0]}; {explain(result)}")


for _name, (_key, _published) in NVMULATOR.items():
    _resource(_name, _key, _published)
for _block in MODULES:
    _levels(_block)
