"""Nicknames: unique names that a user gives to objects, claimed by compare-and-put."""

from __future__ import annotations

import re
from collections.abc import Iterable

from foredeck.errors import Conflict, ToolError
from foredeck.model.documents import Provenance
from foredeck.model.kinds import kind_of
from foredeck.model.records import NicknameDocument, nickname_id
from foredeck.model.sources import path_of
from foredeck.sources import Sighting
from foredeck.store.protocol import Batch, Head, Store

MAX_CHARS = 100
ATTEMPTS = 20
"""How often a naming is tried while other processes write the same object."""
_NOT_A_NAME = re.compile(r"@|\d+$|v\d+$|.*[\s:/\\]|[0-9a-f]{12,64}$")
"""What could be taken for a handle, a version, a path, or an id."""


def give_nickname(store: Store, object: Head, name: str) -> bool:
    """Make `name` the object's nickname; the one it had is free again.

    Returns whether anything had to be done. Raises `ToolError` where the name cannot be one, or
    belongs to another object, or the object is locked or changes all the time.
    """
    _check(name)
    for _ in range(ATTEMPTS):
        try:
            return _give(store, object.id, name)
        except Conflict:
            continue  # another process has changed the object or taken the name: look again
    raise ToolError(
        f"{object.type} {object.id} is being changed by others all the time: try again."
    )


def _called(store: Store, id: str) -> str:
    """An object's path where it has one, else its id."""
    head = store.head(id)
    return (path_of(head.fields) if head else None) or id


def _give(store: Store, id: str, name: str) -> bool:
    """One attempt. Raises `Conflict` where the object or the claims are no longer as read."""
    head, claim = store.head(id), store.head(nickname_id(name))
    owner = None if claim is None else claim.fields.get("object")
    if owner is not None and owner != id:
        raise ToolError(f"The name {name!r} belongs to another object, {_called(store, owner)}.")
    document = None if head is None else store.get(id, kind_of(head.type), head.token)
    if head is None or document is None:
        raise ToolError(f"{id} is not stored.")
    if document.locked:
        raise ToolError(f"{document.type} {id} is locked: it keeps its own name.")
    if owner == id and document.nickname == name:
        return False
    # The object is expected as read: its content must not come back over a newer one.
    batch = Batch(expect={nickname_id(name): claim.token if claim else None, id: head.token})
    if document.nickname and document.nickname != name:
        _free(store, batch, document.nickname, id)
    document.nickname = name
    document.provenance = Provenance(
        origin="name", generator="human", parent_refs=document.provenance.parent_refs
    )
    batch.puts += [_claim(name, id), document.seal()]
    store.commit(batch)
    return True


def _free(store: Store, batch: Batch, name: str, owner: str) -> None:
    """Give up the claim of a name, if it is the owner's."""
    claim = store.head(nickname_id(name))
    if claim is not None and claim.fields.get("object") == owner:
        batch.expect[claim.id] = claim.token
        batch.puts.append(_claim(name, None))


def moved_claims(
    store: Store, sightings: Iterable[Sighting]
) -> list[tuple[NicknameDocument, Head]]:
    """The claims of nicknames that renamed files have taken along, each with the one before it."""
    moved: list[tuple[NicknameDocument, Head]] = []
    for document in (sighting.document for sighting in sightings):
        if document is None or document.nickname is None:
            continue
        claim = store.head(nickname_id(document.nickname))
        if claim is not None and claim.fields.get("object") != document.id:
            moved.append((_claim(document.nickname, document.id), claim))
    return moved


def _check(name: str) -> None:
    if not name or len(name) > MAX_CHARS or _NOT_A_NAME.match(name):
        raise ToolError(
            f"{name!r} cannot be a nickname: use letters, digits, - _ and . (at most {MAX_CHARS}), "
            "and nothing that looks like a handle, a version, an id or a path."
        )


def _claim(name: str, owner: str | None) -> NicknameDocument:
    return NicknameDocument(id=nickname_id(name), object=owner).seal()
