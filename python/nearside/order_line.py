# SPDX-License-Identifier: Apache-2.0
"""The initial table ORDER-LINE of TPC-C, by clause 4.3.3.1 of its specification (revision 5.11)."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa

DISTRICTS = 10
ORDERS = 3000
# Orders from this number on are not delivered.
NEW = 2101
ITEMS = 100_000
LETTERS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", np.uint8)
ENTERED = datetime(2026, 1, 1)


def order_line(warehouses: int = 1, districts: int = DISTRICTS, seed: int = 1) -> pa.Table:
    """All rows of a number of warehouses, with the first of the ten districts of each."""
    draw = np.random.default_rng(seed)
    counts = draw.integers(5, 16, warehouses * districts * ORDERS)
    orders = np.repeat(np.arange(len(counts)), counts)
    rows = len(orders)
    order = orders % ORDERS + 1
    district = orders // ORDERS % districts + 1
    warehouse = orders // (ORDERS * districts) + 1
    first = np.concatenate([[0], np.cumsum(counts)[:-1]])
    delivered = order < NEW
    cents = np.where(delivered, 0, draw.integers(1, 1_000_000, rows))
    amounts = pa.array([Decimal(int(n)).scaleb(-2) for n in cents], pa.decimal128(6, 2))
    letters = LETTERS[draw.integers(0, len(LETTERS), (rows, 24))]
    return pa.table(
        {
            "ol_o_id": pa.array(order, pa.int32()),
            "ol_d_id": pa.array(district, pa.int8()),
            "ol_w_id": pa.array(warehouse, pa.int32()),
            "ol_number": pa.array(np.arange(rows) - np.repeat(first, counts) + 1, pa.int8()),
            "ol_i_id": pa.array(draw.integers(1, ITEMS + 1, rows), pa.int32()),
            "ol_supply_w_id": pa.array(warehouse, pa.int32()),
            "ol_delivery_d": pa.array([ENTERED] * rows, pa.timestamp("s"), mask=~delivered),
            "ol_quantity": pa.array(np.full(rows, 5), pa.int8()),
            "ol_amount": amounts,
            "ol_dist_info": pa.array([row.tobytes().decode() for row in letters]),
        }
    )
