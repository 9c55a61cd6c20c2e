"""Which observations a branch may use, and what reflections leave of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from foredeck.model.documents import Provenance
from foredeck.model.observations import MessagePart, ObservationDocument, ReflectionDocument
from foredeck.observations.chunks import Position
from foredeck.observations.reading import Observation, ObservedBranch, Reflection, StoredNotes
from foredeck.store.protocol import Head, Token

BY_US = Provenance(origin="s", generator="agent")


def head(id: str, type: str) -> Head:
    return Head(id, type, Token("t"), 0, {})


def observed(id: str, *covers: str, text: str | None = "noted", **fields: Any) -> Observation:
    document = ObservationDocument(
        id=id, session="s", covers=[*covers], content=text, provenance=BY_US, **fields
    )
    return Observation(head(id, "observation"), document)


def reflected(id: str, generation: int, *observations: str, text: str | None = "so") -> Reflection:
    document = ReflectionDocument(
        id=id,
        session="s",
        replaces=[*observations],
        observations=[*observations],
        generation=generation,
        content=text,
        provenance=BY_US,
    )
    return Reflection(head(id, "reflection"), document)


def on_branch(
    observations: Sequence[Observation], addresses: str, reflections: Sequence[Reflection] = ()
) -> ObservedBranch:
    return StoredNotes(observations, reflections).on_branch(addresses.split())


def ids(observations: list[Observation], addresses: str) -> list[str]:
    return [placed.observation.id for placed in on_branch(observations, addresses).placed]


def test_a_branch_sees_only_its_own_past() -> None:
    known = [observed("one", "a", "b"), observed("two", "c", "d"), observed("other", "c", "x")]
    assert ids(known, "a b c d e") == ["one", "two"]
    assert ids(known, "a b c x") == ["one", "other"]
    assert ids(known, "a b") == ["one"]
    assert ids(known, "a") == []


def test_a_message_that_was_changed_is_observed_anew() -> None:
    assert ids([observed("one", "a", "b")], "a b2 c") == []


def test_what_the_host_has_summed_up_is_not_looked_for() -> None:
    known = [observed("one", "a", "b"), observed("two", "c", "d")]
    branch = on_branch(known, "summary c d e")
    assert [(p.observation.id, p.start, p.end) for p in branch.placed] == [("two", 1, 3)]
    assert branch.position == Position(3)


def test_no_message_is_covered_twice() -> None:
    own, parents = observed("own", "c", "d"), observed("parent", "c", "d", "e")
    assert ids([own, parents], "c d e") == ["own"]


def test_parts_of_one_message_follow_each_other() -> None:
    def part(id: str, start: int, end: int, *covers: str) -> Observation:
        piece = MessagePart(address="m", start=start, end=end, length=90)
        return observed(id, *covers, part=piece)

    parts = [part("p1", 0, 40), part("p2", 40, 80), part("p3", 80, 90, "m", "n")]
    known = [observed("one", "a"), *parts]
    assert ids(known, "a m n o") == ["one", "p1", "p2", "p3"]
    assert on_branch(known, "a m n o").position == Position(3)
    assert on_branch(known[:3], "a m n o").position == Position(1, 80)
    assert ids([observed("one", "a"), parts[2]], "a m n") == ["one"]


def test_a_reflection_stands_for_what_it_replaces_on_a_branch_that_has_it_all() -> None:
    known = [observed("one", "a"), observed("two", "b"), observed("three", "c")]
    reflections = [reflected("r1", 1, "one", "two"), reflected("other", 2, "one", "gone")]
    left = on_branch(known, "a b c", reflections)
    assert [r.id for r in left.reflections] == ["r1"]
    assert [o.id for o in left.observations] == ["three"]
    short = on_branch(known, "a", reflections)
    assert (short.reflections, [o.id for o in short.observations]) == ((), ["one"])


def test_the_newest_generation_stands_and_a_deleted_one_lets_the_older_stand_again() -> None:
    known = [observed("one", "a"), observed("two", "b")]
    older, newer = reflected("r1", 1, "one"), reflected("r2", 2, "one", "two")
    assert [r.id for r in on_branch(known, "a b", [older, newer]).reflections] == ["r2"]
    gone = reflected("r2", 2, "one", "two", text=None)
    left = on_branch(known, "a b", [older, gone])
    assert ([r.id for r in left.reflections], [o.id for o in left.observations]) == (
        ["r1"],
        ["two"],
    )


def test_what_the_user_deleted_stands_for_nothing_and_counts_as_observed() -> None:
    branch = on_branch([observed("one", "a", text=None), observed("two", "b")], "a b c")
    assert [o.id for o in branch.observations] == ["two"]
    assert branch.position == Position(2)
