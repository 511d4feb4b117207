# SPDX-License-Identifier: Apache-2.0
"""For all Python tests: which model devices are on, and that those of the RTL stop when one of its assertions fails.

Behaviour is tested on the fast model; NEARSIDE_MODEL=rtl is for the tests marked `both`, and whoever wants all of
them there.
Tests marked `rtl` are about the RTL itself. tests/test_builds.py checks that devices have assertions.
"""

import os
import signal

import pytest

os.environ["NEARSIDE_CHECKED"] = "1"
os.environ.setdefault("NEARSIDE_MODEL", os.environ.get("NEARSIDE_ENGINE") or "fast")

# A shell's background jobs and nohup's ignore these. So would every process that a test starts and
# sends one to.
for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, handler)


@pytest.fixture(autouse=True)
def model(request, monkeypatch):
    """The model of a test's devices."""
    if request.node.get_closest_marker("rtl"):
        monkeypatch.setenv("NEARSIDE_MODEL", "rtl")
    return os.environ["NEARSIDE_MODEL"]
