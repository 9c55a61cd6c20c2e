"""Committing: send a plan, learn whether it has committed, plan again where it has not.

Every transaction matches and replaces the clock, so of several that were planned on one state
exactly one commits, and whoever lost reads the new state and plans again. A transaction whose
answer was lost is settled by its record, which carries the nonce of the commit: it is never
written twice, and never taken for written when it is not.
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
from foredeck.store.xtdb.client import Operation, OutcomeUnknown, XtdbClient
from foredeck.store.xtdb.documents import Clock
from foredeck.store.xtdb.names import Names
from foredeck.store.xtdb.planning import (
    MAX_DOCUMENTS,
    Known,
    Plan,
    Planner,
    Prepared,
    put_blobs,
)
from foredeck.store.xtdb.reading import Reader

_MOST_HEADS = 5_000
_MOST_BLOBS = 50_000
_SMALL_BLOB = 32_768
"""Bytes."""
_PAUSE = 0.002
_LONGEST_PAUSE = 0.05


@dataclass(slots=True)
class _Commit:
    """One commit on its way: what it wants, and what has been tried."""

    documents: Sequence[Prepared]
    blobs: Mapping[str, bytes]
    expect: Mapping[str, Token | None]
    origin: Origin | None
    deadline: float
    nonce: str = field(default_factory=lambda: secrets.token_hex(8))
    attempts: int = 0
    unsettled: list[Token] = field(default_factory=list)
    """Tokens of attempts whose answer was lost."""

    @property
    def trusting(self) -> bool:
        """The first attempt relies on what is remembered, the others look. So does an import."""
        return self.attempts == 0 and self.origin is None


class Writer:
    """Commits of one store. Keeps what it knows of the newest state, to save reading it."""

    def __init__(self, client: XtdbClient, names: Names, clock: Callable[[], int]) -> None:
        self._client = client
        self._names = names
        self._reader = Reader(client, names)
        self._now_ms = clock
        self._clock: Clock | None = None
        self._knows_clock = False
        self._heads: OrderedDict[str, Known | None] = OrderedDict()
        self._blobs: OrderedDict[str, None] = OrderedDict()

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
        """Commit once; None where somebody else was quicker, or the answer was lost."""
        if (token := self._settled(commit)) is not None:
            return token
        if not commit.trusting:
            self._forget()
        try:
            plan = self._plan(commit)
        except Conflict:
            if not commit.trusting:
                raise
            return None
        if plan is None:
            assert commit.origin is not None
            self._add_blobs(commit.blobs)
            return commit.origin.token
        return plan.transaction.origin.token if self._send(plan, commit) else None

    # Planning

    def _plan(self, commit: _Commit) -> Plan | None:
        """What to send; None where an import brings nothing new."""
        if not self._knows_clock:
            self._clock, self._knows_clock = self._reader.clock(), True
        ids = list(dict.fromkeys([*(document.id for document in commit.documents), *commit.expect]))
        unknown = [id for id in ids if id not in self._heads]
        # Most documents are new. Matching that they are is cheaper than looking for them.
        absent = [id for id in unknown if commit.trusting and commit.expect.get(id) is None]
        self._learn([id for id in unknown if id not in set(absent)])
        heads = {id: self._heads.get(id) for id in ids}
        planner = Planner(self._names, self._reader, self._clock, heads)
        planner.check_expected(commit.expect)
        if commit.origin is not None:
            return planner.imported(commit.documents, commit.origin, commit.nonce)
        plan = planner.local(
            commit.documents, commit.nonce, self._now_ms(), trusting=commit.trusting
        )
        plan.absent += map(self._names.document, absent)
        return plan

    def _learn(self, ids: Sequence[str]) -> None:
        found = self._reader.versions(ids)
        for id in ids:
            self._heads[id] = Known.of(found[id]) if id in found else None

    # Sending

    def _send(self, plan: Plan, commit: _Commit) -> bool:
        """Whether the plan is known to have committed."""
        missing = self._missing(commit.blobs)
        try:
            committed = self._submit(plan.operations(self._names, missing))
        except OutcomeUnknown:
            if commit.origin is None:
                commit.unsettled.append(plan.transaction.origin.token)
            if time.monotonic() > commit.deadline:
                raise
            return False
        if committed:
            self._remember(plan, commit.blobs)
        return committed

    def _submit(self, operations: Sequence[Operation]) -> bool:
        """Whether the transaction has committed. Raises `OutcomeUnknown` for any trouble after it
        was sent."""
        tx_id = self._client.submit(operations)
        try:
            return self._client.committed(tx_id)
        except StoreUnavailable as error:
            raise OutcomeUnknown(str(error)) from error

    def _settled(self, commit: _Commit) -> Token | None:
        """The token under which an attempt turns out to have committed after all."""
        if not commit.unsettled:
            return None
        self._client.catch_up()
        for token in commit.unsettled:
            transaction = self._reader.transaction(token)
            if transaction is not None and transaction.nonce == commit.nonce:
                return token
        return None

    def _missing(self, blobs: Mapping[str, bytes]) -> dict[str, bytes]:
        """The blobs to send. Small ones are not asked for: sending them again costs less."""
        unknown = [digest for digest in blobs if digest not in self._blobs]
        large = [digest for digest in unknown if len(blobs[digest]) > _SMALL_BLOB]
        present = self._reader.present_blobs(large)
        return {digest: blobs[digest] for digest in unknown if digest not in present}

    def _add_blobs(self, blobs: Mapping[str, bytes]) -> None:
        """Blobs without versions. Repeating them changes nothing, so nothing is matched."""
        if missing := self._missing(blobs):
            self._client.committed(self._client.submit(put_blobs(self._names, missing)))

    # Remembering

    def _remember(self, plan: Plan, blobs: Iterable[str]) -> None:
        self._clock, self._knows_clock = plan.clock, True
        for id, known in plan.heads.items():
            self._heads[id] = known
            self._heads.move_to_end(id)
        self._blobs.update(dict.fromkeys(blobs))
        _shorten(self._heads, _MOST_HEADS)
        _shorten(self._blobs, _MOST_BLOBS)

    def _forget(self) -> None:
        """Nothing that was read before is relied on: somebody else may have written."""
        self._heads.clear()
        self._knows_clock = False


def _shorten(cache: OrderedDict[str, Any], most: int) -> None:
    while len(cache) > most:
        cache.popitem(last=False)
