"""Observing and reflecting from beginning to end: read, take the lease, ask, check, commit once;
and what a user changes afterwards."""

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
from foredeck.observations.chunks import Chunk, Position, SourceMessage
from foredeck.observations.excerpt import WallTime
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
from foredeck.store.protocol import Batch, Store, Token

T = TypeVar("T")
_RETRIES_S = (1.0, 5.0)
"""How long a commit waits, each time, for a database that has stopped answering."""
Step = Callable[[str], None]
"""Called with the name of each step of the protocol as it is done."""

_PRIORITIES: tuple[Priority, ...] = ("high", "medium", "low")
_MOST_DROPPED = 400

log = logging.getLogger(__name__)

Pick = Callable[[Sequence[SourceMessage], Position], Chunk | None]
"""Which chunk to observe, by how far the branch is observed: `chunks.next_chunk` with its rules."""


@dataclass
class ObservationKeeper:
    """Keeps the observations of one session.

    `ancestors`: the sessions that it was forked from, nearest first; of theirs it uses what lies
    on its own branch. `project`: its id, kept with what is written.
    """

    lease: ObservingLease
    session: str
    ancestors: Sequence[str] = ()
    project: str | None = None
    rules: TimingRules = field(default_factory=TimingRules)
    step: Step = lambda _name: None

    def read(self, addresses: Sequence[str]) -> ObservedBranch:
        """What there is on the branch whose messages have these addresses."""
        stored = stored_notes(self.lease.store, (self.session, *self.ancestors))
        return stored.on_branch(addresses)

    def _read_up_to_date(self, messages: Sequence[SourceMessage]) -> tuple[Seen, ObservedBranch]:
        """The lease as it stood before the notes were read, and what there is on the branch."""
        seen = self.lease.look()
        branch = self.read([message.address for message in messages])
        # The lease may come from the database before what was committed under it last. Who went by
        # it would observe what is observed already.
        newest = "" if seen.document is None else seen.document.newest
        if newest and self.lease.store.head(newest) is None:
            session = newest.partition(":")[2].rpartition(":")[0]
            if self.lease.store.head(forgotten_id(session)) is None:
                raise ObservingBusy("What another machine has observed is still on its way.")
        return seen, branch

    async def observe(
        self, messages: Sequence[SourceMessage], pick: Pick, observer: Observer, mode: ModeChoice
    ) -> ObservationDocument | None:
        """Observe the chunk that `pick` chooses; None where it chooses none.

        Raises `ObservingFailed`, and what `observer` raises where nothing could be asked; nothing
        is kept then, and whoever comes next may try again. `StoreUnavailable` where the database
        that decides is away.
        """
        seen, branch = self._read_up_to_date(messages)
        chunk = pick(messages, branch.position)
        if chunk is None:
            return None
        self.step("read")
        before = branch.placed[-1].observation if branch.placed else None
        if before is not None:
            chunk = replace(chunk, task=before.document.current_task)
        ends = (chunk.messages[0].address, chunk.messages[-1].address)
        held = self._take("observe", seen, ends, chunk.tokens)
        written = await held.during(observer.observe(chunk, mode.mode))
        self.step("answered")
        previous = None if before is None else before.id
        document = self._observation(written, chunk, mode, held.operation, previous)
        await held.commit(document, {})
        return document

    async def reflect(
        self,
        messages: Sequence[SourceMessage],
        observer: Observer,
        window: int | None = None,
        *,
        asked: bool = False,
    ) -> ReflectionDocument | None:
        """Condense the oldest of the notes that replace chat; None where that is not too long.

        `window`: of the model, in tokens. `asked`: by the user, however short it is. Raises as
        `observe`.
        """
        seen, branch = self._read_up_to_date(messages)
        notes, now = branch.notes, self.lease.clock()
        replaced = notes[: to_condense(self.rules, notes, now, window, asked=asked)]
        if not replaced:
            return None
        self.step("read")
        tokens = sum(one.tokens for one in replaced)
        held = self._take("reflect", seen, (replaced[0].id, replaced[-1].id), tokens)
        written = await held.during(observer.reflect(_condensed(replaced, tokens)))
        self.step("answered")
        document = self._reflection(written, replaced, branch.newest, held.operation)
        await held.commit(document, {one.id: one.token for one in replaced})
        return document

    def _take(self, work: Work, seen: Seen, ends: tuple[str, str], tokens: int) -> _HeldLease:
        operation = self.lease.take(work, seen, covers=ends, tokens=tokens)
        self.step("taken")
        return _HeldLease(self.lease, operation, self.step)

    def _observation(
        self, written: Written, chunk: Chunk, mode: ModeChoice, operation: str, previous: str | None
    ) -> ObservationDocument:
        """`previous`: id of the observation before it on its branch."""
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
        """`newest`: the reflection that was made last on this branch."""
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
        """The fields that observations and reflections have in common."""
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
    """A lease as long as it is held by this process."""

    # A model may take minutes to answer: the lease is renewed meanwhile.

    lease: ObservingLease
    operation: str
    step: Step

    async def during(self, work: Awaitable[T]) -> T:
        """What `work` gives, with the lease renewed meanwhile and given back where it fails."""
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
        """Write it. Raises `ObservingFailed` where another process was faster, or where the
        database that decides stays away."""
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
    """The fields of an observation that follow from its remarks."""
    present = {remark.priority for remark in remarks}
    categories = Counter(remark.category for remark in remarks)
    specific: dict[str, list[str]] = {}
    for remark in remarks:
        for name, texts in remark.mode_specific.items():
            specific.setdefault(name, []).extend(texts)
    return {
        "remarks": list(remarks),
        "remark_count": len(remarks),
        "priority": next((p for p in _PRIORITIES if p in present), "low"),
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
    """An observation cannot be changed so; says why."""

    exit_code = 2


class NoObservation(ForedeckError):
    """There is no such observation or reflection."""

    exit_code = 4


def edit(
    store: Store, id: str, text: str, who: str, clock: WallTime | None = None
) -> NotedDocument:
    """Store the user's own text of an observation or reflection.

    The text has the form that is printed: dates, and a line for each remark. Raises `EditRefused`
    for any other text, or where it was changed at the same time; `NoObservation`.
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
    """Make an observation or reflection empty.

    What a reflection had replaced counts again. Earlier versions stay in the history. Raises
    `NoObservation`, and `EditRefused` where it was changed at the same time.
    """
    document, token = _found(store, id)
    # Its messages still count as observed, so what the user has taken out is not written again.
    document.content, document.tokens = None, 0
    document.current_task = document.suggestion = ""
    _set_remarks(document, [])
    return _put(store, document, token, who)


def made_from(store: Store, id: str) -> list[str]:
    """Ids of the reflections that still say what an observation or a reflection said."""
    session = _found(store, id)[0].session
    return [
        one.id
        for one in stored_notes(store, [session]).reflections
        if id in (*one.document.replaces, *one.document.observations) and not one.is_deleted
    ]


def _found(store: Store, id: str) -> tuple[NotedDocument, Token]:
    found = note_named(store, id)
    if found is None:
        raise NoObservation(f"There is no observation or reflection {id!r}.")
    return found.document.model_copy(deep=True), found.token


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
    """Tokens by what the text before took for each character."""
    before = sum(len(remark.content) + 24 for remark in document.remarks)
    return max(1, document.tokens * chars // before) if before else chars // 4
