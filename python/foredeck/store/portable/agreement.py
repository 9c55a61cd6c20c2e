"""Whether a file agrees with what the store holds already.

What both have must be equal. A document with newer versions in the file alone is continued; one
with different newer versions in both is a contradiction. Files are the exception: two stores
on one machine each see the same files change, and their histories go together by time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from foredeck.errors import ImportRefused
from foredeck.model.documents import session_object_id
from foredeck.store.portable.check import Checked, VersionHashes
from foredeck.store.protocol import Head, Store, Token


@dataclass(frozen=True, slots=True)
class _Local:
    """A document's history in the store, reduced to what is compared."""

    type: str
    identity_hash: str
    versions: dict[Token, VersionHashes]
    object: str | None


def count_new(store: Store, checked: Checked, ids: Iterable[str]) -> int:
    """How many versions of the documents `ids` are not in the store.

    Raises `ImportRefused` where the file contradicts the store, also in the transactions' times.
    """
    for known in store.transactions(checked.times):
        if checked.times[known.token] != known.time_ms:
            raise ImportRefused(f"transaction {known.token!r} has another time in the store")
    counts = {id: _count_one(id, checked, store.history(id)) for id in ids}
    _check_others(store, checked, {id for id, count in counts.items() if count})
    return sum(counts.values())


def _check_others(store: Store, checked: Checked, new: set[str]) -> None:
    """A session that is here gets nothing from the file of another one."""
    owners = {id: owner for id, owner in checked.ownership.owners.items() if id in new}
    here = store.heads({session_object_id(owner) for owner in owners.values()})
    for id, owner in sorted(owners.items()):
        if session_object_id(owner) in here:
            raise ImportRefused(
                f"{id!r} belongs to session {owner!r}, which is in the store without it: import"
                " a newer export of that session first"
            )


def _count_one(id: str, checked: Checked, history: list[Head]) -> int:
    versions = checked.versions[id]
    if not history:
        return len(versions)
    local = _local(history)
    if local.type != checked.types[id]:
        raise ImportRefused(f"{id!r} is a {local.type} in the store")
    if local.identity_hash != versions[0].identity_hash:
        raise ImportRefused(f"{id!r} has another source in the store")
    for version in versions:
        if local.versions.get(version.token, version) != version:
            raise ImportRefused(f"{id!r} has other fields in the store at {version.token!r}")
    new = [version for version in versions if version.token not in local.versions]
    if new:
        _check_continues(id, checked, local)
    return len(new)


def _local(history: list[Head]) -> _Local:
    versions = {
        head.token: VersionHashes(
            head.token,
            head.fields["identity_hash"],
            head.fields["content_hash"],
            head.fields["metadata_view_hash"],
            head.fields["source_hash"],
        )
        for head in history
    }
    newest = history[-1]
    claimed = newest.fields.get("object") if newest.type == "nickname" else None
    return _Local(newest.type, newest.fields["identity_hash"], versions, claimed)


def _check_continues(id: str, checked: Checked, local: _Local) -> None:
    """The file has versions that are new here: they must come after all that are here."""
    tokens = [version.token for version in checked.versions[id]]
    if list(local.versions) == tokens[: len(local.versions)] or local.type == "file":
        return
    if local.type == "nickname":
        if checked.claims[id] == {local.object}:
            return
        name = id.removeprefix("nickname:")
        raise ImportRefused(
            f"the nickname {name!r} belongs to {local.object!r} in this store: rename that first"
        )
    raise ImportRefused(
        f"{id!r} has different newer versions in the store and in the file:"
        " import it under fresh ids (--as-new)"
    )
