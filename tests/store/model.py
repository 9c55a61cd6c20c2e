"""The store as a few dicts, and a state machine that compares an adapter with it.

`StoreComparison` drives any adapter: subclass it with `open_store`.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
)

from foredeck.errors import Conflict, Missing
from foredeck.model.documents import Document
from foredeck.model.identity import encode_text, sha256_hex
from foredeck.store.protocol import Batch, Change, Head, Origin, Scalar, Token, order_of
from foredeck.store.store import Store

from .documents import file, note


@dataclass
class ModelStore:
    """What a store should hold."""

    arrived: list[Token] = field(default_factory=list)
    times: dict[Token, int] = field(default_factory=dict)
    versions: dict[Token, dict[str, Document]] = field(default_factory=dict)
    blobs: dict[str, bytes] = field(default_factory=dict)

    def history(self, id: str) -> list[tuple[Token, Document]]:
        """All versions, in the order of time."""
        tokens = sorted(self.times, key=lambda token: order_of(Origin(token, self.times[token])))
        return [(token, self.versions[token][id]) for token in tokens if id in self.versions[token]]

    def at(self, id: str, token: Token | None) -> tuple[Token, Document] | None:
        """The newest version, as of a transaction."""
        end = None if token is None else order_of(Origin(token, self.times[token]))
        found = [
            (t, document)
            for t, document in self.history(id)
            if end is None or order_of(Origin(t, self.times[t])) <= end
        ]
        return found[-1] if found else None

    def ids(self) -> list[str]:
        """All documents, in the order in which their transactions came in."""
        return list(dict.fromkeys(id for token in self.arrived for id in self.versions[token]))

    def conflicts(self, batch: Batch, origin: Origin | None) -> bool:
        """Whether a commit must be refused."""
        for id, expected in batch.expect.items():
            newest = self.at(id, None)
            if (newest[0] if newest else None) != expected:
                return True
        if origin is not None and self.times.get(origin.token, origin.time_ms) != origin.time_ms:
            return True
        known = self.versions.get(origin.token, {}) if origin else {}
        for document in batch.puts:
            newest = self.at(document.id, None)
            if newest and newest[1].identity_hash != document.identity_hash:
                return True
            if known.get(document.id, document) != document:
                return True
        return False

    def write(self, token: Token, time_ms: int, batch: Batch) -> None:
        """Take in a commit that was accepted."""
        if token not in self.times:
            self.arrived.append(token)
            self.times[token] = time_ms
        self.versions.setdefault(token, {}).update({d.id: d for d in batch.puts})
        self.blobs.update(batch.blobs)


IDS = ["a", "b", "c\ud800", "d\0", ""]
TEXTS = st.one_of(
    st.none(),
    st.sampled_from(["", "one", "two", "\ud83d", "x" * 600, "y\u2028" * 3_000]),
    st.text(st.characters(exclude_categories=()), max_size=20),
)
VALUES = st.sampled_from([None, True, False, 0, 1, -1, 2**60, "", "1", "x"])
JSON = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        TEXTS,
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)
FIELDS = ("session", "object", "odd")
FOREIGN = [Origin(Token(f"feedbeef-{n}"), 1_600_000_000_000 + n // 3) for n in range(9)]


@st.composite
def documents(draw: st.DrawFn) -> Document:
    """A note with indexed and other fields, or a file; ids repeat."""
    if draw(st.booleans()):
        fields = {name: draw(VALUES) for name in FIELDS}
        return note(draw(st.sampled_from(IDS)), draw(TEXTS), extra=draw(JSON), **fields)
    return file(
        draw(st.sampled_from(["/a", "/b", "/\u2028"])),
        draw(TEXTS),
        draw(st.sampled_from(["fs1", "fs2"])),
        nickname=draw(st.sampled_from([None, "n"])),
        source_hash=draw(st.sampled_from([None, "00" * 32, "odd"])),
    )


def batches() -> st.SearchStrategy[Batch]:
    """Documents with distinct ids, and blobs."""
    return st.builds(
        lambda puts, data: Batch(puts, {sha256_hex(item): item for item in data}),
        st.lists(documents(), max_size=4, unique_by=lambda document: document.id),
        st.lists(st.binary(max_size=700), max_size=2),
    )


class StoreComparison(RuleBasedStateMachine):
    """Does the same to a store and to the model, and looks at all of both after each step."""

    tokens: Bundle[Token] = Bundle("tokens")

    def open_store(self, folder: Path) -> Store:
        """The store in `folder`."""
        raise NotImplementedError

    @initialize()
    def start(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.store = self.open_store(self.folder)
        self.model = ModelStore()

    def teardown(self) -> None:
        self.store.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _commit(self, batch: Batch, origin: Origin | None = None) -> Any:
        if self.model.conflicts(batch, origin):
            with pytest.raises(Conflict):
                self.store.commit(batch, origin=origin)
            return multiple()
        token = self.store.commit(batch, origin=origin)
        assert origin is None or token == origin.token
        assert (token in self.model.times) == (origin is not None and token in self.model.times)
        (transaction,) = self.store.transactions([token])
        if origin is None:
            times = [order_of(Origin(t, time)) for t, time in self.model.times.items()]
            assert all(order_of(transaction) > order for order in times)
        self.model.write(token, transaction.time_ms, batch)
        return token

    @rule(target=tokens, batch=batches())
    def commit(self, batch: Batch) -> Any:
        return self._commit(batch)

    @rule(target=tokens, document=documents(), data=st.data())
    def compare_and_put(self, document: Document, data: st.DataObject) -> Any:
        known: list[Token | None] = [None, *self.model.arrived]
        newest = self.model.at(document.id, None)
        wanted = st.one_of(st.just(newest[0] if newest else None), st.sampled_from(known))
        return self._commit(Batch([document], expect={document.id: data.draw(wanted)}))

    @rule(target=tokens, batch=batches(), origin=st.sampled_from(FOREIGN))
    def import_transaction(self, batch: Batch, origin: Origin) -> Any:
        return self._commit(batch, origin)

    @rule(target=tokens, batch=batches(), token=tokens)
    def join_transaction(self, batch: Batch, token: Token) -> Any:
        return self._commit(batch, Origin(token, self.model.times[token]))

    @rule(token=tokens)
    def repeat_transaction(self, token: Token) -> None:
        latest = self.store.latest()
        puts = list(self.model.versions[token].values())
        self._commit(Batch(puts), Origin(token, self.model.times[token]))
        assert self.store.latest() == latest

    @rule(token=consumes(tokens))
    def wrong_time(self, token: Token) -> None:
        with pytest.raises(Conflict):
            self.store.commit(Batch(), origin=Origin(token, self.model.times[token] + 1))

    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.store = self.open_store(self.folder)

    @rule(token=tokens, id=st.sampled_from([*IDS, file("/a", filesystem="fs1").id]))
    def read_as_of(self, token: Token, id: str) -> None:
        expected = self.model.at(id, token)
        found = self.store.get(id, Document, token)
        head = self.store.head(id, token)
        if expected is None:
            assert found is None
            assert head is None
        else:
            assert found.model_dump() == expected[1].model_dump()
            self._check_head(head, *expected)

    @rule(name=st.sampled_from(FIELDS), value=VALUES)
    def query_notes(self, name: str, value: Scalar | None) -> None:
        self._check_query("note", name, value)

    @rule(name=st.sampled_from(["source.path", "source.filesystemId", "nickname"]))
    def query_files(self, name: str) -> None:
        for value in ("/a", "fs2", "n", None):
            self._check_query("file", name, value)

    def _check_query(self, type: str, name: str, value: Scalar | None) -> None:
        heads = self.store.query(type, {name: value})
        expected = {
            id
            for id in self.model.ids()
            if (newest := self._newest(id)).type == type and _has(newest, name, value)
        }
        assert {head.id for head in heads} == expected
        assert len(heads) == len(expected)

    def _newest(self, id: str) -> Document:
        return self.model.at(id, None)[1]

    @precondition(lambda self: hasattr(self, "model"))
    @invariant()
    def all_is_equal(self) -> None:
        model, store = self.model, self.store
        assert store.latest() == (model.arrived[-1] if model.arrived else None)
        ids = model.ids()
        assert set(store.heads([*ids, "absent"])) == set(ids)
        for id in ids:
            history = store.history(id)
            expected = model.history(id)
            assert len(history) == len(expected)
            for head, (token, document) in zip(history, expected, strict=True):
                self._check_head(head, token, document)
            assert store.get(id, Document).model_dump() == expected[-1][1].model_dump()
        self._check_changes()
        assert store.blobs(model.blobs) == model.blobs
        with pytest.raises(Missing):
            store.head("a", Token("unknown-1"))

    def _check_head(self, head: Head | None, token: Token, document: Document) -> None:
        assert (head.id, head.type, head.token) == (document.id, document.type, token)
        assert head.time_ms == self.model.times[token]
        assert dict(head.fields) == document.model_dump(exclude={"content"})
        if document.content is not None and len(document.content) > 4_096:
            assert document.text_hash is not None
            assert self.store.blob(document.text_hash) == encode_text(document.content)

    def _check_changes(self) -> None:
        expected = [
            Change(token, self.model.times[token], id, document.type)
            for token in self.model.arrived
            for id, document in self.model.versions[token].items()
        ]
        pages: list[Change] = []
        token: Token | None = None
        while page := self.store.changes_since(token, limit=3):
            pages.extend(page)
            token = page[-1].token
        order = {token: place for place, token in enumerate(self.model.arrived)}
        assert [change.token for change in pages] == [change.token for change in expected]
        assert sorted(pages, key=lambda c: (order[c.token], c.id)) == sorted(
            expected, key=lambda c: (order[c.token], c.id)
        )


def _has(document: Document, name: str, value: Scalar | None) -> bool:
    fields: Any = document.model_dump()
    if name.startswith("source."):
        fields, name = fields["source"] or {}, name.removeprefix("source.")
    found = fields.get(name)
    return type(found) is type(value) and bool(found == value)
