"""Reading versions, transactions and blobs.

As-of reads go by XTDB's own transaction id: what was newest when that transaction had been
indexed. Only irregular objects need more: their versions are ordered by the time of their
transactions, and may have come in another order. Blobs are read one by one where they are few, else
in groups of a bounded size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from foredeck.errors import Missing
from foredeck.store.protocol import (
    Change,
    Origin,
    Record,
    Scalar,
    Token,
    in_groups,
    order_of,
    portions,
)
from foredeck.store.versions import INDEXED, POSITION_BITS, check_blob, matches
from foredeck.xtdb.database.client import CHUNK, FEW, Doc, XtdbClient
from foredeck.xtdb.database.documents import (
    Clock,
    StoredVersion,
    Transaction,
    XtdbNames,
    lookup_value,
    read_blob,
)

_MOST_CACHED = 4096


class XtdbReader:
    """Everything that is read from one namespace of one server."""

    def __init__(self, client: XtdbClient, names: XtdbNames) -> None:
        self.client = client
        self.names = names
        self._transactions: dict[Token, tuple[Transaction, int]] = {}

    # Versions

    def version(self, id: str) -> StoredVersion | None:
        """The newest version of a document."""
        return self._version_at(self.names.document(id), None)

    def versions(self, ids: Iterable[str]) -> dict[str, StoredVersion]:
        """Newest versions of many documents; ids that do not exist are left out."""
        wanted = list(dict.fromkeys(ids))
        if len(wanted) <= FEW:
            found = {id: self.version(id) for id in wanted}
            return {id: version for id, version in found.items() if version is not None}
        by_eid: dict[str, StoredVersion] = {}
        for chunk in portions((self.names.document(id) for id in wanted), CHUNK):
            by_eid.update(self._rows(":in [[?e ...]]", "", chunk))
        eids = {id: self.names.document(id) for id in wanted}
        return {id: by_eid[eid] for id, eid in eids.items() if eid in by_eid}

    def history(self, id: str) -> list[StoredVersion]:
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

    def late_versions(
        self, pairs: Iterable[tuple[str, Token]]
    ) -> Iterator[tuple[str, StoredVersion]]:
        """Those of these versions (document and token) that came in after newer ones."""
        eids = {self.names.late(id, token): id for id, token in pairs}
        query = f"{{:find [(pull ?e [*])] :in [[?e ...]] :where [[?e {self._key('late_of')} _]]}}"
        for chunk in portions(eids, CHUNK):
            for (doc,) in self.client.query(query, chunk):
                yield eids[doc["xt/id"]], StoredVersion.from_doc(self.names, doc)

    def version_as_of(self, id: str, token: Token) -> StoredVersion | None:
        """The newest version not later than `token`. Raises `Missing` for an unknown one."""
        transaction, tx_id = self._known_transaction(token)
        eid = self.names.document(id)
        newest = self._version_at(eid, None)
        if newest is None or newest.token == token:
            return newest
        then = self._version_at(eid, tx_id)
        if then is not None and then.token == token:
            return then
        until = order_of(transaction.origin)
        # For a regular object, what came in later is later in time, too.
        if not newest.irregular and (then is None or order_of(then.origin) <= until):
            return then
        earlier = [v for v in self.history(id) if order_of(v.origin) <= until]
        return earlier[-1] if earlier else None

    def _version_at(self, eid: str, tx_id: int | None) -> StoredVersion | None:
        doc = self.client.entity(eid, tx_id)
        return None if doc is None else StoredVersion.from_doc(self.names, doc)

    # Queries

    def find(
        self, type: str, where: Mapping[str, Scalar | None], limit: int | None
    ) -> dict[str, StoredVersion]:
        """See `Store.query`; by id. Fields in `INDEXED` are looked up, others are compared."""
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
        found = (
            (head.id, version)
            for head, version in heads
            if all(matches(head.fields, n, v) for n, v in rest)
        )
        return dict(islice(found, limit))

    def _rows(
        self, inputs: str, clauses: str, *args: object, tx_id: int | None = None
    ) -> dict[str, StoredVersion]:
        """Newest versions of every `?e` that fits the clauses, by XTDB's id; also as of `tx_id`."""
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
        """The state that the next transaction builds on; None before the first."""
        doc = self.client.entity(self.names.clock)
        return None if doc is None else Clock.from_doc(self.names, doc)

    def transaction(self, token: Token) -> Transaction | None:
        """The current record of a transaction."""
        doc = self.client.entity(self.names.transaction(token))
        return None if doc is None else Transaction.from_doc(self.names, doc)

    def _known_transaction(self, token: Token) -> tuple[Transaction, int]:
        """The record, and XTDB's id of the transaction that wrote it last.

        Cached: what an import adds to the record later does not matter to as-of reads.
        """
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
        """XTDB's id of the transaction that is called `token`. Raises `Missing`."""
        return self._known_transaction(token)[1]

    def newest_at(self, time_ms: int) -> Token | None:
        """The transaction that was the newest at a time; None before the first.

        Goes by the times that transactions have for foredeck: XTDB's own are those of delivery.
        """
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

    def transactions(self, tokens: Iterable[Token]) -> list[Origin]:
        """See `Store.transactions`."""
        wanted = list(dict.fromkeys(tokens))
        found: list[Origin] = []
        key = self._key("tx_changes")
        query = f"{{:find [(pull ?e [*])] :in [[?e ...]] :where [[?e {key} _]]}}"
        for chunk in portions((self.names.transaction(token) for token in wanted), CHUNK):
            rows = self.client.query(query, chunk)
            found += [Transaction.from_doc(self.names, doc).origin for (doc,) in rows]
        return sorted(found, key=order_of)

    def changes_since(self, token: Token | None, limit: int) -> list[Change]:
        """See `Store.changes_since`."""
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
        """See `Store.records`."""
        seq = 0 if after is None else self._known_transaction(after)[0].seq
        return self._without_erased(self._sequence(seq, seq + limit))

    def _without_erased(self, transactions: Iterable[Transaction]) -> list[Record]:
        """The records of transactions, of each with the versions that are still there."""
        # Erasing leaves the records as they are, but of nicknames: to write thousands of them again
        # takes long. So a record may name a document that is gone, or that came back under another
        # transaction. Versions come in one after the other, so those of before are the ones that
        # came in before the document was born. Only of an irregular document that need not be so:
        # it may come back under a transaction of before, and not under the next one.
        named = {id for transaction in transactions for id, _ in transaction.changes}
        eids = {self.names.document(id): id for id in named}
        query = (
            f"{{:find [?e ?born ?irregular] :in [[?e ...]] :where [[?e {self._key('born')} ?born] "
            f"[?e {self._key('irregular')} ?irregular]]}}"
        )
        born: dict[str, int] = {}
        tokens: dict[str, set[Token]] = {}
        for chunk in portions(eids, CHUNK):
            for eid, place, irregular in self.client.query(query, chunk):
                born[eids[eid]] = place >> POSITION_BITS
                if irregular:
                    tokens[eids[eid]] = {version.token for version in self.history(eids[eid])}

        def is_there(id: str, transaction: Transaction) -> bool:
            if id in tokens:
                return transaction.origin.token in tokens[id]
            return id in born and born[id] <= transaction.seq

        # Records of earlier versions name twice what came again.
        return [
            Record(t.origin, tuple(dict.fromkeys(c for c in t.changes if is_there(c[0], t))))
            for t in transactions
        ]

    def versions_of(self, record: Record) -> dict[str, StoredVersion]:
        """The versions that a transaction brought, by the documents' ids."""
        token = record.origin.token
        ids = [id for id, _ in record.changes]
        found = self.versions_at(token, ids)
        for id in set(ids) - found.keys():
            # It came in after newer ones, or was added to a transaction that had come in before.
            late = self.version_as_of(id, token)
            if late is not None and late.token == token:
                found[id] = late
        return found

    def versions_at(self, token: Token, ids: Iterable[str]) -> dict[str, StoredVersion]:
        """As `versions_of`, of these documents; without what came in after newer versions, or was
        added to a transaction that had come in before. Raises `Missing`."""
        tx_id = self.tx_id(token)
        eids = {self.names.document(id): id for id in ids}
        found: dict[str, StoredVersion] = {}
        for chunk in portions(eids, CHUNK):
            rows = self._rows(":in [[?e ...]]", "", chunk, tx_id=tx_id)
            found.update(
                (eids[e], version) for e, version in rows.items() if version.token == token
            )
        return found

    def _sequence(self, after: int, last: int) -> list[Transaction]:
        """The transactions after one place up to another, in their order."""
        query = (
            f"{{:find [(pull ?e [*])] :in [?after ?last] :where [[?e {self._key('tx_seq')} ?seq] "
            "[(> ?seq ?after)] [(<= ?seq ?last)]]}"
        )
        rows = self.client.query(query, after, last)
        found = [Transaction.from_doc(self.names, doc) for (doc,) in rows]
        return sorted(found, key=lambda transaction: transaction.seq)


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
        groups: Iterable[list[str]] = ([eid] for eid in eids)
        if len(eids) > FEW:
            # Those that exist, small ones first.
            sizes = sorted(self._blob_sizes(list(eids)).items(), key=lambda item: item[1])
            groups = in_groups(sizes, MOST_AT_ONCE)
        found = {}
        for group in groups:
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

    def _blob_sizes(self, eids: list[str]) -> dict[str, int]:
        """By XTDB's id, of the blobs that exist. Loads none of them."""
        query = f"{{:find [?e ?s] :in [[?e ...]] :where [[?e {self._key('blob_size')} ?s]]}}"
        rows = (
            tuple(row)
            for chunk in portions(eids, CHUNK)
            for row in self._client.query(query, chunk)
        )
        return dict(rows)

    def present(self, digests: Sequence[str]) -> set[str]:
        """Those of `digests` that exist. Loads none of them."""
        eids = {self._names.blob(digest): digest for digest in digests}
        if len(eids) <= FEW:
            return {d for eid, d in eids.items() if self._client.entity_tx(eid) is not None}
        return {eids[eid] for eid in self._blob_sizes(list(eids))}
