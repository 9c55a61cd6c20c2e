"""Reads versions, transactions and blobs.

As-of reads go by XTDB's transaction id; versions of irregular objects are ordered by time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from foredeck.errors import Missing
from foredeck.model.documents import Document
from foredeck.model.kinds import kind_of
from foredeck.store.protocol import (
    Change,
    Head,
    Origin,
    Record,
    Scalar,
    Token,
    in_groups,
    order_of,
    portions,
)
from foredeck.store.versions import INDEXED, POSITION_BITS, check_blob, matches, restore
from foredeck_xtdb.database.client import CHUNK, FEW, Doc, XtdbClient
from foredeck_xtdb.database.documents import (
    Clock,
    StoredVersion,
    Transaction,
    XtdbNames,
    lookup_value,
    read_blob,
)

_MOST_CACHED = 4096
MOST_AT_ONCE = 4 * 2**20
"""Bytes of blobs in one answer."""
_TOGETHER = 2 * FEW
"""Documents from which on a transaction's versions take three requests."""


class XtdbReader:
    """Reads from one namespace of one server."""

    def __init__(self, client: XtdbClient, names: XtdbNames) -> None:
        self.client = client
        self.names = names
        self._transactions: dict[Token, tuple[Transaction, int]] = {}

    # Versions

    def history(self, id: str) -> list[Head]:
        return [version.head(id) for version in self.all_versions(id)]

    def newest(self, ids: Iterable[str]) -> dict[str, StoredVersion]:
        """Newest versions of documents, without missing ones."""
        wanted = list(dict.fromkeys(ids))
        if len(wanted) <= FEW:
            found = {id: self._version(self.names.document(id)) for id in wanted}
            return {id: version for id, version in found.items() if version is not None}
        by_eid: dict[str, StoredVersion] = {}
        for chunk in portions((self.names.document(id) for id in wanted), CHUNK):
            by_eid.update(self._rows(":in [[?e ...]]", "", chunk))
        eids = {id: self.names.document(id) for id in wanted}
        return {id: by_eid[eid] for id, eid in eids.items() if eid in by_eid}

    def all_versions(self, id: str) -> list[StoredVersion]:
        """All versions, oldest first."""
        docs = self.client.history(self.names.document(id))
        # A version that was put again, to mark the object as irregular, is still one version.
        versions = {doc[self.names.attribute("token")]: doc for doc in docs}
        found = [StoredVersion.from_doc(self.names, doc) for doc in versions.values()]
        if found and found[-1].irregular:
            found += self._late(id)
        return sorted(found, key=lambda version: order_of(version.origin))

    def _late(self, id: str) -> list[StoredVersion]:
        query = f"{{:find [(pull ?e [*])] :in [?of] :where [[?e {self._key('late_of')} ?of]]}}"
        rows = self.client.query(query, self.names.document(id))
        return [StoredVersion.from_doc(self.names, doc) for (doc,) in rows]

    def _version(self, eid: str) -> StoredVersion | None:
        doc = self.client.entity(eid)
        return None if doc is None else StoredVersion.from_doc(self.names, doc)

    # Queries

    def find(
        self, type: str, where: Mapping[str, Scalar | None] | None = None
    ) -> dict[str, StoredVersion]:
        """What `Store.query` finds, by id; fields in `INDEXED` are looked up."""
        where = where or {}
        looked_up = {n: v for n, v in where.items() if n in INDEXED and v is not None}
        names = ["type", *looked_up]
        variables = [f"?v{number}" for number in range(len(names))]
        clauses = "".join(
            f"[?e {self._key(name)} {variable}]"
            for name, variable in zip(names, variables, strict=True)
        )
        args = [lookup_value(type), *map(lookup_value, looked_up.values())]
        rows = self._rows(f":in [{' '.join(variables)}]", clauses, *args)
        by_age = sorted(rows.items(), key=lambda row: row[1].born)
        # XTDB looks up neither None nor what has no attribute: there the fields decide.
        rest = [(name, value) for name, value in where.items() if name not in looked_up]
        heads = ((version.head(self.names.id_of(eid)), version) for eid, version in by_age)
        return {
            head.id: version
            for head, version in heads
            if all(matches(head.fields, n, v) for n, v in rest)
        }

    def _rows(
        self, inputs: str, clauses: str, *args: object, tx_id: int | None = None
    ) -> dict[str, StoredVersion]:
        """Newest versions of every `?e` that fits, also as of `tx_id`."""
        columns = ("token", "time", "kind", "born", "irregular", "fields")
        joined = "".join(f"[?e {self._key(name)} ?{name}]" for name in columns)
        found = " ".join(f"?{name}" for name in columns)
        query = f"{{:find [?e {found}] {inputs} :where [{clauses}{joined}]}}"
        rows = self.client.query(query, *args, tx_id=tx_id)
        return {eid: StoredVersion(*values) for eid, *values in rows}

    def _key(self, name: str) -> str:
        return self.names.keyword(name)

    # Transactions

    def clock(self) -> Clock | None:
        """The state for the next transaction; None before the first."""
        doc = self.client.entity(self.names.clock)
        return None if doc is None else Clock.from_doc(self.names, doc)

    def transaction(self, token: Token) -> Transaction | None:
        """The current record of a transaction."""
        doc = self.client.entity(self.names.transaction(token))
        return None if doc is None else Transaction.from_doc(self.names, doc)

    def _known_transaction(self, token: Token) -> tuple[Transaction, int]:
        if token not in self._transactions:
            transaction = self.transaction(token)
            tx_id = self.client.entity_tx(self.names.transaction(token))
            if transaction is None or tx_id is None:
                raise Missing(f"no transaction {token!r} in this store")
            if len(self._transactions) >= _MOST_CACHED:
                self._transactions.clear()
            self._transactions[token] = transaction, tx_id
        return self._transactions[token]

    def tx_id(self, token: Token) -> int:
        """XTDB's id of the transaction `token`. Raises `Missing`."""
        return self._known_transaction(token)[1]

    def newest_at(self, time_ms: int) -> Token | None:
        """The newest transaction at a time, by foredeck's times: XTDB's own are those of
        delivery."""
        key = self._key
        rows = self.client.query(
            f"{{:find [(min ?seq)] :in [?time] :where [[?e {key('tx_time')} ?t] [(> ?t ?time)]"
            f" [?e {key('tx_seq')} ?seq]]}}",
            time_ms,
        )
        clock = self.clock()
        if clock is None:
            return None
        place = rows[0][0] - 1 if rows else clock.seq
        found = self._sequence(place - 1, place)
        return found[0].origin.token if found else None

    def latest(self) -> Token | None:
        clock = self.clock()
        return None if clock is None or clock.seq == 0 else clock.token

    def transactions(self, tokens: Iterable[Token]) -> list[Origin]:
        wanted = list(dict.fromkeys(tokens))
        found: list[Origin] = []
        key = self._key("tx_changes")
        query = f"{{:find [(pull ?e [*])] :in [[?e ...]] :where [[?e {key} _]]}}"
        for chunk in portions((self.names.transaction(token) for token in wanted), CHUNK):
            rows = self.client.query(query, chunk)
            found += [Transaction.from_doc(self.names, doc).origin for (doc,) in rows]
        return sorted(found, key=order_of)

    def changes_since(self, token: Token | None, *, limit: int = 1000) -> Sequence[Change]:
        after = 0
        if token is not None:
            after = self._known_transaction(token)[0].seq
        changes: list[Change] = []
        clock = self.clock()
        last = 0 if clock is None else clock.seq
        while after < last and len(changes) < limit:
            found = self._sequence(after, min(after + CHUNK, last))
            for record in self._without_erased(found):
                if len(changes) >= limit:
                    break
                origin = record.origin
                changes += [
                    Change(origin.token, origin.time_ms, id, type) for id, type in record.changes
                ]
            after += CHUNK
        return changes

    def records(self, after: Token | None, limit: int) -> list[Record]:
        seq = 0 if after is None else self._known_transaction(after)[0].seq
        return self._without_erased(self._sequence(seq, seq + limit))

    def _without_erased(self, transactions: Iterable[Transaction]) -> list[Record]:
        # Erasing leaves the records as they are, but of nicknames: to write thousands of them again
        # takes long. So a record may name a document that is gone, or that came back under another
        # transaction. Versions come in one after the other, so those of before are the ones that
        # came in before the document was born. Only of an irregular document that need not be so:
        # it may come back under a transaction of before, and not under the next one.
        named = {id for transaction in transactions for id, _ in transaction.changes}
        eids = {self.names.document(id): id for id in named}
        columns = ("born", "irregular", "token")
        clauses = "".join(f"[?e {self._key(name)} ?{name}]" for name in columns)
        query = f"{{:find [?e ?born ?irregular ?token] :in [[?e ...]] :where [{clauses}]}}"
        born: dict[str, int] = {}
        tokens: dict[str, set[Token]] = {}
        # Irregular documents of which `tokens` has the newest version alone.
        unread: set[str] = set()
        for chunk in portions(eids, CHUNK):
            for eid, place, irregular, token in self.client.query(query, chunk):
                born[eids[eid]] = place >> POSITION_BITS
                if irregular:
                    tokens[eids[eid]] = {token}
                    unread.add(eids[eid])

        def is_there(id: str, transaction: Transaction) -> bool:
            if id not in tokens:
                return id in born and born[id] <= transaction.seq
            token = transaction.origin.token
            if token not in tokens[id] and id in unread:
                # Most documents have one version, and need no request of their own.
                tokens[id] = {version.token for version in self.all_versions(id)}
                unread.remove(id)
            return token in tokens[id]

        return [
            Record(t.origin, tuple(c for c in t.changes if is_there(c[0], t))) for t in transactions
        ]

    def _sequence(self, after: int, last: int) -> list[Transaction]:
        query = (
            f"{{:find [(pull ?e [*])] :in [?after ?last] :where [[?e {self._key('tx_seq')} ?seq] "
            "[(> ?seq ?after)] [(<= ?seq ?last)]]}"
        )
        rows = self.client.query(query, after, last)
        found = [Transaction.from_doc(self.names, doc) for (doc,) in rows]
        return sorted(found, key=lambda transaction: transaction.seq)

    # Many versions of many documents with few requests: a session that another machine wrote.
    #
    # XTDB has no request for the histories of many documents. Most versions that are asked for are
    # the newest of their documents, or came in late and so have an id of their own, or came with
    # many others in one transaction: each of these kinds costs a query for hundreds of versions.
    # What is left costs a request for each document.

    def versions(
        self,
        wanted: Mapping[str, Collection[Token]],
        known: Mapping[str, StoredVersion] | None = None,
    ) -> list[tuple[Origin, Document]]:
        """Versions of documents that came with these transactions, with content; hundreds in a few
        requests.

        `known`: what `find` has just returned.
        """
        known = known or {}
        gathering = _Gathering({id: set(tokens) for id, tokens in wanted.items()})
        gathering.take(known.items())
        gathering.take(self.newest(id for id in gathering.left if id not in known).items())
        gathering.take(self._late_versions(gathering.pairs()))
        for token, ids in gathering.by_token().items():
            if len(ids) >= _TOGETHER:
                gathering.take(self._versions_at(token, ids).items())
        for id in list(gathering.left):
            gathering.take((id, version) for version in self.all_versions(id))
        return self._restored(gathering.found)

    def documents(self, record: Record) -> list[Document]:
        token = record.origin.token
        ids = [id for id, _ in record.changes]
        found = self._versions_at(token, ids)
        for id in set(ids) - found.keys():
            # It came in after newer ones, or was added to a transaction that had come in before.
            found.update((id, late) for late in self.all_versions(id) if late.token == token)
        return [document for _, document in self._restored(found[id] for id in ids if id in found)]

    def _restored(self, versions: Iterable[StoredVersion]) -> list[tuple[Origin, Document]]:
        found = [(version.origin, version.fields) for version in versions]
        absent = [f["text_hash"] for _, f in found if f["text_hash"] and "content" not in f]
        blobs = self.blobs(absent)

        def blob(digest: str) -> bytes:
            if digest not in blobs:
                raise Missing(f"no blob {digest} in this store")
            return blobs[digest]

        return [(origin, restore(kind_of(f["type"]), f, blob)) for origin, f in found]

    def _versions_at(self, token: Token, ids: Iterable[str]) -> dict[str, StoredVersion]:
        """What a transaction brought of these documents, without late versions. Raises
        `Missing`."""
        tx_id = self.tx_id(token)
        eids = {self.names.document(id): id for id in ids}
        found: dict[str, StoredVersion] = {}
        for chunk in portions(eids, CHUNK):
            rows = self._rows(":in [[?e ...]]", "", chunk, tx_id=tx_id)
            found.update(
                (eids[e], version) for e, version in rows.items() if version.token == token
            )
        return found

    def _late_versions(
        self, pairs: Iterable[tuple[str, Token]]
    ) -> Iterator[tuple[str, StoredVersion]]:
        eids = {self.names.late(id, token): id for id, token in pairs}
        query = f"{{:find [(pull ?e [*])] :in [[?e ...]] :where [[?e {self._key('late_of')} _]]}}"
        for chunk in portions(eids, CHUNK):
            for (doc,) in self.client.query(query, chunk):
                yield eids[doc["xt/id"]], StoredVersion.from_doc(self.names, doc)

    # Blobs

    def digests(self, after: str, limit: int) -> list[str]:
        query = (
            f"{{:find [?e] :in [?after] :where [[?e {self._key('blob_size')} _] [(> ?e ?after)]]"
            f" :order-by [[?e :asc]] :limit {limit}}}"
        )
        rows = self.client.query(query, self.names.blob(after))
        return [eid.removeprefix(self.names.blob("")) for (eid,) in rows]

    def blobs(self, digests: Iterable[str]) -> dict[str, bytes]:
        """See `Store.blobs`: one by one if few, else in bounded groups."""
        eids = {self.names.blob(digest): digest for digest in digests}
        groups: Iterable[list[str]] = ([eid] for eid in eids)
        if len(eids) > FEW:
            # Those that exist, small ones first.
            sizes = sorted(self._blob_sizes(list(eids)).items(), key=lambda item: item[1])
            groups = in_groups(sizes, MOST_AT_ONCE)
        found = {}
        for group in groups:
            for doc in self._blob_docs(group):
                digest = eids[doc["xt/id"]]
                found[digest] = check_blob(digest, read_blob(self.names, digest, doc))
        return found

    def _blob_docs(self, eids: list[str]) -> list[Doc]:
        if len(eids) == 1:
            doc = self.client.entity(eids[0])
            return [] if doc is None else [doc]
        query = f"{{:find [(pull ?e [*])] :in [[?e ...]] :where [[?e {self._key('blob_size')} _]]}}"
        return [doc for (doc,) in self.client.query(query, eids)]

    def _blob_sizes(self, eids: list[str]) -> dict[str, int]:
        query = f"{{:find [?e ?s] :in [[?e ...]] :where [[?e {self._key('blob_size')} ?s]]}}"
        rows = (
            tuple(row) for chunk in portions(eids, CHUNK) for row in self.client.query(query, chunk)
        )
        return dict(rows)

    def present(self, digests: Sequence[str]) -> set[str]:
        eids = {self.names.blob(digest): digest for digest in digests}
        if len(eids) <= FEW:
            return {d for eid, d in eids.items() if self.client.entity_tx(eid) is not None}
        return {eids[eid] for eid in self._blob_sizes(list(eids))}


@dataclass(slots=True)
class _Gathering:
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
        """Documents still to find, by transaction."""
        groups: dict[Token, list[str]] = {}
        for id, token in self.pairs():
            groups.setdefault(token, []).append(id)
        return groups
