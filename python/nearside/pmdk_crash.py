# SPDX-License-Identifier: Apache-2.0
"""`nearside crashtest -- PROGRAM`: power cuts at many moments of an unmodified program with libpmemobj."""

from __future__ import annotations

import random
import re
import shlex
import shutil
import signal
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nearside import _native, bounded, files, pmdk, pmdk_code, pmdk_moments, show
from nearside._native import NearsideError
from nearside.bounded import CommandResult
from nearside.device import Progress
from nearside.pmdk_moments import Moment
from nearside.renamed import former_names, renamed
from nearside.types import ProgramCrashReport, ProgramViolation

EXECUTORS = ("cpu", "device")
# Fault injections, and the side that each is for.
FAULT_INJECTIONS = {"snapshots": "device", "fences": "cpu"}
# Without a given limit: seconds for the runs without a power cut, then a multiple of their time,
# and the least limit.
FIRST_LIMIT_S, LIMIT_FACTOR, MIN_LIMIT_S = 600, 10, 60
MAX_LIMIT_S = 86400
TIMELINE = 12
OUTPUT = 20
# Digits of a number below 2^64.
NUMBER = re.compile("[0-9]{1,20}")


@dataclass(frozen=True)
class CutResult:
    """The result of one power cut: whether the program reached it, and what is wrong afterwards."""

    reached: bool
    wrong: str = ""
    # The last lines of the check's output.
    output: Sequence[str] = ()
    # What was killed at the limit: the program, or the check.
    hung: str = ""
    # Whether the power has failed. A program that ends too early or never is wrong without a power
    # cut.
    failed: bool = True


