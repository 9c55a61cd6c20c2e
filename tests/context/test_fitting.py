"""The prompt stays inside the window, whatever stands in it; what leaves it can be had again."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from context.conftest import NewHost
from context.driver import Host
from context.invariants import CUT
from context.messages import assistant, calls, lines, result, thinking, user
from context.scenes import ask, bash, context_tool, finish, think
from context.sent import Sent, as_bytes, last
from context.strategies import Script, sound_scripts
from examples import examples
from foredeck.context.fitting import DOUBT, room
from foredeck.context.messages.items import IMAGE_CHARS, message_text
from foredeck.context.state.gauge import Gauge
from foredeck.model.call_values import CHARS_PER_TOKEN

WINDOW = 10_000


def small(new_host: NewHost, window: int = WINDOW) -> Host:
    host = new_host()
    host.set_window(window)
    return host


def talk(host: Host, turns: int, chars: int = 3000) -> Sent:
    """Turns of nothing but words, which no folding makes shorter."""
    for number in range(turns):
        sent = ask(host, f"Question {number}. " + f"why{number} " * (chars // 5))
        finish(host, f"Answer {number}. TODO: part {number} remains.")
    return sent


def assert_fits(host: Host, sent: Sent) -> None:
    """The prompt as it went out leaves room for an answer in the window of the model."""
    images, tokens = Gauge(api=host.model["api"]).images(host.state.chat.branch.plan)
    chars = sent.stats.chars_sent - images * IMAGE_CHARS
    taken = chars / CHARS_PER_TOKEN + tokens
    plan = host.state.chat.branch.plan
    parts = [(op.form, chars) for op, chars in zip(plan.ops, plan.chars, strict=True)]
    assert taken <= room(host.model["contextWindow"]) + 1, (taken, sent.decision, parts)


def summary(sent: Sent) -> str:
    return sent.text(0)


def test_chat_that_does_not_fit_is_put_away(new_host: NewHost) -> None:
    host = small(new_host)
    sent = talk(host, 14)
    window = [s for s in host.past.sent if s.decision.reason == "window"]
    assert window
    assert_fits(host, sent)
    assert "] Turns 1-" in summary(sent)
    assert last(sent).startswith("Question 13.")


@pytest.mark.parametrize("layout", ["anchored", "pools"])
def test_what_the_model_never_saw_is_not_summed_up(new_host: NewHost, layout: str) -> None:
    host = new_host(layout=layout)
    host.set_window(2500)
    hidden = {"role": "bashExecution", "command": "env", "output": "x", "excludeFromContext": True}
    host.add(hidden, user("A long question. " + "why " * 4000))
    sent = host.call()
    assert sent.decision.reason == "window"
    assert not sent.decision.compaction
    assert CUT in sent.text(1)


def test_a_result_in_flight_larger_than_the_window_is_cut(new_host: NewHost) -> None:
    host = small(new_host)
    ask(host, "Look at it.")
    sent = bash(host, "big", lines(5000))
    out = last(sent)
    assert_fits(host, sent)
    assert "line 0:" in out
    assert "line 4999:" in out
    shown = context_tool(host, "t", "activate", "@3 chars 90001-90200")
    assert lines(5000)[90_000:90_200] in last(shown)


def test_the_question_stays_while_its_turn_outgrows_the_window(new_host: NewHost) -> None:
    host = small(new_host)
    ask(host, "The one question.")
    for number in range(60):
        words = f"thought {number} " * 80
        host.add(
            assistant(words, calls(f"c{number}", "bash", command="x")),
            result(f"c{number}", "bash", "ok"),
        )
        sent = host.call()
        assert_fits(host, sent)
        assert any(message_text(m) == "The one question." for m in sent.prompt)
        assert sent.prompt[-1]["toolCallId"] == f"c{number}"


def test_sealed_reasoning_of_the_turn_is_bound_no_more(new_host: NewHost) -> None:
    host = small(new_host)
    ask(host, "The one question.")
    for number in range(60):
        words = f"thought {number} " * 80
        host.add(
            assistant(
                thinking("sealed", "c2VhbA=="), words, calls(f"c{number}", "bash", command="x")
            ),
            result(f"c{number}", "bash", "ok"),
        )
        sent = host.call()
        assert sent.stats.chars_sent / CHARS_PER_TOKEN <= DOUBT * WINDOW  # then it is cut
        if sent.decision.reason == "window":
            assert sent.prompt[-1]["role"] == "user"
            assert "c2VhbA==" not in as_bytes(sent.prompt)
            break
    else:
        pytest.fail("the window was never full")
    ended = sent.prompt
    for restarts in (False, True):
        if restarts:
            host.restart()
        sent = think(host, f"n{restarts}", output="ok")
        assert as_bytes(sent.prompt[: len(ended)]) == as_bytes(ended)


WINDOWS = st.sampled_from([2_000, 8_000, 32_000, 200_000, 1_000_000])


@given(script=sound_scripts(), windows=st.lists(WINDOWS, min_size=1, max_size=4))
@settings(max_examples=examples(60), deadline=None)
def test_every_prompt_fits_whatever_was_said_and_whichever_model(
    script: Script, windows: list[int]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        host = Host(Path(folder))
        try:
            for number, step in enumerate(script):
                window = windows[number % len(windows)]
                host.model = {**(host.model or {}), "id": f"m{window}", "contextWindow": window}
                host.add(*(step.messages or [user("Well?")]))
                assert_fits(host, host.call())
        finally:
            host.close()
