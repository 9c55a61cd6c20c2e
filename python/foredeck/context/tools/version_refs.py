"""The versions of an object that a session has seen, each loaded by its reference and verified."""

from __future__ import annotations

from collections.abc import Iterator

from foredeck.errors import Corrupt, ToolError
from foredeck.model.documents import Document, session_object_id
from foredeck.model.records import SAME_TRANSACTION, MemberDocument, VersionRef, call_id, member_id
from foredeck.store.protocol import Head, Store, Token


def versions_seen(store: Store, session: str, ordinal: int) -> Iterator[VersionRef]:
    """Every version of `@ordinal` that a session has seen.

    A forked session has the older ones from its parent. What the parent met after the fork is
    left out: newer versions, or another object under the same handle.
    """
    member = store.head(member_id(session, ordinal))
    object = None if member is None else member.view(MemberDocument).object
    current: str | None = session
    lowest: int | None = None
    while current is not None:
        own = [ref_of_member(head) for head in store.history(member_id(current, ordinal))]
        for ref in own:
            if ref.object == object and (lowest is None or ref.version < lowest):
                yield ref
        if own and own[0].object == object:
            lowest = own[0].version
        wrapper = store.head(session_object_id(current))
        current = None if wrapper is None else wrapper.fields.get("parent_session")


def version_seen(store: Store, session: str, ordinal: int, version: int) -> VersionRef:
    """`@ordinal v<version>`. Raises `ToolError` where the session has not seen it."""
    known = 0
    for ref in versions_seen(store, session, ordinal):
        known = max(known, ref.version)
        if ref.version == version:
            return ref
    raise ToolError(f"@{ordinal} has no v{version}: this session has seen v1 to v{known}.")


def version_at_call(store: Store, session: str, ordinal: int, call: int) -> VersionRef:
    """What `@ordinal` meant when a call was made: the version that the session had then.

    It goes by the session's own index as of the call's record. The object's history would not do:
    what was imported or delivered late takes its place there by time, though it was not seen here.
    Raises `ToolError` where there is no such call, or the session did not know the object yet.
    """
    record = store.head(call_id(session, call))
    if record is None:
        calls = len(store.query("call", {"session": session}))
        raise ToolError(f"There is no call {call}; calls go from 1 to {calls}.")
    member = store.head(member_id(session, ordinal), record.token)
    if member is None:
        raise ToolError(f"@{ordinal} did not exist yet at call {call}.")
    return ref_of_member(member)


def load_version(store: Store, ref: VersionRef) -> Document | None:
    """The version that a reference names, None where the object is not stored at all.

    Raises `Corrupt` where what is stored there is not what the session saw.
    """
    document = store.get(ref.object, Document, Token(ref.token))
    if document is not None:
        verify(ref, document.content_hash, document.text_hash)
    return document


def version_with_hash(store: Store, object: str, start: str) -> Document:
    """The newest version of an object whose text has a hash that begins so, whoever has seen it.

    Raises `ToolError` where there is none.
    """
    for head in reversed(store.history(object)):
        if str(head.fields.get("text_hash") or "").startswith(start):
            document = store.get(object, Document, head.token)
            if document is not None:
                return document
    raise ToolError(f"No version that is stored has a hash that begins {start}.")


def verify(ref: VersionRef, content_hash: str | None, text_hash: str | None) -> None:
    """Raise `Corrupt` unless a version has the hashes that its reference says."""
    if (content_hash, text_hash) != (ref.content_hash, ref.text_hash):
        raise Corrupt(
            f"{ref.object} v{ref.version} is damaged: the version stored at {ref.token} is not the "
            "one that was seen (its hashes differ from those of the pin)"
        )


def ref_of_member(member: Head) -> VersionRef:
    """The reference in an index entry, under the token by which its version is read."""
    ref = VersionRef.model_validate(member.fields["pin"])
    own = ref.token == SAME_TRANSACTION
    return ref.model_copy(update={"token": member.token}) if own else ref
