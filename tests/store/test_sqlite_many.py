"""Transactions of another store, written in one go."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from foredeck.errors import Conflict
from foredeck.model.documents import Document
from foredeck.store.protocol import Batch, Origin, Token
from foredeck.store.store import Store, open_sqlite

from .documents import batch, note

LONG = "much the same line\n" * 500


def transactions() -> list[tuple[Origin, Batch]]:
    """Not in the order of their times; one text stands in two of them."""
    return [
        (Origin(Token(f"feedbeef-{n}"), time), batch(note("a", f"{time}"), note(f"b{n}", LONG)))
        for n, time in enumerate([30, 10, 20])
    ]


def tell(store: Store) -> object:
    """All that can be read."""
    tokens = [change.token for change in store.changes_since(None)]
    contents = [store.get("a", Document, token) for token in tokens]
    return store.changes_since(None), store.history("a"), contents, store.get("b2", Document)


def test_all_at_once_is_as_one_after_the_other(tmp_path: Path) -> None:
    with (
        closing(open_sqlite(tmp_path / "one.db")) as one,
        closing(open_sqlite(tmp_path / "all.db")) as other,
    ):
        for origin, put in transactions():
            one.commit(put, origin=origin)
        other.commit_all(transactions())
        assert repr(tell(one)) == repr(tell(other))
        other.commit_all(transactions())
        assert repr(tell(one)) == repr(tell(other))


def test_all_or_none(tmp_path: Path) -> None:
    with closing(open_sqlite(tmp_path / "store.db")) as store:
        token = store.commit(batch(note("b2", "another")))
        (known,) = store.transactions([token])
        wrong = Origin(token, known.time_ms + 1), batch(note("c"))
        with pytest.raises(Conflict):
            store.commit_all([*transactions(), wrong])
        assert [change.id for change in store.changes_since(None)] == ["b2"]


def test_within_is_called_for_each_transaction(tmp_path: Path) -> None:
    calls: list[tuple[list[str], str]] = []

    def note_down(_db: sqlite3.Connection, put: Batch, token: Token) -> None:
        calls.append(([document.id for document in put.puts], token))

    with closing(open_sqlite(tmp_path / "store.db", within=note_down)) as store:
        store.commit_all(transactions())
    assert calls == [(["a", f"b{n}"], f"feedbeef-{n}") for n in range(3)]
