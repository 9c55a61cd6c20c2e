"""The versions that a batch of changes brought, for layers that take every version in."""

from __future__ import annotations

from collections.abc import Sequence

from foredeck.store.protocol import Change, Head, LocalStore


def brought_versions(store: LocalStore, changes: Sequence[Change]) -> list[Head]:
    """Their heads, in the order of the changes; what was erased since is left out."""
    newest = store.heads(change.id for change in changes)
    found = []
    for change in changes:
        head = newest.get(change.id)
        if head is not None and head.token != change.token:
            head = store.head(change.id, change.token)
        if head is not None and head.token == change.token:
            found.append(head)
    return found
