"""What is pinned stays in full where the chat around it is put away, or the model is told."""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from context.conftest import NewHost
from context.driver import Host
from context.messages import lines
from context.scenes import ask, bash, context_tool, finish
from context.sent import Sent, as_bytes
from examples import examples

WINDOW = 10_000
OUT_OF_VIEW = "Pinned, but out of view:"


@pytest.fixture
def host(new_host: NewHost) -> Host:
    host = new_host()
    host.set_window(WINDOW)
    return host


def talk(host: Host, turns: int, chars: int = 3000) -> Sent:
    """Turns of nothing but words, which no folding makes shorter."""
    for number in range(turns):
        sent = ask(host, f"Question {number}. " + f"why{number} " * (chars // 5))
        finish(host, f"Answer {number}.")
    return sent


def put_away(host: Host) -> int:
    """How often chat was put away so far."""
    return sum(sent.decision.reason == "window" for sent in host.past.sent)


def whole(sent: Sent, text: str) -> bool:
    """Whether a text stands in the prompt once, and in full."""
    return as_bytes(sent.prompt).count(as_bytes([{"t": text}])[7:-3]) == 1


def test_it_stays_through_one_putting_away_after_the_other(host: Host) -> None:
    ask(host)
    handle = bash(host, "kept", lines(60, "precious")).text(2).split("\n")[0]
    context_tool(host, "p", "pin", handle)
    finish(host)
    sent = talk(host, 30)
    assert put_away(host) >= 2
    assert whole(sent, lines(60, "precious"))
    assert OUT_OF_VIEW not in sent.text(0)


def test_what_is_too_large_beside_the_work_is_named(host: Host) -> None:
    ask(host)
    handle = bash(host, "large", lines(400, "large")).text(2).split("\n")[0]
    context_tool(host, "p", "pin", handle)
    finish(host)
    sent = talk(host, 10)
    assert put_away(host)
    assert f"{OUT_OF_VIEW} {handle}." in sent.text(0)


@settings(max_examples=examples(40))
@given(sizes=st.lists(st.integers(5, 250), min_size=1, max_size=5), turns=st.integers(3, 14))
def test_every_pinned_object_is_in_view_or_named(sizes: list[int], turns: int) -> None:
    with TemporaryDirectory() as name:
        host = Host(Path(name) / "home")
        host.set_window(WINDOW)
        try:
            texts = {}
            for number, size in enumerate(sizes):
                ask(host)
                text = lines(size, f"object {number} of {size}")
                bash(host, f"c{number}", text)
                handle = f"@{host.state.objects.index.by_label[f'c{number}']}"
                context_tool(host, f"p{number}", "pin", handle)
                texts[handle] = text
                finish(host)
            sent = talk(host, turns)
            told = re.search(f"{OUT_OF_VIEW} (.*)\\.", sent.text(0))
            named = told[1].split(", ") if told else []
            for handle, text in texts.items():
                assert whole(sent, text) or handle in named, (handle, named)
        finally:
            host.close()
