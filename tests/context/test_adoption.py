"""What the user is told of a history that came about without us."""

from __future__ import annotations

import pytest

from context.driver import Host
from context.messages import assistant, calls, result, user
from context.scenes import ask, bash
from foredeck.context.calls.recording import adoption_report, damage_report
from foredeck.context.messages.shape import Message, to_item

HEAD = "foredeck has taken in "


@pytest.mark.parametrize(
    ("messages", "told"),
    [
        ([user("a"), assistant("b")], "2 messages and 0 tool results from before it was on."),
        (
            [user("a"), assistant(calls("c", "bash")), result("c", "bash", "x")],
            "3 messages and 1 tool result from before it was on. "
            "Of files it knows what they hold now, not what they held then.",
        ),
        (
            [user("a"), assistant(calls("c", "bash"))],
            "2 messages and 0 tool results from before it was on. "
            "1 tool call had no result in the session file.",
        ),
        (
            [user("a"), result("c", "bash", "x"), {"role": "odd"}],
            "3 messages and 1 tool result from before it was on. "
            "Of files it knows what they hold now, not what they held then. "
            "1 result had no tool call there, and cannot be sent. "
            "1 message of other kinds went by as they are.",
        ),
    ],
)
def test_the_report_of_a_history(messages: list[Message], told: str) -> None:
    items = [to_item(message, None, {}) for message in [*messages, user("now")]]
    assert adoption_report(items) == HEAD + told


@pytest.mark.parametrize(
    ("count", "told"),
    [
        (1, "1 line of the session file was cut off or damaged: what it held is lost."),
        (2, "2 lines of the session file were cut off or damaged: what they held is lost."),
    ],
)
def test_the_report_of_a_damaged_file(count: int, told: str) -> None:
    assert damage_report(count) == told


@pytest.mark.parametrize(("answers", "parts"), [(1010, [0, 1000, 2000]), (10, [])])
def test_the_progress_of_a_long_history_is_shown(
    host: Host, answers: int, parts: list[int]
) -> None:
    told = list[str]()
    host.state.inbox.notify = told.append
    for number in range(answers):
        host.add(assistant(f"{number}."), user(f"{number}?"))
    host.call()
    ask(host)
    total = f"{2 * answers - 2:,}"
    head = "foredeck takes in what was said before: "
    assert told == [f"{head}{done:,} of {total}" for done in parts]


def test_a_long_turn_is_no_history(host: Host) -> None:
    told = list[str]()
    host.state.inbox.notify = told.append
    ask(host)
    for number in range(510):
        host.add(assistant(calls(f"c{number}", "bash")), result(f"c{number}", "bash", "ok"))
    host.call()
    bash(host, "last")
    assert told == []
