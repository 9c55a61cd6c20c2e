"""Reasoning that a provider drops, since another has changed what stands before it."""

from __future__ import annotations

import pytest

from foredeck.model.calls import LostSum
from foredeck_bench.twin.script import Api, Step, Text, Thinking, call
from harness import Pi
from observed import answered, calls_of, command_text, notified, stored

WIRES: tuple[Api, ...] = ("anthropic-messages", "openai-responses")

REDACTS = """
export default function (pi) {
  let asked = 0;
  pi.on("before_provider_request", ({ payload }) => {
    if ((asked += 1) < 4) return;
    const [first] = (payload.messages ?? payload.input).filter(({ role }) => role === "user");
    first.content[0].text = "(redacted)";
  });
}
"""
"""From the fourth request on the user's first message is another."""


@pytest.mark.parametrize("api", WIRES)
def test_what_the_provider_drops_is_counted_once(pi: Pi, api: Api) -> None:
    steps: list[Step] = [
        [Thinking(f"thought {number}"), call("bash", command=f"seq {number}")]
        for number in range(5)
    ]
    model = pi.serve([*steps, [Thinking("all seen"), Text("done")], "again"], api=api)
    rpc = pi.rpc("work", foredeck=True, extensions=[REDACTS], arguments=["--thinking", "low"])
    rpc.prompt("more")
    told = command_text(rpc, "/foredeck cost")
    dropped = [len(each.dropped) for each in answered(model)]
    assert dropped[:3] == [0, 0, 0]
    assert dropped[3] == 3, "all reasoning before the change"
    assert sum(dropped) > 3, "it is reported with each later answer"
    with stored(pi) as store:
        sums = [record.lost.sum for record in calls_of(store)]
    total = LostSum()
    for each in sums:
        total = total.plus(each)
    assert (total.blocks, total.dropped) == (0, 3)
    assert "3 blocks of reasoning" in told
    assert "dropped by the provider" in told
    lesson = "drops reasoning behind bytes that have changed"
    assert sum(lesson in text for text in notified(rpc)) == 1
    rpc.send("new_session")
    rpc.prompt("another session")
    assert sum(lesson in text for text in notified(rpc)) == 1
    with stored(pi) as store:
        (lessons,) = store.query("reasoning")
    assert lessons.fields["every_turn"]
