"""A session's index: every object that it has seen a version of, under handles that never change.

The index is append-only and belongs to the session, not to a branch: `@12` means the same object
wherever it is, and is never given to another. It is stored as one `member` document for each
object, whose versions say which versions of the object the session has seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, Self

from foredeck.errors import Corrupt, ToolError
from foredeck.model.documents import Document, session_object_id
from foredeck.model.records import SAME_TRANSACTION, MemberDocument, VersionRef, call_id, member_id
from foredeck.sources.snapshots import CAPTURED
from foredeck.store.protocol import Head, Store, Token


class Member(NamedTuple):
    """What the newest version of a `member` document says."""

    # A named tuple, since a session that is opened makes thousands of them.

    ordinal: int
    object: str
    type: str
    label: str
    version: int
    version_ref: str
    """Token of the transaction that wrote the version of the object."""
    content_hash: str
    text_hash: str | None
    metadata_view_hash: str

    @classmethod
    def of(cls, head: Head) -> Self:
        """What a document says."""
        fields, version_ref = head.fields, head.fields["version_ref"]
        # Written before its transaction had a token, which is that of this very document.
        own = version_ref["token"] == SAME_TRANSACTION
        return cls(
            fields["ordinal"],
            fields["object"],
            fields["object_type"],
            fields.get("label") or "",
            version_ref["version"],
            head.token if own else version_ref["token"],
            version_ref["content_hash"],
            version_ref["text_hash"],
            version_ref["metadata_view_hash"],
        )

    @property
    def ref(self) -> VersionRef:
        """The version of the object."""
        # Not validated once more: it was when it was written.
        return VersionRef.model_construct(
            object=self.object,
            version=self.version,
            token=self.version_ref,
            content_hash=self.content_hash,
            text_hash=self.text_hash,
            metadata_view_hash=self.metadata_view_hash,
        )


def read_members(store: Store, session: str) -> list[Member]:
    """The members of a session, oldest document first."""
    return [Member.of(head) for head in store.query("member", {"session": session})]


@dataclass(frozen=True, slots=True)
class SeenVersion:
    """A version of an object as the session sees it."""

    object: str
    type: str
    label: str
    content_hash: str
    text_hash: str | None
    metadata_view_hash: str
    token: str = SAME_TRANSACTION
    # Of such a file the session has met no more than a name: what a command has made of its content
    # is no news to it.
    unread: bool = False
    """Whether it is of a file that no tool has shown."""

    @classmethod
    def of(cls, document: Document, label: str = "", token: str = SAME_TRANSACTION) -> SeenVersion:
        """A document of this transaction, or of the one that `token` names."""
        return cls(
            document.id,
            document.type,
            label,
            document.content_hash,
            document.text_hash,
            document.metadata_view_hash,
            token,
            CAPTURED in (document.provenance.model_extra or {}),
        )


@dataclass(slots=True, eq=False)
class Entry:
    """One object in the index."""

    ordinal: int
    object: str
    type: str
    label: str
    _newest: VersionRef | Member

    @property
    def newest(self) -> VersionRef:
        """The newest version that the session has seen."""
        # Made when it is asked for: of the thousands of a long session most never are.
        if isinstance(self._newest, Member):
            self._newest = self._newest.ref
        return self._newest

    @newest.setter
    def newest(self, ref: VersionRef) -> None:
        self._newest = ref


@dataclass(slots=True)
class SessionIndex:
    """Handles to objects and back."""

    session: str
    entries: dict[int, Entry] = field(default_factory=dict)
    by_object: dict[str, int] = field(default_factory=dict)
    by_label: dict[str, int] = field(default_factory=dict)
    # Not the number of entries: some are missing where a session was erased while it was open.
    _last: int = 0
    """The highest handle that was given."""

    @classmethod
    def load(cls, session: str, members: Iterable[Member]) -> SessionIndex:
        """The index that these make up."""
        index = cls(session)
        for member in members:
            index._add(Entry(member.ordinal, member.object, member.type, member.label, member))
        return index

    def __len__(self) -> int:
        return len(self.entries)

    def see(self, seen: SeenVersion) -> tuple[Entry, MemberDocument | None]:
        """Note that the session has seen a version of an object.

        Returns its entry, and the document to store where the object or the version is new.
        """
        ordinal = self.by_object.get(seen.object)
        known = None if ordinal is None else self.entries[ordinal]
        if known is not None and (seen.unread or known.newest.content_hash == seen.content_hash):
            return known, None
        ref = VersionRef(
            object=seen.object,
            version=1 if known is None else known.newest.version + 1,
            token=seen.token,
            content_hash=seen.content_hash,
            text_hash=None if seen.unread else seen.text_hash,
            metadata_view_hash=seen.metadata_view_hash,
        )
        if known is None:
            known = Entry(self._last + 1, seen.object, seen.type, seen.label, ref)
            self._add(known)
        else:
            known.newest = ref
        return known, self._document(known)

    def version_of(self, object: str, content_hash: str | None) -> int:
        """The number that a version has, or will have once the session sees it."""
        ordinal = self.by_object.get(object)
        if ordinal is None:
            return 1
        ref = self.entries[ordinal].newest
        return ref.version if ref.content_hash == content_hash else ref.version + 1

    def inherit(self, entry: Entry) -> MemberDocument:
        """Take over another session's entry under the same handle, version numbers included."""
        own = Entry(entry.ordinal, entry.object, entry.type, entry.label, entry.newest)
        self._add(own)
        return self._document(own)

    def _add(self, entry: Entry) -> None:
        self.entries[entry.ordinal] = entry
        self._last = max(self._last, entry.ordinal)
        self.by_object[entry.object] = entry.ordinal
        if entry.label:
            self.by_label[entry.label] = entry.ordinal

    def _document(self, entry: Entry) -> MemberDocument:
        return MemberDocument(
            id=member_id(self.session, entry.ordinal),
            session=self.session,
            ordinal=entry.ordinal,
            object=entry.object,
            object_type=entry.type,
            label=entry.label,
            version_ref=entry.newest,
        ).seal()


