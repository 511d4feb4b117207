# SPDX-License-Identifier: Apache-2.0
"""Robustness of the controller: random and malformed commands against a reference model."""

from __future__ import annotations

from nearside.claims.registry import Context, Measured, at_least, at_most, claim
from nearside.device import Design
from nearside.fuzzing import run_campaign, soak
from nearside.types import FuzzReport

COMMANDS = 100_000
QUICK = 4_000
SOAK_BYTES = 10_000_000_000
QUICK_SOAK_BYTES = 24 << 20


def campaign(context: Context) -> FuzzReport:
    def measure() -> FuzzReport:
        commands = QUICK if context.quick else COMMANDS
        return run_campaign(Design.load("fuzz"), commands, context.seed, progress=context.progress)

    return context.once("fuzz", measure)


@claim(
    "nvme.fuzz.mismatches", "mismatches", at_most(0),
    "Random and malformed commands in several namespaces, hostile PRPs and SGLs, fused pairs and halves, formats, bad "
    "and shadow doorbells, stores to the PM window and resets at any moment: each fetched command completes once, with "
    "the status of a reference model, or is gone through a reset; nothing hangs or is written but what commands name, "
    "in host memory and on the media; no access follows CSTS.RDY 0.",
)  # fmt: skip
def mismatches(context: Context) -> Measured:
    doc = campaign(context)
    failure = doc["failure"]
    resets = doc["disables"] + doc["shutdowns"] + doc["function_resets"] + doc["subsystem_resets"]
    resets += doc["power_cuts"] + doc["fatal"]
    text = f"seed {doc['seed']}, {doc['commands']} commands in {doc['episodes']} episodes, {resets} resets"
    return Measured(doc["mismatches"], f"{text}: {failure['what']}, replay {failure['replay']}" if failure else text)


@claim(
    "nvme.fuzz.commands", "commands", at_least(COMMANDS),
    f"Commands of the campaign that the controller has fetched; a quick run has {QUICK}.",
    quick_bound=at_least(QUICK),
)  # fmt: skip
def commands(context: Context) -> Measured:
    doc = campaign(context)
    text = f"{len(doc['outcomes'])} different outcomes, {doc['checked_bytes'] >> 20} MiB checked on the way to the host"
    return Measured(doc["commands"], text)


@claim(
    "nvme.soak", "wrong bytes", at_most(0),
    f"Reads, writes, compares, zeroes and verifies of 512 B to 64 KiB at random places on all queues, "
    f"{SOAK_BYTES / 1e9:.0f} GB in a full run: "
    "every byte that comes back is what the model says, and so is the media after each 64 MiB.",
)  # fmt: skip
def soaked(context: Context) -> Measured:
    amount = QUICK_SOAK_BYTES if context.quick else SOAK_BYTES
    doc = soak(Design.load("fuzz"), amount, context.seed, progress=context.progress)
    moved, checked = doc["moved_bytes"] / 1e9, doc["checked_bytes"] / 1e9
    text = f"{moved:.2f} GB moved in {doc['commands']} commands, {checked:.2f} GB of them read"
    if doc["failure"]:
        text += f": {doc['failure']['what']}"
    return Measured(doc["mismatches"], text)
