# SPDX-License-Identifier: Apache-2.0
"""Tests of our own tools, above all that they notice what is wrong."""

import itertools
from collections import Counter
from pathlib import Path

import check
import filelist
import fmt_hw
import formal
import import_circles
import lint_hw
import loops
import mutate
import pytest
import registers
import regs
import setup
import synth
import watched


@pytest.fixture
def root(tmp_path, monkeypatch):
    """An empty repository."""
    for module in (filelist, fmt_hw, formal, lint_hw, registers):
        monkeypatch.setattr(module, "ROOT", tmp_path, raising=False)
    (tmp_path / "hw" / "lint").mkdir(parents=True)
    (tmp_path / "hw" / "lint" / "common.vlt").write_text("`verilator_config\n")
    return tmp_path


def test_shared_list_is_taken_once(root):
    (root / "a.sv").write_text("")
    (root / "b.sv").write_text("")
    (root / "base.f").write_text("# shared\n+incdir+hw\na.sv\n")
    (root / "one.f").write_text("-f base.f\nb.sv  // last\n")
    (root / "two.f").write_text("-f base.f\n")
    files = filelist.read("one.f", "two.f")
    assert [p.name for p in files.sources] == ["a.sv", "b.sv"]
    assert files.incdirs == [root / "hw"]


@pytest.mark.parametrize("entry", ["missing.sv", "--top x", "+define+X"])
def test_bad_list_names_file_and_line(root, entry):
    (root / "bad.f").write_text(f"# first\n{entry}\n")
    with pytest.raises(ValueError, match=r"bad\.f:2: "):
        filelist.read("bad.f")


def test_waiver_without_reason(root):
    waivers = root / "hw" / "lint" / "common.vlt"
    waivers.write_text("// A reason.\nlint_off -rule A\nlint_off -rule B\n\nlint_off -rule C\n")
    source = root / "hw" / "a.sv"
    source.write_text("// A reason.\n// verilator lint_off A\nwire x;\n/* verilator lint_off B */\n")
    found = [line.split(": ")[0] for line in lint_hw.unexplained_waivers()]
    assert found == ["hw/a.sv:4", "hw/lint/common.vlt:3", "hw/lint/common.vlt:5"]


def test_lint_finds_warnings(root):
    (root / "a.sv").write_text("module a (output logic [1:0] x_o);\n  assign x_o = 3'd0;\nendmodule\n")
    (root / "a.f").write_text("a.sv\n")
    (problem,) = lint_hw.lint(root / "a.f")
    assert "WIDTHTRUNC" in problem


REGISTERS = """
module a (input logic clk_i, input logic rst_ni, input logic [3:0] d_i, output logic [3:0] q_o);
  typedef struct packed { logic valid; logic [2:0] data; } t;
  logic [3:0] done_q, late_q, plain_q, part_q, mem[4], set_q, count_q;
  t s_q;
  logic open_q;
  always_ff @(posedge clk_i or negedge rst_ni) begin
    if (!rst_ni) begin
      done_q <= '0;
      s_q.valid <= 1'b0;
      part_q[0] <= 1'b0;
      for (int unsigned i = 0; i < 4; i++) set_q[i] <= 1'b0;
    end else begin
      done_q <= d_i;
      late_q <= d_i;
      s_q.valid <= d_i[0];
      s_q.data <= d_i[2:0];
      part_q[0] <= d_i[0];
      part_q[1] <= d_i[1];
      set_q[d_i[1:0]] <= d_i[3];
    end
    count_q <= d_i;
  end
  if (1) begin : gen_plain
    always_ff @(posedge clk_i) {plain_q, mem[d_i[1:0]]} <= {d_i, d_i};
  end
  always_latch if (!clk_i) open_q = d_i[0];
`ifndef SYNTHESIS
  logic seen_q;
  always_ff @(posedge clk_i) seen_q <= d_i[0];
`endif
  assign q_o = done_q;
endmodule
"""


