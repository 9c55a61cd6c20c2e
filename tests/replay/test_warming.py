"""Pi's cache warmer in a replay: when a prompt is sent again, and what that costs each side."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from foredeck.errors import ConfigError
from foredeck.model.call_values import CachePrediction, CalledModel, PromptTokens
from foredeck.model.calls import CallRecord
from foredeck.prices import prices
from foredeck_agents.histories.recordings import load_recording
from foredeck_bench.judging.comparison import rule_of
from foredeck_bench.judging.judge import SessionFacts
from foredeck_bench.judging.yardsticks import PLAIN, judged_plain
from foredeck_lab.replay.options import ReplayOptions, replayed_model
from foredeck_lab.replay.pi import WarmedSides, Warmer
from foredeck_lab.replay.replayed_session import replayed
from replay.recordings import Recording, text

HOUR_MS = 3_600_000
TTL_MS = 300_000


def times(model: str, tokens: int, gap_ms: int = HOUR_MS * 9, *, idle: bool = True) -> list[int]:
    cost = prices(model)
    assert cost is not None
    return Warmer(cost, 300).times(tokens, 0, gap_ms, idle=idle)


@pytest.mark.parametrize(
    ("model", "least"), [("claude-opus-5-5", 96_200), ("claude-sonnet-5-5", 192_400)]
)
def test_a_prompt_is_sent_again_from_the_size_on_at_which_pi_expects_to_save(
    model: str, least: int
) -> None:
    assert not times(model, least - 500)
    assert times(model, least + 500) == [270_000 * n for n in range(1, 7)]
    assert not times("claude-haiku-5-5", 900_000)


def test_while_a_tool_runs_smaller_prompts_are_kept_for_an_hour() -> None:
    assert len(times("claude-opus-5-5", 12_000, idle=False)) == 13
    assert times("claude-opus-5-5", 12_000, 600_000, idle=False) == [270_000, 540_000]
    assert not times("claude-opus-5-5", 10_000, idle=False)


@pytest.fixture
def session(tmp_path: Path) -> Path:
    """Two calls, ten minutes apart, with a prompt of over 100,000 tokens."""
    made = Recording()
    made.user("word " * 100_000)
    made.assistant(text("Yes."), provider="anthropic", model="claude-sonnet-4-5")
    made.user("And now?", wait_ms=2 * TTL_MS)
    made.assistant(text("Still."), provider="anthropic", model="claude-sonnet-4-5")
    return made.write(tmp_path / "s.jsonl")


@pytest.mark.parametrize(
    ("model", "refreshes"), [("claude-opus-5-5", 2), ("claude-opus-4-5", 0), ("gpt-6.2-sol", 0)]
)
def test_both_sides_are_warmed_and_pay_for_it(session: Path, model: str, refreshes: int) -> None:
    named = replayed_model(model)
    options = ReplayOptions(as_model=named, ttl_s=named.ttl_s)
    transcript = load_recording(session)
    figures = []
    for warm in (False, True):
        with replayed(transcript, replace(options, warm=warm)) as done:
            figures.append(done.figure())
            if done.warmed is not None:
                sides = (done.warmed.plain, done.warmed.ours)
                assert [side.refreshes for side in sides] == [refreshes, refreshes]
    cold, warm_figure = figures
    if not refreshes:
        assert warm_figure == cold
    else:
        # Twice read to keep it, and once at the call, instead of written: 0.6 instead of 5 dollars.
        tokens = cold.plain / 2 / 5e-6
        assert warm_figure.plain == pytest.approx(tokens * (5 + 3 * 0.2) / 1e6, rel=0.01)
        assert warm_figure.ours == pytest.approx(tokens * (5 + 3 * 0.2) / 1e6, rel=0.02)


def test_each_side_is_warmed_by_its_own_size() -> None:
    cost = prices("claude-opus-5-5")
    assert cost is not None
    sides, model = WarmedSides(Warmer(cost, 300), 1.0), CalledModel("m", read=0.05, write=1.25)

    def made(time_ms: int, plain: PromptTokens, ours: int) -> CallRecord:
        cache = CachePrediction("prefix", written=ours, baseline=plain)
        return cast("CallRecord", SimpleNamespace(time_ms=time_ms, cache=cache, model=model))

    sides.before(0, idle=True)
    sides.after(made(0, PromptTokens(0, 120_000, 0), 50_000))
    assert sides.before(2 * TTL_MS, idle=True) == 0
    # The engine finds its own cache cold, and so plain Pi's.
    sides.after(made(2 * TTL_MS, PromptTokens(0, 121_000, 0), 51_000))
    refreshes, read_at_the_call = 2 * 120_000 * 0.05, 120_000 * (0.05 - 1.25)
    assert (sides.plain.refreshes, sides.ours.refreshes) == (2, 0)
    assert sides.plain.cost == pytest.approx(refreshes + read_at_the_call)
    assert sides.ours.cost == 0


def test_the_judge_charges_each_row_for_its_own_prompts(session: Path) -> None:
    model = replayed_model("claude-opus-5-5")
    transcript = ReplayOptions(as_model=model).by_model(load_recording(session))
    facts, costs = SessionFacts.of(transcript), []
    for warm in (False, True):
        rule = rule_of(ReplayOptions(as_model=model, warm=warm))
        costs.append(dict(judged_plain(transcript, facts, rule))[PLAIN].cost)
    assert costs[1] / costs[0] == pytest.approx((1.25 + 3 * 0.05) / 2.5, rel=0.01)


def test_there_is_nothing_to_warm_without_a_model() -> None:
    with pytest.raises(ConfigError, match="needs --as"):
        ReplayOptions(warm=True).warmer()
