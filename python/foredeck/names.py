"""From what people type to a session or an object, and what an object is called.

An object goes by its id or the start of it, a nickname, a path (absolute, relative to the current
folder, or just the end of it), the key of a task or an entry of memory, or a handle of a session:
`SESSION:@12`, or `@12` where the session is given apart. A session goes by its id, the start of it,
its nickname, or Pi's session file. What a model types, `context/state/handles.py` looks up in its
session's index first, then here, without what private sessions keep to themselves.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path, PurePath
from typing import NamedTuple

from foredeck.errors import NotFound
from foredeck.model.documents import Fields, session_object_id
from foredeck.model.ids import ENTRY, TASK, ShortNames
from foredeck.model.kinds import OBJECT_TYPES
from foredeck.model.places import OF_STORED, AskedPart, split_name
from foredeck.model.quoting import one_line
from foredeck.model.records import MemberDocument, member_id, nickname_id
from foredeck.model.sources import history_source, is_pointer, path_of, pointer_label
from foredeck.sources.snapshots import version_ms
from foredeck.store.protocol import Head, Store

MIN_PREFIX = 4
SHORTEST_ID = 8
SHOWN, LONG = 6, 120

Titled = Callable[[str], Sequence[Head]]
"""Finds notes by their title."""

_HANDLE = re.compile(r"(?:(?:session:)?(?P<session>.+):)?@(?P<ordinal>\d+)")


class Found(NamedTuple):
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
        return label_of(self.head.fields) or f"{self.head.type} {self.head.id}"


def label_of(fields: Fields) -> str:
    """The path of a file, or the address of what is only pointed to; empty for any other object."""
    return path_of(fields) or pointer_label(fields)


def name_of(head: Head) -> str:
    """What a list calls an object: its path or address, what was run or said, else its id."""
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
    """The session's name and the number of `SESSION:@12` or `@12`; None for any other name."""
    match = _HANDLE.fullmatch(name)
    return None if match is None else (match["session"], int(match["ordinal"]))


def at_handle(store: Store, session: str, ordinal: int) -> Head | None:
    """The object that a session has under a handle."""
    member = store.head(member_id(session, ordinal))
    return None if member is None else store.head(member.view(MemberDocument).object)


def handles_in(store: Store, session: str) -> dict[str, int]:
    """The numbers of all handles of a session, by the object that has each."""
    members = (head.view(MemberDocument) for head in store.query("member", {"session": session}))
    return {member.object: member.ordinal for member in members}


def with_nickname(store: Store, name: str) -> Head | None:
    """The object that has this nickname."""
    claim = store.head(nickname_id(name))
    owner = None if claim is None else claim.fields.get("object")
    return None if owner is None else store.head(owner)


def with_prefix(store: Store, types: Iterable[str], name: str) -> list[Head]:
    """The objects of these types whose id begins with a name."""
    return [head for type in types for head in store.query(type) if head.id.startswith(name)]


def short_ids(ids: Iterable[str]) -> dict[str, str]:
    """Of each session's id the start that no other of them has, of `SHORTEST_ID` characters at
    least."""
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
    """Ids of the sessions with this id, host's file or nickname, or else with this start of an
    id."""
    id = name.removeprefix("session:")
    if store.head(session_object_id(id)) is not None:
        return [id]
    for path in dict.fromkeys((name, os.path.abspath(name))):  # noqa: PTH100  (text as typed)
        if at := store.query("session", {"host_file": path}, limit=1):
            return [_session_of(at[0])]
    named = with_nickname(store, name)
    if named is not None and named.type == "session":
        return [_session_of(named)]
    return [_session_of(h) for h in with_prefix(store, ["session"], session_object_id(id)) if id]


# What a person means


def find_part(
    store: Store, text: str, session: str | None = None, titled: Titled | None = None
) -> tuple[Found, AskedPart]:
    """The object that `text` names, as `find_object` finds it, with what may follow the name:
    `::field`, `turns 3-7`, `message 93`, `chars 1-900` or `at 3f2a91bc`. Raises `NotFound`."""

    def is_name(whole: str) -> bool:
        return len(_meant(store, whole, session, titled)) == 1

    name, part = split_name(text, OF_STORED, is_name)
    return find_object(store, name, session, titled), part


