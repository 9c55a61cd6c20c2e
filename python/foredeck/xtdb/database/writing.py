"""Committing: send a plan, find out whether it has committed, plan again where it has not.

A transaction matches and replaces the clock, so of several that were planned on one state exactly
one commits, and whoever lost reads the new state and plans again. Foredeck's own node can order a
commit by itself instead, a *stamped* one.
"""

from __future__ import annotations

import random
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from foredeck.errors import Conflict, StoreUnavailable
from foredeck.store.protocol import Origin, Token
from foredeck.store.versions import MAX_DOCUMENTS, new_store_id
from foredeck.xtdb.database.client import Operation, OutcomeUnknown
from foredeck.xtdb.database.documents import (
    Clock,
    StoredVersion,
    Transaction,
    XtdbNames,
    lookup_value,
)
from foredeck.xtdb.database.planning import (
    CommitPlan,
    CommitPlanner,
    KnownHead,
    Prepared,
    put_blobs,
)
from foredeck.xtdb.database.reading import BlobReader, XtdbReader

_MOST_HEADS = 5_000
_MOST_BLOBS = 50_000
_SMALL_BLOB = 32_768
"""Bytes."""
_PAUSE = 0.002
_LONGEST_PAUSE = 0.05
STAMPED = 100
"""How many commits the node orders after one has lost a race."""


@dataclass(slots=True)
class _Commit:
    """One commit under way: what it is to write, and what was tried."""

    documents: Sequence[Prepared]
    blobs: Mapping[str, bytes]
    expect: Mapping[str, Token | None]
    origin: Origin | None
    deadline: float
    nonce: str = field(default_factory=lambda: secrets.token_hex(8))
    attempts: int = 0
    being_written: list[Token] = field(default_factory=list)
    """Tokens of attempts whose answer was lost."""
    lost_on: Clock | None = None
    """The clock of an attempt that failed."""
    stamp: Token | None = None
    """The token of the attempts that the node orders."""
    unstampable: bool = False
    """Whether the node could not order it, for no reason that `expect` explains."""

    @property
    def trusting(self) -> bool:
        """The first attempt relies on what is remembered; later ones and imports read first."""
        return self.attempts == 0 and self.origin is None


