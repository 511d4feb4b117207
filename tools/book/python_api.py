# SPDX-License-Identifier: Apache-2.0
"""The reference of the Python package: pages of directives that mkdocstrings fills from the sources."""

from __future__ import annotations

import ast
import re
from pathlib import Path

# Module, its page, its title, and what it is for.
MODULES = (
    ("device", "Devices", "Devices in this process: NVMe commands, the PM window, emulated delay, engines."),
    ("tables", "Tables", "Tables of files and of pyarrow, sorted on devices."),
    ("sql", "SQL", "ORDER BY of DataFusion's Python package on devices."),
    ("pm", "Persistent memory", "Pools, transactions and power cuts on a simulated host."),
    ("types", "Results", "Types of the results of all modules: dictionaries with documented fields and units."),
)
# Functions of a module that only the command line calls.
INTERNAL = re.compile(r"(print|check|format|to|of|explain|as|engine|model)_|assertions$")
INDEX = """# Python

Names of the package itself, `from nearside import ...`: {names}. All times that a device reports are simulated. What
cannot be done is a `NearsideError` of one line.

| module | what |
|---|---|
"""


def pages(root: Path) -> dict[str, str]:
    """Pages by their place in the book."""
    package = root / "python" / "nearside"
    exported = _exported(package / "__init__.py")
    names = ", ".join(f"`{name}`" for name in exported)
    index, found = INDEX.format(names=names), {}
    for module, title, what in MODULES:
        source = package / f"{module}.py"
        if not source.exists():
            continue
        index += f"| [`nearside.{module}`]({module}.md) | {what} |\n"
        lines = [f"# {title}: `nearside.{module}`", "", what, ""]
        docstring = ast.get_docstring(ast.parse(source.read_text())) or ""
        example = docstring.partition("\n\n")[2]
        lines += [_fenced(example), ""] if example else []
        for name in _public(source, exported):
            lines += [f"::: nearside.{module}.{name}", ""]
        found[f"reference/python/{module}.md"] = "\n".join(lines)
    return {"reference/python/index.md": index, **found}


def _fenced(text: str) -> str:
    """Indented code of a docstring as fenced blocks."""
    lines, code = [], False
    for line in [*text.splitlines(), ""]:
        inside = line.startswith("    ") or (code and not line.strip())
        if inside != code:
            if not inside:
                while lines and not lines[-1]:
                    lines.pop()
            lines += ["```python"] if inside else ["```", ""]
            code = inside
        lines.append(line.removeprefix("    ") if inside else line)
    return "\n".join([*lines, "```"] if code else lines)


def _exported(package: Path) -> list[str]:
    """The names in `__all__`."""
    for node in ast.parse(package.read_text()).body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets):
            return ast.literal_eval(node.value)
    return []


def _public(source: Path, exported: list[str]) -> list[str]:
    """Classes and functions with a docstring, but for those that only the command line calls."""
    found = []
    for node in ast.parse(source.read_text()).body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef) or node.name.startswith("_"):
            continue
        offered = isinstance(node, ast.ClassDef) or node.name in exported or not INTERNAL.match(node.name)
        if offered and ast.get_docstring(node):
            found.append(node.name)
    return found
