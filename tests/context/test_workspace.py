"""One transaction in the making: what is read in it, and what was asked for ahead."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from foredeck.context.state.objects import PENDING, Workspace
from foredeck.store.protocol import Batch, Store
from foredeck.store.sqlite.adapter import open_sqlite
from store.documents import note


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(open_sqlite(tmp_path / "store.db")) as opened:
        yield opened


def test_what_was_asked_for_ahead_holds_until_the_transaction_ends(store: Store) -> None:
    first = store.commit(Batch(puts=[note("a")]))
    workspace = Workspace(store)
    workspace.look_up(["a", "b", "a"])
    second = store.commit(Batch(puts=[note("a", "other"), note("b")]))
    workspace.look_up(["a"])
    assert [_token(workspace, id) for id in ("a", "b")] == [first, None]
    workspace.put(note("c"))
    workspace.commit()
    assert [_token(workspace, id) for id in ("a", "b")] == [second, second]


def test_what_is_written_goes_before_what_was_asked_for(store: Store) -> None:
    workspace = Workspace(store)
    workspace.look_up(["a"])
    workspace.put(note("a", "new"))
    assert _token(workspace, "a") == PENDING
    workspace.discard()
    assert _token(workspace, "a") is None


def test_what_is_known_takes_its_answers_along(store: Store) -> None:
    workspace = Workspace(store)
    workspace.look_up(["a"])
    workspace.put_bytes(b"of a message that is stored already")
    token = store.commit(Batch(puts=[note("a")]))
    workspace.commit_if_new()
    assert workspace.empty
    assert _token(workspace, "a") == token


def _token(workspace: Workspace, id: str) -> str | None:
    head = workspace.head(id)
    return None if head is None else head.token
