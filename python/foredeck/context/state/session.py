"""All that the engine holds in memory of one open session."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from foredeck.context.state.branch import Branch
from foredeck.context.state.call_log import CallLog
from foredeck.context.state.index import Entry, SeenVersion, SessionIndex
from foredeck.context.state.pending import PendingWork
from foredeck.context.state.stand_ins import StandIns
from foredeck.context.state.workspace import PENDING, Workspace
from foredeck.derived.patience import Patience
from foredeck.memory.session import SessionMemory
from foredeck.model.calls import CallRecord
from foredeck.model.documents import Document, Fields, SessionDocument, session_object_id
from foredeck.model.records import SAME_TRANSACTION, VersionRef, call_id
from foredeck.model.sources import filesystem_source
from foredeck.sources import FileSource, Pending, Sighting, ToolEvent
from foredeck.sources.projects import Project
from foredeck.sources.versions import is_captured
from foredeck.store.protocol import Head, Store

if TYPE_CHECKING:  # what a session may never use is imported where it is made
    from foredeck.model.places import Slice
    from foredeck.notes.graph import Graph
    from foredeck.tasks.tools import SessionTasks
    from foredeck.worklog.earlier import BranchLessons, EarlierWork

Recall = Callable[[ToolEvent, Pending], list[Sighting]]


@dataclass(slots=True)
class PromptFrame:
    """What the host puts around the chat, and the object that keeps it."""

    messages: list[Any] = field(default_factory=list)
    """The system prompt, as messages of the host's."""
    tools: list[Any] = field(default_factory=list)
    """Definitions of the active tools."""
    chars: int = 0
    """Characters of both."""
    version: VersionRef | None = None
    """The version of the system prompt object that the next call goes out with."""


@dataclass(slots=True)
class Session:
    """One agent's interaction: what lives as long as it is open.

    What belongs to a branch is in `branch`, what waits for the next call in `pending`.
    """

    id: str
    cwd: str
    source: FileSource
    recall: Recall
    """The files of a tool call that ran before the session could look."""
    workspace: Workspace
    index: SessionIndex
    log: CallLog
    ancestors: frozenset[str] = frozenset()
    """Ids of the sessions that this one was forked from, near and far."""
    private: bool = False
    """Whether it keeps to itself what is said in it."""
    is_live: bool = True
    """Whether tools run now and here, so that the disk shows what they did."""
    calls_at_opening: int = 0
    """Ordinal of the newest call when the session was opened."""
    typed: list[str] = field(default_factory=list)
    """What the user has typed since it was opened, as the host says."""
    turns: int = 0
    """How many turns its chat has, those of all branches together."""
    was_read_in: bool = False
    """Its history was read from a file before foredeck was on: there are turns that no call record
    knows."""
    origin: str = ""
    """Harness and file that its messages are read from, where that is an old history."""
    compactions: dict[str, Fields] = field(default_factory=dict)
    """What was compacted, by id, oldest first; without its turns."""
    chat_text: Callable[[str, int, Slice | None, Mapping[str, int]], str] = lambda *_: ""
    """`chat_text(session, turns, asked, handles)`: the first `turns` turns of a stored session's
    chat, as the host's adapter writes them; `asked`: only these user turns, or messages; `handles`:
    those to write for objects, all others go by their ids."""
    inherited_turns: Callable[[str], Sequence[Head]] = lambda _session: ()
    """The turns that the chat of a session begins with, where it is a fork, oldest first."""
    open_graph: Callable[[], AbstractContextManager[Graph]] | None = None
    """The graph of the store, up to date, for one question; None where there is none."""
    notify: Callable[[str], None] = lambda _text: None
    """Says something to the user at once, and not with the next answer."""
    branch: Branch = field(default_factory=Branch)
    """The branch that was asked for last."""
    pending: PendingWork = field(default_factory=PendingWork)
    frame: PromptFrame = field(default_factory=PromptFrame)
    lessons: BranchLessons | None = None
    """Forms of commands that have worked; None where the model is not to read of any."""
    earlier_work: EarlierWork | None = None
    """What the project's other sessions did; None where that is not known."""
    project: Project | None = None
    """The project that it works in, once it was searched for."""
    layers_wait: Patience = field(default_factory=lambda: Patience(0.0))
    """What is left of the time that its opening waits for layers, or what follows a call."""
    stand_ins: StandIns | None = None
    """What may replace spans of the chat; None where nothing ever does."""
    tasks: SessionTasks | None = None
    """The project's tasks; None where they are switched off, and in a replay."""
    memory: SessionMemory | None = None
    """What is kept of the user and the session; None where that is not known, and in a replay."""
    went_back_to: str = ""
    """Id of the call record whose bytes went out once more after a refusal."""
    withdrawal_told: bool = False
    """Whether the user knows that something in the head has to wait for the end of the turn."""

    @property
    def family(self) -> frozenset[str]:
        """Ids of this session and of those that it was forked from."""
        return self.ancestors | {self.id}

    @property
    def active_task(self) -> str | None:
        """Id of the task that is worked on, to which what is said now belongs."""
        return None if self.tasks is None else self.tasks.active.id()

    def keep_lease(self) -> None:
        """The session works on: no other may claim its task meanwhile."""
        if self.tasks is not None:
            self.tasks.active.keep_lease()

    @property
    def store(self) -> Store:
        """The store behind the session."""
        return self.workspace.store

    def document(self) -> SessionDocument | None:
        """The session's own document, with what the open transaction changes of it."""
        id = session_object_id(self.id)
        found = self.workspace.pending.get(id) or self.store.get(id, SessionDocument)
        return found if isinstance(found, SessionDocument) else None

    def is_forgotten(self) -> bool:
        """Whether the session was erased from the store since it was stored."""
        id = session_object_id(self.id)
        return id not in self.workspace.pending and self.store.head(id) is None

    @property
    def branch_record(self) -> CallRecord | None:
        """The newest call record of the branch; None before its first call."""
        return self.log.record(self.branch.call)

    @property
    def newest_record(self) -> CallRecord | None:
        """The newest call record of the session; before a fork's first, the one it goes on from."""
        return self.log.last or self.branch_record

    def load_record(self, id: str) -> CallRecord | None:
        """A call record of any session."""
        head = self.store.head(id)
        return None if head is None else CallRecord(head.fields)

    def take_up_newest(self) -> None:
        """Before a first request: go on from the newest call, until that request brings the
        messages of the branch that the host is on."""
        if self.branch.call is not None or self.branch.shown is not None:
            return
        ids = (call_id(self.id, ordinal) for ordinal in range(self.log.newest, 0, -1))
        newest = next((id for id in ids if id not in self.log.unsent), None)
        self.branch = Branch.provisional(self.log.replay(newest, self.load_record))

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
