"""When to observe, to activate and to reflect: rules over tokens."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from foredeck.model.observations import Mode
from foredeck.observations.modes import MODES
from foredeck.observations.timing import (
    TimingRules,
    coverage,
    is_activation_due,
    is_pressing,
    kept_raw,
    least_pending,
    threshold_of,
    to_reflect,
    to_summarise,
)
from foredeck.store.clock import DAY_MS

RULES = TimingRules()
NOW = 1_800_000_000_000


@dataclass
class Noted:
    tokens: int
    remark_times: list[int] = field(default_factory=list)


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


def test_observations_take_their_part_of_the_threshold() -> None:
    assert threshold_of(RULES, "default", 10_000) == 20_000
    assert threshold_of(RULES, "default", 60_000) == RULES.chunk.least


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
    assert kept_raw(RULES, [noted(700)] * 9, NOW) == 5
    assert kept_raw(RULES, [noted(700, age_ms=DAY_MS + 1), noted(700)], NOW) == 1
    assert kept_raw(RULES, [noted(9000, 5)] * 9, NOW) == 2, "half of the threshold of reflection"


def test_reflection_at_its_threshold_leaves_the_newest() -> None:
    small = [noted(1000)] * 39
    assert to_reflect(RULES, small, NOW) == 0
    assert to_reflect(RULES, [*small, noted(1000)], NOW) == 12, "as many as are condensed at once"
    assert to_reflect(RULES, small[:9], NOW, asked=True) == 4
    assert to_reflect(RULES, [noted(30_000), *small], NOW) == 1, "one text is never cut"


def test_reflections_are_summed_up_at_twice_the_threshold() -> None:
    assert to_summarise(RULES, [noted(39_000)] * 2) == 0
    assert to_summarise(RULES, [noted(40_000)] * 2) == 2
    assert to_summarise(RULES, [noted(90_000)]) == 0, "one alone has been condensed already"


def test_coverage_is_a_share_of_what_left() -> None:
    assert (coverage(95, 100), coverage(0, 0)) == (0.95, 1.0)
