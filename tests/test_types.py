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
from nearside import Design, Device, _native, crashtest, differential, fuzzing, pm, serve, sql, tables, timeline, types
from nearside.kv_server import KvServer
from pyarrow import parquet

STUB = Path(nearside.__file__).with_name("_native.pyi")
TREE = ast.parse(STUB.read_text())
CLASSES = {node.name: node for node in TREE.body if isinstance(node, ast.ClassDef)}
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
    assert public(_native) == {*CLASSES, *FUNCTIONS}
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
        assert all(one.annotation or one.arg == "self" for one in node.args.args + node.args.kwonlyargs), node.name
        assert ast.get_docstring(node) or node.name == "__init__", node.name
    assert all(ast.get_docstring(node) for node in CLASSES.values())


def required(kind: object) -> set[str]:
    hints = typing.get_type_hints(kind, include_extras=True)
    return {name for name, hint in hints.items() if typing.get_origin(hint) is not typing.NotRequired}


def fits(value: object, kind: object, place: str) -> None:
    """Compares a result with its type, key by key."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind is typing.Any:
        return
    if origin is typing.NotRequired:
        fits(value, arguments[0], place)
    elif origin is kinds.UnionType:
        allowed = [one for one in arguments if one is not type(None)]
        if value is None:
            assert len(allowed) < len(arguments), f"{place} is None"
        else:
            fits(value, allowed[0], place)
    elif origin is list:
        assert isinstance(value, list), place
        for number, one in enumerate(value):
            fits(one, arguments[0], f"{place}[{number}]")
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


def returned(function: object) -> object:
    return typing.get_type_hints(function)["return"]


def check(value: object, function: object) -> None:
    """Compares a result with the annotation of the function that has returned it."""
    fits(value, returned(function), getattr(function, "__qualname__", "result"))


def test_types_of_a_device():
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
        check(device.single(commands=1), Device.single)
        check(device.design.late_reads("reram"), Design.late_reads)
        assert device.design.late_reads("dram") is None
        check(device.design.values, Design.values.fget)
    for profile in ("dram", "optane-dcpmm", "nand"):
        check(nearside.media_profile(profile), nearside.media_profile)


def test_types_of_tables(tmp_path):
    table = pa.table({"a": [3, 1, 2, None], "b": ["x", "y", None, "z"]})
    source, target, media = tmp_path / "t.parquet", tmp_path / "out.arrow", [tmp_path / "d0", tmp_path / "d1"]
    parquet.write_table(table, source)
    fits(nearside.sort_table(table, "a", devices=2, model="fast")[1], types.SortReport, "sort_table")
    check(tables.sort_file(source, target, "a", model="fast"), tables.sort_file)
    check(tables.explain(source, "b, a"), tables.explain)
    check(tables.put(source, media, "t", "a", model="fast"), tables.put)
    check(tables.resident(media, model="fast"), tables.resident)
    check(tables.explain_resident("t", media, "a", model="fast"), tables.explain_resident)
    check(tables.get("t", media, target, by="a", model="fast"), tables.get)
    check(tables.get("t", media, target, model="fast"), tables.get)


def test_types_of_reports_of_sql():
    provider = sql._SortProvider(Design.load("sort"), 1, "fast", None)
    provider.sort(tables.to_stream(pa.table({"a": [2, 1]})), "a", lambda _done, _total: None)
    provider.sort(tables.to_stream(pa.table({"a": [2, 1]})), "missing", lambda _done, _total: None)
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


def test_types_of_campaigns():
    design = Design.load("fuzz")
    doc = fuzzing.run_campaign(design, 100, 1, model="fast")
    counts = {name: value for name, value in doc.items() if name not in typing.get_type_hints(types.FuzzReport)}
    assert all(type(value) is int for value in counts.values())
    fits({name: value for name, value in doc.items() if name not in counts}, types.FuzzReport, "fuzz")
    doc = differential.run_campaign(differential.load_design("fuzz"), 100, 1, models=("fast", "fast"))
    assert required(types.FuzzReport) <= doc.keys()
    doc = crashtest.run_campaign(
        crashtest.load_design("cpu"), "btree", "undo", "cpu", "sampled:40", model="fast", without="fences"
    )
    check(doc, crashtest.run_campaign)
    assert doc["violation"]


def test_types_of_timelines():
    check(timeline.measure(Design.load("nearpm-paper"), transactions=1), timeline.measure)


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
