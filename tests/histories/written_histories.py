"""Small histories in the formats of the agents, written here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from foredeck.context.state.stored_chat import render_chat
from foredeck.store.store import Store

SESSION = "5e551011-0000-4000-8000-000000000001"
START = "2026-02-03T10:00:{:02d}.000Z"
START_MS = 1_770_112_800_000

Line = dict[str, Any]


def write_lines(path: Path, lines: list[Line]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


class ClaudeCode:
    """Lines as Claude Code writes them, one after the other."""

    def __init__(self, session: str = SESSION, cwd: str = "/repo", **common: Any) -> None:
        self.lines: list[Line] = []
        self._common = {"sessionId": session, "cwd": cwd, "isSidechain": False, **common}

    def line(self, type: str, **fields: Any) -> Line:
        number = len(self.lines)
        common = {"uuid": f"u{number}", "parentUuid": f"u{number - 1}" if number else None}
        stamp = {"timestamp": START.format(number % 60)}
        self.lines.append({"type": type, **self._common, **common, **stamp, **fields})
        return self.lines[-1]

    def user(self, text: str, **fields: Any) -> None:
        self.line("user", message={"role": "user", "content": text}, **fields)

    def answer(self, id: str, *blocks: Line, **fields: Any) -> None:
        """One line for each block, as Claude Code has it."""
        for block in blocks:
            message = {"id": id, "role": "assistant", "model": "claude-x", "content": [block]}
            self.line("assistant", message={**message, **fields})

    def result(self, call: str, content: Any, *, failed: bool = False, **fields: Any) -> None:
        block = {"type": "tool_result", "tool_use_id": call, "content": content}
        block |= {"is_error": True} if failed else {}
        self.line("user", message={"role": "user", "content": [block]}, **fields)


def said(text: str) -> Line:
    return {"type": "text", "text": text}


def thought(text: str) -> Line:
    return {"type": "thinking", "thinking": text, "signature": "c2lnbmVk"}


def use(id: str, tool: str, **arguments: Any) -> Line:
    return {"type": "tool_use", "id": id, "name": tool, "input": arguments}


def claude_code_session(session: str = SESSION, calls: str = "toolu_") -> ClaudeCode:
    """A question, two calls answered while the answer goes on, an edit, a last word.

    `calls` begins all call ids.
    """
    history = ClaudeCode(session)
    history.line("summary", leafUuid="u9", summary="Counting")
    history.user("How many lines has src/a.py?")
    history.answer(
        "msg_1",
        thought("Count them, and look."),
        said("Let me count."),
        use(f"{calls}a", "Bash", command="wc -l src/a.py"),
    )
    history.result(f"{calls}a", "3 src/a.py\n")
    history.answer("msg_1", use(f"{calls}b", "Read", file_path="/repo/src/a.py"))
    history.result(f"{calls}b", [said("1\tone\n2\ttwo\n3\tthree")])
    history.user("Change two to 2.")
    history.answer(
        "msg_2",
        use(f"{calls}c", "Edit", file_path="/repo/src/a.py", old_string="two", new_string="2"),
        stop_reason="tool_use",
        usage={"input_tokens": 5, "cache_read_input_tokens": 900, "output_tokens": 40},
    )
    history.result(f"{calls}c", "String to replace not found", failed=True)
    history.line("system", subtype="turn_duration", durationMs=5)
    history.answer("msg_3", said("It is not there."), stop_reason="end_turn")
    return history


def state_of(store: Store, session: str = SESSION) -> dict[str, Any]:
    """What a store has of a session, without what tells when and in how many steps it came."""
    turns = store.query("turn", {"session": session})
    calls = store.query("toolcall", {"chat_ref": f"chat:{session}"})
    head = store.head(f"session:{session}")
    ingested = {k: v for k, v in head.fields["ingested"].items() if k not in ("file", "complete")}
    hashes = ("content_hash", "text_hash")
    return {
        "turns": {h.id: {**h.fields, "content_hash": None, "provenance": None} for h in turns},
        "calls": {h.id: [h.fields[name] for name in hashes] for h in calls},
        "chat": render_chat(store, session, len(turns)),
        "ingested": ingested,
    }
