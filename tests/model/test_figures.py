"""Numbers as people read them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foredeck.model.figures import amounts, model_name, money, short_bytes, short_count


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0"), (950, "950"), (999.6, "1.00k"), (1_580, "1.58k"), (99_960, "100k"),
     (999_600, "1.00M"), (12_300_000, "12.3M"), (-1_200, "-1.20k"), (-0.2, "0")],
)  # fmt: skip
def test_a_count_has_three_digits(count: float, text: str) -> None:
    assert short_count(count) == text
    assert short_bytes(1_500_000) == "1.50MB"


@pytest.mark.parametrize(
    ("name", "text"), [("anthropic/m", "anthropic/m"), ("/m", "m"), ("/", "a model without a name")]
)
def test_a_model_is_called_by_what_is_said_of_it(name: str, text: str) -> None:
    assert model_name(name) == text


@pytest.mark.parametrize(
    ("plain", "ours", "in_money", "texts"),
    [
        (0.2938, 0.1590, True, ("$0.29", "$0.16", "$0.13")),
        (0.500, 0.444, True, ("$0.500", "$0.444", "$0.056")),
        (0.01, 0.0121, True, ("$0.0100", "$0.0121", "-$0.0021")),
        (1_234.5, 1_000.0, True, ("$1,234.50", "$1,000.00", "$234.50")),
        (106_600, 94_600, False, ("106.6k", "94.6k", "12.0k")),
        (950, 940, False, ("950", "940", "10")),
        (0, 0, True, ("$0.00", "$0.00", "$0.00")),
    ],
)
def test_what_was_saved_is_the_difference_of_what_is_printed(
    plain: float, ours: float, in_money: bool, texts: tuple[str, str, str]
) -> None:
    assert amounts(plain, ours, in_money=in_money) == texts


@given(st.floats(0, 1e7), st.floats(0, 1e7), st.booleans())
def test_amounts_add_up_as_they_are_printed(plain: float, ours: float, in_money: bool) -> None:
    first, second, saved = (
        float(re.sub(r"[^-.\d]", "", text)) for text in amounts(plain, ours, in_money=in_money)
    )
    assert first - second == pytest.approx(saved, abs=1e-6)


def test_money_says_something_of_what_is_small() -> None:
    assert [money(value) for value in (12.4, 0.14, 0.056, 0.0021, -0.5, 0.00001)] == [
        "$12.40", "$0.14", "$0.056", "$0.0021", "-$0.50", "$0.00",
    ]  # fmt: skip
