"""What every store must do, told through the protocol alone.

An adapter's test module defines a fixture `factory` (a `StoreFactory` on an empty database)
and a subclass of each contract class, here and in the other `contract_*` modules.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from foredeck.errors import Conflict, Missing
from foredeck.model.documents import Document, FileDocument, ToolcallDocument, content_hash
from foredeck.model.identity import encode_text, sha256_hex
from foredeck.model.messages import put_blob
from foredeck.model.records import TurnDocument
from foredeck.store.protocol import Batch, Origin, Scalar, Token
from foredeck.store.store import Store

from .documents import AWKWARD, AWKWARD_IDS, PROVENANCE, batch, file, foreign_file, note
from .factory import StoreFactory


@pytest.fixture
def store(factory: StoreFactory) -> Store:
    """The first store on the database."""
    return factory.open()


def contents(store: Store, id: str) -> list[str | None]:
    """The content of every version, oldest first, each read as of its own token."""
    return [store.get(id, Document, head.token).content for head in store.history(id)]


class VersionContract:
    """Versions, history and as-of reads."""

    def test_a_document_comes_back_as_it_was_put(self, store: Store) -> None:
        call = ToolcallDocument(
            id="toolu_1",
            tool="bash",
            args={"command": "ls", "nested": {"deep": [1, {"x": None}], "big": 2**60}},
            args_display="ls",
            chat_ref="chat:s",
            file_refs=["f1", "f2"],
            content="output",
            details={"exit": 0, "ratio": 0.1},
            provenance=PROVENANCE,
        ).seal()
        store.commit(batch(call))
        assert store.get("toolu_1", ToolcallDocument) == call

    def test_reads_as_of_a_transaction_see_what_was_newest_then(self, store: Store) -> None:
        before = store.commit(batch(note("other")))
        first = store.commit(batch(note("a", "one")))
        between = store.commit(batch(note("other", "changed")))
        second = store.commit(batch(note("a", "two")))
        after = store.commit(batch(note("other", "again")))

        def content(at: Token) -> str | None:
            document = store.get("a", Document, at)
            return document.content if document else None

        assert [content(at) for at in (before, first, between, second, after)] == [
            None,
            "one",
            "one",
            "two",
            "two",
        ]
        assert store.head("a", between).token == first
        assert store.head("a", before) is None

    def test_the_same_fields_may_be_put_again(self, store: Store) -> None:
        first = store.commit(batch(note("a")))
        second = store.commit(batch(note("a")))
        assert [head.token for head in store.history("a")] == [first, second]

    def test_an_unknown_token_is_missing(self, store: Store) -> None:
        store.commit(batch(note("a")))
        unknown = Token("00000000-999")
        with pytest.raises(Missing):
            store.get("a", Document, unknown)
        with pytest.raises(Missing):
            store.head("a", unknown)
        with pytest.raises(Missing):
            store.changes_since(unknown)

    def test_a_document_is_not_read_as_another_type(self, store: Store) -> None:
        store.commit(batch(note("a")))
        with pytest.raises(ValueError, match="note"):
            store.get("a", FileDocument)

    def test_everything_is_there_after_reopening(self, factory: StoreFactory) -> None:
        first = factory.open()
        put = note("a", "long " * 2_000)
        digest = sha256_hex(b"data")
        token = first.commit(batch(put, blobs={digest: b"data"}))
        first.close()
        first.close()
        second = factory.open()
        assert second.latest() == token
        assert second.get("a", Document, token) == put
        assert second.blob(digest) == b"data"
        assert second.commit(batch(note("b"))) != token

    def test_tokens_of_two_stores_on_one_database_agree(self, factory: StoreFactory) -> None:
        one, two = factory.open(), factory.open()
        token = one.commit(batch(note("a", "one")))
        assert two.latest() == token
        later = two.commit(batch(note("a", "two")))
        assert [head.token for head in one.history("a")] == [token, later]

    def test_awkward_texts_survive(self, store: Store) -> None:
        for number, text in enumerate(AWKWARD):
            put = note(f"id {text}", text, nickname=text, extra={text: [text, {"x": text}]})
            token = store.commit(batch(put))
            assert store.get(put.id, Document) == put
            assert store.get(put.id, Document, token) == put
            assert [head.id for head in store.query("note", {"nickname": text})] == [put.id]
            assert list(store.heads([put.id])) == [put.id]
            assert [change.id for change in store.changes_since(None)][number:] == [put.id]

    def test_a_source_of_a_newer_version_is_kept_as_given(self, store: Store) -> None:
        put = foreign_file()
        store.commit(batch(put))
        assert store.get(put.id, FileDocument) == put
        assert store.head(put.id).fields["source"] == put.model_dump()["source"]
        assert [head.id for head in store.query("file", {"source.path": "/a.py"})] == [put.id]

    def test_awkward_ids_stay_apart(self, store: Store) -> None:
        tokens = [
            store.commit(batch(*(note(id, f"{n} {id}", object=id) for id in AWKWARD_IDS)))
            for n in range(2)
        ]
        assert list(store.heads(AWKWARD_IDS)) == AWKWARD_IDS
        for id in AWKWARD_IDS:
            assert contents(store, id) == [f"0 {id}", f"1 {id}"]
            assert [head.token for head in store.history(id)] == tokens
            assert [head.id for head in store.query("note", {"object": id})] == [id]
        changes = [change.id for change in store.changes_since(tokens[0])]
        assert sorted(changes) == sorted(AWKWARD_IDS)

    def test_awkward_values_survive(self, store: Store) -> None:
        values: list[Any] = [2**60, -(2**63), 10**30, 0.1, -0.0, 1e300, True, None]
        for value in [*values, [], {}, [[[]]], {"": {"": ""}}]:
            put = note("a", extra={"value": value})
            store.commit(batch(put))
            got = store.get("a", Document)
            assert got == put
            assert repr(got.model_dump()["extra"]) == repr({"value": value})


class HeadContract:
    """Heads, queries and changes: what is answered without loading content."""

    def test_a_long_content_is_no_field_of_a_head(self, store: Store) -> None:
        store.commit(batch(note("a", "long " * 2_000)))
        (head,) = store.query("note")
        assert "content" not in head.fields

    def test_heads_of_many(self, store: Store) -> None:
        ids = [f"n{i}" for i in range(1_200)]
        store.commit(batch(*(note(id, id) for id in ids)))
        store.commit(batch(note("n7", "changed")))
        found = store.heads([*reversed(ids), "absent", "n7"])
        assert list(found) == list(reversed(ids))
        assert found["n7"].token == store.latest()

    def test_query_by_type_is_oldest_first(self, store: Store) -> None:
        for id in ("c", "a", "b"):
            store.commit(batch(note(id), file(f"/{id}")))
        store.commit(batch(note("c", "changed")))
        assert [head.id for head in store.query("note")] == ["c", "a", "b"]
        assert [head.id for head in store.query("note", limit=2)] == ["c", "a"]
        assert store.query("note", limit=0) == []
        assert store.query("unknown") == []

    def test_query_by_several_fields(self, store: Store) -> None:
        for n in range(6):
            put = note(f"n{n}", session=f"s{n % 2}", object=f"o{n % 3}", ordinal=n)
            store.commit(batch(put))
        where = {"session": "s1", "object": "o0"}
        assert [head.id for head in store.query("note", where)] == ["n3"]
        assert store.query("note", {**where, "ordinal": 1}) == []
        assert [head.id for head in store.query("note", {"session": "s0", "ordinal": 4})] == ["n4"]

    @pytest.mark.parametrize("name", ["session", "flag"])
    def test_query_tells_json_types_apart(self, store: Store, name: str) -> None:
        values: dict[str, Scalar | None] = {
            "true": True,
            "one": 1,
            "text": "1",
            "zero": 0,
            "false": False,
            "none": None,
        }
        store.commit(batch(*(note(id, id, **{name: value}) for id, value in values.items())))
        for id, value in values.items():
            assert [head.id for head in store.query("note", {name: value})] == [id]

    def test_query_sees_newest_versions_only(self, store: Store) -> None:
        store.commit(batch(note("a", session="old", state="old")))
        store.commit(batch(note("a", session="new", state="new")))
        for name in ("session", "state"):
            assert store.query("note", {name: "old"}) == []
            assert [head.id for head in store.query("note", {name: "new"})] == ["a"]
        store.commit(batch(note("a", session="old")))
        assert [head.id for head in store.query("note", {"session": "old"})] == ["a"]

    def test_transactions_by_token(self, store: Store) -> None:
        tokens = [store.commit(batch(note("a", str(n)))) for n in range(12)]
        times = {head.token: head.time_ms for head in store.history("a")}
        asked = [*reversed(tokens), tokens[0], Token("unknown")]
        assert store.transactions(asked) == [Origin(token, times[token]) for token in tokens]
        assert store.transactions([]) == []


def set_fields(document: Document, **fields: Any) -> None:
    """Give a document fields that its type does not know."""
    for name, value in fields.items():
        setattr(document, name, value)


class CommitContract:
    """Atomic commits, compare-and-put, blobs."""

    def test_two_documents_with_one_id_are_refused(self, store: Store) -> None:
        with pytest.raises(ValueError, match="'a'"):
            store.commit(batch(note("a", "one"), note("a", "two")))
        assert store.latest() is None

    def test_a_document_changed_after_sealing_is_refused(self, store: Store) -> None:
        unsealed = Document(id="a", type="note", provenance=PROVENANCE)
        edited, relabelled, moved = note("b"), note("c"), file("/c")
        edited.content = "other"
        relabelled.nickname = "other"
        moved.source = None
        deep, copied = note("d", of={"list": [1]}), note("e").model_copy(update={"content": "x"})
        deep.model_extra["of"]["list"].append(2)
        for document in (unsealed, edited, relabelled, moved, deep, copied):
            with pytest.raises(ValueError, match="changed after it was computed"):
                store.commit(batch(note("good"), document))
        assert store.latest() is None

    def test_what_was_sealed_is_stored(self, store: Store) -> None:
        again = note("a")
        again.content = "other"
        equal_to_python = note("b", flag=1, ratio=1)
        set_fields(equal_to_python, flag=True, ratio=1.0)
        store.commit(batch(again.seal(), equal_to_python))
        assert contents(store, "a") == ["other"]
        assert repr(store.get("b", Document).model_extra) == repr({"flag": 1, "ratio": 1})

    def test_summaries_come_back_with_their_hashes(self, store: Store) -> None:
        described, plain = file("/a"), file("/b")
        described.view = ["path", "short_summary"]
        set_fields(described, short_summary="What it is", long_summary="All\nof it \ud83d")
        store.commit(batch(described.seal(), plain))
        loaded = store.get(described.id, FileDocument)
        assert loaded == described
        assert loaded.metadata_view()[2:] == [["path", "/a"], ["short_summary", "What it is"]]
        assert store.head(described.id).fields["short_summary_hash"] == sha256_hex(b"What it is")
        assert not {name for name in store.head(plain.id).fields if "summary" in name}

    def test_a_summary_that_does_not_fit_its_hash_is_refused(self, store: Store) -> None:
        described = file("/a")
        set_fields(described, short_summary="What it is")
        described.seal()
        set_fields(described, short_summary_hash=sha256_hex(b"other"))
        described.content_hash = content_hash(described.model_dump())
        with pytest.raises(ValueError, match="short_summary does not fit its hash"):
            store.commit(batch(described))
        assert store.latest() is None

    def test_a_document_of_the_wrong_class_is_refused(self, store: Store) -> None:
        plain = Document(id="a", type="turn", provenance=PROVENANCE).seal()
        with pytest.raises(ValueError, match="TurnDocument"):
            store.commit(batch(plain))
        assert store.latest() is None

    def test_a_blob_under_a_wrong_hash_is_refused(self, store: Store) -> None:
        wrong = sha256_hex(b"other")
        with pytest.raises(ValueError, match=wrong):
            store.commit(batch(note("a"), blobs={wrong: b"data"}))
        assert store.latest() is None
        with pytest.raises(Missing):
            store.blob(wrong)

    def test_blobs_come_back(self, store: Store) -> None:
        sizes = (0, 1, 511, 512, 4_096, 100_000, 2_000_000)
        for size, pattern in product(sizes, (b"text ", bytes(range(256)))):
            data = (pattern * (size // len(pattern) + 1))[:size]
            blobs: dict[str, bytes] = {}
            digest = put_blob(data, blobs)
            store.commit(Batch(blobs=blobs))
            store.commit(Batch(blobs=blobs))
            assert store.blob(digest) == data

    def test_many_blobs_and_missing_ones(self, store: Store) -> None:
        blobs: dict[str, bytes] = {}
        for n in range(1_100):
            put_blob(str(n).encode(), blobs)
        store.commit(Batch(blobs=blobs))
        assert store.blobs([*blobs, sha256_hex(b"absent"), "not a hash"]) == blobs
        with pytest.raises(Missing):
            store.blob(sha256_hex(b"absent"))

    def test_long_content_is_a_blob(self, store: Store) -> None:
        put = note("a", "long \ud800" * 4_000)
        store.commit(batch(put))
        assert put.text_hash is not None
        assert store.blob(put.text_hash) == encode_text(put.content or "")

    def test_compare_and_put(self, store: Store) -> None:
        first = store.commit(batch(note("a", "one"), expect={"a": None}))
        second = store.commit(batch(note("a", "two"), expect={"a": first}))
        for wrong in (None, first, Token("unknown")):
            with pytest.raises(Conflict):
                store.commit(batch(note("a", "three"), expect={"a": wrong}))
        assert contents(store, "a") == ["one", "two"]
        assert store.latest() == second

    def test_a_conflict_leaves_nothing_behind(self, store: Store) -> None:
        token = store.commit(batch(note("a", "one", session="s")))
        blobs: dict[str, bytes] = {}
        digest = put_blob(b"data", blobs)
        puts = [note("b", session="s"), note("a", "long " * 2_000), note("c")]
        with pytest.raises(Conflict):
            store.commit(Batch(puts=puts, blobs=blobs, expect={"a": token, "c": token}))
        assert store.latest() == token
        assert contents(store, "a") == ["one"]
        assert store.heads(["b", "c"]) == {}
        assert [head.id for head in store.query("note", {"session": "s"})] == ["a"]
        assert store.blobs([digest, puts[1].text_hash or ""]) == {}
        assert len(store.changes_since(None)) == 1

    def test_what_is_expected_need_not_be_put(self, store: Store) -> None:
        token = store.commit(batch(note("guard")))
        store.commit(batch(note("a"), expect={"guard": token}))
        with pytest.raises(Conflict):
            store.commit(batch(note("b"), expect={"guard": None}))
        assert store.head("b") is None

    def test_type_and_identity_never_change(self, store: Store) -> None:
        store.commit(batch(note("a")))
        other_type = TurnDocument(id="a", session="s").seal()
        other_source = note("a", source=file("/a").source)
        for document in (other_type, other_source):
            with pytest.raises(Conflict):
                store.commit(batch(document))
        assert len(store.history("a")) == 1
