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

MOST_LINES = 500

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


#: Folders of files that an agent works on, or has worked on.
WORKED_ON = {"sample", "shipped", "solutions"}


def modules() -> Iterator[Path]:
    """The modules of foredeck. What the demo and `foredeck eval` let an agent work on is not its
    code."""
    for path in tracked("python"):
        if path.suffix == ".py" and WORKED_ON.isdisjoint(path.parts):
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
    assert {name: lines for name, lines in lengths.items() if lines > MOST_LINES} == {}


#: In the folders of a user.
OF_THE_USER = frozenset(
    {"copies/", "derived/", "switches/", "foredeck/config.toml", ".pi/foredeck.toml"}
)

#: Where a path that a page names may start.
BASES = (
    *("", "python", "python/foredeck", "python/foredeck_agents", "python/foredeck_lab"),
    *("ts-shim", "python/foredeck/context", "docs"),
)
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


STEP = re.compile(r"^\|[^|]+\| `([^`]+)` \| `([^`]+)` \|$", re.MULTILINE)


def test_walks_name_functions_that_exist() -> None:
    """Each step of the walks in docs/architecture.md: a file, and a function in it."""
    steps = STEP.findall((ROOT / "docs" / "architecture.md").read_text())
    assert len(steps) > 20
    missing = [f"{path}: {name}" for path, name in steps if name not in defined_in(ROOT / path)]
    assert not missing


def defined_in(module: Path) -> set[str]:
    """The functions of a module, methods as `Class.method`."""
    if not module.exists():
        return set()
    text = module.read_text()
    if module.suffix == ".ts":
        found = re.findall(r"^(?:export )?(?:async )?function (\w+)", text, re.MULTILINE)
        classes = re.split(r"^export class (\w+)", text, flags=re.MULTILINE)[1:]
        for owner, body in zip(classes[::2], classes[1::2], strict=True):
            found += [
                f"{owner}.{name}" for name in re.findall(r"^  (?:async )?(\w+)\(", body, re.M)
            ]
        return set(found)
    tree = ast.parse(text)
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    return functions | {
        f"{owner.name}.{node.name}"
        for owner in tree.body
        if isinstance(owner, ast.ClassDef)
        for node in owner.body
        if isinstance(node, ast.FunctionDef)
    }


#: Modules below `hosts/` that name Pi although they know nothing of its formats: in a message to
#: its user, as the default host of a session, in texts to compress by, for its cache markers, and
#: because the stored shape is that of its messages.
NAME_PI = frozenset(
    {
        *("context/provider_cache.py", "context/messages/shape.py", "context/compacting.py"),
        *("model/documents.py", "store/place.py", "store/sqlite/codec.py"),
        *("store/sqlite/connection.py", "store/store.py"),
    }
)


def test_nothing_below_hosts_knows_pi() -> None:
    package = ROOT / "python" / "foredeck"
    below = [
        path
        for path in modules()
        if path.is_relative_to(package)
        and path.relative_to(package).parts[0] in ("model", "store", "sources", "context")
    ]
    naming = {
        str(path.relative_to(package))
        for path in below
        if re.search(r"\b[Pp]i\b", path.read_text())
    }
    assert naming <= NAME_PI


def test_modules_that_docstrings_name_exist() -> None:
    names = {path.name for path in tracked("python", "ts-shim")}
    named_modules = re.compile(r"`(?:[\w-]+/)*([\w-]+\.py)`")
    gone = {
        f"{named(path)}: {found}"
        for path in tracked("python")
        if path.suffix == ".py"
        for found in named_modules.findall(path.read_text())
        if found not in names
    }
    assert not gone, "\n".join(sorted(gone))
