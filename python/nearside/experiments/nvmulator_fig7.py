# SPDX-License-Identifier: Apache-2.0
"""NVMulator, figure 7: bandwidth of random reads and writes of fio on ext4."""

from __future__ import annotations

from nearside.experiments.nvmulator_fio import make_experiment

EXPERIMENT = make_experiment("nvmulator_fig7", 7, "random", "Random reads and writes of fio on ext4", ())
