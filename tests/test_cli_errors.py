# SPDX-License-Identifier: Apache-2.0
"""Bad input: one clear line on standard error, a non-zero exit status, and no partial output."""

from __future__ import annotations

import io
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from nearside import Design, Device, NearsideError, demo, files, latency, pmdk_crash, serve
from nearside.claims import cli as claims_cli

ROOT = Path(__file__).resolve().parent.parent
MINIMAL = 'name = "x"\n[media]\nbytes = "1 MiB"\n'


def nearside(
    *arguments: str | bytes | Path, cwd: Path, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "nearside.cli"]
    command += [argument if isinstance(argument, bytes) else str(argument) for argument in arguments]
    environment = {"NEARSIDE_ROOT": str(ROOT)} | (env or {})
    return subprocess.run(command, cwd=cwd, env=os.environ | environment, capture_output=True, text=True, timeout=600)


def fails(*arguments: str | bytes | Path, cwd: Path, env: dict[str, str] | None = None) -> str:
    """Runs a command that fails, checks the failure, and returns its one line."""
    done = nearside(*arguments, cwd=cwd, env=env)
    assert done.returncode not in (0, None), done.stdout
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("nearside: ")
    return lines[0].removeprefix("nearside: ")


@pytest.fixture
def design(tmp_path):
    def write(text: str) -> Path:
        path = tmp_path / "x.toml"
        path.write_text(text)
        return path

    return write


def untouched(folder: Path) -> bool:
    return {p.name for p in folder.iterdir()} <= {"x.toml", "file", "folder"}


@pytest.mark.parametrize("command", ["sort t.parquet -o s --by a", "table get t -o s --media m"])
def test_cli_option_given_twice_is_refused(command, tmp_path):
    """No value is dropped without a word; lists of values may repeat their option."""
    message = fails(*command.split(), "--model", "fast", "--model", "rtl", cwd=tmp_path)
    assert message.startswith("--model stands twice: fast and rtl; give one (see ")


def test_cli_former_option_is_not_suggested(tmp_path):
    message = fails("info", "--engin", "fast", cwd=tmp_path)
    assert message.startswith("No such option: --engin "), message
    assert "--engine" not in message


@pytest.mark.parametrize("name", ["a\nb", "a\u2028b/c", "x\x1b.toml"])
def test_cli_names_with_line_breaks_are_escaped(name, tmp_path):
    escaped = name.encode("unicode_escape").decode().replace("\\u2028", "\\u{2028}").replace("\\x1b", "\\u{1b}")
    assert escaped in fails("build", "--design", name, cwd=tmp_path)


@pytest.mark.parametrize(
    "words",
    [
        ["serve", "--socket", "no\nx/s"],
        ["serve", "--socket", "x\ny", "--socket", "x\ny"],
        ["serve", "--socket", "s\nt", "--trace", "s\nt"],
        ["soak", "--gigabytes", "0.001", "--model", "fast", "--result", "no\nx/r.json"],
        ["trace", "e\n.jsonl"],
        ["sort", "t.csv", "--by", "a", "-o", "x.csv", "--plot", "x.j\nso"],
        ["pm", "serve", "redis", "--socket", "no\nx/s"],
        ["pm", "serve", "redis", "--socket", "a\nb", "--port", "1"],
        ["correlate", "--only", "a\nb"],
        ["pmdk", "run", "--socket", "a\nb", "--", "x", "{}"],
        ["pmdk", "run", "--without", "a\nb", "--", "x", "{}"],
        ["crashtest", "--torn", "a\nb"],
        ["crashtest", "--by", "cpu", "--", "./a\nb", "{}"],
        ["guest", "run", "--time", "a\nb", "true"],
        ["guest", "run", "--profile", "a\nb", "true"],
    ],
)
def test_cli_names_with_line_breaks_stay_on_one_line(words, tmp_path):
    (tmp_path / "t.csv").write_text("a\n1\n")
    (tmp_path / "e\n.jsonl").touch()
    assert "\\n" in fails(*words, cwd=tmp_path)


