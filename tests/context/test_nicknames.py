"""Giving nicknames: the object stays as it is, and no name means two objects."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from foredeck.context.state.descriptions import give_nickname, nicknames
from foredeck.errors import ToolError
from foredeck.model.documents import ChatDocument, FileDocument, Provenance, identity_hash
from foredeck.model.records import nickname_id
from foredeck.model.sources import FilesystemSource
from foredeck.store.protocol import Batch, Head, Origin, Token
from foredeck.store.store import Store, open_sqlite

BY_DISK = Provenance(origin="disk", generator="system")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A database that several connections open."""
    return tmp_path / "foredeck.db"


@pytest.fixture
def store(file: Path) -> Iterator[Store]:
    with closing(open_sqlite(file)) as opened:
        yield opened


def file_document(content: str, path: str = "/repo/a.txt") -> FileDocument:
    source = FilesystemSource(filesystemId="here", path=path)
    return FileDocument(
        id=identity_hash("file", source), source=source, content=content, provenance=BY_DISK
    ).seal()


def put(store: Store, document: FileDocument | ChatDocument) -> Head:
    store.commit(Batch(puts=[document]))
    head = store.head(document.id)
    assert head is not None
    return head


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


def test_of_two_names_at_once_the_later_holds(store: Store, file: Path) -> None:
    head = put(store, file_document("text"))
    with closing(open_sqlite(file)) as other:
        interrupted = Interrupted(store, lambda: give_nickname(other, head, "theirs"))
        assert give_nickname(interrupted, head, "ours")  # type: ignore[arg-type]
    assert nicknames(store) == {head.id: "ours"}
    assert give_nickname(store, head, "last")
    assert {owner_of(store, name) for name in ("theirs", "ours")} == {None}
    assert owner_of(store, "last") == head.id


def test_one_name_for_two_objects_at_once_is_refused(store: Store, file: Path) -> None:
    head, rival = put(store, file_document("a")), put(store, file_document("b", "/repo/b.txt"))
    with closing(open_sqlite(file)) as other:
        interrupted = Interrupted(store, lambda: give_nickname(other, rival, "spec"))
        with pytest.raises(ToolError, match=r"belongs to another object, /repo/b\.txt"):
            give_nickname(interrupted, head, "spec")  # type: ignore[arg-type]
    assert owner_of(store, "spec") == rival.id
