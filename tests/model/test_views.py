"""Stored fields, read by the names and types of a document's class."""

from __future__ import annotations

from typing import Any

import pytest

from foredeck.model.documents import view_of
from foredeck.model.records import MemberDocument

STORED: dict[str, Any] = {
    "id": "member:s:1",
    "session": "s",
    "ordinal": 1,
    "object": "o",
    "provenance": {"origin": "x", "generator": "agent"},
    "version_ref": {"object": "o", "version": 2, "token": "t", "text_hash": None},
}


@pytest.mark.parametrize("name", ["object_type", "content", "unknown"])
def test_what_has_no_default_or_is_not_loaded_is_an_error(name: str) -> None:
    with pytest.raises(KeyError, match=name):
        getattr(view_of(MemberDocument, STORED), name)
