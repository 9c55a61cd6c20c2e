"""What no policy can change, whatever it says and however often another takes its place.

Pins, results in flight, the user's own text and bytes before a rebase are checked at every call
by `invariants.check`. Here the policies are as greedy as can be, and change between calls.
"""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from context.playing import fresh_host, take
from context.sent import as_bytes
from context.strategies import Script, sound_scripts
from context.test_properties import BOUNDED
from examples import examples
from foredeck.model.call_values import Decision

FEW = settings(BOUNDED, max_examples=examples(60))

GREEDY: dict[str, Any] = {
    "policy": "adaptive",
    "adaptive": {"patience": 1, "patience_edited": 1, "patience_arguments": 1},
    "rebase": {"carrying_factor": 0, "guard": 10, "min_saving_tokens": 0},
}
OTHERS: list[dict[str, Any]] = [
    GREEDY,
    {"policy": "seed-window", "seed_window": {"per_turn": 1, "turns": 1}},
    {"policy": "keep-all"},
]


@FEW
@given(
    script=sound_scripts(max_steps=6),
    policies=st.lists(st.sampled_from(OTHERS), min_size=7, max_size=7),
)
def test_another_policy_at_every_call_breaks_no_rule(
    script: Script, policies: list[dict[str, Any]]
) -> None:
    with fresh_host() as host:
        for step, settings_ in zip(script, policies, strict=False):
            host.restart(**settings_)
            take(host, step)
            host.call()


@FEW
@given(script=sound_scripts(max_steps=6), at=st.integers(1, 5))
def test_a_restart_with_other_constants_keeps_what_was_sent(script: Script, at: int) -> None:
    """Between two calls without a rebase every byte stands: decisions are not made again."""
    with fresh_host(**GREEDY) as host:
        for number, step in enumerate(script):
            before = host.past.sent[-1] if host.past.sent else None
            if number == at:
                host.restart(**OTHERS[1])
            take(host, step)
            sent = host.call()
            if before is not None and sent.decision == Decision():
                kept = len(before.prompt)
                assert as_bytes(sent.prompt[:kept]) == as_bytes(before.prompt)
