"""From typed names to sessions and objects, and back.

Models' names are first looked up in their session's index (`context/state/handles.py`).
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path, PurePath
from typing import NamedTuple, TypeVar

from foredeck.errors import NotFound
from foredeck.model.documents import Fields, session_object_id
from foredeck.model.identity import ENTRY, SHORTEST, TASK, ShortNames
from foredeck.model.kinds import OBJECT_TYPES
from foredeck.model.names import OF_STORED, AskedPart, split_name
from foredeck.model.quoting import one_line
from foredeck.model.records import MemberDocument, member_id, nickname_id
from foredeck.model.sources import history_source, is_pointer, path_of, pointer_label
from foredeck.sources.snapshots import version_ms
from foredeck.store.protocol import Head
from foredeck.store.store import Store

SHORTEST_ID = 8
SHOWN, LONG = 6, 120

T = TypeVar("T")
Titled = Callable[[str], Sequence[Head]]
"""Finds notes by their title."""

_HANDLE = re.compile(r"(?:(?:session:)?(?P<session>.+):)?@(?P<ordinal>\d+)")


class Found(NamedTuple):
    """An object, with its session and handle, if known."""

    head: Head
    session: str | None = None
    ordinal: int | None = None

    @property
    def id(self) -> str:
        return self.head.id

    @property
    def path(self) -> str | None:
        """A file's path; None for others."""
        return path_of(self.head.fields)

    @property
    def name(self) -> str:
        return label_of(self.head.fields) or f"{self.head.type} {self.head.id}"


def label_of(fields: Fields) -> str:
    """A file's path or a pointer's address; empty for others."""
    return path_of(fields) or pointer_label(fields)


def name_of(head: Head) -> str:
    fields = head.fields
    if head.type == "toolcall":
        return f"{fields.get('tool')} {fields.get('args_display') or ''}".strip()
    if head.type in ("task", "memory"):
        return str(fields.get("title") or fields.get("fact"))
    if head.type == "user":
        return str(fields.get("first_line") or head.id)
    return label_of(fields) or head.id


# What a name may mean


def split_handle(name: str) -> tuple[str | None, int] | None:
    """Session name and number of `SESSION:@12` or `@12`; None for other names."""
    match = _HANDLE.fullmatch(name)
    return None if match is None else (match["session"], int(match["ordinal"]))


def at_handle(store: Store, session: str, ordinal: int) -> Head | None:
    """The object under a session's handle."""
    member = store.head(member_id(session, ordinal))
    return None if member is None else store.head(member.view(MemberDocument).object)


def handles_in(store: Store, session: str) -> dict[str, int]:
    """A session's handles by object."""
    members = (head.view(MemberDocument) for head in store.query("member", {"session": session}))
    return {member.object: member.ordinal for member in members}


def with_nickname(store: Store, name: str) -> Head | None:
    claim = store.head(nickname_id(name))
    owner = None if claim is None else claim.fields.get("object")
    return None if owner is None else store.head(owner)


def with_prefix(store: Store, types: Iterable[str], name: str, mark: str = "") -> list[Head]:
    """Objects of these types whose id, after a mark, begins with a name."""
    start = mark + name
    heads = (head for type in types for head in store.query(type))
    return [h for h in heads if h.id.startswith(start)] if len(name) >= SHORTEST else []


def several(text: str, kind: str, names: Iterable[str], instead: str) -> str:
    """The error for a name that fits several objects. `instead`: what to write."""
    return f"{text!r} fits several {kind}:{listed(names)}{instead}"


def nearest(text: str, among: Mapping[str, T]) -> list[T]:
    """What the names most like a mistyped one stand for."""
    near = difflib.get_close_matches(text, among, n=SHOWN)
    return list(dict.fromkeys(among[name] for name in near))


def short_ids(ids: Iterable[str]) -> dict[str, str]:
    """Unique beginnings of session ids, of at least `SHORTEST_ID` characters."""
    ordered = sorted(ids)
    short = {}
    for place, id in enumerate(ordered):
        # In this order the ids that share most with one are next to it.
        near = (*ordered[max(0, place - 1) : place], *ordered[place + 1 : place + 2])
        length = SHORTEST_ID
        while any(other.startswith(id[:length]) for other in near) and length < len(id):
            length += 1
        short[id] = id[:length].rstrip("-")
    return short


