"""The price list: models by the names that agents record, at the time of a call."""

import subprocess
import sys

import pytest

from foredeck import prices as module
from foredeck.prices import Cost, dollars, prices, prices_paid

OPUS = {"input": 5.0, "output": 25.0, "cacheRead": 0.5, "cacheWrite": 6.25, "tiers": []}


def listed(model: str, provider: str = "", time_ms: int = 0) -> Cost:
    cost = prices(model, provider, time_ms)
    assert cost is not None
    return cost


@pytest.mark.parametrize(
    ("model", "provider"),
    [
        ("claude-opus-4-5-20251101", "anthropic"),
        ("claude-opus-4-5@20251101", "google-vertex"),
        ("claude-opus-4-5", "opencode"),
        ("claude-opus-4.5", "github-copilot"),
        ("anthropic/claude-opus-4.5", "openrouter"),
        ("anthropic/claude-opus-4-5-20251101", ""),
        ("openrouter/anthropic/claude-opus-4.5", ""),
        ("us.anthropic.claude-opus-4-5-20251101-v1:0", ""),
    ],
)
def test_a_model_has_its_price_by_every_name(model: str, provider: str) -> None:
    assert listed(model, provider) == OPUS


def test_an_id_that_is_too_long_is_no_models() -> None:
    assert prices("router/" * 20 + "claude-opus-4-5") is not None
    assert prices("router/" * 100_000 + "claude-opus-4-5") is None


def test_where_a_model_was_called_decides() -> None:
    id = "us.anthropic.claude-opus-4-5-20251101-v1:0"
    assert listed(id, "amazon-bedrock")["input"] == 5.5


def test_prices_are_those_of_the_time() -> None:
    times = (1_735_700_000_000, 0, -1, 10**30)
    assert [listed("o3", "openai", ms)["input"] for ms in times] == [10, 2, 2, 2]


@pytest.mark.parametrize("model", ["gpt-6.2-sol", "openai/gpt-6.2-sol-2026-11-02"])
def test_longer_prompts_and_models_that_the_list_lacks(model: str) -> None:
    # 6.1 is on the list, 6.2 not yet; both cost the same.
    assert (
        listed(model, "openai-codex")
        == listed("gpt-6.1-sol")
        == {
            **{"input": 2, "output": 10, "cacheRead": 0.1, "cacheWrite": 2.5},
            "tiers": [
                {
                    **{"inputTokensAbove": 272_000, "input": 4, "output": 15},
                    **{"cacheRead": 0.2, "cacheWrite": 5},
                }
            ],
        }
    )
    usage = {"input": 200_000, "output": 100, "cacheRead": 100_000, "cacheWrite": 0}
    assert dollars(listed(model), usage) == pytest.approx(0.8 + 0.0015 + 0.02)


def test_the_list_wins_over_our_own_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_UNLISTED", {"claude-opus-4-5": ((0, 1, 1, 1, 1),)})
    assert listed("claude-opus-4-5", "somewhere") == OPUS


def test_what_no_list_has_is_unknown_or_as_it_was_recorded() -> None:
    assert prices("scripted-1", "scripted") is None
    assert prices("", "") is None
    usage = {"input": 100, "cacheRead": 1000, "cost": {"input": 0.0003, "cacheRead": 0.0001}}
    answer = {"role": "assistant", "provider": "own", "model": "m", "usage": usage}
    free = {**answer, "model": "free", "usage": {"input": 1, "cost": {"input": 0}}}
    summed = {**answer, "model": "summed", "usage": {"input": 1, "cost": {"input": 0, "total": 1}}}
    paid = prices_paid([answer, {"role": "user"}, answer, free, summed])
    assert paid == {
        "own/m": {"input": pytest.approx(3), "cacheRead": pytest.approx(0.1)},
        "own/free": {},
    }


def test_the_list_is_read_where_a_price_is_asked_for() -> None:
    code = (
        "import sys, foredeck.prices, foredeck_lab.replay_command\n"
        "assert 'genai_prices' not in sys.modules\n"
        "foredeck.prices.prices('claude-opus-4-5')\n"
        "assert 'genai_prices' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
