"""The objects of a session: its index, the versions it has seen, and the transaction at hand."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from foredeck.context.state.index import Entry, SeenVersion, SessionIndex
from foredeck.context.state.info import SessionInfo
from foredeck.context.state.workspace import PENDING, Workspace
from foredeck.model.documents import Document, SessionDocument, session_object_id
from foredeck.model.records import SAME_TRANSACTION
from foredeck.model.sources import filesystem_source
from foredeck.sources.indexing import FileSnapshot, FileSource, Pending, ToolEvent
from foredeck.sources.versions import is_captured
from foredeck.store.protocol import Head, Store

if TYPE_CHECKING:  # imported with the first question to it
    from foredeck.notes.graph import Graph

Recall = Callable[[ToolEvent, Pending], list[FileSnapshot]]
OpenGraph = Callable[[], AbstractContextManager["Graph"]]


@dataclass(frozen=True, slots=True)
class Objects:
    """What a session has met, and what its next transaction writes.

    Everything that is stored for a session goes through `workspace`; an object joins `index` by one
    of the methods `see...`.
    """

    info: SessionInfo
    workspace: Workspace
    index: SessionIndex
    source: FileSource
    recall: Recall
    """The files of a tool call that ran before the session could look."""
    open_graph: OpenGraph | None = None
    """The graph of the store, up to date, for one question; None where there is none."""

    @property
    def store(self) -> Store:
        """The store behind the session."""
        return self.workspace.store

    def document(self) -> SessionDocument | None:
        """The session's own document, with what the open transaction changes of it."""
        id = session_object_id(self.info.id)
        found = self.workspace.pending.get(id) or self.store.get(id, SessionDocument)
        return found if isinstance(found, SessionDocument) else None

    def is_forgotten(self) -> bool:
        """Whether the session was erased from the store since it was stored."""
        id = session_object_id(self.info.id)
        return id not in self.workspace.pending and self.store.head(id) is None

    def name_of(self, entry: Entry) -> str:
        """What the model calls an object: a file's path as its tools have it, else the label."""
        head = self.workspace.head(entry.object) if entry.type == "file" else None
        source = None if head is None else filesystem_source(head.fields)
        return entry.label if source is None else self.source.agent_path(source)

    def see_document(self, document: Document, label: str = "") -> Entry:
        """Note that the session has seen a document of this very transaction."""
        return self.see(SeenVersion.of(document, label))

    def see_head(self, head: Head, label: str = "") -> Entry:
        """Note that the session has seen a version that is stored already."""
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
        """Note that the session has seen a version; a new one joins its index entry."""
        entry, document = self.index.see(seen)
        if document is not None:
            self.workspace.put(document, new=entry.newest.version == 1)
        return entry