@pytest.mark.parametrize("cuts", ["sampled:", "at:", "at:1/"])
def test_cli_numbers_of_many_digits_are_refused(cuts):
    with pytest.raises(NearsideError, match=r"^cuts = "):
        list(pmdk_crash.parse_cuts(cuts + 5000 * "9", [], 1))


def test_cli_file_with_a_line_break_in_its_name(tmp_path):
    assert fails("demo", "a\nb\u2028.bin", cwd=tmp_path) == "a\\nb\\u2028.bin: no such file"


def test_cli_design_file_with_a_line_break_in_its_path(tmp_path):
    (tmp_path / "a\nb.toml").write_text(MINIMAL + 'profile = "nope"\n')
    message = fails("build", "--design", "a\nb.toml", cwd=tmp_path)
    assert message.startswith("a\\nb.toml:4: media.profile = nope: allowed is ")


def test_cli_build_of_the_top_names_the_missing_checkout(tmp_path):
    exports = ("--top", "t.sv", "--header", "t.h")
    message = fails("build", "--design", "default", *exports, cwd=tmp_path, env={"NEARSIDE_ROOT": ""})
    assert message.startswith("this needs a checkout of Nearside, and none was found")
    assert untouched(tmp_path)


def test_cli_flag_beside_its_opposite_is_refused(tmp_path):
    message = fails("build", "--train", "--no-train", "--design", "none", cwd=tmp_path)
    assert message.startswith("--train and --no-train are opposites: give one (see ")
    assert fails("info", "--json", "--json", "--design", "none", cwd=tmp_path).startswith('no design "none"')


def test_cli_sort_with_by_twice_names_the_list(tmp_path):
    message = fails("sort", "t.parquet", "--by", "a", "--by", "b", cwd=tmp_path)
    assert message.startswith('--by stands twice: a and b; give one, such as --by "a, b" (see ')


def test_cli_missing_file(tmp_path):
    assert fails("demo", tmp_path / "none.bin", cwd=tmp_path) == f"{tmp_path}/none.bin: no such file"
    assert untouched(tmp_path)


def test_cli_folder_instead_of_a_file(tmp_path):
    (tmp_path / "folder").mkdir()
    assert fails("demo", tmp_path / "folder", cwd=tmp_path).endswith("folder: is a directory")
    assert untouched(tmp_path)


def test_cli_unreadable_file(tmp_path):
    # A file that exists, and that even root can't read from its start.
    assert fails("demo", "/proc/self/mem", cwd=tmp_path) == "/proc/self/mem: Input/output error"


def test_cli_empty_file(tmp_path):
    (tmp_path / "file").touch()
    assert fails("demo", tmp_path / "file", cwd=tmp_path).endswith("file: the file is empty")


def test_cli_file_larger_than_the_namespace(tmp_path, design):
    path = tmp_path / "file"
    path.write_bytes(bytes((1 << 20) + 1))
    error = fails("demo", path, "--design", design(MINIMAL), cwd=tmp_path)
    assert error == f"{path}: 1048577 bytes do not fit in the namespace of 1048576 bytes"
    assert untouched(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("command", [["demo"], ["info"], ["build"], ["delay", "show"], ["delay", "set", "pcm"]])
def test_cli_unknown_design_key_is_named_by_every_command(tmp_path, design, command):
    path = design("chanels = 2\n" + MINIMAL)
    error = fails(*command, "--design", path, cwd=tmp_path)
    assert error.startswith(f"{path}:1: unknown key `chanels`; allowed: ")
    assert "`channels`" in error
    assert untouched(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("channels = 3\n" + MINIMAL, "1: channels = 3: allowed are 1, 2, 4"),
        (
            MINIMAL + 'file = ""\n',
            '4: media.file = "": allowed is the name of a file, or no such key for media in memory',
        ),
        (MINIMAL + "[pcie]\nlanes = 5\n", "5: pcie.lanes = 5: allowed are 1, 2, 4, 8, 16"),
        (
            MINIMAL + "[cpu]\nprofile = 'fast'\n",
            "5: cpu.profile = fast: allowed is none, polled, kernel, nearpm, optane-dimm, cxl, numa, or a TOML file",
        ),
        (MINIMAL + "[nvme]\nio_queues = 99\n", "5: nvme.io_queues = 99: allowed is 1 to 64"),
    ],
)
def test_cli_impossible_values_list_those_allowed(tmp_path, design, text, message):
    path = design(text)
    assert fails("build", "--design", path, cwd=tmp_path) == f"{path}:{message}"


