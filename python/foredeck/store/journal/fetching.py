"""Bringing versions that only XTDB has into the local copy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from foredeck.model.documents import Document
from foredeck.store.journal.tables import Journal
from foredeck.store.protocol import Batch, Origin, Store, Token, order_of

if TYPE_CHECKING:
    from foredeck.store.xtdb.adapter import XtdbStore

Found = tuple[Origin, Document]


def fetch(remote: XtdbStore, copy: Store, journal: Journal, ids: Sequence[str]) -> None:
    """Bring every missing version of the documents `ids`.

    `copy` notes in `journal` what it takes in. Raises `StoreUnavailable` where XTDB does not
    answer, and has then brought some of it.
    """
    missing = journal.missing_of(ids)
    newest = {document.id: (origin, document) for origin, document in remote.newest(missing)}
    found: list[Found] = []
    for id, tokens in missing.items():
        if id in newest and tokens == {newest[id][0].token}:
            found.append(newest[id])
        else:
            found += [(o, d) for o, d in remote.versions(id) if o.token in tokens]
    for origin, documents in _by_transaction(found):
        copy.commit(Batch(puts=documents), origin=origin)


def _by_transaction(found: Iterable[Found]) -> list[tuple[Origin, list[Document]]]:
    groups: dict[Token, tuple[Origin, list[Document]]] = {}
    for origin, document in found:
        groups.setdefault(origin.token, (origin, []))[1].append(document)
    return sorted(groups.values(), key=lambda group: order_of(group[0]))