@pytest.fixture
def block(root):
    """A block with a register of each kind, and the list that has all that are without a reset."""
    (root / "hw" / "ip" / "a" / "rtl").mkdir(parents=True)
    (root / "hw" / "ip" / "a" / "rtl" / "a.sv").write_text(REGISTERS)
    (root / "hw" / "ip" / "a" / "lint").mkdir()
    listed = root / "hw" / "ip" / "a" / "lint" / "no_reset.txt"
    listed.write_text("# Why.\na: count_q late_q mem plain_q\n# Why.\na: open_q part_q s_q.data\n")
    return listed


def test_registers_without_reset_are_found(block):
    assert registers.problems() == []
    block.write_text("")
    wrong = registers.problems()
    names = sorted(line.split(" a.")[1].split()[0] for line in wrong)
    assert names == ["count_q", "late_q", "mem", "open_q", "part_q", "plain_q", "s_q.data"]
    assert all(line.startswith("hw/ip/a/rtl/a.sv:") and "give it one, or a reason" in line for line in wrong)


@pytest.mark.parametrize(
    ("more", "wrong"),
    [
        ("# Why.\na: gone_q\n", "a.gone_q is no register without a reset"),
        ("# Why.\na: done_q\n", "a.done_q is no register without a reset"),
        ("# Why.\na: set_q\n", "a.set_q is no register without a reset"),
        ("# Why.\na: seen_q\n", "a.seen_q is no register without a reset"),
        ("# Why.\nb: late_q\n", "b.late_q is no register without a reset"),
        ("# Why.\na: late_q\n", "a.late_q is listed at hw/ip/a/lint/no_reset.txt:2, too"),
        ("a late_q\n", "are allowed here"),
    ],
)
def test_what_is_listed_of_registers_has_to_be_so(block, more, wrong):
    block.write_text(block.read_text() + more)
    (problem,) = registers.problems()
    assert problem.startswith("hw/ip/a/lint/no_reset.txt:5: " if more[0] == "a" else "hw/ip/a/lint/no_reset.txt:6: ")
    assert wrong in problem


@pytest.mark.parametrize("above", ["", "# Why.\n\n", "#\n", "# Why.\na: late_q\n"])
def test_registers_are_listed_with_a_reason(block, above):
    block.write_text(f"# Why.\na: mem plain_q open_q part_q s_q.data count_q\n{above}a: late_q\n")
    wrong = registers.problems()
    assert any("registers without a reason on the line above" in line for line in wrong)


@pytest.mark.parametrize(("reason", "wrong"), [("done_q says so.", 0), ("late_q says so.", 1), ("gone_q and q_o.", 2)])
def test_what_a_reason_names_has_a_reset(block, reason, wrong):
    block.write_text(block.read_text().replace("# Why.", f"# {reason}", 1))
    problems = registers.problems()
    assert len(problems) == wrong
    assert all("which the reason names, is no register with a reset" in line for line in problems)


NO_RESET = {
    "some elements": "for (int i = 0; i < 2; i++) x_q[i] <= '0;",
    "each element, perhaps": "for (int i = 0; i < 4; i++) if (i != 1) x_q[i] <= '0;",
    "an element of another's index": "x_q[d_i[1:0]] <= '0;",
    "under a condition": "if (d_i[0]) x_q <= '0;",
    "the same value": "x_q <= x_q;",
    "another variable's": "x_q <= d_i;",
}


@pytest.mark.parametrize("reset", NO_RESET.values(), ids=NO_RESET)
def test_what_is_no_reset_is_not_taken_for_one(root, block, reset):
    block.write_text("")
    (root / "hw" / "ip" / "a" / "rtl" / "a.sv").write_text(
        "module a (input logic clk_i, input logic rst_ni, input logic [3:0] d_i);\n  logic [3:0] x_q;\n"
        f"  always_ff @(posedge clk_i or negedge rst_ni) if (!rst_ni) begin {reset} end else x_q[d_i[1:0]] <= d_i[0];\n"
        "endmodule\n"
    )
    (problem,) = registers.problems()
    assert "a.x_q has no reset" in problem


