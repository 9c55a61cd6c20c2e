"""Imports run one way (docs/architecture.md): a package imports only what stands before it."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import foredeck
import foredeck_bench

ROOT = Path(foredeck.__file__).parent

#: Each part of the engine, before all that may import it. A part is a folder or a module.
PARTS = (
    *("errors", "finding", "home", "regular_files", "model", "commands", "config", "store"),
    *("sources", "derived", "search", "notes", "tasks", "worklog", "working", "observations"),
    *("memory", "pruning", "names"),
    *("context", "timeline", "hosts", "histories", "lookup", "accounting", "engine", "rpc"),
    *("replay", "embedded", "evaluation", "cli", "ui", "mcp_server", "proxy", "xtdb"),
)

#: The same within `context`.
CONTEXT = (
    *(
        "arguments",
        "wording",
        "head",
        "messages",
        "plan",
        "rebase",
        "provider_cache",
        "state",
        "digests",
        "summary",
        "compactions",
        "rendering",
    ),
    *("policies", "rewriting", "fitting", "compacting", "intake", "tools", "calls", "assembler"),
)

#: The same within `store`: what every adapter stands on, SQLite's, and what is done with stores.
STORE = (
    *("clock", "protocol", "sessions", "location", "versions", "references", "at_work", "copying"),
    *("kind", "erasing", "sqlite"),
    *("portable", "redaction", "purging"),
)

#: The same within `xtdb`.
XTDB = (
    *("database", "runtime", "node", "installing", "link", "journal", "worker"),
    *("local_copy", "maintenance", "backup"),
    *("query_command", "xtdb_command", "kind"),
)


def imported(module: Path) -> Iterator[str]:
    """The dotted names that a module imports, inside functions too."""
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{name.name}" for name in node.names)
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)


@pytest.mark.parametrize(
    ("package", "parts"),
    [
        ("foredeck", PARTS),
        ("foredeck.context", CONTEXT),
        ("foredeck.store", STORE),
        ("foredeck.xtdb", XTDB),
    ],
)
def test_imports_run_one_way(package: str, parts: tuple[str, ...]) -> None:
    folder = ROOT.joinpath(*package.split(".")[1:])
    known, wrong = set(), []
    for module in sorted(folder.rglob("*.py")):
        here = module.relative_to(folder).parts[0].removesuffix(".py")
        if here == "__init__":
            continue
        assert here in parts, (
            f"{package}.{here} is new: give it its place in the list at the top of this file, "
            "behind all that it imports, and in docs/architecture.md"
        )
        known.add(here)
        for dotted in imported(module):
            there = dotted.removeprefix(f"{package}.").partition(".")[0]
            if dotted.startswith(f"{package}.") and there in parts[parts.index(here) + 1 :]:
                wrong.append(f"{module.relative_to(ROOT)} imports {dotted}")
    assert not wrong, "\n".join(
        [*wrong, "a part imports what stands before it in the list: pass the rest in, or move it"]
    )
    assert known == set(parts), f"no longer there: {sorted(set(parts) - known)}"


def test_pages_and_answers_use_of_the_command_line_only_what_their_commands_are_made_of() -> None:
    used = {
        (str(module.relative_to(ROOT)), dotted.rpartition(".")[0])
        for part in ("ui", "mcp_server")
        for module in sorted((ROOT / part).rglob("*.py"))
        for dotted in imported(module)
        if dotted.startswith("foredeck.cli.")
    }
    assert used == {
        ("mcp_server/server.py", "foredeck.cli.arguments"),
        ("ui/app.py", "foredeck.cli.arguments"),
        ("ui/app.py", "foredeck.cli.arguments.use"),
        ("ui/app.py", "foredeck.cli.person"),
    }


def test_only_those_who_read_what_is_pis_own_name_its_host() -> None:
    named_in = {
        str(module.relative_to(ROOT))
        for module in sorted(ROOT.rglob("*.py"))
        for dotted in imported(module)
        if dotted.startswith("foredeck.hosts.pi")
    }
    rest = {name for name in named_in if not name.startswith("hosts/")}
    assert rest == {
        "engine/opening.py",
        "engine/requests.py",
        "lookup/sessions.py",
    }


def test_the_providers_twin_stands_alone() -> None:
    folder = Path(foredeck_bench.__file__).parent / "twin"
    others = {
        dotted
        for module in sorted(folder.rglob("*.py"))
        for dotted in imported(module)
        if dotted.startswith("foredeck") and not dotted.startswith("foredeck_bench.twin")
    }
    assert others == set()
