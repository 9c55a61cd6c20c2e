"""Rules that hold for every conversation. Most are checked at each call by `invariants.check`."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from context.driver import Host
from context.playing import fresh_host, take
from context.sent import Sent, as_bytes
from context.strategies import WINDOWS, Script, broken_scripts, sound_scripts
from examples import examples
from foredeck.context.messages.shape import Message, to_item
from foredeck.model.documents import ToolcallDocument

BOUNDED = settings(
    max_examples=examples(60),
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
LAYOUTS = pytest.mark.parametrize("layout", ["anchored", "pools"])


def play(
    host: Host, script: Script, each: Callable[[Host, Sent], object] = lambda _h, _s: None
) -> list[Sent]:
    """One model call after each step."""
    for step in script:
        take(host, step)
        each(host, host.call())
    return list(host.past.sent)


@LAYOUTS
@BOUNDED
@given(script=broken_scripts())
def test_a_broken_list_gives_a_valid_prompt(layout: str, script: Script) -> None:
    with fresh_host(layout=layout) as host:
        play(host, script)


@pytest.mark.long
@LAYOUTS
@BOUNDED
@given(script=sound_scripts(), window=WINDOWS, restarts=st.sets(st.integers(1, 10)))
def test_an_engine_restarted_at_any_call_sends_the_same_bytes(
    layout: str, script: Script, window: int, restarts: set[int]
) -> None:
    def restart(host: Host, _: Sent) -> None:
        if len(host.past.sent) in restarts:
            host.restart()

    with fresh_host(layout=layout) as host:
        host.set_window(window)
        steady = play(host, script)
    with fresh_host(layout=layout) as host:
        host.set_window(window)
        shaken = play(host, script, restart)
    for one, other in zip(steady, shaken, strict=True):
        assert as_bytes(one.prompt) == as_bytes(other.prompt)
        assert one.decision == other.decision
        assert one.stats == other.stats


@BOUNDED
@given(script=sound_scripts())
def test_asking_again_for_the_same_list_gives_the_same_call(script: Script) -> None:
    def again(host: Host, sent: Sent) -> None:
        repeated = host.call()
        assert repeated.call == sent.call
        assert as_bytes(repeated.prompt) == as_bytes(sent.prompt)

    with fresh_host() as host:
        play(host, script, again)


@BOUNDED
@given(script=st.one_of(sound_scripts(), broken_scripts()))
def test_no_result_is_lost(script: Script) -> None:
    with fresh_host() as host:
        sent = play(host, script)
        for message in sent[-1].messages:
            if message.get("role") == "toolResult":
                assert is_stored(host, message)


def is_stored(host: Host, message: Message) -> bool:
    """Whether a tool call object holds the result's text, and its images."""
    item = to_item(message, None, {})
    images = [block for block in item.blocks if block.get("type") == "image"]
    for head in host.store.query("toolcall", {"provider_call_id": item.call_id}):
        document = host.store.get(head.id, ToolcallDocument)
        if (document.content or "") == item.text and len(document.images) == len(images):
            return True
    return False