ELSEWHERE = {
    "another wire": "module a (input logic clk_i, go_i); logic x_q;\n"
    "always_ff @(posedge clk_i or negedge go_i) if (!go_i) x_q <= 1'b0; else x_q <= 1'b1;\nendmodule\n",
    "an interface": "interface a (input logic clk_i); logic x_q;\n"
    "always_ff @(posedge clk_i) x_q <= !x_q;\nendinterface\n",
    "a task": "module a (input logic clk_i); logic y_q;\ntask x_q(); y_q <= !y_q; endtask\n"
    "always_ff @(posedge clk_i) x_q();\nendmodule\n",
}


@pytest.mark.parametrize("source", ELSEWHERE.values(), ids=ELSEWHERE)
def test_registers_are_found_wherever_they_are_made(root, block, source):
    block.write_text("")
    (root / "hw" / "ip" / "a" / "rtl" / "a.sv").write_text(source)
    (problem,) = registers.problems()
    assert "a.x_q has no reset" in problem


def test_a_list_is_of_its_own_block(root, block):
    (root / "hw" / "ip" / "b" / "lint").mkdir(parents=True)
    block.rename(root / "hw" / "ip" / "b" / "lint" / "no_reset.txt")
    assert len(registers.problems()) == 14


def test_registers_are_read_again_when_they_have_changed(root, block):
    assert lint_hw.without_reset() == []
    source = root / "hw" / "ip" / "a" / "rtl" / "a.sv"
    source.write_text(REGISTERS.replace("seen_q", "sees_q").replace("`ifndef SYNTHESIS", "`ifdef SYNTHESIS"))
    (problem,) = lint_hw.without_reset()
    assert "a.sees_q has no reset" in problem


def test_lint_reads_again_what_has_changed(root, monkeypatch):
    """Sources, headers, waivers and lists; and what has not passed."""
    (root / "hw" / "a.svh").write_text("`define A 2'd0\n")
    (root / "hw" / "a.sv").write_text(
        '`include "a.svh"\nmodule a (output logic [1:0] x_o);\n  assign x_o = `A;\nendmodule\n'
    )
    (root / "a.f").write_text("+incdir+hw\nhw/a.sv\n")
    assert not lint_hw.lint(root / "a.f")
    real, runs = lint_hw.run, []
    monkeypatch.setattr(lint_hw, "run", lambda command: runs.append(command) or real(command))
    assert not lint_hw.lint(root / "a.f")
    assert not runs
    (root / "hw" / "a.svh").write_text("`define A 3'd0\n")
    for _ in range(2):
        assert len(lint_hw.lint(root / "a.f")) == 1
        assert len(runs) == 2
        runs.clear()
    (root / "hw" / "lint" / "common.vlt").write_text("`verilator_config\n// Why.\nlint_off -rule WIDTHTRUNC\n")
    assert not lint_hw.lint(root / "a.f")
    assert len(runs) == 2


@pytest.mark.parametrize(("claim", "holds"), [("q != 2'd3", False), ("q == q", True)])
def test_proof(root, monkeypatch, claim, holds, capsys):
    monkeypatch.setattr(formal, "WORK", root / "work")
    formal.WORK.mkdir()
    (root / "p.sv").write_text(
        "module p (input logic clk_i);\n  logic [1:0] q = 0;\n  always_ff @(posedge clk_i) q <= q + 1;\n"
        f"  holds: assert property (@(posedge clk_i) {claim});\nendmodule\n"
    )
    (root / "p.sby").write_text(
        "[options]\nmode bmc\ndepth 6\n[engines]\nsmtbmc yices\n"
        "[script]\nread_slang --top p p.sv\nprep -top p\n[files]\np.sv\n"
    )
    assert formal.prove(root / "p.sby") is holds
    assert ("p PASS" if holds else "p FAIL") in capsys.readouterr().out


