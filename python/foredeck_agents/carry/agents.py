"""The agents to which a session can be carried, and how each stores and resumes one."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foredeck.context.messages.shape import Message
from foredeck_agents.carry import claude_file, codex_file, opencode_file, pi_file, tools
from foredeck_agents.carry.messages import NewSession
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
    return _of("Pi") / pi_file.folder_name(session.cwd) / f"{began}_{session.id}.jsonl"


def _claude_place(session: NewSession, _home: Path) -> Path:
    return _of("Claude Code") / claude_file.folder_name(session.cwd) / f"{session.id}.jsonl"


def _codex_place(session: NewSession, _home: Path) -> Path:
    return _of("Codex") / codex_file.place_of(session)


def _opencode_place(session: NewSession, home: Path) -> Path:
    return home / "carried" / f"{session.id}.json"


def _opencode_text(session: NewSession, messages: Sequence[Message]) -> str:
    return json.dumps(opencode_file.whole(session, messages), ensure_ascii=False)


AGENTS: Mapping[str, Agent] = {
    "pi": Agent(
        name="Pi",
        harness="pi",
        place=_pi_place,
        text=_jsonl(pi_file.lines_of),
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
        new_id=lambda: opencode_file.session_id(_uuid()),
    ),
}
NAMES = {agent.harness: agent.name for agent in AGENTS.values()}
"""Agents as users call them, by stored name."""
