"""What foredeck and models may do with memory.

Only the user's literal words become their word here; everything else needs an act (`user_acts.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from foredeck.memory.entry import (
    USE_NOTED_MS,
    MemoryCaps,
    MemoryEntry,
    MemoryReader,
    MemoryRefused,
    check_category,
    has_expired,
    mint_id,
    one_line,
    place_of,
    said_text,
    scope_of,
    seat_of,
    surplus,
)
from foredeck.memory.trust import Trust, User, lowest
from foredeck.model.documents import Generator, Provenance
from foredeck.model.memory import (
    MOST_PROPOSALS,
    Category,
    Ground,
    LearnedFrom,
    MemoryDocument,
    MemoryState,
    is_kept_with,
)
from foredeck.store.clock import now_ms
from foredeck.store.protocol import Batch, Token, retry_on_conflict
from foredeck.store.sessions import is_private
from foredeck.store.store import Store

BUSY = "Memory is being changed by others all the time: try again."

Edit = Callable[[MemoryDocument, MemoryEntry], None]
"""Makes an entry's next version; may refuse."""

Leaving = tuple[MemoryDocument, MemoryEntry]
"""An entry's next version, and the current one."""


@dataclass(frozen=True, slots=True)
class NewMemory:
    """A new entry's content; `turn` and `parents` are ids of its sources."""

    category: Category
    fact: str
    native: str = ""
    session: str | None = None
    project: str | None = None
    turn: str | None = None
    learned_from: LearnedFrom = "assistant_turn"
    tool_originated: bool = False
    parents: tuple[str, ...] = ()
    grounds: tuple[Ground, ...] = ()
    tags: tuple[str, ...] = ()
    learned_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Kept:
    """The outcome of an act: the entry, and those that left for it."""

    entry: MemoryEntry
    gone: tuple[MemoryEntry, ...] = ()
    was_there: bool = False


