"""All operations on memory, in any order, against what must hold whatever happens."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from examples import examples
from foredeck.memory.entry import MemoryCaps, MemoryRefused
from foredeck.memory.keeping import Kept, Memory, NewMemory
from foredeck.memory.sections import section_text
from foredeck.memory.user_acts import Wording, family_of
from foredeck.model.documents import Provenance, ToolcallDocument, chat_id
from foredeck.model.memory import CATEGORIES, WorkingDocument, working_id
from foredeck.model.tasks import TaskDocument
from foredeck.store.protocol import Batch
from foredeck.store.store import Store, open_sqlite
from memory.desk import IMPORTED, ME, OWN, PRIVATE, SOMEBODY, SUBAGENT, Table, literal, new

CAPS = MemoryCaps(session=3, everywhere=3, findings=2)
SESSIONS = (OWN, PRIVATE, SUBAGENT, IMPORTED)
WORDS = st.sampled_from(["tabs", "spaces", "duckdb", "osaka"])
BY_USER = frozenset({"added", "accepted", "edited", "pinned"})
"""Acts that make an entry the user's word; with `human` as their generator."""


OTHER_MEMORY = ("a task", "a page", "a result")
"""Of which an entry may be made too: none of it is the user's word, whatever it says of itself."""


def other_memory(store: Store) -> dict[str, str]:
    """One of each; their ids."""
    by = Provenance(origin="user", generator="human")
    task = TaskDocument(id="t", project="p", title="x", created_ms=1, updated_ms=1, provenance=by)
    page = WorkingDocument(id=working_id("thread", OWN), scope="thread", session=OWN, provenance=by)
    result = ToolcallDocument(id="c", tool="bash", chat_ref=chat_id(OWN), provenance=by)
    documents = (task, page, result)
    store.commit(Batch([document.seal() for document in documents]))
    return dict(zip(OTHER_MEMORY, (document.id for document in documents), strict=True))


