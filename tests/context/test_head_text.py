"""The text of the head: all sections within one budget."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context.heads import Said
from foredeck.context.head import compose, head_opening


def section(name: str, count: int) -> Said:
    return Said(name, [f"{name} line {n:03}" for n in range(count)])


class Broken:
    name = "broken"

    def text(self, limit: int) -> str:
        raise RuntimeError(f"no text of {limit} characters")


class TooLong:
    name = "long"

    def text(self, limit: int) -> str:
        return "x" * (2 * limit)


@dataclass
class Stated(Said):
    has_floor: bool = True


def test_others_leave_room_for_what_the_user_has_stated() -> None:
    rules = Stated("rules", section("rules", 100).lines)
    others = [section(name, 100) for name in ("notes", "tasks", "pool", "log")]
    head = compose([rules, *others], 1_000)
    assert len(head) <= 1_000
    said = head.partition("[foredeck] rules:")[2].partition("[foredeck]")[0]
    assert 0.5 * 1_000 < len(said) <= 0.6 * 1_000
    assert "notes line 000" in head
    # What it does not need is there for the others.
    few = compose([Stated("rules", rules.lines[:2]), *others], 1_000)
    assert few.count("line") > 2 + 4 * 8


def test_a_section_of_its_own_room_takes_none_from_the_others() -> None:
    @dataclass
    class Extra(Said):
        extra_chars: int = 2000

    rules, own = section("rules", 500), Extra("own", section("own", 500).lines)
    text = compose([rules, own], 800)
    assert text.count("own line") > 120
    assert text.startswith(compose([rules], 800)[:400])
    assert 2400 < len(text) <= 2800
    assert compose([rules, Extra("own", [])], 800) == compose([rules], 800)


def test_a_section_that_fails_or_writes_too_much_hurts_no_other() -> None:
    text = compose([Broken(), section("task", 2), TooLong()], 800)
    assert "task line 001" in text
    assert "broken" not in text
    assert len(text) <= 800


@pytest.mark.parametrize("limit", [0, 100, 400, 800, 5000])
@given(counts=st.lists(st.integers(0, 200), max_size=9))
def test_the_budget_holds_and_the_text_is_the_same_again(limit: int, counts: list[int]) -> None:
    sections = [section(f"part {n}", count) for n, count in enumerate(counts)]
    text = compose(sections, limit)
    assert len(text) <= limit
    assert text == compose(sections, limit)
    assert text == "" or text.startswith(head_opening())
