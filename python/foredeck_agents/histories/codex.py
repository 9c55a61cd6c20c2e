"""Codex's rollouts: JSON lines, one for each item of the conversation and for each event."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from foredeck.context.messages.items import Block
from foredeck.context.messages.shape import Message
from foredeck.hosts.foreign_blocks import blocks_in, read_call, read_output
from foredeck.model.messages import text_in
from foredeck.model.wrappings import is_users
from foredeck_agents.histories.lines import Line, Lines
from foredeck_agents.histories.records import (
    HistoryMessage,
    HistorySession,
    Record,
    folder,
    milliseconds,
    session_id,
    tool_call_id,
)

HARNESS = "codex"
MAX_OPEN_CALLS = 10_000
MAX_EARLY = 200
"""Lines to wait for the session's own line."""
MAX_UNPLACED = 10
"""Lines in which a session's folder is looked for."""
_FOLDER = re.compile(r"<cwd>\s*([^<\\]+?)\s*</cwd>|Current working directory: ([^\\\"]+)")
_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def is_codex(value: dict[str, Any]) -> bool:
    """Whether a line is one that only Codex writes, in any of its forms."""
    if "payload" in value:
        return value.get("type") in ("session_meta", "response_item")
    if "type" not in value:
        return "record_type" in value or _is_bare_header(value) or _is_whole(value)
    return value["type"] in ("function_call", "function_call_output") and "call_id" in value


def _is_bare_header(value: dict[str, Any]) -> bool:
    return {"id", "timestamp", "instructions"} <= value.keys() and "type" not in value


def _is_whole(value: dict[str, Any]) -> bool:
    return isinstance(value.get("session"), dict) and isinstance(value.get("items"), list)


def read_codex(lines: Lines) -> Iterator[Record]:
    """The one session of a rollout and its messages."""
    reader = _CodexReader(lines)
    for line in lines:
        for each in _as_today(line):
            yield from reader.take(each)
    yield from reader.finish()


def _as_today(line: Line) -> Iterator[Line]:
    """Lines as Codex writes them today, of one in an earlier form."""
    value = line.value
    if "payload" in value:
        yield line
    elif _is_whole(value):
        yield _wrapped(line, "session_meta", value["session"])
        for item in value["items"]:
            yield _wrapped(line, "response_item", item)
    elif _is_bare_header(value):
        yield _wrapped(line, "session_meta", value)
    elif "record_type" in value:
        yield _wrapped(line, str(value["record_type"]), value)
    else:
        yield _wrapped(line, "response_item", value)


def _wrapped(line: Line, kind: str, payload: Any) -> Line:
    stamp = payload.get("timestamp") if isinstance(payload, dict) else None
    stamp = line.value.get("timestamp") if stamp is None else stamp
    return line._replace(value={"type": kind, "payload": payload, "timestamp": stamp})