@pytest.mark.slow
def test_synthesis_counts(tmp_path):
    source = tmp_path / "s.sv"
    source.write_text(
        "module s (input logic clk_i, input logic [11:0] a_i, output logic x_o);\n  logic [11:0] a_q;\n"
        "  always_ff @(posedge clk_i) begin\n    a_q <= a_i;\n    x_o <= ^a_q;\n  end\nendmodule\n"
    )
    result = synth.synthesise("s", filelist.FileList(sources=[source]), [])
    assert result["resources"]["FF"] == 13
    assert result["resources"]["LUT"] == 3
    assert result["lut_levels"] == 2


@pytest.mark.slow
def test_synthesis_by_instance(tmp_path):
    source = tmp_path / "t.sv"
    source.write_text(
        "module s (input logic clk_i, input logic [11:0] a_i, output logic x_o);\n  logic [11:0] a_q;\n"
        "  always_ff @(posedge clk_i) begin\n    a_q <= a_i;\n    x_o <= ^a_q;\n  end\nendmodule\n"
        "module t (input logic clk_i, input logic [11:0] a_i, output logic [1:0] x_o);\n"
        "  for (genvar i = 0; i < 2; i++) begin : gen_s\n"
        "    s u_s (.clk_i, .a_i, .x_o(x_o[i]));\n  end\nendmodule\n"
    )
    result = synth.synthesise("t", filelist.FileList(sources=[source]), [], hierarchy=1, deep=1)
    rows = {row["instance"]: (row["LUT"], row["FF"], row["LUT levels"]) for row in result["hierarchy"]}
    assert rows == {"": (6, 26, 2), "gen_s[0].u_s": (3, 13, 2), "gen_s[1].u_s": (3, 13, 2)}
    assert len(result["deep"]) == 1
    assert result["deep"][0].startswith("  2 levels,     2 ends: FDRE gen_s[*].u_s.a_q[*] -> ")
    assert not list((filelist.ROOT / "build" / "synth").glob("t-*"))


CARRY = "  logic [7:0] s;\n  assign s = a_i + {{4{s[3]}}, a_i[7:4]};\n  assign x_o = s[7];\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("logic", "count"),
    [
        ("  logic y;\n  assign x_o = a_i[0] & (y ^ a_i[1]);\n  assign y = a_i[2] | (x_o & a_i[3]);\n", 1),
        # The lower half of a sum determines what the upper half adds, so the chain is left and
        # entered again.
        (CARRY, 0),
        # Here the upper half determines the lower one.
        (CARRY.replace("{4{s[3]}}, a_i[7:4]", "a_i[7:4], {4{s[6]}}"), 1),
    ],
    ids=["loop", "carry", "loop of a carry"],
)
def test_synthesis_finds_combinational_loops(tmp_path, capsys, monkeypatch, logic, count):
    source = tmp_path / "l.sv"
    source.write_text(f"module l (input logic [7:0] a_i, output logic x_o);\n{logic}endmodule\n")
    monkeypatch.setattr("sys.argv", ["synth.py", "l", str(source)])
    assert synth.main() == count
    assert capsys.readouterr().out.count("combinational loop of ") == count


def test_ports_of_a_memory_are_no_loop():
    """One port's data addresses the other port: only the way back makes a loop of it."""

    def netlist(address: int) -> dict:
        ports = {"ADDRA": [address], "DOA": [2], "ADDRB": [3], "DOB": [4], "ADDRD": [9], "WCLK": [5]}
        directions = {name: "output" if name.startswith("DO") else "input" for name in ports}
        lut = {"type": "LUT1", "connections": {"I0": [2], "O": [3]}, "port_directions": {"I0": "input", "O": "output"}}
        return {"cells": {"ram": {"type": "RAM32M", "connections": ports, "port_directions": directions}, "lut": lut}}

    assert loops.loops(netlist(1), synth.ends_path) == []
    assert loops.loops(netlist(4), synth.ends_path) == [["lut", "ram"]]


