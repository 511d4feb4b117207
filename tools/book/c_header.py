# SPDX-License-Identifier: Apache-2.0
"""The reference of the C library: the declarations of its header, each under the comment that stands before it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

HEAD = """# C

The library `nearside_pm`: persistent memory on a simulated host, in the process of a C program. How it is built and
linked is in `crates/pm-c/README.md`; a whole program is `examples/transfer.c`.

"""
# A comment, or a declaration up to its semicolon, with the braces of a structure or an enumeration.
ITEM = re.compile(r"/\*(?P<comment>.*?)\*/|(?P<code>(?:[^;{/]|/(?!\*))+(?:\{.*?\}[^;]*)?;[^\S\n]*)", re.DOTALL)


def page(header: Path, root: Path) -> str:
    """The page in Markdown."""
    text = header.read_text()
    first = re.match(r"/\*(.*?)\*/", text, re.DOTALL)
    body = re.sub(r"^[^\S\n]*#.*$", "", text[first.end() if first else 0 :], flags=re.MULTILINE)
    body = re.sub(r"extern \"C\" \{|^\}\s*$", "", body, flags=re.MULTILINE)
    about = _prose(first[1]) if first else ""
    return HEAD + f"{about}\n\nGenerated from `{header.relative_to(root)}`.\n\n" + "\n".join(_items(body)) + "\n"


def _items(body: str) -> Iterator[str]:
    comment = ""
    for match in ITEM.finditer(body):
        if match["comment"] is not None:
            title = re.match(r"\s*-{3,}\s*(.*?)\s*-{3,}(.*)", match["comment"], re.DOTALL)
            if title:
                yield from (f"## {title[1][:1].upper()}{title[1][1:]}", "")
                if _prose(title[2]):
                    yield from (_prose(title[2]), "")
                comment = ""
            else:
                comment = _prose(match["comment"])
            continue
        code = match["code"].strip()
        name = _name(code)
        if not name:
            continue
        yield from (f"### `{name}` {{: #{name} }}", "", "```c", code, "```", "")
        if comment:
            yield from (comment, "")
        comment = ""


def _name(code: str) -> str:
    function = re.search(r"(\w+)\s*\(", code)
    named = re.match(r"(?:enum|struct)\s+(\w+)", code)
    defined = re.search(r"\}\s*(\w+)\s*;\s*$", code) or re.match(r"typedef\b.*?(\w+)\s*;", code, re.DOTALL)
    if code.startswith("typedef"):
        return defined[1] if defined else ""
    return named[1] if named else function[1] if function else ""


def _prose(text: str) -> str:
    """A comment as Markdown."""
    lines = (re.sub(r"^\s*\*\s?", "", line).strip() for line in text.strip().splitlines())
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
    return re.sub(r"\b(nspm_\w+|NSPM_\w+|NearPM_\w+|NULL)\b(\(\))?", r"`\1\2`", text)
