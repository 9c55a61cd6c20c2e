"""What keeps the code and the pages readable: one meaning for a name, reasons instead of citations,
paths that exist, modules of a size that can be read at once."""

from __future__ import annotations

import ast
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

#: Modules that may be longer, up to so many lines. It may only shrink.
LONG = {
    "python/foredeck/context/assembler.py": 450,
}
MOST_LINES = 400

#: Prose and code that people read, by how the file's name ends.
READ = (".py", ".ts", ".mjs", ".clj", ".md", ".toml", ".edn", ".sh")

CITATION = re.compile(
    r"\bdesign \d|\bSSOT\b|\bseeds? \d|\bthe seeds\b|\bissue \d|\bissue section"
    r"|[(\"]section \d|\bsections? \d[\d.]*(?: to \d+)?[).,]|§",
    re.IGNORECASE,
)


def tracked(*folders: str) -> list[Path]:
    """The files of the repository that people read, below some of its folders."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *folders],
        **{"cwd": ROOT, "capture_output": True, "text": True, "check": True},
    ).stdout.split("\n")
    found = [ROOT / name for name in listed if name.endswith(READ) or name.startswith("scripts/")]
    return [path for path in found if path.is_file()]


def modules() -> Iterator[Path]:
    """The modules of foredeck. The repository that the demo works on is not its code."""
    for path in tracked("python"):
        if path.suffix == ".py" and "sample" not in path.parts:
            yield path


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def test_a_class_name_has_one_meaning() -> None:
    defined = defaultdict(list)
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                defined[node.name].append(named(path))
    twice = {name: places for name, places in defined.items() if len(places) > 1}
    assert twice == {}


def test_reasons_are_given_and_not_cited() -> None:
    """What a comment refers to must be in the repository: nobody can look up the rest."""
    citing = [
        f"{named(path)}:{number}: {line.strip()}"
        for path in tracked("python", "ts-shim", "tests", "scripts", "xtdb", "docs", "README.md")
        if path != Path(__file__)
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if CITATION.search(line)
    ]
    assert not citing, "\n".join(citing)


def test_modules_can_be_read_at_once() -> None:
    lengths = {
        named(path): len(path.read_text().splitlines())
        for path in tracked("python", "ts-shim")
        if path.suffix in (".py", ".ts")
    }
    most = {name: LONG.get(name, MOST_LINES) for name in lengths}
    assert {name: lines for name, lines in lengths.items() if lines > most[name]} == {}


#: In the folders of a user.
OF_THE_USER = frozenset({"copies/", "derived/", "foredeck/config.toml", ".pi/foredeck.toml"})

#: Where a path that a page names may start.
BASES = ("", "python/foredeck", "ts-shim", "python/foredeck/context", "docs")
PATHLIKE = re.compile(r"[\w.-]+(?:/[\w.-]+)*(?:/|\.(?:py|ts|mjs|md|json|toml|svg))")


def paths_in(page: Path) -> Iterator[str]:
    """What a page names in backticks or links to, as far as it looks like a path in here."""
    text = page.read_text()
    for quoted in re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)):
        if PATHLIKE.fullmatch(quoted) and (quoted.endswith("/") or "/" in quoted):
            yield quoted
    yield from re.findall(r"\]\((?!https?:)([^)#]+)", text)


@pytest.mark.parametrize("page", ["README.md", *(f"docs/{p.name}" for p in ROOT.glob("docs/*.md"))])
def test_pages_name_paths_that_exist(page: str) -> None:
    missing = [
        path
        for path in paths_in(ROOT / page)
        if path not in OF_THE_USER and not any((ROOT / base / path).exists() for base in BASES)
    ]
    assert not missing
