"""From a pin to the very version that it names, verified on the way."""

from __future__ import annotations

from collections.abc import Iterator

from foredeck.errors import Corrupt, ToolError
from foredeck.model.documents import Document, session_object_id
from foredeck.model.records import SAME_TRANSACTION, Pin, call_id, member_id
from foredeck.store.protocol import Head, Store, Token


def pins_of(store: Store, session: str, ordinal: int) -> Iterator[Pin]:
    """Every version of `@ordinal` that a session has seen.

    A forked session has the older ones from its parent. What the parent met after the fork is
    left out: newer versions, or another object under the same handle.
    """
    member = store.head(member_id(session, ordinal))
    object = None if member is None else member.fields["object"]
    current: str | None = session
    lowest: int | None = None
    while current is not None:
        own = [pin_of_member(head) for head in store.history(member_id(current, ordinal))]
        for pin in own:
            if pin.object == object and (lowest is None or pin.version < lowest):
                yield pin
        if own and own[0].object == object:
            lowest = own[0].version
        wrapper = store.head(session_object_id(current))
        current = None if wrapper is None else wrapper.fields.get("parent_session")


def pin_of(store: Store, session: str, ordinal: int, version: int) -> Pin:
    """The pin of `@ordinal v<version>`. Raises `ToolError` where the session has seen none."""
    known = 0
    for pin in pins_of(store, session, ordinal):
        known = max(known, pin.version)
        if pin.version == version:
            return pin
    raise ToolError(f"@{ordinal} has no v{version}: this session has seen v1 to v{known}.")


def pin_at_call(store: Store, session: str, ordinal: int, call: int) -> Pin:
    """What `@ordinal` meant when a call was made: the version that the session had then.

    It goes by the session's own index as of the call's record. The object's history would not do:
    what was imported or delivered late takes its place there by time, though nobody saw it here.
    Raises `ToolError` where there is no such call, or the session did not know the object yet.
    """
    record = store.head(call_id(session, call))
    if record is None:
        calls = len(store.query("call", {"session": session}))
        raise ToolError(f"There is no call {call}; calls go from 1 to {calls}.")
    member = store.head(member_id(session, ordinal), record.token)
    if member is None:
        raise ToolError(f"@{ordinal} did not exist yet at call {call}.")
    return pin_of_member(member)


def load_pinned(store: Store, pin: Pin) -> Document | None:
    """The version that a pin names, None where the object is not stored at all.

    Raises `Corrupt` where what is stored there is not what was pinned.
    """
    document = store.get(pin.object, Document, Token(pin.token))
    if document is not None:
        verify(pin, document.content_hash, document.text_hash)
    return document


def verify(pin: Pin, content_hash: str | None, text_hash: str | None) -> None:
    """Raise `Corrupt` unless a version has the hashes that its pin says."""
    if (content_hash, text_hash) != (pin.content_hash, pin.text_hash):
        raise Corrupt(
            f"{pin.object} v{pin.version} is damaged: the version stored at {pin.token} is not the "
            "one that was seen (its hashes differ from those of the pin)"
        )


def pin_of_member(member: Head) -> Pin:
    """The pin of an index entry, under the token by which its version is read."""
    pin = Pin.model_validate(member.fields["pin"])
    own = pin.token == SAME_TRANSACTION
    return pin.model_copy(update={"token": member.token}) if own else pin
