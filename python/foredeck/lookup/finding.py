"""From what a user types to a session or an object.

An object goes by its id or the start of it, a nickname, a path (absolute, relative to the current
folder, or just the end of it), or a handle of a session: `SESSION:@12`, or `@12` where the
session is given apart. A session goes by its id, the start of it, its nickname, or Pi's session
file.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import PurePath

from foredeck.lookup.errors import NotFound
from foredeck.model.documents import SessionDocument, session_object_id
from foredeck.model.kinds import OBJECT_TYPES
from foredeck.model.places import FIELD, SLICE, WITH_HASH, Slice, slice_of
from foredeck.model.quoting import one_line
from foredeck.model.records import MemberDocument, member_id, nickname_id
from foredeck.model.short_names import ENTRY, TASK, ShortNames
from foredeck.model.sources import history_source, path_of
from foredeck.sources.pointers import is_pointer
from foredeck.sources.pointing import pointer_label
from foredeck.sources.versions import version_ms
from foredeck.store.protocol import Head, Store

MIN_PREFIX = 4
SHOWN, LONG = 6, 120
_HANDLE = re.compile(r"(?:(?P<session>.+):)?@(?P<ordinal>\d+)")


@dataclass(frozen=True, slots=True)
class Found:
    """An object, with the session and the handle that name it, where they are known."""

    head: Head
    session: str | None = None
    ordinal: int | None = None

    @property
    def id(self) -> str:
        """The object's id."""
        return self.head.id

    @property
    def path(self) -> str | None:
        """Where a file is, None for any other object."""
        return path_of(self.head.fields)

    @property
    def name(self) -> str:
        """What a user would call it: a path, what points to it, or type and id."""
        label = self.path or pointer_label(self.head.fields)
        return label or f"{self.head.type} {self.head.id}"


@dataclass(frozen=True, slots=True)
class AskedPart:
    """What of an object a name asks for. `hash`: how that of the version begins."""

    field: str | None = None
    slice: Slice | None = None
    hash: str | None = None


def without_calls(store: Store, session: str) -> NotFound:
    """What to raise where a session has no call to show."""
    head = store.head(session_object_id(session))
    if head is None or not head.fields.get("ingested"):
        return NotFound(f"session {session} has made no call yet.")
    agent = head.view(SessionDocument).harness
    return NotFound(
        f"session {session} was read from a history of {agent}: foredeck did not "
        f"see its prompts. `foredeck cost`, `trace` and `show` replay its file in a terminal."
    )


def find_part(store: Store, text: str, session: str | None = None) -> tuple[Found, AskedPart]:
    """The object that `text` names, with what may follow the name: `::field`, `turns 3-7`,
    `message 93`, `chars 1-900` or `at 3f2a91bc`. Raises `NotFound`."""
    try:
        return find_object(store, text, session), AskedPart()
    except NotFound:
        if (match := SLICE.match(text)) is not None:
            found, part = find_part(store, match["name"], session)
            return found, replace(part, slice=slice_of(match))
        if (match := WITH_HASH.match(text)) is not None:
            found, part = find_part(store, match["name"], session)
            return found, replace(part, hash=match["hash"])
        if (match := FIELD.match(text)) is not None:
            found, part = find_part(store, match["name"], session)
            return found, replace(part, field=match["field"].strip())
        raise


def find_session(store: Store, text: str) -> str:
    """The id of a stored session. Raises `NotFound`, with the nearest ids."""
    name = text.removeprefix("session:")
    if store.head(session_object_id(name)) is not None:
        return name
    for path in dict.fromkeys((text, os.path.abspath(text))):  # noqa: PTH100  (text as typed)
        at = store.query("session", {"host_file": path}, limit=1)
        if at:
            return _session_of(at[0])
    named = _by_nickname(store, text)
    if named is not None and named.type == "session":
        return _session_of(named)
    known = [_session_of(head) for head in store.query("session")]
    found = [id for id in known if name and id.startswith(name)]
    if len(found) == 1:
        return found[0]
    if found:
        raise NotFound(f"{text!r} matches several sessions:{_listed(found)}Give more of the id.")
    if not known:
        raise NotFound("no session is stored here.")
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5) or known[::-1][:3]
    raise NotFound(
        f"no session {text!r} is stored; nearest:{_listed(near)}`foredeck sessions` lists all."
    )


def find_object(store: Store, text: str, session: str | None = None) -> Found:
    """The object that `text` names; `session` is an id from `find_session`.

    Raises `NotFound`, with the candidates, where none or several fit.
    """
    handle = _HANDLE.fullmatch(text)
    if handle:
        if handle["session"]:
            session = find_session(store, handle["session"])
        return _by_handle(store, session, int(handle["ordinal"]))
    head = store.head(text) or _by_nickname(store, text)
    if head is not None:
        return _in_session(store, head, session)
    if is_pointer(text):
        heads = _by_label(store, text)
    else:
        heads = _one_for_a_path(_by_path(store, text), session) or _by_prefix(store, text)
        heads = heads or _one_for_a_path(_by_tail(store, text), session)
        heads = heads or _tasks_called(store, text) or _memories_called(store, text)
    if session is not None and len(heads) > 1:
        heads = [head for head in heads if _ordinal(store, head.id, session)] or heads
    if len(heads) == 1:
        return _in_session(store, heads[0], session)
    if heads:
        raise NotFound(f"{text!r} matches several objects:{_listed(map(_named, heads))}Use an id.")
    raise NotFound(_nothing_like(store, text))


