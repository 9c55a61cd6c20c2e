"""Notes of a repository: those that lead out of it, and those that take too long to read."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from foredeck.config import Config, load_config
from foredeck.derived.follower import Follower
from foredeck.engine import project_notes
from foredeck.engine.engine import Engine
from foredeck.hosts.host import Host
from foredeck.hosts.simulated_host import SimulatedHost
from foredeck.model.documents import FileDocument
from foredeck.model.sources import path_of
from foredeck.notes import layer, markdown
from foredeck.notes.graph import Graph
from foredeck.sources import looking
from foredeck.store.place import open_store
from foredeck.store.store import Store
from hostile.ground import SECRET, Ground
from hostile.many import fill

Open = Callable[..., None]


@pytest.fixture
def told() -> list[str]:
    """What the user was told."""
    return []


@pytest.fixture
def opened(ground: Ground, told: list[str]) -> Iterator[Open]:
    """Opens a session in the repository, with these settings."""

    def open_it(**settings: object) -> None:
        config = Config(home=ground.root / "home", **settings)
        with closing(Engine(config, Host(lambda _level, text: told.append(text)))) as engine:
            engine.open_session(SimulatedHost("s").opening(str(ground.repo)))

    return open_it


def stored_paths(ground: Ground) -> dict[str, str | None]:
    """The files that are stored, with what they hold."""
    with closing(open_store(Config(home=ground.root / "home"))) as store:
        documents = [store.get(head.id, FileDocument) for head in store.query("file")]
        return {path_of(d.model_dump()) or "": d.content for d in documents if d is not None}


def test_nothing_outside_the_repository_is_taken_in(
    ground: Ground, opened: Open, told: list[str]
) -> None:
    opened()
    found = stored_paths(ground)
    assert str(ground.repo / ".pi/notes/plain.md") in found
    assert [path for path in found if not path.startswith(f"{ground.repo}/")] == []
    assert SECRET not in str(found)
    assert [text for text in told if "left out" in text] == [
        "Notes behind a link that leads out of this project are left out. If they are yours, name "
        "their folder in notes.folders of your own configuration."
    ]


def test_a_folder_that_the_user_names_is_looked_at(ground: Ground, opened: Open) -> None:
    opened(notes={"folders": [str(ground.user / "diary"), "../../user/project"]})
    found = stored_paths(ground)
    assert {str(ground.user / "diary/monday.md"), str(ground.user / "project/plan.md")} <= {*found}


def test_links_within_the_repository_are_followed(ground: Ground, opened: Open) -> None:
    (ground.repo / ".pi" / "notes" / "guide.md").symlink_to("../../docs/guide.md")
    opened()
    assert str(ground.repo / "docs/guide.md") in stored_paths(ground)


def test_a_projects_folders_of_notes_are_not_the_whole_disk(ground: Ground) -> None:
    resolved = load_config(
        project=ground.repo, trusted=True, environ={}, user_file=Path(os.devnull)
    )
    assert resolved.config.notes == Config().notes
    assert resolved.config.seed_window.turns == 7
    assert len(resolved.left_out) == 10


TOO_LONG = "the text takes too long to read: only its properties are read"


def problems(store: Store, home: Path) -> dict[str, list[str]]:
    """By the name of its file, what is said to be wrong with a note."""
    with Follower(store, "notes", home) as follower:
        follower.catch_up()
        found = Graph(follower.db).problems()
        return {Path(node.path or "").name: said for node, said in found}


def test_a_note_that_takes_too_long_is_set_aside_for_good(
    ground: Ground, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(markdown, "LEAST_S", 0.01)
    monkeypatch.setattr(markdown, "CHARACTER_S", 0.0)
    opened()
    home = ground.root / "home"
    with closing(open_store(Config(home=home))) as store:
        found = problems(store, home)
        assert {name for name in found if found[name] == [TOO_LONG]} >= {"slow0.md", "slow1.md"}
        assert found["bomb.md"] == ["the frontmatter is passed over: it has an alias (`*name`)"]
        # Its bytes are known: they are not tried again under whatever name, in however much time.
        monkeypatch.setattr(markdown, "LEAST_S", 1000.0)
        copy = ground.write(".pi/notes/copy.md", (ground.repo / ".pi/notes/slow1.md").read_text())
        read = count_readings(monkeypatch)
        opened()
        assert problems(store, home)[copy.name] == [TOO_LONG]
        assert read["whole"] == 0


def count_readings(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    counts = {"whole": 0}
    real = layer.entry_of

    def counted(*args: object, set_aside: bool = False) -> object:
        counts["whole"] += len(str(args[3] or "")) > layer.SMALL_CHARS and not set_aside
        return real(*args, set_aside=set_aside)  # type: ignore[arg-type]

    monkeypatch.setattr(layer, "entry_of", counted)
    return counts


class Killed(BaseException):
    """The process ends in the middle of a reading."""


def test_a_note_that_ends_the_process_twice_is_set_aside(
    ground: Ground, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (ground.repo / ".pi/notes").glob("slow*"):
        name.unlink()
    ground.write(".pi/notes/fatal.md", "# Fatal\n" + "word " * layer.SMALL_CHARS)
    real, home = layer.entry_of, ground.root / "home"

    def fatal(id: str, type: str, fields: object, text: str | None, *, set_aside: bool = False):
        if text and text.startswith("# Fatal") and not set_aside:
            raise Killed
        return real(id, type, fields, text, set_aside=set_aside)  # type: ignore[arg-type]

    monkeypatch.setattr(layer, "entry_of", fatal)
    for _ in range(layer.ATTEMPTS):
        with suppress(Killed):
            opened()
        with closing(open_store(Config(home=home))) as store, suppress(Killed):
            problems(store, home)
    with closing(open_store(Config(home=home))) as store:
        assert problems(store, home)["fatal.md"] == [TOO_LONG]


def test_only_so_much_of_the_notes_is_looked_at(
    ground: Ground, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(project_notes, "MOST_BYTES", 1000)
    opened()
    names = {Path(path).name for path in stored_paths(ground)}
    assert "plain.md" in names
    assert not any(name.startswith("slow") for name in names)


def test_an_opening_without_time_leaves_the_notes_for_the_next(
    ground: Ground, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(Config, "opening_s", -1.0)
        opened()
    assert stored_paths(ground) == {}
    opened()
    assert stored_paths(ground) != {}


def test_many_notes_cost_an_opening_no_more_than_its_bounds(
    ground: Ground, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With as much time as it wants: the clock is not what bounds it."""
    (ground.repo / "notes").unlink()
    monkeypatch.setattr(project_notes, "MOST", 60)
    monkeypatch.setattr(project_notes, "MOST_BYTES", 2_000_000)
    monkeypatch.setattr(project_notes, "MOST_SEEN", 1_000)
    fill(ground.repo, 2_000)
    monkeypatch.setattr(Config, "opening_s", 1000.0)
    monkeypatch.setattr(markdown, "LEAST_S", 0.001)
    monkeypatch.setattr(markdown, "CHARACTER_S", 0.0)
    sizes: list[int] = []
    names: list[str] = []
    real_open, real_take = looking.open_regular, project_notes._take

    def counted_open(path: str, **how: bool) -> int:
        sizes.append(Path(path).stat().st_size)
        return real_open(path, **how)

    def counted_take(found: object, entry: os.DirEntry[str], *more: object) -> None:
        names.append(entry.name)
        real_take(found, entry, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(looking, "open_regular", counted_open)
    monkeypatch.setattr(project_notes, "_take", counted_take)
    for _ in ("first", "second start"):
        sizes.clear()
        names.clear()
        opened()
        assert 0 < len(sizes) <= project_notes.MOST
        assert sum(sizes) <= project_notes.MOST_BYTES
        assert len(names) <= project_notes.MOST_SEEN
    found = stored_paths(ground)
    assert [path for path in found if not path.startswith(f"{ground.repo}/")] == []
