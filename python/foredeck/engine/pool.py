"""The head's section of the project's notes that the chat does not show."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple

from foredeck.config import Config
from foredeck.context.head import pool_line, pool_rest
from foredeck.context.state.chat import Chat
from foredeck.context.state.handles import name_of_node
from foredeck.context.state.objects import Objects
from foredeck.context.state.session import SessionFolder
from foredeck.derived.layer import TimeBudget
from foredeck.errors import StoreUnavailable
from foredeck.model.quoting import name as named
from foredeck.model.quoting import one_line
from foredeck.notes import live_graph
from foredeck.notes.parsed import NoteRule
from foredeck.sources.projects import checkout_of
from foredeck.store.protocol import Head

if TYPE_CHECKING:
    from foredeck.notes.graph import Graph, Node

log = logging.getLogger(__name__)

FOLDERS = 3
"""Folders named for files without a line."""

NAME_CHARS = 80
"""Of a title or tag."""

DESCRIBED = 200
"""Newest notes with title and tags; the rest of a large vault is counted."""

TAGS = 3
"""Tags of a note."""


class PoolObject(NamedTuple):
    """A note as the section names it."""

    id: str
    time_ms: int
    """When its newest version was stored."""
    name: str
    """The model's name of it."""
    about: str = ""
    """Its title and tags."""


class PoolSection:
    """See `context/head.py`."""

    def __init__(
        self, config: Config, objects: Objects, chat: Chat, session_folder: SessionFolder
    ) -> None:
        self._config = config
        self._has_activate = config.tools.context
        how = " (activate PATH to read one)" if self._has_activate else ""
        self.name = f"this project has{how}"
        self._objects = objects
        self._chat = chat
        self._session_folder = session_folder

    def text(self, limit: int) -> str:
        try:
            objects = self._found()
        except StoreUnavailable as error:
            # Said at a later rewrite: the call at hand does not wait.
            log.info("the head names nothing of the project yet: %s", error)
            return ""
        lines: list[str] = []
        for number, each in enumerate(objects):
            line = pool_line(each.name, each.about)
            rest = self._rest(objects[number + 1 :])
            if len("\n".join([*lines, line, rest])) > limit:
                break
            lines.append(line)
        if not lines:
            return ""
        return "\n".join([*lines, self._rest(objects[len(lines) :])]).removesuffix("\n")

    def follow(self, wait: TimeBudget) -> None:
        """Brings the graph of notes nearer to the store."""
        try:
            with (
                wait.spent() as left_s,
                live_graph(self._objects.store, self._config.home, left_s, chats=False),
            ):
                pass
        except StoreUnavailable as error:
            log.info("the graph of notes is not up to date: %s", error)

    def _rest(self, left: Sequence[PoolObject]) -> str:
        if not left:
            return ""
        counts = Counter(each.name.rpartition("/")[0] or "." for each in left)
        folders = sorted(counts, key=lambda folder: (-counts[folder], folder))
        more = len(folders) > FOLDERS
        return pool_rest(len(left), folders[:FOLDERS], more=more, listed=self._has_activate)

    def _found(self) -> list[PoolObject]:
        in_chat = self._in_chat()
        notes = (note for note in self._notes() if note.id not in in_chat)
        return sorted(notes, key=lambda note: (-note.time_ms, note.name))

    def _in_chat(self) -> set[str]:
        entries, ids = self._objects.index.entries, set[str]()
        for ordinal, holders in self._chat.branch.plan.holders.items():
            if holders and (entry := entries.get(ordinal)) is not None:
                ids.add(entry.object)
                head = self._objects.workspace.head(entry.object)
                ids.update((head.fields.get("file_refs") or ()) if head else ())
        return ids

    def _notes(self) -> Iterator[PoolObject]:
        """Notes in the project; of copies in worktrees, the local one."""
        with self._graph() as graph:
            markdown = graph.markdown()
            if not markdown:
                return
            places, rule = self._places(), self._rule()
            here: dict[str, tuple[int, str]] = {}
            for node, kind in markdown:
                place = _place(node, places)
                if place is not None and rule.is_note(node.path or "", kind):
                    here[node.id] = place
            heads = self._objects.store.heads(here)
            paths: set[str] = set()
            notes: list[tuple[Head, Node]] = []
            for node in sorted((n for n, _ in markdown if n.id in heads), key=lambda n: here[n.id]):
                if here[node.id][1] not in paths:
                    paths.add(here[node.id][1])
                    notes.append((heads[node.id], node))
            notes.sort(key=lambda note: -note[0].time_ms)
            for head, node in notes[:DESCRIBED]:
                yield self._named(head, node, graph.tags_of(node.id)[:TAGS])
            for head, node in notes[DESCRIBED:]:
                yield PoolObject(node.id, head.time_ms, named(here[node.id][1]))

    def _graph(self) -> AbstractContextManager[Graph]:
        wait_s = self._config.opening_s
        return live_graph(self._objects.store, self._config.home, wait_s, chats=False)

    def _rule(self) -> NoteRule:
        folders = self._config.notes.folders
        if not self._objects.info.is_live:
            return NoteRule(folders, lambda _folder: None)
        filesystems = self._session_folder.filesystems
        return NoteRule(folders, lambda folder: checkout_of(folder, filesystems))

    def _places(self) -> list[str]:
        cwd = self._objects.info.cwd
        if not self._objects.info.is_live:
            return [cwd]
        root = self._session_folder.project.root
        return list(dict.fromkeys((cwd, root)))

    def _named(self, head: Head, node: Node, tags: Sequence[str]) -> PoolObject:
        name = name_of_node(self._objects, node)
        stem = PurePath(name).stem
        title = [one_line(node.title)[:NAME_CHARS]] if node.title not in ("", stem) else []
        about = " ".join([*title, *(f"#{one_line(tag)[:NAME_CHARS]}" for tag in tags)])
        return PoolObject(node.id, head.time_ms, named(name), about)


def make_pool(
    config: Config, objects: Objects, chat: Chat, session_folder: SessionFolder, wait: TimeBudget
) -> PoolSection | None:
    """The head's section; None if off."""
    if "notes" not in config.head.shows or not config.head.tokens:
        return None
    section = PoolSection(config, objects, chat, session_folder)
    section.follow(wait)
    return section


def _place(node: Node, places: Sequence[str]) -> tuple[int, str] | None:
    for number, place in enumerate(places):
        if node.path is not None and PurePath(node.path).is_relative_to(place or "/"):
            return number, str(PurePath(node.path).relative_to(place or "/"))
    return None
