"""The controller under fire: random and malformed commands against a reference model."""

from __future__ import annotations

from typing import Any

from nearside.claims.registry import Context, Measured, at_least, at_most, claim
from nearside.device import Design
from nearside.fuzzing import run

COMMANDS = 100_000
QUICK = 4_000


def campaign(context: Context) -> dict[str, Any]:
    def measure() -> dict[str, Any]:
        commands = QUICK if context.quick else COMMANDS
        return run(Design.load("fuzz"), commands, context.seed, progress=context.progress)

    return context.once("fuzz", measure)


@claim(
    "nvme.fuzz.mismatches", "mismatches", at_most(0),
    "Random and malformed commands, hostile PRPs, bad doorbells and resets at any moment: each fetched command "
    "completes once, with the status of a reference model, or is gone through a reset; nothing hangs or is written "
    "but what commands name, in host memory and on the media; no access follows CSTS.RDY 0.",
)  # fmt: skip
def mismatches(context: Context) -> Measured:
    doc = campaign(context)
    failure = doc["failure"]
    resets = doc["disables"] + doc["shutdowns"] + doc["function_resets"] + doc["fatal"]
    text = f"seed {doc['seed']}, {doc['commands']} commands in {doc['episodes']} episodes, {resets} resets"
    return Measured(doc["mismatches"], f"{text}: {failure['what']}, replay {failure['replay']}" if failure else text)


@claim(
    "nvme.fuzz.commands", "commands", at_least(QUICK),
    f"Commands of the campaign that the controller has fetched; a full run has {COMMANDS}.",
)  # fmt: skip
def commands(context: Context) -> Measured:
    doc = campaign(context)
    text = f"{len(doc['outcomes'])} different outcomes, {doc['checked_bytes'] >> 20} MiB checked on the way to the host"
    return Measured(doc["commands"], text)
