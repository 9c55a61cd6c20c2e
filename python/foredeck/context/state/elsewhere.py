"""Objects that only other sessions have met, by what the model may call them."""

from __future__ import annotations

import re
from collections.abc import Collection

from foredeck.context.state.index import Entry
from foredeck.context.state.info import SessionInfo
from foredeck.context.state.objects import Objects
from foredeck.errors import ToolError
from foredeck.model.kinds import OBJECT_TYPES
from foredeck.model.quoting import name as quote
from foredeck.model.records import member_id, nickname_id
from foredeck.sources.pointing import pointer_label
from foredeck.sources.toolpaths import tool_path
from foredeck.store.privacy import is_hidden, private_sessions
from foredeck.store.protocol import Head, Store

_HANDLE = re.compile(r"(?:session:)?(?P<session>.+):@(?P<ordinal>\d+)")
_LIKE_AN_ID = re.compile(r"(?=.*\d)[\w:|/-]{8,}")
"""Looking for the start of an id reads the heads of all objects, so a mere word is no reason to."""
SHOWN = 5


def find_stored(objects: Objects, name: str) -> Head | None:
    """The stored object with this nickname, full id, path, or `SESSION:@12`; None for none.

    Raises `ToolError` where the start of a session's id fits several.
    """
    store = objects.store
    handle = _HANDLE.fullmatch(name)
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
        wrappers = store.query("session")
        fits = [head for head in wrappers if head.fields["session_id"].startswith(session)]
        wrapper = _the_one(session, fits)
        if wrapper is not None:
            member = store.head(member_id(wrapper.fields["session_id"], ordinal))
    if member is None or member.fields["session"] in hidden:
        return None
    return store.head(member.fields["object"])


def _the_one(name: str, found: list[Head]) -> Head | None:
    if len(found) > 1:
        shown = ", ".join(quote(head.id) for head in found[:SHOWN])
        more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        raise ToolError(f"{name!r} begins several ids: {shown}{more}. Give more of the id.")
    return found[0] if found else None
