"""The right to observe a session: one operation at a time on all machines."""

from __future__ import annotations

import hashlib
import logging
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal

from foredeck.errors import Conflict, ForedeckError
from foredeck.model.documents import Document, Provenance
from foredeck.model.identity import uuid7
from foredeck.model.memory import MemoryScope
from foredeck.model.observations import ObservingDocument, Work, observing_id
from foredeck.sources.filesystem import machine_id, text_or_nothing
from foredeck.store.clock import now_ms
from foredeck.store.protocol import Batch, Token
from foredeck.store.store import Store

LEASE_MS = 120_000
HEARTBEAT_MS = 30_000
"""Renewal interval; three may be missed."""
_BOOT_ID = "/proc/sys/kernel/random/boot_id"
Outcome = Literal["done", "failed", "given up", "cleared"]
_LOST = "The lease was lost: another operation has it."

log = logging.getLogger(__name__)


class ObservingFailed(ForedeckError):
    """Observing came to nothing; existing notes stay."""


class ObservingBusy(ObservingFailed):
    """Another process observes or just has; retry later."""


_CUT_OFF: dict[Work, str] = {
    "observe": "An observation was cut off when its engine ended; nothing of it was kept, and its "
    "messages are observed again.",
    "reflect": "A reflection was cut off when its engine ended; nothing of it was kept.",
}


@dataclass(frozen=True, slots=True)
class Seen:
    """The lease as read before what it protects."""

    token: Token | None = None
    document: ObservingDocument | None = None


def owner_name() -> str:
    """This process as `SPACE/PID/UNIQUE`."""
    return f"{_process_space()}/{os.getpid()}/{uuid7()}"


@cache
def _process_space() -> str:
    # Names of machines do not: containers are called the same. On Linux it is the boot and the
    # namespace of processes; where nothing is known, this process alone.
    text = text_or_nothing(_BOOT_ID).strip()
    try:
        text = text and f"{text} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        text = ""
    if not text and sys.platform == "darwin":
        text = machine_id() or ""
    return hashlib.sha256((text or uuid7()).encode()).hexdigest()[:16]


def is_gone(owner: str) -> bool:
    """Whether an owner's process has ended, as far as visible here."""
    space, _, rest = owner.partition("/")
    process = rest.partition("/")[0]
    if space != _process_space() or not process.isdecimal():
        return False
    if sys.platform == "win32":
        # Signal 0 is Ctrl+C there, or the end of the process. A lease ends by itself.
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    # It may have ended without its parent having asked how, as often in a container, whose first
    # process is no init. `kill` still reaches it then.
    return text_or_nothing(f"/proc/{process}/stat").rpartition(")")[2].split()[:1] == ["Z"]


