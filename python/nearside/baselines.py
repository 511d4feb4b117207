# SPDX-License-Identifier: Apache-2.0
"""Sort and dictionary decode on this machine's CPU, the baselines of the device's simulated time.

The device returns the order of the keys, so all sorts here do, too. Single-threaded times are CPU
time,
which other programs disturb less than wall-clock time. Multi-threaded times are wall-clock time.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from nearside._native import NearsideError

# Least total time and number of repetitions; the best run counts.
ENOUGH_S, LEAST = 0.2, 3
# A run that takes less is one of repeated work.
SHORTEST_S = 1e-3
# The environment variable that disables SIMD features in numpy.
OFF = "NPY_DISABLE_CPU_FEATURES"
PLAIN = "quick sort, plain"


def cpu() -> str:
    """The model name of the CPU."""
    try:
        with open("/proc/cpuinfo") as file:
            names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else "unknown CPU"


def threads() -> int:
    """The number of threads that can run in parallel."""
    return len(os.sched_getaffinity(0))


def dispatched() -> list[str]:
    """The SIMD extensions beyond its baseline that numpy uses on this machine."""
    return np.show_config(mode="dicts")["SIMD Extensions"]["found"]


def pairs(keys: np.ndarray) -> np.ndarray:
    """Key and index packed into 64-bit numbers; their order is the stable order of the keys."""
    return keys.astype(np.uint64) << np.uint64(32) | np.arange(len(keys), dtype=np.uint64)


def numpy_sort(keys: np.ndarray) -> np.ndarray:
    """The order of the keys, by numpy's unstable sort."""
    if keys.itemsize == 8:
        return np.argsort(keys)
    packed = pairs(keys)
    packed.sort()
    return packed.astype(np.uint32)


def radix_sort(keys: np.ndarray) -> np.ndarray:
    """The order of the keys, by 16-bit digits from the least significant: numpy's stable sort of 16
    bits is a radix sort."""
    order: np.ndarray | None = None
    for shift in range(0, 8 * keys.itemsize, 16):
        digit = (keys >> keys.dtype.type(shift)).astype(np.uint16)
        step = np.argsort(digit if order is None else digit[order], kind="stable")
        order = step if order is None else order[step]
    assert order is not None
    return order


def polars_sort(keys: np.ndarray) -> Callable[[], Any]:
    """The order of the keys, by Polars."""
    series = importlib.import_module("polars").Series(keys)
    return lambda: series.arg_sort()


def duckdb_sort(keys: np.ndarray) -> Callable[[], Any]:
    """Sorted keys and their indexes, by DuckDB, from an internal table to an Arrow table."""
    connection = importlib.import_module("duckdb").connect()
    places = np.arange(len(keys), dtype=np.uint32)
    connection.execute("create table t as select * from (select unnest($1) as k, unnest($2) as i)", [keys, places])
    return lambda: connection.sql("select k, i from t order by k").to_arrow_table()


def measure(work: Callable[[], Any], clock: Callable[[], float]) -> float:
    """Nanoseconds of the best run. Short work is repeated within a run: a clock of CPU time that is read
    on another core can be microseconds off."""
    best, spent, runs, repeats = float("inf"), 0.0, 0, 1
    while runs < LEAST or spent < ENOUGH_S:
        start = clock()
        for _ in range(repeats):
            work()
        elapsed = clock() - start
        if elapsed < SHORTEST_S:
            repeats *= 2
            continue
        best, spent, runs = min(best, elapsed / repeats), spent + elapsed, runs + 1
        if spent > 10 * ENOUGH_S:
            break
    return best * 1e9


def has(name: str) -> str | None:
    """The version of a package, or None if it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def variants() -> dict[str, tuple[str, list[str]]]:
    """Variants of numpy's sort: a description, and the SIMD features that are disabled.

    AVX-512 is not always the fastest: AMD's Zen 4 is slow with the compressing stores that it
    needs.
    """
    found = dispatched()
    wide = [name for name in found if "V4" in name or "512" in name]
    out = {PLAIN: ("without SIMD, an introsort", found)}
    if wide and len(wide) < len(found):
        out["numpy, AVX2"] = ("x86-simd-sort with AVX2", wide)
    return out | {"numpy": (f"as installed, with {', '.join(found) or 'no SIMD'}", [])}


def numpy_without(features: list[str], count: int, bits: int, seed: int) -> float:
    """Nanoseconds of numpy's sort without some SIMD features, in a separate process."""
    command = [sys.executable, "-m", "nearside.baselines", str(count), str(bits), str(seed)]
    env = os.environ | {OFF: " ".join(features)}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=600)
    if done.returncode:
        raise NearsideError(f"a sort by numpy failed: {(done.stderr.strip().splitlines() or ['no output'])[-1]}")
    return json.loads(done.stdout)["ns"]


@cache
def names() -> dict[str, str]:
    """The sorts that are measured: name and description."""
    found = {
        name: f"numpy {np.__version__} {what}, key and index in 64 bits, 1 thread"
        for name, (what, _) in variants().items()
    }
    found["radix"] = f"numpy {np.__version__}, its radix sort of 16 bits, twice or four times, 1 thread"
    for name in ("polars", "duckdb"):
        if there := has(name):
            found[name] = f"{name} {there}, {threads()} threads"
    return found


def core_ns(elapsed: dict[str, float]) -> dict[str, float]:
    """Core time of each of `sorts`: nanoseconds times the number of threads."""
    return {name: ns * (threads() if name in ("polars", "duckdb") else 1) for name, ns in elapsed.items()}


def sorts(keys: np.ndarray, seed: int) -> dict[str, float]:
    """Nanoseconds of each sort, for `kernels.random_keys` of this seed in memory.

    Packages that are not installed are left out (`make peers` installs them).
    """
    elapsed = {
        name: numpy_without(features, len(keys), 8 * keys.itemsize, seed) for name, (_, features) in variants().items()
    }
    elapsed["radix"] = measure(lambda: radix_sort(keys), time.thread_time)
    for name, make in (("polars", polars_sort), ("duckdb", duckdb_sort)):
        if name in names():
            elapsed[name] = measure(make(keys), time.perf_counter)
    return elapsed


def decoders(dictionary: np.ndarray, keys: np.ndarray) -> dict[str, Callable[[], Any]]:
    """Single-threaded dictionary lookups, by library and version."""
    found = {f"numpy {np.__version__}, take": lambda: np.take(dictionary, keys)}
    if there := has("pyarrow"):
        column = importlib.import_module("pyarrow").DictionaryArray.from_arrays(keys, dictionary)
        found[f"pyarrow {there}, dictionary_decode"] = column.dictionary_decode
    return found


def decode(dictionary: np.ndarray, keys: np.ndarray) -> tuple[float, str]:
    """Bytes of keys per nanosecond of the fastest decoder, and its name."""
    elapsed = {name: measure(work, time.thread_time) for name, work in decoders(dictionary, keys).items()}
    best = min(elapsed, key=elapsed.__getitem__)
    return keys.nbytes / elapsed[best], best


def main() -> None:
    """Runs the child process of `numpy_without`."""
    count, bits, seed = map(int, sys.argv[1:])
    from nearside.kernels import random_keys

    keys = random_keys(count, bits, seed)
    print(json.dumps({"ns": measure(lambda: numpy_sort(keys), time.thread_time)}))


if __name__ == "__main__":
    main()
