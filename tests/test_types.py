# SPDX-License-Identifier: Apache-2.0
"""Types: the stub of the native module beside the module, and results beside their types."""

from __future__ import annotations

import ast
import inspect
import types as kinds
import typing
from pathlib import Path

import nearside
import pyarrow as pa
import pytest
from nearside import (
    Design,
    Device,
    _native,
    accuracy,
    beside,
    crashtest,
    differential,
    fuzzing,
    latency,
    pm,
    pmdk,
    pmdk_crash,
    qos,
    serve,
    sql,
    tables,
    timeline,
    types,
    wire,
)
from nearside.experiments import nearpm, nearpm_fig18
from nearside.experiments.registry import Run
from nearside.kv_server import KvServer
from pyarrow import parquet

STUB = Path(nearside.__file__).with_name("_native.pyi")
TREE = ast.parse(STUB.read_text())
CLASSES = {node.name: node for node in TREE.body if isinstance(node, ast.ClassDef)}
CONSTANTS = {
    node.target.id
    for node in TREE.body
    if isinstance(node, ast.AnnAssign) and isinstance(node.annotation, ast.Name) and node.annotation.id == "int"
}
FUNCTIONS = {node.name: node for node in TREE.body if isinstance(node, ast.FunctionDef)}


def members(node: ast.ClassDef) -> dict[str, ast.FunctionDef]:
    return {member.name: member for member in node.body if isinstance(member, ast.FunctionDef)}


def parameters(node: ast.FunctionDef) -> list[tuple[str, bool, object]]:
    """Name, whether it is keyword-only, and default of each; `...` is a default without a literal."""
    arguments, empty = node.args, inspect.Parameter.empty
    defaults = [empty] * (len(arguments.args) - len(arguments.defaults)) + [*map(ast.literal_eval, arguments.defaults)]
    found = [(one.arg, False, default) for one, default in zip(arguments.args, defaults, strict=True)]
    for one, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        found.append((one.arg, True, empty if default is None else ast.literal_eval(default)))
    return found


def signature(called: object) -> list[tuple[str, bool, object]]:
    found = inspect.signature(called).parameters.values()
    return [(one.name, one.kind is one.KEYWORD_ONLY, one.default) for one in found]


def public(value: object) -> set[str]:
    """All names of an object, without those that every class has."""
    return {name for name in vars(value) if not name.startswith("__") or name.startswith("__arrow")}


def test_stub_has_all_names_of_the_native_module():
    assert public(_native) == {*CLASSES, *FUNCTIONS, *CONSTANTS}
    assert {type(getattr(_native, name)) for name in CONSTANTS} == {int}
    for name, node in CLASSES.items():
        assert public(getattr(_native, name)) == {*members(node)} - {"__init__"}, name


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_stub_has_the_signature_of_functions(name):
    assert parameters(FUNCTIONS[name]) == signature(getattr(_native, name))


@pytest.mark.parametrize("name", sorted({*CLASSES} - {"NearsideError"}))
def test_stub_has_the_signatures_of_classes(name):
    kind, stubs = getattr(_native, name), members(CLASSES[name])
    made = signature(kind) if "__new__" in vars(kind) else None
    assert made == (parameters(stubs.pop("__init__"))[1:] if "__init__" in stubs else None)
    for member, node in stubs.items():
        decorators = [ast.unparse(one) for one in node.decorator_list]
        found = vars(kind)[member]
        assert isinstance(found, kinds.GetSetDescriptorType) == ("property" in decorators), member
        assert isinstance(found, staticmethod) == ("staticmethod" in decorators), member
        if "property" not in decorators:
            assert parameters(node) == signature(getattr(kind, member)), member


def test_stub_is_documented_and_typed():
    every = [*FUNCTIONS.values(), *(one for node in CLASSES.values() for one in members(node).values())]
    for node in every:
        assert node.returns is not None, node.name
        assert "Any" not in ast.unparse(node.returns), node.name
        assert all(one.annotation or one.arg == "self" for one in node.args.args + node.args.kwonlyargs), node.name
        assert ast.get_docstring(node) or node.name == "__init__", node.name
    assert all(ast.get_docstring(node) for node in CLASSES.values())