@dataclass
class ObservingLease:
    """The lease of a session, or of a project if notes are shared.

    An *operation* spans `take` to `commit` or `give_back`.
    """

    store: Store
    key: str
    """Id of the session or project."""
    scope: MemoryScope = "thread"
    owner: str = field(default_factory=owner_name)
    clock: Callable[[], int] = now_ms

    @property
    def id(self) -> str:
        """Id of its document."""
        return observing_id(self.key)

    def look(self) -> Seen:
        """Read this before the chat: later commits make `take` fail."""
        # What others commit in between `take` finds out, since the lease has another token then.
        head = self.store.head(self.id)
        if head is None:
            return Seen()
        document = self.store.get(self.id, ObservingDocument, head.token)
        return Seen(head.token, None if document is None else document.model_copy(deep=True))

    def take(self, work: Work, seen: Seen, *, covers: tuple[str, ...] = (), tokens: int = 0) -> str:
        """Begins an operation based on what was read after `seen`.

        Raises `ObservingBusy` if another process was faster; `StoreUnavailable`.
        """
        now, operation = self.clock(), uuid7()
        document = seen.document or ObservingDocument(
            id=self.id,
            scope=self.scope,
            session=self.key if self.scope == "thread" else None,
            project=self.key if self.scope == "resource" else None,
            provenance=Provenance(origin=self.owner, generator="system"),
        )
        if self._is_held(document, now):
            raise ObservingBusy("An observation is in progress already: try again.")
        document.provenance = Provenance(origin=self.owner, generator="system")
        document.work, document.owner, document.operation = work, self.owner, operation
        document.taken_ms = document.heartbeat_ms = now
        document.lease_ms = now + LEASE_MS
        document.covers, document.tokens = list(covers), tokens
        try:
            self._put([document], {self.id: seen.token})
        except Conflict:
            raise ObservingBusy("Somebody else has just observed this: look again.") from None
        return operation

    def renew(self, operation: str) -> None:
        """Extends the lease. Raises `ObservingBusy` if it is lost."""
        renewed, token = self._own(operation)
        now = self.clock()
        renewed.heartbeat_ms, renewed.lease_ms = now, now + LEASE_MS
        self._put_own([renewed], token)

    def commit(self, operation: str, document: Document, expect: dict[str, Token | None]) -> None:
        """Commits a result and returns the lease, in one transaction.

        Idempotent. Raises `ObservingBusy` if the lease is lost, `StoreUnavailable`, or `Conflict`.
        """
        # Where the database stopped answering in between, the commit is tried again.
        if self._is_committed(document, operation):
            return
        try:
            mine, token = self._own(operation)
            released = self._released(mine, "done", "")
            released.done += 1
            released.newest = document.id
            others = {document.id: None, **expect}
            # In one transaction, so that what was observed is there once or not at all, whoever is
            # killed when.
            self._put_own([released, document], token, others)
        except ObservingBusy:
            # An earlier attempt whose outcome was not known may have been this very commit.
            if not self._is_committed(document, operation):
                raise

    def _is_committed(self, document: Document, operation: str) -> bool:
        head = self.store.head(document.id)
        return head is not None and head.fields.get("operation") == operation

    def give_back(self, operation: str, reason: str, outcome: Outcome = "failed") -> None:
        """Ends an operation without result."""
        with suppress(ObservingBusy):
            mine, token = self._own(operation)
            self._put_own([self._released(mine, outcome, reason)], token)

    def close(self) -> None:
        """Ends this process's operation with the session."""
        # So that the next to open it need not wait for the lease to run out.
        document = self.look().document
        if document is not None and document.work is not None and document.owner == self.owner:
            self.give_back(document.operation, "the session was closed", "given up")

    def clear_stale(self) -> str:
        """Takes the lease from an ended owner; returns a message to the user. Raises
        `StoreUnavailable`."""
        state, now = self.look(), self.clock()
        document = state.document
        if document is None or document.work is None or self._is_held(document, now):
            return ""
        work, details = document.work, document.model_dump(include={"work", "owner", "tokens"})
        try:
            released = self._released(document, "cleared", "its process ended")
            self._put([released], {self.id: state.token})
        except Conflict:
            return ""
        log.warning("the lease of an observation was cleared: %s", details)
        return _CUT_OFF[work]

    def _is_held(self, document: ObservingDocument, now: int) -> bool:
        is_over = document.work is None or now >= document.lease_ms
        return not is_over and not is_gone(document.owner)

    def _own(self, operation: str) -> tuple[ObservingDocument, Token]:
        state = self.look()
        document = state.document
        mine = (self.owner, operation)
        if document is None or state.token is None or (document.owner, document.operation) != mine:
            raise ObservingBusy(_LOST)
        return document, state.token

    def _released(
        self, document: ObservingDocument, outcome: Outcome, reason: str
    ) -> ObservingDocument:
        document.last = {
            "operation": document.operation,
            "work": document.work,
            "outcome": outcome,
            "reason": reason,
            "time_ms": self.clock(),
        }
        document.work, document.operation, document.lease_ms = None, "", 0
        document.covers, document.tokens = [], 0
        return document

    def _put_own(
        self, documents: list[Document], token: Token, others: dict[str, Token | None] | None = None
    ) -> None:
        try:
            self._put(documents, {self.id: token, **(others or {})})
        except Conflict:
            if self.look().token == token:
                raise
            raise ObservingBusy(_LOST) from None

    def _put(self, documents: list[Document], expect: dict[str, Token | None]) -> None:
        self.store.commit_for_all(Batch([document.seal() for document in documents], expect=expect))
