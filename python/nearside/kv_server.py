# SPDX-License-Identifier: Apache-2.0
"""`nearside pm serve`: a key-value store in persistent memory, with the protocols of Redis and memcached."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from nearside import _native, files
from nearside._native import NearsideError
from nearside.device import Design, as_text
from nearside.renamed import renamed
from nearside.serve import ended_by_signals
from nearside.types import KvReport

PROTOCOLS = ("redis", "memcached")
# A pool of this size has room for a store beside logs and spare pages, with any mechanism.
LEAST_BYTES = 4 << 20
LOOPBACK = "127.0.0.1"


@renamed(engine="model")
class KvServer:
    """A store that is being served. Its data are lost on close, unless the design has a media file.

    `host` is an IP address of this machine. One that other machines can reach is refused without a
    `password` (Redis: AUTH), unless `protected` is false.
    """

    def __init__(
        self,
        protocol: str,
        *,
        port: int = 0,
        host: str = LOOPBACK,
        socket: Path | None = None,
        password: str | None = None,
        protected: bool = True,
        mechanism: str = "undo",
        by: str = "device",
        length: int = 64 << 20,
        design: str | Design = "nearpm",
        model: str = "fast",
        cut_after: int | None = None,
        cut_at_us: float | None = None,
    ) -> None:
        if not isinstance(design, Design):
            design = Design.load(design)
        if not 0 <= port < 1 << 16:
            raise NearsideError(f"port = {port}: allowed are 0 to 65535; 0 is any that is free")
        if port != 0 and socket is not None:
            raise NearsideError(f"port = {port}, socket = {files.printable(socket)}: allowed is one of them")
        if host != LOOPBACK and socket is not None:
            raise NearsideError(
                f"host = {files.printable(host)}, socket = {files.printable(socket)}: allowed is one of them"
            )
        if cut_after is not None and not 1 <= cut_after < 1 << 63:
            raise NearsideError(f"cut_after = {cut_after}: allowed is 1 or more")
        if cut_at_us is not None and not 0 < cut_at_us <= 1e12:
            raise NearsideError(f"cut_at_us = {cut_at_us}: allowed are more than 0 to 1e12")
        if not LEAST_BYTES <= length < 1 << 63:
            raise NearsideError(f"length = {length}: allowed are 4 MiB to what the design's window has")
        cut_at = None if cut_at_us is None else round(cut_at_us * 1e6)
        words = (as_text("model", model), as_text("mechanism", mechanism), as_text("by", by))
        host = LOOPBACK if host == "localhost" else as_text("host", host)
        secret = None if password is None else as_text("password", password)
        self.native = _native.Front(
            as_text("protocol", protocol), design.native, *words, length, host, port, socket, secret, protected,
            cut_after, cut_at,
        )  # fmt: skip
        self.host, self.socket = host, socket

    def __enter__(self) -> KvServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def port(self) -> int | None:
        """The TCP port; None with a Unix socket."""
        return self.native.port

    def close(self) -> KvReport | None:
        """Ends all connections; the first call returns the simulated times of requests, others None."""
        return self.native.stop()


def serve_until_signal(protocol: str, quiet: bool, **options: Any) -> KvReport:
    """Serves until SIGINT or SIGTERM; returns the simulated times of requests."""
    with ended_by_signals() as ended, KvServer(protocol, **options) as server:
        if not quiet:
            address = f"[{server.host}]" if ":" in server.host else server.host
            where = f"{address}:{server.port}" if server.port is not None else str(server.socket)
            print(f"serving {protocol}'s protocol at {where}; end with Ctrl-C", flush=True)
        while not ended:
            time.sleep(0.05)
        report = server.close()
    assert report is not None  # only later calls return None
    return report
