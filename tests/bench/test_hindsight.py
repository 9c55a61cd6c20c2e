"""The least that a session could have cost, and the simple rules that it is set beside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foredeck.context.rebase import Prices
from foredeck_agents.histories.pi import load_transcript
from foredeck_agents.histories.records import Transcript
from foredeck_bench.judging.judge import Rule, SessionFacts
from foredeck_bench.judging.yardsticks import (
    MASK,
    NEVER,
    Stay,
    cheapest,
    head_cost,
    hindsight_cost,
    masked_prompts,
    stays_of,
)
from replay.recordings import SOURCE, Recording, call, text

PRICES = Prices(0.1, 1.25)


@st.composite
def sessions(draw: st.DrawFn) -> tuple[list[Stay], list[bool]]:
    """What stands in the prompts of a few calls, and which of these find nothing cached."""
    cold = [True, *draw(st.lists(st.booleans(), max_size=5))]
    stays = [
        Stay(draw(st.integers(1, 50)), at, draw(st.sampled_from([at + 1, at + 2, at + 4, NEVER])))
        for at in sorted(draw(st.lists(st.integers(0, len(cold) - 1), min_size=1, max_size=8)))
    ]
    return stays, cold


def cost_of(stays: Sequence[Stay], cold: Sequence[bool], cleared: set[int]) -> float:
    """What the calls cost if the prompt is cleared at these and where nothing is cached."""
    total, prompt = 0.0, list[Stay]()
    for number, is_cold in enumerate(cold):
        new = [stay for stay in stays if stay.came == number]
        sent, prompt = prompt, [*prompt, *new]
        if is_cold or number in cleared:
            prompt = [stay for stay in prompt if stay.gone > number]
        common = 0
        while common < min(len(sent), len(prompt)) and sent[common] is prompt[common]:
            common += 1
        read = 0.0 if is_cold else 10 + sum(stay.tokens for stay in prompt[:common])
        whole = 10 + sum(stay.tokens for stay in prompt)
        total += PRICES.read * read + PRICES.write * (whole - read)
    return total


@given(sessions())
def test_no_way_to_clear_a_session_costs_less(session: tuple[list[Stay], list[bool]]) -> None:
    stays, cold = session
    calls = range(1, len(cold))
    ways = [set(way) for count in range(len(cold)) for way in combinations(calls, count)]
    least = min(cost_of(stays, cold, way) for way in ways)
    assert cheapest(stays, cold, 10, PRICES) == pytest.approx(least)


def recorded(tmp_path: Path) -> Transcript:
    recording = Recording()
    recording.user("Fix it.")
    for number in range(12):
        recording.run(f"c{number}", "read", f"part {number}\n{SOURCE}", path=f"f{number}.ts")
    recording.assistant(
        {"type": "thinking", "thinking": "Hm.", "thinkingSignature": "sealed"},
        call("e", "edit", path="f3.ts", edits=[{"oldText": "part 3\n", "newText": "x"}]),
        stop="toolUse",
        model="claude-x",
    )
    recording.result("e", "edit", text("done"))
    recording.assistant(text("Done."))
    return load_transcript(recording.write(tmp_path / "one.jsonl"))


def test_a_message_stays_until_the_last_edit_of_its_text(tmp_path: Path) -> None:
    transcript = recorded(tmp_path)
    facts = SessionFacts.of(transcript)
    results = [stay for stay in stays_of(transcript, facts) if stay.tokens > 500]
    assert [stay.gone - stay.came for stay in results] == [1, 1, 1, 9, *([1] * 8)]
    assert 0 < hindsight_cost(transcript, facts, Rule()) < 20_000


def test_the_system_prompt_and_tools_cost_the_same_whatever_folds(tmp_path: Path) -> None:
    transcript = recorded(tmp_path)
    facts = SessionFacts.of(transcript)
    facts = replace(facts, calibration=replace(facts.calibration, head_tokens=1000))
    # Nothing is cached at the first of 14 calls, nor where the model changes and changes back.
    assert head_cost(transcript, facts, Rule()) == pytest.approx(1000 * (3 * 1.25 + 11 * 0.1))


def test_all_but_the_newest_results_are_masked(tmp_path: Path) -> None:
    transcript = recorded(tmp_path)
    prompts = list(masked_prompts(transcript))
    shown = [[m for m in prompt if m["role"] == "toolResult"] for prompt in prompts]
    assert [sum(MASK in str(m["content"]) for m in results) for results in shown[-3:]] == [1, 2, 3]
    assert all(MASK not in str(m["content"]) for m in shown[-1][3:])
    assert [len(prompt) for prompt in prompts] == [c.seen for c in transcript.calls]
