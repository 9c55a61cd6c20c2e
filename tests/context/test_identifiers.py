"""Identifiers, against the rule written out word by word."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from foredeck.context.digests.names import unheld_names
from foredeck.context.messages.identifiers import identifiers

WORDS = st.text("abcXYZ019_$./- \u00e9\n", max_size=60)


def by_the_rule(text: str) -> set[str]:
    """The same, slowly."""
    found = set()
    for word in re.findall(r"[A-Za-z0-9_$][A-Za-z0-9_$./-]*[A-Za-z0-9_$]", text):
        for name in (word, word.rpartition("/")[2]):
            telling = re.search(r"[0-9_./$]|[a-z][A-Z]", name)
            if telling and (len(name) >= 4 or (len(name) == 3 and name.isdecimal())):
                found.add(name)
    return found


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(WORDS)
def test_identifiers_are_what_the_rule_says(text: str) -> None:
    assert identifiers(text) == by_the_rule(text)


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(WORDS, WORDS, st.integers(0, 80))
def test_the_names_of_a_digest_are_the_shortest_in_order(text: str, held: str, room: int) -> None:
    names = identifiers(text) - identifiers(held)
    tails = {name.rpartition("/")[2] for name in names if "/" in name}
    told = unheld_names(text, identifiers(held), room).split()[1:]
    assert told == sorted(sorted(names - tails), key=len)[: len(told)]
