"""Where the program begins, as `nearside` and as `python -m nearside`.

Importing the rest takes some tenths of a second. An interruption meanwhile ends the program in a line, as
later ones do.
"""

import os
import signal


def main() -> None:
    """The entry point; does not return."""
    handler = signal.getsignal(signal.SIGINT)
    if handler is signal.default_int_handler:  # not where the signal is ignored, as of jobs in the background
        # An exception would end up in the middle of a module that another one imports, and be reported as its failure.
        signal.signal(signal.SIGINT, _end)
    from nearside.cli import main as run

    signal.signal(signal.SIGINT, handler)
    try:
        run()
    except KeyboardInterrupt:  # outside of what the command itself reports
        _end()


def _end(*_: object) -> None:
    os.write(2, b"nearside: interrupted\n")
    os._exit(130)


if __name__ == "__main__":
    main()
