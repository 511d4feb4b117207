# SPDX-License-Identifier: Apache-2.0
"""ORDER BY of the unmodified DataFusion package on simulated devices, beside its CPU sort."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from nearside import Design, NearsideError, tables

datafusion = pytest.importorskip("datafusion", reason="DataFusion is not installed: make peers")
pytest.importorskip("nearside_datafusion", reason="its extension is not compiled: make datafusion (Rust 1.94 or newer)")

from nearside import sql  # noqa: E402 (only with what it needs)

ROWS = 3000


def table(rows: int = ROWS, seed: int = 1) -> pa.Table:
    random = np.random.default_rng(seed)

    def nulls(values, of=None) -> pa.Array:
        return pa.array(values, of, mask=random.random(rows) < 0.1)

    return pa.table(
        {
            "a": nulls(random.integers(-9, 9, rows)),
            "b": random.normal(size=rows),
            "word": nulls([f"word {n % 37}" for n in range(rows)], pa.string_view()),
            "list": [[n % 5, n] for n in range(rows)],
            "row": np.arange(rows),
        }
    )


def session(rule: sql.Rule | None = None, **tables: pa.Table) -> datafusion.SessionContext:
    """With more than one partition, so that plans sort each of them and merge."""
    config = datafusion.SessionConfig().with_target_partitions(3).with_batch_size(500)
    context = datafusion.SessionContext(config)
    if rule:
        context.add_physical_optimizer_rule(rule)
    for name, data in tables.items():
        context.from_arrow(data, name)
    return context


def explained(context: datafusion.SessionContext, query: str) -> str:
    return context.sql(f"explain {query}").to_pydict()["plan"][-1]


def same(rule: sql.Rule, query: str, **tables: pa.Table) -> str:
    """Compares the rows of a query with a total order to those without the rule; returns its plan with it."""
    expected = session(**tables).sql(query).to_arrow_table()
    context = session(rule, **tables)
    assert context.sql(query).to_arrow_table().equals(expected)
    return explained(context, query)


@pytest.mark.parametrize(
    ("keys", "by"),
    [
        ("a, row", '"a" asc nulls last, "row" asc nulls last'),
        ("a desc, b desc nulls last, row", '"a" desc nulls first, "b" desc nulls last, "row" asc nulls last'),
        ("word nulls first, row desc", '"word" asc nulls first, "row" desc nulls first'),
        ("b", '"b" asc nulls last'),
        ("list desc", '"list" desc nulls first'),
        ("abs(a) desc, row % 7, row", '"order of the plan 1" desc nulls first, "order of the plan 2" asc nulls last'),
    ],
)
def test_sql_orders(keys, by):
    rule = sql.rule(devices=2, model="fast")
    plan = same(rule, f"select * from t order by {keys}", t=table())
    assert f"NearsideSortExec: by=[{by}" in plan
    assert "devices=2, design=sort, model=fast" in plan
    assert " SortExec" not in plan
    (report,) = rule.reports
    assert (report["rows"], report["engine"]) == (ROWS, "fast")
    assert [stage["stage"] for stage in report["stages"]] == ["put", "sort", "shuffle", "get"]


@pytest.mark.parametrize("key", ["a = 'z@1'", "(a = 'z@1') desc"])
def test_sql_computed_key_is_never_taken_for_a_column(key):
    """DataFusion writes the comparison as `a@0 = z@1`, which is how it writes the column at 1, too."""
    rows = 40
    data = pa.table(
        {"a": ["p", "z@1"] * (rows // 2), "a@0 = z": [37 * n % rows for n in range(rows)], "row": range(rows)}
    )
    plan = same(sql.rule(model="fast"), f"select * from t order by {key}, row", t=data)
    assert 'NearsideSortExec: by=["order of the plan 1"' in plan


def test_sql_limits():
    rule = sql.rule(model="fast")
    plan = same(rule, "select row, b from t where a > 0 order by b desc limit 7", t=table())
    assert "TopK(fetch=7)" in plan
    assert "NearsideSortExec" in plan
    assert 7 < rule.reports[0]["rows"] < ROWS


def test_sql_partitions_are_sorted_and_merged():
    rule = sql.rule(model="fast")
    query = "select a, b, count(*) as n from t group by a, b order by n, a, b"
    plan = same(rule, query, t=table())
    assert "SortPreservingMergeExec" in plan
    assert "NearsideSortExec" in plan
    assert sum(report["rows"] for report in rule.reports) == ROWS
    assert len(rule.reports) > 1


def test_sql_joins_and_equal_names():
    rule = sql.rule(model="fast")
    query = "select x.row, y.row, y.word from t x join t y on x.row = y.row + 1 order by y.word desc, x.row"
    plan = same(rule, query, t=table(400))
    assert "NearsideSortExec" in plan


def test_sql_nothing_to_sort():
    rule = sql.rule(model="fast")
    same(rule, "select * from t order by row", t=table(0))
    assert "NearsideSortExec" not in same(rule, "select 1 as one", t=table(1))


def test_sql_cpu_sorts_what_devices_decline(tmp_path):
    small = tmp_path / "small.toml"
    small.write_text(
        'name = "small"\n[media]\nbytes = "1 MiB"\nprofile = "dram"\n[nvme]\nnamespaces = ["16 KiB"]\n'
        '[[engine]]\nname = "sorter0"\nengine = "sorter"\n[[engine]]\nname = "shuffle0"\nengine = "row_shuffle"\n'
    )
    rule = sql.rule(model="fast", design=Design.load(str(small)))
    same(rule, "select * from t order by word, abs(a), row", t=table())
    assert "too large" in rule.reports[0]["declined"]
    with pytest.raises(NearsideError, match="has no engine sorter"):
        sql.rule(design=Design.load("default"))
    with pytest.raises(NearsideError, match="devices = 17"):
        sql.rule(devices=17, model="fast")


def test_sql_reason_is_in_the_plan(monkeypatch):
    """For any reason why devices decline a table of such columns."""
    rule = sql.rule(model="fast")
    monkeypatch.setattr(sql._SortProvider, "declines", lambda *_: "a reason")
    for query in ("select * from t order by b", "select * from t order by b limit 3"):
        plan = same(rule, query, t=table())
        assert "NearsideDeclined: the CPU sorts: a reason" in plan
    assert rule.reports == []
    monkeypatch.undo()


SMALL = "[media]\nbytes = '16 MiB'\n[nvme]\nnamespaces = ['16 MiB']"


@pytest.fixture
def resident(tmp_path) -> tuple[pa.Table, sql.Table]:
    """A table on two devices, and the same in memory."""
    source, media = tmp_path / "t.parquet", [tmp_path / "d0", tmp_path / "d1"]
    pq.write_table(table(), source)
    design = Design.load("sort").with_values(SMALL)
    tables.put(source, media, "t", "a, word", model="fast", design=design)
    return pq.read_table(source), sql.table("t", media, model="fast", design=design)


@pytest.mark.parametrize(
    ("query", "place"),
    [
        ("select * from t order by a, row", '"a" asc nulls last, "row" asc nulls last'),
        ("select row, a from t order by a desc nulls last, row desc", '"a" desc nulls last, "row" desc nulls first'),
        ("select row from t order by word, row limit 5", '"word" asc nulls last, "row" asc nulls last'),
        ("select * from t order by b", None),
        ("select * from t order by abs(a), row", None),
        ("select row from t where a > 0 order by a, row", None),
    ],
)
def test_sql_resident_tables(resident, query, place):
    data, there = resident
    rule = sql.rule(model="fast")
    context = session(rule)
    context.register_table("t", there)
    expected = session(t=data).sql(query).to_arrow_table()
    assert context.sql(query).to_arrow_table().equals(expected)
    (report,) = there.reports
    stages = [stage["stage"] for stage in report["stages"]]
    plan = explained(context, query)
    if place:
        assert f"NearsideScanExec: sorted in place by=[{place}], table=t, devices=2" in plan
        assert stages == ["sort", "shuffle", "get"]
        assert rule.reports == []
    else:
        assert "NearsideSortExec" in plan
        assert stages == ["get"]
        assert len(rule.reports) > 0


@pytest.mark.parametrize("keys", ["a, pairs, row", "a desc, row, pairs"])
def test_sql_resident_table_does_not_bypass_what_devices_decline(tmp_path, keys):
    """Its first key is on the devices; DataFusion sorts by a further one that they can't order."""
    data = pa.table({
        "a": [n % 3 for n in range(60)],
        "pairs": pa.array([[("k", 7 * n % 5)] for n in range(60)], pa.map_(pa.string(), pa.int64())),
        "row": range(60),
    })  # fmt: skip
    design, media = Design.load("sort").with_values(SMALL), [tmp_path / "d0"]
    with pa.ipc.new_file(tmp_path / "t.arrow", data.schema) as sink:
        sink.write_table(data)
    tables.put(tmp_path / "t.arrow", media, "t", "a", model="fast", design=design)
    context, query = session(sql.rule(model="fast")), f"select * from t order by {keys}"
    context.register_table("t", sql.table("t", media, model="fast", design=design))
    assert context.sql(query).to_arrow_table().equals(session(t=data).sql(query).to_arrow_table())
    assert 'NearsideDeclined: the CPU sorts: column "pairs"' in explained(context, query)


