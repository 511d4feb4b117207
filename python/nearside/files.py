# SPDX-License-Identifier: Apache-2.0
"""Files that users name, for reading and writing. Every failure is a one-line error that names the file."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shutil
import signal
import stat
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from nearside._native import NearsideError

# The limit of Linux.
MAX_LINKS = 40
# Bytes that are copied at a time.
CHUNK = 1 << 20
# Set by a command; called when data have gone to standard output, which then carries no messages.
on_stdout: Callable[[], None] | None = None


def printable(name: object) -> str:
    """A name for messages: control characters, line separators and bytes that are no UTF-8 are escaped."""
    breaks = r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]"
    return re.sub(breaks, lambda found: found[0].encode("unicode_escape", "surrogatepass").decode(), str(name))


def check_regular(path: Path) -> None:
    """Refuses files that can't be read to an end, such as pipes and /dev/zero."""
    known: str | None
    try:
        if path.is_file():
            return
        known = "is a directory" if path.is_dir() else "is no regular file" if path.exists() else "no such file"
    except OSError as error:
        known = error.strerror
    raise NearsideError(f"{printable(path)}: {known}")


def same(one: Path, other: Path) -> bool:
    """Whether both paths lead to one file, which need not exist yet."""
    try:
        return os.path.samefile(one, other)
    except OSError:
        return os.path.realpath(one) == os.path.realpath(other)


def check_apart(outputs: Iterable[Path | None], inputs: Iterable[Path | None] = ()) -> None:
    """Refuses an output that would overwrite an input or another output; not devices and pipes."""
    taken = [path for path in inputs if path is not None]
    for path in outputs:
        # os.path, since a name that is too long raises no error here; opening it reports that.
        if path is None or _descriptor(path) is not None or (os.path.exists(path) and not path.is_file()):
            continue
        other = next((other for other in taken if same(path, other)), None)
        if other is not None:
            raise NearsideError(
                f"{printable(path)}: this command reads or writes {printable(other)}, the same file, too; "
                "name another one"
            )
        taken.append(path)


