"""Commits that repeat a transaction of another store."""

from __future__ import annotations

import pytest

from foredeck.errors import Conflict
from foredeck.model.documents import Document
from foredeck.model.messages import put_blob
from foredeck.store.protocol import Batch, Origin, Token
from foredeck.store.store import Store

from .contract import contents
from .documents import batch, file, note

ORIGIN = Origin(Token("feedbeef-7"), 1_600_000_000_000)
LATER = Origin(Token("feedbeef-9"), 1_600_000_000_500)


class OriginContract:
    """Imported transactions keep token and time; repeating one changes nothing."""

    def test_token_and_time_are_kept(self, store: Store) -> None:
        local = store.commit(batch(note("local")))
        assert store.commit(batch(note("a", "one")), origin=ORIGIN) == ORIGIN.token
        store.commit(batch(note("a", "two")), origin=LATER)
        assert [(h.token, h.time_ms) for h in store.history("a")] == [
            (ORIGIN.token, ORIGIN.time_ms),
            (LATER.token, LATER.time_ms),
        ]
        assert store.latest() == LATER.token
        assert store.get("a", Document, ORIGIN.token).content == "one"
        assert store.history("local")[0].token == local

    def test_the_same_again_is_a_no_op(self, store: Store) -> None:
        puts = [note("a", "long " * 2_000), file("/a", source_hash="00" * 32)]
        store.commit(Batch(puts=puts), origin=ORIGIN)
        latest = store.commit(batch(note("later")))
        assert store.commit(Batch(puts=puts), origin=ORIGIN) == ORIGIN.token
        assert store.commit(Batch(puts=puts[:1]), origin=ORIGIN) == ORIGIN.token
        assert store.latest() == latest
        assert len(store.history("a")) == 1
        assert len(store.changes_since(None)) == 3

    def test_a_no_op_even_if_the_document_has_gone_on(self, store: Store) -> None:
        store.commit(batch(note("a", "imported")), origin=ORIGIN)
        store.commit(batch(note("a", "local")))
        store.commit(batch(note("a", "imported")), origin=ORIGIN)
        assert contents(store, "a") == ["imported", "local"]

    @pytest.mark.parametrize(
        "other",
        [note("a", "other"), note("a", nickname="other"), note("a", source_hash="11" * 32)],
        ids=["content", "field", "source hash"],
    )
    def test_other_fields_conflict(self, store: Store, other: Document) -> None:
        store.commit(batch(note("a")), origin=ORIGIN)
        blobs: dict[str, bytes] = {}
        digest = put_blob(b"data", blobs)
        with pytest.raises(Conflict):
            store.commit(batch(note("b"), other, blobs=blobs), origin=ORIGIN)
        assert store.get("a", Document) == note("a")
        assert store.head("b") is None
        assert store.blobs([digest]) == {}

    def test_further_ids_join_a_known_transaction(self, store: Store) -> None:
        store.commit(batch(note("a")), origin=ORIGIN)
        between = store.commit(batch(note("between")))
        store.commit(batch(note("b", "added", session="s")), origin=ORIGIN)
        store.commit(batch(note("a"), note("c")), origin=ORIGIN)
        assert store.latest() == between
        assert store.get("b", Document, ORIGIN.token).content == "added"
        head = store.head("b")
        assert (head.token, head.time_ms) == (ORIGIN.token, ORIGIN.time_ms)
        assert [h.id for h in store.query("note", {"session": "s"})] == ["b"]
        assert {h.id for h in store.query("note")[:3]} == {"a", "b", "c"}
        assert {c.id for c in store.changes_since(None)} == {"a", "b", "c", "between"}
        assert [c.id for c in store.changes_since(ORIGIN.token)] == ["between"]

    def test_an_older_version_takes_its_place_before_newer_ones(self, store: Store) -> None:
        early = store.commit(batch(note("guard")), origin=LATER)
        newest = store.commit(batch(note("a", "local", session="new")))
        store.commit(batch(note("a", "imported", session="old")), origin=ORIGIN)
        assert contents(store, "a") == ["imported", "local"]
        assert [head.token for head in store.history("a")] == [ORIGIN.token, newest]
        assert store.head("a").token == newest
        assert store.get("a", Document, early).content == "imported"
        assert [h.token for h in store.query("note", {"session": "new"})] == [newest]
        assert store.query("note", {"session": "old"}) == []
        assert store.transactions([newest, ORIGIN.token])[0] == ORIGIN
        assert [change.token for change in store.changes_since(newest)] == [ORIGIN.token]
        with pytest.raises(Conflict):
            store.commit(batch(note("a"), expect={"a": ORIGIN.token}))

    def test_transactions_of_one_time_go_by_the_number_of_their_token(self, store: Store) -> None:
        tokens = [Token(f"feedbeef-{n}") for n in (9, 10, 100)]
        for token in (tokens[2], tokens[0], tokens[1]):
            store.commit(batch(note("a", token)), origin=Origin(token, ORIGIN.time_ms))
        assert contents(store, "a") == tokens
        assert store.head("a").token == tokens[2]

    def test_the_next_local_transaction_is_the_newest(self, store: Store) -> None:
        future = Origin(Token("feedbeef-900"), 4_000_000_000_000)
        store.commit(batch(note("a", "imported")), origin=future)
        store.commit(batch(note("a", "local")))
        store.commit(batch(note("a", "again")))
        assert contents(store, "a") == ["imported", "local", "again"]

    def test_expectations_hold_for_imports_too(self, store: Store) -> None:
        store.commit(batch(note("a")))
        with pytest.raises(Conflict):
            store.commit(batch(note("a", "imported"), expect={"a": None}), origin=ORIGIN)
        assert len(store.history("a")) == 1

    def test_a_token_that_this_store_would_have_made_next(self, store: Store) -> None:
        name, _, number = store.commit(batch(note("a"))).rpartition("-")
        taken = {Token(f"{name}-{int(number) + n}") for n in range(1, 6)}
        for n, token in enumerate(sorted(taken)):
            store.commit(batch(note(f"imported {n}")), origin=Origin(token, ORIGIN.time_ms))
        made = {store.commit(batch(note(f"local {n}"))) for n in range(10)}
        assert len(made) == 10
        assert not made & taken