class XtdbWriter:
    """Commits of one store. Keeps what it knows of the newest state, to save reading it."""

    def __init__(self, reader: XtdbReader, blobs: BlobReader, clock: Callable[[], int]) -> None:
        self._client = reader.client
        self._names = reader.names
        self._reader = reader
        self._blob_reader = blobs
        self._now_ms = clock
        self._clock: Clock | None = None
        self._knows_clock = False
        self._heads: OrderedDict[str, KnownHead | None] = OrderedDict()
        self._blobs: OrderedDict[str, None] = OrderedDict()
        self._function: str | None = None
        self._asked_for_function = False
        self.to_stamp = 0
        """How many of the next commits the node is to order."""
        self._own = new_store_id()
        self._stamps = 0
        self._imported: Token | None = None
        """The last transaction of another store that was sent: more of it may follow."""

    def write(
        self,
        documents: Sequence[Prepared],
        blobs: Mapping[str, bytes],
        expect: Mapping[str, Token | None],
        origin: Origin | None,
    ) -> Token:
        """Write everything or nothing. Raises as `Store.commit` says."""
        if len(documents) > MAX_DOCUMENTS:
            raise ValueError(f"a transaction holds at most {MAX_DOCUMENTS} documents")
        deadline = time.monotonic() + self._client.timeout_ms / 1000
        commit = _Commit(documents, blobs, expect, origin, deadline)
        while (token := self._attempt(commit)) is None:
            commit.attempts += 1
            if time.monotonic() > commit.deadline:
                raise StoreUnavailable(
                    f"XTDB at {self._client.url} is busy: {commit.attempts} attempts to commit "
                    f"came too late in {self._client.timeout_ms} ms"
                )
            time.sleep(random.uniform(0, min(_PAUSE * commit.attempts, _LONGEST_PAUSE)))
        return token

    def _attempt(self, commit: _Commit) -> Token | None:
        """Commit once; None where another commit came first, or the answer was lost."""
        if (token := self._settled(commit)) is not None:
            return token
        if not commit.trusting:
            self._look_again(commit)
        if self._is_stamped(commit):
            return self._attempt_stamped(commit)
        try:
            plan = self._plan(commit)
        except Conflict:
            if commit.attempts == 0:
                # It may come from what is remembered, or from a node that lags behind others.
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
            self._remember(plan, commit.blobs)
            return plan.transaction.origin.token
        commit.lost_on = plan.before
        return None

    def _look_again(self, commit: _Commit) -> None:
        """Forget what was read before, and find out whether another commit came first."""
        if commit.attempts:
            self._client.catch_up()
        self._heads.clear()
        self._clock, self._knows_clock = self._reader.clock(), True
        if commit.lost_on is not None and commit.lost_on != self._clock:
            # Another store writes too, and would win again: let the node order the next commits.
            self.to_stamp = STAMPED

    # Commits that the node orders

    def _is_stamped(self, commit: _Commit) -> bool:
        # A stamped commit does not fail by coming late. Once one is on its way, nothing with
        # another token may be sent in its place: both could be written.
        if commit.stamp in commit.being_written:
            return True
        # With its own token and time an import can be ordered without anything being read.
        wanted = self.to_stamp > 0
        if commit.origin is not None:
            # It may be one that is not here yet.
            token = commit.origin.token
            is_new = token != self._imported and lookup_value(token) == token
            wanted = is_new and bool(commit.documents)
        if not wanted or commit.unstampable:
            return False
        if not self._asked_for_function:
            self._function, self._asked_for_function = self._client.commit_function(), True
        return self._function is not None

    def _attempt_stamped(self, commit: _Commit) -> Token | None:
        if commit.stamp is None:
            commit.stamp = self._stamp(commit.origin)
        assert self._function is not None
        operations = stamped_operations(
            self._names,
            self._function,
            commit,
            commit.stamp,
            self._now_ms() if commit.origin is None else 0,
            self._missing(commit.blobs),
        )
        being_written = len(commit.being_written)
        committed = self._send(operations, commit, None)
        # The node has filled in place and time: the clock that is remembered is out of date.
        self._knows_clock = False
        for document in commit.documents:
            self._heads.pop(document.id, None)
        if committed:
            self._remember_blobs(commit.blobs)
            return commit.stamp
        if len(commit.being_written) > being_written:
            return None
        token = self._settled(commit)
        if token is None:
            commit.unstampable = True
            if commit.origin is None:
                self._check(commit)
        return token

    def _stamp(self, origin: Origin | None) -> Token:
        if origin is not None:
            self._imported = origin.token
            return origin.token
        self.to_stamp = max(0, self.to_stamp - 1)
        self._stamps += 1
        return Token(f"{self._own}-{self._stamps}")

    def _check(self, commit: _Commit) -> None:
        """Raise `Conflict` for the reason why the node has refused a commit, if there is one."""
        self._heads.clear()
        heads = self._known_heads(commit, [])
        planner = CommitPlanner(self._names, self._reader, None, heads)
        planner.check_expected(commit.expect)
        planner.check_identities(commit.documents)

    # Planning

    def _plan(self, commit: _Commit) -> CommitPlan | None:
        """What to send; None where an import brings nothing new."""
        if not self._knows_clock:
            self._clock, self._knows_clock = self._reader.clock(), True
        # Most documents are new. A match that fails if they exist is cheaper than looking for them.
        absent = [
            id
            for id in _ids(commit)
            if commit.trusting and id not in self._heads and commit.expect.get(id) is None
        ]
        heads = self._known_heads(commit, absent)
        planner = CommitPlanner(self._names, self._reader, self._clock, heads)
        planner.check_expected(commit.expect)
        if commit.origin is not None:
            return planner.imported(commit.documents, commit.origin, commit.nonce)
        plan = planner.local(
            commit.documents, commit.nonce, self._now_ms(), trusting=commit.trusting
        )
        plan.absent += map(self._names.document, absent)
        return plan

    def _known_heads(self, commit: _Commit, absent: Sequence[str]) -> dict[str, KnownHead | None]:
        """The newest versions of all that a commit names; `absent` ids are assumed not to exist."""
        ids = _ids(commit)
        unknown = [id for id in ids if id not in self._heads and id not in set(absent)]
        found = self._reader.versions(unknown)
        for id in unknown:
            self._heads[id] = KnownHead.of(found[id]) if id in found else None
        return {id: self._heads.get(id) for id in ids}

    # Sending

    def _send(
        self, operations: Sequence[Operation], commit: _Commit, plan: CommitPlan | None
    ) -> bool:
        """Whether the transaction is known to have committed."""
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
        """The token under which an attempt turns out to have committed after all."""
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
        """The blobs to send. Small ones are not asked for: sending them again costs less."""
        unknown = [digest for digest in blobs if digest not in self._blobs]
        large = [digest for digest in unknown if len(blobs[digest]) > _SMALL_BLOB]
        present = self._blob_reader.present(large)
        return {digest: blobs[digest] for digest in unknown if digest not in present}

    def _add_blobs(self, blobs: Mapping[str, bytes]) -> None:
        """Blobs without versions. Repeating them changes nothing, so nothing is matched."""
        if missing := self._missing(blobs):
            self._client.commit(put_blobs(self._names, missing))

    # Remembering

    def _remember(self, plan: CommitPlan, blobs: Iterable[str]) -> None:
        self._clock, self._knows_clock = plan.clock, True
        for id, known in plan.heads.items():
            self._heads[id] = known
            self._heads.move_to_end(id)
        _shorten(self._heads, _MOST_HEADS)
        self._remember_blobs(blobs)

    def _remember_blobs(self, blobs: Iterable[str]) -> None:
        self._blobs.update(dict.fromkeys(blobs))
        _shorten(self._blobs, _MOST_BLOBS)


