# SPDX-License-Identifier: Apache-2.0
"""Differential testing: the RTL model of a design and its fast model in lockstep."""

from __future__ import annotations

from typing import Any

from nearside import _native
from nearside.device import Design, as_text
from nearside.renamed import former_names, renamed
from nearside.types import LockstepReport


def load_design(name: str) -> Design:
    """Loads a design, also with engines of hw/engine if they reach all of its media."""
    return Design.load(name)


@renamed(engines="models")
def run_campaign(design: Design, commands: int, seed: int, **options: Any) -> LockstepReport:
    """Runs a campaign (`replay`, `first_episode`, `shrinks`, `per_episode`, `models`, `progress`)."""
    if options.get("replay") is not None:
        as_text("what to replay", options["replay"])
    doc = _native.diff(design.native, commands, seed, **options)
    return {"engine": "fast and rtl", "time": "simulated", **doc}


__getattr__ = former_names(__name__, run="run_campaign", load="load_design")
