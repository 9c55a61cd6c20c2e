"""Finds objects by type, name, state or session."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from foredeck.context.state.descriptions import nicknames
from foredeck.errors import NotFound
from foredeck.model.kinds import OBJECT_TYPES
from foredeck.names import name_of
from foredeck.sources.snapshots import version_ms
from foredeck.store.protocol import Head, Store

FIELDS = ("tool", "file_type", "harness")
"""Each object has at most one."""


def find_objects(
    store: Store,
    types: Iterable[str] = OBJECT_TYPES,
    *,
    contains: str = "",
    status: str | None = None,
    session: str | None = None,
    fields: Mapping[str, str | None] | None = None,
) -> list[Head]:
    """Objects, newest first.

    `contains`: in their list name; `session`: with them in its index. Raises `NotFound` for other
    types.
    """
    conditions = {name: value for name, value in (fields or {}).items() if value is not None}
    heads = [head for type in types for head in _of_type(store, type)]
    if session is not None:
        members = store.query("member", {"session": session})
        inside = {member.fields["object"] for member in members}
        heads = [head for head in heads if head.id in inside]
    matches = (
        head
        for head in heads
        if contains.casefold() in name_of(head).casefold()
        and (status is None or status_of(head) == status)
        and all(head.fields.get(name) == value for name, value in conditions.items())
    )
    return sorted(matches, key=lambda head: head.time_ms, reverse=True)


def _of_type(store: Store, type: str) -> list[Head]:
    if type not in OBJECT_TYPES:
        raise NotFound(f"there is no type {type!r}: {', '.join(OBJECT_TYPES)}.")
    return store.query(type)


def status_of(head: Head) -> str | None:
    return head.fields.get("status") or head.fields.get("state")


def listed(head: Head) -> dict[str, Any]:
    """An object in a list."""
    return {
        "object": head.id,
        "type": head.type,
        "name": name_of(head),
        "time_ms": version_ms(head),
        "status": status_of(head),
        "chars": head.fields.get("char_count"),
    }


def listed_in_full(store: Store, heads: Iterable[Head]) -> list[dict[str, Any]]:
    """Objects for programs, with nicknames and searchable fields."""
    names = nicknames(store)
    return [
        listed(head)
        | {"nickname": names.get(head.id)}
        | {name: head.fields.get(name) for name in FIELDS}
        for head in heads
    ]
