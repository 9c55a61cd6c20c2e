"""Many versions of many documents with few requests: a session that another machine wrote.

XTDB has no request for the histories of many documents. Most versions that are asked for are the
newest of their documents, or came in late and so have an id of their own, or came with many others
in one transaction: each of these kinds costs a query for hundreds of versions. What is left costs a
request for each document.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from foredeck.store.protocol import Token
from foredeck.xtdb.database.documents import StoredVersion
from foredeck.xtdb.database.reading import XtdbReader
from foredeck.xtdb.database.requests import FEW

_TOGETHER = 2 * FEW
"""From this many documents on a transaction is asked for its versions, in three requests."""


def gather(
    reader: XtdbReader, wanted: Mapping[str, Collection[Token]], known: Mapping[str, StoredVersion]
) -> list[StoredVersion]:
    """The versions of documents (by id) that came with these transactions; those that do not
    exist are left out. `known` are newest ones, by id."""
    gathering = _Gathering({id: set(tokens) for id, tokens in wanted.items()})
    gathering.take(known.items())
    gathering.take(reader.versions(id for id in gathering.left if id not in known).items())
    gathering.take(reader.late_versions(gathering.pairs()))
    for token, ids in gathering.by_token().items():
        if len(ids) >= _TOGETHER:
            gathering.take(reader.versions_at(token, ids).items())
    for id in list(gathering.left):
        gathering.take((id, version) for version in reader.history(id))
    return gathering.found


@dataclass(slots=True)
class _Gathering:
    """What is still to be found, by id, and what was found."""

    left: dict[str, set[Token]]
    found: list[StoredVersion] = field(default_factory=list)

    def take(self, versions: Iterable[tuple[str, StoredVersion]]) -> None:
        """Keep those that are wanted."""
        for id, version in versions:
            tokens = self.left.get(id)
            if tokens is not None and version.token in tokens:
                self.found.append(version)
                tokens.discard(version.token)
                if not tokens:
                    del self.left[id]

    def pairs(self) -> list[tuple[str, Token]]:
        """What is left, by id and token."""
        return [(id, token) for id, tokens in self.left.items() for token in sorted(tokens)]

    def by_token(self) -> dict[Token, list[str]]:
        """What is left: the documents of each transaction."""
        groups: dict[Token, list[str]] = {}
        for id, token in self.pairs():
            groups.setdefault(token, []).append(id)
        return groups
