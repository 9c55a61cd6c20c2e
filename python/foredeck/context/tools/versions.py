"""Finding a version of an object by what a session calls it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from foredeck.context.state.handles import Slice, Wanted
from foredeck.context.state.index import Entry
from foredeck.context.state.session import Session
from foredeck.context.window.compactions import turns_of
from foredeck.errors import ToolError
from foredeck.model.canonical import hash_text
from foredeck.model.compactions import CompactionDocument
from foredeck.model.documents import Document, session_object_id
from foredeck.model.records import SAME_TRANSACTION, Pin, call_id, member_id
from foredeck.store.protocol import Store, Token

WHY_NO_CONTENT = {
    "binary": "it is not text",
    "huge": "it is too large",
    "listed": "it was only listed; read it",
    "deleted": "it was deleted; an older version may be had, such as v1",
    "unreadable": "it cannot be read",
    "special": "it is not a regular file",
}


CHATS = ("compaction",)


@dataclass(frozen=True, slots=True)
class Content:
    """A version's text, or why there is none."""

    text: str | None
    text_hash: str | None
    version: int
    why: str = ""


def content_of(session: Session, wanted: Wanted) -> Content:
    """The content that was asked for: the newest, an old version, or the one as of a call.

    Raises `ToolError` for a version, call or part that the session does not have.
    """
    if wanted.slice is not None:
        return _part(session, wanted, wanted.slice)
    entry = wanted.entry
    if wanted.version is not None and wanted.version != entry.pin.version:
        pin, token = pin_of(session.store, session.id, entry.ordinal, wanted.version)
        document = session.store.get(entry.object, Document, token)
        return _content(document, pin.version)
    if wanted.call is not None:
        return _as_of_call(session, entry, wanted.call)
    return _content(session.store.get(entry.object, Document), entry.pin.version)


def _part(session: Session, wanted: Wanted, part: Slice) -> Content:
    """A range of turns of a chat that was put away, or a range of characters of any text."""
    entry = wanted.entry
    chat = session.store.get(entry.object, CompactionDocument) if entry.type in CHATS else None
    if part.unit == "turn":
        if chat is None:
            raise ToolError(f"@{entry.ordinal} is a {entry.type}: only a chat has turns.")
        told = turns_of(chat, part.first, part.last, session.store.blob)
        return Content(told, None, entry.pin.version)
    whole = content_of(session, replace(wanted, slice=None))
    text = whole.text
    if chat is not None:
        text = turns_of(chat, chat.first_turn, chat.last_turn, session.store.blob)
    if text is None or part.first > len(text) or part.last < part.first:
        length = 0 if text is None else len(text)
        raise ToolError(f"@{entry.ordinal} has {length:,} characters.")
    return Content(text[max(0, part.first - 1) : part.last], None, whole.version)


def pin_of(store: Store, session: str, ordinal: int, version: int) -> tuple[Pin, Token]:
    """The pin of `@ordinal v<version>` with the token to read it by.

    Raises `ToolError` where there is none.
    """
    known = 0
    for pin, token in pins_of(store, session, ordinal):
        known = max(known, pin.version)
        if pin.version == version:
            return pin, token
    raise ToolError(f"@{ordinal} has no v{version}: this session has seen v1 to v{known}.")


def pins_of(store: Store, session: str, ordinal: int) -> Iterator[tuple[Pin, Token]]:
    """Every version of `@ordinal` that a session has seen, with the token to read it by.

    A forked session has the older ones from its parent. What the parent met after the fork is
    left out: newer versions, or another object under the same handle.
    """
    member = store.head(member_id(session, ordinal))
    object = None if member is None else member.fields["object"]
    current: str | None = session
    lowest: int | None = None
    while current is not None:
        for pin, token in _own_pins(store, current, ordinal):
            if pin.object == object and (lowest is None or pin.version < lowest):
                yield pin, token
        first = next(_own_pins(store, current, ordinal), None)
        if first is not None and first[0].object == object:
            lowest = first[0].version
        wrapper = store.head(session_object_id(current))
        current = None if wrapper is None else wrapper.fields.get("parent_session")


def _own_pins(store: Store, session: str, ordinal: int) -> Iterator[tuple[Pin, Token]]:
    """The versions that this very session has met, oldest first."""
    for head in store.history(member_id(session, ordinal)):
        pin = Pin.model_validate(head.fields["pin"])
        yield pin, head.token if pin.token == SAME_TRANSACTION else Token(pin.token)


def _as_of_call(session: Session, entry: Entry, call: int) -> Content:
    record = session.store.head(call_id(session.id, call))
    if record is None:
        raise ToolError(f"There is no call {call}; calls go from 1 to {session.log.newest}.")
    document = session.store.get(entry.object, Document, record.token)
    if document is None:
        raise ToolError(f"@{entry.ordinal} did not exist yet at call {call}.")
    return _content(document, version_of(session, entry, document))


def version_of(session: Session, entry: Entry, document: Document) -> int:
    """The ordinal by which the session knows this version; the newest if by none."""
    for head in session.store.history(member_id(session.id, entry.ordinal)):
        if head.fields["pin"]["content_hash"] == document.content_hash:
            return int(head.fields["pin"]["version"])
    return entry.pin.version


def _content(document: Document | None, version: int) -> Content:
    if document is None:
        return Content(None, None, version, "it is not stored")
    if document.content is None:
        state = str((document.model_extra or {}).get("state") or "")
        return Content(None, None, version, WHY_NO_CONTENT.get(state, "it has none"))
    return Content(document.content, hash_text(document.content), version)
