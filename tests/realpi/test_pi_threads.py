"""A session of forty calls on a server that keeps the conversation and binds all reasoning."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from foredeck_bench.twin.prompts import normalized
from foredeck_bench.twin.report import TwinReport
from foredeck_bench.twin.script import Reply, Step, Text, Thinking, ToolCall, call
from foredeck_bench.twin.server import RecordedRequest
from harness import EAGER, Pi
from observed import calls_of, messages, stored, wait_for_request

LATE_AT = 10

LOOKS_ON = """
import { appendFileSync } from "node:fs";

export default function (pi) {
  let ended = 0;
  pi.registerTool({
    name: "late",
    label: "late",
    description: "A tool that comes in mid-session.",
    parameters: { type: "object", properties: {} },
    execute: async () => ({ content: [{ type: "text", text: "late result" }], details: {} }),
  });
  const others = () => pi.getActiveTools().filter((name) => name !== "late");
  pi.on("session_start", () => pi.setActiveTools(others()));
  pi.on("turn_end", () => {
    if ((ended += 1) === %d) pi.setActiveTools([...others(), "late"]);
  });
  pi.on("before_provider_request", ({ payload }) => {
    appendFileSync(%s, JSON.stringify(payload) + "\\n");
  });
}
"""
"""Keeps what Pi is about to send, and brings a tool at the tenth call."""


def step(number: int, tool: ToolCall | None = None) -> Step:
    """Reasoning, and a command with a long output or another call."""
    command = f"seq {number}000 {number}400"
    return [Thinking(f"thought {number}"), tool or call("bash", command=command)]


def turn(first: int, count: int, special: dict[int, ToolCall] | None = None) -> list[Step]:
    """A turn of so many calls and the answer that ends it."""
    numbers = range(first, first + count)
    tools = special or {}
    return [
        *(step(number, tools.get(number)) for number in numbers),
        [Thinking("all seen"), Text(f"turn {first} is done")],
    ]


def is_continued(before: RecordedRequest, after: RecordedRequest) -> bool:
    """Whether a request goes on from the one before and its answer, byte for byte."""
    start = [*messages(before), normalized({"role": "assistant", "content": before.reply})]
    same = all(
        before.request.body.get(name) == after.request.body.get(name)
        for name in ("system", "tools")
    )
    return before.complete and same and messages(after)[: len(start)] == start


def test_forty_calls_lose_reasoning_only_where_it_is_said(pi: Pi, tmp_path: Path) -> None:
    payloads = tmp_path / "payloads.jsonl"
    script = call("codemode", code="return await tools.bash({ command: 'seq 300' });")
    late = Reply((Text("never seen"),), delay_s=120)
    model = pi.serve(
        [
            *turn(1, 13, {6: script, 12: call("late")}),
            *turn(14, 7),
            late,
            *turn(21, 7),
            *turn(28, 3),
            *turn(31, 4),
        ]
    )
    rpc = pi.rpc(
        foredeck=True,
        extensions=[LOOKS_ON % (LATE_AT, json.dumps(str(payloads)))],
        arguments=["--tools", "+codemode", "--thinking", "low"],
        environment=EAGER,
    )
    rpc.prompt("first")
    rpc.send("set_thinking_level", level="high")
    rpc.prompt("second")
    stopped = len(model.requests)
    rpc.send("prompt", message="stop at once")
    wait_for_request(model, stopped + 1)
    rpc.abort()
    rpc.send("set_thinking_level", level="medium")
    rpc.prompt("third")
    off = len(model.requests)
    asked: list[str] = []

    def agree(dialog: dict[str, Any]) -> dict[str, Any]:
        asked.append(json.dumps(dialog))
        return {"confirmed": True}

    rpc.dialogs = agree
    rpc.command("/foredeck off")
    rpc.prompt("fourth")
    on = len(model.requests)
    rpc.command("/foredeck on")
    rpc.prompt("fifth")
    rpc.shutdown()

    requests = model.requests
    assert len(requests) == 40
    sent: list[dict[str, Any]] = [json.loads(line) for line in payloads.read_text().splitlines()]
    for payload, recorded in zip(sent, requests, strict=True):
        assert normalized(payload["messages"]) == messages(recorded), "rebuilt as Pi has it"
        assert payload["system"] == recorded.request.body["system"]
        assert payload["tools"] == recorded.request.body["tools"]
    assert "late" not in requests[LATE_AT - 1].request.tools
    assert "late" in requests[LATE_AT].request.tools

    efforts = [message.get("output_config") for message in requests[-1].request.messages]
    assert [{"effort": level} in efforts for level in ("low", "high", "medium")] == [True] * 3

    created = {n for n, each in enumerate(requests) if (each.thread or {})["type"] == "create"}
    broken = {n for n in range(1, 40) if not is_continued(requests[n - 1], requests[n])}
    assert created == {0, *broken}
    with stored(pi) as store:
        records = calls_of(store)
    rebases = [record for record in records if record.decision.is_rebase]
    assert 0 < len(broken - {stopped + 1, off, on}) <= len(rebases)

    dropped = {n for n, each in enumerate(requests) if each.dropped}
    assert all(n >= off for n in dropped)
    assert off in dropped
    assert "reasoning" in asked[0], "said before it happens"
    report = TwinReport.of(model)
    assert report.threads == {"create": len(created), "continue": 40 - len(created)}
    assert report.reported >= report.dropped > 0
