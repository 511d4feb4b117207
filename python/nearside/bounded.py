# SPDX-License-Identifier: Apache-2.0
"""Runs a command with a time limit, keeps the end of its output, and ends all its processes."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from nearside import files
from nearside._native import NearsideError

# Bytes of each stream that are kept: a command may write without end.
TAIL = 1 << 16
POLL_S = 0.1
KILL_S = 10


@dataclass(frozen=True)
class CommandResult:
    """The end of a command: its status (negative for a signal), or None if it exceeded its limit."""

    status: int | None
    stdout: str
    stderr: str
    # Wall-clock time.
    seconds: float

    @property
    def last_line(self) -> str:
        """The last line of standard error, or of standard output if standard error has none."""
        return next((lines[-1] for lines in map(_lines, (self.stderr, self.stdout)) if lines), "")

    @property
    def lines(self) -> list[str]:
        """All lines that were kept, standard output first."""
        return _lines(self.stdout) + _lines(self.stderr)


def _lines(text: str) -> list[str]:
    """Lines, with the characters that a terminal interprets escaped."""
    return ["".join(c if c.isprintable() else ascii(c)[1:-1] for c in line) for line in text.strip().splitlines()]


def run_command(
    words: Sequence[str],
    variables: Mapping[str, str],
    limit_s: float,
    mark: str,
    *,
    with_children: bool = False,
    stop: Callable[[], bool] = lambda: False,
) -> CommandResult:
    """Runs a command to its end or its limit, in wall-clock seconds; then kills what is left of it.

    That is: the processes of its session, and those with the variable `mark` (NAME=VALUE) in their
    environment, such as daemons. With `with_children` the command ends when all processes that have
    its output open have ended. `stop` is polled, and ends the command by returning True.
    """
    started = time.monotonic()
    try:
        process = subprocess.Popen(
            words, env=variables, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
    except OSError as error:
        raise NearsideError(f"{files.printable(words[0])}: {error.strerror}") from None
    except ValueError as error:
        raise NearsideError(f"{files.printable(words[0])}: {error}") from None
    tails = {stream: bytearray() for stream in (process.stdout, process.stderr) if stream}
    try:
        in_time = _read_until_end(process, tails, started + limit_s, with_children, stop)
    finally:
        # The process is waited for after that: until then no other session can have its number.
        _kill(process.pid, mark.encode())
        process.wait()
        for stream, tail in tails.items():
            if not stream.closed:
                _read(stream, tail)
                stream.close()
    out, err = (bytes(tail).decode(errors="backslashreplace") for tail in tails.values())
    return CommandResult(process.returncode if in_time else None, out, err, time.monotonic() - started)


def _read_until_end(
    process: subprocess.Popen[bytes],
    tails: Mapping[IO[bytes], bytearray],
    deadline: float,
    with_children: bool,
    stop: Callable[[], bool],
) -> bool:
    """Reads the output of a command until it ends; False if the deadline comes first."""
    ended = os.pidfd_open(process.pid)
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(ended, selectors.EVENT_READ)
            for stream in tails:
                os.set_blocking(stream.fileno(), False)
                selector.register(stream, selectors.EVENT_READ, stream)
            while selector.get_map():
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                for key, _ in selector.select(min(left, POLL_S)):
                    if key.fileobj == ended:
                        if not with_children:
                            return True
                        selector.unregister(ended)
                    elif not _read(key.data, tails[key.data], once=True):
                        selector.unregister(key.fileobj)
                if stop():
                    return True
        return True
    finally:
        os.close(ended)


def _read(stream: IO[bytes], tail: bytearray, once: bool = False) -> bool:
    """Appends available data to the tail of a stream, limited to `TAIL` bytes; False at its end."""
    for _ in range(1 if once else TAIL // 4096):
        try:
            part = os.read(stream.fileno(), TAIL)
        except BlockingIOError:
            return True
        if not part:
            return False
        tail += part
        del tail[:-TAIL]
    return True


def _kill(session: int, mark: bytes) -> None:
    """Kills all processes of a session, and those with a mark; repeats until none is found."""
    for _ in range(KILL_S * 1000):
        found = [pid for pid in _processes_since(session) if _belongs(pid, session, mark)]
        if not found:
            return
        for pid in found:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                continue
        time.sleep(0.001)
    raise NearsideError(f"processes of a command can't be killed: {', '.join(map(str, found))}")


def _processes_since(first: int) -> list[int]:
    """The processes with numbers from `first` on. Numbers ascend, and wrap around at the end."""
    pids = [int(name) for name in os.listdir("/proc") if name.isdecimal()]
    last = int(Path("/proc/loadavg").read_text().split()[-1])
    return [pid for pid in pids if pid >= first or last < first]


def _belongs(pid: int, session: int, mark: bytes) -> bool:
    """Whether a running process belongs to the command."""
    try:
        # The fields after the name, which may hold any bytes: state, parent, group, session.
        state, _, _, its_session = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[:4]
        if state in b"ZX":
            return False
        return int(its_session) == session or mark in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:  # it has ended, or is another user's
        return False
