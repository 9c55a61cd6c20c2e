"""Findings: what the model, or a tool that analyses data, has found in a session's data.

Each is a proposal until the user confirms it. Confirming keeps it; it stays derived, since the user
has not said it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, get_args

from foredeck.errors import ToolError
from foredeck.memory.entry import MemoryEntry, MemoryRefused
from foredeck.memory.keeping import Memory, NewMemory
from foredeck.memory.words import KnownFact, compare
from foredeck.model.documents import chat_id
from foredeck.model.memory import LearnedFrom
from foredeck.model.own_tools import PROMOTE_FINDING, Severity
from foredeck.store.protocol import Store

SEVERITIES: tuple[str, ...] = get_args(Severity)
MOST_OF_A_RESULT, MOST_TAGS = 20, 5
_TAG_CHARS = 30


class SessionFindings:
    """Proposes findings for one session. `loaded`: whether it has data."""

    def __init__(self, memory: Memory, session: str, loaded: Callable[[], bool]) -> None:
        self._memory = memory
        self._session = session
        self.loaded = loaded

    def propose(
        self, content: str, tags: tuple[str, ...], learned_from: LearnedFrom, source: str | None
    ) -> MemoryEntry:
        """Ask the user about one. `source`: id of the tool call that has it. Raises
        `MemoryRefused`."""
        # Loads with the first finding.
        from foredeck.memory.question import unfit

        text = " ".join(content.split())
        if (reason := unfit(text, text)) is not None:
            raise MemoryRefused(_UNFIT.get(reason, f"That cannot be kept: {reason}."))
        if compare(text, self._known()).same is not None:
            raise MemoryRefused("That finding is there already, or the user did not want it.")
        new = NewMemory(
            category="finding",
            fact=text,
            session=self._session,
            learned_from=learned_from,
            tool_originated=True,
            parents=() if source is None else (source,),
            tags=tags,
        )
        return self._memory.propose(new).entry

    def _known(self) -> Iterator[KnownFact]:
        for entry in self._memory.all(place="findings"):
            document = entry.document
            if document.session == self._session and document.state not in ("expired", "evicted"):
                yield KnownFact(document.id, document.fact)


_UNFIT = {
    "length": "A finding is one sentence of at most 240 characters.",
    "secret": "That holds what looks like a key or a password.",
    "itself": "A finding is about the data, not about the agent.",
}


class PromoteFinding:
    """The model's tool for a finding worth keeping."""

    name = PROMOTE_FINDING

    def __init__(self, findings: SessionFindings) -> None:
        self._findings = findings
        self.proposed: str | None = None
        """Id of what the last call has proposed, for the host to ask the user about."""

    def run(self, input: Mapping[str, Any], call: str) -> str:
        """Propose it; what the model reads where the user cannot be asked at once."""
        self.proposed = None
        if not self._findings.loaded():
            raise ToolError("No data is loaded in this session: load or query some first.")
        content = input.get("content")
        if not isinstance(content, str):
            raise ToolError("content: the finding, in one sentence.")
        try:
            entry = self._findings.propose(content, tags_of(input), "model", call or None)
        except MemoryRefused as refusal:
            raise ToolError(str(refusal)) from refusal
        self.proposed = entry.id
        return "Proposed. The user decides whether it is kept; go on meanwhile."


def findings_in(details: Any) -> Iterator[tuple[str, tuple[str, ...]]]:
    """What a data tool says it has found: `findings` among the details of its result, texts or
    objects with `content`, `severity` and `tags`. Text and tags of each."""
    found = details.get("findings") if isinstance(details, Mapping) else None
    for each in (found if isinstance(found, list) else [])[:MOST_OF_A_RESULT]:
        if isinstance(each, str):
            yield each, ()
        elif isinstance(each, Mapping) and isinstance(each.get("content"), str):
            yield each["content"], tags_of(each)


def tags_of(said: Mapping[str, Any]) -> tuple[str, ...]:
    """The severity, where it is one, and the tags, each a word or two."""
    severity, tags = said.get("severity"), said.get("tags")
    if isinstance(tags, str):
        tags = tags.split(",")
    named = [tag for tag in tags if isinstance(tag, str)] if isinstance(tags, list) else []
    plain = (" ".join(tag.split())[:_TAG_CHARS] for tag in named)
    first = [severity] if severity in SEVERITIES else []
    kept = dict.fromkeys([*first, *(tag for tag in plain if tag)])
    return tuple(kept)[: MOST_TAGS + len(first)]


def has_data(store: Store, session: str, tools: Iterable[str]) -> bool:
    """Whether a data tool has brought anything in a session."""
    where = {"chat_ref": chat_id(session), "status": "ok"}
    return any(store.query("toolcall", {**where, "tool": tool}, limit=1) for tool in tools)
