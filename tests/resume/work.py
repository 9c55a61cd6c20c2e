"""Recorded sessions in which as much as possible of what is stored comes up."""

from __future__ import annotations

from typing import Any

from replay.recordings import SOURCE, Recording, call, everything, text

Work = tuple[Recording, dict[str, Any]]
"""A session, and the options of its replay (`ReplayOptions`)."""

PAUSE_MS = 400_000
"""Between turns: longer than a provider's cache lasts."""


def works() -> list[Work]:
    """What a fixture holds: each kind of message, and long work under each layout."""
    every = everything()
    every.id = "every-kind"
    return [
        (every, {}),
        (long_work("small-window", turns=6), {"window": 4000}),
        (long_work("pools", turns=3), {"window": 9000, "layout": "pools"}),
    ]


def long_work(id: str, turns: int) -> Recording:
    """Turns of reading, running and editing, so many that chat must leave a small window."""
    recording = Recording(id=id)
    for turn in range(turns):
        recording.user(f"Question {turn}. " + f"Mind {turn} things, please. " * 12, PAUSE_MS)
        _turn(recording, id, turn)
        recording.assistant(text(f"Answer {turn}. " * 150))
    return recording


def _turn(recording: Recording, id: str, turn: int) -> None:
    """A file that comes up again and again, two commands, and an edit."""
    path = f"{id}/{turn % 2}.ts"
    recording.run(f"{id}-r{turn}", "read", SOURCE.replace("1 =", f"1 = {turn // 3} +"), path=path)
    for number in range(2):
        output = "".join(f"turn {turn}, run {number}, line {n}\n" for n in range(90))
        recording.run(f"{id}-b{turn}-{number}", "bash", output, command=f"make {turn}-{number}")
    if turn == 0:
        _pin(recording, f"{id}-p{turn}", f"{id}-b0-0", 5)
    old = {"oldText": f"value{turn} = {turn}", "newText": f"value{turn} = {turn};" * 80}
    recording.assistant(call(f"{id}-e{turn}", "edit", path=path, edits=[old]), stop="toolUse")
    recording.result(f"{id}-e{turn}", "edit", text("Successfully replaced 1 block(s)."))


def _pin(recording: Recording, id: str, object: str, ordinal: int) -> None:
    """The model pins an object, as the engine told the host at the time."""
    decision = {"op": "pin", "ordinal": ordinal, "object": object, "form": "note"}
    recording.assistant({**call(id, "pin"), "arguments": {"id": f"@{ordinal}"}}, stop="toolUse")
    recording.result(id, "pin", text("Pinned."), details={"foredeck": decision})
