"""The store in XTDB 1, through its HTTP API: on one machine, or shared by many.

`documents.py` explains how documents are stored there, `writing.py` how transactions are ordered.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from foredeck.errors import Missing
from foredeck.model.canonical import decode_text
from foredeck.model.documents import Document
from foredeck.model.kinds import kind_of
from foredeck.store.clock import now_ms
from foredeck.store.protocol import Batch, Change, Head, Origin, Record, Scalar, Token, portions
from foredeck.store.references import Archives
from foredeck.store.versions import check_blobs, restore, unique_bodies
from foredeck.xtdb.database.client import FEW, XtdbClient, valid_time
from foredeck.xtdb.database.documents import StoredVersion, XtdbNames
from foredeck.xtdb.database.planning import Prepared
from foredeck.xtdb.database.reading import BlobReader, XtdbReader
from foredeck.xtdb.database.writing import XtdbWriter

D = TypeVar("D", bound=Document)

MOST_EVICTED = 5000
"""In one transaction."""
DEFAULT_NAMESPACE = "foredeck"


def open_xtdb(
    url: str,
    *,
    token: str | None = None,
    namespace: str = DEFAULT_NAMESPACE,
    timeout_ms: int = 10_000,
    clock: Callable[[], int] = now_ms,
    revive: Callable[[], str] | None = None,
) -> XtdbStore:
    """Open the store at a server's address, such as `http://127.0.0.1:3000`.

    `token` is the node's bearer token, None for a server that asks for none. `namespace`: one
    server can hold several stores. `timeout_ms` bounds each request and each commit. `revive`
    starts a server that is foredeck's own, and returns its address. Waits until
    the server has indexed what is in its log; raises `StoreUnavailable` when it cannot be
    reached or does not catch up in time.
    """
    names = XtdbNames(namespace)
    client = XtdbClient(url, token=token, timeout_ms=timeout_ms, revive=revive)
    try:
        client.catch_up()
    except BaseException:
        client.close()
        raise
    return XtdbStore(client, names, clock)


class XtdbStore:
    """`foredeck.store.protocol.Store` in XTDB 1. Made by `open_xtdb`."""

    def __init__(self, client: XtdbClient, names: XtdbNames, clock: Callable[[], int]) -> None:
        self._client = client
        self._names = names
        self._reader = XtdbReader(client, names)
        self._blobs = BlobReader(client, names)
        self._writer = XtdbWriter(self._reader, self._blobs, clock)
        self._archives = Archives(self)

    def commit(self, batch: Batch, *, origin: Origin | None = None) -> Token:
        """See `Store.commit`."""
        check_blobs(batch.blobs)
        documents = [Prepared.of(body) for body in unique_bodies(batch.puts).values()]
        blobs = dict(batch.blobs)
        for document in documents:
            if document.content is not None and document.text_hash is not None:
                blobs[document.text_hash] = document.content
        return self._writer.write(documents, blobs, batch.expect, origin)

    def get(self, id: str, kind: type[D], at: Token | None = None) -> D | None:
        """See `Store.get`."""
        version = self._version(id, at)
        if version is None:
            return None
        fields = version.fields
        if fields["text_hash"] is None:
            fields["content"] = None
        elif "content" not in fields:
            fields["content"] = decode_text(self.blob(fields["text_hash"]))
        return restore(kind, fields)

    def head(self, id: str, at: Token | None = None) -> Head | None:
        """See `Store.head`."""
        version = self._version(id, at)
        return None if version is None else version.head(id)

    def _version(self, id: str, at: Token | None) -> StoredVersion | None:
        return self._reader.version(id) if at is None else self._reader.version_as_of(id, at)

    def heads(self, ids: Iterable[str]) -> dict[str, Head]:
        """See `Store.heads`."""
        return {id: version.head(id) for id, version in self._reader.versions(ids).items()}

    def history(self, id: str) -> list[Head]:
        """See `Store.history`."""
        return [version.head(id) for version in self._reader.history(id)]

    def query(
        self,
        type: str,
        where: Mapping[str, Scalar | None] | None = None,
        *,
        limit: int | None = None,
    ) -> list[Head]:
        """See `Store.query`."""
        found = self._reader.find(type, dict(where or {}), limit)
        return [version.head(id) for id, version in found.items()]

    def find(
        self, type: str, where: Mapping[str, Scalar | None] | None = None
    ) -> dict[str, StoredVersion]:
        """As `query`: what `versions` need not read once more, by id."""
        return self._reader.find(type, dict(where or {}), None)

    def blob(self, digest: str) -> bytes:
        """See `Store.blob`."""
        found = self._blobs.read([digest])
        return found[digest] if digest in found else self._archives.bytes_of(digest)

    def blobs(self, digests: Iterable[str]) -> dict[str, bytes]:
        """See `Store.blobs`."""
        return self._blobs.read(digests)

    def changes_since(self, token: Token | None, *, limit: int = 1000) -> Sequence[Change]:
        """See `Store.changes_since`."""
        return self._reader.changes_since(token, limit)

    def versions(
        self,
        wanted: Mapping[str, Collection[Token]],
        known: Mapping[str, StoredVersion] | None = None,
    ) -> list[tuple[Origin, Document]]:
        """The versions of documents (by id) that came with these transactions, with their content.

        Hundreds of them cost a few requests. Those that do not exist are left out. `known`: what
        `find` has found a moment ago.
        """
        return self._restored(gather(self._reader, wanted, known or {}))

    def _restored(self, versions: Iterable[StoredVersion]) -> list[tuple[Origin, Document]]:
        found = [(version.origin, version.fields) for version in versions]
        absent = [f["text_hash"] for _, f in found if f["text_hash"] and "content" not in f]
        blobs = self._blobs.read(absent)
        for _, fields in found:
            if "content" not in fields:
                digest = fields["text_hash"]
                if digest is not None and digest not in blobs:
                    raise Missing(f"no blob {digest} in this store")
                fields["content"] = None if digest is None else decode_text(blobs[digest])
        return [(origin, restore(kind_of(f["type"]), f)) for origin, f in found]

    def status(self) -> Mapping[str, Any]:
        """What the server reports about itself, such as `ingesterFailed?`."""
        return self._client.status()

    def transactions(self, tokens: Iterable[Token]) -> list[Origin]:
        """See `Store.transactions`."""
        return self._reader.transactions(tokens)

    def erase(self, ids: Iterable[str], blobs: Iterable[str]) -> None:
        """Evict documents with all their versions, and blobs: from every node of this database.

        Only for what a user has asked for (`store/forgetting.py`).
        """
        eids, named, gone = [], set[Token](), set(ids)
        for id in gone:
            versions = self.history(id)
            late = (self._names.late(id, head.token) for head in versions)
            eids += [self._names.document(id), *late]
            # The id of a nickname is a user's text, and is in the transactions' records as well.
            named |= {head.token for head in versions if head.type == "nickname"}
        eids += [self._names.blob(digest) for digest in blobs]
        for token in sorted(named):
            self._rewrite_record(token, gone)
        for portion in portions(eids, MOST_EVICTED):
            self._client.commit([["evict", eid] for eid in portion])

    def _rewrite_record(self, token: Token, gone: Collection[str]) -> None:
        """Evict the record of a transaction, and write it again without what goes."""
        record = self._reader.transaction(token)
        if record is None:
            return  # an erasing that was interrupted in between
        changes = tuple((id, type) for id, type in record.changes if id not in gone)
        fresh = replace(record, changes=changes).to_doc(self._names)
        # Two transactions: XTDB evicts at the end of one, with what the same one has put.
        self._client.commit([["evict", fresh["xt/id"]]])
        self._client.commit([["put", fresh, valid_time(0)]])

    def latest(self) -> Token | None:
        """See `Store.latest`."""
        clock = self._reader.clock()
        return None if clock is None or clock.seq == 0 else clock.token

    # Copying

    def records(self, after: Token | None, limit: int) -> list[Record]:
        """See `Store.records`."""
        return self._reader.records(after, limit)

    def documents(self, record: Record) -> list[Document]:
        """See `Store.documents`."""
        found = self._reader.versions_of(record)
        versions = [found[id] for id, _ in record.changes if id in found]
        return [document for _, document in self._restored(versions)]

    def digests(self, after: str, limit: int) -> list[str]:
        """See `Store.digests`."""
        return self._blobs.digests(after, limit)

    @property
    def local(self) -> None:
        """See `Store.local`: this is the database itself."""

    @property
    def trouble(self) -> str:
        """See `Store.trouble`: none, since without its database every method raises."""
        return ""

    def close(self) -> None:
        """See `Store.close`."""
        self._client.close()


# Many versions of many documents with few requests: a session that another machine wrote.
#
# XTDB has no request for the histories of many documents. Most versions that are asked for are
# the newest of their documents, or came in late and so have an id of their own, or came with many
# others in one transaction: each of these kinds costs a query for hundreds of versions. What is
# left costs a request for each document.

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
