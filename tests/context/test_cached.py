"""What the provider's cache is taken to hold: by rule, by use, and against a simulated one."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from context.conftest import NewHost
from context.driver import Host
from context.messages import assistant, calls, lines, result
from context.restored import check_restored
from context.scenes import ask, bash, finish, go_on, outputs
from context.sent import Sent
from foredeck.accounting.cache import IdealCache, MarkedCache, PromptMaker, Shapes
from foredeck.context.provider_cache import HEAD, NOTHING, CacheReach, rule_of
from foredeck.hosts.pi import to_model
from foredeck.model.call_values import CHARS_PER_TOKEN, Decision
from foredeck.model.calls import CallRecord

SYSTEM = [{"role": "system", "content": "Be a coding agent. " * 300}]


def record(kept: int, new: int, at: int, **more: Any) -> CallRecord:
    keys = [[None, "x"]] * new
    return CallRecord(
        {"shared": kept, "keys": keys, "changed_from": kept, "time_ms": at, "cache": {}, **more}
    )


def test_without_markers_only_the_end_of_an_earlier_request_is_found() -> None:
    reach = CacheReach("breakpoints", 40, True, (10, 20, 40), nearest=15)
    assert (reach.hit(40), reach.hit(39)) == (40, 20)
    assert reach.hit(15) == NOTHING, "not even the system prompt"


def test_one_more_marker_stands_where_it_is_needed() -> None:
    reach = CacheReach("markers", 40, True, (10, 20, 40), 30, frozenset({10, 20, 40}))
    assert reach.mark(20, None, rebased=False) == 20, "not found without it"
    assert reach.mark(40, None, rebased=True) == 40
    assert reach.mark(40, 25, rebased=False) == 20, "before what goes soon"
    assert reach.mark(40, None, rebased=False) is None
    assert reach.mark(40, 5, rebased=False) is None
    thread = replace(reach, threads=True)
    assert thread.mark(20, None, rebased=False) == 20, "the whole prompt is sent for it"
    assert thread.mark(40, 25, rebased=True) == 40, "it is sent anyway"
    assert thread.mark(40, 25, rebased=False) is None, "it would be sent for nothing"


def test_rules_and_lifetimes_come_from_the_model_record() -> None:
    assert rule_of("anthropic-messages", "anthropic", "m") == "markers"
    assert rule_of("openai-completions", "openrouter", "anthropic/m") == "markers"
    assert rule_of("openai-responses", "openai", "m") == "prefix"
    flags = {"supportsExplicitPromptCacheMode": True}
    newer = to_model({"api": "openai-responses", "compat": flags})
    assert newer.cache == "breakpoints"
    record = {"api": "openai-responses", "promptCache": {"short": 600, "long": 1800}}
    assert [_lifetime(record, r) for r in (None, "long")] == [600, 1800]
    assert _lifetime({"api": "anthropic-messages"}, "long") == 3600
    assert _lifetime({"api": "openai-responses"}, "long") == 86_400
    assert _lifetime({"api": "other"}, "long") is None
    newest = {"api": "openai-codex-responses", "id": "gpt-6.2-sol"}
    assert [_lifetime(newest, r) for r in (None, "long")] == [1800, 86_400]
    assert _lifetime({**newest, "api": "azure-openai-responses"}, None) == 43_200
    assert _lifetime({**newest, "id": "gpt-5.5"}, None) is None
    none = to_model({"api": "anthropic-messages", "retention": "none"})
    assert not none.prices.cached


def _lifetime(record: dict[str, Any], retention: str | None) -> float | None:
    model = to_model({**record, "retention": retention})
    return model.cache_ttl_s


def many(host: Host, first: int, count: int) -> Sent:
    """One answer that asks for several commands at once, and the next call."""
    ids = [f"p{first + n}" for n in range(count)]
    host.add(assistant(*(calls(id, "bash", command=f"run {id}") for id in ids)))
    for id in ids:
        host.add(result(id, "bash", lines(20, f"output of {id}")))
    return host.call()


def played(host: Host, seed: int, models: Sequence[str] = ("m",)) -> list[Sent]:
    """A session of commands, alone and in parallel, with questions, pauses and restarts; each
    question goes to one of the models."""
    host.system = SYSTEM
    draw = random.Random(seed)
    sent = [ask(host)]
    for number in range(25):
        step = draw.random()
        if step < 0.2:
            finish(host)
            host.wait(draw.choice([1, 200, 290, 400]))
            host.model = {**(host.model or {}), "id": draw.choice(models)}
            sent.append(ask(host))
        elif step < 0.35:
            sent.append(many(host, 100 * number, draw.choice([5, 21])))
        else:
            sent.append(bash(host, f"c{number}", lines(draw.randint(5, 80), f"out {number}")))
        if step > 0.95:
            host.restart()
    return sent


@pytest.mark.parametrize("models", [("m",), ("m", "m2")])
@pytest.mark.parametrize("rule", ["markers", "prefix"])
@pytest.mark.parametrize("policy", ["seed-window", "adaptive", "keep-all"])
@pytest.mark.parametrize("seed", range(2))
def test_the_prediction_is_what_the_rule_gives(
    new_host: NewHost, rule: str, policy: str, seed: int, models: tuple[str, ...]
) -> None:
    settings = {"rebase": {"cache": rule}, "policy": policy, "adaptive": {"patience": 3}}
    host = new_host(**settings, seed_window={"per_turn": 4})
    cache = MarkedCache(300) if rule == "markers" else IdealCache(300)
    shapes, prompts = Shapes(), PromptMaker(CHARS_PER_TOKEN)
    for sent in played(host, seed, models):
        told = sent.record.cache
        shown = shapes.of(sent.prompt)
        head = (sent.stats.chars_sent - sum(s.chars for s in shown)) / CHARS_PER_TOKEN
        mark = sent.messages[told.marked - 1]["toolCallId"] if told.marked else ""
        prompt = prompts.make(sent.record.model.name, shown, head, mark)
        hit = cache.request(prompt, sent.record.time_ms)
        assert told.read == pytest.approx(hit.read, abs=2)
        assert told.written == pytest.approx(hit.written, abs=2)


@pytest.mark.parametrize("rule", ["markers", "prefix", "breakpoints"])
def test_what_went_out_without_foredeck_is_cached_too(new_host: NewHost, rule: str) -> None:
    host = new_host(rebase={"cache": rule})
    host.system = SYSTEM
    ask(host)
    outputs(host, 5)
    host.off()
    finish(host)
    host.off()
    told = go_on(host).record.cache
    assert told.hit == len(host.messages) - 2, "all that the call before had sent"
    assert told.written is not None
    assert told.written < 50


def test_what_the_look_back_misses_anyway_is_rewritten_for_nothing(new_host: NewHost) -> None:
    host = new_host(policy="seed-window", seed_window={"per_turn": 4})
    host.system = SYSTEM
    host.model = {**host.model, "api": "bedrock-converse-stream"}
    ask(host)
    outputs(host, 6)
    decision = many(host, 0, 25).decision
    assert (decision.reason, decision.rewrite_cost) == ("look-back", 0)


def test_without_a_cache_folding_is_free(new_host: NewHost) -> None:
    host = new_host(policy="seed-window", seed_window={"per_turn": 2})
    host.model = {**host.model, "cost": {"input": 1, "cacheRead": 0, "cacheWrite": 0}}
    ask(host)
    sent = [bash(host, f"c{number}") for number in range(5)]
    assert [s.decision.kind for s in sent[:2]] == ["append"] * 2
    assert {s.decision.reason for s in sent[2:]} == {"no-cache"}
    told = sent[-1].record.cache
    assert (told.rule, told.hit, told.read, told.written) == ("none", NOTHING, 0, 0)


def test_a_warming_request_puts_the_expiry_off(host: Host) -> None:
    ask(host)
    outputs(host, 6)
    finish(host)
    host.wait(250)
    host.warmed_ms = host.now_ms
    host.wait(200)
    sent = ask(host)
    assert sent.decision == Decision()
    assert sent.record.cache.warmed_ms == host.warmed_ms
    assert sent.record.cache.hit > HEAD


def test_what_was_warmed_before_a_switch_of_model_is_warm_after_a_restart_too(host: Host) -> None:
    ask(host)
    finish(host)
    host.wait(250)
    host.warmed_ms = host.now_ms
    host.model = {**(host.model or {}), "id": "m2"}
    ask(host)
    _, ends = host.state.chat.branch.cache_entries.others["anthropic/m1"]
    assert ends == {1: host.warmed_ms}
    check_restored(host)


def test_what_was_reported_stands_in_the_next_record(host: Host) -> None:
    one = ask(host)
    usage = {"input": 5, "cacheRead": 700, "cacheWrite": 200, "output": 9}
    host.add({**assistant("Yes."), "usage": usage, "provider": "anthropic", "model": "m1"})
    two = ask(host)
    assert two.record.cache.reported == (one.call, 700, 200, 5, None)
    assert one.record.cache.reported is None


def test_missing_prices_are_reported_once(host: Host) -> None:
    for _ in range(2):
        ask(host)
        finish(host)
    # Where its users set prices only a host knows, and this one does not say.
    assert host.read == [
        "No prices are known of anthropic/m1: a token read from its cache counts 0.1, a written "
        "one 1.25 of an input token."
    ]
    host.model = {**host.model, "cost": {"input": 3, "cacheRead": 0.3, "cacheWrite": 3.75}}
    ask(host)
    host.model = {**host.model, "id": "m2"}
    go_on(host)
    assert len(host.read) == 1
