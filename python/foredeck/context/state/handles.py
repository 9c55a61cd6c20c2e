"""Names of objects: `@12`, a path, a nickname, a note's title, an id or its beginning; with a
version or a part."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

from foredeck.context.state.index import Entry
from foredeck.context.state.objects import Objects
from foredeck.errors import StoreUnavailable, ToolError
from foredeck.model.identity import SHORTEST
from foredeck.model.kinds import OBJECT_TYPES
from foredeck.model.names import OF_A_SESSION, AskedPart, split_name, unlinked
from foredeck.model.quoting import name as quote
from foredeck.model.sources import filesystem_source, is_address, is_pointer, pointer_label
from foredeck.names import (
    at_handle,
    label_of,
    listed,
    nearest,
    sessions_called,
    several,
    split_handle,
    with_nickname,
    with_prefix,
)
from foredeck.notes import StillReading
from foredeck.notes.parsed import MARKDOWN
from foredeck.sources.tool_calls import tool_path
from foredeck.store.protocol import Head
from foredeck.store.sessions import is_hidden, is_private

if TYPE_CHECKING:  # imported with the first question, by `notes.live`
    from foredeck.notes.graph import Graph, Node

_HANDLE = re.compile(r"^@?(\d+)$")

_AS_GIT_SHOWS = re.compile(r"[\w./~^@{}-]+:[^:\s]+")

# Looking for the start of an id reads the heads of all objects: a mere word is not looked for.
_LIKE_AN_ID = re.compile(r"(?=.*\d)[\w:|/-]+")


@dataclass(frozen=True, slots=True)
class Wanted(AskedPart):
    """An object in the index, with the version or part asked for."""

    _: KW_ONLY
    entry: Entry

    @property
    def is_part(self) -> bool:
        """Whether it asks for less than the whole object as the session has met it."""
        return (self.slice, self.section, self.field, self.hash) != (None,) * 4


def resolve_name(objects: Objects, text: str, *, beyond: bool = False) -> Wanted:
    """Resolves a name, which may end in `v3`, `call 5`, `#heading`, `::field`, `turns 3-7`,
    `message 93`, `chars 1-900` or `at 3f2a91bc`, or be a link (`[[name#heading|label]]`).

    `beyond` adds objects new to the session; the caller commits. Raises `ToolError` that lists
    candidates if none or several match.
    """
    name, part = unlinked(text), AskedPart()
    if not name:
        raise ToolError("Say which object: a handle such as @12, a path, or a nickname.")
    if not is_address(name):  # what follows a # there belongs to it
        name, part = split_name(name, OF_A_SESSION, lambda whole: _is_known(objects, whole, beyond))
    version, call, section = part.version, part.call, part.section
    entry = _entry(objects, name, beyond)
    return Wanted(version, call, part.slice, section, part.field, part.hash, entry=entry)


def meet(objects: Objects, head: Head) -> Entry:
    """Adds another session's object to the index."""
    ordinal = objects.index.by_object.get(head.id)
    if ordinal is not None:
        return objects.index.entries[ordinal]
    fields = head.fields
    label = label_of(fields) or fields.get("provider_call_id") or ""
    return objects.see_head(head, "" if label in objects.index.by_label else label)


@contextmanager
def asked_graph(objects: Objects) -> Iterator[Graph]:
    """Opens the graph, up to date; raises `ToolError` if there is none yet."""
    if objects.open_graph is None:
        raise ToolError("References cannot be looked up here.")
    try:
        with objects.open_graph() as graph:
            yield graph
    except StillReading as error:
        raise ToolError("References are still being read for the first time: ask again.") from error
    except StoreUnavailable as error:
        raise ToolError(f"References cannot be looked up: {error}.") from error


def name_of_node(objects: Objects, node: Node) -> str:
    """A path, relative below the session's folder; else a handle or id."""
    ordinal = objects.index.by_object.get(node.id)
    if node.path is None:
        return node.id if ordinal is None else f"@{ordinal}"
    head = objects.workspace.head(node.id)
    source = None if head is None else filesystem_source(head.fields)
    path = node.path if source is None else objects.source.agent_path(source)
    if objects.info.cwd and PurePath(path).is_relative_to(objects.info.cwd):
        return str(PurePath(path).relative_to(objects.info.cwd))
    return path


def titled(objects: Objects, name: str, known: Container[str] | None = None) -> Head | None:
    """The Markdown file with this title, alias or stem. Raises `ToolError` for several, and if the
    graph lags and none matches."""
    if objects.open_graph is None:
        return None
    with asked_graph(objects) as graph:
        matches = [n for n in graph.named(name) if known is None or n.id in known]
    nodes = [n for n in matches if _is_below(n, objects.info.cwd) or _is_markdown(n)]
    if len(nodes) > 1:
        nodes = [n for n in nodes if _is_below(n, objects.info.cwd)] or nodes
    if len(nodes) > 1:
        names = [quote(name_of_node(objects, node)) for node in nodes]
        raise ToolError(several(name, "files", names, "Use a path."))
    return objects.store.head(nodes[0].id) if nodes else None


def _is_known(objects: Objects, name: str, beyond: bool) -> bool:
    index = objects.index
    if name in index.by_object or name in index.by_label or _by_path(objects, name) is not None:
        return True
    return beyond and _stored(objects, name) is not None


