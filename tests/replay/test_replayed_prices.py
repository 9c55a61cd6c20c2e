"""By which prices a recording is replayed."""

from pathlib import Path
from typing import Any

import pytest

from foredeck.accounting.figure import CostFigure
from foredeck.errors import ConfigError
from foredeck.model.calls import CallRecord
from foredeck_agents.histories.recordings import load_recording
from foredeck_agents.histories.records import Transcript
from foredeck_lab.replay.options import ReplayOptions, replayed_model
from foredeck_lab.replay.replayed_session import replayed
from replay.recordings import Recording, text


def recorded(tmp_path: Path, **answer: Any) -> Transcript:
    made = Recording()
    made.user("word " * 1_000)
    made.assistant(text("Yes."), **answer)
    return load_recording(made.write(tmp_path / "s.jsonl"))


def figure(tmp_path: Path, options: ReplayOptions, **answer: Any) -> CostFigure:
    with replayed(recorded(tmp_path, **answer), options) as done:
        return done.figure()


def test_each_answer_is_priced_by_its_own_model(tmp_path: Path) -> None:
    own = ReplayOptions()
    tokens = figure(tmp_path, own, provider="own", model="m")
    assert (tokens.in_money, tokens.unpriced) == (False, {"own/m"})
    # Both write the whole prompt, one at five dollars, the other at its price of input.
    opus = figure(tmp_path, own, provider="anthropic", model="claude-opus-4-5-20251101")
    assert opus.plain == pytest.approx(tokens.plain * 5e-6)
    old = figure(tmp_path, own, provider="openai", model="gpt-5.1")
    assert old.plain == pytest.approx(tokens.plain / 1.25 * 1.25e-6)
    usage = {"input": 100, "cacheRead": 100, "cost": {"input": 0.0007, "cacheRead": 0.00007}}
    paid = figure(tmp_path, own, provider="own", model="m", usage=usage)
    assert paid.plain == pytest.approx(tokens.plain / 1.25 * 7e-6)
    free = {"provider": "ollama", "model": "gpt-oss-20b", "usage": usage | {"cost": {"input": 0}}}
    assert not figure(tmp_path, own, **free).in_money


def test_the_prices_of_another_model_are_those_that_are_named(tmp_path: Path) -> None:
    named = figure(tmp_path, ReplayOptions(prices="claude-opus-5-5"))
    model = replayed_model("anthropic/claude-opus-5-5")
    assert figure(tmp_path, ReplayOptions(as_model=model)).plain == named.plain
    both = ReplayOptions(as_model=model, prices="claude-opus-4-5")
    assert figure(tmp_path, both).plain == pytest.approx(named.plain * 5 / 4)


def test_the_model_that_is_named_is_the_one_that_is_called(tmp_path: Path) -> None:
    options = ReplayOptions(as_model=replayed_model("gpt-6.2-sol"))
    with replayed(recorded(tmp_path, provider="own", model="m"), options) as done:
        model = CallRecord(done.store.query("call", {"session": Recording.id})[0].fields).model
    assert (model.name, model.api) == ("openai/gpt-6.2-sol", "openai-responses")


@pytest.mark.parametrize(
    ("name", "provider", "cache", "ttl_s"),
    [
        ("claude-opus-4-5-20251101", "anthropic", "anthropic", 300),
        ("gpt-6.2-sol", "openai", "breakpoints", 1800),
        ("openai/gpt-5.6-sol", "openai", "breakpoints", 1800),
        ("gpt-5.1", "openai", "openai", 300),
    ],
)
def test_a_model_brings_its_cache(name: str, provider: str, cache: str, ttl_s: int) -> None:
    model = replayed_model(name)
    assert (model.provider, model.cache, model.ttl_s) == (provider, cache, ttl_s)


@pytest.mark.parametrize("name", ["claude-opus-99", "gemini-3.5-flash", "m"])
def test_what_no_price_or_cache_is_known_of_cannot_be_replayed_as(name: str) -> None:
    with pytest.raises(ConfigError, match="cannot be replayed as"):
        replayed_model(name)


def test_plain_pi_compacts_where_the_tokens_that_were_reported_near_the_window(
    tmp_path: Path,
) -> None:
    """Seven characters to a token, of which the engine's first estimate makes two tokens."""
    made = Recording()
    for number in range(1, 8):
        made.user("word " * 8_000)
        made.assistant(text("Yes."), usage={"input": number * 5_715})
    made.write(tmp_path / "s.jsonl")
    with replayed(load_recording(tmp_path / "s.jsonl"), ReplayOptions(window=60_000)) as done:
        _, last = done.by_call()[-1]
    assert last.plain == pytest.approx(1.25 * 5_715 + 0.1 * 6 * 5_715, rel=0.05)
