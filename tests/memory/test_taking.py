"""What was read out of a session is taken in as a whole, and once."""

from __future__ import annotations

from typing import Any

import pytest

from foredeck.engine.extraction import news_of
from foredeck.memory.describing import proposal_lines, proposals_of
from foredeck.memory.entry import MemoryCaps
from foredeck.memory.extracting import ExtractionMemory, FoundMemory, known_facts
from foredeck.memory.user_acts import UserActs, Wording
from foredeck.model.records import ExtractionDocument, extraction_id
from memory.desk import IMPORTED, ME, OWN, Table, literal, new, refused


def record(last: int = 1, session: str = OWN, **refusals: int) -> ExtractionDocument:
    return ExtractionDocument(
        id=extraction_id(session, last),
        session=session,
        first=1,
        last=last,
        refused=refusals,
        time_ms=1,
    )


@pytest.fixture
def extracted(table: Table) -> ExtractionMemory:
    return ExtractionMemory(table.store, ME, MemoryCaps(session=2), table.clock, by=OWN)


def facts(table: Table) -> list[tuple[str, str]]:
    return sorted((entry.document.state, entry.document.fact) for entry in table.user.all())


def test_all_of_an_answer_in_one_transaction(table: Table, extracted: ExtractionMemory) -> None:
    decision = new("We ship on Fridays", category="decision")
    found = [
        FoundMemory(new("Three tables are loaded"), ask=False),
        FoundMemory(literal(), ask=False),
        FoundMemory(decision, ask=True),
    ]
    taken = extracted.take(record(form=2), found)
    assert [len(taken.kept), len(taken.proposed), len(taken.evicted)] == [2, 1, 0]
    head = table.store.head(extraction_id(OWN, 1))
    assert head.fields["refused"] == {"form": 2}
    ids = [entry.id for entry in (*taken.kept, *taken.proposed)]
    assert sorted([*head.fields["entries_kept"], *head.fields["entries_proposed"]]) == sorted(ids)
    assert {each.token for each in (*taken.kept, *taken.proposed)} == {head.token}


def test_who_is_second_takes_in_nothing(table: Table, extracted: ExtractionMemory) -> None:
    assert extracted.take(record(), [FoundMemory(new("One"), ask=False)]) is not None
    assert extracted.take(record(), [FoundMemory(new("Two"), ask=False)]) is None
    assert facts(table) == [("kept", "One")]


def test_what_is_not_the_users_own_word_waits_whatever_it_is_called(
    table: Table, extracted: ExtractionMemory
) -> None:
    brought = literal("Mail goes to eve", tool_originated=True)
    elsewhere = literal("Nobody said so here", session=IMPORTED)
    extracted.take(record(), [FoundMemory(each, ask=False) for each in (brought, elsewhere)])
    assert [state for state, _ in facts(table)] == ["proposed", "proposed"]
    assert table.user.of_user() == []


def test_a_full_place_and_a_contradiction(table: Table, extracted: ExtractionMemory) -> None:
    first = extracted.take(record(1), [FoundMemory(new(f"Fact {n}"), ask=False) for n in (1, 2)])
    second = [
        FoundMemory(new("Fact 2 has changed"), ask=False, replaces=first.kept[1].id),
        FoundMemory(new("Fact 3"), ask=False),
    ]
    taken = extracted.take(record(2), second)
    assert taken is not None
    states = {entry.document.fact: entry.document.state for entry in table.user.all()}
    assert states == {
        "Fact 1": "evicted",
        "Fact 2": "superseded",
        "Fact 2 has changed": "kept",
        "Fact 3": "kept",
    }
    history = table.store.history(first.kept[1].id)
    assert [head.fields["act"] for head in history] == ["added", "superseded"]


def test_somebody_else_writes_at_the_same_moment(table: Table, extracted: ExtractionMemory) -> None:
    planned = extracted._plan

    def slow(found: Any) -> Any:
        plan = planned(found)
        if len(facts(table)) == 2:  # the first of them is about to leave
            table.user.edit(first.entry.id, Wording(fact="The user's own now"))
        return plan

    first, _ = table.model.add(new("First")), table.model.add(new("Second"))
    extracted._plan = slow  # type: ignore[method-assign]
    extracted.take(record(), [FoundMemory(new("Third"), ask=False)])
    assert facts(table) == [
        ("evicted", "Second"),
        ("kept", "The user's own now"),
        ("kept", "Third"),
    ]


def test_the_inbox_shows_where_a_proposal_came_from(table: Table) -> None:
    deciding = UserActs(table.store, ME, clock=table.clock)
    old = table.user.add(literal("User prefers spaces in Go files")).entry
    asked = table.model.propose(literal("User prefers tabs in Go files", learned_from="model"))
    [proposal] = proposals_of(deciding)
    name = deciding.name(old.id)
    assert proposal_lines(proposal) == [
        "User prefers tabs in Go files",
        "preference, everywhere; the model's wording",
        "from: I prefer tabs, in own",
        f"instead of {name}: User prefers spaces in Go files",
    ]
    deciding.accept_instead(asked.entry.id, of=old.id)
    [kept] = table.user.of_user()
    assert (kept.document.fact, kept.trust) == ("User prefers tabs in Go files", "user-stated")
    assert refused(deciding.accept_instead, asked.entry.id, of=old.id)


def test_what_was_refused_or_taken_out_is_known(table: Table) -> None:
    table.user.refuse(table.model.propose(literal("Refused", learned_from="model")).entry.id)
    table.user.delete(table.user.add(literal("Deleted")).entry.id)
    table.user.add(literal("Kept"))
    known = known_facts(table.user, OWN, None)
    states = {fact.text: fact.state for fact in known["preference"]}
    assert states == {"Refused": "refused", "Deleted": "refused", "Kept": "kept"}


def test_what_the_user_stated_leaves_last_and_never_in_silence(
    table: Table, extracted: ExtractionMemory
) -> None:
    stated = table.user.add(new("Tests use the real database")).entry
    extracted.take(record(1), [FoundMemory(new(f"Fact {n}"), ask=False) for n in (1, 2, 3)])
    assert ("kept", stated.document.fact) in facts(table)
    newer = [FoundMemory(literal(f"My word {n}", category="fact"), ask=False) for n in (1, 2)]
    taken = extracted.take(record(2), newer)
    assert taken is not None
    assert news_of(taken, table.user.name) == [
        f'Removed from memory to make room: "{stated.document.fact}" ({table.user.name(stated.id)})'
    ]
