"""Nicknames: unique names that a user gives to objects, claimed by compare-and-put."""

from __future__ import annotations

import re

from foredeck.errors import Conflict, ToolError
from foredeck.model.kinds import kind_of
from foredeck.model.records import NicknameDocument, nickname_id
from foredeck.store.protocol import Batch, Head, Store

MAX_CHARS = 100
_NOT_A_NAME = re.compile(r"@|\d+$|v\d+$|.*[\s:/\\]|[0-9a-f]{12,64}$")
"""What could be taken for a handle, a version, a path, or an id."""


def give_nickname(store: Store, object: Head, name: str) -> bool:
    """Make `name` the object's nickname; the one it had is free again.

    Returns whether anything had to be done. Raises `ToolError` where the name cannot be one, or
    belongs to another object.
    """
    _check(name)
    claim = store.head(nickname_id(name))
    owner = None if claim is None else claim.fields.get("object")
    if owner == object.id:
        return False
    if owner is not None:
        raise ToolError(f"The name {name!r} belongs to another object, {owner}.")
    document = store.get(object.id, kind_of(object.type))
    if document is None:
        raise ToolError(f"{object.type} {object.id} is not stored.")
    batch = Batch(expect={nickname_id(name): None if claim is None else claim.token})
    if document.nickname:
        batch.puts.append(_claim(document.nickname, None))
    document.nickname = name
    batch.puts += [_claim(name, object.id), document.seal()]
    try:
        store.commit(batch)
    except Conflict as error:
        raise ToolError(f"The name {name!r} was taken at this moment by another object.") from error
    return True


def _check(name: str) -> None:
    if not name or len(name) > MAX_CHARS or _NOT_A_NAME.match(name):
        raise ToolError(
            f"{name!r} cannot be a nickname: use letters, digits, - _ and . (at most {MAX_CHARS}), "
            "and nothing that looks like a handle, a version, an id or a path."
        )


def _claim(name: str, owner: str | None) -> NicknameDocument:
    return NicknameDocument(id=nickname_id(name), object=owner).seal()