@pytest.mark.parametrize("ruled", [False, True])
def test_sql_resident_table_is_read_repeatedly_by_a_plan(resident, ruled):
    data, there = resident
    union = "select row from t union all select row from t order by row"
    joined = "select x.row, y.word from t x join t y on x.row = y.row order by x.row desc"
    for query in (union, joined):
        context = session(sql.rule(model="fast") if ruled else None)
        context.register_table("t", there)
        assert context.sql(query).to_arrow_table().equals(session(t=data).sql(query).to_arrow_table())


@pytest.mark.parametrize(
    "again",
    [
        pa.table({"b": [1, 2], "a": [2, 1]}),
        pa.table({"a": ["x", "y"], "b": [1, 2]}),
        pa.table({"a": [2, 1]}),
        pa.table({"a": [2, None], "b": [1, 2]}),
    ],
)
def test_sql_resident_table_replaced_with_other_columns(tmp_path, again):
    design, media = Design.load("sort").with_values(SMALL), [tmp_path / "d0"]
    whole = pa.schema([pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.int64())])

    def put(data: pa.Table) -> None:
        with pa.ipc.new_file(tmp_path / "t.arrow", data.schema) as sink:
            sink.write_table(data)
        tables.put(tmp_path / "t.arrow", media, "t", "a", model="fast", design=design)

    put(pa.table({"a": [2, 1], "b": [3, 4]}, schema=whole))
    context = session(sql.rule(model="fast"))
    context.register_table("t", sql.table("t", media, model="fast", design=design))
    tables.drop("t", media, "fast", design)
    put(again)
    for query in ("select a from t order by a", "select a from t"):
        with pytest.raises(Exception, match="table 't' has other columns than when"):
            context.sql(query).to_arrow_table()


