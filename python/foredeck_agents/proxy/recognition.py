"""Which requests are the conversation, and which an agent makes beside it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

Body = Mapping[str, Any]

_ALIKE = 0.5
"""Share of two sets that one conversation has in common."""
_YOUNG = 3
"""Requests after which a conversation is no longer taken for one beside another."""
_STRONG = re.compile(
    # Claude Code, Cline, Roo
    r"your task is to create a (comprehensive )?(detailed )?summary of the"
    r"|tasked with summari[sz]ing conversations"
    # Codex
    r"|context checkpoint compaction"
    # opencode, Pi
    r"|context summari[sz]ation (agent|assistant)|(new|existing|the) anchored summary"
    r"|prompt for continuing our conversation"
    # Gemini CLI, Qwen Code
    r"|summari[sz]es internal chat history|<state_snapshot>",
    re.I,
)
"""Agents' words for compaction, by the system or at the end."""
_PLAIN = re.compile(
    r"(summari[sz]e|compact|condense|compress) (this|our|the)( \w+){0,2} (conversation|chat|session"
    r"|context|history)|summary of (this|our|the)( \w+){0,2} (conversation|chat|session)\b",
    re.I,
)
"""Other words for it, counted only at the beginning."""
_SHORT = 120
"""A shorter text is a person's."""
_BEGINNING = 300
"""Characters in which an instruction says what it is."""
_MOST_UNNAMED = 1000
_COMPACTS = ("compact", "compaction")


def is_compaction(body: Body, headers: Mapping[str, str], system: str, newest: str) -> bool:
    """Whether a request asks for a summary of its messages."""
    # Anthropic's on demand.
    if body.get("compaction") or _codex_compacts(body, headers):
        return True
    marks = (_STRONG.search(system[:_BEGINNING]), _STRONG.search(newest))
    is_long = len(newest) >= _SHORT
    return any(marks) or (is_long and _PLAIN.search(newest[:_BEGINNING]) is not None)


def _codex_compacts(body: Body, headers: Mapping[str, str]) -> bool:
    items = body.get("input")
    if isinstance(items, list):
        kinds = [item.get("type") for item in items[-2:] if isinstance(item, dict)]
        if "compaction_trigger" in kinds:
            return True
    if headers.get("x-openai-subagent", "") in _COMPACTS:
        return True
    try:
        turn = json.loads(headers.get("x-codex-turn-metadata") or "{}")
    except ValueError:
        return False
    return isinstance(turn, dict) and turn.get("request_kind") in _COMPACTS


def first_key(messages: Sequence[Mapping[str, Any]]) -> str:
    """The key of a list: its first message, for the engine."""
    return hashlib.sha256(json.dumps([*messages[:1]], sort_keys=True).encode()).hexdigest()


def stable_words(system: str) -> frozenset[str]:
    """Words of a system text, without dates, times, counts and hashes."""
    words = (word for word in system.lower().split() if not any(map(str.isdigit, word)))
    return frozenset(each for word in words for each in re.findall(r"[^\W\d_]{2,}", word))


def alike(one: Set[str], other: Set[str]) -> bool:
    """Whether most of the larger set is in the other."""
    return len(one & other) >= _ALIKE * max(len(one), len(other))


@dataclass(slots=True)
class Profile:
    """How the requests of one conversation look."""

    firsts: set[str] = field(default_factory=set)
    """The first messages of its lists."""
    words: frozenset[str] = frozenset()
    """Of its system text."""
    tools: frozenset[str] = frozenset()
    """Names of the client's tools."""
    requests: int = 0
    compacted: bool = False
    """The client has asked for a summary, so a new list comes next."""

    def takes(self, first: str, words: frozenset[str], tools: frozenset[str]) -> bool:
        """Whether a request is this conversation's, which then learns from it."""
        if not self._is_own(first, words, tools):
            if self.requests >= _YOUNG or len(tools) <= len(self.tools):
                return False
            # What came before was beside this one.
            self.firsts.clear()
        self.firsts.add(first)
        self.words, self.tools, self.compacted = words, tools, False
        self.requests += 1
        return True

    def _is_own(self, first: str, words: frozenset[str], tools: frozenset[str]) -> bool:
        # Tools, model and system text may change where a list goes on.
        if not self.firsts or first in self.firsts:
            return True
        same = (alike(words, self.words), alike(tools, self.tools))
        return all(same) or (self.compacted and any(same))


class UnnamedSessions:
    """Sessions of clients that name none, by first message and system text."""

    def __init__(self) -> None:
        self._known: dict[str, list[tuple[frozenset[str], str]]] = {}

    def session(self, first: str, words: frozenset[str]) -> str:
        """The session of a request."""
        begun = self._known.setdefault(first, [])
        while len(self._known) > _MOST_UNNAMED:
            self._known.pop(next(iter(self._known)))
        for other, name in begun:
            if alike(words, other):
                return name
        # One word stands for all, chosen by its hash: where few vary it is seldom one of these, so
        # that another process comes to the same name.
        hashes = sorted(hashlib.sha256(word.encode()).hexdigest() for word in words)
        taken = {name for _, name in begun}
        names = (_name(first, hashes[:1]), _name(first, hashes))
        name = next((name for name in names if name not in taken), names[-1])
        begun.append((words, name))
        return name


def _name(first: str, hashes: Sequence[str]) -> str:
    begins = json.dumps([first, *hashes])
    return f"proxy-{hashlib.sha256(begins.encode()).hexdigest()[:24]}"
