"""One text in place of a run of folded calls: which calls, when, and how they come back."""

from __future__ import annotations

import re

import pytest
from hypothesis.stateful import initialize
from syrupy.assertion import SnapshotAssertion

from context.conftest import NewHost
from context.driver import Host
from context.messages import assistant, calls, lines, result
from context.scenes import ask, bash, context_tool, finish, think, use
from context.sent import Sent, as_bytes, last, message_text
from context.strategies import WINDOWS
from context.test_machine import LAYOUTS
from context.test_stand_in_machine import AnySessionWithStandIns
from context.test_stand_ins import after_pause, texts
from examples import sessions
from foredeck.model.quoting import is_run


def make(new_host: NewHost, **adaptive: object) -> Host:
    rules = {"patience": 1, "patience_arguments": 1, "fold_runs_after": 2, **adaptive}
    return new_host(policy="adaptive", adaptive=rules)


def work(host: Host, ids: str) -> Sent:
    """A command for each letter, of a turn that is finished."""
    ask(host, f"Do {ids}.")
    for id in ids:
        sent = bash(host, id)
    finish(host, f"Did {ids}.")
    return sent


def runs(sent: Sent) -> list[str]:
    return [text for text in texts(sent) if is_run(text)]


def test_calls_in_a_row_become_one_text(new_host: NewHost, snapshot: SnapshotAssertion) -> None:
    host = make(new_host)
    ask(host, "Look at it.")
    use(host, "r1", "read", lines(40, "first"), path="/repo/src/a.py")
    use(host, "r2", "read", lines(40, "second"), path="src/b.py")
    use(host, "r3", "read", lines(40, "third"), path="src/b.py", offset=80)
    failing = (
        'Traceback (most recent call last):\n  File "a.py", line 3, in <module>\nKeyError: x\n'
    )
    for number in range(2):
        host.add(assistant("I test.", calls(f"t{number}", "bash", command="npm test")))
        output = f"{lines(60, f'stock_{number}')}\n{failing}"
        host.add(result(f"t{number}", "bash", output, isError=bool(number)))
        host.call()
    work(host, "xyz")
    sent = after_pause(host)
    assert sent.decision.reason == "cold"
    assert sent.decision.call_groups == len(runs(sent)) > 0
    assert "\n---\n".join(texts(sent)) == snapshot


def test_any_of_them_comes_back_by_its_handle(new_host: NewHost) -> None:
    host = make(new_host)
    work(host, "abcdef")
    [run] = runs(after_pause(host))
    handle = next(word for word in run.split() if word.startswith("@"))
    sent = context_tool(host, "x", "activate", handle)
    assert lines(20, "output of a") in last(sent)


@pytest.mark.parametrize("after", [0, 100])
def test_it_can_be_switched_off_and_put_off(new_host: NewHost, after: int) -> None:
    host = make(new_host, fold_runs_after=after)
    work(host, "abcdef")
    assert runs(after_pause(host)) == []


@pytest.mark.parametrize(("api", "leaves"), [("openai-responses", 0), ("anthropic-messages", 1)])
def test_sealed_reasoning_stays_where_it_cannot_be_left_out(
    new_host: NewHost, api: str, leaves: int
) -> None:
    host = make(new_host)
    host.model = {**(host.model or {}), "api": api}
    ask(host)
    for id in "abcdef":
        think(host, id)
    finish(host)
    sent = after_pause(host)
    assert len(runs(sent)) == leaves


def chat(host: Host, turns: int) -> None:
    """Turns of a command each, after which the model says what it has found."""
    for number in range(1, turns + 1):
        ask(host, f"Question {number}")
        bash(host, f"c{number}")
        found = f"I found part_{number} and the rest. " * 20
        finish(host, f"{found}It is settled in src/place_{number}.py.")


def test_a_turn_long_past_leaves_its_last_words(
    new_host: NewHost, snapshot: SnapshotAssertion
) -> None:
    host = make(new_host, fold_turns_after=4)
    chat(host, 4)
    sent = after_pause(host)
    assert "\n---\n".join(texts(sent)[:4]) == snapshot
    host.restart()
    again = bash(host, "more")
    assert as_bytes(again.prompt[: len(sent.prompt)]) == as_bytes(sent.prompt)


def test_of_a_turn_long_past_the_newest_commands_are_spelled_out(new_host: NewHost) -> None:
    host = make(new_host, fold_turns_after=4)
    ask(host, "Question")
    for id in "abcde":
        bash(host, id)
    finish(host, "Settled.")
    chat(host, 4)
    heading, older, *newest = runs(after_pause(host))[0].split("\n")
    assert heading.startswith("[foredeck] Turn 1, folded: 5 calls.")
    assert re.fullmatch(r"bash @\d+ @\d+", older)
    assert [line.partition(" ")[2].split()[-1] for line in newest[:3]] == ["c", "d", "e"]


def test_it_comes_back_word_for_word(new_host: NewHost) -> None:
    host = make(new_host, fold_turns_after=4)
    chat(host, 4)
    name = runs(after_pause(host))[0].partition('activate "')[2].partition('"')[0]
    answer = message_text(host.tool("x", "activate", id=name))
    assert "I found part_1 and the rest. " * 20 in answer
    assert "Question 1" in answer
    assert "Question 2" not in answer


@pytest.mark.parametrize("off", [{"fold_turns_after": 0}, {"fold_answers": False}])
def test_what_was_said_can_stay(new_host: NewHost, off: dict[str, object]) -> None:
    host = make(new_host, **{"fold_turns_after": 4, **off})
    chat(host, 4)
    assert "I found part_1 and the rest. " * 20 in "\n".join(texts(after_pause(host)))


class AnySessionWithRuns(AnySessionWithStandIns):
    """The same with texts in place of runs of calls, as soon as they are folded."""

    @initialize(window=WINDOWS, layout=LAYOUTS)
    def begin(self, window: int, layout: str) -> None:
        """The user's first words."""
        super().begin(window, layout)
        adaptive = {"patience": 1, "patience_arguments": 1, "patience_edited": 1}
        adaptive |= {"patience_edits": 1, "fold_runs_after": 1, "fold_turns_after": 2}
        self.host.restart(policy="adaptive", adaptive=adaptive)


AnySessionWithRuns.TestCase.settings = sessions(40)
TestAnySessionWithRuns = AnySessionWithRuns.TestCase