def test_cli_unknown_design_lists_the_known_ones(tmp_path):
    error = fails("info", "--design", "nonesuch", cwd=tmp_path)
    assert error.startswith('no design "nonesuch" in ')
    assert "default" in error


def test_cli_design_that_is_not_toml(tmp_path, design):
    assert "x.toml:1" in fails("build", "--design", design("= 5\n"), cwd=tmp_path)


def test_cli_design_with_an_unknown_media_profile(tmp_path, design):
    text = MINIMAL + 'profile = "core"\n'
    error = fails("info", "--design", design(text), cwd=tmp_path)
    assert ":4: media.profile = core: allowed is dram, " in error


def test_cli_absent_verilator(tmp_path):
    error = fails("build", cwd=tmp_path, env={"NEARSIDE_VERILATOR": "/nonexistent/verilator"})
    assert "Verilator was not found" in error
    assert untouched(tmp_path)


def test_cli_absent_compiler(tmp_path, design):
    # A separate design, so that there is something to compile.
    path = design(MINIMAL + "[nvme]\nio_queues = 3\n")
    error = fails("build", "--design", path, cwd=tmp_path, env={"CXX": "no-such-g++"})
    assert "no-such-g++" in error
    assert "g++" in error


@pytest.mark.parametrize("module", ["nearside.cli", "typer", "numpy", "numpy.linalg", "nearside._native"])
def test_cli_interrupt_during_the_start_is_one_line(module):
    """The signal arrives when that module is about to be imported."""
    finder = (
        "import os, signal, sys\n"
        "class Finder:\n"
        "    def find_spec(name, *_):\n"
        f"        if name == {module!r}: os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Finder)\n"
        "sys.argv = ['nearside', 'claim', 'list']\n"
        "import runpy; runpy.run_module('nearside', run_name='__main__')\n"
    )
    done = subprocess.run([sys.executable, "-c", finder], capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "nearside: interrupted\n")


def test_cli_interrupt_that_is_ignored_stays_ignored():
    command = 'trap \'\' INT; exec "$0" -c "$1"'
    script = "import nearside.__main__ as m, nearside.cli, os, signal\n"
    script += "nearside.cli.main = lambda: os.kill(os.getpid(), signal.SIGINT)\nm.main()\nprint('done')\n"
    done = subprocess.run(["sh", "-c", command, sys.executable, script], capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


@pytest.mark.slow
@pytest.mark.parametrize("step", ["verilator", "g++"])
def test_cli_interrupt_ends_a_build_and_its_compiler(tmp_path, design, step):
    """The signal is sent to the one process, as by `kill`; the tools would never end."""
    tool = tmp_path / "tool"
    hung = f"sleep 1000 & echo $! > {tmp_path}/pid; wait"
    if step == "verilator":
        env = {"NEARSIDE_VERILATOR": str(tool)}
        tool.write_text(f"#!/bin/sh\ncase $1 in --version) echo Verilator test; exit;; esac\n{hung}\n")
    else:
        env = {"CXX": str(tool)}
        tool.write_text(f"#!/bin/sh\n{hung}\n")
    tool.chmod(0o755)
    command = [sys.executable, "-m", "nearside.cli", "build", "--design", str(design(MINIMAL))]
    env = os.environ | {"NEARSIDE_ROOT": str(ROOT)} | env
    process = subprocess.Popen(command, cwd=tmp_path, env=env, stderr=subprocess.PIPE, text=True)
    while not (pid := tmp_path / "pid").exists() or not pid.read_text():
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=600)
    assert process.returncode == 130
    assert error.splitlines()[-1] == "nearside: interrupted"
    status = Path(f"/proc/{pid.read_text().strip()}/stat")
    assert not status.exists() or status.read_text().split()[2] == "Z"


