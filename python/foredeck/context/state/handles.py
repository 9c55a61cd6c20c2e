"""What the model may call an object: `@12`, a path, a nickname, a note's title, an id, or the start
of one; and the version or the part of it that it asks for."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import PurePath

from foredeck.context.state.graph import titled
from foredeck.context.state.index import Entry
from foredeck.context.state.info import SessionInfo
from foredeck.context.state.objects import Objects
from foredeck.errors import ToolError
from foredeck.model.documents import SessionDocument
from foredeck.model.kinds import OBJECT_TYPES
from foredeck.model.places import FIELD, SLICE, WITH_HASH, Slice, slice_of
from foredeck.model.quoting import name as quote
from foredeck.model.records import MemberDocument, member_id, nickname_id
from foredeck.model.sources import path_of
from foredeck.sources.pointers import is_address, is_pointer
from foredeck.sources.pointing import pointer_label
from foredeck.sources.toolpaths import tool_path
from foredeck.store.privacy import is_hidden, private_sessions
from foredeck.store.protocol import Head, Store

_HANDLE = re.compile(r"^@?(\d+)$")
_VERSION = re.compile(r"^(?P<name>.+?)\s+(?:v(?P<version>\d+)|(?:as of )?call (?P<call>\d+))$")
_LINK = re.compile(r"^!?\[\[(?P<inner>[^\[\]|]+)(?:\|[^\[\]]*)?\]\](?P<rest>.*)$")
_SECTION = re.compile(r"^(?P<name>[^#]+?)\s*#(?P<section>.+)$")
_AS_GIT_SHOWS = re.compile(r"[\w./~^@{}-]+:[^:\s]+")
CANDIDATES = 5
MIN_PREFIX = 6


_ELSEWHERE = re.compile(r"(?:session:)?(?P<session>.+):@(?P<ordinal>\d+)")

_LIKE_AN_ID = re.compile(r"(?=.*\d)[\w:|/-]{8,}")
"""Looking for the start of an id reads the heads of all objects, so a mere word is no reason to."""

SHOWN = 5


@dataclass(frozen=True, slots=True)
class Wanted:
    """An object, and the version or the part of it that was asked for, if one was."""

    entry: Entry
    version: int | None = None
    call: int | None = None
    slice: Slice | None = None
    section: str | None = None
    """A heading of a Markdown file, or the name of a block (`^id`): only what is there."""
    field: str | None = None
    """A field of the object, such as `args.path`, in place of its content."""
    hash: str | None = None
    """How the hash of a stored version begins, whether or not this session has seen it."""

    @property
    def is_part(self) -> bool:
        """Whether less, or something else, than an object as this session has met it is asked
        for."""
        return (self.slice, self.section, self.field, self.hash) != (None,) * 4


def resolve(objects: Objects, text: str, *, beyond: bool = False) -> Wanted:
    """The object that `text` names, with an optional `v3`, `call 5`, `#heading`, `::field`,
    `turns 3-7`, `message 93`, `chars 1-900` or `at 3f2a91bc` behind it; also as a link writes it
    (`[[name#heading|label]]`).

    `beyond`: an object that is stored, but that this session has not met, joins its index, so that
    the model can refer to it from then on; the caller commits that.
    Raises `ToolError` that lists the nearest candidates where none or several fit.
    """
    name = text.strip()
    if link := _LINK.match(name):
        name = (link["inner"].strip() + link["rest"]).strip()
    if not name:
        raise ToolError("Say which object: a handle such as @12, a path, or a nickname.")
    if is_address(name):
        return Wanted(_entry(objects, name, beyond))  # what follows a # belongs to it
    part = SLICE.match(name)
    if part is not None and _by_path(objects, name) is None:
        whole = resolve(objects, part["name"], beyond=beyond)
        return replace(whole, slice=slice_of(part))
    part = WITH_HASH.match(name)
    if part is not None and _by_path(objects, name) is None:
        whole = resolve(objects, part["name"], beyond=beyond)
        return replace(whole, hash=part["hash"])
    if "::" in name or "#" in name:
        if (found := _known_whole(objects, name, beyond)) is not None:
            return Wanted(found)  # a file may be called so
        if named := FIELD.match(name):
            whole = resolve(objects, named["name"], beyond=beyond)
            return replace(whole, field=named["field"].strip())
        if named := _SECTION.match(name):
            whole = resolve(objects, named["name"], beyond=beyond)
            return replace(whole, section=named["section"].strip())
    match = _VERSION.match(name)
    if match is None or _by_path(objects, name) is not None:
        return Wanted(_entry(objects, name, beyond))
    version, call = match["version"], match["call"]
    return Wanted(
        _entry(objects, match["name"], beyond),
        int(version) if version else None,
        int(call) if call else None,
    )


def _entry(objects: Objects, name: str, beyond: bool) -> Entry:
    index = objects.index
    handle = _HANDLE.match(name)
    if handle:
        entry = index.entries.get(int(handle[1]))
        if entry is None:
            raise ToolError(f"There is no {name}; handles go from @1 to @{len(index)}.")
        return entry
    ordinal = index.by_object.get(name) or index.by_label.get(name) or _by_nickname(objects, name)
    if ordinal is None and beyond and is_pointer(name):
        return meet_pointer(objects, name)
    if ordinal is None:
        ordinal = _by_path(objects, name) or _by_identity(objects, name)
    if ordinal is None:
        head = find_stored(objects, name) if beyond else None
        return _by_part(objects, name, beyond) if head is None else meet(objects, head)
    if index.by_label.get(name, ordinal) != ordinal:
        # A provider's id that was given out more than once.
        same = [e for e in index.entries.values() if name in (e.object, e.label)]
        raise _ambiguous(objects, name, same)
    return index.entries[ordinal]


def _known_whole(objects: Objects, name: str, beyond: bool) -> Entry | None:
    """The object that has exactly this name, whatever signs are in it."""
    index = objects.index
    ordinal = index.by_object.get(name) or index.by_label.get(name) or _by_path(objects, name)
    if ordinal is not None:
        return index.entries[ordinal]
    head = find_stored(objects, name) if beyond else None
    return None if head is None else meet(objects, head)


def _by_path(objects: Objects, name: str) -> int | None:
    return objects.index.by_label.get(_absolute(objects.info, name))


def _by_identity(objects: Objects, name: str) -> int | None:
    """A file by another of its names: through a link, from `~`, or as a container has it."""
    return objects.index.by_object.get(identity(objects, name))


def meet(objects: Objects, head: Head) -> Entry:
    """The entry of an object that another session has met. It takes no label from one of ours."""
    known = objects.index.by_object.get(head.id)
    if known is not None:
        return objects.index.entries[known]
    fields = head.fields
    label = path_of(fields) or pointer_label(fields) or fields.get("provider_call_id") or ""
    return objects.see_head(head, "" if label in objects.index.by_label else label)


def _absolute(info: SessionInfo, name: str) -> str:
    return str(PurePath(info.cwd) / name)


def _by_nickname(objects: Objects, name: str) -> int | None:
    head = claimed(objects.store, name)
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
        head = find_by_prefix(objects.store, objects.info, name)
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
    shown = [f"@{e.ordinal} {quote(objects.name_of(e) or e.object)}" for e in entries[:CANDIDATES]]
    more = len(entries) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


def find_stored(objects: Objects, name: str) -> Head | None:
    """The stored object with this nickname, full id, path, or `SESSION:@12`; None for none.

    Raises `ToolError` where the start of a session's id fits several.
    """
    store = objects.store
    handle = _ELSEWHERE.fullmatch(name)
    if handle is not None:
        found = _by_handle(store, handle["session"], int(handle["ordinal"]), objects.info.family)
        return None if found is None or is_hidden(store, found, objects.info.family) else found
    head = claimed(store, name) or store.head(name) or store.head(identity(objects, name))
    if head is None or head.type not in OBJECT_TYPES:
        return None
    return None if is_hidden(store, head, objects.info.family) else head


def find_by_prefix(store: Store, info: SessionInfo, name: str) -> Head | None:
    """The one stored object whose id begins with `name`; None for none.

    Raises `ToolError` where several do.
    """
    if _LIKE_AN_ID.fullmatch(name) is None:
        return None
    found = [
        head
        for type in OBJECT_TYPES
        for head in store.query(type)
        if head.id.startswith(name) and not is_hidden(store, head, info.family)
    ]
    return _the_one(name, found)


def meet_pointer(objects: Objects, name: str) -> Entry:
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


def claimed(store: Store, name: str) -> Head | None:
    """The object that has this nickname."""
    claim = store.head(nickname_id(name))
    owner = None if claim is None else claim.fields.get("object")
    return None if owner is None else store.head(owner)


def identity(objects: Objects, name: str) -> str:
    """The id of the file that a path names, as the host's `read` takes it: relative to the
    session's folder, absolute, or from `~`; through a link, or as a container has it."""
    return objects.source.identify(tool_path(name), objects.info.cwd or None)[0]


def _by_handle(store: Store, session: str, ordinal: int, own: Collection[str]) -> Head | None:
    hidden = private_sessions(store, own)
    member = store.head(member_id(session, ordinal))
    if member is None:
        fits = [
            head
            for head in store.query("session")
            if head.view(SessionDocument).session_id.startswith(session)
        ]
        wrapper = _the_one(session, fits)
        if wrapper is not None:
            member = store.head(member_id(wrapper.view(SessionDocument).session_id, ordinal))
    if member is None or member.view(MemberDocument).session in hidden:
        return None
    return store.head(member.view(MemberDocument).object)


def _the_one(name: str, found: list[Head]) -> Head | None:
    if len(found) > 1:
        shown = ", ".join(quote(head.id) for head in found[:SHOWN])
        more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        raise ToolError(f"{name!r} begins several ids: {shown}{more}. Give more of the id.")
    return found[0] if found else None
