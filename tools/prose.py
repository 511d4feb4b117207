# SPDX-License-Identifier: Apache-2.0
"""Check the prose of pages, comments and docstrings against the rules of CONTRIBUTING.md, "Words".

usage: prose.py [--count] [PATH ...]

Reported are the words of `WORDS`, anywhere, in names and messages too; sentences over 30 words; comment lines, and
lines of Rust, over 100 columns. Code spans and code blocks are no sentences. Generated files are left out; nothing else
is.
"""

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

WORDS = {
    "behin[d]": "after, for time; past, beyond, downstream of, for place",
    "tol[d]": "reported, notified",
    "so man[y]": "the number, or several",
    "(?:its|their|one's) ow[n]": "separate, dedicated, private",
}
BANNED = re.compile("|".join(rf"(?<![a-z])({word})(?![a-z])" for word in WORDS), re.IGNORECASE)
SENTENCE, COLUMNS = 30, 100
# How a line of prose begins in a file of each kind.
MARKS = {
    "//": (".rs", ".sv", ".svh", ".c", ".h", ".cpp", ".rdl", ".vlt", ".js"),
    "#": (".py", ".toml", ".sby", ".sh", ".f", ".txt"),
}
MARK = {suffix: mark for mark, suffixes in MARKS.items() for suffix in suffixes} | {".md": ""}
GENERATED = re.compile(r"/gen/|/src/regs/|docs/validation\.md|\.lock$|tools/\w+\.txt$|hw/.*\.h$")


def lines_of_prose(text: str, mark: str, suffix: str) -> Iterator[tuple[int, str | None, bool]]:
    """Of each line its number, the prose on it if there is any, and whether that is all of the line."""
    docstrings: set[int] = set()
    if suffix == ".py":
        for node in ast.walk(ast.parse(text)):
            value = node.value if isinstance(node, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                docstrings.update(range(value.lineno, (value.end_lineno or value.lineno) + 1))
    for number, line in enumerate([*text.splitlines(), ""], 1):
        stripped = line.strip()
        if number in docstrings:
            yield number, stripped.strip('r"'), True
        elif not mark:
            yield number, None if re.match(r" {4,}[^ *-]", line) else stripped, True
        elif match := re.match(rf"(?:.*\s)?{mark}[/!#<]*(?:\s(.*))?$", f" {stripped}"):
            code = re.match(r" {4,}", match[1] or "")
            # In TOML a key that is commented out has a comment in its line.
            whole = stripped.startswith(mark) and not re.match(r"# ?[\w\[].* # ", stripped)
            yield number, None if code else (match[1] or "").strip(), whole
        else:
            yield number, None, False


def paragraphs(text: str, mark: str, suffix: str) -> Iterator[tuple[int, str]]:
    """Paragraphs of comments and docstrings, or of a page: the number of the first line, the text."""
    found: list[str] = []
    first, code = 0, False
    for number, prose, whole in lines_of_prose(text, mark, suffix):
        if prose is not None and prose.startswith("```"):
            code, prose = not code, None
        if found and (not prose or code or not whole or re.match(r"[-*|#>]|\d+\. |\w+:$|@", prose)):
            yield first, " ".join(found)
            found = []
        if prose and not code:
            if prose.startswith("|") or not whole:
                yield from ((number, cell) for cell in prose.strip("|").split(" | "))
            else:
                first = first if found else number
                found.append(prose)


def findings(path: Path) -> Iterator[tuple[int, str]]:
    text = path.read_text()
    mark = MARK[path.suffix]
    for number, line in enumerate(text.splitlines(), 1):
        for match in BANNED.finditer(line):
            yield number, f"word: {match[0].lower()}"
        comment = mark and re.match(rf"\s*{mark}", line)
        if len(line) > COLUMNS and (path.suffix == ".rs" or comment) and "http" not in line:
            yield number, f"columns: {len(line)}, at most {COLUMNS}"
    for number, paragraph in paragraphs(text, mark, path.suffix):
        plain = re.sub(r"`[^`]*`", "X", paragraph)
        for sentence in re.split(r"(?<=[.!?])[\])*\"']*\s+(?=[A-Z`*\"'(\[0-9])", plain):
            words = len(re.findall(r"\w[^\s]*", sentence))
            if words > SENTENCE:
                yield number, f"sentence: {words} words, at most {SENTENCE}: {sentence[:60]}..."


def main() -> int:
    names = [a for a in sys.argv[1:] if not a.startswith("-")]
    command = ["git", "ls-files", "--", *names]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    files = [Path(f) for f in listed.splitlines() if Path(f).suffix in MARK and not GENERATED.search(f)]
    found = [(f, n, what) for f in files if f.exists() for n, what in sorted(findings(f))]
    if "--count" in sys.argv:
        print(*Counter((what.split(":")[0], "/".join(f.parts[:3])) for f, _, what in found).most_common(), sep="\n")
    else:
        print(*(f"{f}:{n}: {what}" for f, n, what in found), sep="\n")
    print(f"prose: {len(found)} findings in {len(files)} files")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
