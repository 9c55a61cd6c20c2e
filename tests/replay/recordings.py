"""Small recorded sessions, in every format that Pi has written."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

START_MS = 1_770_000_000_000
PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJg"
    "gg=="
)
SOURCE = "".join(f"export const value{n} = {n}; // line {n}\n" for n in range(1, 80))


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def call(id: str, tool: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "toolCall", "id": id, "name": tool, "arguments": arguments}


def write_session(
    path: Path, *messages: dict[str, Any], id: str, cwd: str = "/repo", start_ms: int = START_MS
) -> Path:
    """A session file of these messages, a second apart where they have no time of their own."""
    lines: list[dict[str, Any]] = [{"type": "session", "id": id, "cwd": cwd}]
    for number, message in enumerate(messages):
        stamp = {"timestamp": start_ms + number * 1000}
        lines.append({"type": "message", "message": {**stamp, **message}})
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@dataclass
class Recording:
    """Builds the lines of a session file, one entry after the other."""

    id: str = "0199bbbb-0000-7000-8000-000000000001"
    with_ids: bool = True
    entries: list[dict[str, Any]] = field(default_factory=list)
    time_ms: int = START_MS
    leaf: str | None = None

    def add(self, type: str, **fields: Any) -> str:
        """Append an entry under the newest one; returns its id."""
        id = f"{len(self.entries) + 1:08x}"
        entry = {"type": type, "timestamp": _iso(self.time_ms), **fields}
        if self.with_ids:
            entry |= {"id": id, "parentId": self.leaf}
        self.entries.append(entry)
        self.leaf = id
        return id

    def message(self, role: str, wait_ms: int = 1000, **fields: Any) -> str:
        self.time_ms += wait_ms
        return self.add("message", message={"role": role, "timestamp": self.time_ms, **fields})

    def user(self, value: Any, wait_ms: int = 1000) -> str:
        return self.message("user", wait_ms, content=value)

    def assistant(self, *blocks: Any, stop: str = "stop", **fields: Any) -> str:
        return self.message(
            "assistant",
            content=list(blocks),
            **{
                "api": "anthropic-messages",
                "provider": "anthropic",
                "model": "m",
                "usage": {"input": 10, "output": 5, "cacheRead": 0, "cacheWrite": 0},
                "stopReason": stop,
                **fields,
            },
        )

    def result(self, id: str, tool: str, *blocks: Any, failed: bool = False, **more: Any) -> str:
        return self.message(
            "toolResult", toolCallId=id, toolName=tool, content=list(blocks), isError=failed, **more
        )

    def run(self, id: str, tool: str, output: str, **arguments: Any) -> None:
        """A call and its result."""
        self.assistant(call(id, tool, **arguments), stop="toolUse")
        self.result(id, tool, text(output))

    def branch(self, leaf: str) -> None:
        """Go on from an earlier entry, as `/tree` does."""
        self.leaf = leaf

    def lines(self) -> list[str]:
        header: dict[str, Any] = {
            "type": "session",
            "id": self.id,
            "timestamp": _iso(START_MS),
            "cwd": "/repo",
        }
        if self.with_ids:
            header["version"] = 3
        return [json.dumps(entry) for entry in [header, *self.entries]]

    def write(self, path: Path) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(self.lines()) + "\n")
        return path


def _iso(time_ms: int) -> str:
    seconds, rest = divmod(time_ms, 1000)
    minutes, second = divmod(seconds - START_MS // 1000, 60)
    return f"2026-02-02T{minutes // 60:02d}:{minutes % 60:02d}:{second:02d}.{rest:03d}Z"


def everything(with_ids: bool = True) -> Recording:
    """One of each kind of message, re-reads, a cold cache, and work on several branches."""
    recording = Recording(with_ids=with_ids)
    recording.user("Look at \ud83d the source, please.")
    recording.assistant(
        {"type": "thinking", "thinking": "Let me see.", "thinkingSignature": "sealed=="},
        text("Reading."),
        call("t1", "read", path="src/a.ts"),
        call("t2", "bash", command="ls -la"),
        stop="toolUse",
    )
    recording.result("t1", "read", text(SOURCE))
    fork = recording.result("t2", "bash", text("total 3\n" * 60))
    if with_ids:
        recording.run("side", "bash", "only on the branch that was left\n" * 30, command="date")
        recording.assistant(text("A dead end."))
        recording.branch(fork)
    recording.assistant(
        call("t3", "edit", path="src/a.ts", edits=[{"oldText": "value1 =", "newText": "one ="}]),
        stop="toolUse",
    )
    recording.result(
        "t3", "edit", text("Successfully replaced 1 block(s) in src/a.ts."), details={"diff": "x"}
    )
    recording.run("t4", "read", SOURCE.replace("value1 =", "one ="), path="src/a.ts")
    recording.assistant(call("t5", "read", path="picture.png"), stop="toolUse")
    recording.result(
        "t5",
        "read",
        text("Read image file [image/png]"),
        {"type": "image", "data": PNG * 20, "mimeType": "image/png"},
    )
    recording.assistant(text("Half an ans"), stop="aborted", errorMessage="aborted")
    recording.add(
        "custom_message", customType="note", content="A note of another extension.", display=True
    )
    recording.user([text("Go on."), {"type": "image", "data": PNG, "mimeType": "image/png"}])
    recording.message(
        "bashExecution",
        command="git status",
        output="clean\n" * 40,
        exitCode=0,
        cancelled=False,
        truncated=False,
    )
    for number in range(8):
        recording.run(f"u{number}", "bash", f"output {number}\n" * 50, command=f"make {number}")
    recording.assistant(call("lost", "bash", command="sleep"), stop="toolUse")
    recording.user("Never mind; again.", wait_ms=3_600_000)
    for number in range(8):
        recording.run(f"v{number}", "grep", f"hit {number}: \ud83d\n" * 40, pattern=f"p{number}")
    recording.run("t1", "bash", "an id that was used before\n" * 20, command="again")
    recording.assistant(text("Done."))
    return recording
