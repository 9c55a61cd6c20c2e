"""Claude Code's sessions: JSON lines, one per content block.

Lines of one answer share `message.id`. A subagent's lines (`isSidechain`, `agentId`) are a session
of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from foredeck.context.messages.items import Block, text_block
from foredeck.context.messages.shape import Message
from foredeck.hosts.foreign_blocks import other_block
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

HARNESS = "claude-code"
_STOPS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "toolUse",
    "max_tokens": "length",
}
_KEPT_DETAILS = ("filePath", "structuredPatch", "interrupted", "agentId", "totalTokens")
"""Kept fields of `toolUseResult`; the rest repeats the result."""
MAX_OPEN_CALLS = 10_000


def is_claude_code(value: dict[str, Any]) -> bool:
    """Whether a line is one that only Claude Code writes."""
    return "sessionId" in value and ("uuid" in value or "leafUuid" in value)


def read_claude_code(lines: Lines) -> Iterator[Record]:
    """The sessions of a file and their messages, in the order of the file."""
    reader = _ClaudeCodeReader(lines)
    for line in lines:
        yield from reader.take(line)


class _ClaudeCodeReader:
    def __init__(self, lines: Lines) -> None:
        self._tally = lines.tally
        self._seen: set[str] = set()
        self._current: str | None = None
        """The session of the newest line of no subagent."""
        self._roots: dict[str, str] = {}
        self._tools: dict[str, str] = {}

    def take(self, line: Line) -> Iterator[Record]:
        """What one line brings."""
        kind = line.value.get("type")
        if kind not in ("user", "assistant") and not _is_command(line.value):
            self._tally.other[str(kind)] += 1
            return
        own = session_id(line.value.get("sessionId"))
        content = _content(line.value)
        if own is None or content is None:
            self._tally.lose("without a session or a message", line.place.line)
            return
        session = self._session_of(line.value, own)
        if session not in self._seen:
            self._seen.add(session)
            yield self._start(line.value, session, own)
        if session == own:
            self._current = own
        for message in self._messages(line, session, content):
            yield HistoryMessage(
                session,
                line.place,
                line.size,
                message,
                entry=_text_or_none(line.value.get("uuid")),
                group=_group(line) if message["role"] == "assistant" else None,
                file_before=_file_before(line) if message["role"] == "toolResult" else None,
            )

    def _session_of(self, value: dict[str, Any], own: str) -> str:
        if not value.get("isSidechain"):
            return own
        agent = session_id(value.get("agentId"))
        if agent is None:
            # Earlier versions did not number subagents: all lines of one lead back to its first.
            uuid, parent = str(value.get("uuid") or ""), str(value.get("parentUuid") or "")
            root = self._roots.get(parent, parent or uuid)
            self._roots[uuid] = root
            agent = session_id(root) or "0"
        return f"agent-{agent[:64]}.{own}"

    def _start(self, value: dict[str, Any], session: str, own: str) -> HistorySession:
        cwd = folder(value.get("cwd"))
        if session != own:
            return HistorySession(session, HARNESS, cwd, started_by=own)
        return HistorySession(session, HARNESS, cwd, parent=self._current)

    def _messages(self, line: Line, session: str, content: Any) -> Iterator[Message]:
        value, time_ms = line.value, milliseconds(line.value.get("timestamp"))
        blocks = content if isinstance(content, list) else [text_block(str(content))]
        if value["type"] == "assistant":
            yield self._answer(line, session, blocks, time_ms)
        said = []
        for block in blocks:
            if not isinstance(block, dict):
                continue
            if str(block.get("type")).endswith("tool_result"):
                yield self._result(line, session, block, time_ms)
            elif value["type"] != "assistant":
                said += _shown(block)
        if said:
            yield _said(value, said, time_ms)

    def _answer(self, line: Line, session: str, blocks: list[Any], time_ms: int) -> Message:
        value = line.value
        message: dict[str, Any] = value["message"] if isinstance(value.get("message"), dict) else {}
        answer: Message = {
            "role": "assistant",
            "content": [part for block in blocks for part in self._part(line, session, block)],
            "provider": "anthropic",
            "model": str(message.get("model") or ""),
            "api": "anthropic-messages",
            "stopReason": _STOPS.get(str(message.get("stop_reason"))),
            "usage": _usage(message.get("usage")),
            "responseId": _text_or_none(message.get("id")),
            "timestamp": time_ms,
        }
        if value.get("isApiErrorMessage"):
            answer |= {"stopReason": "error", "errorMessage": text_in(answer["content"])}
        return {name: item for name, item in answer.items() if item is not None}

    def _part(self, line: Line, session: str, block: Any) -> Iterator[Block]:
        match block.get("type") if isinstance(block, dict) else None:
            case "thinking":
                if block.get("thinking"):
                    yield {"type": "thinking", "thinking": str(block["thinking"])}
            case "tool_use" | "server_tool_use" | "mcp_tool_use":
                id = tool_call_id(block.get("id"), session, line.place)
                name = str(block.get("name") or "")
                # Bounded: calls that were interrupted never get a result.
                if len(self._tools) < MAX_OPEN_CALLS:
                    self._tools[id] = name
                input = block.get("input")
                arguments = input if isinstance(input, dict) else {"input": input}
                yield {"type": "toolCall", "id": id, "name": name, "arguments": arguments}
            case "redacted_thinking" | None:
                return
            case kind if not str(kind).endswith("tool_result"):
                yield from _shown(block)

    def _result(self, line: Line, session: str, block: Block, time_ms: int) -> Message:
        id = tool_call_id(block.get("tool_use_id"), session, line.place)
        content = block.get("content")
        parts = content if isinstance(content, list) else [text_block(str(content or ""))]
        result: Message = {
            "role": "toolResult",
            "toolCallId": id,
            "toolName": self._tools.pop(id, ""),
            "content": [shown for part in parts for shown in _shown(part)],
            "isError": bool(block.get("is_error")),
            "timestamp": time_ms,
        }
        tool_result = line.value.get("toolUseResult")
        details = (
            {k: tool_result[k] for k in _KEPT_DETAILS if k in tool_result}
            if isinstance(tool_result, dict)
            else {}
        )
        return result | ({"details": details} if details else {})


def _file_before(line: Line) -> str | None:
    tool_result = line.value.get("toolUseResult")
    return _text_or_none(tool_result.get("originalFile")) if isinstance(tool_result, dict) else None


def _is_command(value: dict[str, Any]) -> bool:
    return value.get("type") == "system" and value.get("subtype") == "local_command"


def _content(value: dict[str, Any]) -> Any:
    message = value.get("message") if value["type"] != "system" else value
    content = message.get("content") if isinstance(message, dict) else None
    return content if isinstance(content, str | list) else None


def _said(value: dict[str, Any], blocks: list[Block], time_ms: int) -> Message:
    """A line of the user's side: typed, added by Claude Code, or a summary."""
    if value.get("isCompactSummary"):
        return {"role": "compactionSummary", "summary": text_in(blocks), "timestamp": time_ms}
    is_meta = value.get("isMeta") or value["type"] == "system"
    if is_meta or not is_users(blocks):
        origin = value.get("subtype") or ("meta" if is_meta else "context")
        return {
            "role": "custom",
            "customType": f"{HARNESS}:{origin}",
            "content": blocks,
            "display": False,
            "timestamp": time_ms,
        }
    return {"role": "user", "content": blocks, "timestamp": time_ms}


def _shown(block: Any) -> list[Block]:
    kind = block.get("type") if isinstance(block, dict) else None
    if kind == "text":
        return [text_block(str(block.get("text") or ""))]
    if kind == "image":
        source = block.get("source")
        data = source.get("data") if isinstance(source, dict) else None
        if isinstance(data, str):
            return [{"type": "image", "data": data, "mimeType": str(source.get("media_type"))}]
    return [other_block(block)]


def _group(line: Line) -> str:
    message = line.value["message"]
    return str(message.get("id") or f"line {line.place.line}")


def _usage(usage: Any) -> dict[str, int] | None:
    if not isinstance(usage, dict):
        return None
    names = {
        "input": "input_tokens",
        "output": "output_tokens",
        "cacheRead": "cache_read_input_tokens",
        "cacheWrite": "cache_creation_input_tokens",
    }
    counts = {ours: usage.get(theirs) for ours, theirs in names.items()}
    return {name: count for name, count in counts.items() if isinstance(count, int)} or None


def _text_or_none(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
