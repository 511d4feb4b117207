# SPDX-License-Identifier: Apache-2.0
"""The fuzzer on a device whose engines sort tables: their hostile commands beside all others."""

from __future__ import annotations

import pytest
from nearside import Design, fuzzing


def fuzz(model: str, commands: int) -> None:
    doc = fuzzing.run_campaign(Design.load("fuzz-sort"), commands, 1, model=model)
    assert doc["failure"] is None
    assert doc["mismatches"] == 0
    # For each engine: valid commands, invalid ones, and ranges beyond the namespace.
    for opcode in ("d0h", "d4h", "d8h", "dch"):
        for status in ("000h", "002h", "080h"):
            assert doc["outcomes"].get(f"io {opcode} {status}"), (opcode, status)
    assert doc["kinds"]["lists of commands"] > commands // 50


@pytest.mark.slow
def test_fuzz_engines_of_tables():
    fuzz("fast", 3000)


@pytest.mark.long
@pytest.mark.rtl
def test_fuzz_engines_of_tables_on_the_rtl():
    fuzz("rtl", 1500)
