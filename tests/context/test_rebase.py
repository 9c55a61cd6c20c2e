"""When sent bytes may change: cold, another model, another history, high water."""

from __future__ import annotations

from typing import Any

import pytest

from context.conftest import NewHost
from context.driver import Host
from context.messages import assistant, calls, lines, result, thinking
from context.scenes import ask, finish, go_on, later, outputs, think, use
from context.sent import Sent
from context.test_window import folded
from foredeck.model.call_values import CHARS_PER_TOKEN, Decision


def six_outputs(host: Host) -> Sent:
    """A turn whose first output the window no longer holds."""
    ask(host)
    return outputs(host, 6)


def test_the_cache_is_warm_for_as_long_as_the_models_record_says(host: Host) -> None:
    host.model = {**(host.model or {}), "promptCache": {"short": 3600}}
    six_outputs(host)
    assert later(host, seconds=3000).decision == Decision()
    assert later(host, seconds=3700).decision.reason == "cold"


def test_a_configured_expiry_counts_before_the_models(new_host: NewHost) -> None:
    host = new_host(rebase={"cache_ttl_s": 10})
    host.model = {**(host.model or {}), "promptCache": {"short": 3600}}
    six_outputs(host)
    assert later(host, seconds=12).decision.reason == "cold"


def test_a_model_that_is_not_named_is_no_other_model(host: Host) -> None:
    six_outputs(host)
    host.model = None
    assert go_on(host).decision == Decision()


def test_a_replaced_history_is_a_free_moment(host: Host) -> None:
    six_outputs(host)
    finish(host)
    host.compact("What was done.", keep=13)
    sent = ask(host)
    assert sent.decision == Decision("rebase", "history", 2)
    assert folded(sent) == [2]


def test_a_saving_below_the_configured_one_is_left_alone(new_host: NewHost) -> None:
    host = new_host(rebase={"min_saving_tokens": 500})
    six_outputs(host)
    assert later(host).decision == Decision()


# Signed reasoning


def test_nothing_changes_before_signed_reasoning_of_the_turn_under_way(host: Host) -> None:
    six_outputs(host)
    host.wait(600)
    assert think(host, "s1").decision == Decision()


def sealed(sent: Sent) -> list[int]:
    """The messages whose reasoning goes out."""
    return [
        index
        for index, part in enumerate(sent.parts)
        if any(b.get("type") == "thinking" for m in part for b in blocks_of(m))
    ]


def blocks_of(message: dict[str, Any]) -> list[dict[str, Any]]:
    return [b for b in message.get("content") or () if isinstance(b, dict)]


@pytest.mark.parametrize(
    "reasoning",
    [
        [thinking("hm", "c2VhbA==")],
        [thinking("", "ZW5j", redacted=True)],
        [thinking("", "c2VhbA==")],
        [thinking("long " * 400, "c2VhbA=="), thinking("hm", "c2VhbB==")],
    ],
    ids=["short", "redacted", "empty", "one of two to be folded"],
)
def test_reasoning_bound_to_what_changes_goes_and_what_stands_before_it_stays(
    host: Host, reasoning: list[dict[str, Any]]
) -> None:
    """All of it: a provider that compares what stands before it refuses it in any turn."""
    host.restart(adaptive={"fold_runs_after": 0})
    ask(host)
    host.add(assistant(*reasoning, calls("s0", "bash", command="s0")), result("s0", "bash", "ok"))
    host.call()
    outputs(host, 6)
    host.add(assistant(*reasoning, calls("s1", "bash", command="s1")), result("s1", "bash", "ok"))
    assert sealed(host.call()) == [1, 15]
    sent = later(host)
    assert sent.decision == Decision("rebase", "cold", 4)
    assert sealed(sent) == [1]
    host.restart()
    assert sealed(go_on(host)) == [1]


# High and low water


def big(host: Host, id: str, size: int = 4000) -> Sent:
    return use(host, id, "bash", lines(size // 40, id), command=id)


def watered(new_host: NewHost) -> Host:
    """A window of 40,000 characters: high water at 34,000, low at 24,000."""
    host = new_host(digests={"max_tokens": 150})
    host.set_window(int(40_000 / CHARS_PER_TOKEN))
    return host


def test_above_the_high_mark_the_least_recently_used_goes_down_to_the_low_mark(
    new_host: NewHost,
) -> None:
    host = watered(new_host)
    ask(host)
    sent = [big(host, f"c{number}", 8000) for number in range(5)][-1]
    assert sent.decision == Decision("rebase", "high-water", 2)
    assert folded(sent) == [2, 4]
    assert sent.stats.chars_sent <= 24_000


def test_the_marks_are_apart_so_that_it_does_not_flap(new_host: NewHost) -> None:
    host = watered(new_host)
    ask(host)
    kinds = [big(host, f"c{number}").decision.kind for number in range(16)]
    first = kinds.index("rebase")
    assert kinds[first + 1 : first + 3] == ["append", "append"]
    assert kinds.count("rebase") >= 2


def test_an_unknown_window_has_no_marks(host: Host) -> None:
    host.model = None
    ask(host)
    sent = [big(host, f"c{number}", 40_000) for number in range(5)][-1]
    assert sent.decision == Decision()


def test_at_high_water_little_that_may_go_is_not_taken_bit_by_bit(new_host: NewHost) -> None:
    host = watered(new_host)
    ask(host)
    big(host, "c0", 22_000)
    think(host, "s")
    sent = [big(host, f"c{number}", 2000) for number in range(1, 20)]
    reasons = [s.decision.reason for s in sent]
    assert reasons.index("window") == 15, "c0 may not go, and the others are small"
    assert {*reasons} == {None, "window"}
