"""A long answer over OpenAI's Responses wire, where Pi keeps the id of the output item with it."""

from __future__ import annotations

from typing import Any

from foredeck_bench.twin.server import RecordedRequest
from harness import Pi

LONG = "The plan: " + " ".join(f"step {number} of it," for number in range(400)) + " and done."

HASTY = {
    "FOREDECK_ADAPTIVE__PATIENCE": "1",
    "FOREDECK_REBASE__CARRYING_FACTOR": "0",
    "FOREDECK_REBASE__GAP": "0",
    "FOREDECK_REBASE__GUARD": "10",
}


def first_answer(recorded: RecordedRequest) -> dict[str, Any]:
    """As it stands in a prompt."""
    return next(each for each in recorded.request.messages if each["role"] == "assistant")


def test_it_folds_in_later_turns_and_keeps_its_id(pi: Pi) -> None:
    model = pi.serve([LONG, *map(str, range(6))], api="openai-responses")
    turns = ["plan it", *["go on"] * 6]
    assert pi.print(*turns, foredeck=True, environment=HASTY).stdout.strip()
    before, after = (first_answer(model.requests[number]) for number in (1, -1))
    assert before["content"] == LONG
    assert "chars folded>" in after["content"]
    assert before["id"] == after["id"] == f"msg_{len(LONG)}", "the provider's own"
