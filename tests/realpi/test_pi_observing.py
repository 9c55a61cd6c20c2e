"""Observing through the real Pi: in the background, at a rebase, at /compact, in trouble."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from typing import Any

import pytest

from foredeck_bench.scripted.pi_rpc import RpcPi
from foredeck_bench.twin.script import Failure, ModelRequest, Reply, Step, StepResult, Text, call
from foredeck_bench.twin.server import RecordedRequest, ScriptedModel, answer_summaries
from harness import Asked, Pi, questions
from observed import OBSERVED, answered, command_text, messages, session_of, stored
from test_pi_sessions import GOTO, answer_of

NOTE = "Agent counted the rows of the queue"
BLOCK = f"<observations>\n2026-05-03\n- 09:20 medium finding: {NOTE}\n</observations>"
TALK = "a word or two more " * 100


def is_observers(request: ModelRequest) -> bool:
    """Whether a request asks for an observation, in either way."""
    return "notes of a coding session" in json.dumps(request.body)


def observed_by(answer: StepResult) -> Callable[[ModelRequest], StepResult | None]:
    """Answers observers beside the script."""

    def answered_beside(request: ModelRequest) -> StepResult | None:
        return answer if is_observers(request) else answer_summaries(request)

    return answered_beside


def work(turns: int, first: int = 0) -> list[Step]:
    """Turns with a command and an answer each."""
    steps: list[Step] = []
    for number in range(first, first + turns):
        steps += [
            [call("bash", command=f"seq {number}0000 {number}0300")],
            f"Answer {number}. {TALK}",
        ]
    return steps


def observations(pi: Pi) -> list[dict[str, Any]]:
    """Those of the only session, oldest first."""
    with stored(pi) as store:
        heads = store.query("observation", {"session": session_of(store)})
        return [{**head.fields, "content": str(head.fields["remarks"])} for head in heads]


def until(what: Callable[[], bool]) -> None:
    """Wait for what happens in the background; the test's own time is the bound."""
    while not what():
        time.sleep(0.1)


def observers(model: ScriptedModel) -> list[RecordedRequest]:
    """The requests for observations."""
    return [recorded for recorded in model.requests if is_observers(recorded.request)]


def prompts(rpc: RpcPi, turns: int, first: int = 0) -> None:
    for number in range(first, first + turns):
        rpc.prompt(f"Question {number}")


def test_chat_is_observed_while_the_agent_works_and_leaves_at_a_rebase(
    pi: Pi, asked: Asked
) -> None:
    model = pi.serve(work(6), api="openai-completions", side=observed_by(BLOCK))
    rpc = pi.rpc(*questions(3), foredeck=True, environment=OBSERVED)
    until(lambda: bool(observations(pi)))
    assert "Question 0" in answered(model)[-1].request.text
    prompts(rpc, 3, first=3)
    last = answered(model)[-1].request.text
    assert NOTE in last
    assert "Answer 0." not in last, "what it stands for has left"
    assert "Question 0" in last, "what the user said in few words stays"
    first = observations(pi)[0]
    assert (first["observed_by"], first["mode"]) == ("model", "default")
    assert "foredeck's own questions are $" in command_text(rpc, "/foredeck cost")
    assert rpc.shutdown() == 0
    with stored(pi) as store:
        session = session_of(store)
    assert "foredeck's own questions to a model: $" in asked("cost", session)


def test_where_it_costs_less_the_last_prompt_is_asked_from_the_cache(pi: Pi) -> None:
    steps: list[Step] = [f"Answer {n}. {TALK * 12}" for n in range(3)]
    model = pi.serve(steps, side=observed_by(BLOCK), kept_s=300)
    rpc = pi.rpc(*questions(2), foredeck=True, environment=OBSERVED)
    until(lambda: bool(observations(pi)))
    question = observers(model)[0]
    assert "Note what the messages hold from the user's, " in question.request.text
    # The agent's next call may go out beside it.
    earlier = model.requests[: model.requests.index(question)]
    last = next(sent for sent in reversed(earlier) if goes_on_from(question, sent))
    assert question.request.tools == last.request.tools
    assert question.request.text.startswith(last.request.text[:2000])
    assert question.usage.read > 0.8 * last.usage.prompt
    prompts(rpc, 1, first=2)


def goes_on_from(question: RecordedRequest, sent: RecordedRequest) -> bool:
    """Whether a question repeats a prompt. It may stand in the message that ends it."""
    asked, known = messages(question), messages(sent)[:-1]
    return len(asked) > len(known) and asked[: len(known)] == known