class Memory(MemoryReader):
    """One user's memory, for others than the user."""

    def __init__(
        self,
        store: Store,
        user: User,
        caps: MemoryCaps | None = None,
        clock: Callable[[], int] = now_ms,
        by: str = "foredeck",
    ) -> None:
        super().__init__(store, user, caps)
        self.now_ms = clock
        self._by = by

    def add(self, new: NewMemory) -> Kept:
        """Keeps an entry in its session, or the user's own words beyond it. Raises
        `MemoryRefused`."""
        document = self._new(new)
        self._check_may_leave(document)
        if document.place == "global" and self._words_of(new) != "user-stated":
            raise MemoryRefused("What the user has not said literally has to be proposed.")
        same = self._equal(document, self._place_of(document)[0])
        if same is None or (same.trust != "user-stated" and document.vouched):
            return self._put_new(document)
        return Kept(same, was_there=True)

    def propose(self, new: NewMemory) -> Kept:
        """Proposes an entry to the user; the oldest proposal makes room."""
        document = self._new(new)
        document.state, document.act = "proposed", "proposed"
        self._check_may_leave(document)
        same = self._equal(document, self.proposals())
        return self._put_new(document) if same is None else Kept(same, was_there=True)

    def propose_imported(self, ids: Iterable[str]) -> tuple[list[MemoryEntry], int]:
        """Proposes imported entries without the user's word, as room allows; returns those, and the
        number left."""
        parents = {parent for entry in self.all() for parent in entry.parents}
        proposals = self.proposals()
        there, room = [*self.of_user(), *proposals], MOST_PROPOSALS - len(proposals)
        proposed, skipped = list[MemoryEntry](), 0
        for entry in filter(None, map(self.get, ids)):
            document = entry.document
            if entry.trust == "user-stated" or document.state != "kept" or entry.id in parents:
                continue
            new = NewMemory(
                category=document.category,
                fact=document.fact,
                native=document.native,
                project=document.project,
                learned_from="import",
                tool_originated=document.tool_originated,
                parents=(entry.id,),
                learned_ms=document.learned_ms,
            )
            try:
                is_new = self._equal(self._new(new), [*there, *proposed]) is None
            except MemoryRefused:
                continue
            # A proposal more would put out one that waits already.
            if is_new and len(proposed) < room:
                proposed.append(self.propose(new).entry)
            elif is_new:
                skipped += 1
        return proposed, skipped

    def confirm(self, id: str, grounds: Sequence[Ground]) -> Kept:
        """Confirms an entry on its present grounds."""

        def edit(document: MemoryDocument, entry: MemoryEntry) -> None:
            check_kept(entry)
            document.grounds, document.act = list(grounds), "confirmed"
            document.used_ms = self._later(document)

        return self._change(id, edit, self._generator)

    def note_use(self, ids: Iterable[str]) -> None:
        """Notes use by an answer, at most daily per entry."""
        # Each use that is noted is a version: every answer would make some.

        def edit(document: MemoryDocument, _entry: MemoryEntry) -> None:
            document.used_ms, document.act = self._later(document), "used"

        for id in ids:
            entry = self.get(id)
            if entry is None or entry.document.owner != self.user.id:
                continue
            if self.now_ms() - entry.document.used_ms >= USE_NOTED_MS:
                self._change(id, edit, "system")

    def tidy(self, session: str | None = None) -> list[MemoryEntry]:
        """Expires unused entries and unanswered proposals; returns them."""
        # What is kept of the user has been stated, and stays.
        now, gone = self.now_ms(), []

        def edit(document: MemoryDocument, entry: MemoryEntry) -> None:
            is_proposal = entry.document.state == "proposed"
            document.state, document.act = "expired", "unanswered" if is_proposal else "expired"

        entries = [] if session is None else self.of_session(session, "session")
        entries += [] if session is None else self.of_session(session, "findings")
        for entry in [*self.proposals(), *entries]:
            if entry.document.owner != self.user.id:
                continue
            if has_expired(entry, now, self.caps.expire_days):
                gone.append(self._change(entry.id, edit, "system").entry)
        return gone

    # What every act is made of

    _generator: Generator = "agent"

    def _new(self, new: NewMemory) -> MemoryDocument:
        now, place = self.now_ms(), place_of(new.category)
        if place != "global" and new.session is None:
            raise MemoryRefused(f"A {new.category} belongs to a session: name it with --session.")
        local = new.category == "decision" and new.project is not None
        document = MemoryDocument(
            id=mint_id(now),
            place=place,
            category=new.category,
            fact=said_text(new.fact),
            native=one_line(new.native, "native text"),
            owner=self.user.id,
            session=new.session,
            turn=new.turn,
            learned_from=new.learned_from,
            tool_originated=new.tool_originated,
            scope="project" if local else "everywhere",
            project=new.project,
            tags=[one_line(tag, "tag") for tag in new.tags],
            grounds=list(new.grounds),
            learned_ms=now if new.learned_ms is None else new.learned_ms,
            created_ms=now,
            updated_ms=now,
            used_ms=now,
            provenance=self._provenance(self._generator, [*filter(None, [new.turn]), *new.parents]),
        )
        if self._words_of(new) == "user-stated":
            document.vouched = self.user.vouch(document.statement())
        return document

    def _words_of(self, new: NewMemory) -> Trust:
        # Nothing here asks what a model says of it: an injected text would say "by the user".
        if new.learned_from != "user_turn" or new.tool_originated or new.turn is None:
            return "derived"
        turn_trust = self.trust.document(new.turn, users_part=True)
        return lowest([turn_trust, *(self.trust.document(parent) for parent in new.parents)])

    def _check_may_leave(self, document: MemoryDocument) -> None:
        """Raises `MemoryRefused` for what would leave a private session."""
        if document.place == "global" and is_private(self.store, document.session):
            raise MemoryRefused("The session is private: nothing of it is kept beyond it.")

    def _provenance(self, generator: Generator, parents: Sequence[str]) -> Provenance:
        origin = f"user:{self.user.id}" if generator == "human" else self._by
        return Provenance(
            origin=origin, generator=generator, parent_refs=list(dict.fromkeys(parents))
        )

    @staticmethod
    def _equal(document: MemoryDocument, entries: Iterable[MemoryEntry]) -> MemoryEntry | None:
        def said(one: MemoryDocument) -> tuple[object, ...]:
            where = one.place, one.category, one.scope, one.project, one.session
            return *where[: 5 if one.place != "global" else 4], one.fact.casefold().split()

        return next((entry for entry in entries if said(entry.document) == said(document)), None)

    def _put_new(self, document: MemoryDocument) -> Kept:

        def attempt() -> Kept:
            return self._stored(document, None, self._making_room(document))

        return retry_on_conflict(attempt, MemoryRefused(BUSY))

    def _change(self, id: str, edit: Edit, generator: Generator) -> Kept:
        """Stores an entry's next version by `edit`."""

        def attempt() -> Kept:
            entry = self._reread(id)
            document = self._next(entry, generator)
            edit(document, entry)
            check_category(document.place, document.category)
            stays = seat_of(document) == seat_of(entry.document)
            return self._stored(document, entry.token, () if stays else self._making_room(document))

        return retry_on_conflict(attempt, MemoryRefused(BUSY))

    def _stored(
        self, document: MemoryDocument, token: Token | None, gone: Sequence[Leaving] = ()
    ) -> Kept:
        batch = Batch([document.seal(), *(leaving_document for leaving_document, _ in gone)])
        batch.expect = {document.id: token, **{entry.id: entry.token for _, entry in gone}}
        self.store.commit(batch)
        return Kept(self._reread(document.id), tuple(entry for _, entry in gone))

    def _making_room(self, document: MemoryDocument) -> list[Leaving]:
        if document.state not in ("kept", "proposed"):
            return []
        newcomer = MemoryEntry(document, Token(""), self.trust.entry(document))
        there, most, leaving = self._place_of(document)
        over = surplus([*(e for e in there if e.id != document.id), newcomer], most)
        if newcomer in over:
            raise MemoryRefused(
                f"{document.place.capitalize()} memory is full ({most}) of what is worth more: "
                "delete some of it first."
            )
        return [(self._leaving(entry, leaving), entry) for entry in over]

    def _place_of(self, newcomer: MemoryDocument) -> tuple[list[MemoryEntry], int, MemoryState]:
        """Entries there, the cap, and the state of those that leave."""
        if newcomer.state == "proposed":
            return self.proposals(), MOST_PROPOSALS, "expired"
        if newcomer.place == "global":
            scope = scope_of(newcomer)
            there = [entry for entry in self.of_user() if scope_of(entry.document) == scope]
            return there, self.caps.of("global"), "evicted"
        there = self.of_session(newcomer.session or "", newcomer.place)
        return there, self.caps.of(newcomer.place), "evicted"

    def _leaving(
        self, entry: MemoryEntry, state: MemoryState, generator: Generator = "system"
    ) -> MemoryDocument:
        document = self._next(entry, generator)
        document.state, document.act = state, state
        return document.seal()

    def _next(self, entry: MemoryEntry, generator: Generator) -> MemoryDocument:
        document = entry.document.model_copy(deep=True)
        document.updated_ms = self._later(document)
        document.provenance = self._provenance(generator, entry.parents)
        return document

    def _reread(self, id: str) -> MemoryEntry:
        entry = self.get(id)
        if entry is None:
            raise MemoryRefused("There is no such entry any more: it has been erased.")
        if entry.document.owner != self.user.id:
            raise MemoryRefused(
                "That entry belongs to another user, as in an imported session: `foredeck purge` "
                "removes it for good, `foredeck forget` with its session."
            )
        return entry

    def _later(self, document: MemoryDocument) -> int:
        """Now, or the previous version's time on a slow clock."""
        # The times of an entry's versions never go back.
        return max(self.now_ms(), document.updated_ms, document.used_ms)