@pytest.mark.slow
@pytest.mark.parametrize(("defines", "latches"), [((), 1), (synth.FPGA, 0)])
def test_synthesis_of_clock_gates(defines, latches):
    gate = filelist.ROOT / "hw" / "lib" / "rtl" / "ns_clock_gate.sv"
    result = synth.synthesise("ns_clock_gate", filelist.FileList(sources=[gate]), [], defines=defines)
    assert (result["resources"]["LUT"] > 0) == bool(latches)
    assert result["resources"]["FF"] == latches


def test_counts():
    text = (
        "test result: ok. 5 passed; 1 failed; 2 ignored; 0 measured; 0 filtered out\n"
        "3 passed, 1 skipped, 2 deselected in 0.1s\n"
        "the user said 7 passed\n"
    )
    assert check.counts(text) == {"passed": 8, "failed": 1, "skipped": 3}


@pytest.mark.slow
@pytest.mark.parametrize("spread", ["loadfile", "worksteal"])
def test_a_test_that_ends_its_process_fails_the_step(monkeypatch, tmp_path, spread):
    for name in "abcd":
        text = "import os, time, pytest\n@pytest.mark.parametrize('n', range(12))\ndef test(n):\n    time.sleep(0.02)\n"
        (tmp_path / f"test_{name}.py").write_text(text + f"    if {name == 'd'} and n == 5: os.abort()\n")
    (tmp_path / "pytest.ini").write_text("[pytest]")
    monkeypatch.setattr(check, "LOGS", tmp_path)
    monkeypatch.setattr(check, "ROOT", tmp_path)
    monkeypatch.setattr(check, "LIMITS", watched.Limits(window=60))
    total = Counter()
    check.run(check.Step("pytest", [*check.PYTEST, ".", "--dist", spread], counted=True), "test", total)
    assert total["failed"] == 1
    assert total["passed"] >= 41


def test_steps_that_there_are_none_of_are_an_error(monkeypatch, capsys):
    ran = []
    monkeypatch.setattr(check, "run", lambda step, scope, total: ran.append(step.name))
    for words in (["nosuchstep"], ["ruff", "nosuchstep"]):
        monkeypatch.setattr("sys.argv", ["check.py", "test", *words])
        with pytest.raises(
            SystemExit,
            match="no step has 'nosuchstep' in its name; there are: rustfmt, rustfmt of extensions, ruff format",
        ):
            check.main()
    assert not ran
    monkeypatch.setattr("sys.argv", ["check.py", "check", "ruff"])
    assert check.main() == 0
    assert sorted(ran) == ["ruff", "ruff format"]


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        ("", "clippy is not installed"),
        ("clippy 0.1.84 (9fc6b43126 2025-01-07)", "clippy is 1.84, this tree is kept clean with 1.85 to 1."),
        ("clippy 0.1.85 (d73d2caf9e 2024-12-31)", None),
        ("clippy 0.1.999 (1234567890 2099-12-31)", "clippy is 1.999, this tree is kept clean with 1.85 to 1."),
        ("clippy 1.0", "clippy is clippy 1.0"),
    ],
)
def test_lints_of_another_version_are_skipped_visibly(monkeypatch, capsys, tmp_path, found, reason):
    monkeypatch.setattr(check, "runs", lambda *_: found)
    monkeypatch.setattr(check, "LOGS", tmp_path)
    total = Counter()
    check.run(check.Step("a lint", ["true"], obstacle=check.other_clippy), "test", total)
    said = capsys.readouterr().out
    assert total == ({"passed": 1} if reason is None else {"skipped": 1})
    assert (f"skipped: {reason}" in said) if reason else ("skipped" not in said)


def test_every_lint_of_rust_names_what_it_needs(monkeypatch):
    monkeypatch.setattr(check, "runs", lambda *_: "")
    blocked = {step.name for step in check.static_steps("test") if step.obstacle()}
    assert blocked == {"rustfmt", "rustfmt of extensions", "register maps", "clippy"}