def test_cli_replay_with_a_sign_is_refused(tmp_path):
    error = fails("fuzz", "--replay", "+7:3", cwd=tmp_path)
    assert error.startswith('"+7:3" is no replay: write SEED:EPISODE')


@pytest.mark.slow
@pytest.mark.parametrize("steps", ["5-2", "", ",", "1,,2"])
def test_cli_replay_that_runs_nothing(tmp_path, steps):
    error = fails("fuzz", "--replay", f"7:3:{steps}", cwd=tmp_path)
    assert error.startswith(f'"7:3:{steps}" is no replay: ')


def test_cli_delay_set_needs_exactly_one_kind_of_timing(tmp_path):
    assert "give a media profile" in fails("delay", "set", cwd=tmp_path)
    assert "belong together" in fails("delay", "set", "--read-ns", "5", cwd=tmp_path)
    assert "no media profile" in fails("delay", "set", "core", cwd=tmp_path)


def test_cli_options_are_checked(tmp_path):
    assert "--nonesuch" in fails("info", "--nonesuch", cwd=tmp_path)
    assert "nonesuch" in fails("nonesuch", cwd=tmp_path)
    assert "--seed" in fails("claim", "run", "--seed", "x", cwd=tmp_path)


def test_cli_unknown_claim(tmp_path):
    assert "no claim is called 'nonesuch'" in fails("claim", "run", "nonesuch", cwd=tmp_path)


def test_cli_report_needs_a_run(tmp_path):
    assert "`nearside claim run` makes one" in fails("claim", "report", cwd=tmp_path)
    (tmp_path / "file").write_text('{"what": "demo"}')
    assert "no result of `nearside claim run`" in fails("claim", "report", tmp_path / "file", cwd=tmp_path)
    assert not (tmp_path / "docs").exists()


@pytest.mark.slow
def test_cli_results_folder_that_cannot_be_created(tmp_path):
    (tmp_path / "file").touch()
    for command in SAVING:
        error = fails(*command, cwd=tmp_path, env={"NEARSIDE_RESULTS": f"{tmp_path}/file/x"})
        assert error == f"{tmp_path}/file/x: Not a directory"


SAVING = [["demo"], ["latency"], ["claim", "run", "dram"]]


@pytest.mark.parametrize(
    ("folder", "reason"), [("/dev/null", " is no folder; "), ("/proc/self/task", ": "), ("/proc/none", ": ")]
)
def test_cli_results_folder_is_tried_before_measurements(tmp_path, monkeypatch, folder, reason):
    """A folder without write access is an error like a missing one; root may write to all of them."""
    monkeypatch.setenv("NEARSIDE_RESULTS", folder)
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    for module in (demo, latency):
        monkeypatch.setattr(module, "Device", lambda *_, **__: pytest.fail("a device was made"))
    monkeypatch.setattr(claims_cli, "run_claims", lambda *_: pytest.fail("something was measured"))
    design = Design.load("default")
    for start in (
        lambda: demo.run(None, design, quiet=True),
        lambda: latency.run(design, ["dram"], 1, 1, quiet=True),
        lambda: claims_cli.run(["dram"]),
    ):
        with pytest.raises(NearsideError) as error:
            start()
        assert str(error.value).startswith(f"{folder}{reason}")


