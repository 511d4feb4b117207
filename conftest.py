"""For all Python tests: which engine devices are on, and that those of the RTL stop when one of its assertions fails.

Behaviour is tested on the fast engine; NEARSIDE_ENGINE=rtl is for the tests marked `both`, and whoever wants all of
them there.
Tests marked `rtl` are about the RTL itself. tests/test_builds.py checks that devices have assertions.
"""

import os
import signal

import pytest

os.environ["NEARSIDE_CHECKED"] = "1"
os.environ.setdefault("NEARSIDE_ENGINE", "fast")

# A shell's background jobs and nohup's ignore these, and so would every process that a test starts and sends one to.
for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, handler)


@pytest.fixture(autouse=True)
def engine(request, monkeypatch):
    """The engine of a test's own devices."""
    if request.node.get_closest_marker("rtl"):
        monkeypatch.setenv("NEARSIDE_ENGINE", "rtl")
    return os.environ["NEARSIDE_ENGINE"]
