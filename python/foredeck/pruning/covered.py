"""Which messages something shorter stands for: a summary, or an observation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from foredeck.model.messages import marked
from foredeck.model.records import call_id
from foredeck.store.protocol import Head, Store

Key = tuple[str | None, str]
"""A message in a list of the host's: its entry id where there is one, and its address."""


@dataclass(frozen=True, slots=True)
class CompactedStretch:
    """Messages that were compacted: their addresses, and the blobs that hold them turn by turn."""

    addresses: frozenset[str]
    texts: frozenset[str]


def summarised(store: Store, session: str) -> list[CompactedStretch]:
    """The stretches of chat that compactions of the session stand for.

    Not those whose messages the host's list has again: the user has taken them back, or gone back
    to where they stood, also while no engine was there to be told.
    """
    heads = [
        h for h in store.query("compaction", {"session": session}) if not h.fields.get("taken_back")
    ]
    listed = {entry for entry, _ in _newest_list(store, session)} if heads else set()
    found = []
    for head in heads:
        entries = head.fields.get("entries") or []
        # What foredeck itself leaves out of a prompt is in the host's list all along.
        is_hosts = head.fields.get("asked_by") != "window"
        if is_hosts and entries and entries[0] in listed - {None}:
            continue
        keys = _keys_at(store, call_id(session, int(head.fields["call"])))
        if addresses := _between(keys, entries):
            texts = frozenset(marked(head.fields.get("turns")))
            found.append(CompactedStretch(frozenset(addresses), texts))
    return found


def observed(store: Store, session: str) -> set[str]:
    """The addresses of the messages that observations of the session stand for."""
    heads = store.query("observation", {"session": session})
    there = [head for head in heads if head.fields.get("text_hash") is not None]
    return {str(address) for head in there for address in head.fields.get("covers") or ()}


def _between(keys: list[Key], entries: list[Any]) -> list[str]:
    """The addresses from the first of two entries to the last one.

    The last may have come after the call that is looked at: then all from the first one on. Where
    the first is not among them, they are of another branch: none.
    """
    places = {entry: place for place, (entry, _) in enumerate(keys) if entry is not None}
    if len(entries) != 2 or entries[0] not in places:
        return []
    last = places.get(entries[1], len(keys) - 1)
    return [address for _, address in keys[places[entries[0]] : last + 1]]


def _newest_list(store: Store, session: str) -> list[Key]:
    """The list of messages that the host had at the session's newest call."""
    calls = store.query("call", {"session": session})
    newest = max(calls, key=lambda head: int(head.fields["ordinal"]), default=None)
    return [] if newest is None else _keys_at(store, newest.id)


def _keys_at(store: Store, call: str) -> list[Key]:
    """The list of messages that the host had at a call."""
    keys: list[Key] = []
    for head in reversed([*_chain(store, call)]):
        del keys[head.fields["kept"] :]
        keys.extend((entry, address) for entry, address in head.fields["keys"])
    return keys


def _chain(store: Store, call: str) -> Iterator[Head]:
    """The records of a branch, the newest first, also those of the sessions it was forked from."""
    seen: set[str] = set()
    head = store.head(call)
    while head is not None and head.id not in seen:
        seen.add(head.id)
        yield head
        parent = head.fields.get("parent")
        head = None if parent is None else store.head(parent)
