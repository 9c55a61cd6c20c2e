"""What a session's index is made of, read from its `member` documents or kept between processes.

The documents stay the truth. What was read of one is kept as long as its newest version is the
same, which the store knows of all without reading any.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import NamedTuple, Self

from foredeck.model.canonical import hash_of_modules
from foredeck.model.records import SAME_TRANSACTION, VersionRef
from foredeck.store.protocol import Head, Origin, Store

DECIDED_BY = ("context/state/members.py", "model/records.py")
"""The modules that decide what is read of a document."""


class Member(NamedTuple):
    """What the newest version of a `member` document says, and the transaction that wrote it.

    A named tuple, since a session that is opened makes thousands of them.
    """

    token: str
    time_ms: int
    ordinal: int
    object: str
    type: str
    label: str
    version: int
    pin: str
    """Token of the transaction that wrote the version of the object."""
    content_hash: str
    text_hash: str | None
    metadata_view_hash: str

    @classmethod
    def of(cls, head: Head) -> Self:
        """What a document says."""
        fields, pin = head.fields, head.fields["pin"]
        # Written before its transaction had a token, which is that of this very document.
        own = pin["token"] == SAME_TRANSACTION
        return cls(
            head.token,
            head.time_ms,
            fields["ordinal"],
            fields["object"],
            fields["object_type"],
            fields.get("label") or "",
            pin["version"],
            head.token if own else pin["token"],
            pin["content_hash"],
            pin["text_hash"],
            pin["metadata_view_hash"],
        )

    @property
    def ref(self) -> VersionRef:
        """The version of the object."""
        # As it was written: it was validated then.
        return VersionRef.model_construct(
            object=self.object,
            version=self.version,
            token=self.pin,
            content_hash=self.content_hash,
            text_hash=self.text_hash,
            metadata_view_hash=self.metadata_view_hash,
        )

    def is_of(self, origin: Origin) -> bool:
        """Whether this transaction wrote it."""
        return self.token == origin.token and self.time_ms == origin.time_ms


@dataclass(frozen=True, slots=True)
class KeptMembers:
    """The members of one session as they were read, by the ids of the documents."""

    members: dict[str, Member] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """As a file holds it: field by field, which is read back faster than member by member."""
        columns = list(zip(*self.members.values(), strict=True))
        return json.dumps(
            {"format": hash_of_modules(DECIDED_BY), "ids": list(self.members), "columns": columns}
        ).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self | None:
        """The inverse of `to_bytes`; None for what other code has written."""
        try:
            kept = json.loads(data)
            if kept["format"] != hash_of_modules(DECIDED_BY):
                return None
            return cls(dict(zip(kept["ids"], map(Member, *kept["columns"]), strict=True)))
        except (ValueError, TypeError, KeyError, OSError):
            return None


def read_members(store: Store, session: str, kept: KeptMembers | None = None) -> dict[str, Member]:
    """The members of a session, oldest document first. Only those that are not kept, or have
    changed since, are read from the store."""
    local = store.local
    if kept is None or local is None:
        return {head.id: Member.of(head) for head in store.query("member", {"session": session})}
    newest = local.origins("member", session)
    held = kept.members
    same = {id for id, origin in newest.items() if id in held and held[id].is_of(origin)}
    read = store.heads(id for id in newest if id not in same)
    found = held | {id: Member.of(head) for id, head in read.items()}
    return {id: found[id] for id in newest if id in same or id in read}
