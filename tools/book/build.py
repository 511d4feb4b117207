#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the book into build/book, and fails at a broken link: `make docs-book`.

usage: build.py [FOLDER]
"""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def build(folder: Path) -> None:
    """Builds the book in strict mode."""
    os.environ.setdefault("NO_MKDOCS_2_WARNING", "true")
    from mkdocs.commands.build import build as build_site
    from mkdocs.config import load_config

    logging.basicConfig(level=logging.WARNING, format="book: %(levelname)s: %(message)s")
    config = load_config(str(ROOT / "mkdocs.yml"), strict=True, site_dir=str(folder))
    config.plugins.on_startup(command="build", dirty=False)
    try:
        build_site(config)
    finally:
        config.plugins.on_shutdown()


def main() -> None:
    folder = Path(sys.argv[1]).resolve() if sys.argv[1:] else ROOT / "build" / "book"
    from mkdocs.exceptions import MkDocsException

    try:
        build(folder)
    except MkDocsException as error:
        sys.exit(f"book: {error}")
    pages = sum(1 for _ in folder.rglob("*.html"))
    print(f"book: {pages} pages; open {folder / 'index.html'}")


if __name__ == "__main__":
    main()