def _ids(commit: _Commit) -> list[str]:
    return list(dict.fromkeys([*(document.id for document in commit.documents), *commit.expect]))


def _shorten(cache: OrderedDict[str, Any], most: int) -> None:
    while len(cache) > most:
        cache.popitem(last=False)


# Commits that the node orders by itself, by the transaction function of
# `xtdb/src/.../commit.clj`.
#
# A commit that matches the clock fails whenever another one was quicker. Where that happens, and
# for transactions of other stores, of which nothing has to be read then, the node is asked to
# check what is expected and to fill in place and time while it indexes the transaction, when
# nothing can come between.


def stamped_operations(
    names: XtdbNames,
    function: str,
    commit: _Commit,
    token: Token,
    now_ms: int,
    blobs: Mapping[str, bytes],
) -> list[Operation]:
    """What to send: it commits unless something expected does not hold, an identity differs, or
    an attempt at it has committed already. `blobs`: those of the commit that are not stored yet.

    Where the commit is a transaction of another store, it is also refused where a version is there
    that is not older; `now_ms` is 0 then.
    """
    origin, documents = commit.origin, commit.documents
    changes = tuple((document.id, document.type) for document in documents)
    # Time and place are the function's to fill in.
    record = Transaction(Origin(token, 0), 0, commit.nonce, origin is not None, changes)
    attempts = dict.fromkeys([token, *commit.being_written])
    arguments = {
        "namespace": names.namespace,
        "now": now_ms,
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
    return [*put_blobs(names, blobs), ["fn", function, arguments]]
