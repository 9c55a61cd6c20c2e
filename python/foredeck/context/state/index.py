"""Every object a session has met, under permanent handles.

`@12` is the same on every branch. A `member` document per object names the versions seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from foredeck.errors import Corrupt, ToolError
from foredeck.model.calls import Delta, SetChanges
from foredeck.model.documents import Document, session_object_id
from foredeck.model.records import SAME_TRANSACTION, MemberDocument, VersionRef, call_id, member_id
from foredeck.sources.snapshots import CAPTURED
from foredeck.store.protocol import Head, Token
from foredeck.store.store import Store


@dataclass(slots=True)
class Sets:
    """Sets where pinned is within active within pool, after every method."""

    pool: set[int] = field(default_factory=set)
    active: set[int] = field(default_factory=set)
    # A pin outlives the content: where that leaves the prompt, since it does not fit or its message
    # has left the list, the object waits, and is pinned again as soon as it is active.
    pins: set[int] = field(default_factory=set)
    """Objects pinned by user or model, in view or not."""
    _recorded: tuple[set[int], ...] = field(init=False)

    def __post_init__(self) -> None:
        self._recorded = tuple(map(set, self._members))

    @property
    def _members(self) -> tuple[set[int], set[int], set[int]]:
        return self.pool, self.active, self.pins

    @property
    def pinned(self) -> AbstractSet[int]:
        """Pinned objects in view."""
        return self.pins & self.active

    @property
    def waiting(self) -> AbstractSet[int]:
        """Pinned objects out of view."""
        return self.pins - self.active

    def innermost(self, ordinal: int) -> str:
        """`pinned`, `waiting` (pinned, out of view), `active`, `inactive` (in the pool) or
        `indexed`."""
        if ordinal in self.pins:
            return "pinned" if ordinal in self.active else "waiting"
        if ordinal in self.active:
            return "active"
        return "inactive" if ordinal in self.pool else "indexed"

    def show(self, ordinal: int) -> None:
        """Puts an object into the pool."""
        self.pool.add(ordinal)

    def activate(self, ordinal: int) -> None:
        self.pool.add(ordinal)
        self.active.add(ordinal)

    def deactivate(self, ordinal: int) -> None:
        """Makes an object inactive, or drops an inactive one from the pool; unpins it."""
        self.pins.discard(ordinal)
        (self.active if ordinal in self.active else self.pool).discard(ordinal)

    def expire(self, ordinal: int) -> None:
        """Makes an object inactive unasked: it stays in the pool, and a pinned one waits."""
        self.active.discard(ordinal)

    def pin(self, ordinal: int) -> None:
        """Activates an object, and keeps it from expiring while it fits."""
        self.activate(ordinal)
        self.pins.add(ordinal)

    def unpin(self, ordinal: int) -> None:
        """Lets an object expire again; it stays active for now."""
        self.pins.discard(ordinal)

    def apply(self, decision: Mapping[str, Any]) -> None:
        ordinal = decision["ordinal"]
        match decision.get("op"):
            case "list":
                self.show(ordinal)
            case "activate":
                self.activate(ordinal)
            case "deactivate":
                self.deactivate(ordinal)
            case "pin":
                self.pin(ordinal)
            case "unpin":
                self.unpin(ordinal)

    def move(self, old: int, new: int) -> None:
        """Replaces an object by another in every set."""
        for members in self._members:
            if old in members:
                members.remove(old)
                members.add(new)

    def become(self, other: Sets) -> None:
        """Adopts another branch's members."""
        self.pool, self.active, self.pins = map(set, other._members)

    def pop_changes(self) -> SetChanges:
        # What was done and undone in between is no change.
        deltas = map(Delta.between, self._recorded, self._members)
        self._recorded = tuple(map(set, self._members))
        return SetChanges(*deltas)

    def replay(self, changes: SetChanges) -> None:
        deltas = (changes.pool, changes.active, changes.pinned)
        for members, recorded, delta in zip(self._members, self._recorded, deltas, strict=True):
            for each in (members, recorded):
                each.update(delta.added)
                each.difference_update(delta.removed)