def test_cli_report_path_is_tried_before_measurements(tmp_path):
    error = fails("claim", "run", "dram.row_latency", "--report", "none/x.md", cwd=tmp_path)
    assert error == "none/x.md: its folder doesn't exist"
    assert not list(tmp_path.glob("results/*"))


CLAIMS = {"format": 1, "what": "claims", "when": "x", "design": {"name": "x", "hash": "x"}, "seed": 1, "quick": True,
          "machine": "x", "duration_s": 1.0, "claims": []}  # fmt: skip


@pytest.fixture
def claims(tmp_path):
    path = tmp_path / "claims.json"
    path.write_text(json.dumps(CLAIMS))
    return path


@pytest.mark.slow
def test_cli_output_replaces_regular_files_only(tmp_path, claims):
    real = tmp_path / "real.md"
    real.write_text("old")
    real.chmod(0o640)
    (tmp_path / "link.md").symlink_to("real.md")
    (tmp_path / "new.md").symlink_to("later.md")
    device = tmp_path / "device"
    device.symlink_to("/dev/null")
    before = os.stat("/dev/null")
    for name in ("link.md", "new.md", "device"):
        done = nearside("claim", "report", claims, "-o", tmp_path / name, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / name).is_symlink()
    after = os.stat("/dev/null")
    assert (after.st_mode, after.st_rdev) == (before.st_mode, before.st_rdev)
    assert real.read_text().startswith("#")
    assert real.stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "later.md").read_text() == real.read_text()
    names = {"claims.json", "real.md", "link.md", "new.md", "later.md", "device"}
    assert {path.name for path in tmp_path.iterdir()} == names
    shown = nearside("claim", "report", claims, "-o", "/dev/stdout", cwd=tmp_path)
    assert shown.stdout.startswith(real.read_text())


@pytest.mark.slow
@pytest.mark.parametrize("output", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "/proc/thread-self/fd/1", "link"])
@pytest.mark.parametrize("how", [">", ">>"])
def test_cli_output_to_standard_output_stays_in_its_file(tmp_path, claims, output, how):
    (tmp_path / "link").symlink_to("further")
    (tmp_path / "further").symlink_to("/dev/stdout")
    file = tmp_path / "all"
    file.write_text("old\n")
    before = file.stat().st_ino
    call = shlex.join([sys.executable, "-m", "nearside.cli", "claim", "report", str(claims), "-o", output])
    script = f"{{ echo before; {call}; echo after; }} {how} all"
    env = os.environ | {"NEARSIDE_ROOT": str(ROOT)}
    done = subprocess.run(["sh", "-c", script], cwd=tmp_path, env=env, timeout=600, capture_output=True, text=True)
    # Messages about the data do not appear in it.
    assert (done.returncode, done.stdout, done.stderr) == (0, "", f"{output}: written from {claims}\n")
    lines = file.read_text().splitlines()
    assert lines[: lines.index("before")] == (["old"] if how == ">>" else [])
    assert lines[lines.index("before") + 1].startswith("# ")
    assert lines[-1] == "after"
    assert not any("written from" in line for line in lines)
    assert file.stat().st_ino == before
    assert {path.name for path in tmp_path.iterdir()} == {"claims.json", "link", "further", "all"}


def test_cli_output_to_a_descriptor(tmp_path):
    """Any open descriptor: of a file, a pipe or a socket, from any working directory."""
    with open(tmp_path / "file", "w+") as file:
        number = file.fileno()
        os.write(number, b"one ")
        files.write_text(Path(f"/dev/fd/{number}"), "two ")
        files.write_text(Path(f"/proc/{os.getpid()}/fd/{number}"), "three")
        (tmp_path / "file").rename(tmp_path / "moved")
        files.write_text(Path(f"/proc/self/fd/../fd/{number}"), ".")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("moved", "one two three.")]
    ends = socket.socketpair()
    files.write_text(Path(f"/dev/fd/{ends[0].fileno()}"), "x")
    assert ends[1].recv(9) == b"x"
    with open(tmp_path / "moved") as file:
        for path in (Path(f"/dev/fd/{file.fileno()}"), Path("/dev/fd/999")):
            with pytest.raises(NearsideError, match=rf"^{path}: Bad file descriptor$"):
                files.write_text(path, "x")
    for end in ends:
        end.close()


