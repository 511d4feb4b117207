# SPDX-License-Identifier: Apache-2.0
"""NVMulator, table 1: FPGA resources of the emulator."""

from __future__ import annotations

from typing import Any

from nearside.claims import area
from nearside.claims.registry import Context
from nearside.experiments.registry import Experiment, Row, Run, figure, plot

# An Alveo U280 in the first line of the table, and the others' shares of it.
U280 = {"LUT": 1_303_680, "FF": 2_607_360, "BRAM36": 2016}
TABLE_PERCENT = {
    "NVMulator": {"LUT": 0.54, "FF": 0.19, "BRAM36": 0.42},
    "DMA-engine": {"LUT": 0.88, "FF": 0.68, "BRAM36": 0.74},
}
NAMES = {"LUT": "LUTs", "FF": "registers", "BRAM36": "BRAM of 36 Kbit"}
# Our blocks by their names in nearside.claims.area, and the corresponding lines of the table.
BLOCKS = {"nvm_delay": ("nvm_delay.levels", "NVMulator"), "nvme_data": ("nvme.levels.data", "DMA-engine")}


def published(line: str, key: str) -> float:
    """The table's share of the board as a number of LUTs, registers or blocks."""
    return TABLE_PERCENT[line][key] / 100 * U280[key]


def published_text(line: str, key: str) -> str:
    count = published(line, key)
    about = f"{count:,.0f}" if count >= 100 else f"{count:.1f}"
    return f"{about} ({TABLE_PERCENT[line][key]:g} % of the board)"


def cases(run: Run) -> list[str]:
    return run.parameters["blocks"]


def measure(run: Run, case: str) -> Row:
    """Synthesises a block; earlier results are in build/area while no source changes."""
    claim, line = BLOCKS[case]
    result = area.synthesised(run.once("context", Context), claim)
    taken = {key: result["resources"][key] for key in U280}
    return {"block": case, "beside": line, **taken, "lut_levels": result["lut_levels"], "family": result["family"]}


def figures(rows: list[Row]) -> list[dict[str, Any]]:
    return [
        figure(
            f"{row['block']}.{key.lower().rstrip('36')}", f"{NAMES[key]} of {row['block']}", row[key], "",
            paper=published(row["beside"], key), source=f"table 1, {row['beside']}",
            paper_text=published_text(row["beside"], key),
            limit=U280[key], limit_text="an Alveo U280", better="lower", time="none",
        )
        for row in rows
        for key in U280
    ]  # fmt: skip


def plots(rows: list[Row]) -> list[dict[str, Any]]:
    out = []
    for row in rows:
        ours = [100 * row[key] / U280[key] for key in U280]
        series = [
            {"name": row["beside"], "of": "paper", "y": list(TABLE_PERCENT[row["beside"]].values())},
            {"name": row["block"], "of": "ours", "y": ours},
        ]
        title = f"{row['block']} beside {row['beside']}"
        out.append(plot(title, list(NAMES.values()), series, kind="bars", x_label="", y_label="% of an Alveo U280"))
    return out


EXPERIMENT = Experiment(
    name="nvmulator_table1",
    title="FPGA resources of the emulator",
    source="NVMulator (Tamimi et al., 2023), table 1",
    text=(
        "Resources of one `nvm_delay` (one memory channel) after synthesis with Yosys for UltraScale+, beside the "
        "line NVMulator of the table, which Vitis 2022.2 has placed and routed on an Alveo U280.",
        "Ours is an upper bound in LUTs: Yosys does not pack two small functions into one LUT6, Vitis does.",
        "The table rounds its shares to 0.01 % of the board: 130 LUTs, 261 registers, 0.2 blocks of BRAM.",
        "Earlier results of the synthesis are taken from build/area while no source has changed.",
        "In full runs `nvme_data` (PRPs, data movers of four channels) is shown beside the table's DMA-engine. Their "
        "functions differ: the table's copies for TaPaSCo, ours moves the data of NVMe commands. The table's memory "
        "controller and PCIe controller have no counterpart: ours are models of the simulation.",
    ),
    quick={"blocks": ["nvm_delay"]},
    full={"blocks": ["nvm_delay", "nvme_data"]},
    cases=cases,
    measure=measure,
    figures=figures,
    plots=plots,
    models=("yosys",),
    design=None,
    time="none",
)
