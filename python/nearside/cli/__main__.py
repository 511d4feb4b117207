# SPDX-License-Identifier: Apache-2.0
"""`python -m nearside.cli`: the command line without what `nearside.__main__` does before it is loaded."""

from nearside.cli import main

main()