PIPE_COMMANDS = [
    ["demo", "pipe"], ["info", "--design", "./pipe"], ["build", "--design", "./pipe.toml"], ["trace", "pipe"],
    ["soak", "--result", "pipe"], ["claim", "report", "pipe"], ["claim", "report", "claims.json", "-o", "pipe"],
    ["demo", "--trace", "pipe.jsonl"], ["delay", "set", "./pipe"], ["latency", "--profile", "./pipe.toml"],
    ["serve", "fuzz", "-s", "s", "-m", "pipe"], ["serve", "./pipe", "-s", "s"], ["fuzz", "./pipe"],
    ["correlate", "--quick", "--reuse", "pipe"],
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("command", PIPE_COMMANDS, ids=" ".join)
def test_cli_output_pipe_without_a_reader_does_not_block(tmp_path, claims, command):
    for name in ("pipe", "pipe.toml", "pipe.jsonl"):
        os.mkfifo(tmp_path / name)
    error = fails(*command, cwd=tmp_path)
    assert "pipe" in error
    assert "not a regular file" in error or "is no regular file" in error or "nobody reads from this pipe" in error


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ["demo"],
        ["info", "--design"],
        ["trace"],
        ["soak", "--result"],
        ["claim", "report"],
        ["delay", "set"],
        ["correlate", "--reuse"],
    ],
    ids=" ".join,
)
def test_cli_input_without_an_end(tmp_path, command):
    assert fails(*command, "/dev/zero", cwd=tmp_path).startswith("/dev/zero: is no regular file")


@pytest.mark.slow
@pytest.mark.parametrize("command", [["--help"], ["claim", "list"], ["claim", "list", "--json"], ["build"]])
@pytest.mark.parametrize(
    ("shell", "complaint"),
    [
        ("exec {} > /dev/full", "standard output: No space left on device"),
        ("exec {} >&-", "standard output is closed; send it to /dev/null if nobody needs it"),
        ("{} | true", None),
    ],
)
def test_cli_output_that_is_not_read(tmp_path, command, shell, complaint):
    call = shlex.join([sys.executable, "-m", "nearside.cli", *command])
    script = ["sh", "-c", shell.format(call)]
    environment = os.environ | {"NEARSIDE_ROOT": str(ROOT)}
    done = subprocess.run(script, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=900)
    reported = [line for line in done.stderr.splitlines() if line.startswith("nearside: ")]
    if complaint:
        assert (done.returncode, reported) == (1, [f"nearside: {complaint}"]), done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    mute = subprocess.run(
        ["sh", "-c", f"exec {call} 2>&-"], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, timeout=900
    )
    assert mute.returncode == 0


def links(path: Path) -> list[str]:
    """All names of a file: its path, and those of a hard and a symbolic link."""
    path.with_name(f"hard{path.suffix}").hardlink_to(path)
    path.with_name(f"soft{path.suffix}").symlink_to(path)
    return [path.name, f"../{path.parent.name}/{path.name}", f"hard{path.suffix}", f"soft{path.suffix}"]


def taken(path: str | Path, other: str | Path) -> str:
    return f"{path}: this command reads or writes {other}, the same file, too; name another one"


@pytest.mark.slow
def test_cli_trace_never_overwrites_the_input(tmp_path):
    path = tmp_path / "p.json"
    path.write_text("{}")
    for name in links(path):
        assert fails("demo", path, "--trace", name, cwd=tmp_path) == taken(name, path)
    assert path.read_text() == "{}"


