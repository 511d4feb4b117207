# SPDX-License-Identifier: Apache-2.0
"""Experiments and their report: runs, saved documents, pages, and nothing is hidden."""

from __future__ import annotations

import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from nearside import Design, NearsideError
from nearside.claims import matrices
from nearside.claims import report as claims_report
from nearside.experiments import cli, document, models, nearpm, openexpress_fig4, registry, repeat
from nearside.experiments import run as runs
from nearside.experiments.registry import Experiment, Run, all_experiments, figure, find, from_paper, natural, plot
from nearside.page import claims as claims_page
from nearside.page import experiments as page
from nearside.page import svg

ROOT = Path(__file__).resolve().parent.parent
NAMES = list(all_experiments())


def fake(name="fake_fig1", fails_at=None, failure=None, **options) -> Experiment:
    """An experiment of three rows that needs no device."""

    def measure(run: Run, case: int) -> dict:
        if case == fails_at:
            raise failure
        return {"case": case, "value": 2.0 * case, "seed": run.seed}

    def figures(rows):
        return [
            figure(f"f{row['case']}", f"what {row['case']} does", row["value"], "GB/s", paper=4.0, source="figure 1",
                   limit=8.0, limit_text="the wire")
            for row in rows
        ]  # fmt: skip

    def plots(rows):
        series = [
            {"name": "ours", "of": "ours", "y": [row["value"] for row in rows]},
            {"name": "theirs", "of": "paper", "y": [None, *[4.0] * (len(rows) - 1)]},
        ]
        return [plot("Some of it", [row["case"] for row in rows], series, x_label="case", y_label="GB/s")]

    values = {"models": ("yosys",), "design": None, "quick": {"count": 2}, "full": {"count": 3}} | options
    return Experiment(
        name=name, title="A title & more", source="A paper, figure 1", text=("What `was` run.",), **values,
        cases=lambda run: list(range(1, run.parameters["count"] + 1)), measure=measure, figures=figures,
        plots=plots,
    )  # fmt: skip


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.setenv("NEARSIDE_RESULTS", str(tmp_path / "results"))
    return tmp_path / "results" / "experiments"


def nearside(*arguments: object, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "nearside.cli", *map(str, arguments)]
    environment = os.environ | {"NEARSIDE_ROOT": str(ROOT)} | env
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=600)


def fails(*arguments: object, cwd: Path, **env: str) -> str:
    """Runs a command that fails, checks the failure, and returns its one line."""
    done = nearside(*arguments, cwd=cwd, **env)
    assert done.returncode not in (0, None), done.stdout
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    return lines[0].removeprefix("nearside: ")


@pytest.mark.parametrize("name", NAMES)
def test_experiment_list_is_complete(name):
    e = find(name)
    assert (e.name, e.name.replace("_", "").isalnum()) == (name, True)
    assert e.title
    assert re.search(r"(figure|table) \d", e.source)
    assert all(line.endswith(".") for line in e.text)
    assert set(e.models) <= set(models.MODELS)
    assert e.time in ("simulated", "wall-clock", "none")
    for model in e.models:
        quick, full = (e.cases(Run(model, parameters=parameters)) for parameters in (e.quick, e.full))
        assert 0 < len(quick) <= len(full)
    assert (e.figures([]), json.loads(json.dumps(e.full))) == ([], e.full)
    assert (ROOT / "python/nearside/experiments" / f"{name}.py").is_file()
    assert f"`{name}`" in (ROOT / "docs/experiments.md").read_text()


def test_experiment_names_sort_by_number():
    assert sorted(["x_fig10", "x_fig9", "x_table1"], key=natural) == ["x_fig9", "x_fig10", "x_table1"]


def test_experiment_figure_has_ratios():
    one = figure("a", "what", 3.0, "us", paper=6.0, limit=2.0, better="lower")
    assert (one["ratio"], one["of_limit"]) == (0.5, 1.5)
    assert figure("a", "what", 3.0, "us", limit=0.0)["of_limit"] is None
    with pytest.raises(ValueError, match="better"):
        figure("a", "what", 3.0, "us", better="best")


def test_experiment_figure_of_a_paper_has_its_source():
    assert from_paper(0.0, "figure 1") == {"paper": 0.0, "source": "figure 1"}
    assert from_paper(None, "figure 1") == {"paper": None, "source": None}


