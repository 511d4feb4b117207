# SPDX-License-Identifier: Apache-2.0
"""The book: it builds without a broken link, opens from disk without a network, and its reference is complete."""

from __future__ import annotations

import json
import logging
import re
import subprocess
import sys
import time
import tomllib
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import typer
from nearside.cli import app

ROOT = Path(__file__).resolve().parent.parent
pytest.importorskip("mkdocs", reason="what the book is built with is not installed: make book-tools")
pytestmark = pytest.mark.slow

SEARCH_S = 20


class Links(HTMLParser):
    """The links of a page, the files that it loads, and its anchors."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attributes}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        elif tag == "link" and values.get("rel") not in ("canonical", "next", "prev"):
            self.loaded.append(values.get("href", ""))
        elif "src" in values:
            self.loaded.append(values["src"])


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    """The folder of the book, built in strict mode."""
    folder = tmp_path_factory.mktemp("book")
    command = [sys.executable, ROOT / "tools/book/build.py", folder]
    built = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


@pytest.fixture(scope="module")
def pages(book):
    """Every page with its links, except that for a server's missing pages."""
    return {page: Links(page.read_text()) for page in sorted(book.rglob("*.html")) if page.name != "404.html"}


@pytest.fixture(scope="module")
def generators():
    """The modules that write the reference."""
    sys.path.insert(0, str(ROOT / "tools/book"))
    try:
        import c_header
        import command_line
        import design_file
        import hooks
        import register_maps

        yield {
            "c": c_header,
            "commands": command_line,
            "design": design_file,
            "hooks": hooks,
            "registers": register_maps,
        }
    finally:
        sys.path.remove(str(ROOT / "tools/book"))


def test_book_links_lead_to_pages_and_anchors(book, pages):
    broken = []
    for page, found in pages.items():
        for link in [*found.links, *found.loaded]:
            parts = urlsplit(link)
            if parts.scheme in ("http", "https", "mailto", "data", "javascript"):
                continue
            aim = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            inside = parts.fragment and aim.suffix == ".html" and not parts.fragment.startswith("__")
            if not aim.is_file() or (inside and unquote(parts.fragment) not in pages[aim].anchors):
                broken.append(f"{page.relative_to(book)}: {link}")
    assert broken == []
    assert len(pages) > 60


def test_book_loads_nothing_from_a_network(book, pages):
    assert [(page, link) for page, found in pages.items() for link in found.loaded if urlsplit(link).netloc] == []
    styles = "".join(style.read_text() for style in book.rglob("*.css"))
    assert not re.search(r"@import|url\(['\"]?(https?:)?//", styles)


def test_book_has_every_command(generators):
    page = generators["commands"].page()
    commands = typer.main.get_command(app).commands
    names = [name for name, command in commands.items() if not command.hidden]
    assert len(names) > 15
    assert [name for name in names if f"### `nearside {name}`" not in page] == []
    for group in (commands[name] for name in names if hasattr(commands[name], "commands")):
        assert [name for name in group.commands if f"#### `nearside {group.name} {name}`" not in page] == []


def test_book_has_every_key_of_the_shipped_designs(generators):
    page = generators["design"].page(ROOT)
    missing = []
    for path in sorted((ROOT / "designs").glob("*.toml")):
        for table, values in tomllib.loads(path.read_text()).items():
            for entry in values if isinstance(values, list) else [values]:
                keys = entry if isinstance(entry, dict) else {table: entry}
                missing += [f"{path.name}: {key}" for key, value in keys.items()
                            if not isinstance(value, dict) and f"| `{key}` |" not in page]  # fmt: skip
    assert missing == []


@pytest.mark.parametrize(
    ("key", "default", "allowed"),
    [
        ("clock_mhz", "`250`", "1 to 1000"),
        ("bytes", "required", "a power of two from 1 MiB to 1 TiB"),
        ("lanes", "`8`", "1, 2, 4, 8, 16"),
        ("queue_entries", "`1024`", "a power of two from 16 to 1024"),
    ],
)
def test_book_states_defaults_and_ranges_of_designs(generators, key, default, allowed):
    rows = [row.split(" | ") for row in generators["design"].page(ROOT).splitlines() if row.startswith(f"| `{key}` |")]
    assert (default, allowed) in [(row[2], row[3]) for row in rows]


