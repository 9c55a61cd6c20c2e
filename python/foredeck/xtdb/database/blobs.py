"""Reading blobs: one by one where they are few, else in groups of a bounded size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from foredeck.store.verify import check_blob
from foredeck.xtdb.database.client import Doc, XtdbClient
from foredeck.xtdb.database.documents import read_blob
from foredeck.xtdb.database.names import XtdbNames
from foredeck.xtdb.database.requests import FEW, chunks

MOST_AT_ONCE = 4 * 2**20
"""The most bytes of blobs in one answer, unless a single blob is larger."""


class BlobReader:
    """The blobs of one namespace of one server."""

    def __init__(self, client: XtdbClient, names: XtdbNames) -> None:
        self._client = client
        self._names = names

    def _key(self, name: str) -> str:
        return self._names.keyword(name)

    def digests(self, after: str, limit: int) -> list[str]:
        """See `Store.digests`."""
        query = (
            f"{{:find [?e] :in [?after] :where [[?e {self._key('blob_size')} _] [(> ?e ?after)]]"
            f" :order-by [[?e :asc]] :limit {limit}}}"
        )
        rows = self._client.query(query, self._names.blob(after))
        return [eid.removeprefix(self._names.blob("")) for (eid,) in rows]

    def read(self, digests: Iterable[str]) -> dict[str, bytes]:
        """Many blobs, each checked against its hash; those that are missing are left out."""
        eids = {self._names.blob(digest): digest for digest in digests}
        found = {}
        for group in [[eid] for eid in eids] if len(eids) <= FEW else self._groups(list(eids)):
            for doc in self._blob_docs(group):
                digest = eids[doc["xt/id"]]
                found[digest] = check_blob(digest, read_blob(self._names, digest, doc))
        return found

    def _blob_docs(self, eids: list[str]) -> list[Doc]:
        if len(eids) == 1:
            doc = self._client.entity(eids[0])
            return [] if doc is None else [doc]
        query = f"{{:find [(pull ?e [*])] :in [[?e ...]] :where [[?e {self._key('blob_size')} _]]}}"
        return [doc for (doc,) in self._client.query(query, eids)]

    def _groups(self, eids: list[str]) -> Iterator[list[str]]:
        """Those of the blobs that exist, in groups for one answer each; small ones first."""
        group: list[str] = []
        bytes_left = MOST_AT_ONCE
        for eid, size in sorted(self._blob_sizes(eids).items(), key=lambda item: item[1]):
            if group and size > bytes_left:
                yield group
                group, bytes_left = [], MOST_AT_ONCE
            group.append(eid)
            bytes_left -= size
        if group:
            yield group

    def _blob_sizes(self, eids: list[str]) -> dict[str, int]:
        """By XTDB's id, of the blobs that exist. Loads none of them."""
        query = f"{{:find [?e ?s] :in [[?e ...]] :where [[?e {self._key('blob_size')} ?s]]}}"
        rows = (tuple(row) for chunk in chunks(eids) for row in self._client.query(query, chunk))
        return dict(rows)

    def present(self, digests: Sequence[str]) -> set[str]:
        """Those of `digests` that exist. Loads none of them."""
        eids = {self._names.blob(digest): digest for digest in digests}
        if len(eids) <= FEW:
            return {d for eid, d in eids.items() if self._client.entity_tx(eid) is not None}
        return {eids[eid] for eid in self._blob_sizes(list(eids))}
