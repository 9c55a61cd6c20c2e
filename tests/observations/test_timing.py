"""When to observe, to activate and to reflect: rules over tokens."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from foredeck.model.observations import Mode
from foredeck.observations.rules import (
    MODES,
    TimingRules,
    begins,
    is_activation_due,
    is_pressing,
    kept_raw,
    least_pending,
    notes_limit,
    threshold_of,
    to_condense,
)
from foredeck.store.clock import DAY_MS

RULES = TimingRules()
NOW = 1_800_000_000_000


@dataclass
class Noted:
    tokens: int
    remark_times: list[int] = field(default_factory=list)
    is_condensed: bool = False


def noted(tokens: int, remarks: int = 10, age_ms: int = 1000) -> Noted:
    return Noted(tokens, [NOW - age_ms] * remarks)


@pytest.mark.parametrize(
    ("mode", "threshold"),
    [
        *(("default", 30_000), ("explore", 60_000), ("bug_fixing", 40_000)),
        *(("refactoring", 50_000), ("testing", 40_000), ("debugging", 40_000)),
        ("research", 60_000),
    ],
)
def test_modes_have_their_thresholds(mode: Mode, threshold: int) -> None:
    assert MODES[mode].threshold == threshold
    assert threshold_of(RULES, mode, 0) == threshold


def test_activation_at_four_fifths_or_where_the_prompt_would_not_fit() -> None:
    def due(tokens: int, *, fits: bool = True) -> bool:
        return is_activation_due(
            *(RULES, "default"), message_tokens=tokens, observation_tokens=0, fits=fits
        )

    assert (due(23_999), due(24_000), due(100, fits=False)) == (False, True, True)


def test_observing_presses_beyond_a_chunk_and_the_bound() -> None:
    assert (is_pressing(RULES, 13_199), is_pressing(RULES, 13_200)) == (False, True)


def test_a_project_is_observed_at_its_threshold_alone() -> None:
    assert least_pending(RULES, "default", 0) == 6000
    assert least_pending(TimingRules(scope="resource"), "default", 5000) == 25_000


def test_the_newest_remarks_of_a_day_stay_raw() -> None:
    def kept(*standing: Noted) -> int:
        return kept_raw(RULES, standing, 40_000, NOW)

    assert kept(*[noted(700)] * 9) == 5
    assert kept(noted(700, age_ms=DAY_MS + 1), noted(700)) == 1
    assert kept(*[noted(9000, 5)] * 9) == 2, "half of the limit"


def test_at_their_limit_the_oldest_notes_are_condensed_as_many_as_at_once() -> None:
    small = [noted(1000)] * 39
    assert to_condense(RULES, small, NOW) == 0
    assert to_condense(RULES, [*small, noted(1000)], NOW) == 12
    assert to_condense(RULES, small[:9], NOW, asked=True) == 4
    assert to_condense(RULES, [noted(30_000), *small], NOW) == 1, "one text is never cut"


def test_of_a_small_window_notes_take_a_fifth_at_most() -> None:
    assert notes_limit(RULES, None) == notes_limit(RULES, 200_000) == 40_000
    assert notes_limit(RULES, 60_000) == 12_000
    assert to_condense(RULES, [noted(1000)] * 12, NOW, 60_000) == 7


def test_what_was_condensed_is_condensed_again_with_what_followed() -> None:
    before = replace(noted(6000), is_condensed=True)
    assert to_condense(RULES, [before, *[noted(1000)] * 40], NOW) == 7
    assert to_condense(RULES, [before], NOW, asked=True) == 0, "not it alone"


def test_who_asks_for_it_has_what_is_new_condensed_where_nothing_is_older() -> None:
    before = replace(noted(6000), is_condensed=True)
    assert to_condense(RULES, [noted(1000)] * 3, NOW) == 0
    assert to_condense(RULES, [noted(1000)] * 3, NOW, asked=True) == 3
    assert to_condense(RULES, [before, *[noted(1000)] * 5], NOW, asked=True) == 6


def test_notes_begin_by_themselves_late_in_a_large_window() -> None:
    assert (begins(129_999, 200_000), begins(130_000, 200_000)) == (False, True)
    assert not begins(90_000, 99_000)
    assert not begins(10**6, None)