def test_book_has_every_function_of_the_c_header(generators):
    header = ROOT / "crates/pm-c/include/nearside_pm.h"
    page = generators["c"].page(header, ROOT)
    code = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.DOTALL)
    functions = set(re.findall(r"\b(nspm_\w+|NearPM_\w+)\(", code))
    assert len(functions) > 30
    assert {name for name in functions if f"### `{name}`" not in page} == set()


def test_book_has_every_register_map(generators):
    pages = generators["registers"].pages(ROOT)
    names = {re.sub("_(regs|map)$", "", path.stem) for path in ROOT.glob("hw/*/*/regs/*.rdl")}
    names |= {path.parent.name for path in ROOT.glob("hw/engine/*/engine.toml")}
    assert set(pages) == {f"reference/registers/{name}.md" for name in {"index", *names}}
    nvme = pages["reference/registers/nvme.md"]
    assert "| `0x1000 + 0x8·n` |" in nvme
    assert "| 0 | `en` | read, write | `0x0` | Enable |" in nvme


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("see `crates/design/src/lib.rs` (`Design`)", None),
        ("see `crates/design/src/nothing.rs`", "is not there"),
        ("see `crates/design/src/lib.rs` (`no_such_name`)", "does not hold"),
    ],
)
def test_book_paths_and_names_are_those_of_the_sources(generators, caplog, text, complaint):
    with caplog.at_level(logging.WARNING):
        generators["hooks"]._check_sources("page", text)
    assert bool(caplog.text) == bool(complaint)
    assert complaint is None or complaint in caplog.text


@pytest.fixture(scope="module")
def chromium():
    browser = pytest.importorskip("browser")
    try:
        with browser.browser(tell=False) as opened:
            yield opened
    except browser.NoKit as reason:
        pytest.skip(f"no Chromium: {reason}")


def test_book_opens_every_page_from_disk(book, pages, chromium):
    complaints = {}
    for page in pages:
        chromium.complaints.clear()
        chromium.open(page)
        assert chromium.ask("document.title")
        if chromium.complaints:
            complaints[str(page.relative_to(book))] = list(chromium.complaints)
    assert complaints == {}


def test_book_search_finds_words_from_disk(book, chromium):
    chromium.complaints.clear()
    chromium.open(book / "index.html")
    chromium.ask(
        """(() => {
        document.querySelector("[for=__search]").click()
        const query = document.querySelector("[data-md-component=search-query]")
        query.focus()
        query.value = "doorbell"
        query.dispatchEvent(new Event("input", { bubbles: true }))
        query.dispatchEvent(new KeyboardEvent("keyup", { bubbles: true }))
        })()"""
    )
    found, end = [], time.monotonic() + SEARCH_S
    while not found and time.monotonic() < end:
        time.sleep(0.2)
        links = 'JSON.stringify([...document.querySelectorAll(".md-search-result__link")].map(link => link.href))'
        found = json.loads(chromium.ask(links))
    assert any("read-travels.html" in link or "nvme" in link for link in found), found
    assert chromium.complaints == []


def test_book_switches_between_light_and_dark(book, chromium):
    scheme = "document.body.getAttribute('data-md-color-scheme')"
    colour = "getComputedStyle(document.body).backgroundColor"
    for dark, first, second in ((False, "default", "slate"), (True, "slate", "default")):
        chromium.open(book / "index.html", dark=dark)
        chromium.ask("localStorage.clear(); sessionStorage.clear()")
        chromium.open(book / "start" / "demo.html", dark=dark)
        before = chromium.ask(colour)
        assert chromium.ask(scheme) == first
        chromium.ask("[...document.querySelectorAll('[data-md-component=palette] label')].find(l => !l.hidden).click()")
        assert chromium.ask(scheme) == second
        assert chromium.ask(colour) != before
    chromium.ask("localStorage.clear()")