def _by_handle(store: Store, session: str | None, ordinal: int) -> Found:
    if session is None:
        raise NotFound(
            f"@{ordinal} is a handle within a session: write SESSION:@{ordinal}, or use --session."
        )
    member = store.head(member_id(session, ordinal))
    head = None if member is None else store.head(member.view(MemberDocument).object)
    if head is None:
        count = len(store.query("member", {"session": session}))
        raise NotFound(f"session {session} has no @{ordinal}; its handles: @1 to @{count}.")
    return Found(head, session, ordinal)


def _in_session(store: Store, head: Head, session: str | None) -> Found:
    """With its handle in the given session, or in the only one that has met it."""
    if session is None:
        members = store.query("member", {"object": head.id}, limit=2)
        if len(members) != 1:
            return Found(head)
        session = members[0].view(MemberDocument).session
    return Found(head, session, _ordinal(store, head.id, session))


def _ordinal(store: Store, object: str, session: str) -> int | None:
    members = store.query("member", {"object": object, "session": session}, limit=1)
    return members[0].view(MemberDocument).ordinal if members else None


def _by_nickname(store: Store, text: str) -> Head | None:
    claim = store.head(nickname_id(text))
    owner = None if claim is None else claim.fields.get("object")
    return None if owner is None else store.head(owner)


def _by_path(store: Store, text: str) -> list[Head]:
    """Files at this path; one on each of several file systems is possible."""
    paths = dict.fromkeys((text, os.path.abspath(text), os.path.realpath(text)))  # noqa: PTH100
    found = (head for path in paths for head in store.query("file", {"source.path": path}))
    # As of a commit a file has another path, and is another object.
    return list({head.id: head for head in found if _path(head)}.values())


def _one_for_a_path(heads: Iterable[Head], session: str | None) -> list[Head]:
    """Without what histories show of a file where something better has its path: the history of
    the session that is asked for, the file itself, or a newer history."""
    told = [(head, history_source(head.fields)) for head in heads]
    shown = {source.path: head for head, source in told if source and source.session == session}
    own = [head for head, source in told if source is None and _path(head) not in shown]
    taken = {_path(head) for head in own} | shown.keys()
    newest = {
        _path(h): h for h, source in sorted(told, key=lambda each: version_ms(each[0])) if source
    }
    return [*own, *shown.values(), *(head for path, head in newest.items() if path not in taken)]


def in_histories(store: Store, found: Found) -> list[Head]:
    """What histories show of a file that was found by its path, the oldest first."""
    path = _path(found.head)
    heads = store.query("file", {"source.path": path}) if path else ()
    files = [head for head in heads if history_source(head.fields) and head.id != found.id]
    return sorted(files, key=version_ms)


def _by_label(store: Store, text: str) -> list[Head]:
    """Files as of a commit, and what is only pointed to, by the name that `index` prints."""
    heads = [head for type in ("file", "pointer") for head in store.query(type)]
    return [head for head in heads if pointer_label(head.fields) == text]


def _by_prefix(store: Store, text: str) -> list[Head]:
    if len(text) < MIN_PREFIX:
        return []
    return [
        head
        for type in (*OBJECT_TYPES, "task")
        for head in store.query(type)
        if head.id.startswith(text)
    ]


def _tasks_called(store: Store, text: str) -> list[Head]:
    """Tasks of any project whose name begins so."""
    return _called(store, text, "task", TASK)


def _memories_called(store: Store, text: str) -> list[Head]:
    """Entries of memory whose name begins so."""
    return _called(store, text, "memory", ENTRY)


def _called(store: Store, text: str, type: str, mark: str) -> list[Head]:
    if not text.startswith(mark) or len(text) < len(mark) + MIN_PREFIX:
        return []
    heads = {head.id: head for head in store.query(type)}
    return [heads[id] for id in ShortNames(mark, heads).find(text)]


def _by_tail(store: Store, text: str) -> list[Head]:
    tail = "/" + text.removeprefix("./").lstrip("/")
    return [head for head in store.query("file") if _path(head).endswith(tail)]


def _nothing_like(store: Store, text: str) -> str:
    if is_pointer(text):
        return f"{text!r} is not stored: `foredeck index {text}` takes it in and prints its name."
    names: dict[str, str] = {}
    for head in store.query("file"):
        names[_path(head)] = names[PurePath(_path(head)).name] = _named(head)
    for claim in store.query("nickname"):
        if claim.fields.get("object"):
            name = claim.id.removeprefix("nickname:")
            names[name] = name
    near = difflib.get_close_matches(text, names, n=SHOWN, cutoff=0.5)
    nearest = _listed(dict.fromkeys(names[name] for name in near))
    hint = f"Nearest:{nearest}" if near else ""
    return (
        f"no object is called {text!r}. {hint}An object goes by a path, a nickname, an id or the "
        f"start of one ({MIN_PREFIX} characters or more), or SESSION:@12."
    )


def _path(head: Head) -> str:
    told = history_source(head.fields)
    return path_of(head.fields) or (told.path if told else "")


def _named(head: Head) -> str:
    path = _path(head)
    return f"{path} ({head.id[:12]})" if path else head.id


def _session_of(head: Head) -> str:
    return head.id.removeprefix("session:")


def _listed(names: Iterable[str]) -> str:
    """What stands after a colon: the names in a row, or a line each where that would be long."""
    every = list(names)
    more = [f"and {len(every) - SHOWN} more"] if len(every) > SHOWN else []
    shown = [one_line(name) for name in every[:SHOWN]]
    if len(text := ", ".join(shown)) > LONG:
        return "".join(f"\n  {line}" for line in [*shown, *more]) + "\n"
    return " ".join(["", text, *more]) + ". "
