"""Check the prose of pages, comments and docstrings against the rules of CONTRIBUTING.md, "Words".

usage: prose.py [--count] [PATH ...]

Reported are the words of `WORDS`, anywhere, in names and messages too; sentences over 30 words; comment lines, and
lines of Rust, over 100 columns. Code spans and code blocks are no sentences. Only generated files are left out.
"""

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
GENERATED = re.compile(r"/gen/|docs/validation\.md|\.lock$|tools/\w+\.txt$|hw/.*\.h$")


def paragraphs(text: str, mark: str) -> Iterator[tuple[int, str]]:
    """Paragraphs of comments and docstrings, or of a page: the number of the first line, the text."""
    found: list[str] = []
    first, code, docstring, string = 0, False, False, False
    for number, line in enumerate([*text.splitlines(), ""], 1):
        stripped, prose = line.strip(), None
        if not mark or docstring:
            prose = stripped
        elif match := re.match(
            rf"(?:.*\s)?{mark}[/!#<]*(?:\s+(.*))?$", stripped if stripped.startswith(mark) else f" {stripped}"
        ):
            prose = match[1] or ""
        if mark == "#" and stripped.count('"""') % 2:
            # A string that is assigned or passed is no docstring: it may hold a program.
            if not docstring and (string or not re.match(r'r?"""', stripped)):
                string = not string
            else:
                docstring, prose = not docstring, stripped.strip('r"')
        elif mark == "#" and stripped.startswith('"""'):
            prose = stripped.strip('"')
        if not mark and re.match(r" {4,}[^ *-]", line):
            prose = None
        if prose is not None and prose.startswith("```"):
            code, prose = not code, ""
        whole = stripped.startswith(mark) or docstring
        begins = prose is None or not prose or code or not whole or re.match(r"[-*|#>]|\d+\. |\w+:$|@", prose)
        if begins and found:
            yield first, " ".join(found)
            found = []
        if prose and not code:
            for cell in prose.strip("|").split(" | ") if prose.startswith("|") else [prose]:
                if prose.startswith("|") or not whole:
                    yield number, cell
                else:
                    first = first if found else number
                    found.append(cell)


def findings(path: Path) -> Iterator[tuple[int, str]]:
    text = path.read_text()
    mark = MARK[path.suffix]
    for number, line in enumerate(text.splitlines(), 1):
        for match in BANNED.finditer(line):
            yield number, f"word: {match[0].lower()}"
        comment = mark and re.match(rf"\s*{mark}", line)
        if len(line) > COLUMNS and (path.suffix == ".rs" or comment) and "http" not in line:
            yield number, f"columns: {len(line)}, at most {COLUMNS}"
    for number, paragraph in paragraphs(text, mark):
        plain = re.sub(r"`[^`]*`", "X", paragraph)
        for sentence in re.split(r"(?<=[.!?])[\])*\"']*\s+(?=[A-Z`*\"'(\[0-9])", plain):
            words = len(re.findall(r"\w[^\s]*", sentence))
            if words > SENTENCE:
                yield number, f"sentence: {words} words, at most {SENTENCE}: {sentence[:60]}..."


def main() -> int:
    names = [a for a in sys.argv[1:] if not a.startswith("-")]
    listed = subprocess.run(["git", "ls-files", "--", *names], capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )
    files = [Path(f) for f in listed if Path(f).suffix in MARK and not GENERATED.search(f)]
    found = [(f, n, what) for f in files if f.exists() for n, what in sorted(findings(f))]
    if "--count" in sys.argv:
        print(*Counter((what.split(":")[0], "/".join(f.parts[:3])) for f, _, what in found).most_common(), sep="\n")
    else:
        print(*(f"{f}:{n}: {what}" for f, n, what in found), sep="\n")
    print(f"prose: {len(found)} findings in {len(files)} files")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
