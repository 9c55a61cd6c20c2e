"""The user's own acts on memory: only these raise trust."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from foredeck.config import Config
from foredeck.memory.entry import (
    MemoryEntry,
    MemoryReader,
    MemoryRefused,
    caps_of,
    check_category,
    keeping_order,
    mint_id,
    one_line,
    place_of,
    said_text,
)
from foredeck.memory.keeping import BUSY, Edit, Kept, Memory, NewMemory, check_kept
from foredeck.memory.trust import Trust, load_user
from foredeck.model.documents import Generator
from foredeck.model.memory import CATEGORIES, Category, MemoryDocument, Place
from foredeck.store.protocol import Batch, retry_on_conflict
from foredeck.store.store import Store

SHORTEST_TEXT = 6
"""Shorter texts are not searched literally."""


@dataclass(frozen=True, slots=True)
class Wording:
    """The user's wording; None leaves a part."""

    fact: str | None = None
    native: str | None = None
    category: Category | None = None


class UserActs(Memory):
    """One user's memory in their own hands, for what a person has typed."""

    _generator: Generator = "human"

    def add(self, new: NewMemory) -> Kept:
        """Keeps what the user typed."""
        document = self._new(replace(new, learned_from="manual"))
        self._check_may_leave(document)
        there = [*self._place_of(document)[0], *self.proposals()]
        same = self._equal(document, there)
        if same is None:
            return self._put_new(document)
        if same.document.state == "proposed":
            return self.accept(same.id)
        if same.trust == "user-stated":
            return Kept(same, was_there=True)
        return self.edit(same.id, Wording(fact=new.fact, native=new.native or None))

    def accept(self, id: str, wording: Wording | None = None) -> Kept:
        """Keeps a proposal, perhaps reworded, as the user's word."""
        is_confirmed = wording is None and self._reread(id).document.place == "findings"

        def edit(document: MemoryDocument, entry: MemoryEntry) -> None:
            _check_proposed(entry, "finding" if is_confirmed else "entry")
            self._check_may_leave(document)
            document.state, document.act = "kept", "accepted"
            document.used_ms = self._later(document)
            self._reworded(document, wording or Wording())

        return self._change(id, edit if is_confirmed else self._by_user(edit), "human")

    def accept_instead(self, id: str, of: str) -> Kept:
        """Keeps a proposal in place of the entry `of`."""
        # Both in one transaction, so that there is always exactly one of them.

        def attempt() -> Kept:
            entry, old = self._reread(id), self._reread(of)
            if (entry.document.state, old.document.state) != ("proposed", "kept"):
                raise MemoryRefused("One of them was answered or changed meanwhile.")
            document = self._next(entry, "human")
            self._check_may_leave(document)
            document.state, document.act = "kept", "accepted"
            document.used_ms = self._later(document)
            document.vouched = self.user.vouch(document.statement())
            superseded = self._leaving(old, "superseded")
            superseded.superseded_by = id
            return self._stored(document, entry.token, [(superseded.seal(), old)])

        return retry_on_conflict(attempt, MemoryRefused(BUSY))

    def refuse(self, id: str) -> Kept:
        """Refuses a proposal."""

        def edit(document: MemoryDocument, entry: MemoryEntry) -> None:
            _check_proposed(entry, "entry")
            document.state, document.act = "refused", "refused"

        return self._change(id, edit, "human")

    def edit(self, id: str, wording: Wording) -> Kept:
        """Rewords an entry as the user's word."""

        def edit(document: MemoryDocument, entry: MemoryEntry) -> None:
            _check_there(entry)
            document.act = "edited"
            self._reworded(document, wording)

        return self._change(id, self._by_user(edit), "human")

    def pin(self, id: str, category: Category, project: str | None = None) -> Kept:
        """Keeps a session's entry or finding beyond it, as a new entry; a decision holds in
        `project`."""
        entry = self._reread(id)
        check_kept(entry)
        if entry.document.place == "global":
            raise MemoryRefused("That entry is global already.")
        check_category("global", category)
        document = entry.document.model_copy(deep=True)
        document.id = mint_id(self.now_ms())
        document.promoted_from = "findings" if document.place == "findings" else "session"
        document.place, document.category, document.act = "global", category, "pinned"
        self._check_may_leave(document)
        document.learned_from, document.state = "pinned", "kept"
        document.scope = "project" if category == "decision" and project else "everywhere"
        document.project = project
        document.created_ms = document.updated_ms = document.used_ms = self.now_ms()
        document.provenance = self._provenance("human", [id])
        document.vouched = self.user.vouch(document.statement())
        return self._put_new(document)

    def demote(self, id: str, session: str | None = None) -> Kept:
        """Moves a global entry to one session, with its trust."""

        def edit(document: MemoryDocument, entry: MemoryEntry) -> None:
            _check_there(entry)
            if document.place != "global":
                raise MemoryRefused("Only what is global can be demoted.")
            document.session = session or document.session
            if document.session is None:
                raise MemoryRefused(
                    "It was learned in no session: name the one that it belongs to."
                )
            document.place, document.category, document.act = "session", "context", "demoted"
            document.scope = "everywhere"
            self.user.renew(entry.document, document)

        return self._change(id, edit, "human")

    def set_scope(self, id: str, project: str | None) -> Kept:
        """Limits a global entry to a project, or to none, with its trust."""

        def edit(document: MemoryDocument, entry: MemoryEntry) -> None:
            _check_there(entry)
            if document.place != "global":
                raise MemoryRefused("Only what is global holds in more than one session.")
            document.scope = "everywhere" if project is None else "project"
            document.project = project or document.project
            document.act = "scoped"
            self.user.renew(entry.document, document)

        return self._change(id, edit, "human")

    def delete(self, id: str) -> list[MemoryEntry]:
        """Removes an entry with everything derived from it. Texts stay in earlier versions until
        purged."""

        def attempt() -> list[MemoryEntry]:
            family = [self._reread(id), *self.descendants(id)]
            going = [
                entry
                for entry in family
                if entry.document.state != "deleted" and entry.document.owner == self.user.id
            ]
            batch = Batch([self._leaving(entry, "deleted", "human") for entry in going])
            batch.expect = {entry.id: entry.token for entry in going}
            self.store.commit(batch)
            return [self._reread(entry.id) for entry in going]

        return retry_on_conflict(attempt, MemoryRefused(BUSY))

    def restore_without(self, gone: Collection[str]) -> list[MemoryEntry]:
        """Restores what these entries superseded or evicted."""
        entries = [entry for entry in self.all() if entry.id not in gone]
        back = [entry for entry in entries if entry.document.superseded_by in gone]
        places = {
            (entry.document.place, entry.document.session)
            for id in gone
            if (entry := self.get(id)) is not None
        }
        for place, session in sorted(places, key=str):
            back += self._refill(entries, place, session)
        return [self._set_back(entry) for entry in back]

    def _refill(
        self, entries: Sequence[MemoryEntry], place: Place, session: str | None
    ) -> list[MemoryEntry]:
        here = [
            entry
            for entry in entries
            if entry.document.place == place
            and (place == "global" or entry.document.session == session)
        ]
        entries_kept = [entry for entry in here if entry.document.state == "kept"]
        evicted = [entry for entry in here if entry.document.state == "evicted"]
        room = max(0, self.caps.of(place) - len(entries_kept))
        return sorted(evicted, key=keeping_order, reverse=True)[:room]

    def _set_back(self, entry: MemoryEntry) -> MemoryEntry:
        # Without making room: it was there before, and what took its place is about to go.
        document = entry.document.model_copy(deep=True)
        document.updated_ms = self._later(document)
        document.state, document.act, document.superseded_by = "kept", "restored", None
        return self._stored(document, entry.token).entry

    def _words_of(self, new: NewMemory) -> Trust:
        del new  # whatever it was made from: they have typed it
        return "user-stated"

    def _reworded(self, document: MemoryDocument, wording: Wording) -> None:
        if wording.fact is not None:
            document.fact = said_text(wording.fact)
        if wording.native is not None:
            document.native = one_line(wording.native, "native text")
        if wording.category is not None:
            place: Place = place_of(wording.category)
            if place != document.place:
                accepted = " or ".join(CATEGORIES[document.place])
                raise MemoryRefused(f"Here it can be {accepted}; `pin` and `demote` move an entry.")
            document.category = wording.category

    def _by_user(self, edit: Edit) -> Edit:
        """As `edit`, with the user's word."""

        def vouched(document: MemoryDocument, entry: MemoryEntry) -> None:
            edit(document, entry)
            document.vouched = self.user.vouch(document.statement())

        return vouched


def acts_of_user(store: Store, config: Config) -> UserActs:
    """Makes the key the first time. Raises `ForedeckError` or `OSError`."""
    return UserActs(store, load_user(config.home), caps_of(config))


def family_of(memory: MemoryReader, id: str) -> set[str]:
    """An entry and everything derived from it."""
    entry = memory.get(id)
    return {one.id for one in (entry, *memory.descendants(id)) if one is not None}


def said_by_tool(memory: MemoryReader, turn: str | None) -> set[str]:
    """A turn's entries that repeat a tool, with everything derived from them."""
    entries = [] if turn is None else memory.descendants(turn)
    from_tools = (entry for entry in entries if entry.document.tool_originated)
    return {id for entry in from_tools for id in family_of(memory, entry.id)}


def _check_there(entry: MemoryEntry) -> None:
    if entry.document.state not in ("kept", "proposed"):
        raise MemoryRefused(f"That entry is {entry.document.state}, and not there any more.")


def _check_proposed(entry: MemoryEntry, what: str) -> None:
    if entry.document.state != "proposed":
        raise MemoryRefused(f"That {what} is {entry.document.state}, and not proposed.")
