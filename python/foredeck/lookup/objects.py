"""Finds stored objects and their versions, and says whether files can be checked in place."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from foredeck.config import Config
from foredeck.context.state.descriptions import nicknames
from foredeck.context.state.stored_chat import render_chat
from foredeck.context.wording import WHY_NO_CONTENT
from foredeck.errors import NotFound, ToolError
from foredeck.model.documents import ChatDocument, Document, session_of
from foredeck.model.kinds import OBJECT_TYPES
from foredeck.model.memory import MemoryDocument
from foredeck.model.names import AskedPart
from foredeck.model.sources import history_source, path_of
from foredeck.names import Found, find_object, in_histories, name_of
from foredeck.notes.named_parts import field_text
from foredeck.sources.filesystem import open_filesystems
from foredeck.sources.looking import Volumes, is_orphaned
from foredeck.sources.snapshots import MOVED_FROM, tool_call_of, version_ms
from foredeck.store.protocol import Head
from foredeck.store.store import Store

FIELDS = ("tool", "file_type", "harness")
"""Each object has at most one."""


def find_objects(
    store: Store,
    types: Iterable[str] = OBJECT_TYPES,
    *,
    contains: str = "",
    status: str | None = None,
    session: str | None = None,
    fields: Mapping[str, str | None] | None = None,
) -> list[Head]:
    """Objects, newest first.

    `contains`: in their list name; `session`: with them in its index.
    """
    conditions = {name: value for name, value in (fields or {}).items() if value is not None}
    heads = [head for type in types for head in store.query(type)]
    if session is not None:
        members = store.query("member", {"session": session})
        inside = {member.fields["object"] for member in members}
        heads = [head for head in heads if head.id in inside]
    matches = (
        head
        for head in heads
        if contains.casefold() in name_of(head).casefold()
        and (status is None or status_of(head) == status)
        and all(head.fields.get(name) == value for name, value in conditions.items())
    )
    return sorted(matches, key=version_ms, reverse=True)


def status_of(head: Head) -> str | None:
    return head.fields.get("status") or head.fields.get("state")


def listed(head: Head) -> dict[str, Any]:
    """An object in a list."""
    return {
        "object": head.id,
        "type": head.type,
        "name": name_of(head),
        "time_ms": version_ms(head),
        "status": status_of(head),
        "chars": head.fields.get("char_count"),
    }


def listed_in_full(store: Store, heads: Iterable[Head]) -> list[dict[str, Any]]:
    """Objects for programs, with nicknames and searchable fields."""
    names = nicknames(store)
    return [
        listed(head)
        | {"nickname": names.get(head.id)}
        | {name: head.fields.get(name) for name in FIELDS}
        for head in heads
    ]


# Versions; a file has an object per name


WHOLE = AskedPart()


def version_text(store: Store, head: Head, part: AskedPart = WHOLE) -> tuple[str | None, str]:
    """Text of a version or part; or None and why. Raises `ForedeckError`."""
    text, why = _content(store, head, part)
    if part.slice is None or part.slice.unit != "char" or text is None:
        return text, why
    if not 1 <= part.slice.first <= min(part.slice.last, len(text)):
        return None, f"it has no {part.slice}, but chars 1-{len(text)}"
    return text[part.slice.first - 1 : part.slice.last], why


def numbered(found: Found, history: Sequence[Head], number: int) -> Head:
    """Version by number, from 1. Raises `NotFound`."""
    if not 1 <= number <= len(history):
        raise NotFound(f"{found.name} has no version {number}; it has 1 to {len(history)}.")
    return history[number - 1]


def number_of(history: Sequence[Head], version: Head) -> int:
    """Number of a version, from 1."""
    return next(n for n, head in enumerate(history, start=1) if head.token == version.token)


def version_of(store: Store, found: Found, part: AskedPart) -> Head:
    """The requested version, by default the newest. Raises `NotFound`."""
    if part.hash is None:
        return found.head
    for head in reversed(store.history(found.id)):
        if str(head.fields.get("text_hash") or "").startswith(part.hash):
            return head
    raise NotFound(f"no version of {found.name} has a hash that begins {part.hash}.")


@dataclass(frozen=True, slots=True)
class Version:
    """A version; `number` counts its own history from 1."""

    number: int
    head: Head


@dataclass(frozen=True, slots=True)
class Stretch:
    """A file's versions under one name."""

    found: Found
    versions: list[Version]


def stretches(store: Store, found: Found) -> list[Stretch]:
    """A file's stretches in time order: histories, former names, this one, later names."""
    own = Stretch(found, _versions(store, found.id))
    visited = {found.id}
    before = list(_before(store, own, visited))
    heads = [head for each in (*before, own) for head in in_histories(store, each.found)]
    histories = [Stretch(Found(head), _versions(store, head.id)) for head in heads]
    return [*histories, *reversed(before), own, *_after(store, own, visited)]