class Campaign:
    """A program and its check, on one side: pools in files, or on a device whose engine keeps the logs."""

    def __init__(
        self,
        program: Sequence[str],
        check: Sequence[str],
        folder: Path,
        socket: Path | None,
        code: Path,
        limit_s: float | None,
        tracked: str = "never",
    ) -> None:
        if not any("{}" in word for word in program):
            raise NearsideError("the program's arguments lack {}: a folder for its pools, an empty one for each cut")
        self.folder, self.socket, self.library = folder, socket, pmdk.write_shim(folder)
        self.code, self.limit_s, self.tracked = code, limit_s, tracked
        self.pools = folder / "pools"
        self.program, self.check = ([w.replace("{}", str(self.pools)) for w in words] for words in (program, check))
        self.report, self.trace, self.moments_file = folder / "report.json", folder / "trace", folder / "moments"
        self.longest_s = 0.0

    def _run(self, words: Sequence[str], **options: Any) -> CommandResult:
        """Runs the program or the check, including all child processes; kills what is left of it."""
        variables = pmdk.environment(
            self.library, self.socket, self.report, code=self.code, tracked=self.tracked, **options
        )
        mark = f"{pmdk.REPORT}={self.report}"
        cut = options.get("crash") is not None
        ended = bounded.run_command(
            words,
            variables,
            self.limit_s or FIRST_LIMIT_S,
            mark,
            with_children=words is self.program,
            # All processes end with the power.
            stop=(lambda: self._read_report() is not None) if cut else lambda: False,
        )
        self.longest_s = max(self.longest_s, ended.seconds)
        return ended

    def _read_report(self) -> dict[str, Any] | None:
        """The shim's report, if it is complete."""
        try:
            return pmdk.read_report(self.report)
        except ValueError:
            return None

    def _clear_folder(self) -> None:
        shutil.rmtree(self.pools, ignore_errors=True)
        self.pools.mkdir()
        for file in (self.report, self.trace, self.moments_file):
            file.unlink(missing_ok=True)

    def moments(self, without: str | None) -> tuple[list[Moment], int]:
        """The moments of a whole run, from its first transaction or flush on, and the number before."""
        self._clear_folder()
        done = self._run(self.program)
        if done.status != 0:
            raise NearsideError(f"{files.printable(self.program[0])}: {self._describe_end(done)}")
        wrong = self._run(self.check)
        if wrong.status != 0:
            raise NearsideError(f"the check fails without a loss of power: {self._describe_end(wrong)}")
        self._clear_folder()
        self._run(self.program, without=without, moments=self.moments_file)
        counts = self._read_report()
        if counts is None:
            why = "it has persisted nothing, was killed or called _exit, or is linked statically"
            raise NearsideError(f"{files.printable(self.program[0])}: {why}")
        first = max(1, counts["first_moment"])
        self.limit_s = self.limit_s or max(MIN_LIMIT_S, LIMIT_FACTOR * self.longest_s)
        return pmdk_moments.read(self.moments_file, first), first - 1

    def cut_power(self, moment: int, evict: int, **options: Any) -> tuple[CutResult, dict[str, int] | None]:
        """Cuts the power. Returns whether the moment was reached and what is wrong, and the lines lost and left."""
        self._clear_folder()
        done = self._run(self.program, kill=moment, crash=evict, **options)
        # Only the shim reports a power cut: a script may end with any status, a program may kill
        # itself.
        lines = self._read_report()
        if lines is not None or done.status == 0:
            return CutResult(lines is not None), lines
        if done.status is None:
            wrong = f"the program has not ended within {self.limit_s:g} s, and the power has not failed by then"
        else:
            wrong = f"the program ends before the power fails: {self._describe_end(done)}"
        return CutResult(True, wrong, done.lines[-OUTPUT:], "program" if done.status is None else "", False), None

    def run_check(self) -> CutResult:
        """Runs the check on what is left; returns what it finds wrong."""
        checked = self._run(self.check)
        if checked.status == 0:
            return CutResult(True)
        output = checked.lines[-OUTPUT:]
        if checked.status is None:
            return CutResult(True, f"the check has not ended within {self.limit_s:g} s", output, "check")
        # Its message on standard error is passed on unchanged.
        return CutResult(True, checked.last_line if checked.stderr.strip() else self._describe_end(checked), output)

    def cut_and_check(self, moment: int, evict: int, **options: Any) -> CutResult:
        """Cuts the power, and runs the check on what is left."""
        cut, lines = self.cut_power(moment, evict, **options)
        return cut if lines is None else self.run_check()

    def timeline(self, moment: int, evict: int, **options: Any) -> list[str]:
        """The last events of the program and the device before a power cut."""
        _, lines = self.cut_power(moment, evict, trace=self.trace, **options)
        events = _native.pmdk_events(self.trace.read_bytes() if self.trace.exists() else b"")
        history = [f"... {len(events) - TIMELINE} events before"] if len(events) > TIMELINE else []
        history += events[-TIMELINE:]
        if lines:
            torn = f", {lines['lines_torn']} in part" if options.get("torn") else ""
            history.append(
                f"the power fails: {lines['lines_lost']} lines are lost, {lines['lines_left']} left the cache "
                f"before{torn}"
            )
        return history

    def _describe_end(self, done: CommandResult) -> str:
        """Describes the end of a process, with its last line of output."""
        status = done.status
        if status is None:
            how = f"it has not ended within {self.limit_s or FIRST_LIMIT_S:g} s (--limit sets another one)"
        else:
            how = f"exit status {status}" if status >= 0 else f"signal {-status}, {signal.strsignal(-status)}"
        return f"{how}: {done.last_line}" if done.last_line else how


def parse_cuts(text: str, moments: Sequence[Moment], seed: int, torn: bool = False) -> Iterator[tuple[int, int]]:
    """Moments to cut at, with seeds for the lines that leave the cache; 0 is none.

    A sample has seed 0 in one of three cuts, and only once for each moment. With "all" each moment
    has seed 0 and one random seed, or three with `torn`, which has more possibilities.
    """
    kind, _, rest = text.partition(":")
    if kind == "at":
        for cut in rest.split(","):
            moment, _, evict = cut.partition("/")
            if not NUMBER.fullmatch(moment) or not NUMBER.fullmatch(evict or "0") or not 1 <= int(moment) < 1 << 63:
                raise NearsideError(f"cuts = {files.printable(text)}: allowed for programs is at:MOMENT/SEED,...")
            yield int(moment), int(evict or 0) % (1 << 64)
        return
    draw = random.Random(seed)
    if text == "all":
        for each in moments:
            yield each.number, 0
            for _ in range(3 if torn else 1):
                yield each.number, draw.randrange(1, 1 << 32)
        return
    if kind != "sampled" or not NUMBER.fullmatch(rest) or not 1 <= int(rest) <= 1_000_000:
        raise NearsideError(f"cuts = {files.printable(text)}: allowed is sampled:N, all, at:MOMENT/SEED,...")
    bare = set()
    for number in pmdk_moments.sample(moments, int(rest), seed):
        # Seed 0 gives the same result each time.
        nothing = number not in bare and draw.randrange(3) == 0
        bare |= {number} if nothing else set()
        yield number, 0 if nothing else draw.randrange(1, 1 << 32)


