"""Identifiers, against the rule written out word by word."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from foredeck.context.digests import unheld_names
from foredeck.model.names import identifiers, inner_identifiers

WORDS = st.text("abcnXYZ019_$./- \u00e9\n\\:", max_size=60)


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(WORDS, WORDS, WORDS)
def test_what_holds_a_text_has_its_inner_identifiers(before: str, text: str, after: str) -> None:
    assert inner_identifiers(text) <= identifiers(before + text + after)


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(WORDS, WORDS, st.integers(0, 80))
def test_the_names_of_a_digest_are_the_shortest_in_order(text: str, held: str, room: int) -> None:
    names = identifiers(text) - identifiers(held)
    tails = {name.rpartition("/")[2] for name in names if "/" in name}
    line = unheld_names(text, identifiers(held), room)
    told = [name.lstrip("./~") for name in line.split()[1:]]
    assert len(line) <= max(0, room)
    assert told == [n for n in sorted(sorted(names - tails), key=len) if n in set(told)]


def test_what_is_cut_off_is_no_inner_identifier() -> None:
    assert inner_identifiers("a_name = other_name(x_1) + last_one") == {"other_name"}
    assert inner_identifiers(" a_name = src/b/c.py.\n") == {"a_name", "src/b/c.py", "c.py"}
    assert inner_identifiers("b\\n a_name c") == frozenset()


def test_the_letter_of_an_escape_belongs_to_no_word() -> None:
    assert identifiers(r'"Done.\nCommand_x\tsrc/a.ts\u001bmake_it"') == (
        {"Command_x", "src/a.ts", "a.ts", "make_it"}
    )
    assert identifiers(r"C:\new_folder\table_of") == {"new_folder", "table_of"}
