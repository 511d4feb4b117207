# SPDX-License-Identifier: Apache-2.0
"""Runs of Apache Parquet: an encoder of given runs, and a decoder that reports where it stopped."""

OK, READ_ERROR, TRUNCATED, OVERRUN, BAD_KEY = range(5)


def varint(value):
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def pack(keys, width):
    """Consecutive keys, from the lowest bit on; whole groups of 8."""
    keys = list(keys) + [0] * (-len(keys) % 8)
    return sum(key << i * width for i, key in enumerate(keys)).to_bytes(len(keys) * width // 8, "little")


def rle(key, length, width):
    return varint(length << 1) + key.to_bytes((width + 7) // 8, "little")


def packed(keys, width):
    return varint((len(keys) + 7) // 8 << 1 | 1) + pack(keys, width)


def encode(runs, width):
    """`runs`: lists of keys, and pairs of a key and its count."""
    return b"".join(rle(*run, width) if isinstance(run, tuple) else packed(run, width) for run in runs)


def flat(runs):
    """The keys of runs, with the padding of the last groups."""
    keys = []
    for run in runs:
        keys += [run[0]] * run[1] if isinstance(run, tuple) else list(run) + [0] * (-len(run) % 8)
    return keys


def decode_keys(data, count, width):
    """Keys before the end, and the status."""
    keys, place = [], 0
    if width == 0:
        return [0] * count, OK
    key_bytes = (width + 7) // 8
    while len(keys) < count:
        header = shift = 0
        while True:
            if place == len(data) or shift == 35:
                return keys, TRUNCATED
            byte = data[place]
            place += 1
            header |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        length, left = header >> 1, count - len(keys)
        if length == 0:
            return keys, TRUNCATED
        if header & 1:
            if length > (left + 7) // 8:
                return keys, OVERRUN
            for _ in range(length):
                group = data[place : place + width]
                if len(group) < width:
                    return keys, TRUNCATED
                bits = int.from_bytes(group, "little")
                keys += [bits >> i * width & (1 << width) - 1 for i in range(8)]
                place += width
            del keys[count:]
        else:
            if length > left:
                return keys, OVERRUN
            if place + key_bytes > len(data):
                return keys, TRUNCATED
            keys += [int.from_bytes(data[place : place + key_bytes], "little")] * length
            place += key_bytes
    return keys, OK


def decode_fixed(data, count, width):
    step = width // 8
    keys = [int.from_bytes(data[i * step : (i + 1) * step], "little") for i in range(min(count, len(data) // step))]
    return keys, OK if len(keys) == count else TRUNCATED


def decode(data, count, width, entries, fixed=False):
    """Keys before the end, and the status."""
    keys, end = decode_fixed(data, count, width) if fixed else decode_keys(data, count, width)
    for place, key in enumerate(keys):
        if key >= entries:
            return keys[:place], BAD_KEY
    return keys, end
