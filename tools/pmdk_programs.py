# SPDX-License-Identifier: Apache-2.0
"""A device for tests of unmodified programs with libpmemobj, and programs that have their pools on it."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from nearside import pmdk


class Place:
    """A device, and programs that have their pools on it."""

    def __init__(self, folder: Path, program: Path) -> None:
        self.socket, self.folder, self.program = folder / "device.sock", folder, program
        self.library = pmdk.write_shim(folder)
        self.count = 0

    def environment(self, **options) -> dict[str, str]:
        return dict(pmdk.environment(self.library, self.socket, self.folder / "report.json", **options))

    def pools(self, *kinds: str) -> list[str]:
        """Names of pools that are not there yet."""
        self.count += 1
        return [f"{kind}:{self.folder}/pool-{self.count}-{n}" for n, kind in enumerate(kinds)]

    def start(self, pools: list[str], seed: int, steps: int, threads: int = 1, **options) -> subprocess.Popen[str]:
        command = [self.program, "run", str(seed), str(steps), str(threads), *pools]
        return subprocess.Popen(
            command, env=self.environment(**options), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def run(self, pools: list[str], seed: int, steps: int, threads: int = 1, **options) -> dict[str, int]:
        """To the end; what the device has done."""
        process = self.start(pools, seed, steps, threads, **options)
        _, err = process.communicate(timeout=600)
        assert (process.returncode, err) == (0, "")
        return json.loads((self.folder / "report.json").read_text())

    def check(self, pools: list[str], seed: int) -> tuple[dict[tuple[int, int], int], str]:
        """Steps that are done of each pool and thread, or what is wrong."""
        command = [self.program, "check", str(seed), *pools]
        done = subprocess.run(command, env=self.environment(), capture_output=True, text=True, timeout=600)
        assert done.returncode in (0, 1), done
        return steps_of(done.stdout), done.stderr

    def remove(self, pools: list[str]) -> None:
        """Their places on the device are free then."""
        for pool in pools:
            Path(pool.partition(":")[2]).unlink(missing_ok=True)


def steps_of(output: str) -> dict[tuple[int, int], int]:
    lines = re.findall(r"^(\d+) (\d+) (\d+)$", output, re.MULTILINE)
    return {(int(pool), int(thread)): int(done) for pool, thread, done in lines}


class Steps:
    """Programs that do steps with pools, on a device and alone."""

    def __init__(self, place: Place, program: Path, folder: Path) -> None:
        self.place, self.program, self.folder = place, program, folder

    def start(
        self, steps: str, alone: bool = False, variables: Mapping[str, str] | None = None, **options
    ) -> subprocess.Popen[str]:
        environment = os.environ | {"PMEM_IS_PMEM_FORCE": "1"} if alone else self.place.environment(**options)
        pipe = subprocess.PIPE
        command = [self.program, self.folder, *steps.split()]
        return subprocess.Popen(
            command, env=environment | dict(variables or {}), stdin=pipe, stdout=pipe, stderr=pipe, text=True
        )

    def output(self, steps: str, diagnostic: str = "", alone: bool = False, **options) -> list[str]:
        """Runs the steps and returns their output lines; stderr has to contain `diagnostic`, or to be empty."""
        process = self.start(steps, alone, **options)
        out, err = process.communicate(timeout=600)
        assert process.returncode == 0, (out, err)
        assert (diagnostic in err) if diagnostic else err == ""
        return out.splitlines()

    def same(self, steps: str) -> list[str]:
        """Runs the steps with a device and without, and returns the output, which has to be the same."""
        bare = self.output(steps, alone=True)
        self.clear()
        assert self.output(steps) == bare
        return bare

    def clear(self) -> None:
        for path in self.folder.iterdir():
            path.unlink()