FAILURES: dict[str, StepResult] = {
    "fails": Failure(500, "api_error", "Internal server error"),
    "calls a tool": call("bash", command="rm -r ."),
}


@pytest.mark.parametrize("kind", FAILURES)
def test_an_observer_that_is_of_no_use_replaces_nothing(pi: Pi, kind: str) -> None:
    (pi.repo / "kept").touch()
    model = pi.serve(work(5), side=observed_by(FAILURES[kind]))
    rpc = pi.rpc(*questions(4), foredeck=True, environment=OBSERVED)
    until(lambda: bool(observers(model)))
    prompts(rpc, 1, first=4)
    last = answered(model)[-1].request.text
    assert "Question 0" in last
    assert "Answer 0." in last
    assert observations(pi) == []
    # Each time once more, with what could not be read: when 500, 1000, 2000 and 4000 tokens wait.
    assert len(observers(model)) <= 8, "it is not asked at every call"
    assert (pi.repo / "kept").exists()


def test_the_agent_works_on_while_the_observer_is_slow_and_ends_before_it(pi: Pi) -> None:
    model = pi.serve(work(6), side=observed_by(Reply((Text(BLOCK),), delay_s=600)))
    rpc = pi.rpc(*questions(2), foredeck=True, environment=OBSERVED)
    until(lambda: bool(observers(model)))
    prompts(rpc, 2, first=2)
    assert len(observers(model)) == 1, "never two at once"
    lines = [event.get("widgetLines") for event in rpc.events if event.get("method") == "setWidget"]
    (shown,) = [line for line in lines if line]
    assert shown[0].startswith("foredeck: noting down what was said and done, with ")
    assert rpc.shutdown() == 0
    assert observations(pi) == []
    with stored(pi) as store:
        (kept,) = store.query("asked")
        assert kept.fields["outcome"] == "cancelled"
        (lease,) = store.query("observing")
        assert lease.fields["work"] is None
    pi.rpc(foredeck=True, environment=OBSERVED, arguments=["--continue"]).prompt("Question 4")
    assert "Question 0" in answered(model)[-1].request.text


def test_the_users_compaction_has_all_of_the_chat_observed(pi: Pi) -> None:
    settings = {**OBSERVED, "FOREDECK_OBSERVING__BUFFER_TOKENS": "50000"}
    small = {"compaction": {"enabled": True, "reserveTokens": 4000, "keepRecentTokens": 500}}
    model = pi.serve(work(4), side=observed_by(BLOCK), settings=small)
    rpc = pi.rpc(*questions(3), foredeck=True, environment=settings)
    assert observers(model) == []
    rpc.compact()
    until(lambda: bool(observations(pi)))
    assert len(observers(model)) == 1
    prompts(rpc, 1, first=3)
    last = answered(model)[-1].request.text
    assert "Continue the work." in last, "the summary is the model's"
    (found,) = observations(pi)
    assert NOTE in found["remarks"][0]["content"]


def by_what_it_shows(request: ModelRequest) -> StepResult | None:
    """Notes which answers an observer is shown."""
    if not is_observers(request):
        return answer_summaries(request)
    seen = sorted(set(re.findall(r"Answer (\d)\. a word", request.text)))
    notes = "\n".join(f"- 09:20 low finding: Agent gave answer number {n}" for n in seen)
    noted = notes or "- 09:20 low finding: Agent gave no answer yet"
    return f"<observations>\n2026-05-03\n{noted}\n</observations>"


def test_a_branch_sees_what_was_noted_of_its_own_past_alone(pi: Pi) -> None:
    model = pi.serve(work(10), api="openai-completions", side=by_what_it_shows)
    rpc = pi.rpc(*questions(5), foredeck=True, extensions=[GOTO], environment=OBSERVED)
    until(lambda: "answer number 2" in noted(pi))
    rpc.command(f"/goto {answer_of(rpc.entries(), 'Answer 1.')}")
    prompts(rpc, 1, first=5)
    here = answered(model)[-1].request.text
    for kept in ("Question 0", "Question 1"):
        assert kept in here
    assert "Answer 1." in here or "answer number 1" in here
    for other in ("Question 2", "Answer 2.", "answer number 2"):
        assert other not in here
    prompts(rpc, 3, first=6)
    until(lambda: "answer number 6" in noted(pi))
    prompts(rpc, 1, first=9)
    last = answered(model)[-1].request.text
    assert "answer number 6" in last
    assert "Answer 6." not in last
    assert "answer number 2" not in last


def noted(pi: Pi) -> str:
    """What all observations of the session say."""
    return "".join(note["content"] for note in observations(pi))
