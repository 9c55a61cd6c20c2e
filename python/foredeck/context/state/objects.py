"""A session's objects, and the transaction that writes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from foredeck.context.messages.items import Item
from foredeck.context.state.descriptions import moved_claims
from foredeck.context.state.index import Entry, SeenVersion, SessionIndex
from foredeck.model.documents import (
    PASTE_CHARS,
    Document,
    SessionDocument,
    UserDocument,
    chat_id,
    session_object_id,
    system_prompt_id,
    user_object_id,
)
from foredeck.model.identity import hash_text
from foredeck.model.messages import put_blob, texts_in
from foredeck.model.records import SAME_TRANSACTION
from foredeck.model.sources import filesystem_source
from foredeck.sources.snapshots import FileSnapshot, is_captured
from foredeck.store.protocol import Batch, Head, Token
from foredeck.store.store import Store

if TYPE_CHECKING:  # imported with the first question to it, and by sessions that are open
    from foredeck.notes.graph import Graph
    from foredeck.sources.recorded import FileSource


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """A session's identity and origin."""

    id: str
    cwd: str
    ancestors: frozenset[str] = frozenset()
    """Sessions it was forked from, directly or not."""
    is_live: bool = True
    """Whether tools run here and now, so the disk shows their effects."""
    calls_at_opening: int = 0
    """Ordinal of the newest call when the session opened."""
    was_read_in: bool = False
    """Its history was read from a file, so some turns have no call record."""
    origin: str = ""
    """Harness and file of an old history."""

    @property
    def family(self) -> frozenset[str]:
        """The session and its ancestors."""
        return self.ancestors | {self.id}

    def is_always_in_view(self, object: str) -> bool:
        """The chat or system prompt of the session or an ancestor."""
        return any(object in (chat_id(id), system_prompt_id(id)) for id in self.family)


PENDING = Token("")


class Workspace:
    """Documents and blobs for one commit."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.blobs: dict[str, bytes] = {}
        self.pending: dict[str, Document] = {}
        self._expect: dict[str, Token | None] = {}
        self._stored: dict[str, Head | None] = {}

    def put(self, document: Document, *, new: bool = False) -> None:
        """`new`: the commit raises `Conflict` if the id is stored already."""
        self.pending[document.id] = document
        if new:
            self._expect[document.id] = None

    def put_over(self, document: Document, head: Head | None) -> None:
        """The commit raises `Conflict` unless `head` is the newest version."""
        self.pending[document.id] = document
        self._expect[document.id] = None if head is None else head.token

    def put_bytes(self, data: bytes) -> str:
        """Adds bytes; returns their address."""
        return put_blob(data, self.blobs)

    def head(self, id: str) -> Head | None:
        """The newest version of a document, this transaction included."""
        document = self.pending.get(id)
        if document is None:
            return self._stored[id] if id in self._stored else self.store.head(id)
        fields = document.model_dump(exclude={"content"})
        return Head(document.id, document.type, PENDING, 0, fields)

    def look_up(self, ids: Iterable[str]) -> None:
        """Loads the newest versions of several documents at once."""
        missing = [id for id in dict.fromkeys(ids) if id not in self._stored]
        heads = self.store.heads(missing) if missing else {}
        self._stored.update((id, heads.get(id)) for id in missing)

    @contextmanager
    def looked_up(self, ids: Iterable[str]) -> Iterator[None]:
        """As `look_up`, for this block only."""
        before = set(self._stored)
        self.look_up(ids)
        try:
            yield
        finally:
            self._stored = {id: head for id, head in self._stored.items() if id in before}

    @property
    def empty(self) -> bool:
        return not self.pending and not self.blobs

    def commit_if_new(self) -> None:
        # Blobs alone are of messages that are stored already: they need not be stored once more.
        if self.pending:
            self.commit()
        self.discard()

    def commit(self) -> Token:
        """Commits and starts afresh; a failure keeps everything collected."""
        batch = Batch(list(self.pending.values()), dict(self.blobs), dict(self._expect))
        token = self.store.commit(batch)
        self.discard()
        return token

    def discard(self) -> None:
        """Starts afresh without a commit."""
        self.pending.clear()
        self._expect.clear()
        self._stored.clear()
        self.blobs.clear()


OpenGraph = Callable[[], AbstractContextManager["Graph"]]


@dataclass(frozen=True, slots=True)
class Objects:
    """What a session has met, and what its next transaction writes.

    All writes go through `workspace`; `see...` methods add to `index`.
    """

    info: SessionInfo
    workspace: Workspace
    index: SessionIndex
    source: FileSource
    open_graph: OpenGraph | None = None

    @property
    def store(self) -> Store:
        return self.workspace.store

    def document(self) -> SessionDocument | None:
        """The session's own document, with pending changes."""
        id = session_object_id(self.info.id)
        document = self.workspace.pending.get(id) or self.store.get(id, SessionDocument)
        return document if isinstance(document, SessionDocument) else None

    def is_an_agents(self) -> bool:
        """Whether an agent started the session."""
        head = self.workspace.head(session_object_id(self.info.id))
        return head is not None and head.fields.get("started_by") is not None

    def name_of(self, entry: Entry) -> str:
        """A file's path as tools see it, or the label."""
        head = self.workspace.head(entry.object) if entry.type == "file" else None
        source = None if head is None else filesystem_source(head.fields)
        return entry.label if source is None else self.source.agent_path(source)

    def see_document(self, document: Document, label: str = "") -> Entry:
        return self.see(SeenVersion.of(document, label))

    def see_head(self, head: Head, label: str = "") -> Entry:
        fields = head.fields
        return self.see(
            SeenVersion(
                head.id,
                head.type,
                label,
                fields["content_hash"],
                fields.get("text_hash"),
                fields["metadata_view_hash"],
                SAME_TRANSACTION if head.token == PENDING else head.token,
                is_captured(fields),
            )
        )

    def see(self, seen: SeenVersion) -> Entry:
        """Records that the session has seen a version."""
        entry, document = self.index.see(seen)
        if document is not None:
            self.workspace.put(document, new=entry.newest.version == 1)
        return entry


def paste_of(item: Item) -> str | None:
    """The one long text of a user's message, if there is just one."""
    if item.kind != "user":
        return None
    long = [text for text in texts_in(item.blocks) if len(text) >= PASTE_CHARS]
    return long[0] if len(long) == 1 else None


def user_object(objects: Objects, text: str) -> Entry:
    """The object of a user's text, created if needed; the caller commits."""
    id = user_object_id(hash_text(text))
    ordinal = objects.index.by_object.get(id)
    if ordinal is not None:
        return objects.index.entries[ordinal]
    head = objects.workspace.head(id)
    if head is not None:
        return objects.see_head(head)
    document = UserDocument.of(text)
    objects.workspace.put(document)
    return objects.see_document(document)


def store_versions(store: Store, snapshots: Sequence[FileSnapshot]) -> Token:
    """Commits versions on top of those they were compared with. Raises `Conflict` if another
    process was faster."""
    # On top of any other the same bytes would become two versions.
    batch = Batch()
    for snapshot in snapshots:
        if snapshot.document is not None:
            batch.puts.append(snapshot.document)
            batch.expect[snapshot.object_id] = snapshot.head.token if snapshot.head else None
    for claim, before in moved_claims(store, snapshots):
        batch.puts.append(claim)
        batch.expect[claim.id] = before.token
    return store.commit(batch) if batch.puts else PENDING
