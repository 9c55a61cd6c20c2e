"""The answers of `foredeck mcp`: sessions and objects, notes, memory and tasks."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from foredeck.context.tools.found import heading_of_hits, kind_of_hit, weaker
from foredeck.errors import ForedeckError, NotFound, ToolError
from foredeck.lookup.objects import number_of, version_of, version_text
from foredeck.lookup.reader import Reader, stated_memories
from foredeck.lookup.sessions import latest_sessions
from foredeck.model.figures import counted, when
from foredeck.model.names import OF_STORED, AskedPart, split_name, unlinked
from foredeck.model.quoting import block, name, one_line
from foredeck.names import Found, find_part, find_session, name_of, split_handle
from foredeck.notes.graph import Edge, Graph
from foredeck.search import SEARCHED_TYPES, SearchedType
from foredeck.search.index import Filters
from foredeck.search.searching import SearchHit, search
from foredeck.store.sessions import is_hidden, is_private, private_sessions
from foredeck.store.store import Store
from foredeck.tasks.board import Actor
from foredeck.tasks.tools import REASONS, TYPES, TaskMutate, TaskQuery
from foredeck.tasks.work import TaskWork

PART_CHARS = 20_000
MOST_HITS = 20
MOST_ROWS = 100

Status = Literal["open", "in_progress", "closed"]

Object = Annotated[
    str,
    Field(
        description="Which object: the name that foredeck_search gives it, a path, the title of a "
        "note, an id, or SESSION:@12"
    ),
]


class Answers:
    """The tools: texts, within a budget, about the project in `folder` and the store as it is now.
    All but `change_tasks` only read.

    A docstring is what clients read of a tool. A private session keeps to itself what is said in
    it: nothing here finds or reads it.
    """

    def __init__(self, reader: Reader, folder: Path, actor: Actor) -> None:
        """`actor`: who changes tasks."""
        self._reader = reader
        self._config = reader.config
        self._folder = str(folder)
        self._actor = actor

    def search(
        self,
        query: Annotated[str, Field(description="Words, names or paths to look for")],
        type: Annotated[
            SearchedType | None,
            Field(description=f"Only hits of this type: {', '.join(SEARCHED_TYPES)}"),
        ] = None,
        session: Annotated[
            str | None, Field(description="Only this session: its id or the start of one")
        ] = None,
        limit: Annotated[int, Field(ge=1, le=MOST_HITS, description="Hits at most")] = 5,
    ) -> str:
        """Find what was said, done, read or planned in any session, by its words."""
        with self._reader.store() as store, self._reader.search(store) as (index, note):
            only = None if session is None else (find_session(store, session),)
            memories = () if only else stated_memories(store, self._config, self._project)
            filters = Filters(only, type, without=private_sessions(store), memories=memories)
            result = search(store, index, query, filters, limit=limit)
            newest = " among the newest texts" if result.is_part else ""
            total = counted(len(result.hits) + max(0, result.more), "hit")
            lines = [f"{total}{newest}{weaker(result)}. {note}".rstrip()]
            for session, hits in result.groups():
                lines.append(heading_of_hits(result, session, hits))
                lines += [_hit(hit) for hit in hits]
        return "\n\n".join(lines)

    def read(
        self,
        object: Object,
        version: Annotated[
            int | None, Field(ge=1, description="An old version, by its number (default: newest)")
        ] = None,
        offset: Annotated[
            int, Field(ge=0, description="At which character to begin, in a long text")
        ] = 0,
    ) -> str:
        """The text of an object: a file, a tool's output, a chat. Old versions by number."""
        with self._reader.store() as store:
            found, part = self._visible(store, object)
            history, called = store.history(found.id), name(found.name)
            number = version or number_of(history, version_of(store, found, part))
            if not 1 <= number <= len(history):
                raise ToolError(f"{called} has versions 1 to {len(history)}, no {number}.")
            text, why = version_text(store, history[number - 1], part)
        if text is None:
            raise ToolError(f"{called} has no content at version {number}: {why}.")
        part_text = text[offset : offset + PART_CHARS]
        end = offset + len(part_text)
        more = f"; the next part: offset {end}" if end < len(text) else ""
        head = f"Version {number} of {len(history)} of {called}, characters {offset} to {end}"
        return f"{head} of {len(text)}{more}\n\n{part_text}"

    def history(self, object: Object) -> str:
        """The versions of an object, the oldest first."""
        with self._reader.store() as store:
            found, _ = self._visible(store, object)
            lines = [
                f"{number}: {when(head.time_ms)}"
                f" {(head.fields.get('provenance') or {}).get('origin') or ''}".rstrip()
                for number, head in enumerate(store.history(found.id), start=1)
            ]
        older = max(0, len(lines) - MOST_ROWS)
        left = [f"and {older} older"] if older else []
        return "\n".join([f"Versions of {name(found.name)} ({found.id}):", *left, *lines[older:]])

    def links(self, object: Object) -> str:
        """What an object refers to, and what refers to it."""
        with self._reader.store() as store:
            found, _ = self._visible(store, object)
            with self._reader.graph(store) as (graph, note):
                out = [_edge(store, graph, edge, edge.target) for edge in graph.links(found.id)]
                back = [
                    _edge(store, graph, edge, edge.source) for edge in graph.backlinks(found.id)
                ]
        parts = [
            _section("refers to", [line for line in out if line]),
            _section("is referred to by", [line for line in back if line]),
            note,
        ]
        return f"Links of {name(found.name)}:\n" + "\n".join(filter(None, parts))

    def notes(
        self, tag: Annotated[str | None, Field(description="Only notes with this tag")] = None
    ) -> str:
        """Notes and other Markdown files, all or those with a tag."""
        with self._reader.store() as store, self._reader.graph(store) as (graph, note):
            nodes = [node for node, _ in graph.markdown(tag)]
            lines = [f"- {_titled(node.title, node.path or node.id)}" for node in nodes[:MOST_ROWS]]
        more = len(nodes) - len(lines)
        ending = [f"and {more} more"] if more > 0 else []
        return "\n".join([*lines, *ending, *filter(None, [note])]) or "No notes."

    def sessions(
        self, limit: Annotated[int, Field(ge=1, le=MOST_ROWS, description="Sessions at most")] = 20
    ) -> str:
        """Sessions, the latest first: id, time, project, title. Read one as chat:ID."""
        with self._reader.store() as store:
            sessions = [session for session in latest_sessions(store) if not session.is_private]
        lines = [
            f"- {one_line(s.id)}: {when(s.last_ms)[:16]}, {one_line(s.project_name)}, "
            f"{counted(s.messages, 'message')}: {one_line(s.title) or 'untitled'}"
            for s in sessions[:limit]
        ]
        more = [f"and {len(sessions) - limit} older"] if len(sessions) > limit else []
        return "\n".join([f"{counted(len(sessions), 'session')}:", *lines, *more])

    def memory(self) -> str:
        """What the user has said should be remembered, as far as it applies here."""
        with self._reader.store() as store:
            ids = [id for id, _ in stated_memories(store, self._config, self._project)]
            heads = store.heads(ids)
        lines = [f"- {one_line(str(heads[id].fields.get('fact')))}" for id in ids if id in heads]
        return "\n".join(lines) or "Nothing is remembered that applies here."

    def tasks(
        self,
        action: Annotated[
            Literal["ready", "show", "list", "search"],
            Field(description="ready: what can be begun; show: one, by id; list; search: by words"),
        ] = "ready",
        id: Annotated[str | None, Field(description="For show: the task, as in t-k3f9")] = None,
        query: Annotated[str | None, Field(description="For search: words of the task")] = None,
        status: Annotated[Status | None, Field(description="For list: only these tasks")] = None,
        limit: Annotated[int | None, Field(ge=1, le=100, description="Tasks at most")] = None,
    ) -> str:
        """Tasks of the project: which are ready, one by id, all, or by their words."""
        given = _given(locals())
        with self._reader.store() as store:
            return TaskQuery(self._work(store)).run(given)

    def change_tasks(
        self,
        action: Annotated[
            Literal["create", "claim", "close", "dep", "update"],
            Field(description="create needs title; claim id; close id, summary; dep id, dependsOn"),
        ],
        id: Annotated[str | None, Field(description="The task, as in t-k3f9")] = None,
        title: Annotated[str | None, Field(description="What is to be done, in one line")] = None,
        description: Annotated[str | None, Field(description="More about it")] = None,
        priority: Annotated[
            int | None, Field(ge=0, le=4, description="0 is the most urgent; default 2")
        ] = None,
        type: Annotated[
            str | None,
            Field(
                description=f"Of a task: {', '.join(TYPES)}; for dep: blocks, parent-child, "
                "related, supersedes, duplicates"
            ),
        ] = None,
        labels: Annotated[list[str] | None, Field(description="Its labels")] = None,
        parent: Annotated[str | None, Field(description="The task that it is part of")] = None,
        dependsOn: Annotated[  # noqa: N803  (as in Pi's tool, whose errors name it)
            str | list[str] | None, Field(description="What must be closed before it")
        ] = None,
        add: Annotated[
            bool | None, Field(description="For dep: false removes the dependency")
        ] = None,
        status: Annotated[Status | None, Field(description="For update: its status")] = None,
        reason: Annotated[str | None, Field(description=f"For close: {', '.join(REASONS)}")] = None,
        summary: Annotated[str | None, Field(description="For close: what was done")] = None,
    ) -> str:
        """Make, claim, close, connect and change tasks of the project."""
        given = _given(locals())
        with self._reader.store() as store:
            return TaskMutate(self._work(store)).run(given)

    def _work(self, store: Store) -> TaskWork:
        work = TaskWork(store, self._project, self._actor)
        work.board.refresh()
        return work

    def _visible(self, store: Store, name: str) -> tuple[Found, AskedPart]:
        try:
            found, part = find_part(store, name)
        except NotFound:
            found, part = self._titled(store, name)
        bare, _ = split_name(name, OF_STORED, lambda _: False)
        met_in = found.session if split_handle(bare) else None
        if is_hidden(store, found.head, ()) or is_private(store, met_in):
            raise ForedeckError(f"{name!r} belongs to a private session, which nothing else reads.")
        if found.head.type == "memory":
            shown = stated_memories(store, self._config, self._project)
            if found.id not in (id for id, _ in shown):
                raise ForedeckError(f"{name!r} is not among what the user has stated.")
        return found, part

    def _titled(self, store: Store, name: str) -> tuple[Found, AskedPart]:
        with self._reader.graph(store) as (graph, _):
            return find_part(store, unlinked(name), titled=partial(graph.titled, store))

    @property
    def _project(self) -> str:
        return self._reader.project(self._folder)


def _hit(hit: SearchHit) -> str:
    entry = hit.entry
    path = f", {name(entry.path)}" if entry.path else ""
    also = f", and {hit.also} more of this" if hit.also else ""
    about = f"{kind_of_hit(entry)}{path}, {when(entry.time_ms)}{also}"
    return f"{name(hit.object)}{hit.place}: {about}\n{block(hit.passage.marked())}"


def _edge(store: Store, graph: Graph, edge: Edge, other: str) -> str:
    node, head = graph.node(other), store.head(other)
    if head is not None and is_hidden(store, head, ()):
        return ""
    title = name_of(head) if head is not None else other
    shown = _titled(title if node is None else node.title, other)
    return f"- {one_line(edge.reference.relation)}: {shown}"


def _titled(title: str, called: str) -> str:
    return f"{one_line(title)} ({name(called)})"


def _section(label: str, lines: list[str]) -> str:
    rows = lines[:MOST_ROWS]
    more = [f"and {len(lines) - len(rows)} more"] if len(lines) > len(rows) else []
    return "\n".join([f"{label}:", *(rows or ["nothing"]), *more])


def _given(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {n: value for n, value in arguments.items() if n != "self" and value is not None}