def sessions_called(store: Store, name: str) -> list[str]:
    """Sessions with this id, host's file or nickname, else beginning of an id."""
    id = name.removeprefix("session:")
    if store.head(session_object_id(id)) is not None:
        return [id]
    for path in dict.fromkeys((name, os.path.abspath(name))):  # noqa: PTH100  (text as typed)
        if at := store.query("session", {"host_file": path}, limit=1):
            return [_session_of(at[0])]
    owner = with_nickname(store, name)
    if owner is not None and owner.type == "session":
        return [_session_of(owner)]
    return [_session_of(head) for head in with_prefix(store, ["session"], id, "session:")]


# What a person means


def find_part(
    store: Store, text: str, session: str | None = None, titled: Titled | None = None
) -> tuple[Found, AskedPart]:
    """Like `find_object`, with a suffix such as `::field` or `turns 3-7`. Raises `NotFound`."""

    def is_name(whole: str) -> bool:
        return len(_meant(store, whole, session, titled)) == 1

    name, part = split_name(text, OF_STORED, is_name)
    return find_object(store, name, session, titled), part


def find_session(store: Store, text: str) -> str:
    """A stored session's id. Raises `NotFound` with the nearest."""
    ids = sessions_called(store, text)
    if len(ids) == 1:
        return ids[0]
    if ids:
        raise NotFound(several(text, "sessions", ids, "Give more of the id."))
    all_ids = [_session_of(head) for head in store.query("session")]
    if not all_ids:
        raise NotFound("no session is stored here.")
    name = text.removeprefix("session:")
    if len(name) < SHORTEST and any(id.startswith(name) for id in all_ids):
        raise NotFound(f"{text!r} is too short: type {SHORTEST} characters of the id, or more.")
    # An id is long, and its start is what people type.
    starts = {id[: max(len(name), SHORTEST)]: id for id in all_ids}
    near = nearest(name, starts)
    hint = f"Nearest:{listed(near)}" if near else ""
    raise NotFound(f"no session {text!r} is stored. {hint}`foredeck sessions` lists all.")


def find_object(
    store: Store, text: str, session: str | None = None, titled: Titled | None = None
) -> Found:
    """The object that `text` names; `titled`: finds notes by title.

    Raises `NotFound` with candidates for none or several.
    """
    if (handle := split_handle(text)) is not None:
        session_name, ordinal = handle
        return _at_handle(
            store, find_session(store, session_name) if session_name else session, ordinal
        )
    heads = _meant(store, text, session, titled)
    if len(heads) == 1:
        return _in_session(store, heads[0], session)
    if heads:
        raise NotFound(several(text, "objects", map(_named, heads), "Use an id."))
    raise NotFound(_nothing_like(store, text, has_titles=titled is not None))


def _meant(
    store: Store, text: str, session: str | None, titled: Titled | None = None
) -> Sequence[Head]:
    # What fits as a whole goes before what fits in part; a file on the disk before any title.
    heads: Sequence[Head] = titled(text) if titled and not Path(text).exists() else ()
    heads = heads or _exactly(store, text)
    if is_pointer(text):
        heads = heads or _by_label(store, text)
    else:
        types = (*OBJECT_TYPES, "task", "working")
        heads = heads or _one_for_a_path(_by_path(store, text), session)
        heads = heads or with_prefix(store, types, text)
        heads = heads or _one_for_a_path(_by_tail(store, text), session)
        heads = heads or _called(store, text, "task", TASK)
        heads = heads or _called(store, text, "memory", ENTRY)
    if session is not None and len(heads) > 1:
        return [head for head in heads if _ordinal(store, head.id, session)] or heads
    return heads


def _exactly(store: Store, name: str) -> list[Head]:
    head = store.head(name) or with_nickname(store, name)
    return [] if head is None else [head]


def _at_handle(store: Store, session: str | None, ordinal: int) -> Found:
    if session is None:
        raise NotFound(
            f"@{ordinal} is a handle within a session: write SESSION:@{ordinal}, or use --session."
        )
    head = at_handle(store, session, ordinal)
    if head is None:
        count = len(store.query("member", {"session": session}))
        raise NotFound(f"session {session} has no @{ordinal}; its handles: @1 to @{count}.")
    return Found(head, session, ordinal)


