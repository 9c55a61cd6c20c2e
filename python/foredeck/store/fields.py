"""The fields of documents: by which they are found, and how they are compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

INDEXED = (
    "assistant",
    "tip",
    "provider_call_id",
    "object",
    "source.path",
    "nickname",
    "parent_session",
    "host_file",
    "session_id",
    "chat_ref",
    "session",
)
"""Fields with an index, the most selective first. Changing this needs a migration."""


def field_value(fields: Mapping[str, Any], name: str) -> Any:
    """A field by its query name: `source.path` reaches into the source binding."""
    if name.startswith("source."):
        return (fields.get("source") or {}).get(name.removeprefix("source."))
    return fields.get(name)


def matches(fields: Mapping[str, Any], name: str, value: Any) -> bool:
    """Whether a field equals `value` as JSON: `True` is not 1, a missing field is None."""
    found = field_value(fields, name)
    return type(found) is type(value) and bool(found == value)


def stated(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that have a value: of a field without one and a field that is not there the
    content hash is the same. Types get new fields, and versions keep the form that they were
    stored or exported in."""
    return {name: value for name, value in fields.items() if value is not None}
