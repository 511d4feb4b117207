#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the tests: draws mutants by seed, and runs for each the parts of the suite that may kill it, cheapest first.

A mutant is one changed line of the Rust crates or of the SystemVerilog: another operator or constant, a negated
condition, an assignment left out. It lives in a copy of the last commit, build/mutants/tree. A mutant that does not
compile is none, and the next one is drawn. The results are in build/mutants/seed<N>.json, and a run goes on where the
one before has ended. What is known of survivors stands in tools/mutants.json.

Mutants of the fast model (`--fast N`) include the crate `nvme`, which has its walkers. They measure the fuzzer and the
differential runs, so these run first. With `--own` the unit tests of the model, which know its times, run last.

usage:

- `mutate.py draw [--seed N] [--rust N] [--rtl N] [--fast N]`: lists mutants
- `mutate.py run [--seed N] [--rust N] [--rtl N] [--fast N] [--own] [--first rtl|rust] [--minutes M] [--limit S]
  [--through CMD]`: runs the tests
- `mutate.py again [--seed N] [--rust 0] [--rtl 0] [--fast N] [--limit S] [--through CMD]`: runs the survivors again,
  under the tests of today's commit
- `mutate.py report [--seed N]`: prints a table; fails if fewer than 95 % were killed
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from filelist import ROOT

WORK = ROOT / "build" / "mutants"
TREE = WORK / "tree"
KNOWN = ROOT / "tools" / "mutants.json"
BOUND = 0.95
BESIDE_S = 90  # a differential run of a mutant has so long
PER_EPISODE = 250  # its commands between fresh devices: settings that make everything slow do not last for all of it
STAGE_S = 1500  # a test that takes longer hangs: killed
RUST = ["sim", "rtl", "driver", "vfio_user", "design", "trace"]
FAST = ["fast", "nvme"]
RTL = ["hw/ip/nvme_ctrl/rtl", "hw/ip/nvm_delay/rtl", "hw/lib/rtl", "hw/top/rtl"]

# What may stand on a line instead, of both languages: text, and what takes its place.
SWAPS = {
    "comparison": [(" == ", " != "), (" != ", " == "), (" < ", " <= "), (" > ", " >= "), (" >= ", " > ")],
    "logic": [(" && ", " || "), (" || ", " && ")],
    "arithmetic": [(" + ", " - "), (" - ", " + "), (" << ", " >> "), (" >> ", " << ")],
}
RUST_SWAPS = {
    "comparison": [(" <= ", " < ")],
    "arithmetic": [(".min(", ".max("), (".max(", ".min("), (" % ", " / "), (" += ", " -= "), (" -= ", " += ")],
    "constant": [("true", "false"), ("false", "true")],
}
RTL_SWAPS = {
    "logic": [(" & ", " | "), (" | ", " & "), (" ^ ", " | ")],
    "constant": [("1'b0", "1'b1"), ("1'b1", "1'b0"), ("'0;", "'1;"), ("'1;", "'0;")],
}


# SystemVerilog that is no logic: declarations, and the reset, whose loss everything sees.
RTL_NONE = (
    r"`|/?\*|\(\*|import |parameter |localparam |\$(error|fatal)|typedef |(input|output|logic|genvar|int|bit)\b"
    r"|\w+_[te] |if \(!rst_ni\)"
)


@dataclass(frozen=True)
class Mutant:
    """One change of one line."""

    kind: str
    file: str
    line: int
    operator: str
    before: str
    after: str

    @property
    def name(self) -> str:
        return f"{self.file}:{self.line} {self.operator}"


# ---- which lines, and what may become of them ----


def rust_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines of code, without tests, attributes, comments and what only debug builds check."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("#[cfg(test)]"):
            return
        code = line.strip()
        if code and not code.startswith(("//", "#", "use ", "mod ", "pub mod ", "debug_assert")):
            yield number, line