@renamed(engine="model")
def run_campaign(
    program: Sequence[str],
    check: str | None,
    by: str,
    cuts: str,
    *,
    seed: int = 1,
    without: str | None = None,
    torn: bool = False,
    limit_s: float | None = None,
    tracked: str = "never",
    design: str = "nearpm",
    model: str | None = None,
    progress: Progress | None = None,
) -> ProgramCrashReport:
    """Cuts the power of a program and runs its check on what is left, each time from an empty
    folder.

    `torn`: a line may leave the cache word by word, in any order.

    `limit_s`: wall-clock seconds, up to 86400, after which a program or check is killed with its
    children; after a power cut that is a violation. By default it is 10 times the time of the runs
    without a power cut, and at least 60.
    """
    pmdk.check_tracked(tracked)
    if tracked != "never" and by != "device":
        raise NearsideError(f"tracked = {tracked}: allowed for logs by the device")
    if by not in EXECUTORS:
        raise NearsideError(f"by = {files.printable(by)}: allowed is {', '.join(EXECUTORS)}")
    if without is not None and FAULT_INJECTIONS.get(without) != by:
        allowed = [name for name, side in FAULT_INJECTIONS.items() if side == by]
        raise NearsideError(
            f"without = {files.printable(without)}: allowed for programs by the {by} is {', '.join(allowed)}"
        )
    if limit_s is not None and not 0 < limit_s <= MAX_LIMIT_S:
        raise NearsideError(f"limit = {limit_s}: allowed are more than 0 and up to {MAX_LIMIT_S} seconds")
    try:
        words = shlex.split(check) if check is not None else list(program)
    except ValueError as error:
        raise NearsideError(f"check = {files.printable(check)}: {error}") from None
    if not words:
        raise NearsideError("check = '': a command is needed")
    counts = {"cuts": 0, "ended": 0, "violated": 0, "not_ended": 0}
    violation: ProgramViolation | None = None
    with ExitStack() as open_:
        folder = Path(open_.enter_context(tempfile.TemporaryDirectory(prefix="nearside-")))
        socket = folder / "device.sock" if by == "device" else None
        if socket is not None:
            open_.enter_context(pmdk.serve_device(design, socket, model))
        code = open_.enter_context(pmdk_code.served(folder / "code.sock"))
        campaign = Campaign(program, words, folder, socket, code.path, limit_s, tracked)
        moments, left_out = campaign.moments(without)
        chosen = list(parse_cuts(cuts, moments, seed, torn))
        options = {"without": without, "torn": torn}
        late, tried = None, []
        for moment, evict in chosen:
            cut = campaign.cut_and_check(moment, evict, **options)
            if cut.reached and cut.failed:
                tried.append(moment)
            late = late or (None if cut.reached else moment)
            counts["cuts"] += 1
            counts["ended"] += not cut.reached
            counts["violated"] += bool(cut.wrong)
            counts["not_ended"] += bool(cut.hung)
            if cut.wrong and violation is None:
                # A simpler cut, if it is a violation, too: no line leaves the cache.
                simpler = campaign.cut_and_check(moment, 0, **options) if evict else cut
                evict, cut = (0, simpler) if simpler.wrong else (evict, cut)
                # A program that hangs has not reached its moment, and would not in a repetition.
                hangs = cut.hung == "program"
                violation = {
                    "cut": f"{moment}/{evict}",
                    "what": cut.wrong,
                    "output": list(cut.output),
                    "timeline": [] if hangs else campaign.timeline(moment, evict, **options),
                }
            if progress is not None:
                progress(counts["cuts"], len(chosen))
    last = moments[-1].number
    if late is not None and violation is None and cuts.startswith("at:"):
        raise NearsideError(f"cuts = {files.printable(cuts)}: the program ends before moment {late:,}: it has {last:,}")
    if counts["ended"] == counts["cuts"]:
        # Nothing was tried, which differs from nothing found.
        why = "each ended before its moment; it does less than in its first run, is something kept outside of {}?"
        raise NearsideError(f"the power has failed in none of {counts['cuts']:,} runs: {why}")
    if violation is not None:
        replay = ["nearside", "crashtest", "--by", by, *(["--check", check] if check is not None else [])]
        replay += ["--tracked"] if tracked != "never" else []
        replay += [*(["--torn"] if torn else []), *(["--without", without] if without else [])]
        replay += ["--limit", f"{limit_s:g}"] if limit_s is not None else []
        replay += ["--cuts", f"at:{violation['cut']}", "--", *program]
        violation["replay"] = shlex.join(replay)
    return {
        "program": list(program),
        "check": words,
        "by": by,
        "seed": seed,
        "without": without,
        "torn": torn,
        "tracked": tracked,
        "limit_s": campaign.limit_s,
        "moments": len(moments),
        "left_out": left_out,
        "coverage": pmdk_moments.coverage(moments, tried),
        "instructions": code.modules(),
        "cuts": counts["cuts"],
        "ended": counts["ended"],
        "violated": counts["violated"],
        "not_ended": counts["not_ended"],
        "violation": violation,
    }


