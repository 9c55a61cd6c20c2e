"""Imports run one way (docs/architecture.md): a package imports only what stands before it."""

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import foredeck
import foredeck_bench

ROOT = Path(foredeck.__file__).parents[1]

#: The import packages, before all that may import them. `foredeck_bench` is not installed.
PACKAGES = (
    *("foredeck", "foredeck_agents", "foredeck_lab", "foredeck_inspector", "foredeck_xtdb"),
    "foredeck_bench",
)

#: Each part of the core, before all that may import it. A part is a folder or a module.
PARTS = (
    *(
        *("errors", "finding", "version", "home", "loopback", "regular_files", "model", "commands"),
        *("config", "store"),
    ),
    *("sources", "derived", "search", "notes", "tasks", "worklog", "working", "observations"),
    *("memory", "names", "prices"),
    *("context", "pruning", "timeline", "hosts", "lookup", "accounting", "engine", "rpc"),
    *("embedded", "cli"),
)

#: The same within `context`.
CONTEXT = (
    *(
        *("wording", "head", "messages", "plan", "rebase", "provider_cache", "state", "digests"),
        *("summary", "compactions", "rendering", "layouts"),
    ),
    *("policies", "rewriting", "fitting", "compacting", "intake", "tools", "calls", "assembler"),
)

#: The same within `store`: what the store stands on, the store, and what is done with it.
STORE = (
    *("clock", "protocol", "location", "versions", "references", "sqlite", "store"),
    *("sessions", "at_work", "copying", "backup", "place", "erasing"),
    *("portable", "redaction", "purging"),
)

#: The same within `foredeck_xtdb`.
XTDB = (
    *("database", "runtime", "node", "installing", "link", "journal", "worker"),
    *("local_copy", "maintenance"),
    *("xtdb_command", "place"),
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
        ("foredeck_xtdb", XTDB),
    ],
)
def test_imports_run_one_way(package: str, parts: tuple[str, ...]) -> None:
    folder = ROOT.joinpath(*package.split("."))
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


def test_packages_import_only_what_stands_before_them() -> None:
    reaches = []
    for number, package in enumerate(PACKAGES):
        for module in sorted((ROOT / package).rglob("*.py")):
            if "shipped" in module.parts or "sample" in module.parts:
                continue
            for dotted in imported(module):
                if dotted.partition(".")[0] in PACKAGES[number + 1 :]:
                    reaches.append(f"{module.relative_to(ROOT)} imports {dotted}")
    assert not reaches, "\n".join(reaches)


def test_pages_and_answers_use_of_the_command_line_only_what_their_commands_are_made_of() -> None:
    used = {
        (str(module.relative_to(ROOT)), dotted.rpartition(".")[0])
        for part in ("foredeck_inspector", "foredeck_agents/mcp_server")
        for module in sorted((ROOT / part).rglob("*.py"))
        for dotted in imported(module)
        if dotted.startswith("foredeck.cli.")
    }
    assert used == {
        ("foredeck_agents/mcp_server/server.py", "foredeck.cli.arguments"),
        ("foredeck_inspector/ui_command.py", "foredeck.cli.arguments"),
        ("foredeck_inspector/ui_command.py", "foredeck.cli.arguments.use"),
        ("foredeck_inspector/views/overview.py", "foredeck.cli.doctor_command"),
        ("foredeck_inspector/views/overview.py", "foredeck.cli.stored_checks"),
    }


def test_only_those_who_read_what_is_pis_own_name_its_host() -> None:
    named_in = {
        str(module.relative_to(ROOT))
        for module in sorted((ROOT / "foredeck").rglob("*.py"))
        for dotted in imported(module)
        if dotted.startswith("foredeck.hosts.pi")
    }
    rest = {name for name in named_in if not name.startswith("foredeck/hosts/")}
    assert rest == {
        "foredeck/engine/opening.py",
        "foredeck/engine/requests.py",
        "foredeck/engine/tool_requests.py",
        "foredeck/lookup/sessions.py",
        "foredeck/rpc/host_model.py",
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


def _graph() -> dict[str, set[str]]:
    """By module, the modules that it imports, those for types and inside functions too."""
    folders = [folder for folder in ROOT.iterdir() if (folder / "__init__.py").exists()]
    modules = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for folder in folders
        for path in folder.rglob("*.py")
        if {"sample", "shipped"}.isdisjoint(path.parts)
    }
    return {
        name: {
            dotted if dotted in modules else dotted.rpartition(".")[0] for dotted in imported(path)
        }
        & modules.keys() - {name}
        for name, path in modules.items()
    }


def test_no_module_imports_itself_by_way_of_others() -> None:
    graph, circles = _graph(), []
    assert len(graph) > 300
    try:
        list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        circles = error.args[1]
    assert circles == []