@pytest.mark.slow
def test_cli_output_never_overwrites_another_file(tmp_path):
    """Input, trace, media, design, plot and results: under other names, too."""
    results = tmp_path / "results"
    results.mkdir()
    for name in ("demo.json", "demo.png", "latency.json", "latency.png", "claims.json"):
        (results / name).write_bytes(b"d" * (1 << 20))
    before = {path: path.read_bytes() for path in results.iterdir()}

    def design(media: str) -> str:
        (tmp_path / "x.toml").write_text(MINIMAL.replace("[media]", f"[media]\nfile = '{media}'"))
        return "./x.toml"

    (tmp_path / "link.png").symlink_to("results/demo.png")
    (tmp_path / "t.jsonl").write_text("{}\n")
    (tmp_path / "t.png").symlink_to("t.jsonl")
    for words, path, other in (
        (("demo", "results/demo.png"), "results/demo.png", "results/demo.png"),
        (("demo", "link.png"), "results/demo.png", "link.png"),
        (("demo", "--trace", "results/demo.json"), "results/demo.json", "results/demo.json"),
        (("demo", "--design", design("m"), "--trace", "x.toml"), "x.toml", "x.toml"),
        (("wire", "--design", "./x.toml", "--trace", "x.toml"), "x.toml", "x.toml"),
        (("soak", "./x.toml", "--result", "x.toml"), "x.toml", "x.toml"),
        (("trace", "t.jsonl", "--plot", "t.png"), "t.png", "t.jsonl"),
        (("claim", "run", "dram.row_latency", "--report", "results/claims.json"), *["results/claims.json"] * 2),
        (("claim", "report", "-o", "results/claims.json"), *["results/claims.json"] * 2),
    ):
        assert fails(*words, cwd=tmp_path) == taken(path, other)
    for command, name in (("demo", "demo.json"), ("demo", "demo.png"), ("latency", "latency.json")):
        named = design(f"results/{name}")
        assert fails(command, "--design", named, cwd=tmp_path) == taken(*[f"results/{name}"] * 2)
    assert {path: path.read_bytes() for path in results.iterdir()} == before


def test_cli_demo_fits_its_data_into_the_first_namespace(tmp_path, design):
    big = tmp_path / "big"
    big.write_bytes(bytes(100_000))
    text = MINIMAL + "\n[nvme]\nnamespaces = ['64 KiB']\n"
    named = design(text)
    assert "do not fit in the namespace of 65536 bytes" in fails("demo", big, "--design", named, cwd=tmp_path)
    named = design(text.replace("'64 KiB'", "0, '64 KiB'"))
    assert "has no namespace 1" in fails("demo", "--design", named, cwd=tmp_path)


@pytest.mark.slow
def test_cli_trace_never_overwrites_media(tmp_path, design):
    path = tmp_path / "m.jsonl"
    path.write_bytes(b"data" * (1 << 18))
    named = design(MINIMAL.replace("[media]", f"[media]\nfile = '{path}'"))
    for name in links(path):
        error = fails("serve", named, "-s", "a.sock", "--trace", name, cwd=tmp_path)
        assert error == f"{name}: a trace can't be a media file or a socket, too"
        error = fails(
            "serve", "-s", "a", "-s", "b", "-m", "o", "-m", path, "--trace", name, "--trace", "t.json", cwd=tmp_path
        )
        assert error.endswith("a trace can't be a media file or a socket, too")
        error = fails("demo", "--design", named, "--trace", name, cwd=tmp_path)
        assert error == taken(name, path)
    assert path.read_bytes() == b"data" * (1 << 18)


