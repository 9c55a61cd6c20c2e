"""What a user changes in what was noted."""

from __future__ import annotations

from datetime import timedelta, timezone

import pytest

from foredeck.observations.chunks import WallTime
from foredeck.observations.keeping import EditRefused, NoObservation, delete, edit, made_from
from foredeck.store.store import Store
from observations.chat import rounds, user
from observations.desk import CLOCK, block, keeper, kept, noted, observe, reflect


def test_the_users_text_takes_the_place_of_what_was_noted(store: Store) -> None:
    observe(store)
    (found,) = kept(store)
    text = found.text.replace("medium change: Agent looked at", "high decision: Read only")
    edit(store, found.id, text, "ann", CLOCK)
    (changed,) = kept(store)
    assert changed.text == text
    assert (changed.document.priority, changed.document.is_edited) == ("high", True)
    assert changed.document.provenance.generator == "human"
    assert len(store.history(found.id)) == 2
    assert changed.document.covers == found.document.covers


def test_an_edit_in_another_zone_moves_no_time(store: Store) -> None:
    observe(store)
    (found,) = kept(store)
    there = WallTime(timezone(timedelta(hours=9)))
    edit(store, found.id, found.text.replace("medium", "high"), "ann", there)
    (changed,) = kept(store)
    assert changed.remark_times == found.remark_times
    assert "- 09:20 high change" in changed.text


def test_a_text_in_another_form_is_refused(store: Store) -> None:
    observe(store)
    (found,) = kept(store)
    with pytest.raises(EditRefused, match="neither a date nor a note"):
        edit(store, found.id, "It was nice.", "ann", CLOCK)
    with pytest.raises(NoObservation):
        edit(store, "observation:s:none", found.text, "ann", CLOCK)
    assert kept(store) == [found]


def test_what_was_deleted_says_nothing_and_is_not_written_again(store: Store) -> None:
    observe(store)
    (found,) = kept(store)
    delete(store, found.id, "ann")
    (gone,) = kept(store)
    assert (gone.is_deleted, gone.text, gone.document.remarks, gone.document.files) == (
        True,
        "",
        [],
        [],
    )
    assert observe(store) is None
    notes = keeper(store).read([m.address for m in [user("look at all of them"), *rounds(3)]])
    assert notes.observations == ()


def test_reflections_that_still_say_it_are_named(store: Store) -> None:
    chat = noted(store, 9)
    made, _ = reflect(store, chat, block("low change: Agent looked"))
    first = kept(store)[0].id
    assert made_from(store, first) == [made.id]
    delete(store, made.id, "ann")
    assert made_from(store, first) == []
    branch = keeper(store).read([m.address for m in chat])
    assert branch.reflections == ()
    assert len(branch.observations) == 9
