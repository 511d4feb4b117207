"""The PM window: the same bytes as the namespace."""

from __future__ import annotations

import random

from nearside.claims.registry import Context, Measured, at_most, claim


@claim(
    "pm.coherence", "wrong bytes", at_most(0),
    "Loads and stores of 1 to 64 bytes and bursts through BAR2, and NVMe commands, see each other's data at once.",
)  # fmt: skip
def coherence(context: Context) -> Measured:
    device = context.device("dram")
    chance = random.Random(context.seed)
    span = 64 << 10
    base = (chance.randrange(device.namespace_bytes // span)) * span
    model = bytearray(chance.randbytes(span))
    device.write(bytes(model), base)
    wrong = compared = 0
    rounds = context.commands(200)
    for turn in range(rounds):
        length = chance.choice((chance.randint(1, 64), chance.randint(65, 4096)))
        at = chance.randrange(span - length)
        if chance.random() < 0.6:
            data = chance.randbytes(length)
            device.pm_write(base + at, data)
            model[at : at + length] = data
        else:
            wrong += _differences(device.pm_read(base + at, length), model[at : at + length])
            compared += length
        if turn % 10 == 9:
            block = chance.randrange(span // 512) * 512
            # A load pushes the posted stores before it to the media.
            device.pm_read(base, 1)
            data, _ = device.read(4096 if block + 4096 <= span else 512, base + block)
            wrong += _differences(data, model[block : block + len(data)])
            compared += len(data)
            fresh = chance.randbytes(512)
            device.write(fresh, base + block)
            model[block : block + 512] = fresh
    data, _ = device.read(span, base)
    wrong += _differences(data, model)
    return Measured(wrong, f"{compared + span} bytes compared in {rounds} accesses")


def _differences(got: bytes, want: bytes | bytearray) -> int:
    return sum(a != b for a, b in zip(got, want, strict=True))
