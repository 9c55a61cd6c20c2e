"""Codex's rollouts: JSON lines, one for each item of the conversation and for each event."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from foredeck.context.messages.items import Block, text_block
from foredeck.context.messages.shape import Message
from foredeck.histories.lines import Line, Lines
from foredeck.histories.records import (
    HistoryMessage,
    HistorySession,
    Record,
    arguments_of,
    folder,
    milliseconds,
    other_block,
    session_id,
    tool_call_id,
)
from foredeck.model.messages import text_in
from foredeck.model.wrappings import is_users

HARNESS = "codex"
MAX_OPEN_CALLS = 10_000
_EXIT_CODE = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d+)", re.MULTILINE)
CALL_MEMBERS = ("arguments", "input", "action")
"""Where an item has the arguments of its call."""
MAX_EARLY = 200
"""Lines after which the session's own line is not waited for."""
MAX_UNPLACED = 10
"""Lines among which the folder of a session is looked for."""
_FOLDER = re.compile(r"<cwd>\s*([^<\\]+?)\s*</cwd>|Current working directory: ([^\\\"]+)")
_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_HEAD = 1000
"""Characters of an output that hold its exit code."""


def is_codex(value: dict[str, Any]) -> bool:
    """Whether a line is one that only Codex writes, in any of its forms."""
    if "payload" in value:
        return value.get("type") in ("session_meta", "response_item")
    if "type" not in value:
        return "record_type" in value or _is_bare_header(value) or _is_whole(value)
    return value["type"] in ("function_call", "function_call_output") and "call_id" in value


def _is_bare_header(value: dict[str, Any]) -> bool:
    """The first line of a rollout of 2025: the session's fields and no type."""
    return {"id", "timestamp", "instructions"} <= value.keys() and "type" not in value


def _is_whole(value: dict[str, Any]) -> bool:
    """A rollout that is one object."""
    return isinstance(value.get("session"), dict) and isinstance(value.get("items"), list)


def read_codex(lines: Lines) -> Iterator[Record]:
    """The one session of a rollout and its messages."""
    reader = _CodexReader(lines)
    for line in lines:
        for each in _as_today(line):
            yield from reader.take(each)
    yield from reader.finish()


def _as_today(line: Line) -> Iterator[Line]:
    """The lines as Codex writes them today, of one in an earlier form: items that are not wrapped,
    or all of them in one object."""
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
        """The session that the file begins with: a fork's repeats all that it goes on from."""
        self._early: list[Line] = []
        """Lines before the session's own, which may be missing."""
        self._begun: HistorySession | None = None
        """The session as its own line has it: in 2025 what follows said where it worked."""
        self._began: Any = None
        """When the session began: lines of 2025 have no time of their own."""
        self._has_begun = False
        self._model = ""
        self._provider = "openai"
        self._answers = 0
        """How many answers were finished: what names the parts of the next one."""
        self._tools: dict[str, str] = {}
        """Tool names of the calls that wait for a result."""
        self._items: dict[str, str] = {}
        """Ids of calls by those of their items."""

    def take(self, line: Line) -> Iterator[Record]:
        """What one line brings."""
        kind, payload = line.value.get("type"), line.value.get("payload")
        if not isinstance(payload, dict):
            self._tally.lose("without a payload", line.place.line)
        elif kind == "session_meta":
            yield from self._start(line, payload)
        elif self._session is None:
            self._early.append(line)
            found = _FOLDER.search(json.dumps(payload.get("content"), ensure_ascii=False))
            if self._begun is not None and found is not None:
                self._begun = replace(self._begun, cwd=folder(found[1] or found[2]))
            is_known = self._begun is not None and (found or len(self._early) >= MAX_UNPLACED)
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
            self._answers += not is_part
            group = str(self._answers) if is_part else None
            entry = payload.get("id") if isinstance(payload.get("id"), str) else None
            self._root = self._root or self._session
            self._has_begun = True
            yield HistoryMessage(
                self._session,
                line.place,
                line.size,
                message,
                entry,
                group,
                root=self._root,
            )

    def finish(self) -> Iterator[Record]:
        """The session of a file whose own line is missing, by the file's name or what it holds."""
        if self._begun is not None and self._session is None:
            yield from self._begin(self._begun)
        elif self._session is None and self._early:
            named = _ID.search(self._lines.name)
            id = named[0] if named else f"codex-{self._early[0].place.check:08x}"
            yield from self._begin(HistorySession(id, HARNESS))

    def _start(self, line: Line, payload: dict[str, Any]) -> Iterator[Record]:
        """The session; a fork repeats the line of the session that it goes on from."""
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
            # Events repeat the items, for the screen.
            return None
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
        blocks = _blocks(payload.get("content"))
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
        named = payload.get("call_id") or self._items.pop(item, None) or payload.get("id")
        id = tool_call_id(named, session, line.place)
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
    """The session whose agent started this one, wherever this version of Codex notes it."""
    source = payload.get("source")
    subagent = source.get("subagent") if isinstance(source, dict) else None
    spawn = subagent.get("thread_spawn") if isinstance(subagent, dict) else None
    nested = spawn.get("parent_thread_id") if isinstance(spawn, dict) else None
    return session_id(payload.get("parent_thread_id")) or session_id(nested)


def read_call(item: dict[str, Any]) -> Block:
    """The tool call that an item is, of whichever kind."""
    given: Any = next((item[name] for name in CALL_MEMBERS if name in item), {})
    return {
        "type": "toolCall",
        "id": str(item.get("call_id") or item.get("id") or ""),
        "name": str(item.get("name") or str(item.get("type")).removesuffix("_call")),
        "arguments": arguments_of(given),
    }


def read_output(output: Any) -> tuple[list[Block], bool]:
    """The blocks of a tool's output, and whether the tool failed, as far as the output says."""
    failed = False
    if isinstance(output, dict):
        failed = output.get("success") is False
        output = output.get("content")
    if not isinstance(output, str):
        return _blocks(output), failed
    text, code = _unwrapped(output)
    if code is None and (exit_code := _EXIT_CODE.search(text[:_HEAD])):
        code = int(exit_code[1])
    return [text_block(text)], failed or bool(code)


def _unwrapped(output: str) -> tuple[str, int | None]:
    """The text of an output that is wrapped in JSON, with its exit code; else the text itself."""
    if not output.startswith('{"output"'):
        return output, None
    try:
        wrapped = json.loads(output)
    except (ValueError, RecursionError):
        return output, None
    metadata = wrapped.get("metadata")
    code = metadata.get("exit_code") if isinstance(metadata, dict) else None
    return str(wrapped["output"]), code if isinstance(code, int) else None


def _blocks(content: Any) -> list[Block]:
    if isinstance(content, str):
        return [text_block(content)]
    return [_block(part) for part in content] if isinstance(content, list) else []


def _block(part: Any) -> Block:
    text = part.get("text") if isinstance(part, dict) else None
    if isinstance(text, str):
        return text_block(text)
    url = part.get("image_url") if isinstance(part, dict) else None
    head, _, data = url.partition(";base64,") if isinstance(url, str) else ("", "", "")
    if data and head.startswith("data:"):
        return {"type": "image", "data": data, "mimeType": head.removeprefix("data:")}
    return other_block(part)


def _texts(parts: Any) -> str:
    """The texts of a reasoning's parts; sealed ones have none."""
    return text_in(_blocks(parts)) if isinstance(parts, list) else ""
