"""What the user is told in Pi: three lines at 80 columns at most, in words that they know."""

from __future__ import annotations

import textwrap

import pytest
from syrupy.assertion import SnapshotAssertion

from foredeck.context.calls.deciding import TURN_ENDED
from foredeck.context.calls.own_lines import WITHDRAWN_LATER, withdrawn_now
from foredeck.context.calls.recording import damage_report
from foredeck.context.state.session import CUT
from foredeck.engine.commands import NOT_OBSERVED
from foredeck.engine.current import FORGOTTEN
from foredeck.engine.observing_runs import ALONE
from foredeck.engine.opened import ALREADY, PRIVATE, TOO_LATE
from foredeck.engine.project_notes import LEFT_OUT
from foredeck.engine.requests import large_fold
from foredeck.model.call_values import REASONS, CallStats, Decision

FOLDED = CallStats(chars_sent=120_000, rate=3.0, shorter_by=90_000)
NOTICES = {
    "alone": ALONE.format(reason="Pi has no model that foredeck may ask"),
    "already private": ALREADY,
    "cut": CUT,
    "damaged": damage_report(3),
    "forgotten": FORGOTTEN,
    "folded": str(large_fold(Decision("rebase", "cold"), FOLDED)),
    "left out": LEFT_OUT,
    "not observed": NOT_OBSERVED,
    "private": PRIVATE,
    "too late to be private": TOO_LATE,
    "turn ended": TURN_ENDED,
    "withdrawn": withdrawn_now(84_000, 3.0),
    "withdrawn later": WITHDRAWN_LATER,
}
OF_OURS = (
    *("carrying_cost", "rewrite_cost", "high-water", "anchored", "adaptive", "rebase from"),
    *("ground", "put away"),
)
"""Words that only foredeck's own documentation knows."""


@pytest.mark.parametrize("name", NOTICES)
def test_a_notice_is_short_and_plain(name: str) -> None:
    text = NOTICES[name]
    assert len(textwrap.wrap(text, 80)) <= 3
    assert not [word for word in OF_OURS if word in text]


def test_the_reasons_of_foredeck_why_are_plain() -> None:
    assert not [text for text in REASONS.values() if any(word in text for word in OF_OURS)]


def test_the_notices(snapshot: SnapshotAssertion) -> None:
    assert snapshot == NOTICES


def test_only_a_large_fold_is_told() -> None:
    rebase = Decision("rebase", "pays")
    assert large_fold(rebase, FOLDED) is not None
    assert large_fold(rebase, FOLDED._replace(chars_sent=200_000)) is None, "less than a third"
    assert large_fold(rebase, FOLDED._replace(shorter_by=20_000, chars_sent=9_000)) is None
    assert large_fold(Decision("append"), FOLDED) is None
