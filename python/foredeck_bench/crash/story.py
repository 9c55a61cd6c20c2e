"""What the scripted model does in a round with Pi, and how its requests are compared.

Each answer follows from the request alone, so that the same conversation goes on in the same way
whoever was killed before.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from foredeck_bench.scripted import ModelRequest, Text, call
from foredeck_bench.twin.prompts import normalized
from foredeck_bench.twin.steps import StepResult

WORK = "Work on the report."
GO_ON = "Go on after the interruption."
TEXT = "".join(f"line {n}: the quick brown fox jumps over the lazy dog\n" for n in range(60))

STEPS: list[StepResult] = [
    [Text("I look."), call("read", path="a.txt")],
    call("bash", command="seq 300"),
    call("edit", path="a.txt", edits=[{"oldText": "line 7:", "newText": "line seven:"}]),
    call("read", path="a.txt"),
    call("pin", id="a.txt"),
    call("bash", command="seq 400"),
    call("write", path="b.txt", content=TEXT.upper()),
    call("deactivate", id="b.txt"),
    "worked",
]
"""One answer for each number of tool results since the last word of the user."""

CALLS = len(STEPS)


def prepare(repo: Path) -> None:
    """Write the files that a round starts with."""
    (repo / "a.txt").write_text(TEXT)
    (repo / "b.txt").unlink(missing_ok=True)


def answer(request: ModelRequest) -> StepResult:
    """The scripted model's reply to a request."""
    turn: list[Any] = []
    for role, block in blocks(request):
        turn = [] if (role, block["type"]) == ("user", "text") else [*turn, block]
        if block.get("text", "").startswith(GO_ON):
            turn = [None] * CALLS
    results = sum(block is None or block["type"] == "tool_result" for block in turn)
    step: StepResult = STEPS[min(results, CALLS - 1)]
    return step


def blocks(request: ModelRequest) -> Iterator[tuple[str, Any]]:
    """Role and block, without cache markers, of everything in a request's messages."""
    for message in normalized(request.messages):
        for block in message["content"]:
            yield message["role"], block


def comparable(request: ModelRequest) -> list[str]:
    """One text for each block of a request: equal texts are equal bytes.

    Calls have their number in the request (`call-0`) in place of the provider's id, which differs
    between two sessions of one store.
    """
    names: dict[str, str] = {}
    found = []
    for role, block in blocks(request):
        for key in ("id", "tool_use_id"):
            if key in block:
                block[key] = names.setdefault(block[key], f"call-{len(names)}")
        found.append(json.dumps([role, block], sort_keys=True))
    return found


def is_word(text: str, word: str) -> bool:
    """Whether a text of `comparable` is a message of the user."""
    role, block = json.loads(text)
    return bool(role == "user" and block.get("text") == word)