def check_output(path: Path) -> None:
    """Refuses a file that can't be written, before long work on its content; devices and pipes pass."""
    try:
        if _descriptor(path) is not None or (path.exists() and not path.is_file() and not path.is_dir()):
            return
        if path.is_dir():
            raise NearsideError(f"{printable(path)}: is a directory; name a file")
        folder = Path(os.path.realpath(path)).parent
        if not folder.is_dir():
            raise NearsideError(f"{printable(path)}: its folder doesn't exist; make it, or name another file")
        # A trial, since permissions don't apply to root and say nothing of read-only file systems.
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise NearsideError(f"{printable(path)}: {error.strerror}") from None


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds a lock that excludes other processes with `locked` on the file: for reading it and writing it again."""
    # The lock is on the folder, since replacing the file would discard a lock on the file.
    try:
        descriptor = os.open(Path(os.path.realpath(path)).parent, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise NearsideError(f"{printable(path)}: {error.strerror}") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def read_bytes(path: Path) -> bytes:
    """The content of a regular file."""
    check_regular(path)
    try:
        return path.read_bytes()
    except OSError as error:
        raise NearsideError(f"{printable(path)}: {error.strerror}") from None


def read_text(path: Path) -> str:
    """The content of a regular file; a ValueError if it is no text."""
    return read_bytes(path).decode()


def write_text(path: Path, text: str) -> None:
    """Writes text as `write_bytes` does. Lone surrogates, which UTF-8 lacks, are escaped."""
    write_bytes(path, text.encode(errors="backslashreplace"))


def write_bytes(path: Path, data: bytes) -> None:
    """Writes a regular file completely or not at all, and keeps its mode. Symlinks, devices and
    pipes stay.

    An open descriptor of this process (/dev/stdout, /dev/fd/N, a symlink to one) is written to, of
    any kind.
    """
    if _is_written_in_place(path):
        _write_existing(path, [data])
        return
    with replaced(path) as part:
        part.write_bytes(data)


@contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """A temporary file to write, whose content then replaces the target as with `write_bytes`."""
    in_place, target = _is_written_in_place(path), Path(os.path.realpath(path))
    try:
        # A separate folder in the target's: any name that the target may have is allowed there.
        with _temporary(None if in_place else target.parent) as folder:
            part = Path(folder, "part" if in_place else target.name)
            yield part
            if in_place:
                with part.open("rb") as content:
                    _write_existing(path, iter(lambda: content.read(CHUNK), b""))
                return
            if target.exists():
                part.chmod(stat.S_IMODE(target.stat().st_mode))
            part.replace(target)
    except OSError as error:
        raise NearsideError(f"{printable(path)}: {_reason(error)}") from None


@contextmanager
def _temporary(beside: Path | None) -> Iterator[Path]:
    """A temporary folder that is removed at the end, also when a signal ends the process."""
    gate, folder = _SignalGate(), None
    try:
        try:
            folder = tempfile.mkdtemp(prefix=".nearside-", dir=beside)
            gate.enable()
            yield Path(folder)
        finally:
            gate.disable()
    finally:
        gate.disable()
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        gate.restore()


class _Ended(BaseException):
    """Raised for a signal that ends the process."""


class _SignalGate:
    """Signals that end the process by default, raised as exceptions while they are enabled.

    While disabled they are recorded. `restore` sends a recorded signal again with its original
    handler.
    """

    def __init__(self) -> None:
        self.enabled, self.raised = False, False
        self.received: list[int] = []
        defaults = {
            signal.SIGTERM: signal.SIG_DFL,
            signal.SIGHUP: signal.SIG_DFL,
            signal.SIGINT: signal.default_int_handler,
        }
        # Only the main thread may handle signals; elsewhere they end the process as usual.
        main = threading.current_thread() is threading.main_thread()
        self.handlers = {number: how for number, how in defaults.items() if main and signal.getsignal(number) is how}
        for number in self.handlers:
            signal.signal(number, self._receive)

    def _receive(self, number: int, _frame: object) -> None:
        self.received.append(number)
        if self.enabled:
            self._raise()

    def _raise(self) -> None:
        self.raised = True
        raise KeyboardInterrupt if self.received[0] == signal.SIGINT else _Ended

    def enable(self) -> None:
        self.enabled = True
        if self.received:
            self._raise()

    def disable(self) -> None:
        self.enabled = False

    def restore(self) -> None:
        for number, how in self.handlers.items():
            signal.signal(number, how)
        # An interruption that was raised is still propagating.
        if self.received and not (self.raised and self.received[0] == signal.SIGINT):
            os.kill(os.getpid(), self.received[0])


def _is_written_in_place(path: Path) -> bool:
    """Whether data are written to the existing object: a descriptor, a device or a pipe."""
    try:
        return _descriptor(path) is not None or (path.exists() and not path.is_file())
    except OSError as error:
        raise NearsideError(f"{printable(path)}: {_reason(error)}") from None


def _write_existing(path: Path, chunks: Iterable[bytes]) -> None:
    descriptor = _descriptor(path)
    try:
        if descriptor is not None:
            _write_to(descriptor, chunks)
        else:
            _write_device(path, chunks)
    except OSError as error:
        raise NearsideError(f"{printable(path)}: {_reason(error)}") from None


def _reason(error: OSError) -> str:
    if error.errno == errno.ENXIO:
        return "nobody reads from this pipe"
    return os.strerror(error.errno) if error.errno else str(error)


def _descriptor(path: Path) -> int | None:
    """The descriptor of this process that a path leads to; the target of that one is not followed."""
    open_files = {f"/proc/{os.getpid()}/fd", f"/proc/{os.getpid()}/task/{threading.get_native_id()}/fd"}
    for _ in range(MAX_LINKS):
        folder = os.path.realpath(path.parent)
        if folder in open_files and path.name.isdecimal():
            return int(path.name)
        try:
            path = Path(folder, os.readlink(Path(folder, path.name)))
        except OSError:  # no further link
            return None
    return None


def _write_to(descriptor: int, chunks: Iterable[bytes]) -> None:
    # Printed output comes before the data.
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    # A duplicate, which can be closed; both share the file position.
    with open(os.dup(descriptor), "wb") as file:
        _check_stdout(descriptor)
        file.writelines(chunks)


def _check_stdout(descriptor: int) -> None:
    """Calls `on_stdout` if data are written to standard output."""
    with suppress(OSError):
        if on_stdout is not None and os.path.sameopenfile(descriptor, 1):
            on_stdout()


def _write_device(path: Path, chunks: Iterable[bytes]) -> None:
    # A pipe without a reader raises an error instead of blocking for ever.
    descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    os.set_blocking(descriptor, True)
    with open(descriptor, "wb") as file:
        _check_stdout(descriptor)
        file.writelines(chunks)
