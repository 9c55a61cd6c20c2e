"""What was once rendered stays so, whatever has changed in program, configuration and clock.

A restart that recomputes the same bytes with the same code would prove nothing: between
restarts the words, the policy, the layout's thresholds and the settings are changed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context.driver import Host
from context.messages import lines
from context.playing import fresh_host, take
from context.scenes import ask, context_tool, go_on, later, outputs, use
from context.sent import Sent, as_bytes
from context.strategies import Script, broken_scripts, sound_scripts
from context.test_properties import BOUNDED
from foredeck.context import compacting, compactions, fitting, layouts, rendering, summary, wording
from foredeck.context.calls import own_lines
from foredeck.context.intake import file_changes
from foredeck.context.messages import items, transcript
from foredeck.context.plan import wires
from foredeck.context.policies import pieces
from foredeck.context.rewriting import folding, refreshing, replacing, runs
from foredeck.context.state import gauge
from foredeck.context.tools import listing, reasons, tools
from foredeck.model.call_values import Decision

USERS = (
    *(compacting, compactions, refreshing, fitting, folding, layouts, listing, own_lines),
    *(file_changes, pieces, reasons, rendering, replacing, runs, summary, tools, transcript, wires),
    wording,
)

LINES = (own_lines.continuation, replacing.stand_in_heading, runs.run_heading, runs.last_words)
"""Lines of ours that stand with what says them."""


def other_words(patch: pytest.MonkeyPatch) -> None:
    """Every line of ours says something else, wherever it was imported."""
    fixed = inspect.getmembers(wording, inspect.isfunction)
    lines = [line for name, line in fixed if not name.startswith("_")]
    lines = [line for line in lines if line.__module__ == wording.__name__]
    for line in [*lines, *LINES]:
        for module in USERS:
            if getattr(module, line.__name__, None) is line:
                patch.setattr(module, line.__name__, _reworded(line))


def _reworded(line: Callable[..., str]) -> Callable[..., str]:
    def reworded(*args: Any, **options: Any) -> str:
        return "NEW " + line(*args, **options)

    return reworded


def other_numbers(patch: pytest.MonkeyPatch) -> None:
    """Every threshold of the program is another."""
    patch.setattr(gauge, "rate_of", lambda _points: 2.0)
    patch.setattr(rendering, "HANDLE_FROM_CHARS", 20)
    patch.setattr(layouts, "HANDLE_FROM_CHARS", 20)
    patch.setattr(rendering, "MIN_SAVING_CHARS", 5)
    patch.setattr(items, "ARGS_CHARS", 12)


OTHER_SETTINGS: dict[str, Any] = {
    "seed_window": {"per_turn": 1, "turns": 1},
    "rebase": {"min_saving_tokens": 200, "high_water": 0.3},
}


def rich(host: Host) -> Sent:
    """A prompt with every kind of part in it."""
    ask(host)
    outputs(host, 6)
    later(host)
    use(host, "r1", "read", lines(30), path="a.py")
    use(host, "r2", "read", lines(30), path="a.py")
    use(host, "r3", "read", lines(30).replace("line 7:", "line seven:"), path="a.py")
    use(host, "r4", "read", lines(30, "new"), path="a.py")
    context_tool(host, "t1", "activate", "@3")
    context_tool(host, "t2", "pin", "@4")
    context_tool(host, "t3", "deactivate", "@5")
    return use(host, "e", "bash", "", command="true")


@pytest.mark.parametrize(
    "change",
    [
        lambda _host, patch: other_words(patch),
        lambda _host, patch: other_numbers(patch),
        lambda host, _patch: host.restart(**OTHER_SETTINGS),
        lambda host, _patch: host.wait(-1_000_000),
        lambda host, _patch: host.restart(seed_window={"per_turn": 1000, "turns": 1000}),
    ],
    ids=["words", "numbers", "settings", "clock", "window"],
)
def test_old_parts_stay_byte_for_byte(
    host: Host, monkeypatch: pytest.MonkeyPatch, change: Callable[[Host, pytest.MonkeyPatch], None]
) -> None:
    before = rich(host)
    forms = {row.form for n in range(1, (before.call or 0) + 1) for row in host.shown(n).record.ops}
    assert forms >= {"full", "same", "diff", "reference", "note"}
    host.restart()
    change(host, monkeypatch)
    sent = go_on(host, "And now?")
    length = len(before.prompt)
    assert sent.decision == Decision()
    assert as_bytes(sent.prompt[:length]) == as_bytes(before.prompt)


@BOUNDED
@given(script=st.one_of(sound_scripts(), broken_scripts()), at=st.integers(1, 8))
def test_any_conversation_goes_on_as_it_was(script: Script, at: int) -> None:
    with fresh_host() as host, pytest.MonkeyPatch.context() as patch:
        for number, step in enumerate(script):
            if number == at:
                other_words(patch)
                other_numbers(patch)
                host.restart(**OTHER_SETTINGS)
            take(host, step)
            host.call()
