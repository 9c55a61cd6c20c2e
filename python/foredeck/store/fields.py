"""The fields of documents: by which they are found, how they compare, when they are decoded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
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


class LazyFields(Mapping[str, Any]):
    """All fields of a version but `content`. Listing a thousand heads decodes none of them.

    Reading a field raises `Corrupt` where the stored bytes are damaged.
    """

    __slots__ = ("_decode", "_fields", "_stored")

    def __init__(self, decode: Callable[..., dict[str, Any]], *stored: Any) -> None:
        """`decode` turns what is stored into all fields."""
        self._decode = decode
        self._stored: tuple[Any, ...] = stored
        self._fields: dict[str, Any] | None = None

    def _decoded(self) -> dict[str, Any]:
        if self._fields is None:
            self._fields = self._decode(*self._stored)
            self._fields.pop("content", None)
            self._stored = ()
        return self._fields

    def __getitem__(self, name: str) -> Any:
        return self._decoded()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._decoded())

    def __len__(self) -> int:
        return len(self._decoded())

    def __repr__(self) -> str:
        return f"LazyFields({self._decoded()!r})"
