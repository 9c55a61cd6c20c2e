"""Which result answers which call, in lists with holes."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from foredeck.model.messages import MessageKind, are_answered, exchange_of, newest_answer


@dataclass(frozen=True)
class Call:
    id: str


@dataclass(frozen=True)
class Message:
    kind: MessageKind
    calls: list[Call] = field(default_factory=list)
    call_id: str = ""
    unsent: bool = False


def chat(shorthand: str) -> list[Message]:
    """`u`ser, `c`ontext, `o`paque, `r1`: a result of call 1; `a12`: an answer that makes two calls,
    `v1`: an aborted one."""
    kinds: dict[str, MessageKind] = {"u": "user", "c": "context", "o": "opaque"}
    found = []
    for letter, *ids in shorthand.split():
        if letter == "r":
            found.append(Message("result", call_id=ids[0]))
        elif letter in kinds:
            found.append(Message(kinds[letter]))
        else:
            found.append(Message("assistant", [Call(id) for id in ids], unsent=letter == "v"))
    return found


@pytest.mark.parametrize(
    ("messages", "answered"),
    [
        ("u a", "yy"),
        ("u a12 r1 r2 a", "ynnyy"),
        ("a1 r1 r1", "nyy"),  # answered twice
        ("r9 a1 r9 r1", "ynny"),  # results without a call
        ("v1 a", "yy"),  # an aborted answer waits for nothing
        ("a1 o c r1", "nnny"),
        ("a1 u", "ny"),  # interrupted
    ],
)
def test_every_call_has_its_result_or_is_given_up(messages: str, answered: str) -> None:
    assert "".join("y" if each else "n" for each in are_answered(chat(messages))) == answered


def test_the_newest_answer_may_be_one_that_was_aborted() -> None:
    messages = chat("u a1 r1 v2 u")
    assert newest_answer(messages, 5) == 3
    assert newest_answer(messages, 5, sent=True) == 1
    assert newest_answer(messages, 1) == -1


@pytest.mark.parametrize(
    ("messages", "index", "group"),
    [
        ("u a12 r1 r2 a", 2, [1, 2, 3]),
        ("u a12 r1 r2 a", 3, [1, 2, 3]),
        ("a1 r1 r1 u", 2, [0, 1, 2]),
        ("a12 r1 o r2", 1, [0, 1, 3]),  # no model sees what is between
        ("u a12 r1 r2", 1, []),
        ("u a1 r9", 2, []),  # of another call
        ("u r1", 1, []),
        ("a1 r1 a2 r1", 3, []),  # its call was in the answer before
        ("a1 u r1", 2, []),  # no longer sent: the question was in between
    ],
)
def test_the_exchange_of_a_result(messages: str, index: int, group: list[int]) -> None:
    assert exchange_of(chat(messages), index) == group
