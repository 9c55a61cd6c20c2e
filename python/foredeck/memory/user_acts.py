"""What only the user does with memory, and what a purge takes out of it.

Each act is a version with their name on it, and the only way in which anything comes to be trusted
more.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

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
from foredeck.memory.trust import Trust, User, load_user
from foredeck.model.documents import Document, Generator
from foredeck.model.memory import CATEGORIES, Category, MemoryDocument, Place
from foredeck.store.protocol import Batch, Store, retry_on_conflict

if TYPE_CHECKING:  # an engine never purges
    from foredeck.store.purging import Amend

SHORTEST_TEXT = 6
"""Characters of a text that is searched for literally: a shorter one is a part of many words."""


@dataclass(frozen=True, slots=True)
class Wording:
    """What the user makes an entry say; None leaves a part as it is."""

    fact: str | None = None
    native: str | None = None
    category: Category | None = None


class UserActs(Memory):
    """The memory of one user, in their own hands.

    Made where a person has typed something, and nowhere else.
    """

    _generator: Generator = "human"

    def add(self, new: NewMemory) -> Kept:
        """Keep what the user has typed for it."""
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
        """Keep what was proposed, as it is or as the user words it. It is their word then, but for
        a finding that is only confirmed."""
        is_confirmed = wording is None and self._reread(id).document.place == "findings"

        def edit(document: MemoryDocument, entry: MemoryEntry) -> None:
            _check_proposed(entry, "finding" if is_confirmed else "entry")
            self._check_may_leave(document)
            document.state, document.act = "kept", "accepted"
            document.used_ms = self._later(document)
            self._reworded(document, wording or Wording())

        return self._change(id, edit if is_confirmed else self._by_user(edit), "human")

    def accept_instead(self, id: str, of: str) -> Kept:
        """Keep what was proposed, in place of the entry `of`."""
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
            left = self._leaving(old, "superseded")
            left.superseded_by = id
            return self._stored(document, entry.token, [(left.seal(), old)])

        return retry_on_conflict(attempt, MemoryRefused(BUSY))

    def refuse(self, id: str) -> Kept:
        """Do not keep what was proposed."""

        def edit(document: MemoryDocument, entry: MemoryEntry) -> None:
            _check_proposed(entry, "entry")
            document.state, document.act = "refused", "refused"

        return self._change(id, edit, "human")

    def edit(self, id: str, wording: Wording) -> Kept:
        """Make an entry say what the user says; it is their word then."""

        def edit(document: MemoryDocument, entry: MemoryEntry) -> None:
            _check_there(entry)
            document.act = "edited"
            self._reworded(document, wording)

        return self._change(id, self._by_user(edit), "human")

    def pin(self, id: str, category: Category, project: str | None = None) -> Kept:
        """Keep an entry of a session, or a finding, beyond it: a new entry, with its ground. A
        decision holds in `project`, where one is given."""
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
        """Make a global entry a matter of one session, by default the one it was learned in. It is
        trusted as before."""

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
            self._keep_trust(document, entry.trust)

        return self._change(id, edit, "human")

    def set_scope(self, id: str, project: str | None) -> Kept:
        """Let a global entry hold in one project, or, without one, everywhere. It is trusted as
        before."""

        def edit(document: MemoryDocument, entry: MemoryEntry) -> None:
            _check_there(entry)
            if document.place != "global":
                raise MemoryRefused("Only what is global holds in more than one session.")
            document.scope = "everywhere" if project is None else "project"
            document.project = project or document.project
            document.act = "scoped"
            self._keep_trust(document, entry.trust)

        return self._change(id, edit, "human")

    def delete(self, id: str) -> list[MemoryEntry]:
        """Take out an entry, with everything of this user's that was made from it, all or nothing.
        Their text stays in earlier versions until it is purged."""

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
        """Bring back what left memory only because of these entries, which are about to be purged:
        what they superseded, and what was evicted for them."""
        entries = [entry for entry in self.all() if entry.id not in gone]
        back = [entry for entry in entries if entry.document.superseded_by in gone]
        places = {
            (entry.document.place, entry.document.session)
            for id in gone
            if (entry := self.get(id)) is not None
        }
        for place, session in sorted(places, key=str):
            back += self._refill(entries, place, session)

        def edit(document: MemoryDocument, _entry: MemoryEntry) -> None:
            document.state, document.act, document.superseded_by = "kept", "restored", None

        return [self._set_back(entry, edit) for entry in back]

    def _refill(
        self, entries: Sequence[MemoryEntry], place: Place, session: str | None
    ) -> list[MemoryEntry]:
        """Those of a place that were evicted, as many as there is room for again."""
        here = [
            entry
            for entry in entries
            if entry.document.place == place
            and (place == "global" or entry.document.session == session)
        ]
        kept = [entry for entry in here if entry.document.state == "kept"]
        evicted = [entry for entry in here if entry.document.state == "evicted"]
        room = max(0, self.caps.of(place) - len(kept))
        return sorted(evicted, key=keeping_order, reverse=True)[:room]

    def _set_back(self, entry: MemoryEntry, edit: Edit) -> MemoryEntry:
        """As `_change`, without making room."""
        # It was there before, and what took its place is about to go.
        document = entry.document.model_copy(deep=True)
        document.updated_ms = self._later(document)
        edit(document, entry)
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
                known = " or ".join(CATEGORIES[document.place])
                raise MemoryRefused(f"Here it can be {known}; `pin` and `demote` move an entry.")
            document.category = wording.category

    def _by_user(self, edit: Edit) -> Edit:
        """As `edit`, and what comes of it is the user's word."""

        def vouched(document: MemoryDocument, entry: MemoryEntry) -> None:
            edit(document, entry)
            document.vouched = self.user.vouch(document.statement())

        return vouched

    def _keep_trust(self, document: MemoryDocument, trust: Trust) -> None:
        """What is moved needs a new word of the user's only where it had one."""
        if trust == "user-stated":
            document.vouched = self.user.vouch(document.statement())


def acts_of_user(store: Store, config: Config) -> UserActs:
    """The memory of the user at this machine; their key is made at the first time.

    Raises `ForedeckError` or `OSError` where it cannot be read.
    """
    return UserActs(store, load_user(config.home), caps_of(config))


def family_of(memory: MemoryReader, id: str) -> set[str]:
    """The id of an entry, if there is one of this id, and of all that was made from what has the
    id, in whatever state."""
    entry = memory.get(id)
    return {one.id for one in (entry, *memory.descendants(id)) if one is not None}


def said_by_tool(memory: MemoryReader, turn: str | None) -> set[str]:
    """Ids of the entries that were read out of a turn and say what a tool had said, with all that
    was made from those."""
    found = [] if turn is None else memory.descendants(turn)
    said = (entry for entry in found if entry.document.tool_originated)
    return {id for entry in said for id in family_of(memory, entry.id)}


def vouch_again(user: User) -> Amend:
    """An entry that loses a text stays its user's word: they have asked for that."""

    def amend(before: Document, after: Document) -> None:
        if before.type == "memory":
            old, new = cast(MemoryDocument, before), cast(MemoryDocument, after)
            if user.vouches(old.statement(), old.vouched):
                new.vouched = user.vouch(new.statement())

    return amend


def _check_there(entry: MemoryEntry) -> None:
    if entry.document.state not in ("kept", "proposed"):
        raise MemoryRefused(f"That entry is {entry.document.state}, and not there any more.")


def _check_proposed(entry: MemoryEntry, what: str) -> None:
    if entry.document.state != "proposed":
        raise MemoryRefused(f"That {what} is {entry.document.state}, and not proposed.")