def required(kind: object) -> set[str]:
    hints = typing.get_type_hints(kind, include_extras=True)
    return {name for name, hint in hints.items() if typing.get_origin(hint) is not typing.NotRequired}


def fits(value: object, kind: object, place: str) -> None:
    """Compares a result with its type, key by key."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.NotRequired:
        fits(value, arguments[0], place)
    elif origin is kinds.UnionType:
        allowed = [one for one in arguments if one is not type(None)]
        if value is None:
            assert len(allowed) < len(arguments), f"{place} is None"
        else:
            fits(value, type(value) if type(value) in allowed else allowed[0], place)
    elif origin is list:
        assert isinstance(value, list), place
        for number, one in enumerate(value):
            fits(one, arguments[0], f"{place}[{number}]")
    elif origin is tuple:
        assert isinstance(value, tuple), place
        for number, (one, own) in enumerate(zip(value, arguments, strict=True)):
            fits(one, own, f"{place}[{number}]")
    elif origin is dict:
        assert isinstance(value, dict), place
        for key, one in value.items():
            fits(key, arguments[0], f"{place}: key")
            fits(one, arguments[1], f"{place}[{key!r}]")
    elif typing.is_typeddict(kind):
        assert isinstance(value, dict), place
        hints = typing.get_type_hints(kind, include_extras=True)
        assert required(kind) <= value.keys() <= hints.keys(), f"{place}: {sorted(value.keys() ^ hints.keys())}"
        for key, one in value.items():
            fits(one, hints[key], f"{place}.{key}")
    else:
        assert type(value) in ((int, float) if kind is float else (kind,)), f"{place} = {value!r}"


# Types by the names of the stub.
NAMES = vars(types) | {"ArrowTable": _native.ArrowTable}


def check_native(value: object, name: str) -> None:
    """Compares a result with the annotation of the function or method in the stub."""
    kind, _, member = name.rpartition(".")
    node = members(CLASSES[kind])[member] if kind else FUNCTIONS[member]
    assert node.returns is not None
    fits(value, eval(ast.unparse(node.returns), dict(NAMES)), name)


def returned(function: object) -> object:
    return typing.get_type_hints(function)["return"]


def check(value: object, function: object) -> None:
    """Compares a result with the annotation of the function that has returned it."""
    fits(value, returned(function), getattr(function, "__qualname__", "result"))


def test_types_of_a_device(tmp_path):
    with Device(Design.load("engines"), model="fast") as device:
        check(device.info(), Device.info)
        check(device.write(bytes(8192)), Device.write)
        fits(device.read(8192)[1], types.TransferReport, "read")
        check(device.workload(commands=20, loads_every=2), Device.workload)
        check(device.workload(commands=40, switch=(20, "pcm")), Device.workload)
        check(device.pm_stream("load", count=8), Device.pm_stream)
        check(device.pm_stream("store", count=8), Device.pm_stream)
        check(device.delay_get(), Device.delay_get)
        check(device.delay_counters(), Device.delay_counters)
        check(device.engines(), Device.engines)
        check(device.qos(), Device.qos)
        check(device.counters(), Device.counters)
        check_native(device.native.counters(), "Device.counters")
        check(device.single(commands=1), Device.single)
        check(device.design.late_reads("reram"), Design.late_reads)
        assert device.design.late_reads("dram") is None
        check(device.design.values, Design.values.fget)
    for profile in ("dram", "optane-dcpmm", "nand"):
        check(nearside.media_profile(profile), nearside.media_profile)
    regions = tmp_path / "regions.toml"
    timing = "{ base_ns = 500, beat_ns = 1, cap_gb_s = 0 }"
    region = f'[[region]]\nfirst = 0\nbytes = "1 MiB"\nread = {timing}\nwrite = {timing}\n'
    regions.write_text(f'name = "regions"\ndescription = "a part is slower"\n{region}')
    check(profile := nearside.media_profile(str(regions)), nearside.media_profile)
    assert len(profile["region"]) == 1


def test_types_of_measurements():
    with Device(Design.load("default"), model="fast") as device:
        for case in wire.cases()[-3:]:
            check(wire.measure(device, case, 400, 1), wire.measure)
        for kind in ("read", "write"):
            check(latency.measure(device, kind, 2, 1), latency.measure)
    check(qos.measure([qos.CREDITS, None], 100, model="fast"), qos.measure)
    for kind in ("load", "stores"):
        check(beside.measure(Design.load("nearpm"), kind, quick=True, model="fast"), beside.measure)


def test_types_of_designs():
    for path in sorted((Path(__file__).parents[1] / "designs").glob("*.toml")):
        check(Design.load(path.stem).values, Design.values.fget)
    values = """
        [media]
        file = "media.img"
        [delay]
        read_slots = 64
        [nvme]
        media_reads = 32
        serial = "1"
        [[memory]]
        name = "local"
        bytes = "64 MiB"
        [memory.dram]
        data_rate_mts = 2666
        [cpu]
        submit_ns = 100
    """
    values = Design.load("default").with_values(values).values
    check(values, Design.values.fget)
    assert values["memory"][0]["dram"]["data_rate_mts"] == 2666


def test_types_of_the_dram():
    check_native(_native.DramChannel(Design.load("default").native).timing(), "DramChannel.timing")


@pytest.mark.rtl
def test_types_of_the_delay_bench():
    bench = accuracy.DelayBench(Design.load("fuzz"))
    check_native(bench.native.measure("read", 100.0, 0.0, 1, 10, 1), "DelayBench.measure")
    check(bench.measure("write", 94.0, 10, 1), accuracy.DelayBench.measure)


TABLE = pa.table({"a": [3, 1, 2, None], "b": ["x", "y", None, "z"]})


def test_types_of_sorts(tmp_path):
    source, target = tmp_path / "t.parquet", tmp_path / "out.arrow"
    parquet.write_table(TABLE, source)
    fits(nearside.sort_table(TABLE, "a", devices=2, model="fast")[1], types.SortReport, "sort_table")
    fits(nearside.sort_table(TABLE.slice(0, 0), "a", model="fast")[1], types.SortReport, "without rows")
    for trace in (False, True):
        result = _native.sort_table(Design.load("sort").native, source, "a", model="fast", trace=trace)
        check_native(result, "sort_table")
        assert ("trace" in result[0]) == trace
    check(tables.sort_file(source, target, "a", model="fast"), tables.sort_file)
    check(tables.explain(source, "b, a"), tables.explain)


def test_types_of_resident_tables(tmp_path):
    source, target, media = tmp_path / "t.parquet", tmp_path / "out.arrow", [tmp_path / "d0", tmp_path / "d1"]
    parquet.write_table(TABLE, source)
    check(tables.put(source, media, "t", "a", model="fast"), tables.put)
    check(tables.resident(media, model="fast"), tables.resident)
    check(tables.explain_resident("t", media, "a", model="fast"), tables.explain_resident)
    check(tables.get("t", media, target, by="a", model="fast"), tables.get)
    check(tables.get("t", media, target, model="fast"), tables.get)
    design = Design.load("sort").native
    for by in (None, "a"):
        check_native(_native.table_get(design, media, "t", by, model="fast", trace=True), "table_get")


def test_types_of_reports_of_sql():
    provider = sql._SortProvider(Design.load("sort"), 1, "fast", None)
    provider.sort(pa.table({"a": [2, 1]}), "a", lambda _done, _total: None)
    provider.sort(pa.table({"a": [2, 1]}), "missing", lambda _done, _total: None)
    sorted_, declined = provider.reports
    fits(sorted_, types.PutReport, "sorted")
    fits(declined, types.DeclinedSort, "declined")


def test_types_of_persistent_memory():
    with pm.System() as system:
        pool = system.create(place=0, length=8 << 20, name="types", offload=True)
        with pool.thread() as thread:
            with thread.transaction():
                thread.set_root(thread.alloc(64))
            check(thread.counts, pm.Thread.counts.fget)
        check(pool.check(), pm.Pool.check)


def test_types_of_costs_of_persistent_memory():
    run = Run("fast", parameters={"transactions": 10})
    design = nearpm.design(run, "nearpm-paper")
    for way in ("streamed", "ended"):
        check(nearpm.copies(run, design, way, 64, 2), nearpm.copies)
        check_native(_native.pm_copies(design.native, way, 64, 2, model="fast"), "pm_copies")
    for offloaded in (False, True):
        shape = ("undo", offloaded, "read_back", 10)
        check(nearpm.transactions(run, design, *shape), nearpm.transactions)
        check_native(_native.pm_transactions(design.native, *shape, 0.0, 2, 1, model="fast"), "pm_transactions")
        check(nearpm_fig18.performed(run, design, ("undo", "btree"), offloaded), nearpm_fig18.performed)
        shape = ("tatp", "redo", offloaded, "posted", 10)
        check_native(_native.pm_benchmark(design.native, *shape, 100.0, 1), "pm_benchmark")
    check_native(_native.pmdk_cost(design.native, b"", "read_back", "fast"), "pmdk_cost")


def test_types_of_programs_with_libpmemobj(structures, tmp_path):
    program = [str(structures), "run", "2", "60", "1"]
    check(pmdk.measure_gain([*program, "btree:{}/pool"], model="fast"), pmdk.measure_gain)
    _, doc = pmdk.run_on_device([*program, f"btree:{tmp_path / 'pool'}"], model="fast")
    fits(doc, types.PmdkReport, "report")
    assert doc["done"]
    fits(pmdk.run_on_device(["true"], model="fast")[1], types.PmdkReport, "no transaction")


@pytest.mark.slow
def test_types_of_crash_campaigns_of_programs(structures):
    program, pool = str(structures), "btree:{}/pool"
    for without in (None, "fences"):
        words, check_ = [program, "run", "2", "30", "1", pool], f"{program} check 2 {pool}"
        doc = pmdk_crash.run_campaign(words, check_, "cpu", "sampled:2", without=without)
        check(doc, pmdk_crash.run_campaign)
        assert (doc["violation"] is None) == (without is None)


def test_types_of_campaigns():
    design = Design.load("fuzz")
    for engines in (design, nearpm.design(Run(), "nearpm")):
        check_native(_native.fuzz(engines.native, 50, 1, model="fast"), "fuzz")
    check(fuzzing.run_campaign(design, 100, 1, model="fast"), fuzzing.run_campaign)
    check_native(_native.diff(design.native, 50, 1, models=("fast", "fast")), "diff")
    doc = differential.run_campaign(design, 100, 1, models=("fast", "fast"))
    check(doc, differential.run_campaign)
    assert doc["latencies"]


def test_types_of_soaks():
    check(fuzzing.soak(Design.load("fuzz"), 100_000, 1, model="fast"), fuzzing.soak)


def test_types_of_crash_campaigns():
    shape = ("btree", "undo", "device", "sampled:5")
    check_native(_native.crash_test(crashtest.load_design("device").native, *shape, model="fast"), "crash_test")
    doc = crashtest.run_campaign(
        crashtest.load_design("cpu"), "btree", "undo", "cpu", "sampled:10", model="fast", without="fences"
    )
    check(doc, crashtest.run_campaign)
    assert doc["violation"]


def test_types_of_timelines():
    check(timeline.variants("undo", 2, 4096), timeline.variants)
    check(timeline.measure(Design.load("nearpm-paper"), transactions=1), timeline.measure)
    design = nearpm.design(Run(), "nearpm-paper")
    check_native(_native.pm_timeline(design.native, "undo", True, 1, 64, 1, 2, "devices"), "pm_timeline")


def test_types_of_servers(tmp_path):
    with serve.Server([(Design.load("fuzz"), tmp_path / "socket")], model="fast") as server:
        check(server.counters(), serve.Server.counters)
    with KvServer("redis") as server:
        check(server.close(), KvServer.close)
        assert server.close() is None


def test_types_are_documented():
    """Each field has a line that follows it."""
    for node in ast.parse(Path(types.__file__).read_text()).body:
        if isinstance(node, ast.ClassDef) and node.name != "ArrowStream":
            assert ast.get_docstring(node), node.name
            for field, text in zip(node.body[1::2], node.body[2::2], strict=True):
                assert isinstance(field, ast.AnnAssign), node.name
                assert isinstance(text, ast.Expr), f"{node.name}.{ast.unparse(field.target)}"
