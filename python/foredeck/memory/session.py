"""Memory as one session sees it."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, get_args

from foredeck.errors import ForedeckError, ToolError
from foredeck.memory.entry import MemoryEntry, MemoryRefused
from foredeck.memory.ground import GroundReader
from foredeck.memory.keeping import Memory, NewMemory
from foredeck.memory.sections import FINDINGS, OF_SESSION, OF_USER, EntriesSection, entry_with_place
from foredeck.memory.words import KnownFact, compare
from foredeck.model.documents import chat_id
from foredeck.model.identity import ENTRY, ShortNames
from foredeck.model.memory import LearnedFrom, MemoryDocument, Place
from foredeck.model.own_tools import PROMOTE_FINDING, Severity
from foredeck.store.protocol import Token
from foredeck.store.store import Store

log = logging.getLogger(__name__)

_UNCOMMITTED = Token("")


class Inheritance(Protocol):
    """What a fork takes over of its parent's memory, once."""

    def inherit(self) -> None:
        """Adds it to the current call's transaction."""
        ...

    def uncommitted(self) -> Iterable[MemoryDocument]:
        """Its entries in that transaction."""
        ...


@dataclass(frozen=True, slots=True)
class SessionMemory:
    """The user's memory valid in `project`, and the session's own.

    `about`: words of the project's files; `searched`: the model has `memory-search`.
    """

    session: str
    project: str
    memory: Memory
    ground: GroundReader
    inheritance: Inheritance | None = None
    about: Callable[[], Collection[str]] = frozenset
    searched: bool = True

    def of_user(self) -> EntriesSection:
        """The user's entries in the head."""
        return self._section(OF_USER, partial(self.memory.of_user, self.project), has_floor=True)

    def of_session(self) -> EntriesSection:
        """The session's entries in the head."""
        return self._section(OF_SESSION, partial(self._kept, "session"))

    def findings(self) -> EntriesSection:
        """The data's findings in the head."""
        return self._section(FINDINGS, partial(self._kept, "findings"))

    def entries(self) -> list[MemoryEntry]:
        of_user = self.memory.of_user(self.project)
        return [*of_user, *self._kept("session"), *self._kept("findings")]

    def described(self, name: str) -> str | None:
        """An entry by its name, for the model."""
        entries = {entry.id: entry for entry in self.entries()}
        ids = ShortNames(ENTRY, entries).find(name)
        return "\n".join(entry_with_place(entries[id]) for id in ids) or None

    def begin(self) -> str:
        """Expires unused entries, and says so."""
        try:
            return _news(self.memory.tidy(self.session))
        except ForedeckError as error:
            log.warning("memory was not looked through: %s", error)
            return ""

    def read_answer(self, text: str) -> None:
        """Notes the entries used in an answer."""
        try:
            if text:
                entries = self.entries()
                self.memory.note_use(named_in(text, [(e.id, e.document.fact) for e in entries]))
        except ForedeckError as error:
            log.warning("uses of memory were not noted: %s", error)

    def inherit(self) -> None:
        """Gives a fork its parent's entries."""
        if self.inheritance is not None:
            self.inheritance.inherit()

    def _kept(self, place: Place) -> list[MemoryEntry]:
        stored = self.memory.of_session(self.session, place)
        if self.inheritance is None:
            return stored
        waiting = [
            MemoryEntry(document, _UNCOMMITTED, self.memory.trust.entry(document))
            for document in self.inheritance.uncommitted()
            if document.place == place
        ]
        return sorted([*stored, *waiting], key=lambda e: e.age, reverse=True)

    def _section(
        self, name: str, entries: partial[list[MemoryEntry]], *, has_floor: bool = False
    ) -> EntriesSection:
        store, searched = self.memory.store, self.searched
        return EntriesSection(name, entries, self.ground, store, self.about, has_floor, searched)


def _news(gone: Sequence[MemoryEntry]) -> str:
    unanswered = sum(entry.document.act == "unanswered" for entry in gone)
    counts = {"unused for long": len(gone) - unanswered, "proposed and never answered": unanswered}
    counts_text = " and ".join(f"{count} {why}" for why, count in counts.items() if count)
    listed = "`foredeck memory list --all` lists them."
    return f"Entries of memory have expired: {counts_text}. {listed}" if counts_text else ""


ENOUGH_WORDS = 2
"""Words of an entry that an answer must contain."""

_WORD = re.compile(r"[^\W_][\w.-]{3,}")


