"""Everything that a namespace of XTDB 1 holds, through its HTTP API."""

from __future__ import annotations

import random
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from foredeck.errors import Conflict, StoreUnavailable
from foredeck.model.identity import json_text
from foredeck.store.clock import now_ms
from foredeck.store.protocol import Batch, Origin, Token, portions
from foredeck.store.versions import MAX_DOCUMENTS, new_store_id, prepared
from foredeck_xtdb.database.client import Operation, OutcomeUnknown, XtdbClient, valid_time
from foredeck_xtdb.database.documents import StoredVersion, Transaction, XtdbNames, lookup_value
from foredeck_xtdb.database.planning import CommitPlan, CommitPlanner, Prepared, put_blobs
from foredeck_xtdb.database.reading import XtdbReader

_MOST_EVICTED = 5000
"""In one transaction."""


def open_xtdb(
    url: str,
    *,
    token: str | None = None,
    namespace: str = "foredeck",
    timeout_ms: int = 10_000,
    clock: Callable[[], int] = now_ms,
) -> Database:
    """Opens the namespace at a server's address, once the server has indexed its log. Raises
    `StoreUnavailable`."""
    client = XtdbClient(url, token=token, timeout_ms=timeout_ms)
    database = Database(client, XtdbNames(namespace), clock)
    try:
        client.catch_up()
        database.clock()  # has the number of the form
    except BaseException:
        client.close()
        raise
    return database


class Database(XtdbReader):
    """What a namespace of XTDB 1 holds. Made by `open_xtdb`."""

    def __init__(self, client: XtdbClient, names: XtdbNames, clock: Callable[[], int]) -> None:
        super().__init__(client, names)
        self._writer = XtdbWriter(self, clock)

    def commit(self, batch: Batch, *, origin: Origin | None = None) -> Token:
        """See `Store.commit`; XTDB decides `expect` for all machines."""
        documents, blobs = prepared(batch)
        ready = [Prepared(fields, json_text(stored)) for fields, stored in documents]
        return self._writer.write(ready, blobs, batch.expect, origin)

    def erase(self, ids: Iterable[str], blobs: Iterable[str]) -> None:
        eids, named, gone = [], set[Token](), set(ids)
        for id in gone:
            versions = self.all_versions(id)
            late = (self.names.late(id, head.token) for head in versions)
            eids += [self.names.document(id), *late]
            # The id of a nickname is a user's text, and is in the transactions' records as well.
            named |= {head.token for head in versions if head.type == "nickname"}
        eids += [self.names.blob(digest) for digest in blobs]
        # The records before the claims: as long as these are there, what was killed in between is
        # found and done again.
        for token in sorted(named):
            self._rewrite_record(token, gone)
        for portion in portions(eids, _MOST_EVICTED):
            self.client.commit([["evict", eid] for eid in portion])

    def _rewrite_record(self, token: Token, gone: Collection[str]) -> None:
        record = self.transaction(token)
        if record is None:
            return  # an erasing that was interrupted in between
        changes = tuple((id, type) for id, type in record.changes if id not in gone)
        fresh = replace(record, changes=changes).to_doc(self.names)
        # Two transactions: XTDB evicts at the end of one, with what the same one has put.
        self.client.commit([["evict", fresh["xt/id"]]])
        self.client.commit([["put", fresh, valid_time(0)]])

    def close(self) -> None:
        self.client.close()


# Committing
#
# Foredeck's own node orders a commit by itself, a *stamped* one: the transaction function of
# `xtdb/src/.../commit.clj` checks what is expected, and fills in place and time, while the node
# indexes the transaction, when nothing can come between. So nothing has to be read before.
#
# Any other server is sent a plan that was made on the state read before, and foredeck's own what
# the function refuses, such as a version that belongs before others. A plan matches and replaces
# the clock, so of several that were made on one state exactly one commits, and whoever lost reads
# the new state and plans again.

_MOST_BLOBS = 50_000
_SMALL_BLOB = 32_768
"""Bytes."""
_PAUSE = 0.002
_LONGEST_PAUSE = 0.05


