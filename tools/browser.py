#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium inside the repository, for checks of pages and for screenshots.

usage: browser.py kit                                        install it into build/browser (175 MB, cached)
       browser.py shot PAGE PNG [--width N] [--height N] [--at SELECTOR] [--dark] [--whole]

Chromium, its libraries and a font come from Debian's packages, from the mirror that this machine's apt uses. They are
unpacked into a separate directory, so nothing is installed and root is not needed. The script controls Chromium through
a pipe, with Chrome's DevTools protocol.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import hashlib
import json
import os
import platform
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from filelist import ROOT
from nearside.guest.kit import SUITE, Apt, NoKit

WORK = ROOT / "build" / "browser"
PACKAGES = ["chromium-headless-shell", "fonts-dejavu-core"]
KIT_VERSION = 1
LIMIT_S = 60


def kit(tell: bool = True) -> Path:
    """The kit's folder; installs it unless it is there. NoKit says why it can't be had."""
    wanted = json.dumps([KIT_VERSION, SUITE, PACKAGES])
    folder = WORK / f"kit-{hashlib.sha256(wanted.encode()).hexdigest()[:12]}"
    if (folder / "PACKAGES").is_file():
        return folder
    if platform.machine() != "x86_64":
        raise NoKit(f"the packages are for x86_64, this is {platform.machine()}")
    WORK.mkdir(parents=True, exist_ok=True)
    if tell:
        print("browser: downloading Chromium (175 MB)", flush=True)
    with tempfile.TemporaryDirectory(dir=WORK) as scratch:
        apt = Apt(Path(scratch) / "apt")
        apt.run("apt-get", "update")
        apt.run("apt-get", "-y", "--download-only", "install", *PACKAGES)
        unpacked = Path(scratch) / "root"
        archives = sorted((apt.folder / "cache/archives").glob("*.deb"))
        for archive in archives:
            subprocess.run(["dpkg-deb", "-x", archive, unpacked], check=True)
        made = Path(scratch) / "kit"
        assemble(unpacked, made)
        (made / "PACKAGES").write_text("".join(f"{archive.name}\n" for archive in archives))
        shutil.rmtree(folder, ignore_errors=True)
        made.rename(folder)
    return folder


def assemble(unpacked: Path, made: Path) -> None:
    """Takes what runs out of the unpacked packages: the browser, all libraries, the loader, fonts.

    The loader stands beside the browser: what /proc/self/exe then names is the folder in which it looks for its files.
    """
    libraries = unpacked / "usr/lib/x86_64-linux-gnu"
    made.mkdir()
    shutil.move(unpacked / "usr/lib/chromium", made / "chromium")
    shutil.copy(libraries / "ld-linux-x86-64.so.2", made / "chromium")
    (made / "lib").mkdir()
    for lib in [*libraries.glob("*.so*"), *libraries.glob("pulseaudio/*.so*")]:
        # What draws without a graphics card needs no LLVM.
        if not lib.name.startswith(("libLLVM", "libgallium", "libz3")):
            shutil.copy(lib, made / "lib")
    shutil.move(unpacked / "usr/share/fonts", made / "fonts")
    run = made / "run"
    run.write_text(
        '#!/bin/sh\nkit=$(dirname "$(readlink -f "$0")")\n'
        'exec "$kit/chromium/ld-linux-x86-64.so.2" --library-path "$kit/lib:$kit/chromium" '
        '"$kit/chromium/chromium-headless-shell" "$@"\n'
    )
    run.chmod(0o755)


