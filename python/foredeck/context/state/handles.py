"""What the model may call an object: `@12`, a path, a nickname, a note's title, an id, or the start
of one; and the version or the part of it that it asks for."""

from __future__ import annotations

import difflib
import re
from collections.abc import Container, Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

from foredeck.context.state.index import Entry
from foredeck.context.state.objects import Objects
from foredeck.errors import StoreUnavailable, ToolError
from foredeck.model.figures import some_of
from foredeck.model.kinds import OBJECT_TYPES
from foredeck.model.places import OF_A_SESSION, AskedPart, split_name, unlinked
from foredeck.model.quoting import name as quote
from foredeck.model.sources import filesystem_source, is_address, is_pointer, pointer_label
from foredeck.names import (
    at_handle,
    label_of,
    sessions_called,
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
_LIKE_AN_ID = re.compile(r"(?=.*\d)[\w:|/-]{8,}")

CANDIDATES = 5
"""How many are named where several fit."""

MIN_PREFIX = 6


@dataclass(frozen=True, slots=True)
class Wanted(AskedPart):
    """An object of the session's index, and the version or the part of it that is asked for."""

    _: KW_ONLY
    entry: Entry

    @property
    def is_part(self) -> bool:
        """Whether less, or something else, than an object as this session has met it is asked
        for."""
        return (self.slice, self.section, self.field, self.hash) != (None,) * 4


def resolve_name(objects: Objects, text: str, *, beyond: bool = False) -> Wanted:
    """The object that `text` names, with what may follow the name: `v3`, `call 5`, `#heading`,
    `::field`, `turns 3-7`, `message 93`, `chars 1-900` or `at 3f2a91bc`; also as a link writes it
    (`[[name#heading|label]]`).

    `beyond`: an object that is stored, but that this session has not met, joins its index, so that
    the model can refer to it from then on; the caller commits that.
    Raises `ToolError` that lists the nearest candidates where none or several fit.
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
    """The entry of an object that another session has met. It takes no label from one of ours."""
    known = objects.index.by_object.get(head.id)
    if known is not None:
        return objects.index.entries[known]
    fields = head.fields
    label = label_of(fields) or fields.get("provider_call_id") or ""
    return objects.see_head(head, "" if label in objects.index.by_label else label)


@contextmanager
def asked_graph(objects: Objects) -> Iterator[Graph]:
    """The graph, up to date. Raises `ToolError` where there is none, or not yet."""
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
    """What the model can call an object: a file by its path, from the session's folder where it is
    below that; anything else by its handle or its id."""
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
    """The Markdown file with this title, alias, or name without its extension, wherever it is, or
    other file of this name below the session's folder; None for none.

    `known`: ids of the only objects that count. Of several those below the session's folder go
    first. Raises `ToolError` that lists them where there are still several, and where none was
    found while the graph is not up to date.
    """
    if objects.open_graph is None:
        return None
    with asked_graph(objects) as graph:
        named = [n for n in graph.named(name) if known is None or n.id in known]
    nodes = [n for n in named if _is_below(n, objects.info.cwd) or _is_markdown(n)]
    if len(nodes) > 1:
        nodes = [n for n in nodes if _is_below(n, objects.info.cwd)] or nodes
    if len(nodes) > 1:
        shown = some_of([quote(name_of_node(objects, node)) for node in nodes], CANDIDATES)
        raise ToolError(f"{name!r} is the name of several: {shown}. Use a path.")
    return objects.store.head(nodes[0].id) if nodes else None


def _is_known(objects: Objects, name: str, beyond: bool) -> bool:
    """Whether an object has exactly this name, whatever signs are in it."""
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
    """The id of the file that a path names, as the host's `read` takes it: relative to the
    session's folder, absolute, or from `~`; through a link, or as a container has it."""
    return objects.source.identify(tool_path(name), objects.info.cwd or None)[0]


def _stored(objects: Objects, name: str) -> Head | None:
    """The stored object with this nickname, full id, path, or `SESSION:@12`, unless another session
    keeps it to itself; None for none.

    Raises `ToolError` where the start of a session's id fits several.
    """
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
    """The one stored object whose id begins with `name`; None for none. Raises `ToolError` where
    several do."""
    if _LIKE_AN_ID.fullmatch(name) is None:
        return None
    heads = {head.id: head for head in with_prefix(objects.store, OBJECT_TYPES, name)}
    shown = [
        id for id, head in heads.items() if not is_hidden(objects.store, head, objects.info.family)
    ]
    found = _one_id(name, shown)
    return None if found is None else heads[found]


def _one_id(name: str, ids: list[str]) -> str | None:
    if len(ids) > 1:
        shown = some_of([*map(quote, ids)], CANDIDATES)
        raise ToolError(f"{name!r} begins several ids: {shown}. Give more of the id.")
    return ids[0] if ids else None


def _meet_pointer(objects: Objects, name: str) -> Entry:
    """The entry of what a name like `git:HEAD~3:src/a.py` or a URL points to.

    Raises `ToolError` where it cannot be found, or git cannot read it.
    """
    document = objects.source.point(name, objects.info.cwd or None)
    label = pointer_label(document.model_dump(exclude={"content"}))
    known = objects.workspace.head(document.id)
    if known is not None:
        return objects.see_head(known, label)
    objects.workspace.put(document)
    entry = objects.see_document(document, label)
    objects.workspace.commit()  # whoever asks reads it from the store
    return entry


def _by_nickname(objects: Objects, name: str) -> int | None:
    head = with_nickname(objects.store, name)
    return None if head is None else objects.index.by_object.get(head.id)


def _by_part(objects: Objects, name: str, beyond: bool) -> Entry:
    """An object whose path ends, or whose id begins, with `name`, or whose title it is, if there is
    only one: of this session's, or else of all."""
    named = [(entry, objects.name_of(entry)) for entry in objects.index.entries.values()]
    tail = "/" + name.lstrip("./")
    found = [entry for entry, label in named if entry.type == "file" and label.endswith(tail)]
    if not found and len(name) >= MIN_PREFIX:
        found = [e for e, label in named if e.object.startswith(name) or label.startswith(name)]
    if len(found) == 1:
        return found[0]
    if found:
        raise _ambiguous(objects, name, found)
    known = None if beyond else objects.index.by_object
    head = titled(objects, name, known)
    if head is None and beyond:
        head = _stored_with_prefix(objects, name)
    if head is not None:
        return meet(objects, head)
    near = _nearest(named, name)
    hint = f" Nearest: {_list(objects, near)}." if near else " Handles look like @12."
    if not near and _AS_GIT_SHOWS.fullmatch(name):
        hint = f" A file as of a commit goes by git:{name}."
    raise ToolError(f"No object is called {name!r}.{hint}")


def _ambiguous(objects: Objects, name: str, found: list[Entry]) -> ToolError:
    return ToolError(f"{name!r} fits several objects: {_list(objects, found)}. Use the handle.")


def _nearest(named: list[tuple[Entry, str]], name: str) -> list[Entry]:
    names: dict[str, Entry] = {}
    for entry, label in named:
        if label:
            names[label] = entry
            names.setdefault(PurePath(label).name, entry)
    close = difflib.get_close_matches(name, names, n=CANDIDATES, cutoff=0.5)
    unique = {names[match].ordinal: names[match] for match in close}
    return list(unique.values())


def _list(objects: Objects, entries: list[Entry]) -> str:
    named = [f"@{e.ordinal} {quote(objects.name_of(e) or e.object)}" for e in entries]
    return some_of(named, CANDIDATES)


def _is_markdown(node: Node) -> bool:
    return node.path is not None and node.path.rpartition(".")[2].lower() in MARKDOWN


def _is_below(node: Node, folder: str) -> bool:
    return bool(folder) and node.path is not None and PurePath(node.path).is_relative_to(folder)
