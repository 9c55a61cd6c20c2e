"""A small session, made by a replay, for the commands that read stored sessions."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from foredeck_lab.replay.options import ReplayOptions
from foredeck_lab.replay_command import replay
from replay.recordings import write_session

SESSION = "0199cccc-0000-7000-8000-000000000001"
START_MS = 1_770_000_000_000
FIRST = "one\ntwo\nthree\n" + "filler\n" * 60
SECOND = FIRST.replace("two", "2")


def text(value: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": value}]


def call(id: str, tool: str, **arguments: Any) -> dict[str, Any]:
    block = {"type": "toolCall", "id": id, "name": tool, "arguments": arguments}
    return {"role": "assistant", "content": [block], "stopReason": "toolUse"}


def result(id: str, tool: str, value: str, failed: bool = False) -> dict[str, Any]:
    return {
        "role": "toolResult",
        "toolCallId": id,
        "toolName": tool,
        "content": text(value),
        "isError": failed,
    }


MESSAGES: list[dict[str, Any]] = [
    {"role": "user", "content": "Read it, \ud83d please."},
    call("toolu_a", "read", path="src/a.txt"),
    result("toolu_a", "read", FIRST),
    call("toolu_b", "write", path="src/a.txt", content=SECOND),
    result("toolu_b", "write", f"Successfully wrote {len(SECOND)} bytes to src/a.txt"),
    call("toolu_c", "bash", command="make test"),
    result("toolu_c", "bash", "1 failed \x1b[31mred\x1b[0m", failed=True),
    call("toolu_d", "bash", command="rm src/a.txt"),
    result("toolu_d", "bash", ""),
    {"role": "assistant", "content": text("Done."), "stopReason": "stop"},
]


def make_home(
    folder: Path, session: str = SESSION, start_ms: int = START_MS, calls: str = "toolu_"
) -> Path:
    """A state folder whose store holds the session; returns it. `calls` begins all call ids."""
    messages = json.loads(json.dumps(MESSAGES).replace("toolu_", calls))
    recorded = write_session(folder / f"{session}.jsonl", *messages, id=session, start_ms=start_ms)
    done = replay([recorded], ReplayOptions(prices="claude-opus-4-5"), keep=folder / "kept")
    assert done["total"]["errors"] == 0, done
    return folder / "kept" / session


def copy_home(source: Path, target: Path) -> Path:
    """A copy that may be changed."""
    shutil.copytree(source, target)
    return target
