"""Tests of our own tools, above all that they notice what is wrong."""

import check
import filelist
import fmt_hw
import formal
import lint_hw
import pytest
import synth


@pytest.fixture
def root(tmp_path, monkeypatch):
    """An empty repository."""
    for module in (filelist, fmt_hw, formal, lint_hw):
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


def test_counts():
    text = (
        "test result: ok. 5 passed; 1 failed; 2 ignored; 0 measured; 0 filtered out\n"
        "3 passed, 1 skipped, 2 deselected in 0.1s\n"
        "the user said 7 passed\n"
    )
    assert check.counts(text) == {"passed": 8, "failed": 1, "skipped": 3}


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
