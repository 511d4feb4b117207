# SPDX-License-Identifier: Apache-2.0
"""Shared parts of NASCENT's experiments: title, constants, devices, and text."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from nearside import baselines, kernels, platforms
from nearside.device import Device
from nearside.experiments.registry import Run

TITLE = "NASCENT (S. Salamat et al., FPGA 2021)"
FLASH = "z-nand"
RATIO = "simulated, of CPU time"
DEVICE_TEXT = (
    "Ours is the design smartssd, the paper's table 1: flash with a link of 3 GB/s, one DDR4-2400 channel, 300 MHz. "
    "Its flash answers in 3 us; the paper states no latency."
)
CPU_TEXT = (
    "Ratios compare times of the CPU named in the rows, measured in the same run, with simulated time. It is another "
    "CPU than the paper's Core i7-8700. The plain quick sort is numpy's introsort without SIMD, which sorts key and "
    "index. The fastest of the installed sorts is shown beside it. Single-threaded times are CPU time, others are "
    "wall-clock time."
)


def device(run: Run) -> tuple[Device, int]:
    """A device of the run, and the base address of its local memory."""
    there = run.device(FLASH)
    run.once("credits", lambda: kernels.remove_limits(there, platforms.ENGINES))
    return there, kernels.memory_base(there, "local")


def cpu_sorts(run: Run, count: int, bits: int = 32) -> dict[str, float]:
    """ns of the CPU's sorts of random keys."""
    keys = kernels.random_keys(count, bits, run.seed)
    return run.once(("cpu", count, bits), lambda: baselines.sorts(keys, run.seed))


def fastest(sorts: dict[str, float]) -> str:
    """The name of the fastest."""
    return min(sorts, key=lambda name: sorts[name])


def cpu_parts() -> dict[str, Any]:
    """Columns of rows that identify the CPU."""
    return {"cpu": baselines.cpu(), "cpu_sorts": baselines.names()}


def cpu_gather_ns(rows: int, row_bytes: int, seed: int) -> float:
    """ns in which one thread gathers rows in random order."""
    rng = np.random.default_rng(seed)
    table = np.frombuffer(rng.bytes(rows * row_bytes), np.dtype((np.void, row_bytes)))
    order = rng.permutation(rows)
    return baselines.measure(lambda: np.take(table, order), time.thread_time)


def count_name(count: int) -> str:
    """A count as in the paper: 1K is a thousand."""
    for step, letter in ((1_000_000, "M"), (1000, "K")):
        if count >= step:
            return f"{count // step}{letter}"
    return str(count)
