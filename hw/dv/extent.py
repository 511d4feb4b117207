# SPDX-License-Identifier: Apache-2.0
"""Extent of simulations: a sample of the repetitions of a test, or all with NEARSIDE_LONG=1.

`make test` runs the sample; `make test-all` sets the variable.
"""

from __future__ import annotations

import os

LONG = os.environ.get("NEARSIDE_LONG", "0") not in ("", "0")
