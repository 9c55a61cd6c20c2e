"""Tasks of a session that is exported, or forgotten: those that are its alone go with it."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from commands import Foredeck
from context.driver import Host
from context.scenes import ask
from foredeck.model.identity import SHORTEST, TASK, key_of
from foredeck.store.store import open_sqlite


def host(home: Path, session: str) -> Host:
    (home.parent / "repo").mkdir(exist_ok=True)
    host = Host(home, session=session, cwd=str(home.parent / "repo"), disk=True)
    host.sections = None
    ask(host, "Plan.")
    return host


def mutate(host: Host, **input: str) -> str:
    text: str = host.tool("t", "task-mutate", **input)["content"][0]["text"]
    return text


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The first session has planned three tasks and closed one; the second has closed another."""
    home = tmp_path / "home"
    first = host(home, "first")
    names = [
        mutate(first, action="create", title=title, description=f"About {title}.").split()[1]
        for title in ("Mine", "Done", "Ours")
    ]
    mutate(first, action="claim", id=names[1])
    mutate(first, action="close", id=names[1], summary="It is done.")
    first.close()
    second = host(home, "second")
    mutate(second, action="close", id=names[2], summary="We did it.")
    second.close()
    return home


def titles(home: Path) -> list[str]:
    with closing(open_sqlite(home / "foredeck.db")) as store:
        return sorted(head.fields["title"] for head in store.query("task"))


def test_what_only_the_session_has_had_to_do_with_goes_with_it(
    home: Path, foredeck: Foredeck
) -> None:
    assert titles(home) == ["Done", "Mine", "Ours"]
    foredeck(home, "forget", "first", "--yes")
    assert titles(home) == ["Ours"]


def test_what_another_session_has_made_stays(home: Path, foredeck: Foredeck) -> None:
    foredeck(home, "forget", "second", "--yes")
    assert titles(home) == ["Done", "Mine", "Ours"]


@pytest.mark.parametrize("more", [[], ["--as-new"]])
def test_an_exported_session_brings_its_tasks(
    home: Path, tmp_path: Path, more: list[str], foredeck: Foredeck
) -> None:
    file, other = str(tmp_path / "first.jsonl"), tmp_path / "other"
    foredeck(home, "export", "first", file)
    foredeck(other, "import", file, *more)
    assert titles(other) == ["Done", "Mine", "Ours"]
    with (
        closing(open_sqlite(home / "foredeck.db")) as here,
        closing(open_sqlite(other / "foredeck.db")) as there,
    ):
        for head in here.query("task"):
            assert there.history(head.id) == here.history(head.id)
    foredeck(home, "import", file)


def test_its_name_is_enough_for_every_command(home: Path, foredeck: Foredeck) -> None:
    with closing(open_sqlite(home / "foredeck.db")) as store:
        id = store.query("task", {"title": "Done"})[0].id
    name = TASK + key_of(id)[:SHORTEST]
    assert foredeck(home, "cat", name).strip() == "Done (closed)\n\nIt is done.\n\nAbout Done."
    assert len(foredeck.json(home, "history", name)["versions"]) == 3