def test_experiment_result_has_all_parameters(results):
    doc = runs.run(fake(), "yosys", seed=7)
    loaded = document.load(results / "fake_fig1.yosys.json")
    assert loaded == {key: value for key, value in doc.items() if key != "saved"}
    assert (loaded["status"], loaded["cases"], len(loaded["rows"]), loaded["seed"]) == ("complete", 3, 3, 7)
    assert loaded["command"] == "nearside experiment run fake_fig1 --model yosys --seed 7"
    assert [f["ratio"] for f in loaded["figures"]] == [0.5, 1.0, 1.5]
    assert loaded["revision"]
    assert document.load_all(results) == ([loaded], [])


def test_experiment_result_has_the_design_and_its_hash(results):
    doc = runs.run(fake(design="default"), "yosys", design="dram")
    assert doc["design"]["hash"] == Design.load("dram").hash
    assert doc["command"].endswith("--design dram")


def repeated(**options) -> Experiment:
    """Values depend on the seed: 2, 4, 6 times the case's number with seeds 1, 1001, 2001."""

    def measure(run: Run, case: int) -> dict:
        return {"case": case, "value": 2.0 * case * (1 + run.seed // 1000)}

    return replace(fake(quick={"count": 1, "runs": 1}, full={"count": 2, "runs": 3}), measure=measure, **options)


def test_experiment_runs_give_a_mean_and_a_deviation(results):
    doc = runs.run(repeated(), "yosys")
    assert [(row["case"], row["seed"]) for row in doc["rows"]] == [
        (n, seed) for n in (1, 2) for seed in (1, 1001, 2001)
    ]
    assert [(f["value"], f["deviation"], f["runs"]) for f in doc["figures"]] == [(4.0, 2.0, 3), (8.0, 4.0, 3)]
    assert [(f["ratio"], f["of_limit"]) for f in doc["figures"]] == [(1.0, 0.5), (2.0, 1.0)]
    (drawn,) = doc["plots"]
    ours, theirs = drawn["series"]
    assert (drawn["x"], ours["y"], ours["deviation"]) == (["1", "2"], [4.0, 8.0], [2.0, 4.0])
    assert (theirs["y"], "deviation" in theirs) == ([None, 4.0], False)
    assert '<b>4 GB/s</b><br><span class="soft">± 2, 3 runs</span>' in page.html([doc])
    assert document.load(results / "fake_fig1.yosys.json")["figures"] == doc["figures"]


@pytest.mark.parametrize(("kind", "places"), [("lines", [0, 1]), ("bars", [-0.2, 0.8])])
def test_experiment_deviations_are_error_bars(monkeypatch, kind, places):
    from matplotlib.axes import Axes

    seen = []
    monkeypatch.setattr(Axes, "errorbar", lambda self, x, y, yerr, **look: seen.append((x, y, yerr)))
    series = [
        {"name": "a", "of": "ours", "y": [1.0, None], "deviation": [0.5, None]},
        {"name": "b", "of": "paper", "y": [1.0, 2.0]},
    ]
    svg.draw(PLOT | {"x": ["1", "2"], "kind": kind, "series": series}, "n")
    ((x, y, off),) = seen
    assert x == pytest.approx(places)
    assert (y[0], off[0], math.isnan(y[1]), math.isnan(off[1])) == (1.0, 0.5, True, True)


def test_experiment_single_run_has_no_deviation(results):
    doc = runs.run(repeated(), "yosys", quick=True, seed=1001)
    assert [(f["value"], f["deviation"], f["runs"]) for f in doc["figures"]] == [(4.0, None, 1)]
    assert doc["plots"][0]["series"][0]["deviation"] == [None]
    assert "±" not in page.html([doc])


def test_experiment_interrupted_case_counts_its_completed_runs(results):
    def measure(run: Run, case: int) -> dict:
        if (case, run.seed) == (2, 2001):
            raise KeyboardInterrupt
        return {"case": case, "value": float(case * run.seed)}

    with pytest.raises(NearsideError, match="5 of 6 rows are in"):
        runs.run(replace(repeated(), measure=measure), "yosys")
    doc = document.load(results / "fake_fig1.yosys.json")
    assert [(f["value"], f["runs"]) for f in doc["figures"]] == [(1001.0, 3), (1002.0, 2)]
    assert doc["plots"][0]["series"][0]["y"] == [1001.0, 1002.0]


def test_experiment_measured_limit_is_a_mean_too(results):
    def figures(rows):
        return [figure("f", "what", row["value"], "x", limit=row["value"] ** 2) for row in rows[:1]]

    doc = runs.run(repeated(figures=figures), "yosys")
    assert [(f["value"], f["limit"], f["of_limit"]) for f in doc["figures"]] == [(4.0, 56 / 3, 4 / (56 / 3))]


def test_experiment_seeds_stay_within_64_bits():
    assert repeat.seeds((1 << 64) - 1, {"runs": 2}) == [(1 << 64) - 1, 999]
    assert repeat.seeds(5, {}) == [5]


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("nearpm_fig")])
def test_experiment_figures_of_nearpm_have_ten_runs(name):
    assert find(name).full["runs"] == nearpm.RUNS == 10
    assert nearpm.RUNS_TEXT in find(name).text


