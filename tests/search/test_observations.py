"""Observations and reflections are found, and what their user took out of them is not."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from foredeck.notes.entries import entry_of
from foredeck.observations.keeping import delete, edit
from observations.chat import rounds
from observations.desk import CLOCK, MODE, block, keeper, kept, noted, observer, pick, reflect
from search.sessions import Searched, Talk, searched


@pytest.fixture
def stored(tmp_path: Path) -> Iterator[Searched]:
    with searched(tmp_path) as made:
        Talk(made.store, "s")
        yield made


def observed(stored: Searched, *notes: str) -> str:
    writer, _ = observer(block(*notes, task="Feed the marmot."))
    document = asyncio.run(keeper(stored.store).observe(rounds(3), pick, writer, MODE))
    return document.id


def test_what_was_noted_is_found_with_what_was_under_way(stored: Searched) -> None:
    id = observed(stored, "high decision: User wants the walrus in src/c0.py")
    hit = stored.find("walrus").hits[0]
    assert (hit.object, hit.entry.type, hit.entry.role) == (id, "observation", "default")
    assert hit.session == "s"
    assert stored.found("marmot") == [id]


def test_reflections_are_found_and_what_they_drop_by_their_observations(stored: Searched) -> None:
    chat = noted(stored.store, 9)
    made, _ = reflect(stored.store, chat, block("low change: Agent fed an otter"))
    (hit,) = stored.find("otter").hits
    assert (hit.object, hit.entry.type) == (made.id, "reflection")
    assert stored.found("otter", type="reflection") == [made.id]
    assert stored.found("otter", type="observation") == []
    assert "src/c8.py" in made.dropped
    assert {*stored.found("src/c8.py", limit=20)} & {o.id for o in kept(stored.store)}


def test_what_the_user_changed_or_deleted_is_not_found_any_more(stored: Searched) -> None:
    id = observed(stored, "high decision: User wants the walrus in src/c0.py")
    assert stored.found("walrus") == [id]
    text = kept(stored.store)[0].text.replace("walrus", "heron")
    edit(stored.store, id, text, "ann", CLOCK)
    assert (stored.found("walrus"), stored.found("heron")) == ([], [id])
    delete(stored.store, id, "ann")
    assert (stored.found("heron"), stored.found("marmot")) == ([], [])
    edit(stored.store, id, text.replace("heron", "puffin"), "ann", CLOCK)
    assert stored.found("puffin") == [id]


def test_a_reflection_refers_to_what_it_was_made_from(stored: Searched) -> None:
    chat = noted(stored.store, 9)
    made, _ = reflect(stored.store, chat, block("low change: Agent looked"))
    head = stored.store.head(made.id)
    entry = entry_of(made.id, head.type, head.fields, None)
    derived = [ref.target for ref in entry.references if ref.relation == "derived-from"]
    assert derived == made.replaces
