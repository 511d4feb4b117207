"""`nearside crashtest -- PROGRAM`: the power fails at many moments of an unmodified program with libpmemobj."""

from __future__ import annotations

import json
import random
import shlex
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from nearside import _native, pmdk, show
from nearside._native import NearsideError
from nearside.device import Progress

SIDES = ("cpu", "device")
# What a control leaves out, and of which side.
CONTROLS = {"snapshots": "device", "fences": "cpu"}
PATIENCE_S = 600
TIMELINE = 12


class Campaign:
    """A program and its check, on one side: its pools in files, or on a device whose engine keeps the logs."""

    def __init__(self, program: Sequence[str], check: Sequence[str], folder: Path, socket: Path | None) -> None:
        if not any("{}" in word for word in program):
            raise NearsideError("the program's arguments lack {}: a folder for its pools, an empty one for each cut")
        self.folder, self.socket, self.library = folder, socket, pmdk.shim(folder)
        self.pools = folder / "pools"
        self.program, self.check = ([w.replace("{}", str(self.pools)) for w in words] for words in (program, check))
        self.report, self.trace = folder / "report.json", folder / "trace"

    def _run(self, words: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
        variables = dict(pmdk.environment(self.library, self.socket, self.report, **options))
        reads = {"capture_output": True, "text": True, "errors": "backslashreplace"}
        try:
            return subprocess.run(words, env=variables, timeout=PATIENCE_S, **reads)
        except OSError as error:
            raise NearsideError(f"{words[0]}: {error.strerror}") from None
        except ValueError as error:
            raise NearsideError(f"{words[0]!r}: {error}") from None
        except subprocess.TimeoutExpired:
            raise NearsideError(f"{words[0]}: it has not ended within {PATIENCE_S} s") from None

    def _empty(self) -> None:
        shutil.rmtree(self.pools, ignore_errors=True)
        self.pools.mkdir()
        self.report.unlink(missing_ok=True)
        self.trace.unlink(missing_ok=True)

    def moments(self, without: str | None) -> range:
        """Those of a whole run, from its first transaction on, or from its first flush."""
        self._empty()
        done = self._run(self.program)
        if done.returncode != 0:
            raise NearsideError(f"{self.program[0]}: {_end(done)}")
        wrong = self._run(self.check)
        if wrong.returncode != 0:
            raise NearsideError(f"the check fails without a loss of power: {_end(wrong)}")
        self._empty()
        self._run(self.program, without=without)
        counts = pmdk.read_report(self.report)
        if counts is None:
            why = "it has persisted nothing by libpmemobj or libpmem, or has not come to an end of its own"
            raise NearsideError(f"{self.program[0]}: {why}")
        return range(max(1, counts["first_moment"]), counts["moments"] + 1)

    def cut(self, moment: int, evict: int, **options: Any) -> tuple[bool, str, dict[str, int]]:
        """Lets the power fail; whether it came to that, what the check says is wrong, lines lost and left."""
        self._empty()
        done = self._run(self.program, kill=moment, crash=evict, **options)
        # Only the shim tells of a loss of power. A script may end as it will, a program kill itself.
        lines = pmdk.read_report(self.report)
        if lines is None and done.returncode == 0:
            return False, "", {}
        if lines is None:
            return True, f"the program ends before the power fails: {_end(done)}", {}
        checked = self._run(self.check)
        wrong = "" if checked.returncode == 0 else _last(checked.stderr) or _end(checked)
        return True, wrong, lines

    def timeline(self, moment: int, evict: int, **options: Any) -> list[str]:
        """What the program and the device did last before that loss of power."""
        _, _, lines = self.cut(moment, evict, trace=self.trace, **options)
        events = json.loads(_native.pmdk_events(self.trace.read_bytes() if self.trace.exists() else b""))
        told = [f"... {len(events) - TIMELINE} events before"] if len(events) > TIMELINE else []
        told += events[-TIMELINE:]
        if lines:
            torn = f", {lines['lines_torn']} in part" if options.get("torn") else ""
            told.append(
                f"the power fails: {lines['lines_lost']} lines are lost, {lines['lines_left']} left the cache "
                f"before{torn}"
            )
        return told


def _last(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else ""


def _end(done: subprocess.CompletedProcess[str]) -> str:
    """How a process has ended, and the last that it has said."""
    status = done.returncode
    how = f"exit status {status}" if status >= 0 else f"signal {-status}, {signal.strsignal(-status)}"
    last = _last(done.stderr)
    return f"{how}: {last}" if last else how


def cuts_of(text: str, moments: range, seed: int, torn: bool = False) -> Iterator[tuple[int, int]]:
    """Moments, and seeds of what leaves the cache before: 0 for nothing, as in one of three.

    All: each with nothing, and one draw; of lines that are torn three, as there is more that may leave.
    """
    kind, _, rest = text.partition(":")
    if kind == "at":
        for cut in rest.split(","):
            moment, _, evict = cut.partition("/")
            if not moment.isdecimal() or not (evict or "0").isdecimal() or not 1 <= int(moment) < 1 << 63:
                raise NearsideError(f"cuts = {text}: allowed for programs is at:MOMENT/SEED,...")
            yield int(moment), int(evict or 0) % (1 << 64)
        return
    draw = random.Random(seed)
    if text == "all":
        for moment in moments:
            yield moment, 0
            for _ in range(3 if torn else 1):
                yield moment, draw.randrange(1, 1 << 32)
        return
    if kind != "sampled" or not rest.isdecimal() or not 1 <= int(rest) <= 1_000_000:
        raise NearsideError(f"cuts = {text}: allowed is sampled:N, all, at:MOMENT/SEED,...")
    for _ in range(int(rest)):
        yield draw.choice(moments), draw.choice((0, 1, 1)) and draw.randrange(1, 1 << 32)


def run(
    program: Sequence[str],
    check: str | None,
    by: str,
    cuts: str,
    *,
    seed: int = 1,
    without: str | None = None,
    torn: bool = False,
    design: str = "nearpm",
    engine: str | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Cuts the power of a program, and runs its check on what is left, each time from an empty folder on.

    `torn`: a line that leaves the cache by itself may do so word by word, in any order.
    """
    if by not in SIDES:
        raise NearsideError(f"by = {by}: allowed is {', '.join(SIDES)}")
    if without is not None and CONTROLS.get(without) != by:
        allowed = [name for name, side in CONTROLS.items() if side == by]
        raise NearsideError(f"without = {without}: allowed for programs by the {by} is {', '.join(allowed)}")
    try:
        words = shlex.split(check) if check is not None else list(program)
    except ValueError as error:
        raise NearsideError(f"check = {check}: {error}") from None
    if not words:
        raise NearsideError("check = '': a command is needed")
    counts = {"cuts": 0, "ended": 0, "violated": 0}
    violation = None
    with tempfile.TemporaryDirectory(prefix="nearside-") as scratch:
        folder = Path(scratch)
        socket = folder / "device.sock" if by == "device" else None
        with pmdk.served(design, socket, engine) if socket else nullcontext():
            campaign = Campaign(program, words, folder, socket)
            moments = campaign.moments(without)
            chosen = list(cuts_of(cuts, moments, seed, torn))
            options = {"without": without, "torn": torn}
            late = None
            for moment, evict in chosen:
                came, wrong, _ = campaign.cut(moment, evict, **options)
                late = late or (None if came else moment)
                counts["cuts"] += 1
                counts["ended"] += not came
                counts["violated"] += bool(wrong)
                if wrong and violation is None:
                    # Simpler, if that is one, too: nothing leaves the cache by itself.
                    _, simpler, _ = campaign.cut(moment, 0, **options)
                    evict, wrong = (0, simpler) if simpler else (evict, wrong)
                    violation = {"cut": f"{moment}/{evict}", "what": wrong}
                    violation["timeline"] = campaign.timeline(moment, evict, **options)
                if progress is not None:
                    progress(counts["cuts"], len(chosen))
    if late is not None and violation is None and cuts.startswith("at:"):
        ends = f"the program ends before moment {late:,}: it has {moments.stop - 1:,}"
        raise NearsideError(f"cuts = {cuts}: {ends}")
    if counts["ended"] == counts["cuts"]:
        # Nothing has been tried, which is not that nothing was found.
        why = "each ended before its moment; it does less than in its first run, is something kept outside of {}?"
        raise NearsideError(f"the power has failed in none of {counts['cuts']:,} runs: {why}")
    doc = {
        "program": list(program),
        "check": words,
        "by": by,
        "seed": seed,
        "without": without,
        "torn": torn,
        "moments": len(moments),
        "left_out": moments.start - 1,
    }
    if violation is not None:
        replay = ["nearside", "crashtest", "--by", by, *(["--check", check] if check is not None else [])]
        replay += [*(["--torn"] if torn else []), *(["--without", without] if without else [])]
        replay += ["--cuts", f"at:{violation['cut']}", "--", *program]
        violation["replay"] = shlex.join(replay)
    return doc | counts | {"violation": violation}


def failed(doc: dict[str, Any]) -> bool:
    """Whether a campaign has found what it should not: a violation, or none where something was left out."""
    return bool(doc["violated"]) == (doc["without"] is None)


def print_reports(docs: Sequence[dict[str, Any]]) -> None:
    """A row for each campaign, and what happened before the first violation of each."""
    table = show.table("power cuts of a program", "logs by", "moments", "cuts", "ended before", "violations")
    for doc in docs:
        table.add_row(doc["by"], *(f"{doc[name]:,}" for name in ("moments", "cuts", "ended", "violated")))
    show.out.print(table)
    for doc in docs:
        if doc["left_out"]:
            told = f"logs by the {doc['by']}: left out are {doc['left_out']:,} moments before the first transaction"
            show.out.print(f"{told}, 1 to {doc['left_out']:,}; at:MOMENT/SEED has them", soft_wrap=True)
    for doc in docs:
        violation = doc["violation"]
        if violation and doc["without"] is None:
            show.out.print(f"logs by the {doc['by']}: {violation['what']}", soft_wrap=True)
            for line in violation["timeline"]:
                show.out.print(f"  {line}", soft_wrap=True)
            show.out.print(f"again: {violation['replay']}", soft_wrap=True)
