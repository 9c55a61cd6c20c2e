"""Notes of other sessions: bounded, of this project, never a session's own or a private one's."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from foredeck.observations.keeping import delete
from foredeck.observations.reading import BLOCK_CHARS, OtherSessionsSection
from foredeck.store.protocol import Batch
from foredeck.store.store import Store
from observations.chat import rounds
from observations.desk import CLOCK, MODE, block, keeper, kept, observer, pick
from store.documents import session_wrapper


def note(store: Store, session: str, *notes: str, project: str = "p", later_ms: int = 0) -> None:
    chat = [replace(m, time_ms=m.time_ms + later_ms) for m in rounds(3)]
    writer, _ = observer(block(*notes))
    one = keeper(store, session=session)
    one.project = project
    asyncio.run(one.observe(chat, pick, writer, MODE))


def shown(store: Store, *own: str, limit: int = 10_000) -> str:
    return OtherSessionsSection(store, "p", frozenset(own), CLOCK).text(limit)


def test_a_session_reads_what_others_noted_and_not_its_own(store: Store) -> None:
    note(store, "first-session", "high decision: User wants c0", "low change: Agent looked")
    note(store, "second-session", "medium change: Agent wrote c1", later_ms=60_000)
    note(store, "mine", "high decision: My own")
    note(store, "elsewhere", "high decision: Of another project", project="other")
    assert shown(store, "mine") == (
        "session first-se\n 2026-05-03\n - 09:20 high decision: User wants c0\n"
        "session second-s\n 2026-05-03\n - 09:21 medium change: Agent wrote c1"
    )
    assert "User wants c0" not in shown(store, "mine", "first-session"), "a fork's own past"


def test_the_block_is_bounded_and_the_newest_stay(store: Store) -> None:
    for number in range(9):
        notes = [f"medium change: Agent wrote step {n} of {number} {'x' * 40}" for n in range(9)]
        note(store, f"session-{number}", *notes, later_ms=number * 60_000)
    text = shown(store, "mine")
    assert len(text) <= BLOCK_CHARS
    assert "step 8 of 8" in text
    assert "of 0 " not in text
    assert len(shown(store, "mine", limit=200)) <= 200
    assert shown(store, "mine", limit=10) == ""


def test_what_was_deleted_or_is_private_is_not_shown(store: Store) -> None:
    note(store, "secret", "high decision: User wants it hidden")
    store.commit(Batch(puts=[session_wrapper("secret", private=True)]))
    note(store, "other", "high decision: User wants c0")
    delete(store, kept(store, "other")[0].id, "ann")
    assert shown(store, "mine") == ""
