"""Search as one session sees it; hits in the prompt are left out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from time import monotonic
from typing import Any, Literal, get_args

from foredeck.context.state.chat import Chat
from foredeck.context.state.handles import meet
from foredeck.context.state.objects import Objects
from foredeck.context.tools.found import (
    NOT_UP_TO_DATE,
    FoundRow,
    HitNames,
    Style,
    describe,
    describe_to_people,
    found_rows,
    nothing_for_people,
    nothing_found,
)
from foredeck.context.tools.search_place import SearchPlace
from foredeck.derived.follower import Follower
from foredeck.derived.layer import OutOfTime, until
from foredeck.errors import ForedeckError, ToolError
from foredeck.model.documents import Document
from foredeck.model.identity import ENTRY, ShortNames
from foredeck.model.kinds import OBJECT_TYPES
from foredeck.search import SEARCHED_TYPES
from foredeck.search.index import Filters, IndexedText, SearchIndex
from foredeck.search.searching import LeaveOut, SearchHit, SearchResult, search
from foredeck.sources.projects import folders_of_project
from foredeck.store.sessions import private_sessions
from foredeck.store.store import Store
from foredeck.tasks.board import moment

# In that time the index takes in some 10,000 messages. A larger store is indexed over several
# questions, or by `foredeck doctor --rebuild`.
PATIENCE_S = 2.0
"""Longest wait for the index, in seconds."""

OF_ONE_FILE = frozenset({"write", "edit", "read"})
"""Tools whose calls show a file's content."""

SearchScope = Literal["project", "session", "all"]


MOST_HITS, MOST_NEIGHBOURS = 20, 10

NEEDS_QUERY = (
    'memory-search needs "query": a few specific words, such as a function, a file or the text of '
    "an error."
)


@dataclass(frozen=True, slots=True)
class AskedSearch:
    """A search as the model wants it, with `message_range` neighbours of each hit."""

    query: str
    scope: SearchScope = "project"
    limit: int = 3
    message_range: int = 0
    type: str | None = None
    tool: str | None = None
    path: str | None = None
    since_ms: int | None = None
    task: str | None = None

    @classmethod
    def parse(cls, given: Mapping[str, Any]) -> AskedSearch:
        """Parses a tool's arguments, ignoring unknown ones. Raises `ToolError`."""
        # A model that adds `"action": "search"` means nothing else by it.
        query = given.get("query")
        if not isinstance(query, str) or not query.strip():
            raise ToolError(NEEDS_QUERY)
        return cls(
            query,
            _scope(given.get("scope")),
            _number(given, "limit", 3, 1, MOST_HITS),
            _number(given, "messageRange", 0, 0, MOST_NEIGHBOURS),
            _type(_text(given, "type")),
            _text(given, "tool"),
            _text(given, "path"),
            _moment(_text(given, "since")),
            _text(given, "task"),
        )


Answer = Callable[[AskedSearch, SearchIndex], str]
"""The text for a question."""


class SessionSearch:
    """Answers questions in one session."""

    def __init__(self, place: SearchPlace) -> None:
        self._place = place
        self._store, self._objects = place.store, place.objects

    def for_model(self, input: Mapping[str, Any]) -> str:
        return self._asked(input, self._answer)

    def for_user(self, query: str, limit: int) -> tuple[str, list[FoundRow]]:
        """As `MemorySearch.for_user`."""
        rows: list[FoundRow] = []
        arguments = {"query": query, "limit": limit}
        return self._asked(arguments, partial(self._answer_to_user, rows)), rows

    def _asked(self, input: Mapping[str, Any], answer: Answer) -> str:
        query = AskedSearch.parse(input)
        self._place.chat.take_up_newest()
        try:
            with Follower(self._store, "search", self._place.home) as follower:
                is_current = _catch_up(self._store, follower)
                with follower.tables() as db:
                    text = answer(query, SearchIndex(db))
        except ToolError:
            raise
        except ForedeckError as error:
            raise ToolError(f"Search is not available: {error}") from error
        if not self._objects.workspace.empty:
            # The handles that it names must outlive a crash.
            self._objects.workspace.commit()
        return text if is_current else f"{text}\n{NOT_UP_TO_DATE}"

    def _answer(self, asked: AskedSearch, index: SearchIndex) -> str:
        in_view = _InView(self._objects, self._place.chat)
        result = self._search(asked, index, in_view)
        if not result.hits:
            return nothing_found(asked.scope, in_view.count)
        names = [self._name(hit) for hit in result.hits]
        tasks = self._place.tasks
        task_name = str if tasks is None else tasks.board.known_name
        return describe(result, names, in_view.count, self._objects.info.id, task_name)

    def _answer_to_user(self, rows: list[FoundRow], asked: AskedSearch, index: SearchIndex) -> str:
        result = self._search(asked, index, None)
        if not result.hits:
            return nothing_for_people(asked.scope)
        names = HitNames(self._store, index.folders())
        rows += found_rows(result, names.of, moment)
        return describe_to_people(result, names.of, moment, Style())

    def _search(
        self, asked: AskedSearch, index: SearchIndex, leave_out: LeaveOut | None
    ) -> SearchResult:
        entries = [] if self._place.memory is None else self._place.memory.entries()
        if asked.scope == "session":
            entries = [
                entry for entry in entries if entry.document.session == self._objects.info.id
            ]
        filters = Filters(
            self._sessions(asked.scope, index),
            asked.type,
            asked.tool,
            asked.path,
            asked.since_ms,
            self._task(asked.task),
            private_sessions(self._store, self._objects.info.family),
            tuple((entry.id, str(entry.token)) for entry in entries),
            self._tasks_of_project() if asked.scope == "project" else (),
        )
        return search(
            self._store,
            index,
            asked.query,
            filters,
            limit=asked.limit,
            message_range=asked.message_range,
            leave_out=leave_out,
        )

    def _sessions(self, scope: SearchScope, index: SearchIndex) -> tuple[str, ...] | None:
        if scope == "session":
            return (self._objects.info.id,)
        if scope == "all":
            return None
        folders = index.folders()
        all_folders, place = set(folders.values()), self._place.session_folder
        ours = set(folders_of_project(place.cwd, all_folders, place.filesystems))
        return tuple(session for session, folder in folders.items() if folder in ours)

    def _tasks_of_project(self) -> tuple[str, ...]:
        tasks = self._store.query("task", {"project": self._place.session_folder.project.id})
        return tuple(head.id for head in tasks)

    def _task(self, name: str | None) -> str | None:
        """A task's id. Raises `ToolError`."""
        tasks = self._place.tasks
        if name is None or tasks is None:
            return name
        tasks.board.refresh()
        return tasks.find(name).id

    def _name(self, hit: SearchHit) -> str:
        """The name to activate a hit by: its handle and place; else its name or object id."""
        if hit.entry.type == "memory":
            entries = [] if self._place.memory is None else self._place.memory.entries()
            return ShortNames(ENTRY, (entry.id for entry in entries)).name(hit.object)
        object, place = self._opened(hit)
        ordinal = self._objects.index.by_object.get(object)
        if ordinal is None:
            head = self._store.head(object)
            if head is not None and head.type == "task" and self._place.tasks is not None:
                return self._place.tasks.board.known_name(object)
            if head is None or head.type not in OBJECT_TYPES:
                return object
            ordinal = meet(self._objects, head).ordinal
        return f"@{ordinal}{place}"

    def _opened(self, hit: SearchHit) -> tuple[str, str]:
        # Of a read or a change the file, where what was found is still there: a file goes on, and
        # a call does not.
        if hit.entry.type == "toolcall" and hit.entry.role.lower() in OF_ONE_FILE:
            call = self._store.head(hit.object)
            files: list[str] = [] if call is None else call.fields.get("file_refs") or []
            file = self._store.get(files[0], Document) if len(files) == 1 else None
            if file is not None and _holds(file.content or "", hit):
                return file.id, ""
        return hit.object, hit.place


