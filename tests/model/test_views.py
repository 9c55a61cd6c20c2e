"""Stored fields, read by the names and types of a document's class."""

from __future__ import annotations

from typing import Any

import pytest

from foredeck.model.documents import SessionDocument, view_of
from foredeck.model.records import MemberDocument

STORED: dict[str, Any] = {
    "id": "member:s:1",
    "session": "s",
    "ordinal": 1,
    "object": "o",
    "provenance": {"origin": "x", "generator": "agent"},
    "version_ref": {"object": "o", "version": 2, "token": "t", "text_hash": None},
}


def test_fields_are_attributes_and_parts_have_their_own() -> None:
    member = view_of(MemberDocument, STORED)
    assert (member.session, member.ordinal, member.version_ref.version) == ("s", 1, 2)
    assert member.version_ref.text_hash is None


def test_what_an_older_version_lacks_has_its_default() -> None:
    member = view_of(MemberDocument, STORED)
    assert (member.label, member.locked, member.provenance.parent_refs) == ("", False, [])
    assert view_of(SessionDocument, {}).private is None


def test_each_class_and_each_view_has_its_own() -> None:
    assert (view_of(MemberDocument, {}).type, view_of(SessionDocument, {}).type) == (
        "member",
        "session",
    )
    one, other = (view_of(MemberDocument, STORED).provenance.parent_refs for _ in range(2))
    assert one == other
    assert one is not other


@pytest.mark.parametrize("name", ["object_type", "content", "unknown"])
def test_what_has_no_default_or_is_not_loaded_is_an_error(name: str) -> None:
    with pytest.raises(KeyError, match=name):
        getattr(view_of(MemberDocument, STORED), name)
