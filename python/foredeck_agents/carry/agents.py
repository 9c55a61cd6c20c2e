"""The agents to which a session can be carried, and how each stores and resumes one."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foredeck.context.messages.shape import Message
from foredeck_agents.carry import claude_file, codex_file, opencode, tools
from foredeck_agents.carry.messages import NewSession, made_id, stamp
from foredeck_agents.histories.recordings import usual_places

Lines = Callable[[NewSession, Sequence[Message]], str]


def _uuid() -> str:
    return str(uuid.uuid4())


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """An agent.

    `words`: its tools; `shown`: messages as it shows them; `beside`: characters that it sends
    beside the chat as installed; `place`: where a session's file goes; `resumed`: command lines to
    go on with.
    """

    name: str
    harness: str
    place: Callable[[NewSession, Path], Path]
    text: Lines
    resumed: Callable[[NewSession, Path], list[list[str]]]
    beside: int
    words: tools.Words | None = None
    shown: Callable[[Sequence[Message]], list[Message]] = list
    api: str = "anthropic-messages"
    provider: str = "anthropic"
    window: int = 200_000
    new_id: Callable[[], str] = _uuid

    def record(self, model: str, window: int | None) -> dict[str, Any]:
        """The model, as an engine takes it."""
        provider, _, id = (model if "/" in model else f"{self.provider}/{model}").partition("/")
        window = window or self.window
        return {"provider": provider, "id": id, "api": self.api, "contextWindow": window}


def _jsonl(lines: Callable[[NewSession, Sequence[Message]], Any]) -> Lines:
    def text(session: NewSession, messages: Sequence[Message]) -> str:
        each = (json.dumps(line, ensure_ascii=False) for line in lines(session, messages))
        return "".join(f"{line}\n" for line in each)

    return text


def _of(agent: str) -> Path:
    return dict(usual_places())[agent]


def _pi_place(session: NewSession, _home: Path) -> Path:
    began = session.began.replace(":", "-").replace(".", "-")
    return _of("Pi") / _pi_folder(session.cwd) / f"{began}_{session.id}.jsonl"


_COUNTS = ("input", "output", "cacheRead", "cacheWrite")
_NO_USAGE = {
    **dict.fromkeys((*_COUNTS, "totalTokens"), 0),
    "cost": dict.fromkeys((*_COUNTS, "total"), 0),
}
"""Nothing was asked in this session yet."""


def _pi_folder(cwd: str) -> str:
    """The folder of a project's sessions, below `sessions`."""
    path = re.sub(r"^[/\\]", "", cwd)
    return "--" + re.sub(r"[/:\\]", "-", path) + "--"


def _pi_lines(session: NewSession, messages: Sequence[Message]) -> Iterator[dict[str, Any]]:
    """The lines of a session in Pi's format (the other side of `histories/pi.py`)."""
    header = {"type": "session", "version": 3, "id": session.id, "cwd": session.cwd}
    yield {**header, "timestamp": session.began}
    parent: str | None = None
    for number, message in enumerate(messages):
        entry = made_id(session.id, f"entry {number}")[:8]
        given = {"id": entry, "parentId": parent, "timestamp": stamp(message)}
        parent = entry
        own = {name: value for name, value in message.items() if name != "number"}
        if message["role"] == "assistant":
            own["usage"] = _NO_USAGE
        if message["role"] == "custom":
            kind = {"customType": message["customType"], "content": message["content"]}
            yield {"type": "custom_message", **given, **kind, "display": False}
        else:
            yield {"type": "message", **given, "message": own}
    named = {"id": made_id(session.id, "name")[:8], "parentId": parent, "timestamp": session.began}
    yield {"type": "session_info", **named, "name": session.title}


def _claude_place(session: NewSession, _home: Path) -> Path:
    return _of("Claude Code") / claude_file.folder_name(session.cwd) / f"{session.id}.jsonl"


def _codex_place(session: NewSession, _home: Path) -> Path:
    return _of("Codex") / codex_file.place_of(session)


def _opencode_place(session: NewSession, home: Path) -> Path:
    return home / "carried" / f"{session.id}.json"


def _opencode_text(session: NewSession, messages: Sequence[Message]) -> str:
    return json.dumps(opencode.whole(session, messages), ensure_ascii=False)


AGENTS: Mapping[str, Agent] = {
    "pi": Agent(
        name="Pi",
        harness="pi",
        place=_pi_place,
        text=_jsonl(_pi_lines),
        resumed=lambda _session, file: [["pi", "--session", str(file)]],
        beside=6_800,
    ),
    "claude": Agent(
        name="Claude Code",
        harness="claude-code",
        place=_claude_place,
        text=_jsonl(claude_file.lines_of),
        resumed=lambda session, _file: [["claude", "--resume", session.id]],
        beside=48_000,
        words=tools.CLAUDE_CODE,
        shown=claude_file.numbered,
    ),
    "codex": Agent(
        name="Codex",
        harness="codex",
        place=_codex_place,
        text=_jsonl(codex_file.lines_of),
        resumed=lambda session, _file: [["codex", "resume", session.id]],
        beside=37_000,
        words=tools.APPLYING,
        shown=codex_file.cut,
        api="openai-responses",
        provider="openai",
        window=272_000,
    ),
    "opencode": Agent(
        name="opencode",
        harness="opencode",
        place=_opencode_place,
        text=_opencode_text,
        resumed=lambda session, file: [
            ["opencode", "import", str(file)],
            ["opencode", "-s", session.id],
        ],
        beside=31_000,
        words=tools.OPENCODE,
        new_id=lambda: opencode.session_id(_uuid()),
    ),
}
NAMES = {agent.harness: agent.name for agent in AGENTS.values()}
"""Agents as users call them, by stored name."""