class LifeOfMemory(RuleBasedStateMachine):
    """The user, a model, and another user of the same store do what they like."""

    entries = Bundle("entries")

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self.store = open_sqlite(Path(self._folder.name) / "memory.db")
        self.table = Table(self.store, CAPS)
        self.foreign = other_memory(self.store)
        self.other_model = Memory(self.store, SOMEBODY, CAPS, self.table.clock)

    def teardown(self) -> None:
        """Let go of it."""
        self.store.close()
        self._folder.cleanup()

    def made(self, act: Callable[[], Kept]) -> str:
        """The id of what an act has made; empty where it was refused."""
        try:
            return act().entry.id
        except MemoryRefused:
            return ""

    def replaced(self, id: str, by: NewMemory) -> str:
        """The id of what was read out in place of an entry; empty where there was no room."""
        return next((entry.id for entry in self.table.replace(id, by).kept), "")

    def tried(self, act: Callable[[], Any]) -> None:
        """Do it, if it can be done."""
        with suppress(MemoryRefused):
            act()

    # What comes in

    @rule(
        target=entries,
        word=WORDS,
        session=st.sampled_from(SESSIONS),
        category=st.sampled_from(["fact", "context", "preference", "decision", "finding"]),
        said=st.sampled_from(["user_turn", "assistant_turn", "analysis", "import"]),
        tool=st.booleans(),
        propose=st.booleans(),
        parent=st.none() | entries | st.sampled_from(OTHER_MEMORY),
    )
    def learn(
        self,
        word: str,
        session: str,
        category: Any,
        said: Any,
        tool: bool,
        propose: bool,
        parent: str | None,
    ) -> str:
        """A model has read something out of a turn, or out of another entry."""
        named = self.foreign.get(parent, parent) if parent else None
        parents = (named,) if named else ()
        fields: dict[str, Any] = {"category": category, "learned_from": said, "parents": parents}
        found = literal(word, session, tool_originated=tool, project="p", **fields)
        act = self.table.model.propose if propose else self.table.model.add
        return self.made(lambda: act(found))

    @rule(target=entries, word=WORDS, category=st.sampled_from(["preference", "context"]))
    def type(self, word: str, category: Any) -> str:
        """The user has typed it."""
        return self.made(lambda: self.table.user.add(new(word, category=category)))

    @rule(target=entries, word=WORDS)
    def another_user(self, word: str) -> str:
        """Somebody else on the same database has an entry of their own."""
        return self.made(lambda: self.table.other.add(new(word, category="preference")))

    # What models do

    @rule(target=entries, id=entries, word=WORDS, said=st.booleans())
    def replace(self, id: str, word: str, said: bool) -> str:
        """A model has read out the contrary of an entry; the user has said it, or nobody has."""
        return self.replaced(id, (literal if said else new)(f"not {word}", category="context"))

    @rule(id=entries)
    def use(self, id: str) -> None:
        self.tried(lambda: self.table.model.note_use([id] if id else []))

    @rule(id=entries)
    def confirm(self, id: str) -> None:
        self.tried(lambda: self.table.model.confirm(id, []))

    @rule(days=st.sampled_from([1, 31, 100]))
    def pass_time(self, days: int) -> None:
        self.table.clock.pass_days(days)
        for session in SESSIONS:
            self.table.model.tidy(session)

    # What the user does

    @rule(id=entries)
    def accept(self, id: str) -> None:
        self.tried(lambda: self.table.user.accept(id))

    @rule(id=entries)
    def refuse(self, id: str) -> None:
        self.tried(lambda: self.table.user.refuse(id))

    @rule(id=entries, word=WORDS)
    def edit(self, id: str, word: str) -> None:
        self.tried(lambda: self.table.user.edit(id, Wording(fact=f"{word}!")))

    @rule(target=entries, id=entries, category=st.sampled_from(["preference", "decision"]))
    def pin(self, id: str, category: Any) -> str:
        return self.made(lambda: self.table.user.pin(id, category, "p"))

    @rule(id=entries)
    def demote(self, id: str) -> None:
        self.tried(lambda: self.table.user.demote(id))

    @rule(id=entries, project=st.sampled_from([None, "p", "q"]))
    def set_scope(self, id: str, project: str | None) -> None:
        self.tried(lambda: self.table.user.set_scope(id, project))

    @rule(id=entries)
    def delete(self, id: str) -> None:
        self.tried(lambda: self.table.user.delete(id))

    # What must hold

    @invariant()
    def trust_rests_on_the_users_word(self) -> None:
        """Each version is the user's word by an act of theirs, or by their literal words alone; a
        later version keeps that only as long as it says the same."""
        for head in self.store.query("memory"):
            stated = False
            for version in self.store.history(head.id):
                entry = self.table.user.entry_of(version)
                document = entry.document
                human = document.provenance.generator == "human"
                if entry.trust == "user-stated":
                    direct = self._is_direct(entry.parents, document)
                    assert stated or (human and document.act in BY_USER) or direct
                    assert document.owner == ME.id
                stated = entry.trust == "user-stated"

    def _is_direct(self, parents: tuple[str, ...], document: Any) -> bool:
        said = document.learned_from == "user_turn" and not document.tool_originated
        of_parents = [self.table.user.trust.document(id) for id in parents if id != document.turn]
        return said and document.session in (OWN, PRIVATE) and "derived" not in of_parents

    @invariant()
    def caps_hold(self) -> None:
        for place in CATEGORIES:
            kept = [e for e in self.table.user.all(place) if e.document.state == "kept"]
            if place == "global":
                assert len(kept) <= CAPS.of(place)
            for session in SESSIONS:
                own = [e for e in kept if e.document.session == session]
                assert place == "global" or len(own) <= CAPS.of(place)

    @invariant()
    def nothing_derived_or_private_is_global(self) -> None:
        for entry in self.table.user.all("global", "kept"):
            assert entry.trust == "user-stated"
            assert entry.document.session != PRIVATE
        for entry in self.table.user.of_user():
            assert entry.document.owner == ME.id

    def shown(self) -> str:
        """All that models can be shown, byte for byte."""
        user = self.table.user
        places = [user.of_user(), user.of_user("p")]
        for session in SESSIONS:
            places += [user.of_session(session, "session"), user.of_session(session, "findings")]
        return json.dumps([section_text(place, 0, 10**6) for place in places])

    def purge(self, id: str) -> None:
        """As `foredeck purge ENTRY` does."""
        gone = family_of(self.table.user, id)
        if gone:
            self.table.user.restore_without(gone)
            self.store.erase(sorted(gone), [])

    @rule(id=entries)
    def purge_entry(self, id: str) -> None:
        """Nothing of it, or of what came from it, can be had again."""
        gone = family_of(self.table.user, id) if id else set()
        self.purge(id)
        assert not self.store.heads(sorted(gone))

    @rule(
        word=WORDS,
        session=st.sampled_from([OWN, IMPORTED]),
        category=st.sampled_from(["fact", "context", "finding"]),
        pinned=st.booleans(),
    )
    def a_tainted_source_as_if_it_had_never_been(
        self, word: str, session: str, category: Any, pinned: bool
    ) -> None:
        """Learned in place of another, pinned, and purged: the same bytes as before."""
        before = self.shown()
        tainted = new(f"tainted {word}", category=category, session=session, turn=None)
        older = self.table.user.of_session(session, "session")
        id = self.replaced(older[-1].id if older else "", tainted)
        if id and pinned:
            self.tried(lambda: self.table.user.pin(id, "decision", "p"))
        self.purge(id)
        assert self.shown() == before


def test_whatever_happens() -> None:
    case = LifeOfMemory.TestCase
    case.settings = settings(max_examples=examples(60), stateful_step_count=25, deadline=None)
    case("runTest").debug()
