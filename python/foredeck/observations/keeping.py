"""Observes and reflects: takes the lease, asks, checks, commits once; applies the user's
changes."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from foredeck.errors import Conflict, ForedeckError, StoreError, StoreUnavailable
from foredeck.model.documents import Provenance, chat_id
from foredeck.model.observations import (
    NotedDocument,
    ObservationDocument,
    Priority,
    ReflectionDocument,
    Remark,
    Work,
    observation_id,
    reflection_id,
)
from foredeck.model.records import forgotten_id
from foredeck.observations.chunks import Chunk, Position, SourceMessage, WallTime
from foredeck.observations.lease import (
    HEARTBEAT_MS,
    ObservingBusy,
    ObservingFailed,
    ObservingLease,
    Seen,
)
from foredeck.observations.observers import Condensed, Observer, Written, dropped
from foredeck.observations.reading import (
    Observation,
    ObservedBranch,
    Reflection,
    note_named,
    stored_notes,
)
from foredeck.observations.rules import ALL_FIELDS, ModeChoice, TimingRules, to_condense
from foredeck.observations.texts import Malformed, TextRules, remarks_in, text_of, zone_of
from foredeck.store.protocol import Batch, Token
from foredeck.store.store import Store

T = TypeVar("T")
_RETRIES_S = (1.0, 5.0)
"""Waits of a commit for a silent database."""
Step = Callable[[str], None]
"""Receives each protocol step's name when done."""

_PRIORITIES: tuple[Priority, ...] = ("high", "medium", "low")
_MOST_DROPPED = 400

log = logging.getLogger(__name__)

Pick = Callable[[Sequence[SourceMessage], Position], Chunk | None]
"""Chooses the next chunk by the branch's position."""


@dataclass
class ObservationKeeper:
    lease: ObservingLease
    session: str
    ancestors: Sequence[str] = ()
    project: str | None = None
    rules: TimingRules = field(default_factory=TimingRules)
    step: Step = lambda _name: None

    def read(self, addresses: Sequence[str]) -> ObservedBranch:
        """Notes on the branch with these addresses."""
        stored = stored_notes(self.lease.store, (self.session, *self.ancestors))
        return stored.on_branch(addresses)

    def _read_up_to_date(self, messages: Sequence[SourceMessage]) -> tuple[Seen, ObservedBranch]:
        lease_state = self.lease.look()
        branch = self.read([message.address for message in messages])
        # The lease may come from the database before what was committed under it last. Who went by
        # it would observe what is observed already.
        newest = "" if lease_state.document is None else lease_state.document.newest
        if newest and self.lease.store.head(newest) is None:
            session = newest.partition(":")[2].rpartition(":")[0]
            if self.lease.store.head(forgotten_id(session)) is None:
                raise ObservingBusy("What another machine has observed is still on its way.")
        return lease_state, branch

    async def observe(
        self, messages: Sequence[SourceMessage], pick: Pick, observer: Observer, mode: ModeChoice
    ) -> ObservationDocument | None:
        """Observes the chunk that `pick` chooses; None without one.

        Raises `ObservingFailed` or what `observer` raises, with nothing stored; `StoreUnavailable`
        without the deciding database.
        """
        lease_state, branch = self._read_up_to_date(messages)
        chunk = pick(messages, branch.position)
        if chunk is None:
            return None
        self.step("read")
        before = branch.placed[-1].observation if branch.placed else None
        if before is not None:
            chunk = replace(chunk, task=before.document.current_task)
        ends = (chunk.messages[0].address, chunk.messages[-1].address)
        lease = self._take("observe", lease_state, ends, chunk.tokens)
        output = await lease.during(observer.observe(chunk, mode.mode))
        self.step("answered")
        previous = None if before is None else before.id
        document = self._observation(output, chunk, mode, lease.operation, previous)
        await lease.commit(document, {})
        return document

    async def reflect(
        self,
        messages: Sequence[SourceMessage],
        observer: Observer,
        window: int | None = None,
        *,
        asked: bool = False,
    ) -> ReflectionDocument | None:
        """Condenses the oldest notes; None if they are short enough. Raises like `observe`."""
        lease_state, branch = self._read_up_to_date(messages)
        notes, now = branch.notes, self.lease.clock()
        replaced = notes[: to_condense(self.rules, notes, now, window, asked=asked)]
        if not replaced:
            return None
        self.step("read")
        tokens = sum(one.tokens for one in replaced)
        lease = self._take("reflect", lease_state, (replaced[0].id, replaced[-1].id), tokens)
        output = await lease.during(observer.reflect(_condensed(replaced, tokens)))
        self.step("answered")
        document = self._reflection(output, replaced, branch.newest, lease.operation)
        await lease.commit(document, {one.id: one.token for one in replaced})
        return document

    def _take(self, work: Work, seen: Seen, ends: tuple[str, str], tokens: int) -> _HeldLease:
        operation = self.lease.take(work, seen, covers=ends, tokens=tokens)
        self.step("taken")
        return _HeldLease(self.lease, operation, self.step)

    def _observation(
        self, written: Written, chunk: Chunk, mode: ModeChoice, operation: str, previous: str | None
    ) -> ObservationDocument:
        """`previous`: id of the branch's previous observation."""
        times = [message.time_ms for message in chunk.messages if message.time_ms]
        turns = [message.turn for message in chunk.messages if message.turn]
        return ObservationDocument(
            id=observation_id(self.session, chunk.covers, chunk.part, previous),
            previous=previous,
            covers=chunk.covers,
            part=chunk.part,
            first_turn=min(turns, default=0),
            last_turn=max(turns, default=0),
            mode=mode.mode,
            mode_by=mode.by,
            covered_tokens=chunk.tokens,
            from_ms=min(times, default=0),
            to_ms=max(times, default=0),
            **self._of_any(written, operation, [chat_id(self.session)]),
            **fields_of(written.remarks),
        )

    def _reflection(
        self,
        written: Written,
        replaced: Sequence[Observation | Reflection],
        newest: Reflection | None,
        operation: str,
    ) -> ReflectionDocument:
        """`newest`: the branch's newest reflection."""
        replaces = [one.id for one in replaced]
        return ReflectionDocument(
            id=reflection_id(self.session, replaces),
            level="summary" if any(one.is_condensed for one in replaced) else "reflection",
            generation=1 if newest is None else newest.document.generation + 1,
            previous=None if newest is None else newest.id,
            replaces=replaces,
            observations=list(dict.fromkeys(_behind(replaced))),
            remarks=written.remarks,
            dropped=dropped((one.text for one in replaced), written.text)[:_MOST_DROPPED],
            compression=written.compression,
            input_tokens=sum(one.tokens for one in replaced),
            **self._of_any(written, operation, replaces),
        )

    def _of_any(self, written: Written, operation: str, parents: list[str]) -> dict[str, Any]:
        return {
            "provenance": Provenance(
                origin=self.session,
                generator="agent" if written.by == "model" else "system",
                parent_refs=parents,
            ),
            "session": self.session,
            "project": self.project,
            "content": written.text,
            "current_task": written.current_task,
            "suggestion": written.suggestion,
            "tokens": written.tokens,
            "observed_by": written.by,
            "model": written.model,
            "left_out": written.left_out,
            "operation": operation,
            "time_ms": self.lease.clock(),
        }


