"""Hashes, identity and metadata views of documents."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

import foredeck.model
from foredeck.model.documents import (
    ENVELOPE,
    HASHES,
    Document,
    FileDocument,
    Provenance,
    chat_id,
    content_hash,
    identity_hash,
    session_object_id,
    system_prompt_id,
)
from foredeck.model.identity import hash_value, sha256_hex
from foredeck.model.kinds import KEPT_HERE, KINDS, OWNED, SHARED, kind_of
from foredeck.model.records import RecordDocument, call_id, member_id, nickname_id
from foredeck.model.sources import FilesystemSource

from .strategies import JSON, TEXT

PROVENANCE = Provenance(origin="test", generator="tool")
FILE_SOURCE = FilesystemSource(filesystemId="fs", path="/a.py")


def make(**fields: Any) -> Document:
    """A sealed note."""
    return Document(id="a", type="note", provenance=PROVENANCE, **fields).seal()


def make_file(**fields: Any) -> FileDocument:
    """A sealed file."""
    id = identity_hash("file", FILE_SOURCE)
    return FileDocument(id=id, source=FILE_SOURCE, provenance=PROVENANCE, **fields).seal()


class TestIdentity:
    """The envelope: type and source, and nothing else."""

    def test_the_bytes_that_are_hashed(self) -> None:
        expected = (
            b'{"source":{"filesystemId":"fs","path":"/a.py","type":"filesystem"},"type":"file"}'
        )
        assert identity_hash("file", FILE_SOURCE) == sha256_hex(expected)
        assert identity_hash("file", FILE_SOURCE.model_dump()) == sha256_hex(expected)
        assert identity_hash("chat", None) == sha256_hex(b'{"source":null,"type":"chat"}')

    @given(TEXT, TEXT, TEXT, TEXT)
    def test_one_identity_for_one_place(self, fs1: str, path1: str, fs2: str, path2: str) -> None:
        one = FilesystemSource(filesystemId=fs1, path=path1)
        other = FilesystemSource(filesystemId=fs2, path=path2)
        same = (fs1, path1) == (fs2, path2)
        assert (identity_hash("file", one) == identity_hash("file", other)) == same
        assert identity_hash("file", one) != identity_hash("link", one)

    def test_a_source_is_closed_and_frozen(self) -> None:
        with pytest.raises(ValidationError):
            FilesystemSource(filesystemId="fs", path="/a", more=1)  # type: ignore[call-arg]
        with pytest.raises(ValidationError):
            FILE_SOURCE.path = "/b"  # type: ignore[misc]

    def test_assigned_ids(self) -> None:
        assert chat_id("s") == "chat:s"
        assert session_object_id("s") == "session:s"
        assert system_prompt_id("s") == "system_prompt:s"
        assert (member_id("s", 3), call_id("s", 4)) == ("member:s:3", "call:s:4")
        assert nickname_id("n") == "nickname:n"


class TestHashes:
    """Each hash covers the fields that it is named after, and nothing more."""

    @given(st.dictionaries(st.sampled_from(["x", "y", "z"]), JSON), JSON)
    def test_content_hash_covers_every_payload_field(self, fields: Any, value: Any) -> None:
        one = make(**fields)
        other = make(**{**fields, "x": value})
        same = hash_value(fields.get("x")) == hash_value(value)
        assert (one.content_hash == other.content_hash) == same

    @pytest.mark.parametrize("name", sorted(ENVELOPE | HASHES))
    def test_content_hash_leaves_out_envelope_and_hashes(self, name: str) -> None:
        body = make(content="x").model_dump()
        assert content_hash({**body, name: "other"}) == content_hash(body)

    @given(st.one_of(st.none(), TEXT), st.dictionaries(st.sampled_from(["x", "y"]), JSON))
    def test_what_was_hashed_is_at_hand_while_it_is_the_same(
        self, content: str | None, fields: Any
    ) -> None:
        document = make(content=content, **fields)
        assert document.sealed_fields() == document.model_dump()
        assert document.model_copy().sealed_fields() == document.model_dump()
        again = Document.model_validate(document.model_dump())
        assert again.sealed_fields() is None
        assert again == document
        document.nickname = "another"
        assert document.sealed_fields() is None
        assert document.seal().sealed_fields() == document.model_dump()


class TestMetadataView:
    """What stands for an object while its content is not loaded."""

    def test_a_view_of_one_s_own(self) -> None:
        document = make_file(view=["path", "locked", "unknown"])
        shown = {pair[0]: pair[1] for pair in document.metadata_view()}
        assert shown == {
            "id": document.id,
            "type": "file",
            "path": "/a.py",
            "locked": False,
            "unknown": None,
        }

    def test_its_hash_changes_only_with_what_it_shows(self) -> None:
        base = make_file(content="one", char_count=3)
        assert make_file(content="two", char_count=3).metadata_view_hash == base.metadata_view_hash
        assert make_file(content="one", char_count=4).metadata_view_hash != base.metadata_view_hash
        assert make_file(char_count=3, nickname="n").metadata_view_hash != base.metadata_view_hash


class TestKinds:
    """Classes by type."""

    def test_every_class_stands_under_its_own_type(self) -> None:
        for type, kind in KINDS.items():
            assert kind.model_fields["type"].default == type
            assert kind_of(type) is kind
        assert kind_of("unknown") is Document

    def test_every_class_stands_among_them(self) -> None:
        for module in pkgutil.iter_modules(foredeck.model.__path__):
            importlib.import_module(f"foredeck.model.{module.name}")
        kinds = [*Document.__subclasses__(), *RecordDocument.__subclasses__()]
        ours = {kind for kind in kinds if kind.__module__.startswith("foredeck")}
        assert ours - {RecordDocument} == set(KINDS.values()), "name it in KINDS (model/kinds.py)"

    def test_every_type_belongs_to_somebody(self) -> None:
        """A new type is a session's own, shared, or of this store; exports and `forget` need it."""
        assert sorted(KINDS) == sorted([*OWNED, *SHARED, *KEPT_HERE]), (
            "name it in one of OWNED, SHARED and KEPT_HERE (model/kinds.py)"
        )
