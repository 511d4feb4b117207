#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A `yosys` command over the native pyosys wheel, with the part of its command line that sby and our tools use.

usage: yosys [-q] [-l LOG] [-p COMMANDS] [-s SCRIPT] [-V] [FILE.ys | FILE.v ...]

The output goes to LOG when -l is given, nowhere when only -q is given, else to standard output.
tools/setup.py installs a copy in .venv/bin.
"""

import getopt
import os
import sys


def main() -> None:
    flags, files = getopt.gnu_getopt(sys.argv[1:], "qQTVl:p:s:")
    if ("-V", "") in flags:
        from importlib.metadata import version

        print("Yosys", version("pyosys"), "(pyosys)")
        return

    # Yosys writes to the C++ stdout, so the file descriptor has to move, not sys.stdout.
    log = dict(flags).get("-l") or (os.devnull if ("-q", "") in flags else None)
    if log:
        os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), 1)

    from pyosys import libyosys

    design = libyosys.Design()
    for file in files:
        command = "script" if file.endswith(".ys") else "read_verilog -sv"
        libyosys.run_pass(f"{command} {file}", design)
    for flag, value in flags:
        if flag == "-s":
            libyosys.run_pass(f"script {value}", design)
        if flag == "-p":
            for command in filter(None, (part.strip() for part in value.split(";"))):
                libyosys.run_pass(command, design)


main()