@pytest.mark.parametrize("failure", [KeyboardInterrupt(), NearsideError("it broke"), ValueError("odd")])
def test_experiment_early_end_is_partial(results, failure):
    with pytest.raises(NearsideError if not isinstance(failure, ValueError) else ValueError) as end:
        runs.run(fake(fails_at=3, failure=failure), "yosys")
    doc = document.load(results / "fake_fig1.yosys.json")
    assert (doc["status"], len(doc["rows"]), doc["cases"]) == ("partial", 2, 3)
    assert doc["reason"] in ("interrupted", "it broke", "ValueError: odd")
    if isinstance(failure, KeyboardInterrupt):
        assert "2 of 3 rows are in" in str(end.value)
        assert end.value.status == 130
    html = page.html([doc])
    assert "Partial: 2 of 3 rows" in html
    assert "Partial: fake_fig1 (yosys)" in html


def test_experiment_without_a_row_saves_nothing(results):
    with pytest.raises(NearsideError, match="before its first row"):
        runs.run(fake(fails_at=1, failure=KeyboardInterrupt()), "yosys")
    assert list(results.iterdir()) == []


def test_experiment_result_survives_a_full_disk(results):
    results.mkdir(parents=True)
    (results / "fake_fig1.yosys.json").symlink_to("/dev/full")
    with pytest.raises(NearsideError, match=r"fake_fig1\.yosys\.json: No space left on device"):
        runs.run(fake(), "yosys")


def test_experiment_results_folder_that_is_a_file(tmp_path, monkeypatch):
    monkeypatch.setenv("NEARSIDE_RESULTS", str(tmp_path))
    (tmp_path / "experiments").write_text("")
    with pytest.raises(NearsideError, match="experiments is no folder"):
        runs.run(fake(), "yosys")


def test_experiment_models_by_name(monkeypatch):
    with pytest.raises(NearsideError, match="no model is called 'slow': allowed are rtl, fast, yosys"):
        models.check("slow")
    with pytest.raises(NearsideError, match="fake_fig1: can't be done with the model rtl, only with yosys"):
        fake().check("rtl")
    given = {}

    class Fake:
        def __init__(self, design, progress=None, *, model="rtl", **options):
            given.update(options | {"model": model})
            if model == "fast":
                raise NearsideError("the model fast has no local memory")

    monkeypatch.setattr(models, "Device", Fake)
    models.open_device(None, "rtl", weights=(1, 2, 3))
    assert given == {"weights": (1, 2, 3), "model": "rtl"}
    with pytest.raises(NearsideError, match="no local memory"):
        models.open_device(None, "fast")


def test_experiment_all_runs_those_that_the_model_supports(monkeypatch):
    monkeypatch.setattr(cli, "all_experiments", lambda: {"a": fake("a"), "b": fake("b", models=("rtl", "fast"))})
    several, left_out = cli.chosen("all", None)
    assert ([(e.name, on) for e, on in several], left_out) == ([("a", "yosys"), ("b", "rtl")], [])
    several, left_out = cli.chosen("all", "rtl")
    assert ([(e.name, on) for e, on in several], [e.name for e in left_out]) == ([("b", "rtl")], ["a"])


def test_experiment_names_that_are_equal_are_refused(monkeypatch):
    monkeypatch.setattr(openexpress_fig4, "EXPERIMENT", replace(openexpress_fig4.EXPERIMENT, name="nvmulator_fig6"))
    with pytest.raises(ValueError, match="two experiments are called nvmulator_fig6"):
        registry.all_experiments()


