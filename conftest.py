"""For all Python tests: devices stop when an assertion of the RTL fails. tests/test_builds.py checks that they do."""

import os

os.environ["NEARSIDE_CHECKED"] = "1"
