"""All that the engine holds in memory of one open session, and how it is loaded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from foredeck.context.state.branch import CallLog, Fields
from foredeck.context.state.current_branch import Branch
from foredeck.context.state.index import Entry, Seen, SessionIndex
from foredeck.context.state.workspace import PENDING, Workspace
from foredeck.model.documents import (
    ChatDocument,
    Document,
    FilesystemSource,
    Provenance,
    SessionDocument,
    SystemPromptDocument,
    chat_id,
    session_object_id,
    system_prompt_id,
)
from foredeck.model.records import SAME_TRANSACTION, Pin, call_id
from foredeck.sources import FileSource, Pending, Sighting, ToolEvent, touched_paths
from foredeck.store.protocol import Head, Store, Token

Recall = Callable[[ToolEvent, Pending], list[Sighting]]


@dataclass(slots=True)
class Observation:
    """The files that a tool touched, and the transaction that stored them.

    `full_output`: hash of the blob with all that the tool wrote, where the result is cut.
    `stored`: the call's own object was written with them; its turn was only a guess then.
    """

    sightings: list[Sighting]
    token: Token | None = None
    full_output: str | None = None
    stored: bool = False


@dataclass(slots=True)
class Session:
    """One agent's interaction, as it stands on the branch that was asked for last."""

    id: str
    cwd: str
    source: FileSource
    recall: Recall
    """The files of a tool call that ran before the session could look."""
    workspace: Workspace
    index: SessionIndex
    log: CallLog
    turns: int = 0
    parent: str | None = None
    ancestors: frozenset[str] = frozenset()
    """Ids of the sessions that this one was forked from, near and far."""
    branch: Branch = field(default_factory=Branch)
    """The branch that was asked for last."""
    opened_at: int = 0
    """Ordinal of the newest call when the session was opened."""
    system: Pin | None = None
    """The version of the system prompt object that the next call goes out with."""
    prompt: list[Any] = field(default_factory=list)
    tools: list[Any] = field(default_factory=list)
    observed: dict[str, Observation] = field(default_factory=dict)
    """Call id to what the tool touched, told before its result is in the list."""
    is_live: bool = True
    """Whether tools run now and here, so that a look at the disk tells what they did."""
    stale: set[str] = field(default_factory=set)
    """Files whose newest version comes from a tool's words: the disk may have another by now."""
    unsettled: set[str] = field(default_factory=set)
    """Files, by id or path, that somebody seems to be writing: to be looked at once more."""
    notices: dict[int, str] = field(default_factory=dict)
    """Handles of files that something else has changed, with what happened to them."""
    compactions: dict[str, Fields] = field(default_factory=dict)
    """Stretches of chat that were put away, by id, oldest first; without their turns."""
    tell: Callable[[str], None] = lambda _text: None
    """Says something to the user at once, and not with the next answer."""
    words: list[str] = field(default_factory=list)
    """What the user shall be told with the next answer."""
    compacting: object = None
    """What the host, or somebody else, may be about to sum up (`context.compacting.Wish`)."""

    @property
    def store(self) -> Store:
        """The store behind the session."""
        return self.workspace.store

    @property
    def newest_record(self) -> Fields | None:
        """The call record that the branch stands at; None before its first call."""
        return self.log.records.get(self.branch.call or "")

    def load_record(self, id: str) -> Fields | None:
        """A call record of any session."""
        head = self.store.head(id)
        return None if head is None else head.fields

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
        source = None if head is None else head.fields.get("source")
        if source is None:
            return entry.label
        return self.source.agent_path(FilesystemSource.model_validate(source))

    def see_document(self, document: Document, label: str = "") -> Entry:
        """Meet a document of this very transaction."""
        return self.see(Seen.of(document, label))

    def see_head(self, head: Head, label: str = "") -> Entry:
        """Meet a version that is stored already."""
        fields = head.fields
        return self.see(
            Seen(
                head.id,
                head.type,
                label,
                fields["content_hash"],
                fields.get("text_hash"),
                fields["metadata_view_hash"],
                SAME_TRANSACTION if head.token == PENDING else head.token,
            )
        )

    def see(self, seen: Seen) -> Entry:
        """Meet a version of an object; its index entry is written where that is new."""
        entry, document = self.index.see(seen)
        if document is not None:
            self.workspace.put(document, new=entry.pin.version == 1)
        return entry