def find_session(store: Store, text: str) -> str:
    """The id of a stored session. Raises `NotFound`, with the nearest ids."""
    found = sessions_called(store, text)
    if len(found) == 1:
        return found[0]
    if found:
        raise NotFound(f"{text!r} matches several sessions:{_listed(found)}Give more of the id.")
    known = [_session_of(head) for head in store.query("session")]
    if not known:
        raise NotFound("no session is stored here.")
    name = text.removeprefix("session:")
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5) or known[::-1][:3]
    raise NotFound(
        f"no session {text!r} is stored; nearest:{_listed(near)}`foredeck sessions` lists all."
    )


def find_object(
    store: Store, text: str, session: str | None = None, titled: Titled | None = None
) -> Found:
    """The object that `text` names. `session`: an id from `find_session`; `titled`: also a note's
    title, which counts before anything but a handle and the path of a file on the disk.

    Raises `NotFound`, with the candidates, where none or several fit.
    """
    if (handle := split_handle(text)) is not None:
        named, ordinal = handle
        return _at_handle(store, find_session(store, named) if named else session, ordinal)
    heads = _meant(store, text, session, titled)
    if len(heads) == 1:
        return _in_session(store, heads[0], session)
    if heads:
        raise NotFound(f"{text!r} matches several objects:{_listed(map(_named, heads))}Use an id.")
    raise NotFound(_nothing_like(store, text))


def _meant(
    store: Store, text: str, session: str | None, titled: Titled | None = None
) -> Sequence[Head]:
    """The objects that a name other than a handle may mean; of several those of the session."""
    # What fits as a whole goes before what fits in part; a file on the disk before any title.
    heads: Sequence[Head] = titled(text) if titled and not Path(text).exists() else ()
    heads = heads or _exactly(store, text)
    if is_pointer(text):
        heads = heads or _by_label(store, text)
    else:
        heads = heads or _one_for_a_path(_by_path(store, text), session) or _by_prefix(store, text)
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


def _by_path(store: Store, text: str) -> list[Head]:
    """Files at this path; one on each of several file systems is possible."""
    paths = dict.fromkeys((text, os.path.abspath(text), os.path.realpath(text)))  # noqa: PTH100
    found = (head for path in paths for head in store.query("file", {"source.path": path}))
    # As of a commit a file has another path, and is another object.
    return list({head.id: head for head in found if _path(head)}.values())


def _one_for_a_path(heads: Iterable[Head], session: str | None) -> list[Head]:
    """Without what histories show of a file where something better has its path."""
    # Better is, in this order: the history of the session that is asked for, the file itself, a
    # newer history.
    sources = [(head, history_source(head.fields)) for head in heads]
    shown = {source.path: head for head, source in sources if source and source.session == session}
    own = [head for head, source in sources if source is None and _path(head) not in shown]
    taken = {_path(head) for head in own} | shown.keys()
    newest = {
        _path(h): h for h, source in sorted(sources, key=lambda each: version_ms(each[0])) if source
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
    return (
        with_prefix(store, (*OBJECT_TYPES, "task", "working"), text)
        if len(text) >= MIN_PREFIX
        else []
    )


def _called(store: Store, text: str, type: str, mark: str) -> list[Head]:
    """Tasks of any project, or entries of memory, whose name begins so."""
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
    source = history_source(head.fields)
    return path_of(head.fields) or (source.path if source else "")


def _named(head: Head) -> str:
    path = _path(head)
    return f"{path} ({head.id[:12]})" if path else head.id


def _session_of(head: Head) -> str:
    return head.id.removeprefix("session:")


def _listed(names: Iterable[str]) -> str:
    """Names after a colon: in a row, or one on each line where the row would be long."""
    every = list(names)
    more = [f"and {len(every) - SHOWN} more"] if len(every) > SHOWN else []
    shown = [one_line(name) for name in every[:SHOWN]]
    if len(text := ", ".join(shown)) > LONG:
        return "".join(f"\n  {line}" for line in [*shown, *more]) + "\n"
    return " ".join(["", text, *more]) + ". "
