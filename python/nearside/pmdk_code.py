# SPDX-License-Identifier: Apache-2.0
"""Finds the flush, fence and non-temporal store instructions of programs, for the preloaded library."""

from __future__ import annotations

import os
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from nearside import _native, files
from nearside._native import NearsideError

KINDS = ("flushes", "ordered_flushes", "fences", "locked", "streams")
ANSWER_S = 60


class InstructionServer:
    """Answers requests of processes for the instructions of a file; each file is disassembled once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._answers: dict[tuple[int, ...], bytes] = {}
        self._found: dict[str, dict[str, Any]] = {}
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._listener.bind(str(path))
            self._listener.listen(64)
        except OSError as error:
            self._listener.close()
            raise NearsideError(
                f"{files.printable(path)}: no socket can be there: {error} (TMPDIR may name another folder)"
            ) from None
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def modules(self) -> list[dict[str, Any]]:
        """The files with such instructions, counts by kind, and the number of those left alone."""
        return [{"file": name, **self._found[name]} for name in sorted(self._found)]

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:  # closed
                return
            # A process that was killed during its request gets no answer.
            with connection, suppress(OSError):
                connection.settimeout(ANSWER_S)
                self._answer(connection)

    def _answer(self, connection: socket.socket) -> None:
        name, files, _, _ = socket.recv_fds(connection, 4096, 1)
        try:
            if files:
                connection.sendall(self._instructions_of(os.fsdecode(name), files[0]))
        finally:
            for file in files:
                os.close(file)

    def _instructions_of(self, name: str, file: int) -> bytes:
        about = os.fstat(file)
        key = (about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns)
        if key not in self._answers:
            if name == "/proc/self/exe":
                name = os.readlink(f"/proc/self/fd/{file}")
            try:
                with open(file, "rb", closefd=False) as opened:
                    counts, left_alone, answer = _native.pmdk_instructions(opened.read())
            except NearsideError as error:
                self._found[name] = {"error": str(error)}
                counts, left_alone, answer = [], 0, struct.pack("<QQ", 0, 0)
            if any(counts) or left_alone:
                self._found[name] = {**dict(zip(KINDS, counts, strict=True)), "left_alone": left_alone}
            self._answers[key] = answer
        return self._answers[key]


@contextmanager
def served(path: Path) -> Iterator[InstructionServer]:
    """Answers at a socket until the context ends."""
    code = InstructionServer(path)
    try:
        yield code
    finally:
        code.close()
