# SPDX-License-Identifier: Apache-2.0
"""What MkDocs asks for while it builds the book: generated pages, links into the repository, the navigation.

Pages below `reference/` are generated from the sources at each build, and are never files of the repository. Links of
pages and READMEs are relative to the repository, so that they also work where the sources are read. A link to what is
no page of the book becomes the path in code. Paths and names of sources that a page of `CHECKED` states have to exist.
"""

from __future__ import annotations

import logging
import posixpath
import re
from pathlib import Path
from typing import Any

import c_header
import command_line
import design_file
import profiles
import python_api
import register_maps
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
LOG = logging.getLogger("mkdocs.hooks.nearside")
# Files of the repository that are pages of the book as they stand.
PUBLISHED = {
    "CONTRIBUTING.md": "develop/contributing.md",
    "CHANGELOG.md": "develop/changelog.md",
    "README.md": "index.md",
}
LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")

# Pages whose paths and names of sources are compared with the repository, written as
# `path` or as `path` (`name`, `name`).
CHECKED = re.compile(r"(index\.md|(start|concepts|guides|develop|results)/)(?!.*(contributing|changelog))")
SOURCE = re.compile(r"`((?:crates|hw|python|tools|tests|designs|media|hosts|examples|bench|docs)/[\w./-]+)`")
NAMES = re.compile(r"\s+\(((?:`[^`]+`(?:, )?)+)\)")

# The file of the repository that a generated page is written from.
_origin: dict[str, str] = {}


def readme_pages(docs: Path) -> dict[str, str]:
    """READMEs of hardware blocks and the pages that they are: the chapter of the block, or the README itself."""
    readmes = sorted(path.relative_to(ROOT) for path in [*ROOT.glob("hw/*/*/README.md"), ROOT / "hw/lib/README.md"])
    return {str(readme): f"hardware/{readme.parent.name}.md" for readme in readmes}


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Adds the generated pages, and what the navigation leaves to the files that there are."""
    docs = Path(config.docs_dir)
    _origin.clear()

    def add(uri: str, content: str) -> None:
        files.append(File.generated(config, uri, content=content))

    for readme, uri in (PUBLISHED | readme_pages(docs)).items():
        if not (docs / uri).exists():
            _origin[uri] = readme
            add(uri, (ROOT / readme).read_text())
    add("reference/command-line.md", command_line.page())
    add("reference/design-file.md", design_file.page(ROOT))
    add("reference/media-profiles.md", profiles.media_page(ROOT))
    add("reference/host-profiles.md", profiles.host_page(ROOT))
    add("reference/c.md", c_header.page(ROOT / "crates/pm-c/include/nearside_pm.h", ROOT))
    for uri, content in {**python_api.pages(ROOT), **register_maps.pages(ROOT)}.items():
        add(uri, content)
    worker = (Path(__file__).parent / "iframe-worker.js").read_text()
    files.append(File.generated(config, "assets/iframe-worker.js", content=worker))
    config.nav = _expanded(config.nav, files)
    return files


def _expanded(nav: Any, files: Files) -> Any:
    """The navigation; a name that ends with a slash stands for the pages of that folder that are not named."""
    named: set[str] = set()

    def collect(item: Any) -> None:
        for value in item.values() if isinstance(item, dict) else item if isinstance(item, list) else []:
            collect(value)
        if isinstance(item, str):
            named.add(item)

    def expand(item: Any) -> Any:
        if isinstance(item, dict):
            return {key: expand(value) for key, value in item.items()}
        if isinstance(item, list):
            found: list[Any] = []
            for entry in item:
                if isinstance(entry, str) and entry.endswith("/"):
                    pages = (file.src_uri for file in files.documentation_pages())
                    found += sorted(uri for uri in pages if uri.startswith(entry) and uri not in named)
                elif not isinstance(entry, str) or files.get_file_from_path(entry) or not entry.startswith("hardware/"):
                    found.append(expand(entry))
            return found
        return item

    collect(nav)
    return expand(nav)


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Makes links to files of the repository links to pages of the book, or code."""
    uri = page.file.src_uri
    source = _origin.get(uri, posixpath.join("docs", uri))
    pages = PUBLISHED | readme_pages(Path(config.docs_dir))

    def link(match: re.Match[str]) -> str:
        text, target = match.groups()
        path, _, anchor = target.partition("#")
        if not path or re.match(r"[a-z]+:", target):
            return match[0]
        whole = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        aim = pages.get(whole) or pages.get(f"{whole}/README.md")
        if not aim and whole.startswith("docs/"):
            aim = whole.removeprefix("docs/")
        if aim:
            here = posixpath.dirname(uri) or "."
            place = f"#{anchor}" if anchor and aim != "index.md" else ""  # the front page is not the README
            return f"[{text}]({posixpath.relpath(aim, here)}{place})"
        if not (ROOT / whole).exists():
            LOG.warning("%s: a link to %s, which is not there", source, whole)
        plain = text.strip("`")
        same = plain in (whole, posixpath.basename(whole), whole.removesuffix("/README.md"))
        return f"`{whole}`" if same else f"{text} (`{whole}`)"

    if CHECKED.match(uri):
        _check_sources(source, markdown)

    def outside(text: str) -> str:
        return LINK.sub(link, text)

    # Code stays as it is, but a link whose text is code is a link.
    parts, end = [], 0
    for match in re.finditer(r"^(```|~~~).*?^\1[^\S\n]*$", markdown, re.MULTILINE | re.DOTALL):
        parts += [outside(markdown[end : match.start()]), match[0]]
        end = match.end()
    return "".join([*parts, outside(markdown[end:])])


def _check_sources(page: str, markdown: str) -> None:
    """Warns of a path that is not there, and of a name that its file does not hold."""
    for match in SOURCE.finditer(markdown):
        path = ROOT / match[1]
        if not path.exists():
            LOG.warning("%s: `%s` is not there", page, match[1])
            continue
        names = NAMES.match(markdown, match.end())
        if names and path.is_file():
            text = path.read_text()
            for name in re.findall(r"`([^`]+)`", names[1]):
                if not re.search(rf"\b{re.escape(name.split('::')[-1].removesuffix('()'))}\b", text):
                    LOG.warning("%s: `%s` does not hold `%s`", page, match[1], name)
