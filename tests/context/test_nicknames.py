"""Giving nicknames: the object stays as it is, and no name means two objects."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from foredeck.context.state.descriptions import give_nickname, nicknames
from foredeck.errors import ToolError
from foredeck.model.records import nickname_id
from foredeck.store.protocol import Batch, Head, Origin, Token
from foredeck.store.store import Store, open_sqlite
from store.documents import file


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[list[Store]]:
    """Two connections to one database."""
    with ExitStack() as stack:
        yield [stack.enter_context(closing(open_sqlite(tmp_path / "a.db"))) for _ in range(2)]


def put(store: Store, path: str) -> Head:
    store.commit(Batch(puts=[document := file(path)]))
    return store.heads([document.id])[document.id]


class Interrupted:
    """A store in which somebody else writes just before the first commit."""

    def __init__(self, store: Store, meanwhile: Callable[[], object]) -> None:
        self._store = store
        self._meanwhile: list[Callable[[], object]] = [meanwhile]

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    def commit(self, batch: Batch, *, origin: Origin | None = None) -> Token:
        if self._meanwhile:
            self._meanwhile.pop()()
        return self._store.commit(batch, origin=origin)


def owner_of(store: Store, name: str) -> str | None:
    claim = store.head(nickname_id(name))
    return None if claim is None else claim.fields["object"]


def test_of_two_names_at_once_the_later_holds(stores: list[Store]) -> None:
    store, other = stores
    head = put(store, "/repo/a.txt")
    interrupted = Interrupted(store, lambda: give_nickname(other, head, "theirs"))
    assert give_nickname(interrupted, head, "ours")  # type: ignore[arg-type]
    assert nicknames(store) == {head.id: "ours"}
    assert give_nickname(store, head, "last")
    assert {owner_of(store, name) for name in ("theirs", "ours")} == {None}
    assert owner_of(store, "last") == head.id


def test_one_name_for_two_objects_at_once_is_refused(stores: list[Store]) -> None:
    store, other = stores
    head, rival = put(store, "/repo/a.txt"), put(store, "/repo/b.txt")
    interrupted = Interrupted(store, lambda: give_nickname(other, rival, "spec"))
    with pytest.raises(ToolError, match=r"belongs to another object, /repo/b\.txt"):
        give_nickname(interrupted, head, "spec")  # type: ignore[arg-type]
    assert owner_of(store, "spec") == rival.id