def test_register_maps_without_rustfmt(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit, match="apt-get install -y rustfmt"):
        regs.generate([filelist.ROOT / "hw/ip/a/regs/a_regs.rdl"], [], tmp_path)


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """A machine with nothing but the programs that a test puts there: name and what it prints."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("ctypes.util.find_library", lambda _: "libpython.so")
    monkeypatch.setattr("os.geteuid", lambda: 1000)

    def put(**programs):
        for name, text in programs.items():
            path = tmp_path / name.replace("gpp", "g++")
            path.write_text(f"#!/bin/sh\n{text}\n")
            path.chmod(0o755)

    return put


DEBIAN_13 = 'case $1 in clippy) exit 101;; *) echo "cargo 1.85.1 (d73d2caf9 2024-12-31)";; esac'


def test_set_up_names_one_line_for_all_that_is_missing(machine):
    machine(cargo=DEBIAN_13, make="", git="")
    with pytest.raises(SystemExit) as caught:
        setup.system_packages()
    assert caught.value.code.endswith("Run as root: apt-get install -y g++ ccache rustfmt rust-clippy")


def test_set_up_goes_on_without_lints(machine, capsys):
    machine(cargo=DEBIAN_13, make="", git="", gpp="", ccache="", rustfmt="echo rustfmt 1.8.0")
    setup.system_packages()
    said = capsys.readouterr().out
    assert "make test skips lints" in said
    assert said.strip().endswith("apt-get install -y rust-clippy")


def test_set_up_as_root_installs_lints(machine, monkeypatch):
    installed = []
    monkeypatch.setattr(setup, "apt_install", lambda packages: installed.append(packages) or True)
    machine(cargo=DEBIAN_13, make="", git="", gpp="")
    setup.system_packages()
    assert installed == [["ccache", "rustfmt", "rust-clippy"]]


def test_set_up_asks_rustup_where_cargo_is_its_own(machine, tmp_path, capsys):
    machine(rustup=f'echo "$@" >> {tmp_path}/asked', make="", git="", gpp="", ccache="")
    rustup = tmp_path / "rustup"
    rustup.write_text(
        rustup.read_text() + 'case "$0 $1" in */cargo\\ --version) echo "cargo 1.95.0";; *) exit 1;; esac\n'
    )
    (tmp_path / "cargo").symlink_to("rustup")
    setup.system_packages()
    assert "component add rustfmt clippy" in Path(tmp_path, "asked").read_text()
    assert "apt-get" not in capsys.readouterr().out


@pytest.mark.parametrize("cargo", ["exit 1", "echo cargo 1.65.0"])
def test_set_up_names_the_line_for_a_newer_cargo(machine, cargo):
    machine(cargo=cargo, make="", git="", gpp="")
    with pytest.raises(SystemExit, match=r"(?s)Rust 1\.85 or newer is needed: .*sh\.rustup\.rs"):
        setup.system_packages()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [("module m;\nendmodule\n", ""), ("module  m;\nendmodule\n", "needs formatting"), ("module m(;\n", "syntax error")],
)
def test_format_check(root, monkeypatch, capsys, text, complaint):
    monkeypatch.setattr("sys.argv", ["fmt_hw.py", "--check"])
    source = root / "hw" / "m.sv"
    source.write_text(text)
    assert fmt_hw.main() == bool(complaint)
    assert complaint in capsys.readouterr().out
    assert source.read_text() == text


def test_mutants_are_of_logic_only():
    text = """module x;
  logic [3:0] count_q;
  `NS_ASSERT(never, !(a_i &&
      b_i))
  if (Depth < 1) begin : gen_bad_depth
  assign full = count_q == 4'd3 && !pop_i;  // a == b
  always_ff @(posedge clk_i) begin
    if (push_i) begin
      count_q <= count_q + 1'b1;
    end
  end
"""
    lines = dict(mutate.rtl_lines(text))
    found = {(line.strip(), op, new.strip()) for line in lines.values() for op, new in mutate.changes("rtl", line)}
    full = "assign full = count_q == 4'd3 && !pop_i;  // a == b"
    count = "count_q <= count_q + 1'b1;"
    assert found == {
        (full, "comparison", full.replace("==", "!=", 1)),
        (full, "logic", full.replace("&&", "||")),
        ("if (push_i) begin", "condition", "if (!(push_i)) begin"),
        (count, "arithmetic", count.replace("+", "-")),
        (count, "constant", count.replace("1'b1", "1'b0")),
        (count, "left out", ""),
    }


def test_mutants_of_rust_leave_tests_alone():
    text = """fn f(n: u32) -> Vec<u32> {
    // n < 1
    if n < 10 {
        self.count += n;
    }
    debug_assert!(n > 2);
#[cfg(test)]
mod tests { fn g() { a == b; } }
"""
    found = {new.strip() for _, line in mutate.rust_lines(text) for _, new in mutate.changes("rust", line)}
    assert found == {"if n <= 10 {", "if n < 11 {", "if !(n < 10) {", "self.count -= n;", ""}


def test_mutants_are_the_same_for_the_same_seed():
    def first(seed: int) -> list[mutate.Mutant]:
        return list(itertools.islice(mutate.draw("rtl", seed, mutate.ROOT), 20))

    assert first(3) == first(3) != first(4)
    assert len({(m.file, m.line) for m in first(3)}) == 20
    every = list(mutate.draw("rtl", 1, mutate.ROOT))
    assert len({(m.file, m.line) for m in every}) == len(every) > 1000
    assert all((mutate.ROOT / m.file).read_text().splitlines()[m.line - 1] == m.before != m.after for m in first(3))


def test_mutants_of_a_tree_that_does_not_build_are_not_judged(monkeypatch, tmp_path):
    tree = tmp_path / "tree"
    tree.mkdir()
    for name, value in (("WORK", tmp_path), ("TREE", tree), ("prepare", lambda doc: doc.update(commit="x"))):
        monkeypatch.setattr(mutate, name, value)
    monkeypatch.setattr(mutate, "commit", lambda: "x")
    monkeypatch.setattr(mutate, "draw", lambda kind, *_: iter([mutate.Mutant(kind, "f", 1, "op", "a", "b")]))
    judged = []
    monkeypatch.setattr(mutate, "judge", lambda mutant, _: judged.append(mutant) or {"outcome": "unviable"})
    monkeypatch.setattr(mutate.signal, "signal", lambda *_: None)
    args = mutate.argparse.Namespace(seed=1, minutes=0, rust=1, rtl=1, fast=0, first="rtl", through="", limit=20)
    monkeypatch.setattr(mutate, "lint", lambda: ["true"])
    monkeypatch.setattr(mutate, "cargo", lambda *_: ["sh", "-c", "echo no space left; exit 1"])
    with pytest.raises(SystemExit, match=r"(?s)without any mutant this fails in .*no space left"):
        mutate.run(args)
    assert not judged
    assert not list(tmp_path.glob("*.json"))


def test_a_tree_of_another_commit_is_made_anew(monkeypatch, tmp_path):
    def git(*words):
        mutate.subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x", *words], cwd=tmp_path, check=True)

    for name, value in (("ROOT", tmp_path), ("WORK", tmp_path / "w"), ("TREE", tmp_path / "w/tree")):
        monkeypatch.setattr(mutate, name, value)
    git("init", "-q")
    commits = []
    for name in ("old", "new"):
        (tmp_path / name).write_text(name)
        git("add", name)
        git("commit", "-qm", name)
        commits.append(mutate.commit())
    files = []
    for number in (0, 1, 0, 0):
        mutate.prepare({"commit": commits[number]})
        files.append(sorted(path.name for path in mutate.TREE.iterdir() if path.name != ".venv"))
        (mutate.TREE / "built").touch()
    assert files == [["old"], ["new", "old"], ["old"], ["built", "old"]]


def test_without_survivors_nothing_is_judged_again(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(mutate, "WORK", tmp_path)
    mutate.save({"seed": 1, "commit": "then", "results": [{"outcome": "survived", "kind": "rtl"}]})
    monkeypatch.setattr(mutate, "prepare", lambda _: pytest.fail("a tree is prepared"))
    mutate.again(mutate.argparse.Namespace(seed=1, rust=30, rtl=0, through="", limit=20))
    assert "no survivors" in capsys.readouterr().out


def test_survivors_are_judged_again_where_their_line_is_today(monkeypatch, tmp_path):
    (tmp_path / "f").write_text("new\na\nb\na\n")
    for name, value in (("WORK", tmp_path), ("TREE", tmp_path), ("control", lambda _: None)):
        monkeypatch.setattr(mutate, name, value)
    monkeypatch.setattr(mutate, "prepare", lambda doc: doc.update(commit="today"))
    judged = []

    def judge(mutant, _):
        judged.append(mutant.line)
        return mutate.asdict(mutant) | {"outcome": "killed", "stage": "unit", "seconds": 1.0}

    monkeypatch.setattr(mutate, "judge", judge)
    mutants = [
        mutate.Mutant("rust", "f", line, "op", before, "x") for line, before in ((1, "a"), (3, "a"), (2, "gone"))
    ]
    mutants.append(mutate.Mutant("rtl", "f", 3, "op", "b", "x"))
    outcomes = ["survived", "killed", "survived", "survived"]
    results = [mutate.asdict(m) | {"outcome": o} for m, o in zip(mutants, outcomes, strict=True)]
    mutate.save({"seed": 1, "commit": "then", "results": results})
    mutate.again(mutate.argparse.Namespace(seed=1, rust=30, rtl=0, through="", limit=20))
    assert judged == [2]
    doc = mutate.load(1)
    assert doc["commit"] == "then"
    assert [(r["outcome"], r["line"], r.get("again")) for r in doc["results"]] == [
        ("killed", 1, "today"),
        ("killed", 3, None),
        ("survived", 2, None),
        ("survived", 3, None),
    ]


def test_a_sample_of_a_proof_leaves_out_only_what_others_of_it_prove(monkeypatch, tmp_path):
    path = next(formal.ROOT.glob("hw/**/formal/level.sby"))
    monkeypatch.setattr(formal, "LONG", {"level": ["one"]})
    assert formal.tasks(path, False) == []
    assert formal.tasks(path, True) == ["two", "cover"]
    monkeypatch.setattr(formal, "LONG", {"level": ["three"]})
    with pytest.raises(SystemExit, match=r"its tasks are one, two, cover, not only three"):
        formal.tasks(path, True)


def test_import_circles_are_found_at_each_level(tmp_path, capsys):
    files = {
        "lib.rs": "mod a;\nmod b;\nuse a::f; // use crate::b\n",
        "a/mod.rs": "mod x;\nmod y;\npub(crate) fn f() {}\n",
        "a/x.rs": "use super::{f, y::Y};\nmod inner { use super::super::y; }\n",
        "a/y.rs": 'const TEXT: &str = "crate::b";\n',
        "b.rs": "use crate::{\n    a::{f, x::X},\n};\n",
    }
    for name, text in files.items():
        path = tmp_path / "crates" / "c" / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "crates" / "c" / "Cargo.toml").write_text("")
    assert import_circles.main(tmp_path) == 0
    # From one folder to another and back, whatever the modules in it.
    (tmp_path / "crates/c/src/a/y.rs").write_text("fn g() {\n    crate::b::h();\n}\n")
    assert import_circles.main(tmp_path) == 1
    # Within a folder, by a path that a test has.
    (tmp_path / "crates/c/src/a/y.rs").write_text("mod tests {\n    use super::super::x;\n}\n")
    assert import_circles.main(tmp_path) == 1
    found = capsys.readouterr().out.splitlines()
    assert found == [f"crates/c: these modules use each other: {names}" for names in ("a, b", "a::x, a::y")]
