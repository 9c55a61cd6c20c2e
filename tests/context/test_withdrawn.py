"""What may not stand in the head any longer leaves it at the next call that may change it."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from context.conftest import NewHost
from context.driver import Host
from context.heads import Said
from context.scenes import ask, bash, finish, go_on, think
from context.sent import as_bytes, message_text
from foredeck.context.calls.own_lines import WITHDRAWN_LATER


@dataclass
class Taken(Said):
    """A section whose lines may be taken back."""

    def is_withdrawn(self, said: str) -> bool:
        """Whether a line that stands is none of those that may."""
        return any(line not in self.lines for line in said.splitlines())


@pytest.fixture
def memory() -> Taken:
    return Taken("memory", ["- tabs", "- spaces"])


@pytest.fixture
def host(new_host: NewHost, memory: Taken) -> Host:
    host = new_host()
    host.sections = [Said("notes", ["a.md"]), memory]
    return host


def test_it_leaves_at_the_next_call_and_the_user_is_told_the_price(
    host: Host, memory: Taken
) -> None:
    ask(host)
    bash(host, "c1")
    memory.lines.remove("- tabs")
    sent = bash(host, "c2")

    assert "- tabs" not in message_text(sent.prompt[0])
    assert "- spaces" in message_text(sent.prompt[0])
    assert (sent.decision.kind, sent.decision.reason, sent.decision.changed_from) == (
        *("rebase", "withdrawn"),
        0,
    )
    (price,) = [text for text in host.read if "is out of the prompt" in text]
    assert "tokens are sent anew for it" in price
    after = bash(host, "c3")
    assert as_bytes(after.prompt[:1]) == as_bytes(sent.prompt[:1])
    assert after.decision.reason != "withdrawn"


def test_the_last_line_takes_the_section_along(host: Host, memory: Taken) -> None:
    ask(host)
    memory.lines.clear()
    sent = go_on(host)
    assert "memory" not in message_text(sent.prompt[0])


def test_what_was_added_waits(host: Host, memory: Taken) -> None:
    first = ask(host)
    memory.lines.insert(0, "- new")
    sent = bash(host, "c1")
    assert as_bytes(sent.prompt[:1]) == as_bytes(first.prompt[:1])


def test_sealed_reasoning_holds_it_until_the_turn_ends(host: Host, memory: Taken) -> None:
    first = ask(host)
    for number in (1, 2):
        memory.lines[:] = ["- spaces"]
        sent = think(host, f"c{number}")
        assert as_bytes(sent.prompt[:1]) == as_bytes(first.prompt[:1])
    assert host.read.count(WITHDRAWN_LATER) == 1
    finish(host)
    assert "- tabs" not in message_text(ask(host, "And now?").prompt[0])
