"""How much the simulations do: of the tests that repeat themselves a sample, or all with NEARSIDE_LONG=1.

`make test` takes the sample; `make test-all` sets the variable.
"""

from __future__ import annotations

import os

LONG = os.environ.get("NEARSIDE_LONG", "0") not in ("", "0")
