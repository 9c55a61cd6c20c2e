"""What is forgotten leaves no byte in the index; the rest is as if it had never been there."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from foredeck.config import Config
from foredeck.derived import follower
from foredeck.derived.follower import Follower
from foredeck.derived.layer import open_layer_file
from foredeck.model.records import ForgottenDocument, forgotten_id
from foredeck.store.erasing import erase, erasure_of, plan_forgetting
from foredeck.store.protocol import Batch
from search.sessions import Searched, Talk
from store.sessions import write_sample

RARE = "kumquat_ledger"


def talk(stored: Searched, session: str, own: str) -> None:
    """A session with words, names and a file that it shares with others, and some of its own."""
    talk = Talk(stored.store, session, cwd=f"/repo/{own}")
    talk.say(user=f"Where is {own}? Look into shared_module.py", assistant=f"In src/{own}.py")
    talk.run("bash", f"{own} 1\nsharedHelper failed\n", command=f"cat src/{own}.py", failed=True)
    talk.meet("/repo/shared_module.py", "def sharedHelper(): ...\n")
    talk.meet(f"/repo/src/{own}.py", f"def {own}(): return sharedHelper()\n")


def indexed(stored: Searched, home: Path | None = None) -> dict[str, list[tuple[object, ...]]]:
    """Everything in the full-text layer, without the numbers of its rows."""
    with Follower(stored.store, "search", home or stored.home) as follower:
        follower.catch_up()
        db = follower.db
        db.execute("CREATE VIRTUAL TABLE temp.words USING fts5vocab(main, content, instance)")
        db.execute(
            "CREATE VIRTUAL TABLE temp.part USING fts5vocab(main, identifier_part, instance)"
        )
        return {name: sorted(db.execute(statement), key=repr) for name, statement in _ALL.items()}


_ALL = {
    "entry": "SELECT e.key, e.document, e.token, e.part, t.text, r.text, s.text, p.text, e.newest"
    " FROM entry e JOIN name t ON t.id = e.type JOIN name r ON r.id = e.role"
    " LEFT JOIN name s ON s.id = e.session LEFT JOIN name p ON p.id = e.path",
    "words": "SELECT e.key, w.term, w.col, w.offset FROM temp.words w LEFT JOIN entry e"
    " ON e.id = w.doc",
    "identifier": "SELECT name, uses FROM identifier",
    "part": "SELECT i.name, p.term FROM temp.part p LEFT JOIN identifier i ON i.id = p.doc",
    "name": "SELECT text FROM name",
    "folder": "SELECT n.text, f.cwd FROM folder f LEFT JOIN name n ON n.id = f.session",
    "met": "SELECT m.document, n.text FROM met m LEFT JOIN name n ON n.id = m.session",
}


def forgotten(
    stored: Searched, session: str, meanwhile: Callable[[], object] = lambda: None
) -> None:
    """`meanwhile` is called when the index holds nothing of it any more, the store still all."""
    going = erasure_of(plan_forgetting(stored.store, [session]))
    erase(Config(home=stored.home), stored.store, going, lambda _: meanwhile())


def was_made_again(stored: Searched) -> bool:
    """Since `mark`."""
    (path,) = (stored.home / "layers").glob("search-*.sqlite")
    with closing(open_layer_file(path)) as db:
        return not db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'marker'").fetchall()


def mark(stored: Searched) -> None:
    indexed(stored)
    (path,) = (stored.home / "layers").glob("search-*.sqlite")
    with closing(open_layer_file(path)) as db:
        db.execute("CREATE TABLE marker (id INTEGER)")


def test_the_rest_is_as_if_it_had_never_been_there(stored: Searched, tmp_path: Path) -> None:
    talk(stored, "first", "apricot")
    write_sample(stored.store, "sample")
    indexed(stored)
    talk(stored, "second", RARE)
    talk(stored, "third", "papaya")
    mark(stored)
    for name in ("notes", "worklog"):  # these are emptied
        with Follower(stored.store, name, stored.home) as follower:
            follower.catch_up()
    assert RARE.encode() in stored.index_bytes()
    forgotten(stored, "second")
    assert RARE.encode() not in stored.index_bytes()
    assert b"kumquat" not in stored.index_bytes()
    assert indexed(stored) == indexed(stored, tmp_path / "another home")
    assert stored.found("shared_module")
    assert stored.find("kumquat").total == 0
    talk(stored, "fourth", "quince")
    assert indexed(stored) == indexed(stored, tmp_path / "a third home")
    assert not was_made_again(stored)


def test_nothing_of_it_is_left_in_free_pages_of_before(stored: Searched) -> None:
    for number in range(12):  # so that pieces of the index have been merged, and pages freed
        talk(stored, f"second {number}", f"{RARE}_{number}")
        indexed(stored)
    mark(stored)
    assert stored.index_bytes().count(RARE.encode()) > 12
    for number in range(12):
        forgotten(stored, f"second {number}")
    assert b"kumquat" not in stored.index_bytes()
    assert not was_made_again(stored)


def test_what_fails_or_is_killed_on_the_way_leaves_a_layer_that_is_made_again(
    stored: Searched, tmp_path: Path
) -> None:
    talk(stored, "first", "apricot")
    talk(stored, "second", RARE)
    mark(stored)
    with pytest.raises(RuntimeError, match="killed"):
        forgotten(stored, "second", lambda: killed(stored))
    assert stored.found(RARE), "it is still stored"
    assert was_made_again(stored)
    assert indexed(stored) == indexed(stored, tmp_path / "another home")


def killed(stored: Searched) -> None:
    assert b"kumquat" not in stored.index_bytes(), "before anything is erased"
    raise RuntimeError("killed")


def test_another_erasure_in_between_makes_it_again(stored: Searched, tmp_path: Path) -> None:
    for session in ("first", "second"):
        talk(stored, session, f"{RARE}_{session}")
    mark(stored)
    elsewhere = ForgottenDocument(id=forgotten_id("x"), session="x", documents=1, blobs=0)
    forgotten(stored, "second", lambda: stored.store.commit(Batch(puts=[elsewhere.seal()])))
    assert indexed(stored) == indexed(stored, tmp_path / "another home")
    assert was_made_again(stored)


def test_who_makes_it_again_in_between_is_noticed(
    stored: Searched, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk(stored, "first", "apricot")
    talk(stored, "second", RARE)
    mark(stored)
    overwrite = follower._overwrite

    def then_somebody_searches(db: sqlite3.Connection) -> None:
        overwrite(db)
        monkeypatch.setattr(follower, "_overwrite", overwrite)
        assert stored.found(RARE)

    monkeypatch.setattr(follower, "_overwrite", then_somebody_searches)
    forgotten(stored, "second")
    assert b"kumquat" not in stored.index_bytes()
    assert stored.find(RARE).total == 0
    assert stored.found("apricot")


def test_what_does_not_read_as_it_did_makes_it_again(stored: Searched) -> None:
    talk(stored, "first", "apricot")
    talk(stored, "second", RARE)
    mark(stored)
    (path,) = (stored.home / "layers").glob("search-*.sqlite")
    with closing(open_layer_file(path)) as db:
        db.execute("UPDATE entry SET key = -key")
    forgotten(stored, "second")
    assert b"kumquat" not in stored.index_bytes()
    assert stored.found("apricot")
    assert was_made_again(stored)
