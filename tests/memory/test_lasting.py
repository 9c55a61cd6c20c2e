"""Sentences that say that they hold for longer, and orders for the work at hand."""

import pytest

from foredeck.memory.words import says_it_lasts, states_a_rule


@pytest.mark.parametrize(
    "sentence",
    [
        *("Never use tabs in Python files.", "I prefer tabs in Go files."),
        *("From now on write tests first.", "We decided on DuckDB for this."),
        *("Don\u2019t ever push to main.", "Schreib die Tests immer mit pytest."),
        "\u30b3\u30e1\u30f3\u30c8\u306f\u5fc5\u305a\u65e5\u672c\u8a9e\u3067\u3002",
    ],
)
def test_lasting(sentence: str) -> None:
    assert says_it_lasts(sentence)


@pytest.mark.parametrize(
    "sentence",
    ["Fix the parser.", "Send the total of the bill to Bob.", "Sum up the newest mail for me."],
)
def test_for_now(sentence: str) -> None:
    assert not says_it_lasts(sentence)


@pytest.mark.parametrize(
    ("sentence", "is_rule"),
    [
        ("Never use tabs", True),
        ("So always, always run the tests", True),
        ("I never use tabs", True),
        ("Never seen this before.", False),
        ("Always fails on CI.", False),
        ("always the same error!", False),
        ("But never worked for me", False),
        ("Never.", False),
        ("Never mind the tests", False),
        ("We never had that", False),
    ],
)
def test_what_always_or_never_happens_is_no_rule(sentence: str, is_rule: bool) -> None:
    assert states_a_rule(sentence) is is_rule
