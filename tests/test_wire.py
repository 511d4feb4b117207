# SPDX-License-Identifier: Apache-2.0
"""Links by name, and the rate of a lane. The claims `nvme.wire.*` measure links in runs."""

from __future__ import annotations

import pytest
from nearside import Design, wire


def test_wire_links_match_their_names():
    fast = Design.load("default").with_values("[pcie]\ngeneration = 5\nlanes = 16")
    for link, values in wire.LINKS.items():
        pcie = fast.with_values(values).values["pcie"]
        assert link == f"gen{pcie['generation']}x{pcie['lanes']}"


@pytest.mark.parametrize(("generation", "gb_s"), [(1, 0.25), (2, 0.5), (3, 0.985), (5, 3.94)])
def test_wire_lane_rate_follows_from_its_coding(generation, gb_s):
    """PCI Express base specification 3.1, 4.2: 8b/10b below generation 3, then 128b/130b; some is skip ordered sets."""
    assert 0.995 * gb_s < wire.rate({"generation": generation, "lanes": 1}) <= 1.0003 * gb_s
