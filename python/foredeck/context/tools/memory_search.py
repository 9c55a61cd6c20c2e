"""The tool `memory-search`: what was said, done and read, in this session and in others.

The best hit comes with its passage, the others take a line each. All have handles in this
session's index, as if it had met them, so that `activate` brings the rest. What stands in the
prompt anyway is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, cast

from foredeck.config import Config
from foredeck.context.messages.conversation import Conversation
from foredeck.context.messages.parts import SHOWING
from foredeck.context.state.handles import meet
from foredeck.context.state.session import Session
from foredeck.errors import ForedeckError, ToolError
from foredeck.model.kinds import OBJECT_TYPES
from foredeck.sources.opening import open_filesystems
from foredeck.sources.projects import folders_of_project
from foredeck.store.privacy import private_sessions
from foredeck.store.protocol import LocalStore

# Every session has the tool, and few use it: what only an answer needs is imported with it.
if TYPE_CHECKING:
    from foredeck.context.tools.asked_search import AskedSearch, SearchScope
    from foredeck.derived.follower import Follower
    from foredeck.search.index import IndexedText, SearchIndex
    from foredeck.search.searching import SearchHit

PATIENCE_S = 2.0
"""How long a question waits for the index to take in what is new. In that time it takes in some
10,000 messages; a larger store is indexed over several questions, or by `foredeck reindex`."""

CHANGING = frozenset({"write", "edit"})
"""Tools whose results hold nothing of what they did."""

InProject = Callable[[Iterable[str]], Collection[str]]
"""Those of some working folders that belong to this session's project."""


class _OutOfTime(Exception):
    """Between two batches, each of which is kept."""


def memory_search(config: Config, session: Session) -> MemorySearch | None:
    """Search as this session sees it: the tool, and a part of `task-query`."""
    if not config.tools.search:
        return None
    # An engine works on a local store; only a replay, which runs no tools, may be given another.
    store = cast(LocalStore, session.store)
    filesystems = open_filesystems(config, session.cwd)
    in_project = partial(folders_of_project, session.cwd, filesystems=filesystems)
    return MemorySearch(session, store, config.home, in_project)


class MemorySearch:
    """The tool over one session. `home`: the state folder, where the index lies."""

    name = "memory-search"

    def __init__(
        self, session: Session, store: LocalStore, home: Path, in_project: InProject
    ) -> None:
        self._session = session
        self._store = store
        self._home = home
        self._in_project = in_project

    def run(self, input: Mapping[str, Any], call: str, *, leave_out_shown: bool = True) -> str:
        """The answer, for the model. Raises `ToolError` with a text for it."""
        del call
        from foredeck.context.tools.asked_search import AskedSearch
        from foredeck.context.tools.found import NOT_UP_TO_DATE
        from foredeck.derived.file import reported
        from foredeck.derived.follower import Follower
        from foredeck.derived.registry import load_layer
        from foredeck.search.index import SearchIndex

        asked = AskedSearch.parse(input)
        self._session.take_up_newest()
        try:
            with Follower(self._store, load_layer("search"), self._home) as follower:
                is_current = _catch_up(self._store, follower)
                with reported(follower.path):
                    text = self._answer(asked, SearchIndex(follower.db), leave_out_shown)
        except ToolError:
            raise
        except ForedeckError as error:
            raise ToolError(f"Search is not available: {error}") from error
        if not self._session.workspace.empty:
            self._session.workspace.commit()  # the handles that it names must outlive a crash
        return text if is_current else f"{text}\n{NOT_UP_TO_DATE}"

    def _answer(self, asked: AskedSearch, index: SearchIndex, leave_out_shown: bool) -> str:
        from foredeck.context.tools.found import describe, nothing_found
        from foredeck.search.index import Filters
        from foredeck.search.searching import search

        filters = Filters(
            self._sessions(asked.scope, index),
            asked.type,
            asked.tool,
            asked.path,
            asked.since_ms,
            self._task(asked.task),
            private_sessions(self._store, self._session.family),
        )
        in_view = _InView(self._session)
        found = search(
            self._store,
            index,
            asked.query,
            filters,
            limit=asked.limit,
            message_range=asked.message_range,
            leave_out=in_view if leave_out_shown else None,
        )
        if not found.hits:
            return nothing_found(asked, in_view.count)
        handles = [self._handle(hit) for hit in found.hits]
        return describe(found, handles, in_view.count)

    def _sessions(self, scope: SearchScope, index: SearchIndex) -> tuple[str, ...] | None:
        if scope == "session":
            return (self._session.id,)
        if scope == "all":
            return None
        folders = index.folders()
        ours = set(self._in_project(set(folders.values())))
        return tuple(session for session, folder in folders.items() if folder in ours)

    def _task(self, name: str | None) -> str | None:
        """The id of a task. Raises `ToolError`."""
        tasks = self._session.tasks
        if name is None or tasks is None:
            return name
        tasks.work.board.refresh()
        return tasks.work.find(name).id

    def _handle(self, hit: SearchHit) -> str:
        """What the model names a hit by: its handle here, else the object's id."""
        object_id = self._opened(hit)
        known = self._session.index.by_object.get(object_id)
        if known is None:
            head = self._store.head(object_id)
            if head is not None and head.type == "task" and self._session.tasks is not None:
                return self._session.tasks.work.board.known_name(object_id)
            if head is None or head.type not in OBJECT_TYPES:
                return object_id
            known = meet(self._session, head).ordinal
        turn = "" if hit.entry.turn is None else f" turn {hit.entry.turn}"
        return f"@{known}{turn}"

    def _opened(self, hit: SearchHit) -> str:
        """The object to activate for a hit: of a change the file, since what is asked for stands
        there and not in the word of success that the call was answered with."""
        if hit.entry.role in CHANGING:
            call = self._store.head(hit.object)
            files: list[str] = [] if call is None else call.fields.get("file_refs") or []
            if len(files) == 1:
                return files[0]
        return hit.object


def _catch_up(store: LocalStore, follower: Follower) -> bool:
    """Take in what is new, here and on other machines; whether that was all of it."""
    until = monotonic() + PATIENCE_S

    def look_at_the_clock() -> None:
        if monotonic() > until:
            raise _OutOfTime

    try:
        has_all = store.fetch_all(look_at_the_clock)
        follower.catch_up(look_at_the_clock)
    except _OutOfTime:
        return False
    return has_all


class _InView:
    """Tells what stands in the prompt, and counts what was asked about that does."""

    def __init__(self, session: Session) -> None:
        self.count = 0
        self._session = session
        self._shown = _shown(session, session.branch.conversation)
        self._has_all_chat = not (session.compactions or session.branch.edits.stretches)

    def __call__(self, entry: IndexedText) -> bool:
        of_chat = entry.type == "message" and entry.session == self._session.id
        in_view = (of_chat and self._has_all_chat) or entry.document in self._shown
        self.count += in_view
        return in_view


def _shown(session: Session, conversation: Conversation) -> set[str]:
    """The ids of tool calls and files whose newest content can be read, and of the observations and
    reflections that stand in place of chat."""
    index, shown = session.index, {*session.branch.edits.stretches}
    for part, item in zip(conversation.parts, conversation.items, strict=True):
        if part.form not in SHOWING:
            continue
        called = index.by_label.get(item.call_id) if item.kind == "result" else None
        if called is not None:
            shown.add(index.entries[called].object)
        entry = None if part.subject is None else index.entries.get(part.subject)
        if entry is not None and part.version == entry.newest.version:
            shown.add(entry.object)
    return shown