@dataclass
class _HeldLease:
    """A lease held by this process."""

    # A model may take minutes to answer: the lease is renewed meanwhile.

    lease: ObservingLease
    operation: str
    step: Step

    async def during(self, work: Awaitable[T]) -> T:
        """Renews the lease while `work` runs; a failure gives it back."""
        task = asyncio.ensure_future(work)
        beat = asyncio.ensure_future(self._beat(task))
        try:
            return await task
        except asyncio.CancelledError:
            lost = beat.done() and not beat.cancelled() and beat.exception()
            self._give_back("cancelled")
            if isinstance(lost, ForedeckError):
                raise lost from None
            raise
        except Exception as error:
            self._give_back(str(error))
            raise
        finally:
            task.cancel()
            beat.cancel()
            with suppress(asyncio.CancelledError, ForedeckError):
                await beat

    async def _beat(self, task: asyncio.Future[T]) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT_MS / 1000)
            try:
                self.lease.renew(self.operation)
            except ObservingFailed:
                task.cancel()
                raise
            except StoreError as error:
                # It holds for several heartbeats, and the commit asks once more.
                log.info("the lease of an observation was not renewed: %s", error)

    async def commit(self, document: NotedDocument, expect: dict[str, Token | None]) -> None:
        """Raises `ObservingFailed` if another process was faster, or the deciding database stays
        away."""
        # Then it is not known whether it was written: the next process finds out.
        for wait_s in (*_RETRIES_S, None):
            try:
                self.lease.commit(self.operation, document, expect)
            except Conflict:
                self._give_back("what it was made from has changed")
                raise ObservingFailed("What it was made from has changed: try again.") from None
            except StoreUnavailable as error:
                if wait_s is None:
                    raise ObservingFailed(f"It could not be stored: {error}") from error
                await asyncio.sleep(wait_s)
            else:
                self.step("committed")
                return

    def _give_back(self, reason: str) -> None:
        try:
            self.lease.give_back(self.operation, reason[:200])
        except StoreError as error:
            # Its time ends by itself.
            log.info("the lease of an observation was not given back: %s", error)