@pytest.mark.slow
def test_experiment_bad_input_is_one_line(tmp_path):
    assert fails("experiment", "run", "openexpres_fig4", cwd=tmp_path).endswith("did you mean openexpress_fig4?")
    assert "`nearside experiment list` shows all" in fails("experiment", "run", "x", cwd=tmp_path)
    assert fails("experiment", "run", "all", "--model", "x", cwd=tmp_path).startswith("no model is called 'x'")
    assert fails("experiment", "run", "nvmulator_table1", "-d", "dram", cwd=tmp_path).endswith("takes no design")
    assert 'no design "x"' in fails("experiment", "run", "openexpress_fig4", "-d", "x", cwd=tmp_path)
    assert fails("report", cwd=tmp_path).endswith("run `nearside experiment run all --quick` first")
    assert not [p for p in tmp_path.iterdir() if p.name != "results"]


def saved(results: Path, **changes) -> Path:
    runs.run(fake(), "yosys")
    path = results / "fake_fig1.yosys.json"
    doc = json.loads(path.read_text()) | changes
    path.write_text(json.dumps(doc))
    return path


@pytest.mark.slow
def test_experiment_output_that_cannot_be_written(results, tmp_path):
    saved(results)
    assert fails("report", "-o", "none/x.html", cwd=tmp_path).startswith("none/x.html: its folder doesn't exist")
    assert fails("report", "-o", "/dev/full", cwd=tmp_path) == "/dev/full: No space left on device"
    own = "results/experiments/fake_fig1.yosys.json"
    assert "the same file" in fails("report", "-o", own, cwd=tmp_path)
    assert document.load(tmp_path / own)


def test_experiment_result_copies_are_left_out_visibly(results, tmp_path):
    path = saved(results)
    copy = path.with_name("fake_fig1.yosys.bak.json")
    copy.write_bytes(path.read_bytes())
    done = nearside("report", "--json", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stderr.splitlines() == [f"{copy}: left out, no result is saved by this name; rename or remove it"]
    reported = json.loads(done.stdout)
    assert (reported["from"], reported["left_out"]) == (["fake_fig1.yosys"], [str(copy)])
    html = (tmp_path / "results/report.html").read_text()
    ids = Page(html).ids
    assert len(ids) == len(set(ids))


def test_experiment_design_without_a_name_is_another(results, tmp_path):
    with pytest.raises(NearsideError, match="no design"):
        runs.run(fake(models=("fast",), design="fuzz"), "fast", design="")


SERIES = {"name": "", "of": "ours", "y": [1]}
PLOT = {"title": "t", "kind": "lines", "log": False, "floor": 0, "x": ["1"], "x_label": "", "y_label": ""}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"format": 99}, "version 99 of the format, this nearside reads 1"),
        ({"what": "claims"}, "this is no result of `nearside experiment run`"),
        ({"rows": 5}, "damaged (rows: int)"),
        ({"rows": [5]}, "damaged (rows: holds what is no row)"),
        ({"seed": "x"}, "damaged (seed: str)"),
        ({"quick": 1}, "damaged (quick: int)"),
        ({"status": "fine"}, "damaged (status: 'fine')"),
        ({"figures": [{}]}, "damaged (figures[0].name: missing)"),
        ({"figures": [7]}, "damaged (figures[0]: no table)"),
        ({"plots": [PLOT | {"kind": "pie", "series": []}]}, "damaged (plots[0].kind: 'pie')"),
        ({"plots": [PLOT | {"series": [{"name": "", "of": "ours", "y": [1, 2]}]}]}, "y: no list of 1 numbers"),
        ({"plots": [PLOT | {"series": [{"name": "", "of": "ours", "y": ["1"]}]}]}, "y: no list of 1 numbers"),
        ({"plots": [PLOT | {"series": [SERIES | {"deviation": [1, 2]}]}]}, "deviation: no list of 1 numbers"),
        ({"plots": [PLOT | {"series": [SERIES | {"deviation": None}]}]}, "deviation: no list of 1 numbers"),
        ({"figures": [figure("f", "t", 1.0, "x") | {"deviation": "x"}]}, "damaged (figures[0].deviation: str)"),
        ({"plots": [PLOT | {"x": [1], "series": []}]}, "plots[0].x: holds what is no text"),
        ({"plots": [PLOT | {"x": ["1"] * 20_000, "series": []}]}, "plots[0].x: 20000 of them, allowed are at most 400"),
        ({"plots": [PLOT | {"series": [{}] * 17}]}, "plots[0].series: 17 of them, allowed are at most 16"),
        ({"plots": [PLOT | {"series": []}] * 51}, "plots: 51 of them, allowed are at most 50"),
        ({"design": {"name": "x"}}, "damaged (design.hash: missing)"),
        ({"text": [1]}, "damaged (text: holds what is no text)"),
        ({"duration_s": float("nan")}, "damaged (duration_s: no number)"),
        ({"cases": 10**400}, "damaged (cases: no number)"),
        ({"plots": [PLOT | {"series": [{"name": "", "of": "ours", "y": [float("inf")]}]}]}, "no list of 1 numbers"),
    ],
)
def test_experiment_damaged_document_is_named(results, tmp_path, changes, said):
    path = saved(results, **changes)
    with pytest.raises(NearsideError) as error:
        document.load(path)
    assert str(error.value).startswith(f"{path}: ")
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_experiment_document_without_deviations_is_read(results):
    path = saved(results)
    doc = json.loads(path.read_text())
    for one in doc["figures"]:
        del one["deviation"], one["runs"]
    path.write_text(json.dumps(doc))
    assert document.load(path)["figures"] == doc["figures"]
    Page(page.html([doc]))


