"""What a model would see at the last call of each recorded session, as a person can read it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from foredeck.accounting.cache import texts_of
from foredeck.context.messages.shape import Message
from foredeck_agents.histories.recordings import load_recording
from foredeck_agents.histories.records import RecordedCall
from foredeck_lab.replay.replayed_session import replayed

RECORDINGS = sorted((Path(__file__).parent.parent / "recordings").glob("*.jsonl"))

LINES, WIDTH, NEWEST = 6, 100, 30
"""How much of each message is shown, and how many messages."""


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_the_last_prompt(path: Path, snapshot: SnapshotAssertion) -> None:
    prompts: list[Sequence[Message]] = []

    def keep(_number: int, _call: RecordedCall, prompt: list[Message]) -> None:
        prompts[:] = [prompt]

    with replayed(load_recording(path), after=keep):
        pass
    assert shown(prompts[-1]) == snapshot


def shown(prompt: Sequence[Message]) -> str:
    """The beginning of each message, under its role."""
    left = prompt[-NEWEST:]
    said = [f"{len(prompt)} messages"]
    for number, message in enumerate(left, len(prompt) - len(left)):
        lines = "\n".join(texts_of(message)).split("\n")
        more = [f"  ({len(lines) - LINES} more lines)"] if len(lines) > LINES else []
        said += [
            f"--- {number} {message['role']}",
            *(f"  {line[:WIDTH]}" for line in lines[:LINES]),
        ]
        said += more
    return "\n".join(said)