def campaign_failed(doc: ProgramCrashReport) -> bool:
    """Whether a campaign failed: a violation, or none in a negative control."""
    return bool(doc["violated"]) == (doc["without"] is None)


def print_reports(docs: Sequence[ProgramCrashReport]) -> None:
    """Prints a row for each campaign, the coverage, and the events before each first violation."""
    columns = ["moments", "cuts", "ended before", "did not end", "violations"]
    table = show.table("power cuts of a program", "logs by", *columns)
    for doc in docs:
        table.add_row(
            doc["by"], *(f"{dict(doc)[name]:,}" for name in ("moments", "cuts", "ended", "not_ended", "violated"))
        )
    show.out.print(table)
    for doc in docs:
        _print_coverage(doc)
    _print_instructions(docs)
    for doc in docs:
        if doc["left_out"]:
            text = f"logs by the {doc['by']}: left out are {doc['left_out']:,} moments before the first transaction"
            show.out.print(f"{text}, 1 to {doc['left_out']:,}; at:MOMENT/SEED has them", soft_wrap=True)
    for doc in docs:
        violation = doc["violation"]
        if violation and doc["without"] is None:
            show.out.print(f"logs by the {doc['by']}: {violation['what']}", soft_wrap=True)
            for line in violation["timeline"]:
                show.out.print(f"  {line}", soft_wrap=True)
            if any(line not in violation["what"] for line in violation["output"]):
                show.out.print("the last lines of output:")
                for line in violation["output"]:
                    show.out.print(f"  {line}", soft_wrap=True)
            show.out.print(f"again: {violation['replay']}", soft_wrap=True)


def _print_coverage(doc: ProgramCrashReport) -> None:
    """Prints the classes of moments of a campaign, with the number of cuts in each."""
    table = show.table(f"moments, logs by the {doc['by']}", "what happens", "moments", "cut", "places", "cut")
    for row in doc["coverage"]:
        names = ("moments", "moments_cut", "places", "places_cut")
        table.add_row(str(row["class"]), *(f"{row[name]:,}" for name in names))
    show.out.print(table)


def _print_instructions(docs: Sequence[ProgramCrashReport]) -> None:
    """Prints the files with flush instructions, and how many are not followed."""
    modules = {module["file"]: module for doc in docs for module in doc["instructions"]}
    for name, module in modules.items():
        if "error" in module:
            text = f"not followed: {module['error']}"
        else:
            counts = [f"{module[kind]:,} {kind.replace('_', ' ')}" for kind in pmdk_code.KINDS if module[kind]]
            text = f"flush instructions: {', '.join(counts) or 'none'}"
            if module["left_alone"]:
                text += f"; {module['left_alone']:,} that may be some are not known to be code, and not followed"
        show.out.print(f"{name}: {text}", soft_wrap=True)


__getattr__ = former_names(__name__, run="run_campaign", failed="campaign_failed")