@pytest.mark.slow
@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff", b"[" * 100_000, b"null"])
def test_experiment_file_that_is_not_a_document_is_one_line(results, tmp_path, content):
    path = saved(results)
    path.write_bytes(content)
    line = fails("report", cwd=tmp_path)
    assert line.startswith(str(path))
    assert not (tmp_path / "results/report.html").exists()


@pytest.mark.slow
def test_experiment_rows_of_any_content_are_shown(results, tmp_path):
    """Rows have any content; a page must not fail because of it."""
    rows = [{"a": float("inf"), "b": [1, {"c": None}], "d": "\ud800<b>", "e": 1e-9, "f": 10**400}, {"g": True}]
    empty = [{"name": "\u4e2d", "of": "ours", "y": [None]}, {"name": "", "of": "paper", "y": [0]}]
    plots = [PLOT | {"series": empty, "kind": kind, "log": log} for kind in ("lines", "bars") for log in (False, True)]
    bare = [PLOT | {"series": [], "x": x, "kind": kind} for kind in ("lines", "bars") for x in ([], ["1"])]
    saved(results, rows=rows, plots=[*plots, *bare])
    done = nearside("report", "-o", "x.html", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\\ud800&lt;b&gt;" in (tmp_path / "x.html").read_text()


class Page(HTMLParser):
    """A parser of pages: identifiers, links, and whether each element is closed."""

    VOID = ("meta", "br", "path", "use", "rect")

    def __init__(self, html: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: list[str] = []
        self.open: list[str] = []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.tags.append(tag)
        self.ids += [values["id"]] if "id" in values else []
        self.links += [value for key, value in attrs if key in ("href", "src", "xlink:href")]
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_experiment_page_is_self_contained_and_complete(results):
    hostile = replace(fake("z_fig2"), title="<script>alert(1)</script>", text=("</p><img src=x> $x$ `a<b`.",))
    for experiment in (fake(), hostile):
        runs.run(experiment, "yosys")
    html = page.html(document.load_all(results)[0])
    read = Page(html)
    assert len(read.ids) == len(set(read.ids))
    assert all(link.startswith("#") and link[1:] in read.ids for link in read.links)
    assert not {"script", "img", "link", "iframe"} & set(read.tags)
    assert read.tags.count("svg") == 2
    assert html.count("http") == html.count("http-equiv") + html.count("http://www.w3.org/")
    for text in ("prefers-color-scheme: dark", "width=device-width", "default-src 'none'", "<code>a&lt;b</code>"):
        assert text in html
    doc = document.load_all(results)[0][0]
    for value in (
        doc["command"],
        "<b>2 GB/s</b>",
        "4 GB/s",
        "8 GB/s",
        "the wire",
        "figure 1",
        "25 %",
        "yosys, simulated",
    ):
        assert value in html, value
    assert page.html(document.load_all(results)[0]) == html


def test_experiment_plot_has_the_colours_of_the_page():
    one = plot("Bars & <more>", ["a", "$b$"], [{"name": "n<1>", "of": "ours", "y": [1, None]}], x_label="", y_label="y",
               kind="bars", log=True)  # fmt: skip
    drawn = svg.draw(one, "name")
    Page(drawn)
    assert drawn.startswith("<svg ")
    assert "Bars &amp; &lt;more&gt;" in drawn
    assert "$b$" in drawn
    assert "var(--c0)" in drawn
    assert not re.search(r"#0102\d\d|#000000", drawn)
    assert svg.draw(one, "name") == drawn


def row(kind="read", size=4096, pattern="sequential", queues=10, depth=8, cpu="polled", gb_s=6.0, mean=50.0):
    case = {"kind": kind, "bytes": size, "pattern": pattern, "queues": queues, "depth": depth, "cpu": cpu}
    return case | {"commands": 1, "gb_s": gb_s, "mean_us": mean, "wire_gb_s": 7.0, "wire_us": 40.0}


def test_experiment_openexpress_matches_published_points():
    rows = [row(), row(size=8192), row("write", 32768), row(queues=1), row(depth=1, mean=5.7, pattern="random")]
    figures = {f["name"]: f for f in openexpress_fig4.figures(rows)}
    assert (figures["read_4k.sequential.bandwidth"]["paper"], figures["read_4k.sequential.bandwidth"]["ratio"]) == (
        3,
        2,
    )
    assert figures["read_8k.sequential.bandwidth"]["paper"] is None
    assert figures["write_32k.sequential.latency"]["paper"] == 551.5
    assert figures["read_4k.random.depth_1.latency"]["ratio"] == pytest.approx(0.2)
    assert len(figures) == 7, "one queue is in the plots only"
    titles = [p["title"] for p in openexpress_fig4.plots(rows)]
    assert any(title.startswith("Figure 4a") for title in titles)
    assert "polls" in " ".join(openexpress_fig4.EXPERIMENT.text), "what makes ours look better is said"


def claim(name, value, holds=True, paper=None):
    return {
        "name": name, "text": "What & how.", "value": value, "unit": "%", "bound": ">= 95", "holds": holds,
        "paper": paper, "engine": "rtl", "seed": 1, "time": "simulated", "detail": "<detail>", "error": None,
        "duration_s": 1.0,
    }  # fmt: skip


def claims(*entries):
    design = {"name": "default", "hash": "0" * 64}
    return {"what": "claims", "when": "now", "revision": "x", "machine": "m", "quick": False, "seed": 1,
            "design": design, "claims": list(entries), "holds": True}  # fmt: skip


WIRE = [
    claim(f"nvme.wire.{link}.{kind}_{size}.{pattern}", 99.5, holds=size != "4k")
    for link in ("gen3x8", "gen3x16")
    for size in ("512b", "4k")
    for kind in ("read", "write")
    for pattern in ("seq", "rand")
]


def test_experiment_claims_page_begins_with_tables():
    doc = claims(*WIRE, claim("nvme.sizes", 12), claim("nvme.read_4k.seq.bandwidth", 7.1, paper="OpenExpress: 3 GB/s"),
                 claim("nvme.write_4k.seq.bandwidth", 7.0), claim("nvm_delay.read_305ns.mean_error", 1e-5))  # fmt: skip
    wire, published = matrices.matrices(claims_report.combined([doc]))
    assert wire.columns == ["gen3x8 seq", "gen3x8 rand", "gen3x16 seq", "gen3x16 rand"]
    assert [label for label, _ in wire.rows] == ["read 512 B", "write 512 B", "read 4 KiB", "write 4 KiB"]
    assert wire.names == {entry["name"] for entry in WIRE}
    assert published.rows[0][1][-1] == "OpenExpress: 3 GB/s"
    # Favourable conditions are stated in the table, in the head of the column that they favour.
    assert published.columns == ["sequential: simulated, a polling host", "published: hardware, fio through Linux"]
    markdown = claims_report.markdown(doc)
    assert "| read 4 KiB | **99.5** | **99.5** | **99.5** | **99.5** |" in markdown
    assert markdown.index("read 4 KiB") < markdown.index("<details>") < markdown.index("`nvme.sizes`")
    assert markdown.count("<details>") == markdown.count("</details>") == 2
    assert "- Do not hold: `nvme.wire.gen3x8.read_4k.seq` (99.5 %, bound >= 95)" in markdown
    html = claims_page.html(doc)
    read = Page(html)
    assert read.tags.count("svg") == len(matrices.plots(doc["claims"])) == 3
    assert html.index("read 4 KiB") < html.index("<details>") < html.index("nvme.sizes")
    assert "&lt;detail&gt;" in html
    assert "Do not hold: nvme.wire.gen3x8.read_4k.seq" in html
    assert "http" not in html.replace("http-equiv", "").replace("http://www.w3.org/", "")


def test_experiment_claims_page_shows_the_true_mean_of_missed_targets():
    """Also for targets that the DRAM meets, and the host's latency beside that at the ports of the block."""
    late, met = "nvm_delay.targets.read_60ns", "nvm_delay.targets.read_351ns"
    doc = claims(claim(f"{late}.mean", 72.4), claim(f"{late}.on_time_error", 0.0), claim(f"{met}.mean_error", 0.01),
                 claim("pm.load.optane-dcpmm", 0.1), claim("pm.chain.optane-dcpmm.fast", 0.2))  # fmt: skip
    ports, seen = matrices.matrices(claims_report.combined([doc]))
    cells = {row: dict(zip(ports.columns, line, strict=True)) for row, line in ports.rows}
    assert cells["60 ns"]["read: mean where the DRAM is late, ns"]["value"] == 72.4
    assert cells["60 ns"]["read: error of the mean, %"] is None
    assert seen.columns == ["64 B load, rtl", "chain of loads, fast"]
    assert [row for row, _ in seen.rows] == ["optane-dcpmm"]
    (plot,) = matrices.plots(doc["claims"])
    reads = next(series for series in plot["series"] if series["name"] == "reads")
    assert reads["y"] == [pytest.approx(100 * 12.4 / 60), 0.01]


@pytest.mark.slow
@pytest.mark.parametrize("value", [float("inf"), "x", [], {"a": 1}])
def test_experiment_claims_page_names_damaged_claims(tmp_path, value):
    (tmp_path / "claims.json").write_text(json.dumps(claims(*WIRE, claim("nvme.sizes", value))))
    for output in ("c.html", "c.md"):
        line = fails("claim", "report", "claims.json", "-o", output, cwd=tmp_path)
        assert line.startswith("claims.json: damaged")


@pytest.mark.slow
def test_experiment_claims_page_on_the_command_line(tmp_path):
    (tmp_path / "claims.json").write_text(json.dumps(claims(*WIRE)))
    assert nearside("claim", "report", "claims.json", "-o", "c.html", cwd=tmp_path).returncode == 0
    assert (tmp_path / "c.html").read_text().startswith("<!DOCTYPE html>")
    assert "folder doesn't exist" in fails("claim", "report", "claims.json", "-o", "x/c.md", cwd=tmp_path)


@pytest.mark.slow
def test_experiment_list_and_help_have_examples(tmp_path):
    listed = nearside("experiment", "list", cwd=tmp_path)
    assert all(name in listed.stdout for name in NAMES)
    assert "nearside experiment run NAME --quick" in listed.stdout
    assert [e["name"] for e in json.loads(nearside("experiment", "list", "--json", cwd=tmp_path).stdout)] == NAMES
    for words in (["--help"], ["experiment", "run", "--help"], ["report", "--help"]):
        assert "nearside experiment run all --quick" in nearside(*words, cwd=tmp_path).stdout


def test_experiment_documentation_example_works(results):
    text = (ROOT / "docs/experiments.md").read_text()
    module: dict = {}
    exec(text.partition("```python\n")[2].partition("```")[0], module)
    experiment = replace(module["EXPERIMENT"], measure=lambda run, depth: {"depth": depth, "mean_us": 2.0 * depth})
    doc = document.load(Path(runs.run(experiment, "rtl")["saved"]))
    assert [f["paper"] for f in doc["figures"]] == [4.2, None, None, 6.5, None]
    Page(page.html([doc]))


SMALL = {"queues": [1, 10], "patterns": ["random"], "bytes_moved": 1 << 18, "turns": 2}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["nvmulator_fig6", "openexpress_fig4"])
def test_experiment_small_run_on_the_rtl(results, name):
    experiment = find(name)
    if name == "openexpress_fig4":
        experiment = replace(experiment, quick=SMALL)
    rows = runs.run(experiment, "rtl", quick=True, seed=3)["rows"]
    if name == "nvmulator_fig6":
        assert runs.run(experiment, "rtl", quick=True, seed=3)["rows"] == rows, "the same seed gives the same"
    loaded = document.load(results / f"{name}.rtl.json")
    assert loaded["status"] == "complete"
    assert all(f["value"] > 0 for f in loaded["figures"] if f["better"] != "lower")
    assert all(f["time"] == "simulated" for f in loaded["figures"])
    bandwidths = [f for f in loaded["figures"] if f["unit"] == "GB/s"]
    assert all(f["of_limit"] < 1.05 for f in bandwidths)
    Page(page.html([loaded]))


@pytest.mark.slow
def test_experiment_ctrl_c_keeps_completed_rows(tmp_path):
    path = tmp_path / "results/experiments/openexpress_fig4.rtl.json"
    command = [sys.executable, "-m", "nearside.cli", "experiment", "run", "openexpress_fig4"]
    env = os.environ | {"NEARSIDE_ROOT": str(ROOT)}
    process = subprocess.Popen(
        command, cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )  # fmt: skip
    limit = time.monotonic() + 500
    while not path.exists() and process.poll() is None and time.monotonic() < limit:
        time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=600)
    assert process.returncode == 130
    last = err.splitlines()[-1]
    assert re.search(r"interrupted; \d+ of \d+ rows are in \S+openexpress_fig4\.rtl\.json, marked as partial$", last)
    assert sum(line.startswith("nearside: ") for line in err.splitlines()) == 1
    assert document.load(path)["reason"] == "interrupted"
    done = nearside("report", cwd=tmp_path)
    assert "partial: openexpress_fig4.rtl" in done.stdout


@pytest.fixture(scope="module")
def chromium():
    browser = pytest.importorskip("browser")
    try:
        with browser.browser(tell=False) as opened:
            yield opened
    except browser.NoKit as reason:
        pytest.skip(f"no Chromium: {reason}")


LOOKS = [("desktop", 1280, False), ("desktop dark", 1280, True), ("phone", 360, False), ("phone dark", 360, True)]


@pytest.mark.slow
def test_experiment_pages_open_in_a_browser(chromium, results, tmp_path):
    runs.run(fake(), "yosys")
    with pytest.raises(NearsideError):
        runs.run(fake("z_fig2", fails_at=2, failure=KeyboardInterrupt()), "yosys")
    report, validation = tmp_path / "report.html", tmp_path / "claims.html"
    report.write_text(page.html(document.load_all(results)[0]))
    validation.write_text(claims_page.html(claims(*WIRE)))
    colours = {}
    for look, width, dark in LOOKS:
        for path in (report, validation):
            chromium.open(path, width, dark=dark)
            assert chromium.ask("document.documentElement.scrollWidth") <= width, f"{path.name} on a {look} scrolls"
            plots = "[...document.querySelectorAll('figure svg')].map(s => s.getBoundingClientRect().width)"
            assert all(width / 6 < w <= width for w in chromium.ask(plots)), look
            letters = "getComputedStyle(document.querySelector('figure svg text')).fill"
            assert chromium.ask(letters) == chromium.ask("getComputedStyle(document.body).color"), look
        colours[look] = chromium.ask("getComputedStyle(document.body).backgroundColor")
    assert colours["desktop"] == colours["phone"] != colours["phone dark"] == colours["desktop dark"]
    chromium.open(report)
    assert chromium.ask("document.querySelectorAll('section').length") == 2
    assert chromium.ask("document.querySelectorAll('figure svg').length") == 2
    assert chromium.ask("document.querySelector('.warn').innerText").startswith("Partial: z_fig2")
    assert chromium.ask("[...document.querySelectorAll('a')].every(a => document.querySelector(a.hash))")
    chromium.ask("document.querySelector('details').open = true")
    assert chromium.ask("document.querySelector('details table').getBoundingClientRect().height") > 20
    chromium.open(validation)
    assert chromium.ask("document.querySelectorAll('details').length") == 1
    assert chromium.ask("document.querySelectorAll('td .no').length") >= 8
    assert chromium.complaints == []


@pytest.mark.slow
def test_experiment_browser_reports_faults(chromium, tmp_path):
    """A check of the check: pages with faults are reported."""
    before = list(chromium.complaints)
    bad = tmp_path / "bad.html"
    bad.write_text("<script>console.error('odd'); none()</script><img src='http://example.invalid/x.png'>")
    chromium.open(bad)
    reported = " ".join(chromium.complaints)
    chromium.complaints[:] = before
    assert "odd" in reported
    assert "Uncaught" in reported
    assert "it asks for http://example.invalid/x.png" in reported