def rtl_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines of logic, without assertions, parameters, elaboration checks and comments."""
    depth = 0  # parentheses open in an assertion
    hidden = 0
    for number, line in enumerate(text.splitlines(), 1):
        code = line.split("//")[0].strip()
        if depth or re.match(r"`NS_(ASSERT|COVER|ASSUME)|\w+: (assert|assume|cover)\b", code):
            depth += code.count("(") - code.count(")")
            continue
        if code.startswith(("`ifdef", "`ifndef")) and re.search(r"FORMAL|SYNTHESIS|VERILATOR", code):
            hidden += 1
        elif hidden and code.startswith("`endif"):
            hidden -= 1
        elaborated = ": gen_bad" in code or (
            re.match(r"(end else )?if \(", code) and not re.search(r"\b[a-z][a-z0-9]*_", code)
        )
        if code and not hidden and not elaborated and not re.match(RTL_NONE, code):
            yield number, line


def replaced(line: str, pairs: list[tuple[str, str]]) -> Iterator[str]:
    """The line with one occurrence of one text replaced, outside of strings and comments."""
    end = line.find("//")
    for old, new in pairs:
        at = line.find(old)
        while at >= 0 and (end < 0 or at < end):
            before, after = line[at - 1 : at], line[at + len(old) : at + len(old) + 1]
            whole = not old.isalpha() or not (re.match(r"\w", before) or re.match(r"\w", after))
            if line[:at].count('"') % 2 == 0 and whole:
                yield line[:at] + new + line[at + len(old) :]
            at = line.find(old, at + 1)


def numbers(line: str) -> Iterator[str]:
    """The line with one decimal number one larger."""
    end = line.find("//")
    for found in re.finditer(r"(?<![\w.'\"])(\d+)(?![\w.'])", line):
        if (end < 0 or found.start() < end) and line[: found.start()].count('"') % 2 == 0:
            yield line[: found.start()] + str(int(found[1]) + 1) + line[found.end() :]


def changes(kind: str, line: str) -> Iterator[tuple[str, str]]:
    """What may become of a line: operator and new text."""
    own = RTL_SWAPS if kind == "rtl" else RUST_SWAPS
    # In SystemVerilog `<=` at the start of a statement assigns, and the width in a declaration is
    # no arithmetic.
    assigns = re.match(r"\s*(if \(.*\) )?[\w.\[\]:+\-* ]+ <= ", line) if kind == "rtl" else None
    head = line[: assigns.end()] if assigns else ""
    rest = line[len(head) :]
    for swaps in (SWAPS, own):
        for operator, pairs in swaps.items():
            yield from ((operator, head + text) for text in replaced(rest, pairs))
    yield from (("constant", head + text) for text in numbers(rest))
    condition = re.match(r"(\s*(?:\} else |end else )?if )(?!let\b)(.+)( \{| begin)$", line)
    if condition and (kind != "rtl" or condition[2].startswith("(")):
        text = condition[2]
        yield "condition", f"{condition[1]}{'(!' if kind == 'rtl' else '!('}{text}){condition[3]}"
    if kind != "rtl":
        if re.match(r"\s+[\w.*\[\]]+ [+\-|&^]?= [^{]*;$", line) or re.match(r"\s+[\w.]+\.\w+\([^{]*\);$", line):
            yield "left out", ""
    elif re.match(r"\s+[\w.\[\]:+\-]+ (<=|=) [^;]*;$", line):
        yield "left out", ""


def sites(kind: str, root: Path) -> list[Mutant]:
    """Everything that may be changed."""
    if kind != "rtl":
        crates = RUST if kind == "rust" else FAST
        files = [p for crate in crates for p in sorted((root / "crates" / crate / "src").rglob("*.rs"))]
        files = [p for p in files if p.name not in ("tests.rs", "exercise.rs")]
    else:
        files = [p for folder in RTL for p in sorted((root / folder).rglob("*.sv")) if p.parent.name != "gen"]
    found = []
    for path in files:
        lines = rtl_lines if kind == "rtl" else rust_lines
        name = str(path.relative_to(root))
        for number, line in lines(path.read_text()):
            found += [Mutant(kind, name, number, op, line, new) for op, new in changes(kind, line)]
    return found


def draw(kind: str, seed: int, root: Path) -> Iterator[Mutant]:
    """Mutants as long as there are lines, each operator as often as the others, no line twice."""
    chooser = random.Random(f"{kind} {seed}")
    by_operator: dict[str, list[Mutant]] = {}
    for mutant in sites(kind, root):
        by_operator.setdefault(mutant.operator, []).append(mutant)
    lines = {(mutant.file, mutant.line) for mutants in by_operator.values() for mutant in mutants}
    while lines:
        mutant = chooser.choice(by_operator[chooser.choice(sorted(by_operator))])
        if (mutant.file, mutant.line) in lines:
            lines.remove((mutant.file, mutant.line))
            yield mutant


# ---- what may kill it ----


def cargo(*args: str) -> list[str]:
    return ["cargo", "test", "--quiet", *args]


def lint() -> list[str]:
    quiet = ["-Wno-fatal", "-Wno-lint", "-Wno-style"]
    return ["verilator", "--lint-only", *quiet, "--top-module", "nearside_top", "-f", "hw/top/top.f"]


def fuzz(commands: int) -> list[str]:
    test = cargo("-p", "nearside-verify", "--test", "oracle", "--", "--include-ignored", "controller_matches")
    return ["env", "FUZZ_SHRINKS=0", f"FUZZ_COMMANDS={commands}", *test]


def beside(*args: str) -> list[str]:
    """An example that runs the fast model, alone or beside the RTL."""
    # Built often, and run briefly.
    quick = ["CARGO_PROFILE_RELEASE_INCREMENTAL=true", "CARGO_PROFILE_RELEASE_DEBUG=0"]
    limits = [f"PER_EPISODE={PER_EPISODE}", "SHRINKS=0", f"SECONDS={BESIDE_S}"]
    return ["env", *quick, *limits, "cargo", *args]


def fuzz_fast(commands: int, seed: int) -> list[str]:
    run = ["run", "--quiet", "--profile", "checked", "-p", "nearside-verify", "--example", "fuzz"]
    return beside(*run, "fuzz", str(commands), str(seed))


def diff(commands: int, seed: int) -> list[str]:
    run = ["run", "--quiet", "--profile", "checked", "-p", "nearside-verify", "--example"]
    return beside(*run, "diff", str(commands), str(seed))


def proofs(file: str) -> list[str]:
    return [p.stem for p in sorted(TREE.glob("hw/**/formal/*.sby")) if file in p.read_text().split()]


def stages(mutant: Mutant, own: bool) -> Iterator[tuple[str, list[str]]]:
    """Parts of the suite, the cheapest one that may see it first. The first one builds what all need."""
    pytest = [str(ROOT / ".venv/bin/pytest"), "-q", "-x", "-p", "no:cacheprovider"]
    python = str(ROOT / ".venv/bin/python")
    if mutant.kind == "fast":
        # Apart, so that no test is taken for one that hangs because of it.
        yield "build", beside("build", "--quiet", "--profile", "checked", "-p", "nearside-verify", "--examples")
        yield "fuzz", fuzz_fast(20_000, 1)
        yield "diff", diff(20_000, 1)
        if own:
            yield "unit", cargo("--profile", "checked", "-p", "nearside-fast", "-p", "nearside-nvme")
        return
    if mutant.kind == "rust":
        crate = mutant.file.split("/")[1].replace("_", "-")
        yield "build", ["cargo", "check", "--quiet", "-p", f"nearside-{crate}"]
        yield "unit", cargo("-p", f"nearside-{crate}")
        yield "unit, long", cargo("-p", f"nearside-{crate}", "--", "--include-ignored")
        users = {
            "sim": ["rtl", "driver"],
            "rtl": ["driver", "trace"],
            "driver": ["trace", "vfio-user"],
            "design": ["rtl", "driver"],
        }
        for user in users.get(crate, []):
            yield f"unit of {user}, long", cargo("-p", f"nearside-{user}", "--", "--include-ignored")
        yield "fuzz", fuzz(4000)
        return
    yield "build", lint()
    block = "/".join(mutant.file.split("/")[: 3 if mutant.file.startswith("hw/ip") else 2])
    names = proofs(mutant.file)
    if block == "hw/lib" or block.endswith("nvm_delay"):
        yield "cocotb of the block", [*pytest, block, "-m", "not slow"]
    if "trace" in Path(mutant.file).stem:
        yield "trace", cargo("-p", "nearside-trace")
    yield "fuzz", fuzz(4000)
    if names:
        yield "proofs", [python, "tools/formal.py", *names]
    if block != "hw/lib" and not block.endswith("nvm_delay"):
        yield "cocotb of the block", [*pytest, block, "-m", "not slow"]
    crates = ["-p", "nearside-rtl", "-p", "nearside-driver", "-p", "nearside-trace"]
    yield "crates on the device", cargo(*crates)
    if block != "hw/top":
        yield "cocotb of the block, slow", [*pytest, block, "-m", "slow"]
    yield "crates on the device, long", cargo(*crates, "--", "--ignored")
    yield "fuzz, long", fuzz(30_000)


def run_stage(command: list[str], log: Path, limit: float) -> str:
    """pass, fail or timeout."""
    env = os.environ | {
        "PATH": f"{ROOT}/.venv/bin:{os.environ['PATH']}",
        "VIRTUAL_ENV": str(ROOT / ".venv"),
        "NEARSIDE_ROOT": str(TREE),
        "CARGO_TARGET_DIR": str(WORK / "target"),
    }
    with open(log, "w") as output:
        process = subprocess.Popen(
            command, cwd=TREE, env=env, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            status = process.wait(limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return "timeout"
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return "pass" if status in (0, 5) else "fail"  # 5: pytest has found no test


def control(args: argparse.Namespace) -> None:
    """Stops unless everything builds that no mutant has changed: else each one would be unviable, and stay so."""
    log = WORK / "stage.log"
    commands = [fuzz_fast(100, 1), diff(100, 1)] if args.fast else []
    if args.rust or args.rtl:
        commands += [lint(), cargo("--no-run", "--workspace", "--exclude", "nearside-py")]
    for command in commands:
        # All of it is built here.
        if run_stage([*shlex.split(args.through), *command], log, max(args.limit, STAGE_S)) != "pass":
            tail = "\n".join(log.read_text(errors="replace").splitlines()[-10:])
            sys.exit(f"without any mutant this fails in {TREE}: {shlex.join(command)}\n{tail}")


def judge(mutant: Mutant, args: argparse.Namespace) -> dict:
    """Runs the stages until one fails."""
    path = TREE / mutant.file
    original = path.read_text()
    lines = original.splitlines(keepends=True)
    if lines[mutant.line - 1].rstrip("\n") != mutant.before:
        sys.exit(f"{mutant.file}:{mutant.line} is not what was drawn: is build/mutants/tree of another commit?")
    lines[mutant.line - 1] = mutant.after + "\n"
    log = WORK / "stage.log"
    start = time.monotonic()
    result = asdict(mutant) | {"outcome": "survived", "stage": "", "stages": {}}
    try:
        path.write_text("".join(lines))
        for stage, command in stages(mutant, args.own):
            begun = time.monotonic()
            state = run_stage([*shlex.split(args.through), *command], log, args.limit)
            result["stages"][stage] = round(time.monotonic() - begun, 1)
            if state != "pass":
                text = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
                unbuilt = stage == "build" or any("could not compile" in line for line in text)
                result |= {
                    "outcome": "unviable" if unbuilt else "killed",
                    "stage": stage,
                    "why": state,
                    "tail": text[-25:],
                }
                break
    finally:
        path.write_text(original)
    return result | {"seconds": round(time.monotonic() - start, 1)}


# ---- the campaign ----


def results_path(seed: int) -> Path:
    return WORK / f"seed{seed}.json"


def load(seed: int) -> dict:
    path = results_path(seed)
    return json.loads(path.read_text()) if path.is_file() else {"seed": seed, "commit": "", "results": []}


def save(doc: dict) -> None:
    path = results_path(doc["seed"])
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(doc, indent=1))
    partial.replace(path)


def commit() -> str:
    return subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()


def prepare(doc: dict) -> None:
    """A copy of the last commit, the same one for all of a campaign, without a mutant that was left in it."""
    doc["commit"] = doc["commit"] or commit()
    # In the tree of another commit there may be files that this one has not.
    marker = TREE.with_suffix(".commit")
    if not TREE.is_dir() or not marker.is_file() or marker.read_text() != doc["commit"]:
        marker.unlink(missing_ok=True)
        shutil.rmtree(TREE, ignore_errors=True)
        TREE.mkdir(parents=True)
        (TREE / ".venv").symlink_to(ROOT / ".venv")
        marker.write_text(doc["commit"])
    archive = subprocess.Popen(["git", "archive", doc["commit"]], cwd=ROOT, stdout=subprocess.PIPE)
    with tarfile.open(fileobj=archive.stdout, mode="r|") as files:
        for member in files:
            path = TREE / member.name
            content = files.extractfile(member) if member.isfile() else None
            data = content.read() if content else None
            # What has not changed keeps its time, so that nothing is built again for it.
            if member.isdir():
                path.mkdir(parents=True, exist_ok=True)
            elif data is not None and not (path.is_file() and path.read_bytes() == data):
                path.write_bytes(data)
                path.chmod(member.mode)
    archive.wait()


def wanted(args: argparse.Namespace) -> list[tuple[str, int]]:
    kinds = [("rtl", args.rtl), ("rust", args.rust), ("fast", args.fast)]
    return kinds if args.first == "rtl" else kinds[::-1]


def run(args: argparse.Namespace) -> None:
    WORK.mkdir(parents=True, exist_ok=True)
    doc = load(args.seed)
    prepare(doc)
    if commit() != doc["commit"]:
        print(f"goes on with commit {doc['commit'][:9]}; remove {WORK} for today's")
    control(args)
    end = time.monotonic() + 60 * args.minutes if args.minutes else None
    draws = {kind: draw(kind, args.seed, TREE) for kind, _ in wanted(args)}
    left = dict(wanted(args))
    while any(left.values()):
        # In turns, so that a run that is stopped has some of both.
        for kind in left:
            while left[kind]:
                mutant = next(draws[kind], None)
                if mutant is None:
                    left[kind] = 0
                    break
                done = next((r for r in doc["results"] if (r["file"], r["line"]) == (mutant.file, mutant.line)), None)
                if done is None:
                    if end and time.monotonic() > end:
                        print("time is over; run it again to go on")
                        return
                    done = judge(mutant, args)
                    doc["results"].append(done)
                    save(doc)
                    counted = [r for r in doc["results"] if r["outcome"] != "unviable"]
                    summary = f"{done['outcome']:9} {done['seconds']:7.1f} s  {mutant.name}  [{done['stage']}]"
                    print(f"{len(counted):3} {summary}", flush=True)
                if done["outcome"] != "unviable":
                    left[kind] -= 1
                    break


def again(args: argparse.Namespace) -> None:
    """Judges the survivors anew, where their lines are as they were: tests may have come since."""
    doc = load(args.seed)
    if not any(r["outcome"] == "survived" and getattr(args, r["kind"]) for r in doc["results"]):
        print("there are no survivors to judge")
        return
    first, doc["commit"] = doc["commit"], ""
    prepare(doc)
    control(args)
    fields = Mutant.__dataclass_fields__
    for number, old in enumerate(doc["results"]):
        if old["outcome"] != "survived" or not getattr(args, old["kind"]):
            continue
        mutant = Mutant(**{name: old[name] for name in fields})
        lines = enumerate((TREE / mutant.file).read_text().splitlines(), 1)
        places = [line for line, text in lines if text == mutant.before]
        if not places:
            print(f"{mutant.name}: its line is another one today")
            continue
        nearest = min(places, key=lambda line: abs(line - mutant.line))
        result = judge(dataclasses.replace(mutant, line=nearest), args)
        doc["results"][number] = result | {"line": mutant.line, "again": doc["commit"]}
        save(doc | {"commit": first})
        print(f"{result['outcome']:9} {result['seconds']:7.1f} s  {mutant.name}  [{result['stage']}]", flush=True)


def reason(result: dict, known: list[dict]) -> dict | None:
    same = ("file", "before", "after")
    return next((k for k in known if all(k[name].strip() == result[name].strip() for name in same)), None)


def report(args: argparse.Namespace) -> int:
    known = json.loads(KNOWN.read_text()) if KNOWN.is_file() else []
    results = [r for r in load(args.seed)["results"] if r["outcome"] != "unviable"]
    table: dict[str, dict[str, int]] = {}
    for r in results:
        known_reason = reason(r, known) if r["outcome"] == "survived" else None
        outcome = "equivalent" if known_reason and known_reason["verdict"] == "equivalent" else r["outcome"]
        row = table.setdefault(r["kind"], {"killed": 0, "survived": 0, "equivalent": 0})
        row[outcome] += 1
        where = r["stage"] if outcome == "killed" else (known_reason or {}).get("reason", "no reason is known")
        print(f"{r['kind']:5} {outcome:10} {r['file']}:{r['line']} {r['operator']}: {where}")
    print(f"\n{'':6} {'mutants':>8} {'killed':>8} {'survived':>9} {'equivalent':>11} {'killed of the others':>21}")
    rows = list(table.items())
    table["all"] = {outcome: sum(row[outcome] for _, row in rows) for outcome in ("killed", "survived", "equivalent")}
    for kind, row in table.items():
        others = row["killed"] + row["survived"]
        share = row["killed"] / others if others else 1.0
        print(
            f"{kind:6} {sum(row.values()):8} {row['killed']:8} {row['survived']:9} {row['equivalent']:11} {share:20.1%}"
        )
    return 0 if results and share >= BOUND else 1


def listed(args: argparse.Namespace) -> None:
    for kind, most in wanted(args):
        for mutant in itertools.islice(draw(kind, args.seed, ROOT), most):
            print(f"{mutant.name}\n  - {mutant.before.strip()}\n  + {mutant.after.strip()}")


def count(text: str) -> int:
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"{number} is less than 0")
    return number


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["draw", "run", "again", "report"])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rust", type=count, default=30)
    parser.add_argument("--rtl", type=count, default=30)
    parser.add_argument("--fast", type=count, default=0)
    parser.add_argument("--own", action="store_true", help="mutants of the fast model: its unit tests, too")
    parser.add_argument("--first", choices=["rtl", "rust"], default="rtl")
    parser.add_argument("--minutes", type=float, default=0, help="begin no mutant after so long")
    parser.add_argument(
        "--limit", type=float, default=STAGE_S, help="seconds after which a test hangs, and the mutant is killed"
    )
    parser.add_argument(
        "--through", default="nice", help="each part of the suite is run by this command: a queue, for example"
    )
    args = parser.parse_args()
    if args.what == "report":
        return report(args)
    # Whatever ends it, the test that runs ends, too.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit("stopped; run it again to go on"))
    {"draw": listed, "run": run, "again": again}[args.what](args)
    return 0


if __name__ == "__main__":
    sys.exit(main())