@dataclass(slots=True)
class _Commit:
    """One commit under way: what it writes, and what was tried."""

    documents: Sequence[Prepared]
    blobs: Mapping[str, bytes]
    expect: Mapping[str, Token | None]
    origin: Origin | None
    deadline: float
    nonce: str = field(default_factory=lambda: secrets.token_hex(8))
    attempts: int = 0
    being_written: list[Token] = field(default_factory=list)
    """Tokens of attempts whose answer was lost."""
    stamp: Token | None = None
    """Token of the attempts that the node orders."""
    unstampable: bool = False
    """Whether the node could not order it."""

    @property
    def ids(self) -> list[str]:
        """The documents that are written or expected."""
        return list(dict.fromkeys([*(document.id for document in self.documents), *self.expect]))


class XtdbWriter:
    """Commits of one store."""

    def __init__(self, reader: XtdbReader, clock: Callable[[], int]) -> None:
        self._client = reader.client
        self._names = reader.names
        self._reader = reader
        self._now_ms = clock
        self._blobs: OrderedDict[str, None] = OrderedDict()
        """The blobs written last, known to be stored."""
        self._own = new_store_id()
        self._stamps = 0
        self._imported: Token | None = None
        """The last imported transaction, of which more may follow."""

    @cached_property
    def _function(self) -> str | None:
        return self._client.commit_function()

    def write(
        self,
        documents: Sequence[Prepared],
        blobs: Mapping[str, bytes],
        expect: Mapping[str, Token | None],
        origin: Origin | None,
    ) -> Token:
        """Writes everything or nothing. Raises like `Store.commit`."""
        if len(documents) > MAX_DOCUMENTS:
            raise ValueError(f"a transaction holds at most {MAX_DOCUMENTS} documents")
        deadline = time.monotonic() + self._client.timeout_ms / 1000
        commit = _Commit(documents, blobs, expect, origin, deadline)
        while (token := self._attempt(commit)) is None:
            commit.attempts += 1
            if time.monotonic() > commit.deadline:
                raise StoreUnavailable(
                    f"XTDB at {self._client.url} took none of {commit.attempts} attempts to commit "
                    f"in {self._client.timeout_ms} ms: others write all the time, or its disk may "
                    "be full; `foredeck xtdb logs` says more"
                )
            time.sleep(random.uniform(0, min(_PAUSE * commit.attempts, _LONGEST_PAUSE)))
        return token

    def _attempt(self, commit: _Commit) -> Token | None:
        """Commits once; None if another commit came first, or the answer was lost."""
        if (token := self._settled(commit)) is not None:
            return token
        if commit.attempts:
            self._client.catch_up()
        if self._is_stamped(commit):
            return self._attempt_stamped(commit)
        try:
            plan = self._plan(commit)
        except Conflict:
            if commit.attempts == 0:
                # It may come from a node that lags behind others.
                return None
            # The conflict may be with an attempt of this very commit whose answer was lost.
            if (token := self._settled(commit)) is None:
                raise
            return token
        if plan is None:
            assert commit.origin is not None
            self._add_blobs(commit.blobs)
            return commit.origin.token
        if self._send(plan.operations(self._names, self._missing(commit.blobs)), commit, plan):
            self._remember(commit.blobs)
            return plan.transaction.origin.token
        return None

    # Commits that the node orders

    def _is_stamped(self, commit: _Commit) -> bool:
        # A stamped commit does not fail by coming late. Once one is on its way, nothing with
        # another token may be sent in its place: both could be written.
        if commit.stamp in commit.being_written:
            return True
        if commit.origin is not None:
            # A transaction that is here already is added to, which the function does not do.
            token = commit.origin.token
            if token == self._imported or lookup_value(token) != token or not commit.documents:
                return False
        return not commit.unstampable and self._function is not None

    def _attempt_stamped(self, commit: _Commit) -> Token | None:
        if commit.stamp is None:
            commit.stamp = self._stamp(commit.origin)
        being_written = len(commit.being_written)
        committed = self._send(self._stamped_operations(commit, commit.stamp), commit, None)
        if committed:
            self._remember(commit.blobs)
            return commit.stamp
        if len(commit.being_written) > being_written:
            return None
        token = self._settled(commit)
        if token is None:
            commit.unstampable = True
            if commit.origin is None:
                self._check(commit)
        return token

    def _stamped_operations(self, commit: _Commit, token: Token) -> list[Operation]:
        """Operations that commit unless an expectation fails, an identity differs, or an earlier
        attempt has committed."""
        names, origin, documents = self._names, commit.origin, commit.documents
        changes = tuple((document.id, document.type) for document in documents)
        # Time and place are the function's to fill in.
        record = Transaction(Origin(token, 0), 0, commit.nonce, origin is not None, changes)
        attempts = dict.fromkeys([token, *commit.being_written])
        arguments = {
            "namespace": names.namespace,
            "now": self._now_ms() if origin is None else 0,
            "at": None if origin is None else origin.time_ms,
            "unless": [names.transaction(other) for other in attempts],
            "expect": [{"eid": names.document(id), "token": t} for id, t in commit.expect.items()],
            "record": record.to_doc(names),
            "puts": [
                StoredVersion(token, 0, document.type, 0, False, document.text).to_doc(
                    names, names.document(document.id), document.fields
                )
                for document in documents
            ],
        }
        function = ["fn", self._function, arguments]
        return [*put_blobs(names, self._missing(commit.blobs)), function]

    def _stamp(self, origin: Origin | None) -> Token:
        if origin is not None:
            self._imported = origin.token
            return origin.token
        self._stamps += 1
        return Token(f"{self._own}-{self._stamps}")

    def _check(self, commit: _Commit) -> None:
        planner = CommitPlanner(self._names, self._reader, None, self._reader.newest(commit.ids))
        planner.check_expected(commit.expect)
        planner.check_identities(commit.documents)

    # Planning

    def _plan(self, commit: _Commit) -> CommitPlan | None:
        """The plan of a commit; None if an import brings nothing new."""
        # The clock first: the plan fails where anything is committed after it was read.
        clock = self._reader.clock()
        planner = CommitPlanner(self._names, self._reader, clock, self._reader.newest(commit.ids))
        planner.check_expected(commit.expect)
        if commit.origin is not None:
            return planner.imported(commit.documents, commit.origin, commit.nonce)
        return planner.local(commit.documents, commit.nonce, self._now_ms())

    # Sending

    def _send(
        self, operations: Sequence[Operation], commit: _Commit, plan: CommitPlan | None
    ) -> bool:
        try:
            return self._client.commit(operations)
        except OutcomeUnknown:
            token = commit.stamp if plan is None else plan.transaction.origin.token
            if commit.origin is None and token is not None and token not in commit.being_written:
                commit.being_written.append(token)
            if time.monotonic() > commit.deadline:
                raise
            return False

    def _settled(self, commit: _Commit) -> Token | None:
        if not commit.being_written:
            return None
        # Whether it was written says its record, which carries the nonce of the commit. So it is
        # never written twice, and never believed to be written when it is not.
        self._client.catch_up()
        for token in commit.being_written:
            transaction = self._reader.transaction(token)
            if transaction is not None and transaction.nonce == commit.nonce:
                return token
        return None

    def _missing(self, blobs: Mapping[str, bytes]) -> dict[str, bytes]:
        """Blobs to send; small ones are sent unasked, which costs less."""
        unknown = [digest for digest in blobs if digest not in self._blobs]
        large = [digest for digest in unknown if len(blobs[digest]) > _SMALL_BLOB]
        present = self._reader.present(large)
        return {digest: blobs[digest] for digest in unknown if digest not in present}

    def _add_blobs(self, blobs: Mapping[str, bytes]) -> None:
        """Adds blobs without versions; repeating that changes nothing."""
        if missing := self._missing(blobs):
            self._client.commit(put_blobs(self._names, missing))

    def _remember(self, blobs: Iterable[str]) -> None:
        self._blobs.update(dict.fromkeys(blobs))
        while len(self._blobs) > _MOST_BLOBS:
            self._blobs.popitem(last=False)