def _condensed(replaced: Sequence[Observation | Reflection], tokens: int) -> Condensed:
    last = replaced[-1].document
    remarks = [remark for one in replaced for remark in one.document.remarks]
    return Condensed(remarks, tokens, last.current_task, last.suggestion)


def fields_of(remarks: Sequence[Remark]) -> dict[str, object]:
    """Fields that follow from the remarks."""
    priorities = {remark.priority for remark in remarks}
    categories = Counter(remark.category for remark in remarks)
    specific: dict[str, list[str]] = {}
    for remark in remarks:
        for name, texts in remark.mode_specific.items():
            specific.setdefault(name, []).extend(texts)
    return {
        "remarks": list(remarks),
        "remark_count": len(remarks),
        "priority": next((p for p in _PRIORITIES if p in priorities), "low"),
        "category": categories.most_common(1)[0][0] if categories else "",
        "files": list(dict.fromkeys(file for remark in remarks for file in remark.files)),
        "line_numbers": list(dict.fromkeys(n for remark in remarks for n in remark.line_numbers)),
        "mode_specific": specific,
    }


def _behind(replaced: Iterable[Observation | Reflection]) -> Iterable[str]:
    for one in replaced:
        document = one.document
        yield from document.observations if isinstance(document, ReflectionDocument) else [one.id]


# What a user changes in observations and reflections


class EditRefused(ForedeckError):
    exit_code = 2


class NoObservation(ForedeckError):
    """There is no such observation or reflection."""

    exit_code = 4


def edit(
    store: Store, id: str, text: str, who: str, clock: WallTime | None = None
) -> NotedDocument:
    """Stores the user's text of a note.

    Raises `EditRefused` for an unreadable text or a simultaneous change; `NoObservation`.
    """
    document, token = _found(store, id)
    # In the zone in which it is printed: what is edited keeps its times.
    own = clock or WallTime()
    if document.remarks:
        own = zone_of(document.remarks[0], own)
    rules = TextRules(own, ALL_FIELDS, _first_ms(document))
    try:
        remarks = remarks_in(text, rules)
    except Malformed as error:
        raise EditRefused(f"{error} Write it as it was printed.") from None
    document.content = text_of(remarks, rules.clock)
    document.tokens = _scaled(document, len(document.content))
    document.is_edited = True
    _set_remarks(document, remarks)
    return _put(store, document, token, who)


def delete(store: Store, id: str, who: str) -> NotedDocument:
    """Empties a note; what a reflection replaced counts again.

    Raises `NoObservation`, or `EditRefused` on a simultaneous change.
    """
    document, token = _found(store, id)
    # Its messages still count as observed, so what the user has taken out is not written again.
    document.content, document.tokens = None, 0
    document.current_task = document.suggestion = ""
    _set_remarks(document, [])
    return _put(store, document, token, who)


def made_from(store: Store, id: str) -> list[str]:
    """Reflections that still contain a note."""
    session = _found(store, id)[0].session
    return [
        one.id
        for one in stored_notes(store, [session]).reflections
        if id in (*one.document.replaces, *one.document.observations) and not one.is_deleted
    ]


def _found(store: Store, id: str) -> tuple[NotedDocument, Token]:
    note = note_named(store, id)
    if note is None:
        raise NoObservation(f"There is no observation or reflection {id!r}.")
    return note.document.model_copy(deep=True), note.token


def _put(store: Store, document: NotedDocument, token: Token, who: str) -> NotedDocument:
    parents = document.provenance.parent_refs
    document.provenance = Provenance(origin=who, generator="human", parent_refs=parents)
    try:
        store.commit(Batch(puts=[document.seal()], expect={document.id: token}))
    except Conflict:
        raise EditRefused("It was changed at the same time: look at it again.") from None
    return document


def _set_remarks(document: NotedDocument, remarks: Sequence[Remark]) -> None:
    if isinstance(document, ObservationDocument):
        for name, value in fields_of(remarks).items():
            setattr(document, name, value)
    else:
        document.remarks = list(remarks)


def _first_ms(document: NotedDocument) -> int:
    if document.remarks:
        return document.remarks[0].time_ms
    return document.from_ms if isinstance(document, ObservationDocument) else document.time_ms


def _scaled(document: NotedDocument, chars: int) -> int:
    before = sum(len(remark.content) + 24 for remark in document.remarks)
    return max(1, document.tokens * chars // before) if before else chars // 4