def versions_seen(store: Store, session: str, ordinal: int) -> Iterator[VersionRef]:
    """Every version of `@ordinal` that a session has seen, as a fork also those of its parent."""
    # What the parent met after the fork is left out: newer versions, or another object under the
    # same handle.
    member = store.head(member_id(session, ordinal))
    object = None if member is None else member.view(MemberDocument).object
    current: str | None = session
    lowest: int | None = None
    while current is not None:
        own = [Member.of(head).ref for head in store.history(member_id(current, ordinal))]
        for ref in own:
            if ref.object == object and (lowest is None or ref.version < lowest):
                yield ref
        if own and own[0].object == object:
            lowest = own[0].version
        wrapper = store.head(session_object_id(current))
        current = None if wrapper is None else wrapper.fields.get("parent_session")


def version_seen(store: Store, session: str, ordinal: int, version: int) -> VersionRef:
    """`@ordinal v<version>`. Raises `ToolError` where the session has not seen it."""
    known = []
    for ref in versions_seen(store, session, ordinal):
        known.append(ref.version)
        if ref.version == version:
            return ref
    # Of several changes in one answer of the model only the last is kept under a number.
    numbers = sorted(known)
    is_gapless = numbers == [*range(1, len(numbers) + 1)]
    if not numbers:
        seen = "no other version yet"  # the object was met in this very tool call
    elif is_gapless:
        seen = f"v1 to v{numbers[-1]}"
    else:
        seen = ", ".join(f"v{number}" for number in numbers)
    raise ToolError(f"@{ordinal} has no v{version}: this session has seen {seen}.")


def version_at_call(store: Store, session: str, ordinal: int, call: int) -> VersionRef:
    """What `@ordinal` meant when a call was made: the version that the session had then.

    Raises `ToolError` where there is no such call, or the session did not know the object yet.
    """
    record = store.head(call_id(session, call))
    if record is None:
        calls = len(store.query("call", {"session": session}))
        raise ToolError(f"There is no call {call}; calls go from 1 to {calls}.")
    # By the session's own index, and not by the object's history: what was imported or delivered
    # late stands there by its time, though it was not seen here.
    member = store.head(member_id(session, ordinal), record.token)
    if member is None:
        raise ToolError(f"@{ordinal} did not exist yet at call {call}.")
    return Member.of(member).ref


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


def load_version(store: Store, ref: VersionRef) -> Document | None:
    """The version that a reference names, None where the object is not stored at all.

    Raises `Corrupt` where what is stored there is not what the session saw.
    """
    document = store.get(ref.object, Document, Token(ref.token))
    if document is not None:
        verify(ref, document.content_hash, document.text_hash)
    return document


def verify(ref: VersionRef, content_hash: str | None, text_hash: str | None) -> None:
    """Raise `Corrupt` unless a version has the hashes that its reference says."""
    if (content_hash, text_hash) != (ref.content_hash, ref.text_hash):
        raise Corrupt(
            f"{ref.object} v{ref.version} is damaged: the version stored at {ref.token} is not the "
            "one that was seen (its hashes differ from those on record)"
        )
