"""Which observations a branch may use, and what reflections leave of them."""

from __future__ import annotations

from typing import Any

from foredeck.model.observations import MessagePart
from foredeck.observations.chunks import Position
from foredeck.observations.recall import (
    Observation,
    Reflection,
    levels_on,
    on_branch,
    position_on,
)


def observed(id: str, *covers: str, text: str = "noted", **fields: Any) -> Observation:
    stored = {"covers": [*covers], "text_hash": "h" if text else None, **fields}
    return Observation(id, "t", "s", text, stored)


def reflected(id: str, generation: int, *observations: str, text: str = "so") -> Reflection:
    fields = {
        "replaces": [*observations],
        "observations": [*observations],
        "generation": generation,
        "text_hash": "h" if text else None,
    }
    return Reflection(id, "t", "s", text, fields)


def ids(observations: list[Observation], addresses: str) -> list[str]:
    return [placed.observation.id for placed in on_branch(observations, addresses.split())]


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
    placed = on_branch(known, ["summary", "c", "d", "e"])
    assert [(p.observation.id, p.start, p.end) for p in placed] == [("two", 1, 3)]
    assert position_on(placed) == Position(3)


def test_no_message_is_covered_twice() -> None:
    own, parents = observed("own", "c", "d"), observed("parent", "c", "d", "e")
    assert ids([own, parents], "c d e") == ["own"]


def test_parts_of_one_message_follow_each_other() -> None:
    def part(id: str, start: int, end: int, *covers: str) -> Observation:
        piece = MessagePart(address="m", start=start, end=end, length=90).model_dump()
        return observed(id, *covers, part=piece)

    parts = [part("p1", 0, 40), part("p2", 40, 80), part("p3", 80, 90, "m", "n")]
    placed = on_branch([observed("one", "a"), *parts], ["a", "m", "n", "o"])
    assert [p.observation.id for p in placed] == ["one", "p1", "p2", "p3"]
    assert position_on(placed) == Position(3)
    assert position_on(placed[:3]) == Position(1, 80)
    assert ids([observed("one", "a"), parts[2]], "a m n") == ["one"]


def test_a_reflection_stands_for_what_it_replaces_on_a_branch_that_has_it_all() -> None:
    known = [observed("one", "a"), observed("two", "b"), observed("three", "c")]
    reflections = [reflected("r1", 1, "one", "two"), reflected("other", 2, "one", "gone")]
    left = levels_on(on_branch(known, ["a", "b", "c"]), reflections)
    assert [r.id for r in left.reflections] == ["r1"]
    assert [o.id for o in left.observations] == ["three"]
    short = levels_on(on_branch(known, ["a"]), reflections)
    assert (short.reflections, [o.id for o in short.observations]) == ((), ["one"])


def test_the_newest_generation_stands_and_a_deleted_one_lets_the_older_stand_again() -> None:
    known = [observed("one", "a"), observed("two", "b")]
    placed = on_branch(known, ["a", "b"])
    older, newer = reflected("r1", 1, "one"), reflected("r2", 2, "one", "two")
    assert [r.id for r in levels_on(placed, [older, newer]).reflections] == ["r2"]
    gone = reflected("r2", 2, "one", "two", text="")
    left = levels_on(placed, [older, gone])
    assert ([r.id for r in left.reflections], [o.id for o in left.observations]) == (
        ["r1"],
        ["two"],
    )


def test_what_the_user_deleted_stands_for_nothing_and_counts_as_observed() -> None:
    placed = on_branch([observed("one", "a", text=""), observed("two", "b")], ["a", "b", "c"])
    assert [o.id for o in levels_on(placed, []).observations] == ["two"]
    assert position_on(placed) == Position(2)
