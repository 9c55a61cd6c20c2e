"""Nicknames: unique names that a user gives to objects, claimed by compare-and-put.

The claim is all there is: the object stays as it is, so that naming it makes no version of it.
Older documents repeat the name in a field of their own, which nothing reads.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from foredeck.errors import Conflict, ToolError
from foredeck.model.documents import Provenance
from foredeck.model.records import NicknameDocument, by_foredeck, nickname_id
from foredeck.model.sources import path_of
from foredeck.sources.indexing import FileSnapshot
from foredeck.store.protocol import ATTEMPTS, Batch, Head, Store

MAX_CHARS = 100
_NOT_A_NAME = re.compile(r"@|\d+$|v\d+$|.*[\s:/\\]|[0-9a-f]{12,64}$")
"""What could be taken for a handle, a version, a path, or an id."""


def nicknames(store: Store) -> dict[str, str]:
    """The nickname of each object that has one, by object id; of two given at once the later."""
    claims = sorted(store.query("nickname"), key=lambda claim: claim.time_ms)
    owned = ((claim.fields.get("object"), claim) for claim in claims)
    return {owner: _name_in(claim) for owner, claim in owned if owner is not None}


def give_nickname(store: Store, object: Head, name: str) -> bool:
    """Make `name` the object's nickname; the one it had is free again.

    Returns whether anything had to be done. Raises `ToolError` where the name cannot be one, or
    belongs to another object, or the object's names change all the time.
    """
    _check(name)
    for _ in range(ATTEMPTS):
        try:
            return _give(store, object.id, name)
        except Conflict:
            continue  # another process has claimed one of the names: look again
    raise ToolError(f"{object.type} {object.id} is being named by others all the time: try again.")


def _called(store: Store, id: str) -> str:
    """An object's path where it has one, else its id."""
    head = store.head(id)
    return (path_of(head.fields) if head else None) or id


def _give(store: Store, id: str, name: str) -> bool:
    """One attempt. Raises `Conflict` where the claims are no longer as read."""
    claim = store.head(nickname_id(name))
    owner = None if claim is None else claim.fields.get("object")
    if owner is not None and owner != id:
        raise ToolError(f"The name {name!r} belongs to another object, {_called(store, owner)}.")
    others = [held for held in _claims_of(store, id) if held.id != nickname_id(name)]
    if owner == id and not others:
        return False
    by_user = Provenance(origin="name", generator="human")
    batch = Batch(expect={nickname_id(name): claim.token if claim else None})
    batch.puts.append(_claim(name, id, by_user))
    for held in others:
        batch.puts.append(_claim(_name_in(held), None, by_user))
        batch.expect[held.id] = held.token
    store.commit(batch)
    return True


def moved_claims(
    store: Store, snapshots: Iterable[FileSnapshot]
) -> list[tuple[NicknameDocument, Head]]:
    """The claims of nicknames that renamed files take along, each with the one before it. A file
    that has a name of its own keeps that."""
    documents = (snapshot.document for snapshot in snapshots)
    moves = {d.id: d.moved_to for d in documents if d is not None and d.moved_to is not None}
    return [
        (_claim(_name_in(held), target, by_foredeck()), held)
        for id, target in moves.items()
        if not _claims_of(store, target)
        for held in _claims_of(store, id)
    ]


def _claims_of(store: Store, id: str) -> list[Head]:
    return store.query("nickname", {"object": id})


def _check(name: str) -> None:
    if not name or len(name) > MAX_CHARS or _NOT_A_NAME.match(name):
        raise ToolError(
            f"{name!r} cannot be a nickname: use letters, digits, - _ and . (at most {MAX_CHARS}), "
            "and nothing that looks like a handle, a version, an id or a path."
        )


def _claim(name: str, owner: str | None, by: Provenance) -> NicknameDocument:
    return NicknameDocument(id=nickname_id(name), object=owner, provenance=by).seal()


def _name_in(claim: Head) -> str:
    return claim.id.removeprefix(nickname_id(""))