class Browser:
    """A browser with one page open, and all that the page has complained about."""

    def __init__(self, folder: Path, home: Path) -> None:
        fonts = home / "fonts.conf"
        fonts.write_text(
            '<?xml version="1.0"?>\n<!DOCTYPE fontconfig SYSTEM "fonts.dtd">\n<fontconfig>\n'
            f"<dir>{folder}/fonts</dir>\n<cachedir>{home}/fonts</cachedir>\n</fontconfig>\n"
        )
        run = folder / "run"
        # The browser's subprocesses start through the same loader, so its sandbox cannot be used.
        # There is no network anyway.
        command = [run, "--headless", "--no-sandbox", "--no-zygote", f"--browser-subprocess-path={run}"]
        command += ["--disable-gpu", "--disable-background-networking", "--hide-scrollbars", "--disable-dev-shm-usage"]
        command += [f"--user-data-dir={home}/profile", "--remote-debugging-pipe", "about:blank"]
        env = os.environ | {"FONTCONFIG_FILE": str(fonts), "HOME": str(home)}
        taken, self._write = os.pipe()
        self._read, given = os.pipe()

        def descriptors() -> None:  # it reads from 3 and writes to 4
            keep = [os.dup(taken), os.dup(given)]
            os.dup2(keep[0], 3)
            os.dup2(keep[1], 4)

        self.process = subprocess.Popen(
            command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=descriptors, close_fds=False, start_new_session=True,
        )  # fmt: skip
        os.close(taken)
        os.close(given)
        self._buffer = b""
        self._number = 0
        self._loaded = False
        self.complaints: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session: str | None = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    _session: str | None = None

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """A command of the protocol, and its result."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]

    def _receive(self) -> dict[str, Any]:
        """The next message; events are taken note of on the way."""
        limit = time.monotonic() + LIMIT_S
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(0, limit - time.monotonic()))
            data = os.read(self._read, 1 << 20) if ready else b""
            if not data:
                raise RuntimeError("the browser has ended" if ready else f"the browser is silent for {LIMIT_S} s")
            self._buffer += data
        text, _, self._buffer = self._buffer.partition(b"\0")
        message = json.loads(text)
        self._note(message.get("method"), message.get("params", {}))
        return message

    def _note(self, method: str | None, event: dict[str, Any]) -> None:
        if method == "Page.loadEventFired":
            self._loaded = True
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(event["exceptionDetails"]["text"])
        elif method == "Runtime.consoleAPICalled" and event["type"] in ("error", "warning", "assert"):
            self.complaints.append(str([argument.get("value") for argument in event["args"]]))
        elif method == "Log.entryAdded" and event["entry"]["level"] in ("error", "warning"):
            self.complaints.append(event["entry"]["text"])
        elif method == "Network.requestWillBeSent" and not event["request"]["url"].startswith(("file:", "data:")):
            self.complaints.append(f"it asks for {event['request']['url']}")

    def open(self, page: Path, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        """Opens a page from disk, and waits until it is there."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = "dark" if dark else "light"
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self._loaded = False
        failed = self.call("Page.navigate", url=page.resolve().as_uri()).get("errorText")
        if failed:
            raise RuntimeError(f"{page}: {failed}")
        while not self._loaded:
            self._receive()

    def ask(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["text"])
        return answer["result"].get("value")

    def shot(self, picture: Path, whole: bool = False) -> None:
        """A PNG of what the window shows, or of the whole page."""
        answer = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        picture.write_bytes(base64.b64decode(answer["data"]))

    def close(self) -> None:
        with contextlib.suppress(OSError, RuntimeError):
            self._session = None
            self.call("Browser.close")
        os.close(self._write)
        os.close(self._read)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, 9)
            self.process.wait()


@contextlib.contextmanager
def browser(tell: bool = True) -> Iterator[Browser]:
    """`with browser() as b: b.open(page)`; NoKit says why there is none."""
    folder = kit(tell)
    with tempfile.TemporaryDirectory(prefix="nearside-browser-", ignore_cleanup_errors=True) as home:
        opened = Browser(folder, Path(home))
        try:
            yield opened
        finally:
            opened.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("kit")
    shot = commands.add_parser("shot")
    shot.add_argument("page", type=Path)
    shot.add_argument("png", type=Path)
    shot.add_argument("--width", type=int, default=1280)
    shot.add_argument("--height", type=int, default=900)
    shot.add_argument("--at", default="", help="the element to begin with, as a CSS selector")
    shot.add_argument("--dark", action="store_true")
    shot.add_argument("--whole", action="store_true", help="all of the page, not a window of it")
    arguments = parser.parse_args()
    try:
        if arguments.command == "kit":
            print(kit())
            return 0
        with browser() as opened:
            opened.open(arguments.page, arguments.width, arguments.height, arguments.dark)
            if arguments.at:
                opened.ask(f"document.querySelector({json.dumps(arguments.at)}).scrollIntoView()")
            opened.shot(arguments.png, arguments.whole)
            for complaint in opened.complaints:
                print(f"console: {complaint}")
            return 1 if opened.complaints else 0
    except (NoKit, RuntimeError, OSError) as error:
        sys.exit(f"browser: {error}")


if __name__ == "__main__":
    sys.exit(main())
