# SPDX-License-Identifier: Apache-2.0
"""The entry point, for `nearside` and for `python -m nearside`.

The import of the rest takes some tenths of a second. An interruption in that time ends the program
with
one line, as later ones do.
"""

import os
import signal


def main() -> None:
    """The entry point; does not return."""
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:  # ignored signals stay ignored, as for background jobs
        # An exception would surface within a nested import, and be reported as a failure of that
        # module.
        signal.signal(signal.SIGINT, _end)
    from nearside.cli import main as run

    signal.signal(signal.SIGINT, handler)
    try:
        run()
    except KeyboardInterrupt:  # outside of the command, which reports it
        _end()


def _end(*_: object) -> None:
    os.write(2, b"nearside: interrupted\n")
    os._exit(130)


if __name__ == "__main__":
    main()
