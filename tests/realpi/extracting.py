"""A scripted extractor beside the agent's script, and what came of its answers."""

from __future__ import annotations

import time
from collections.abc import Callable

from foredeck.memory.judging import SYSTEM
from foredeck.store.protocol import Head
from foredeck_bench.twin.script import ModelRequest, StepResult
from foredeck_bench.twin.server import answer_summaries
from harness import PATIENCE_S, Pi
from observed import stored

ASKED = {"FOREDECK_ASKING__SINGLE_SLOT": "true", "FOREDECK_ASKING__SHARE": "10"}
"""The scripted model is on loopback, and its sessions cost next to nothing."""

Extractor = Callable[[ModelRequest], str]


def extractor(answer: Extractor) -> Callable[[ModelRequest], StepResult | None]:
    """Answers what is asked beside the script: what is worth remembering, and summaries."""

    def beside(request: ModelRequest) -> StepResult | None:
        return answer(request) if request.system == SYSTEM else answer_summaries(request)

    return beside


def material(request: ModelRequest) -> str:
    """What the extractor was given to read."""
    content = request.newest["content"]
    if isinstance(content, str):
        return content
    return "\n".join(block["text"] for block in content)


def read_out(pi: Pi, times: int = 1) -> list[Head]:
    """Wait until so many answers were taken in; what was recorded of them."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        with stored(pi) as store:
            if len(found := store.query("extraction")) >= times:
                return found
        time.sleep(0.1)
    raise AssertionError(f"not read out {times} times")


def entries(pi: Pi) -> list[tuple[str, str, str]]:
    """Place, state and text of every entry of memory."""
    with stored(pi) as store:
        fields = [head.fields for head in store.query("memory")]
    return [(each["place"], each["state"], each["fact"]) for each in fields]