class _CodexReader:
    def __init__(self, lines: Lines) -> None:
        self._lines = lines
        self._tally = lines.tally
        self._session: str | None = None
        self._root: str | None = None
        """The session that the file begins with; a fork's repeats its origin."""
        self._early: list[Line] = []
        self._begun: HistorySession | None = None
        """The session by its own line; in 2025 later lines said where it worked."""
        self._began: Any = None
        """When it began: lines of 2025 have no time."""
        self._has_begun = False
        self._model = ""
        self._provider = "openai"
        self._answers = 0
        """Finished answers, which name the parts of the next one."""
        self._group: str | None = None
        """The name of the newest answer's parts."""
        self._tools: dict[str, str] = {}
        self._items: dict[str, str] = {}

    def take(self, line: Line) -> Iterator[Record]:
        """What one line brings."""
        kind, payload = line.value.get("type"), line.value.get("payload")
        if not isinstance(payload, dict):
            self._tally.lose("without a payload", line.place.line)
        elif kind == "session_meta":
            yield from self._start(line, payload)
        elif self._session is None:
            self._early.append(line)
            match = _FOLDER.search(json.dumps(payload.get("content"), ensure_ascii=False))
            if self._begun is not None and match is not None:
                self._begun = replace(self._begun, cwd=folder(match[1] or match[2]))
            is_known = self._begun is not None and (match or len(self._early) >= MAX_UNPLACED)
            if is_known or len(self._early) >= MAX_EARLY:
                yield from self.finish()
        elif kind == "turn_context":
            self._model = str(payload.get("model") or "")
        else:
            message = self._message(line, kind, payload, self._session)
            if message is None:
                self._tally.other[f"{kind} {payload.get('type') or ''}".rstrip()] += 1
                return
            # An answer is what the model wrote between two results or messages.
            is_part = message["role"] == "assistant"
            if not is_part:
                self._answers += 1
            elif kind == "response_item":
                self._group = str(self._answers)
            group = self._group if is_part else None
            entry = payload.get("id") if isinstance(payload.get("id"), str) else None
            self._root = self._root or self._session
            self._has_begun = True
            yield HistoryMessage(
                self._session, line.place, line.size, message, entry, group, root=self._root
            )

    def finish(self) -> Iterator[Record]:
        """The session of a file without its own line."""
        if self._begun is not None and self._session is None:
            yield from self._begin(self._begun)
        elif self._session is None and self._early:
            match = _ID.search(self._lines.name)
            id = match[0] if match else f"codex-{self._early[0].place.check:08x}"
            yield from self._begin(HistorySession(id, HARNESS))

    def _start(self, line: Line, payload: dict[str, Any]) -> Iterator[Record]:
        """The session; a fork repeats its origin's line."""
        own = session_id(payload.get("id"))
        if self._begun is not None:
            if not self._has_begun:
                self._root = own
            return
        if own is None:
            self._tally.lose("without a session or a message", line.place.line)
            return
        self._root = session_id(payload.get("forked_from_id"))
        self._provider = str(payload.get("model_provider") or "openai")
        self._began = line.value.get("timestamp")
        self._begun = HistorySession(
            own,
            HARNESS,
            folder(payload.get("cwd")),
            parent=session_id(payload.get("forked_from_id")),
            started_by=_started_by(payload),
        )
        if self._begun.cwd or "instructions" not in payload:
            yield from self._begin(self._begun)

    def _begin(self, session: HistorySession) -> Iterator[Record]:
        self._session = session.id
        yield session
        early, self._early = self._early, []
        for line in early:
            yield from self.take(line)

    def _message(
        self, line: Line, kind: Any, payload: dict[str, Any], session: str
    ) -> Message | None:
        """What an item says, None where it says nothing."""
        stamp = line.value.get("timestamp")
        time_ms = milliseconds(self._began if stamp is None else stamp)
        if kind == "compacted":
            summary = str(payload.get("message") or "")
            return {"role": "compactionSummary", "summary": summary, "timestamp": time_ms}
        if kind != "response_item":
            # Events repeat the items, for the screen; but one has what an answer has used, once
            # its tools have run.
            usage = read_usage(payload) if self._group is not None else None
            return None if usage is None else {**self._answer([], time_ms), "usage": usage}
        name = str(payload.get("type") or "")
        if name == "message":
            return self._said(payload, time_ms)
        if name == "reasoning":
            thought = _texts(payload.get("summary")) or _texts(payload.get("content"))
            if not thought:
                return None
            return self._answer([{"type": "thinking", "thinking": thought}], time_ms)
        if name.endswith("_call_output"):
            return self._result(line, payload, time_ms, session)
        if name.endswith("_call"):
            return self._answer([self._call(line, payload, session)], time_ms)
        return None

    def _said(self, payload: dict[str, Any], time_ms: int) -> Message:
        blocks = blocks_in(payload.get("content"))
        role = payload.get("role")
        if role == "assistant":
            return self._answer(blocks, time_ms)
        if role == "user" and is_users(blocks):
            return {"role": "user", "content": blocks, "timestamp": time_ms}
        origin = "context" if role == "user" else role
        return {
            "role": "custom",
            "customType": f"{HARNESS}:{origin}",
            "content": blocks,
            "display": False,
            "timestamp": time_ms,
        }

    def _answer(self, blocks: list[Block], time_ms: int) -> Message:
        return {
            "role": "assistant",
            "content": blocks,
            "provider": self._provider,
            "model": self._model,
            "api": "openai-responses",
            "timestamp": time_ms,
        }

    def _call(self, line: Line, payload: dict[str, Any], session: str) -> Block:
        call = read_call(payload)
        id = tool_call_id(payload.get("call_id") or payload.get("id"), session, line.place)
        if isinstance(item := payload.get("id"), str) and len(self._items) < MAX_OPEN_CALLS:
            self._items[item] = id
        # Bounded: calls that were interrupted never get a result.
        if len(self._tools) < MAX_OPEN_CALLS:
            self._tools[id] = call["name"]
        return {**call, "id": id}

    def _result(self, line: Line, payload: dict[str, Any], time_ms: int, session: str) -> Message:
        # Of a local shell it is the call's item that an output names.
        item = str(payload.get("id"))
        call_id = payload.get("call_id") or self._items.pop(item, None) or payload.get("id")
        id = tool_call_id(call_id, session, line.place)
        blocks, failed = read_output(payload.get("output"))
        return {
            "role": "toolResult",
            "toolCallId": id,
            "toolName": self._tools.pop(id, ""),
            "content": blocks,
            "isError": failed,
            "timestamp": time_ms,
        }


def _started_by(payload: dict[str, Any]) -> str | None:
    source = payload.get("source")
    subagent = source.get("subagent") if isinstance(source, dict) else None
    spawn = subagent.get("thread_spawn") if isinstance(subagent, dict) else None
    nested = spawn.get("parent_thread_id") if isinstance(spawn, dict) else None
    return session_id(payload.get("parent_thread_id")) or session_id(nested)


def read_usage(event: dict[str, Any]) -> dict[str, int] | None:
    """The tokens of one answer, as Pi counts them, if the event reports any."""
    info = event.get("info") if event.get("type") == "token_count" else None
    used = info.get("last_token_usage") if isinstance(info, dict) else None
    if not isinstance(used, dict):
        return None
    names = ("input_tokens", "cached_input_tokens", "output_tokens")
    counts = [n if type(n := used.get(name)) is int and n >= 0 else 0 for name in names]
    read = min(counts[:2])
    return {"input": counts[0] - read, "cacheRead": read, "cacheWrite": 0, "output": counts[2]}


def _texts(parts: Any) -> str:
    return text_in(blocks_in(parts)) if isinstance(parts, list) else ""
