"""Long texts of earlier turns lose their middle, and can be had again word for word."""

from __future__ import annotations

from typing import Any

import pytest

from context.conftest import NewHost
from context.driver import Host
from context.messages import lines
from context.scenes import ask, bash, finish, go_on
from context.sent import last

PLAN = "Plan:\n" + lines(200, "step") + "\nThat is all."
LOG = "What is wrong here?\n" + lines(900, "logged") + "\nLook at it."
EAGER: dict[str, Any] = {
    "policy": "adaptive",
    "adaptive": {"patience": 2, "fold_answers": True},
    "rebase": {"carrying_factor": 0, "guard": 10},
}


def talk(host: Host, turns: int = 3) -> None:
    """A pasted log, a long answer, and some turns that use neither."""
    ask(host, LOG)
    finish(host, PLAN)
    for number in range(turns):
        ask(host, f"Something else, {number}.")
        bash(host, f"c{number}")
        finish(host)


def test_question_and_answer_keep_beginning_and_end(new_host: NewHost) -> None:
    host = new_host(**EAGER)
    talk(host)
    sent = ask(host, "And now?")
    for index, whole in ((0, LOG), (1, PLAN)):
        told = sent.text(index)
        assert len(told) < len(whole) / 2
        assert told[:200] == whole[:200]
        assert told[-200:] == whole[-200:]
        assert "chars folded>" in told
    assert last(sent) == "And now?"


@pytest.mark.parametrize("messages", [False, True])
@pytest.mark.parametrize("answers", [False, True])
def test_each_can_be_switched_off(new_host: NewHost, messages: bool, answers: bool) -> None:
    told = {"patience": 2, "fold_answers": answers}
    host = new_host(**{**EAGER, "adaptive": told, "pastes": {"objects": messages}})
    talk(host)
    sent = ask(host, "And now?")
    assert (sent.text(0) == LOG, sent.text(1) == PLAN) == (not messages, not answers)


def test_what_only_the_answer_names_can_still_be_read(new_host: NewHost) -> None:
    found = "The culprit is stale_cache in load_orders; see load_orders and src/half_open.py."
    told = PLAN.replace("step 100:", f"{found}\nstep 100:")
    assert told != PLAN
    host = new_host(**EAGER).begin("What is wrong with load_orders?")
    finish(host, told)
    for number in range(3):
        ask(host, f"Something else, {number}.")
        finish(host)
    sent = ask(host, "And now?")
    middle = sent.text(1).split("chars folded>\n")[1]
    # What the question says as well is not said again.
    assert middle.startswith("names: stale_cache src/half_open.py\n")
    host.restart(**EAGER)
    assert go_on(host, "And then?").text(1) == sent.text(1)
