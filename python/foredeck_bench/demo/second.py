"""A second session of the demo: it finds what the first has done, and does not begin it again."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from foredeck_bench.demo.story import TESTS
from foredeck_bench.scripted import ScriptedModel, Text, ToolCall
from foredeck_bench.twin.request import ModelRequest
from foredeck_bench.twin.steps import Script

PLAN = ("Mend the price tiers", "Write a changelog entry for the tiers")
SUMMARY = "A tier begins at its own quantity: >= in best_tier of stocktake/pricing.py."
PROMPT = "Customers still complain about the price tiers. What is left to do there?"

_SHOWN_LINES = 4
_NAME = re.compile(r"\bt-[0-9a-z]+")


def plan() -> Iterator[str]:
    """What the user types before the first session: two tasks."""
    return (f"/tasks new {title}" for title in PLAN)


def conclude(notices: list[str]) -> str:
    """What the user types at its end. `notices`: what Pi has shown so far."""
    made = next(text for text in notices if PLAN[0] in text)
    return f"/tasks close {_NAME.findall(made)[0]} {SUMMARY}"


def second_script() -> Script:
    """What the scripted model does in the second session."""
    return [
        [
            ToolCall("memory-search", {"query": "price tier quantity", "limit": 2}),
            ToolCall("task-query", {"action": "list", "status": "closed"}),
        ],
        _claim_again,
        ToolCall("task-query", {"action": "ready"}),
        ToolCall("bash", {"command": f"{TESTS} --fast"}),
        ToolCall("bash", {"command": TESTS}),
        ToolCall("bash", {"command": f"{TESTS} --fast tests.test_pricing"}),
        Text("The tiers are mended already; only the changelog entry is left."),
    ]


def _claim_again(request: ModelRequest) -> ToolCall:
    """What a model without a memory would do: begin the finished task."""
    *_, listed = request.results.values()
    return ToolCall("task-mutate", {"action": "claim", "id": _NAME.findall(listed)[0]})


def told(model: ScriptedModel) -> Iterator[str]:
    """What foredeck said to the model by itself: the block before the chat, and lines of its own
    on results."""
    bodies = [recorded.request for recorded in model.requests if not recorded.side]
    before = bodies[0].body["messages"][0]["content"][0]["text"]
    yield from before.split("\n") if before.startswith("[foredeck]") else ()
    for result in bodies[-1].results.values():
        yield from (line for line in result.split("\n") if line.startswith("[foredeck] worked"))


def narrator(tell: Callable[[str], None]) -> Callable[[Mapping[str, Any]], None]:
    """Says what each tool was asked, and how its answer begins."""

    def narrate(event: Mapping[str, Any]) -> None:
        if event.get("type") == "tool_execution_start":
            arguments = event.get("args") or {}
            tell(f"    {event.get('toolName')} {' '.join(map(str, arguments.values()))}")
        elif event.get("type") == "tool_execution_end":
            for line in _text(event).split("\n")[:_SHOWN_LINES]:
                tell(f"        {line[:100]}")

    return narrate


def _text(event: Mapping[str, Any]) -> str:
    blocks = (event.get("result") or {}).get("content") or ()
    return "\n".join(str(block.get("text") or "") for block in blocks)