def test_sql_resident_tables_without_the_rule(resident):
    data, there = resident
    context = session()
    context.register_table("t", there)
    query = "select word, count(*) as n, sum(row) as s from t group by word order by word"
    assert context.sql(query).to_arrow_table().equals(session(t=data).sql(query).to_arrow_table())


def test_sql_resident_tables_that_do_not_exist(tmp_path):
    with pytest.raises(NearsideError, match="no such file"):
        sql.table("t", [tmp_path / "none"], model="fast")


@pytest.mark.parametrize("peer", ["duckdb", "polars"])
@pytest.mark.parametrize("limit", ["", " limit 17"])
@pytest.mark.parametrize(
    "order",
    [
        "a nulls first, row desc",
        "word desc nulls last, a asc nulls last, row",
        "b desc, row",
        "a desc nulls last, b nulls first, row",
    ],
)
def test_sql_other_engines_agree(peer, limit, order):
    """`order by` of DuckDB and of Polars. Orders are total, as SQL leaves the rest undefined."""
    engine = pytest.importorskip(peer, reason="install the query engines with 'make peers'")
    data = table().drop(["list"])
    query = f"select * from t order by {order}{limit}"
    if peer == "duckdb":
        with engine.connect() as connection:
            connection.register("t", data)
            expected = connection.sql(query).to_arrow_table()
    else:
        with engine.SQLContext(t=engine.from_arrow(data)) as context:
            expected = context.execute(query, eager=True).to_arrow()
    rule = sql.rule(devices=2, model="fast")
    found = session(rule, t=data).sql(query).to_arrow_table()
    assert found.to_pydict() == expected.to_pydict()
    assert sum(report["rows"] for report in rule.reports) == ROWS


def test_sql_devices_that_all_fail_in_a_query(monkeypatch):
    """The CPU sorts their rows, and the report says why."""
    give, failed = sql._native.sort_table, "devices 0 and 1 failed: the device lost power"

    def fails(design, given, *rest, **named):
        if tables.as_table(given).num_rows:
            raise NearsideError(failed)
        return give(design, given, *rest, **named)

    monkeypatch.setattr(sql._native, "sort_table", fails)
    rule, data, query = sql.rule(devices=2, model="fast"), table(), "select * from t order by a, row"
    assert session(rule, t=data).sql(query).to_arrow_table().equals(session(t=data).sql(query).to_arrow_table())
    assert rule.reports == [{"declined": failed}] * len(rule.reports) != []


@pytest.mark.parametrize("ruled", [False, True])
@pytest.mark.parametrize(
    ("harm", "reported"),
    [
        ("gone", "d1: no such file"),
        ("short", "d1 has 8388608 bytes, the design wants 16777216"),
        ("other bytes", "d1: its namespace holds other data and no tables"),
        ("another device's", "has part 0 on .* and .*: name one of these media files"),
    ],
)
def test_sql_media_damaged_between_queries(resident, tmp_path, harm, reported, ruled):
    """The query fails with the reason: there is nothing that the CPU could sort."""
    _, there = resident
    context = session(sql.rule(model="fast") if ruled else None)
    context.register_table("t", there)
    context.sql("select count(*) from t").to_arrow_table()
    media = tmp_path / "d1"
    if harm == "gone":
        media.unlink()
    elif harm == "short":
        with media.open("r+b") as file:
            file.truncate(media.stat().st_size // 2 // 4096 * 4096)
    elif harm == "other bytes":
        with media.open("r+b") as file:
            file.write(b"\xa5" * 8 * 1024 * 1024)
    else:
        media.write_bytes((tmp_path / "d0").read_bytes())
    with pytest.raises(Exception, match=reported):
        context.sql("select * from t order by a, row").to_arrow_table()
    assert media.exists() == (harm != "gone")


@pytest.mark.rtl
def test_sql_on_the_rtl():
    rule = sql.rule()
    same(rule, "select * from t order by a, row", t=table(200))
    assert rule.reports[0]["engine"] == "rtl"
