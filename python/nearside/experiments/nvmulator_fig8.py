# SPDX-License-Identifier: Apache-2.0
"""NVMulator, figure 8: bandwidth of sequential reads and writes of fio on ext4."""

from __future__ import annotations

from nearside.experiments.nvmulator_fio import make_experiment

EXPERIMENT = make_experiment(
    "nvmulator_fig8",
    8,
    "sequential",
    "Sequential reads and writes of fio on ext4",
    (
        "The paper's driver combines sequential accesses into larger ones. Linux does so for reads through the page "
        "cache, by reading ahead 256 KiB; an `fsync` after each write leaves nothing to combine.",
    ),
)