def _in_session(store: Store, head: Head, session: str | None) -> Found:
    if session is None:
        members = store.query("member", {"object": head.id}, limit=2)
        if len(members) != 1:
            return Found(head)
        session = members[0].view(MemberDocument).session
    return Found(head, session, _ordinal(store, head.id, session))


def _ordinal(store: Store, object: str, session: str) -> int | None:
    members = store.query("member", {"object": object, "session": session}, limit=1)
    return members[0].view(MemberDocument).ordinal if members else None


def _by_path(store: Store, text: str) -> list[Head]:
    paths = dict.fromkeys((text, os.path.abspath(text), os.path.realpath(text)))  # noqa: PTH100
    heads = (head for path in paths for head in store.query("file", {"source.path": path}))
    # As of a commit a file has another path, and is another object.
    return list({head.id: head for head in heads if _path(head)}.values())


def _one_for_a_path(heads: Iterable[Head], session: str | None) -> list[Head]:
    """Without histories' files whose path something better has."""
    # Better is, in this order: the history of the session that is asked for, the file itself, a
    # newer history.
    sources = [(head, history_source(head.fields)) for head in heads]
    by_path = {
        source.path: head for head, source in sources if source and source.session == session
    }
    own = [head for head, source in sources if source is None and _path(head) not in by_path]
    paths_taken = {_path(head) for head in own} | by_path.keys()
    newest = {
        _path(h): h for h, source in sorted(sources, key=lambda each: version_ms(each[0])) if source
    }
    return [
        *own,
        *by_path.values(),
        *(head for path, head in newest.items() if path not in paths_taken),
    ]


def in_histories(store: Store, found: Found) -> list[Head]:
    """What histories show of a file, oldest first."""
    path = _path(found.head)
    heads = store.query("file", {"source.path": path}) if path else ()
    files = [head for head in heads if history_source(head.fields) and head.id != found.id]
    return sorted(files, key=version_ms)


def _by_label(store: Store, text: str) -> list[Head]:
    heads = [head for type in ("file", "pointer") for head in store.query(type)]
    return [head for head in heads if pointer_label(head.fields) == text]


def _called(store: Store, text: str, type: str, mark: str) -> list[Head]:
    if not text.startswith(mark) or len(text) < len(mark) + SHORTEST:
        return []
    heads = {head.id: head for head in store.query(type)}
    return [heads[id] for id in ShortNames(mark, heads).find(text)]


def _by_tail(store: Store, text: str) -> list[Head]:
    tail = "/" + text.removeprefix("./").lstrip("/")
    return [head for head in store.query("file") if _path(head).endswith(tail)]


def _nothing_like(store: Store, text: str, *, has_titles: bool) -> str:
    if is_pointer(text):
        return f"{text!r} is not stored: `foredeck index {text}` takes it in and prints its name."
    if os.path.isfile(text):  # noqa: PTH113  # a name can be longer than any path
        return f"{text} is not stored: no session has met it. `foredeck index` stores files."
    names: dict[str, str] = {}
    for head in store.query("file"):
        names[_path(head)] = names[PurePath(_path(head)).name] = _named(head)
    for claim in store.query("nickname"):
        if claim.fields.get("object"):
            name = claim.id.removeprefix("nickname:")
            names[name] = name
    near = nearest(text, names)
    hint = f"Nearest:{listed(near)}" if near else ""
    title = "a note's title, " if has_titles else ""
    return (
        f"no object is called {text!r}. {hint}An object goes by a path, {title}a nickname, an id "
        f"or the start of one ({SHORTEST} characters or more), or SESSION:@12."
    )


def _path(head: Head) -> str:
    source = history_source(head.fields)
    return path_of(head.fields) or (source.path if source else "")


def _named(head: Head) -> str:
    path = _path(head)
    return f"{path} ({head.id[:12]})" if path else head.id


def _session_of(head: Head) -> str:
    return head.id.removeprefix("session:")


def listed(names: Iterable[str]) -> str:
    """Names after a colon, in a row or, if long, by lines."""
    every = [one_line(name) for name in names]
    more = [f"and {len(every) - SHOWN} more"] if len(every) > SHOWN else []
    if len(text := ", ".join(every[:SHOWN])) > LONG:
        return "".join(f"\n  {line}" for line in [*every[:SHOWN], *more]) + "\n"
    return " ".join(["", text, *more]) + ". "
