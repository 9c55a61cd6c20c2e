"""Bringing versions that only XTDB has into the local copy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from foredeck.model.documents import Document
from foredeck.store.protocol import Batch, Origin, Token, order_of
from foredeck.store.sqlite.adapter import SqliteStore
from foredeck.xtdb.journal.tables import Journal

if TYPE_CHECKING:
    from foredeck.xtdb.database.adapter import XtdbStore
    from foredeck.xtdb.database.documents import StoredVersion

Found = tuple[Origin, Document]

_AT_ONCE = 200
"""So many transactions are taken in with one lock on the copy."""


def fetch(
    remote: XtdbStore,
    copy: SqliteStore,
    journal: Journal,
    ids: Sequence[str],
    known: Mapping[str, StoredVersion] | None = None,
) -> None:
    """Bring every missing version of the documents `ids`; `known`: newest ones that were read.

    `copy` notes in `journal` what it takes in. Raises `StoreUnavailable` where XTDB does not
    answer, and has then brought some of it.
    """
    found = _by_transaction(remote.versions(journal.missing_of(ids), known or {}))
    for start in range(0, len(found), _AT_ONCE):
        copy.commit_all(found[start : start + _AT_ONCE])


def _by_transaction(found: Iterable[Found]) -> list[tuple[Origin, Batch]]:
    groups: dict[Token, tuple[Origin, Batch]] = {}
    for origin, document in found:
        groups.setdefault(origin.token, (origin, Batch()))[1].puts.append(document)
    return sorted(groups.values(), key=lambda group: order_of(group[0]))