def names_only(source: FileSource) -> Recall:
    """Files of an old tool call by name: what they held then cannot be told from the disk."""

    def recall(event: ToolEvent, pending: Pending) -> list[Sighting]:
        found = []
        # What a listing or a command merely names is not looked for: of a long history that
        # would be a fifth of the work.
        for touch in touched_paths(event, 0):
            if touch.role in ("read", "written"):
                sighting = source.sight(
                    touch.path, "listed", cwd=event.cwd or None, pending=pending
                )
                found.append(replace(sighting, role=touch.role))
        return found

    return recall


def open_session(
    store: Store,
    source: FileSource,
    session: str,
    *,
    cwd: str,
    host_file: str | None = None,
    parent: str | None = None,
    started_by: str | None = None,
    recall: Recall | None = None,
) -> Session:
    """Load a session, or begin it: its wrapper, chat and system prompt objects are made then."""
    log = CallLog.load(store.query("call", {"session": session}))
    index = SessionIndex.load(session, store.query("member", {"session": session}))
    chat = store.head(chat_id(session))
    if chat is not None:
        wrapper = store.head(session_object_id(session))
        parent = None if wrapper is None else wrapper.fields.get("parent_session")
    ancestors = _add_ancestors(log, store, parent)
    opened = Session(
        id=session,
        cwd=cwd,
        source=source,
        recall=recall or names_only(source),
        is_live=recall is None,
        workspace=Workspace(store),
        index=index,
        log=log,
        turns=0 if chat is None else chat.fields.get("turn_count") or 0,
        parent=parent,
        ancestors=ancestors,
        opened_at=log.newest,
        compactions=_put_away(store, [session, *sorted(ancestors)]),
    )
    if chat is None:
        _begin(opened, host_file, started_by)
    else:
        opened.system = _system_pin(opened)
        opened.notices = _untold(store.head(session_object_id(session)))
    return opened


def _put_away(store: Store, sessions: list[str]) -> dict[str, Fields]:
    """The compactions of these sessions, the oldest first, without the turns in them."""
    heads = [head for id in sessions for head in store.query("compaction", {"session": id})]
    return {
        head.id: {**head.fields, "turns": []}
        for head in sorted(heads, key=lambda head: head.fields["call"])
    }


def _untold(wrapper: Head | None) -> dict[int, str]:
    """What the model had still to be told of changed files when the last engine ended."""
    untold = None if wrapper is None else wrapper.fields.get("untold")
    return {int(ordinal): what for ordinal, what in (untold or {}).items()}


def _system_pin(session: Session) -> Pin | None:
    ordinal = session.index.by_object.get(system_prompt_id(session.id))
    return None if ordinal is None else session.index.entries[ordinal].pin


def _begin(session: Session, host_file: str | None, started_by: str | None) -> None:
    """The documents that every session has; a forked one inherits its parent's index."""
    origin = Provenance(origin=session.id, generator="system")
    prompt = SystemPromptDocument(
        id=system_prompt_id(session.id), session_ref=session.id, provenance=origin
    ).seal()
    chat = ChatDocument(id=chat_id(session.id), session_ref=session.id, provenance=origin).seal()
    wrapper = SessionDocument(
        id=session_object_id(session.id),
        session_id=session.id,
        chat_ref=chat.id,
        system_prompt_ref=prompt.id,
        cwd=session.cwd,
        host_file=host_file,
        parent_session=session.parent,
        started_by=started_by,
        provenance=origin,
    ).seal()
    for document in (wrapper, prompt, chat):
        session.workspace.put(document)
    if session.parent is not None:
        _inherit(session, session.parent)
    session.see_document(prompt)
    session.see_document(chat)
    session.system = _system_pin(session)


def _inherit(session: Session, parent: str) -> None:
    """Take over a parent's handles, so that bytes which speak of `@12` stay true in the copy."""
    heritage = SessionIndex.load(parent, session.store.query("member", {"session": parent}))
    for ordinal in sorted(heritage.entries):
        session.workspace.put(session.index.inherit(heritage.entries[ordinal]))


def _add_ancestors(log: CallLog, store: Store, parent: str | None) -> frozenset[str]:
    """Make the calls before a fork findable: their prompts are this session's past too.

    Returns the ids of the sessions that this one descends from.
    """
    seen: set[str] = set()
    while parent is not None and parent not in seen:
        seen.add(parent)
        log.add_ancestor(CallLog.load(store.query("call", {"session": parent})))
        wrapper = store.head(session_object_id(parent))
        parent = None if wrapper is None else wrapper.fields.get("parent_session")
    return frozenset(seen)