def _entry(objects: Objects, name: str, beyond: bool) -> Entry:
    index = objects.index
    if handle := _HANDLE.match(name):
        entry = index.entries.get(int(handle[1]))
        if entry is None:
            raise ToolError(f"There is no {name}; handles go from @1 to @{len(index)}.")
        return entry
    ordinal = index.by_object.get(name) or index.by_label.get(name) or _by_nickname(objects, name)
    if ordinal is None and beyond and is_pointer(name):
        return _meet_pointer(objects, name)
    if ordinal is None:
        ordinal = _by_path(objects, name) or index.by_object.get(_file_id(objects, name))
    if ordinal is None:
        head = _stored(objects, name) if beyond else None
        return _by_part(objects, name, beyond) if head is None else meet(objects, head)
    if index.by_label.get(name, ordinal) != ordinal:
        # A provider's id that was given out more than once.
        same = [e for e in index.entries.values() if name in (e.object, e.label)]
        raise _ambiguous(objects, name, same)
    return index.entries[ordinal]


def _by_path(objects: Objects, name: str) -> int | None:
    return objects.index.by_label.get(str(PurePath(objects.info.cwd) / name))


def _file_id(objects: Objects, name: str) -> str:
    """A path as the host's `read` takes it: relative, absolute or `~`."""
    return objects.source.identify(tool_path(name), objects.info.cwd or None)[0]


def _stored(objects: Objects, name: str) -> Head | None:
    """The stored object with this nickname, id, path or `SESSION:@12`, unless it is private. Raises
    `ToolError` for several."""
    store, handle = objects.store, split_handle(name)
    if handle is not None and handle[0] is not None:
        owner = _one_id(handle[0], sessions_called(store, handle[0]))
        is_shown = owner in objects.info.family or not is_private(store, owner)
        head = at_handle(store, owner, handle[1]) if owner and is_shown else None
    else:
        head = with_nickname(store, name) or store.head(name)
        head = head or store.head(_file_id(objects, name))
        if head is not None and head.type not in OBJECT_TYPES:
            return None
    return None if head is None or is_hidden(store, head, objects.info.family) else head


def _stored_with_prefix(objects: Objects, name: str) -> Head | None:
    """The one visible object whose id begins so. Raises `ToolError` for several."""
    if _LIKE_AN_ID.fullmatch(name) is None:
        return None
    heads = {head.id: head for head in with_prefix(objects.store, OBJECT_TYPES, name)}
    visible = [
        id for id, head in heads.items() if not is_hidden(objects.store, head, objects.info.family)
    ]
    match = _one_id(name, visible)
    return None if match is None else heads[match]


def _one_id(name: str, ids: list[str]) -> str | None:
    if len(ids) > 1:
        raise ToolError(several(name, "ids", map(quote, ids), "Give more of the id."))
    return ids[0] if ids else None


def _meet_pointer(objects: Objects, name: str) -> Entry:
    """The entry behind `git:HEAD~3:src/a.py`, a URL and the like; raises `ToolError` if it cannot
    be read."""
    document = objects.source.point(name, objects.info.cwd or None)
    label = pointer_label(document.model_dump(exclude={"content"}))
    head = objects.workspace.head(document.id)
    if head is not None:
        return objects.see_head(head, label)
    objects.workspace.put(document)
    entry = objects.see_document(document, label)
    objects.workspace.commit()  # whoever asks reads it from the store
    return entry


def _by_nickname(objects: Objects, name: str) -> int | None:
    head = with_nickname(objects.store, name)
    return None if head is None else objects.index.by_object.get(head.id)


def _by_part(objects: Objects, name: str, beyond: bool) -> Entry:
    """The one object whose path ends with `name`, whose id begins with it, or whose title it is;
    the session's own first."""
    names = [(entry, objects.name_of(entry)) for entry in objects.index.entries.values()]
    tail = "/" + name.lstrip("./")
    matches = [entry for entry, label in names if entry.type == "file" and label.endswith(tail)]
    if not matches and len(name) >= SHORTEST:
        matches = [e for e, label in names if e.object.startswith(name) or label.startswith(name)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise _ambiguous(objects, name, matches)
    ids = None if beyond else objects.index.by_object
    head = titled(objects, name, ids)
    if head is None and beyond:
        head = _stored_with_prefix(objects, name)
    if head is not None:
        return meet(objects, head)
    near = _nearest(names, name)
    hint = f" Nearest:{listed(_names(objects, near))}" if near else " Handles look like @12."
    if not near and _AS_GIT_SHOWS.fullmatch(name):
        hint = f" A file as of a commit goes by git:{name}."
    raise ToolError(f"No object is called {name!r}.{hint.rstrip()}")


def _ambiguous(objects: Objects, name: str, found: list[Entry]) -> ToolError:
    return ToolError(several(name, "objects", _names(objects, found), "Use the handle."))


def _nearest(named: list[tuple[Entry, str]], name: str) -> list[Entry]:
    names: dict[str, Entry] = {}
    for entry, label in named:
        if label:
            names[label] = entry
            names.setdefault(PurePath(label).name, entry)
    return nearest(name, names)


def _names(objects: Objects, entries: list[Entry]) -> list[str]:
    return [f"@{e.ordinal} {quote(objects.name_of(e) or e.object)}" for e in entries]


def _is_markdown(node: Node) -> bool:
    return node.path is not None and node.path.rpartition(".")[2].lower() in MARKDOWN


def _is_below(node: Node, folder: str) -> bool:
    return bool(folder) and node.path is not None and PurePath(node.path).is_relative_to(folder)