def named_in(answer: str, entries: Sequence[tuple[str, str]]) -> list[str]:
    """Entries with two unique words in an answer."""
    # One word alone is said by chance, and words of fewer than four letters say nothing.
    words = {id: set(_words(text)) for id, text in entries}
    holders = Counter(word for entry_words in words.values() for word in entry_words)
    answer_words = set(_words(answer))
    return [
        id
        for id, entry_words in words.items()
        if sum(holders[word] == 1 for word in entry_words & answer_words) >= ENOUGH_WORDS
    ]


def _words(text: str) -> list[str]:
    return [word.rstrip(".-").casefold() for word in _WORD.findall(text)]


# Findings: what the model, or a tool that analyses data, has found in a session's data.
#
# Each is a proposal until the user confirms it. Confirming keeps it; it stays derived, since the
# user has not said it.


SEVERITIES: tuple[str, ...] = get_args(Severity)
MOST_OF_A_RESULT, MOST_TAGS = 20, 5
_HAS_DATA = "data"
"""The note that a project has had a data tool."""
_TAG_CHARS = 30


class PromoteFinding:
    """The model's tool to propose findings, and what data tools report by themselves."""

    name = PROMOTE_FINDING
    facility = "findings"

    def __init__(self, memory: Memory, session: str, data_tools: Collection[str]) -> None:
        self._memory = memory
        self._session = session
        self._data_tools = data_tools
        self._proposed: str | None = None

    def run(self, input: Mapping[str, Any], call: str) -> str:
        """Proposes a finding; returns text for the model if the user cannot be asked at once."""
        self._proposed = None
        if not has_data(self._memory.store, self._session, self._data_tools):
            raise ToolError("No data is loaded in this session: load or query some first.")
        content = input.get("content")
        if not isinstance(content, str):
            raise ToolError("content: the finding, in one sentence.")
        try:
            self._proposed = self.propose(content, tags_of(input), "model", call or None).id
        except MemoryRefused as refusal:
            raise ToolError(str(refusal)) from refusal
        return "Proposed. The user decides whether it is kept; go on meanwhile."

    def questions(self) -> list[dict[str, Any]]:
        """The question about the new proposal."""
        # Loads with the first finding.
        from foredeck.memory.describing import proposal_lines, proposals_of

        waiting = (each for each in proposals_of(self._memory) if each.entry.id == self._proposed)
        return [{"name": each.name, "lines": proposal_lines(each)} for each in waiting]

    def has_use(self, notes: Mapping[str, bool]) -> bool:
        return notes.get(_HAS_DATA, False)

    def read_result(self, tool: str, call: str, details: Any, note: Callable[[str], None]) -> str:
        """Proposes what a data tool found; the notice for the user."""
        if tool not in self._data_tools:
            return ""
        note(_HAS_DATA)
        count = 0
        for text, tags in findings_in(details):
            try:
                self.propose(text, tags, "analysis", call)
                count += 1
            except MemoryRefused as refusal:
                log.info("a finding of %s: %s", tool, refusal)
            except ForedeckError as error:
                # The tool has done its work: nothing here may fail it.
                log.warning("a finding of %s is not proposed: %s", tool, error)
                return ""
        what = "One finding waits" if count == 1 else f"{count} findings wait"
        return f"{what} for your word: /memory" if count else ""

    def propose(
        self, content: str, tags: tuple[str, ...], learned_from: LearnedFrom, source: str | None
    ) -> MemoryEntry:
        # Loads with the first finding.
        from foredeck.memory.judging import unfit

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


def findings_in(details: Any) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Texts and tags of the `findings` in a data tool's details."""
    raw = details.get("findings") if isinstance(details, Mapping) else None
    for each in (raw if isinstance(raw, list) else [])[:MOST_OF_A_RESULT]:
        if isinstance(each, str):
            yield each, ()
        elif isinstance(each, Mapping) and isinstance(each.get("content"), str):
            yield each["content"], tags_of(each)


def tags_of(said: Mapping[str, Any]) -> tuple[str, ...]:
    """Severity and tags, a word or two each."""
    severity, tags = said.get("severity"), said.get("tags")
    if isinstance(tags, str):
        tags = tags.split(",")
    texts = [tag for tag in tags if isinstance(tag, str)] if isinstance(tags, list) else []
    plain = (" ".join(tag.split())[:_TAG_CHARS] for tag in texts)
    first = [severity] if severity in SEVERITIES else []
    unique = dict.fromkeys([*first, *(tag for tag in plain if tag)])
    return tuple(unique)[: MOST_TAGS + len(first)]


def has_data(store: Store, session: str, tools: Iterable[str]) -> bool:
    """Whether a data tool succeeded in a session."""
    where = {"chat_ref": chat_id(session), "status": "ok"}
    return any(store.query("toolcall", {**where, "tool": tool}, limit=1) for tool in tools)
