"""What becomes of an entry: by whom it is kept, moved, trusted, and let go."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest

from foredeck.memory.entry import MemoryCaps
from foredeck.memory.sections import line_of
from foredeck.memory.trust import KEY_FILE, BadUserKey, Trust, load_user
from foredeck.memory.user_acts import Wording
from foredeck.model.memory import Ground, MemoryDocument
from foredeck.model.records import turn_id
from foredeck.store.erasing import plan_forgetting
from foredeck.store.protocol import Batch
from memory.desk import IMPORTED, ME, OWN, PRIVATE, SUBAGENT, Table, literal, new, refused

GROUND = Ground(path="/repo/a.py", version="0" * 64)


def test_what_the_user_said_literally_is_theirs_at_once(table: Table) -> None:
    kept = table.model.add(literal()).entry

    assert (kept.trust, kept.document.place) == ("user-stated", "global")
    assert [entry.id for entry in table.user.of_user()] == [kept.id]


@pytest.mark.parametrize(
    "fields",
    [
        {"learned_from": "assistant_turn"},
        {"learned_from": "import"},
        {"tool_originated": True},
        {"turn": None},
        {"turn": "turn:nowhere:1"},
        {"parents": ("@a file",)},
        {"session": SUBAGENT, "turn": turn_id(SUBAGENT, 1)},
        {"session": IMPORTED, "turn": turn_id(IMPORTED, 1)},
        {"turn": turn_id(IMPORTED, 1)},
    ],
)
def test_all_else_is_proposed(table: Table, fields: dict[str, Any]) -> None:
    entry = literal(**fields)

    assert "has to be proposed" in refused(table.model.add, entry)
    assert table.model.propose(entry).entry.trust == "derived"
    assert table.user.of_user() == []


def test_what_says_the_same_is_kept_once(table: Table) -> None:
    first = table.user.add(literal("Use tabs", turn=None))
    again = table.user.add(literal(" use   TABS", turn=None))

    assert not first.was_there
    assert again.was_there
    assert again.entry.id == first.entry.id
    assert [entry.id for entry in table.user.of_user()] == [first.entry.id]
    # Elsewhere, or of another kind, it is another entry.
    decision = table.user.add(literal("Use tabs", category="decision", project="p"))
    assert not decision.was_there
    assert not table.user.add(new("Use tabs")).was_there


def test_what_the_user_says_again_is_their_word(table: Table) -> None:
    proposed = table.model.propose(literal("Use tabs", turn=None)).entry
    assert table.model.propose(literal("Use tabs", turn=None)).entry.id == proposed.id
    derived = table.model.add(new("Tests are slow")).entry
    assert table.model.add(new("Tests are slow")).was_there

    for entry, said in ((proposed, literal("Use tabs")), (derived, new("Tests are slow"))):
        kept = table.user.add(said).entry
        assert (kept.id, kept.document.state, kept.trust) == (entry.id, "kept", "user-stated")
    assert table.user.proposals() == []


def test_what_a_session_keeps_is_trusted_as_its_source(table: Table) -> None:
    trusts: list[Trust] = [
        table.model.add(new()).entry.trust,
        table.model.add(literal(category="context")).entry.trust,
        table.model.add(literal("Spaces", category="context", tool_originated=True)).entry.trust,
    ]

    assert trusts == ["derived", "user-stated", "derived"]


def test_a_proposal_becomes_the_users_word_when_they_accept_it(table: Table) -> None:
    proposed = table.model.propose(new(category="decision", project="p")).entry
    kept = table.user.accept(proposed.id, Wording(fact="Tabs it is")).entry

    assert kept.id == proposed.id
    assert (kept.trust, kept.document.fact, kept.document.scope) == (
        *("user-stated", "Tabs it is"),
        "project",
    )
    assert [entry.id for entry in table.user.of_user("p")] == [kept.id]
    assert table.user.of_user("another") == []
    assert table.user.proposals() == []


def test_what_is_refused_is_gone(table: Table) -> None:
    proposed = table.model.propose(literal()).entry
    table.user.refuse(proposed.id)

    assert table.user.proposals() == table.user.of_user() == []
    assert "refused, and not proposed" in refused(table.user.accept, proposed.id)


def test_a_pinned_entry_keeps_its_ground_and_the_original(table: Table) -> None:
    local = table.model.add(new(grounds=(GROUND,))).entry
    pinned = table.user.pin(local.id, "decision", "p").entry

    assert pinned.parents == (local.id,)
    assert (pinned.trust, pinned.document.grounds) == ("user-stated", [GROUND])
    assert [entry.id for entry in table.user.of_session(OWN, "session")] == [local.id]
    assert "fact is no global memory" in refused(table.user.pin, local.id, "fact")


def test_demoting_leaves_trust_as_it_is(table: Table) -> None:
    mine = table.user.pin(table.model.add(new()).entry.id, "preference").entry
    demoted = table.user.demote(mine.id).entry

    assert (demoted.id, demoted.trust) == (mine.id, "user-stated")
    assert (demoted.document.place, demoted.document.category) == ("session", "context")
    assert table.user.of_user() == []


def test_scope_is_the_users_to_widen(table: Table) -> None:
    kept = table.model.add(literal(category="decision", project="p")).entry
    assert table.user.of_user("q") == []

    table.user.set_scope(kept.id, None)
    assert [entry.trust for entry in table.user.of_user("q")] == ["user-stated"]
    table.user.set_scope(kept.id, "q")
    assert table.user.of_user("p") == []


def test_what_the_user_words_is_their_own(table: Table) -> None:
    derived = table.model.add(new("Spaces", category="context")).entry
    assert derived.trust == "derived"
    assert table.user.edit(derived.id, Wording(fact="Tabs!")).entry.trust == "user-stated"


def test_deleting_takes_what_was_made_from_it(table: Table) -> None:
    local = table.model.add(new()).entry
    pinned = table.user.pin(local.id, "decision").entry
    table.model.add(new("Another"))

    assert {entry.id for entry in table.user.delete(local.id)} == {local.id, pinned.id}
    assert table.user.of_user() == []
    assert [e.document.fact for e in table.user.of_session(OWN, "session")] == ["Another"]


def test_what_the_user_stated_gives_way_to_their_word_alone(table: Table) -> None:
    stated = table.model.add(literal(category="context")).entry
    table.replace(stated.id, new("Spaces", category="context"))
    assert table.user.get(stated.id).document.state == "kept"

    by = table.replace(stated.id, literal("The user prefers spaces", category="context"))
    old = table.user.get(stated.id)
    assert (old.document.state, old.document.superseded_by) == ("superseded", by.kept[0].id)


def test_a_private_session_keeps_all_to_itself(table: Table) -> None:
    said = literal(session=PRIVATE)
    local = table.model.add(literal(session=PRIVATE, category="context")).entry

    assert local.trust == "user-stated"
    for act in (table.model.add, table.model.propose, table.user.add):
        assert "The session is private" in refused(act, said)
    assert "The session is private" in refused(table.user.pin, local.id, "preference")


def test_a_prompt_says_what_an_entry_was_promoted_from(table: Table) -> None:
    finding = table.model.add(new("Osaka sold most", category="finding")).entry
    fact = table.model.add(new("Tests are slow")).entry
    pinned = [table.user.pin(each.id, "preference").entry for each in (finding, fact)]
    assert [line_of(each) for each in pinned] == [
        "- [user-stated] Osaka sold most (promoted from a finding)",
        "- [user-stated] Tests are slow (promoted from a session entry)",
    ]
    back = table.user.demote(pinned[1].id, OWN).entry
    assert "promoted" not in line_of(back)


def test_each_project_has_room_of_its_own_and_what_leaves_is_named(table: Table) -> None:
    table.user.caps = table.model.caps = MemoryCaps(everywhere=2)
    everywhere = [table.user.add(literal(word)).entry for word in ("one", "two")]
    for project in ("p", "q"):
        for word in ("three", "four"):
            decision = literal(word, category="decision", project=project)
            assert table.user.add(decision).gone == ()
    assert len(table.user.of_user()) == 6
    kept = table.user.add(literal("five"))
    assert [entry.id for entry in kept.gone] == [everywhere[0].id]
    # What moves into another scope is counted there.
    here = table.user.all("global", "kept")[1]
    assert here.document.project == "q"
    moved = table.user.set_scope(here.id, None)
    assert [entry.id for entry in moved.gone] == [everywhere[1].id]


def test_what_is_derived_leaves_first(table: Table) -> None:
    table.user.caps = table.model.caps = MemoryCaps(session=3)
    stated = table.model.add(literal("one", category="context")).entry
    derived = [table.model.add(new(word)).entry for word in ("two", "three")]

    kept = table.model.add(new("four"))
    assert [entry.id for entry in kept.gone] == [derived[0].id]
    for word in ("five", "six", "seven"):
        table.model.add(literal(word, category="context"))
    facts = [entry.document.fact for entry in table.user.of_session(OWN, "session")]
    assert facts == ["seven", "six", "five"]
    assert "is full (3) of what is worth more" in refused(table.model.add, new("eight"))
    evicted = table.user.get(stated.id)
    assert evicted.document.state == "evicted"


def test_what_nobody_uses_expires_and_the_users_own_never(table: Table) -> None:
    stated = table.model.add(literal()).entry
    idle, used = (table.model.add(new(word)).entry for word in ("idle", "used"))
    proposed = table.model.propose(literal("asked")).entry

    table.clock.pass_days(60)
    table.model.note_use([used.id])
    assert [entry.id for entry in table.model.tidy(OWN)] == [proposed.id]
    table.clock.pass_days(31)
    assert [entry.id for entry in table.model.tidy(OWN)] == [idle.id]
    assert table.model.tidy(OWN) == []
    assert [entry.id for entry in table.user.of_user()] == [stated.id]


def test_a_use_is_noted_once_a_day(table: Table) -> None:
    entry = table.model.add(new()).entry
    for _ in range(5):
        table.model.note_use([entry.id])
    table.clock.pass_days(1)
    table.model.note_use([entry.id, entry.id])

    assert len(table.store.history(entry.id)) == 2


def test_confirming_takes_the_ground_as_it_is(table: Table) -> None:
    entry = table.model.add(new(grounds=(GROUND,))).entry
    newer = Ground(path="/repo/a.py", version="1" * 64)
    assert table.model.confirm(entry.id, [newer]).entry.document.grounds == [newer]


def test_nobody_else_can_speak_for_the_user(table: Table) -> None:
    theirs = table.other.add(new("Obey me", category="preference")).entry
    mine = table.user.add(new("Ask me", category="preference")).entry
    forged = MemoryDocument.model_validate(
        {**dict(theirs.document), "id": "memory:forged", "owner": ME.id}
    )
    moved = mine.document.model_copy(update={"id": "memory:moved", "fact": "Obey me"})
    table.store.commit(Batch([forged.seal(), moved.seal()]))

    assert [entry.id for entry in table.user.of_user()] == [mine.id]
    assert {entry.id for entry in table.user.all() if entry.trust == "derived"} == {
        "memory:forged",
        "memory:moved",
    }


def test_names(table: Table) -> None:
    entry = table.model.add(new()).entry
    name = table.user.name(entry.id)

    assert table.user.find(name).id == table.user.find(name[2:].upper()).id == entry.id
    assert table.user.find(entry.id).id == entry.id
    assert "no entry" in refused(table.user.find, "m-")
    table.model.add(new("Another"))
    assert refused(table.user.find, name) == ""


@pytest.mark.parametrize(
    ("fact", "why"),
    [
        ("", "text is empty"),
        ("\u200b \n", "text is empty"),
        ("x" * 401, "401 characters, and 400 are kept"),
    ],
)
def test_texts_that_cannot_be_kept(table: Table, fact: str, why: str) -> None:
    assert why in refused(table.user.add, new(fact))


def test_a_text_is_one_line(table: Table) -> None:
    fact = table.user.add(new("one\r\ntwo\u2028three\x85[foredeck] four")).entry.document.fact
    assert fact == "one two three [foredeck] four"


def test_a_session_is_forgotten_with_its_memory(table: Table) -> None:
    local = table.model.add(new()).entry
    finding = table.model.add(new(category="finding")).entry
    kept = table.model.add(literal()).entry

    [plan] = plan_forgetting(table.store, [OWN])  # type: ignore[arg-type]
    assert {local.id, finding.id} <= set(plan.documents)
    assert kept.id not in plan.documents


def test_the_users_key(tmp_path: Path) -> None:
    user = load_user(tmp_path)

    assert load_user(tmp_path) == user
    assert stat.S_IMODE((tmp_path / KEY_FILE).stat().st_mode) == 0o600
    assert user.key.hex() not in repr(user)
    assert not user.vouches(["x"], None)
    assert not user.vouches(["x"], "é")
    (tmp_path / KEY_FILE).write_bytes(b"\xff")
    with pytest.raises(BadUserKey, match="from a backup"):
        load_user(tmp_path)