def check_kept(entry: MemoryEntry) -> None:
    """Raises `MemoryRefused` unless an entry is kept."""
    if entry.document.state != "kept":
        raise MemoryRefused(f"That entry is {entry.document.state}, and not kept.")


def inherited_memory(
    reader: MemoryReader, parent: str, session: str, path: Collection[str], now_ms: int
) -> list[MemoryDocument]:
    """A parent's entries as new documents for a fork, oldest first.

    `path`: the fork's first messages; entries from other turns are left behind.
    """
    # The fork has entries of its own from then on, so that neither changes the other's. What the
    # user deletes in the parent goes in its forks, too, since theirs was made from it.
    store = reader.store
    entries = _known_at(reader, parent, path)
    own = store.query("memory", {"session": session})
    parent_refs = {ref for head in own for ref in head.view(MemoryDocument).provenance.parent_refs}
    documents = []
    for number, entry in enumerate(sorted(entries, key=lambda entry: entry.age)):
        if entry.id in parent_refs:
            continue
        # The order of those that were learned at the same time is that of their ids.
        document = entry.document.model_copy(
            update={
                **{"id": mint_id(now_ms + number), "session": session, "act": "inherited"},
                **{"state": "kept", "superseded_by": None, "vouched": None},
                "provenance": Provenance(origin=parent, parent_refs=[entry.id], generator="system"),
            }
        )
        reader.user.renew(entry.document, document)
        documents.append(document.seal())
    return documents


def _known_at(reader: MemoryReader, parent: str, path: Collection[str]) -> list[MemoryEntry]:
    heads = reader.store.query("memory", {"session": parent})
    entries = {head.id: reader.entry_of(head) for head in heads if is_kept_with(head.fields)}
    turns = reader.store.heads(entry.document.turn or "" for entry in entries.values())

    def was_known(id: str | None) -> bool:
        if id is None or id not in entries:
            return False
        turn = entries[id].document.turn
        return turn is None or (turn in turns and turns[turn].fields.get("assistant") in path)

    known_entries = []
    for entry in entries.values():
        document = entry.document
        later = document.state == "superseded" and not was_known(document.superseded_by)
        if was_known(entry.id) and (document.state == "kept" or later):
            known_entries.append(entry)
    return known_entries
