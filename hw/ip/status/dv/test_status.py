# SPDX-License-Identifier: Apache-2.0
"""Runs cocotb_status."""

import json

from hdl import simulate

BLOCKS = [[0x1000_0000 * b + w + 1 for w in range(8)] for b in range(3)]
HEADER = [0x4E534456, 1, len(BLOCKS), 100_000, 0x8000_0000, 0x0000_0012, 4, 0x1_0000]


def test_status():
    words = "".join(f"{word:08x}" for block in reversed(BLOCKS) for word in reversed(block))
    parameters = {
        "ClockKhz": HEADER[3],
        "MediaBytes": f"64'h{HEADER[5] << 32 | HEADER[4]:x}",
        "NumChannels": HEADER[6],
        "Granule": HEADER[7],
        "NumBlocks": len(BLOCKS),
        "Blocks": f"{len(BLOCKS) * 256}'h{words}",
    }
    env = {"STATUS_TABLE": json.dumps({"header": HEADER, "blocks": BLOCKS})}
    simulate(
        "status_tb",
        "cocotb_status",
        filelists=["hw/ip/status/status.f"],
        extra_sources=["status_tb.sv"],
        parameters=parameters,
        env=env,
    )
