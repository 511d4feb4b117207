"""Plots of result documents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nearside._native import NearsideError


def demo(doc: dict[str, Any], path: Path) -> None:
    """Bandwidth and latency under both timings, and the error of nvm_delay by target."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, middle, right) = pyplot.subplots(1, 3, figsize=(14, 4.2))
    names = [trip["profile"] for trip in doc["trips"]]
    colours = ["#4c72b0", "#dd8452"]
    for number, (trip, colour) in enumerate(zip(doc["trips"], colours, strict=False)):
        places = [p + 0.4 * number for p in range(2)]
        left.bar(places, [trip[k]["bandwidth_gb_s"] for k in ("write", "read")], 0.38, color=colour)
        keys = ("mean_ns", "p50_ns", "p99_ns", "p999_ns")
        places = [p + 0.4 * number for p in range(4)]
        middle.bar(places, [trip["read_512"]["latency"][k] / 1e3 for k in keys], 0.38, color=colour)
    left.set_xticks([0.2, 1.2], ["write", "read"])
    left.set_ylabel("GB/s, simulated")
    left.set_title("file, 16 KiB x 32 in flight")
    left.legend(names)
    middle.set_xticks([p + 0.2 for p in range(4)], ["mean", "p50", "p99", "p99.9"])
    middle.set_ylabel("us, simulated")
    middle.set_title("512 B reads, one at a time")
    middle.legend(names)
    for kind, marker in (("read", "o"), ("write", "s")):
        rows = [row for row in doc["accuracy"] if row["kind"] == kind]
        if rows:
            errors = [max(abs(row["mean_error_percent"]), 1e-4) for row in rows]
            right.plot([row["target_ns"] for row in rows], errors, marker, label=f"{kind}s")
    right.axhline(0.1, color="grey", linewidth=0.8, linestyle="--", label="bound: 0.1 %")
    right.set_xscale("log")
    right.set_yscale("log")
    right.set_xlabel("target latency, ns")
    right.set_ylabel("error of the mean, %")
    right.set_title("nvm_delay, 64 B random")
    right.legend()
    figure.tight_layout()
    try:
        figure.savefig(path, dpi=120)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise NearsideError(f"{path}: {error.strerror}") from None
    finally:
        pyplot.close(figure)
