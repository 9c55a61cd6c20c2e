"""Who wrote each line of a file: which tool call of which session, or a person or program.

A version names the tool call that made it; one that was stored earlier was in one
transaction with its call. What no tool of an agent's made was found on the disk: a person wrote it,
or a program.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import NamedTuple

from foredeck.model.canonical import hash_text
from foredeck.model.documents import Document, ToolcallDocument, chat_id
from foredeck.model.records import MemberDocument
from foredeck.sources.snapshots import version_ms
from foredeck.store.protocol import Head, Store, Token
from foredeck.timeline.callers import (
    ModelCalls,
    by_transaction,
    is_written_by_agent,
    maker_of,
    text_of_version,
)
from foredeck.timeline.origins import line_origins, lines_of, returns_of

AGENT = "agent"
PERSON = "person"


@dataclass(frozen=True, slots=True)
class Author:
    """Who brought a version about.

    `by`: `agent`, or `person` for all that no agent did. The fields of the call are None where it
    was not seen, or where no agent wrote.
    """

    by: str
    time_ms: int
    """When the call was made, or the version was found."""
    session: str | None = None
    call: int | None = None
    """Number of the model call in its session."""
    tool: str | None = None
    tool_call: str | None = None
    """Id of the tool call's object."""
    model: str | None = None
    first: bool = False
    """The oldest version known: its lines may be older than what was seen of the file."""

    @property
    def name(self) -> str | None:
        """Who it was where no session is named; None where one is."""
        if self.by != AGENT:
            return "there before" if self.first else "a person"
        return "an agent" if self.session is None else None


class BlamedLine(NamedTuple):
    """A line, its number from 1, and who wrote it."""

    number: int
    text: str
    author: Author


def blame(store: Store, versions: Sequence[Head], newest: str | None = None) -> list[BlamedLine]:
    """The lines of a file, given its versions in the order of time, across renames.

    `newest`: what is on the disk, where that is not stored yet. Empty for a file without text.
    """
    shown = [head for head in versions if head.fields.get("text_hash")]
    authors = _Authors(store, {head.id for head in shown})
    texts: Iterable[str] = _texts(store, shown)
    hashes = [str(head.view(Document).text_hash) for head in shown]
    if newest is not None:
        texts = chain(texts, [newest])
        hashes.append(hash_text(newest))
    last = newest if newest is not None else text_of_version(store, shown[-1]) if shown else ""
    origins = line_origins(texts, returns_of(hashes))
    known: dict[int, Author] = {}
    for number in sorted(set(origins)):
        if number < len(shown):
            known[number] = authors.of(shown[number], first=number == 0)
        else:
            known[number] = Author(PERSON, 0)
    lines = lines_of(last)
    authors_of_lines = [known[origin] for origin in origins]
    return list(map(BlamedLine, range(1, len(lines) + 1), lines, authors_of_lines))


def _texts(store: Store, versions: Sequence[Head]) -> Iterable[str]:
    for head in versions:
        yield text_of_version(store, head)


class _Authors:
    """Finds the tool call behind a version, among those of the sessions that met the file."""

    def __init__(self, store: Store, objects: set[str]) -> None:
        self._store = store
        self._objects = objects
        self._calls: dict[str, ModelCalls] = {}

    def of(self, head: Head, *, first: bool) -> Author:
        """Who made a version."""
        tool_call, is_agents = self._tool_call(head, first=first), is_written_by_agent(head)
        if tool_call is None:
            return Author(AGENT if is_agents else PERSON, version_ms(head), first=first)
        session = tool_call.view(ToolcallDocument).chat_ref.removeprefix("chat:")
        if session not in self._calls:
            self._calls[session] = ModelCalls(self._store, session)
        record = self._calls[session].behind(tool_call)
        return Author(
            AGENT,
            version_ms(head) if record is None else record.time_ms,
            session,
            None if record is None else record.ordinal,
            tool_call.fields.get("tool"),
            tool_call.id,
            None if record is None else record.model.name or None,
            first,
        )

    def _tool_call(self, head: Head, *, first: bool) -> Head | None:
        """The call that made a version."""
        if (named := maker_of(head, first=first)) is not None:
            return self._store.head(named)
        return self._by_transaction.get(head.token) if is_written_by_agent(head) else None

    @cached_property
    def _by_transaction(self) -> dict[Token, Head]:
        """Tool calls that touched the file, by the transactions that stored them."""
        members = [m for id in self._objects for m in self._store.query("member", {"object": id})]
        found: dict[Token, Head] = {}
        for session in sorted({member.view(MemberDocument).session for member in members}):
            touched = (
                head
                for head in self._store.query("toolcall", {"chat_ref": chat_id(session)})
                if not self._objects.isdisjoint(head.fields.get("file_refs") or ())
            )
            found = by_transaction(self._store, touched) | found
        return found