def _holds(text: str, hit: SearchHit) -> bool:
    lines: list[tuple[str, bool]] = [("", False)]
    for piece, is_marked in hit.passage.pieces():
        first, *others = piece.split("\n")
        lines[-1] = lines[-1][0] + first, lines[-1][1] or is_marked
        lines += [(line, is_marked) for line in others]
    marked_lines = [line.strip("… \t") for line, is_marked in lines if is_marked]
    return bool(marked_lines) and all(line in text for line in marked_lines)


def _catch_up(store: Store, follower: Follower) -> bool:
    """Takes in what is new; returns whether that was everything."""
    advance = until(monotonic() + PATIENCE_S)
    try:
        has_all = store.fetch_all(advance)
        follower.catch_up(advance)
    except OutOfTime:
        return False
    return has_all


class _InView:
    """Says what is in the prompt, and counts it."""

    def __init__(self, objects: Objects, chat: Chat) -> None:
        self.count = 0
        self._objects = objects
        self._chat = chat
        self._shown = _shown(objects, chat)
        self._has_all_chat = not (chat.compactions or chat.branch.plan.observed)

    def __call__(self, entry: IndexedText) -> bool:
        of_chat = entry.type == "message" and entry.session == self._objects.info.id
        in_view = (of_chat and self._has_all_chat) or entry.document in self._shown
        self.count += in_view
        return in_view


def _shown(objects: Objects, chat: Chat) -> set[str]:
    index, plan = objects.index, chat.branch.plan
    ids = {*plan.observed}
    for op, item in zip(plan.ops, plan.items, strict=True):
        if op.form not in ("full", "diff", "host"):
            continue
        called = index.by_label.get(item.call_id) if item.kind == "result" else None
        if called is not None:
            ids.add(index.entries[called].object)
        entry = None if op.subject is None else index.entries.get(op.subject)
        if entry is not None and op.version == entry.newest.version:
            ids.add(entry.object)
    return ids


def _scope(given: Any) -> SearchScope:
    if given in (None, ""):
        return "project"
    if given in get_args(SearchScope):
        scope: SearchScope = given
        return scope
    raise ToolError(f'There is no scope {given!r}: it is "project", "session" or "all".')


def _type(given: str | None) -> str | None:
    if given is not None and given not in SEARCHED_TYPES:
        raise ToolError(f"There is no type {given!r}: it is {', '.join(SEARCHED_TYPES)}.")
    return given


def _text(given: Mapping[str, Any], name: str) -> str | None:
    value = given.get(name)
    if value is not None and not isinstance(value, str):
        raise ToolError(f"{name} must be text, not {value!r}.")
    return value or None


def _number(given: Mapping[str, Any], name: str, default: int, least: int, most: int) -> int:
    # Models write "3" and 3.0, too.
    value = given.get(name)
    if value is None or value == "":
        return default
    try:
        if isinstance(value, bool):
            raise ValueError
        return min(most, max(least, int(float(value))))
    except (TypeError, ValueError, OverflowError):
        raise ToolError(f"{name} must be a number from {least} to {most}, not {value!r}.") from None


def _moment(text: str | None) -> int | None:
    """A day's beginning or a moment; local time without a zone."""
    if text is None:
        return None
    try:
        return int(datetime.fromisoformat(text).astimezone().timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        raise ToolError(f"since must be a day such as 2026-05-01, not {text!r}.") from None