@pytest.mark.slow
def test_cli_trace_is_not_shared_by_devices(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text("old")
    two = ["serve", "-s", "a.sock", "-s", "b.sock", "--trace", path, "--trace"]
    for name in links(path):
        assert fails(*two, name, cwd=tmp_path) == f"{name}: two devices can't share a trace"
    assert path.read_text() == "old"
    new = ["new.json", "./new.json"]
    two = ["serve", "-s", "a.sock", "-s", "b.sock", "--trace", new[0], "--trace", new[1]]
    assert "two devices can't share a trace" in fails(*two, cwd=tmp_path)
    assert not (tmp_path / "new.json").exists()


def test_cli_trace_of_a_running_server_is_exclusive(tmp_path):
    """Neither another server's nor another device's, of any process."""
    design = Design.load("fuzz")
    path = tmp_path / "t.jsonl"
    with serve.Server([(design, tmp_path / "a.sock")], traces=[path]):
        for command in (["serve", "fuzz", "-s", "b.sock"], ["demo", "--design", "fuzz"]):
            error = fails(*command, "--trace", path, cwd=tmp_path)
            assert error.startswith(f"{path}: a device has this file for its media, a trace or a waveform")
        with pytest.raises(NearsideError, match="a device has this file"):
            Device(design, commands=path)
    Device(design, commands=path).shutdown()


@pytest.mark.parametrize(
    "name", ["\U0001f600.img", "del\x7f.img", 'quote".img', "back\\slash.img", "\x01.img", "ä\n.img"]
)
def test_cli_media_files_of_any_name(tmp_path, name):
    ((design, _),) = serve.assign_sockets(["fuzz"], [tmp_path / "s"], [tmp_path / name])
    assert design.values["media"]["file"] == str(tmp_path / name)


def test_cli_media_files_with_names_that_are_not_text(tmp_path):
    error = fails("serve", "-s", "s", "-m", b"\xff.img", cwd=tmp_path)
    assert "the name of a media file must be UTF-8" in error


@pytest.mark.slow
def test_cli_help_has_examples(tmp_path):
    done = nearside("--help", cwd=tmp_path)
    assert done.returncode == 0
    assert "nearside demo" in done.stdout
    assert "claim" in done.stdout
    for command in (["demo"], ["info"], ["build"], ["delay", "show"], ["delay", "set"], ["claim", "run"]):
        assert "Example" in nearside(*command, "--help", cwd=tmp_path).stdout


@pytest.mark.slow
def test_cli_media_profile_too_fast_for_the_dram_is_reported(tmp_path, design):
    """One line on standard error, and the same in the JSON document."""
    fast = tmp_path / "fast.toml"
    fast.write_text("name = 'fast'\ndescription = ''\n[read]\nbase_ns = 10.0\n[write]\nbase_ns = 20.0\n")
    slow = tmp_path / "slow.toml"
    slow.write_text(fast.read_text().replace("10.0", "900.0"))
    expected = "the media profile fast asks for reads of 64 bytes in 10 ns, but the DDR4 takes at least "
    chosen = design((ROOT / "designs/fuzz.toml").read_text())
    commands = [
        (["delay", "set", fast, "--design", chosen], True),
        (["delay", "set", slow, "--design", chosen], False),
        (["delay", "set", "--read-ns", "63", "--write-ns", "1", "--design", chosen], True),
    ]
    for command, late in commands:
        done = nearside(*command, "--json", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        doc = json.loads(done.stdout)
        warned = [line for line in done.stderr.splitlines() if line.startswith("nearside: warning: ")]
        assert len(warned) == late
        assert (doc["late_reads"] is not None) == late
        if late:
            assert warned == [f"nearside: warning: {doc['late_reads']['message']}"]
        if fast in command:
            expected += f"{doc['late_reads']['dram_ns']:g} ns"
            assert warned[0].startswith(f"nearside: warning: {expected}")
    other = design(f"{(ROOT / 'designs/fuzz.toml').read_text()}\n")
    text = other.read_text()
    line = next(line for line in text.splitlines() if line.startswith("profile"))
    other.write_text(text.replace(line, f'profile = "{fast}"'))
    for command in (["info"], ["delay", "show"], ["build", "--no-train"]):
        done = nearside(*command, "--design", other, "--json", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["late_reads"]["target_ns"] == 10
        assert done.stderr.count("nearside: warning: the media profile fast") == 1
