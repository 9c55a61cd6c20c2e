"""Context windows of every size in the real Pi: content goes before Pi would compact by itself."""

from __future__ import annotations

from typing import Any

import pytest

from foredeck_bench.twin.script import Step, call
from harness import Pi, questions
from observed import answered, calls_of, notified, stored

KEEPS_ALL = {"FOREDECK_POLICY": "keep-all"}
"""Only what has to go does."""


def compactions(events: list[dict[str, Any]]) -> list[str]:
    """What Pi said of compactions, in order."""
    said = [e for e in events if str(e.get("type")).startswith("compaction_")]
    return [f"{e['type']} {'cancelled' if e.get('aborted') else e['reason']}" for e in said]


LINE = "line %.0f of " + "output " * 12
"""99 characters."""


def work(steps: int, tokens: int, at_once: int = 1) -> list[Step]:
    """Calls whose results have about so many tokens, and an answer after every fourth."""
    lines = tokens * 4 // 100
    script: list[Step] = []
    for number in range(steps):
        first = 100_000 + number * at_once * lines
        firsts = range(first, first + at_once * lines, lines)
        script.append(
            [call("bash", command=f"seq -f '{LINE}' {n} {n + lines - 1}") for n in firsts]
        )
        script += [f"Answer {number}."] if number % 4 == 3 else []
    return script


def folds(pi: Pi) -> list[str]:
    with stored(pi) as store:
        return [str(c.decision.reason) for c in calls_of(store) if c.decision.is_rebase]


@pytest.mark.parametrize(
    ("window", "steps", "tokens", "at_once"), [(32_000, 16, 1_500, 1), (1_000_000, 24, 11_000, 4)]
)
def test_content_goes_before_pi_would_compact(
    pi: Pi, window: int, steps: int, tokens: int, at_once: int
) -> None:
    model = pi.serve(work(steps, tokens, at_once), context_window=window, window=window)
    rpc = pi.rpc(*questions(steps // 4), foredeck=True, environment=KEEPS_ALL)
    assert compactions(rpc.events) == []
    assert "high-water" in folds(pi)
    assert len(answered(model)) == steps + steps // 4


def test_where_pi_would_compact_all_the_time_it_is_kept_from_it_and_that_is_said_once(
    pi: Pi,
) -> None:
    steps, window = 24, 16_000
    model = pi.serve(work(steps, 1_200), context_window=window, window=window)
    rpc = pi.rpc(*questions(steps // 4), foredeck=True, environment=KEEPS_ALL)
    ends = [said for said in compactions(rpc.events) if said.startswith("compaction_end")]
    assert set(ends) == {"compaction_end cancelled"}
    assert [text for text in notified(rpc) if "compaction" in text] == [
        "foredeck cancels Pi's own compaction with this model and folds at 85% of its window "
        "instead: compaction.reserveTokens in Pi's settings keeps 16,384 of 16,000 tokens free, "
        "so Pi would compact at every call. With a lower value there Pi no longer tries."
    ]
    assert "high-water" in folds(pi)
    assert len(answered(model)) == steps + steps // 4


TALK = "a word or two more " * 300
"""About 1,425 tokens by the scripted model's count."""


def test_a_long_talk_in_a_small_window(pi: Pi) -> None:
    """Nothing in it can be folded, and what Pi keeps of it nearly fills what it lets through."""
    pi.serve([f"Answer {n}. {TALK}" for n in range(40)], context_window=40_000)
    rpc = pi.rpc(*questions(40), foredeck=True, environment=KEEPS_ALL)
    said = compactions(rpc.events)
    assert set(said) == {"compaction_start threshold", "compaction_end threshold"}
    assert len(said) / 2 <= 5