def versions_until_now(store: Store, found: Found) -> list[Head]:
    """A file's versions in time order, across names; equal calls of several histories count
    once."""
    versions: dict[tuple[object, ...], Head] = {}
    for stretch in stretches(store, found):
        for head in (version.head for version in stretch.versions):
            source = history_source(head.fields)
            call = tool_call_of(head) if source else None
            versions.setdefault(
                (call, head.view(Document).text_hash) if call else (head.token, head.id), head
            )
        if stretch.found.id == found.id:
            break
    return sorted(versions.values(), key=version_ms)


def _content(store: Store, head: Head, part: AskedPart) -> tuple[str | None, str]:
    if part.field is not None:
        document = store.get(head.id, Document, head.token)
        try:
            return field_text(document, part.field, name_of(head), store.blob), ""
        except ToolError as error:
            raise NotFound(str(error)) from None
    if head.type == "chat":
        session = session_of(head.view(ChatDocument).session_ref)
        turn_slice = part.slice if part.slice and part.slice.unit != "char" else None
        text = render_chat(store, session, head.view(ChatDocument).turn_count, turn_slice)
        return (text, "") if text or turn_slice is None else (None, f"it has no {turn_slice}")
    if head.type == "task":
        return _task(store, head), ""
    if head.type == "memory":
        entry = head.view(MemoryDocument)
        return "\n".join(filter(None, (entry.fact, entry.native))), ""
    document = store.get(head.id, Document, head.token)
    if document is not None and document.content is not None:
        return document.content, ""
    state = str(head.fields.get("state") or "")
    if head.fields.get("moved_to"):
        return None, "it was moved"
    if head.fields.get("images"):
        return None, "it is an image"
    why = WHY_NO_CONTENT.get(state, f"a {head.type} such as this has none")
    return None, why if state != "deleted" else why + _last_text(store, head)


def _last_text(store: Store, deleted: Head) -> str:
    """The last earlier version with text; may be empty."""
    history = store.history(deleted.id)
    before = history[: number_of(history, deleted) - 1]
    numbers = [n for n, head in enumerate(before, start=1) if head.fields.get("text_hash")]
    return f"; an older version may be had, such as version {numbers[-1]}" if numbers else ""


def _task(store: Store, head: Head) -> str:
    fields = head.fields
    document = store.get(head.id, Document, head.token)
    places = [
        f"{fields['title']} ({fields['status']})",
        fields.get("summary"),
        document and document.content,
    ]
    return "\n\n".join(text for text in places if text)


def _before(store: Store, stretch: Stretch, seen: set[str]) -> Iterator[Stretch]:
    """Nearest first; a name may have been taken repeatedly."""
    for version in reversed(stretch.versions):
        for id in _origins(stretch.versions, version):
            if id in seen:
                continue
            seen.add(id)
            until = [v for v in _versions(store, id) if v.head.time_ms <= version.head.time_ms]
            if until:
                earlier = Stretch(find_object(store, id, stretch.found.session), until)
                yield earlier
                yield from _before(store, earlier, seen)


def _after(store: Store, stretch: Stretch, seen: set[str]) -> Iterator[Stretch]:
    for version in stretch.versions:
        id = version.head.fields.get("moved_to")
        if id is None or id in seen:
            continue
        seen.add(id)
        since = [v for v in _versions(store, id) if v.head.time_ms >= version.head.time_ms]
        if since:
            later = Stretch(find_object(store, id, stretch.found.session), since)
            yield later
            yield from _after(store, later, seen)


def _versions(store: Store, id: str) -> list[Version]:
    return [Version(number, head) for number, head in enumerate(store.history(id), start=1)]


def _origins(versions: Sequence[Version], version: Version) -> list[str]:
    before = next((v for v in versions if v.number == version.number - 1), None)
    carried = set() if before is None else set(_moved_from(before.head))
    return [id for id in _moved_from(version.head) if id not in carried]


def _moved_from(head: Head) -> list[str]:
    references = (head.fields.get("provenance") or {}).get("parent_refs") or ()
    return [ref.removeprefix(MOVED_FROM) for ref in references if ref.startswith(MOVED_FROM)]


# Whether files can be checked in place


TrackingState = Literal["tracked", "orphaned"]

ORPHANED = "orphaned: it cannot be looked at where it was, and its last version stays"


class Tracking:
    """A store's files on this machine; `folders` are those of sessions."""

    def __init__(self, config: Config, folders: Collection[str]) -> None:
        self._filesystems = open_filesystems(config, ".")
        self._volumes = Volumes()
        self._folders = folders

    def is_ours(self, head: Head) -> bool:
        """Whether a file's file system belongs to this machine."""
        return (head.fields.get("source") or {}).get("filesystemId") in self._filesystems.ids

    def state(self, head: Head) -> TrackingState | None:
        """None for deleted files and other objects."""
        fields, path = head.fields, path_of(head.fields)
        if head.type != "file" or path is None or fields.get("state") == "deleted":
            return None
        local = self._filesystems.local_at(str(fields["source"]["filesystemId"]), path)
        gone = is_orphaned(fields, local, self._filesystems, self._volumes, self._folders)
        return "orphaned" if gone else "tracked"


def tracking(config: Config, store: Store) -> Tracking:
    folders = {str(head.fields.get("cwd") or "") for head in store.query("session")}
    return Tracking(config, folders - {""})
