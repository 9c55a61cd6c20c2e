"""What one commit has to write, for a known state of the store; nothing is sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from foredeck.errors import Conflict
from foredeck.store.protocol import Origin, Token, order_of
from foredeck.store.versions import POSITION_BITS, new_store_id, without_nulls
from foredeck_xtdb.database.client import Doc, Operation, valid_time
from foredeck_xtdb.database.documents import (
    Clock,
    StoredVersion,
    Transaction,
    XtdbNames,
    read_fields,
    standing_links,
    write_blob,
)
from foredeck_xtdb.database.reading import XtdbReader


@dataclass(frozen=True, slots=True)
class Prepared:
    """A sealed document, ready to be written: its fields as one JSON text, since XTDB would index
    list elements."""

    fields: Mapping[str, Any]
    text: str

    @property
    def id(self) -> str:
        """Id of the document."""
        return str(self.fields["id"])

    @property
    def type(self) -> str:
        """Its type."""
        return str(self.fields["type"])


@dataclass(slots=True)
class CommitPlan:
    """A transaction to send, and what holds once it has committed."""

    transaction: Transaction
    before: Clock | None
    clock: Clock
    puts: list[Doc] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)
    """Ids assumed not to exist."""

    def operations(self, names: XtdbNames, blobs: Mapping[str, bytes]) -> list[Operation]:
        """What to send, the matches first."""
        before = None if self.before is None else self.before.to_doc(names)
        puts = [*self.puts, self.transaction.to_doc(names), self.clock.to_doc(names)]
        time = valid_time(self.clock.revision)
        return [
            # The clock that the plan was made on: it commits only if nothing has come between.
            ["match", names.clock, before, time],
            *(["match", eid, None, time] for eid in self.absent),
            *put_blobs(names, blobs),
            *(["put", doc, time] for doc in puts),
        ]


@dataclass(frozen=True, slots=True)
class CommitPlanner:
    """Plans on one state: a clock, and the documents as of it."""

    _names: XtdbNames
    _reader: XtdbReader
    _clock: Clock | None
    _heads: Mapping[str, StoredVersion]
    """Newest versions of what is written or expected."""

    def check_expected(self, expect: Mapping[str, Token | None]) -> None:
        """Raises `Conflict` if a document is not at the expected version."""
        for id, expected in expect.items():
            known = self._heads.get(id)
            found = None if known is None else known.token
            if found != expected:
                raise Conflict(f"{id!r} is at {found or 'no version'}, not at {expected or 'none'}")

    def check_identities(self, documents: Sequence[Prepared]) -> None:
        """Raises `Conflict` if a document exists with another type or source."""
        for document in documents:
            if (head := self._heads.get(document.id)) is not None:
                self._check_identity(document, head)

    def local(self, documents: Sequence[Prepared], nonce: str, now_ms: int) -> CommitPlan:
        """The next transaction of this store, later than all others."""
        before = self._clock or Clock(new_store_id(), 0, 0, Token(""), 0)
        seq, time_ms = before.seq + 1, max(now_ms, before.time_ms + 1)
        store = before.store
        if self._reader.transaction(Token(f"{store}-{seq}")) is not None:
            # A store was restored from a backup, and what it had exported later was imported.
            store = new_store_id()
        token = Token(f"{store}-{seq}")
        changes = tuple((document.id, document.type) for document in documents)
        plan = CommitPlan(
            Transaction(Origin(token, time_ms), seq, nonce, False, changes),
            self._clock,
            Clock(store, seq, time_ms, token, before.revision + 1),
            absent=[self._names.transaction(token)],
        )
        for position, document in enumerate(documents):
            self._put_newest(plan, document, (seq << POSITION_BITS) + position, irregular=False)
        return plan

    def imported(
        self, documents: Sequence[Prepared], origin: Origin, nonce: str
    ) -> CommitPlan | None:
        """A transaction of another store; None if nothing is new.

        Raises `Conflict` if it is here with another time or other fields.
        """
        known = self._reader.transaction(origin.token)
        if known is not None and known.origin.time_ms != origin.time_ms:
            raise Conflict(f"transaction {origin.token!r} is here with another time")
        new = [document for document in documents if not self._is_there(document, origin, known)]
        if known is not None and not new:
            return None
        plan = self._import_plan(known, origin, nonce, new)
        start = (plan.transaction.seq << POSITION_BITS) + len(known.changes if known else ())
        latest = 0 if self._clock is None else self._clock.time_ms
        irregular = known is not None or origin.time_ms <= latest
        for position, document in enumerate(new):
            head = self._heads.get(document.id)
            if head is None or order_of(origin) > order_of(head.origin):
                self._put_newest(plan, document, start + position, irregular=irregular)
            else:
                self._put_late(plan, document, head)
        return plan

    def _import_plan(
        self, known: Transaction | None, origin: Origin, nonce: str, new: Sequence[Prepared]
    ) -> CommitPlan:
        changes = tuple((document.id, document.type) for document in new)
        before = self._clock or Clock(new_store_id(), 0, 0, origin.token, 0)
        revised = replace(before, revision=before.revision + 1)
        if known is not None:
            # What was erased and comes again, as after a purge, is named there already.
            named = tuple(dict.fromkeys(known.changes + changes))
            return CommitPlan(replace(known, changes=named), self._clock, revised)
        seq = before.seq + 1
        clock = replace(
            revised, seq=seq, time_ms=max(before.time_ms, origin.time_ms), token=origin.token
        )
        return CommitPlan(Transaction(origin, seq, nonce, True, changes), self._clock, clock)

    def _is_there(self, document: Prepared, origin: Origin, known: Transaction | None) -> bool:
        head = self._heads.get(document.id)
        if known is None or head is None:
            return False
        self._check_identity(document, head)
        if head.token == origin.token:
            there = [head]
        else:
            there = [v for v in self._reader.all_versions(document.id) if v.token == origin.token]
        if not there:
            return False
        if without_nulls(there[0].fields) != without_nulls(read_fields(document.text)):
            raise Conflict(f"{document.id!r} is here with other fields in that transaction")
        return True

    def _put_newest(
        self, plan: CommitPlan, document: Prepared, place: int, *, irregular: bool
    ) -> None:
        head = self._heads.get(document.id)
        if head is not None:
            self._check_identity(document, head)
        origin = plan.transaction.origin
        version = StoredVersion(
            origin.token,
            origin.time_ms,
            document.type,
            place if head is None else head.born,
            irregular or (head is not None and head.irregular),
            document.text,
        )
        eid = self._names.document(document.id)
        plan.puts.append(version.to_doc(self._names, eid, document.fields))

    def _put_late(self, plan: CommitPlan, document: Prepared, head: StoredVersion) -> None:
        """Adds a version before newer ones; the document is irregular then."""
        self._check_identity(document, head)
        origin = plan.transaction.origin
        late = StoredVersion(origin.token, origin.time_ms, document.type, -1, True, document.text)
        eid = self._names.late(document.id, origin.token)
        plan.puts.append(late.to_late_doc(self._names, eid, self._names.document(document.id)))
        if not head.irregular:
            marked = replace(head, irregular=True)
            newest = self._names.document(document.id)
            links = standing_links(self._names, self._reader.client.entity(newest))
            plan.puts.append(marked.to_doc(self._names, newest, marked.fields, links))

    def _check_identity(self, document: Prepared, head: StoredVersion) -> None:
        if head.type != document.type:
            raise Conflict(f"{document.id!r} is a {head.type} here, not a {document.type}")
        if head.fields["identity_hash"] != document.fields["identity_hash"]:
            raise Conflict(f"{document.id!r} has another source here: an identity never changes")


def put_blobs(names: XtdbNames, blobs: Mapping[str, bytes]) -> list[Operation]:
    """One operation per blob, at any valid time."""
    return [["put", write_blob(names, d, data), valid_time(0)] for d, data in blobs.items()]
