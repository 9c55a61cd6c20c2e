"""A layer equals one that was made at once, whatever happened to it and to its store."""

from __future__ import annotations

import sqlite3
import stat
import threading
from contextlib import closing
from pathlib import Path

import pytest

from foredeck.derived import follower as following
from foredeck.derived import load_layer
from foredeck.derived.follower import Follower, erasing
from foredeck.derived.layer import LayerBusy
from foredeck.errors import StoreUnavailable
from foredeck.store.erasing import Erasure
from foredeck.store.protocol import Batch, Origin, Token
from foredeck.store.store import open_sqlite
from foredeck_bench.crash.other_acts import contents
from search.sessions import Searched, Talk
from store.documents import file
from store.sessions import write_sample


def caught_up(stored: Searched) -> dict[str, list[tuple[object, ...]]]:
    with Follower(stored.store, "search", stored.home) as follower:
        follower.catch_up()
        return contents(follower.db)


def fresh(stored: Searched, tmp_path: Path) -> dict[str, list[tuple[object, ...]]]:
    with Follower(stored.store, "search", tmp_path / "another home") as follower:
        follower.make_again()
        return contents(follower.db)


def test_in_steps_as_at_once(
    stored: Searched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "BATCH", 2)
    write_sample(stored.store, "first")
    caught_up(stored)
    write_sample(stored.store, "second")
    assert caught_up(stored) == fresh(stored, tmp_path)


def test_the_file_is_private(stored: Searched) -> None:
    caught_up(stored)
    for path in (stored.home / "layers").iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_an_import_into_a_known_transaction_makes_it_again(
    stored: Searched, tmp_path: Path
) -> None:
    origin = Origin(Token("elsewhere-1"), 1_000)
    stored.store.commit(Batch(puts=[file("/a", "one apple")]), origin=origin)
    Talk(stored.store, "later").say(user="an apple too")
    caught_up(stored)
    stored.store.commit(Batch(puts=[file("/b", "an apple that came late")]), origin=origin)
    assert len(stored.found("apple")) == 3
    assert caught_up(stored) == fresh(stored, tmp_path)


def test_an_older_version_that_comes_later_is_not_the_newest(stored: Searched) -> None:
    stored.store.commit(Batch(puts=[file("/a", "new quince")]))
    caught_up(stored)
    origin = Origin(Token("elsewhere-1"), 1_000)
    stored.store.commit(Batch(puts=[file("/a", "old quince medlar")]), origin=origin)
    assert stored.find("medlar").hits[0].entry.newest == 0
    assert stored.find("new").hits[0].entry.newest == 1


def test_another_store_has_another_layer(stored: Searched, tmp_path: Path) -> None:
    Talk(stored.store, "one").say(user="mango")
    assert stored.found("mango")
    with closing(open_sqlite(tmp_path / "other.db")) as other:
        assert Searched(stored.home, other).found("mango") == []
    assert stored.found("mango")


def test_a_store_that_went_back_to_a_backup_makes_it_again(
    stored: Searched, tmp_path: Path
) -> None:
    Talk(stored.store, "one").say(user="kept papaya")
    with (
        closing(sqlite3.connect(tmp_path / "backup.db")) as backup,
        closing(sqlite3.connect(stored.home / "foredeck.db")) as source,
    ):
        source.backup(backup)
    Talk(stored.store, "two").say(user="lost papaya")
    assert len(stored.found("papaya")) == 2
    with closing(open_sqlite(tmp_path / "backup.db")) as restored:
        assert len(Searched(stored.home, restored).found("papaya")) == 1


def test_older_tables_are_made_again_and_newer_ones_left_alone(
    stored: Searched, monkeypatch: pytest.MonkeyPatch
) -> None:
    Talk(stored.store, "one").say(user="cherry")
    caught_up(stored)
    layer = load_layer("search")
    monkeypatch.setattr(type(layer), "version", layer.version + 1)
    assert stored.found("cherry")
    monkeypatch.setattr(type(layer), "version", layer.version - 1)
    with pytest.raises(StoreUnavailable, match="doctor --rebuild"):
        stored.found("cherry")


def test_a_damaged_file_is_made_again(stored: Searched) -> None:
    Talk(stored.store, "one").say(user="apricot")
    assert stored.found("apricot")
    (path,) = (stored.home / "layers").glob("*.sqlite")
    path.write_bytes(b"no database at all" * 1000)
    assert stored.found("apricot")


def test_writers_take_turns(
    stored: Searched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "BATCH", 3)
    write_sample(stored.store)
    failed: list[BaseException] = []

    def follow() -> None:
        try:
            with (
                closing(open_sqlite(stored.home / "foredeck.db")) as store,
                Follower(store, "search", stored.home) as follower,
            ):
                follower.catch_up()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=follow) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert caught_up(stored) == fresh(stored, tmp_path)


def test_a_reader_does_not_wait_for_a_writer(stored: Searched) -> None:
    Talk(stored.store, "one").say(user="lemon")
    with Follower(stored.store, "search", stored.home) as writer:
        writer.catch_up()
        writer.db.execute("BEGIN IMMEDIATE")
        writer.db.execute("DELETE FROM entry")
        with closing(sqlite3.connect(writer.path, timeout=0)) as reader:
            assert reader.execute("SELECT count(*) FROM entry").fetchone() == (1,)
        writer.db.execute("ROLLBACK")


def test_only_what_has_something_to_take_in_waits_for_a_writer(stored: Searched) -> None:
    Talk(stored.store, "one").say(user="lemon")
    with (
        Follower(stored.store, "search", stored.home) as writer,
        Follower(stored.store, "search", stored.home, patience_s=0) as other,
    ):
        writer.catch_up()
        writer.db.execute("BEGIN IMMEDIATE")
        assert other.catch_up() == 0
        Talk(stored.store, "two").say(user="lime")
        with pytest.raises(LayerBusy, match="another process is writing"):
            other.catch_up()
        writer.db.execute("ROLLBACK")
        assert other.catch_up() > 0


def test_what_is_emptied_leaves_no_text_and_is_made_again(stored: Searched) -> None:
    Talk(stored.store, "one").say(user="a kumquat")
    assert stored.found("kumquat")
    assert b"kumquat" in stored.index_bytes()
    with erasing(stored.home, stored.store, Erasure([], [])):
        assert b"kumquat" not in stored.index_bytes()
    assert b"kumquat" not in stored.index_bytes()
    assert stored.found("kumquat")