class Member(NamedTuple):
    # A named tuple, since a session that is opened makes thousands of them.

    ordinal: int
    object: str
    type: str
    label: str
    version: int
    version_ref: str
    content_hash: str
    text_hash: str | None
    metadata_view_hash: str

    @classmethod
    def of(cls, head: Head) -> Self:
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
    """A session's members, oldest first."""
    return [Member.of(head) for head in store.query("member", {"session": session})]


@dataclass(frozen=True, slots=True)
class SeenVersion:
    """A version as the session sees it."""

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

    @classmethod
    def of(cls, document: Document, label: str = "", token: str = SAME_TRANSACTION) -> SeenVersion:
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
    """An object in the index."""

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
    """The highest handle in use."""

    @classmethod
    def load(cls, session: str, members: Iterable[Member]) -> SessionIndex:
        index = cls(session)
        for member in members:
            index._add(Entry(member.ordinal, member.object, member.type, member.label, member))
        return index

    def __len__(self) -> int:
        return len(self.entries)

    def see(self, seen: SeenVersion) -> tuple[Entry, MemberDocument | None]:
        """Records that the session has seen a version; a document to store if that is new."""
        ordinal = self.by_object.get(seen.object)
        entry = None if ordinal is None else self.entries[ordinal]
        if entry is not None and (seen.unread or entry.newest.content_hash == seen.content_hash):
            return entry, None
        ref = VersionRef(
            object=seen.object,
            version=1 if entry is None else entry.newest.version + 1,
            token=seen.token,
            content_hash=seen.content_hash,
            text_hash=None if seen.unread else seen.text_hash,
            metadata_view_hash=seen.metadata_view_hash,
        )
        if entry is None:
            entry = Entry(self._last + 1, seen.object, seen.type, seen.label, ref)
            self._add(entry)
        else:
            entry.newest = ref
        return entry, self._document(entry)

    def version_of(self, object: str, content_hash: str | None) -> int:
        """The number that a version has or will get."""
        ordinal = self.by_object.get(object)
        if ordinal is None:
            return 1
        ref = self.entries[ordinal].newest
        return ref.version if ref.content_hash == content_hash else ref.version + 1

    def inherit(self, entry: Entry) -> MemberDocument:
        """Adopts another session's entry, with handle and version number."""
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
    """Every version of an object that a session has seen; a fork includes its parent's."""
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
    """`@ordinal v<version>`. Raises `ToolError` if the session has not seen it."""
    refs = []
    for ref in versions_seen(store, session, ordinal):
        refs.append(ref.version)
        if ref.version == version:
            return ref
    # Of several changes in one answer of the model only the last is kept under a number.
    numbers = sorted(refs)
    is_gapless = numbers == [*range(1, len(numbers) + 1)]
    if not numbers:
        numbers_text = "no other version yet"  # the object was met in this very tool call
    elif is_gapless:
        numbers_text = f"v1 to v{numbers[-1]}"
    else:
        numbers_text = ", ".join(f"v{number}" for number in numbers)
    raise ToolError(f"@{ordinal} has no v{version}: this session has seen {numbers_text}.")


def version_at_call(store: Store, session: str, ordinal: int, call: int) -> VersionRef:
    """The version that the session had at a call; raises `ToolError` if there is none."""
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
    """The newest version whose text hash begins with `start`, in any session. Raises `ToolError` if
    none does."""
    for head in reversed(store.history(object)):
        if str(head.fields.get("text_hash") or "").startswith(start):
            document = store.get(object, Document, head.token)
            if document is not None:
                return document
    raise ToolError(f"No version that is stored has a hash that begins {start}.")


def load_version(store: Store, ref: VersionRef) -> Document | None:
    """The version that a reference names; None if the object is not stored. Raises `Corrupt` if its
    hashes differ."""
    document = store.get(ref.object, Document, Token(ref.token))
    if document is not None:
        verify(ref, document.content_hash, document.text_hash)
    return document


def verify(ref: VersionRef, content_hash: str | None, text_hash: str | None) -> None:
    """Raises `Corrupt` unless the hashes match the reference."""
    if (content_hash, text_hash) != (ref.content_hash, ref.text_hash):
        raise Corrupt(
            f"{ref.object} v{ref.version} is damaged: the version stored at {ref.token} is not the "
            "one that was seen (its hashes differ from those on record)"
        )
