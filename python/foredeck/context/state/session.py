"""A session: its parts, and how it opens."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

from foredeck.config import Config
from foredeck.context.state.call_log import CallLog
from foredeck.context.state.chat import Chat
from foredeck.context.state.index import SessionIndex, read_members
from foredeck.context.state.objects import Objects, OpenGraph, SessionInfo, Workspace
from foredeck.context.state.request import Inbox, PromptFrame
from foredeck.model.documents import (
    ChatDocument,
    Fields,
    Provenance,
    SessionDocument,
    chat_id,
    session_object_id,
    system_prompt_id,
)
from foredeck.model.observations import CompactionDocument
from foredeck.model.records import VersionRef
from foredeck.sources.filesystem import FilesystemMap, open_filesystems
from foredeck.sources.projects import Project, project_of
from foredeck.sources.recorded import FileSource
from foredeck.store.store import Store

CUT = (
    "Earlier calls of this session are missing from the store: foredeck begins anew with what the "
    "chat still holds."
)


@dataclass(frozen=True)
class SessionFolder:
    """Where a session works; asks the disk once."""

    config: Config
    cwd: str

    @cached_property
    def filesystems(self) -> FilesystemMap:
        return open_filesystems(self.config, self.cwd)

    @cached_property
    def project(self) -> Project:
        """The project of the folder; not for a replay, which must not read the disk."""
        return project_of(self.cwd, self.filesystems)


@dataclass(frozen=True, slots=True)
class Session:
    """All that the engine holds of one session; pass on only the parts needed."""

    info: SessionInfo
    objects: Objects
    chat: Chat
    inbox: Inbox
    frame: PromptFrame


@dataclass(frozen=True, slots=True)
class Beginning:
    """What the host says of a new session."""

    session: str
    cwd: str
    harness: str
    host_file: str | None = None
    parent: str | None = None
    """The session it forks; a stored one knows its own."""
    started_by: str | None = None
    begun_by: str | None = None
    private: bool = False
    """A fork of a private session is private in any case."""


def open_session(
    store: Store,
    source: FileSource,
    begins: Beginning,
    *,
    origin: str = "",
    calls_at_opening: int | None = None,
    open_graph: OpenGraph | None = None,
    notify: Callable[[str], None] = lambda _text: None,
) -> Session:
    """Loads a session, or begins it.

    `origin`: harness and file of an old history. `calls_at_opening`: set if the host opened it
    before.
    """
    session = begins.session
    wrapper = store.head(session_object_id(session))
    # Without it the session was erased, whatever an engine has written since.
    stored = None if wrapper is None else store.head(chat_id(session))
    parent = begins.parent if wrapper is None else wrapper.fields.get("parent_session")
    log = CallLog.load(store.query("call", {"session": session}))
    ancestors = _add_ancestors(log, store, parent)
    is_cut = log.leave_out_cut()
    fields = {} if wrapper is None or stored is None else wrapper.fields
    info = SessionInfo(
        session,
        begins.cwd,
        ancestors,
        is_live=source.is_live,
        calls_at_opening=log.newest if calls_at_opening is None else calls_at_opening,
        was_read_in=bool(fields.get("ingested")),
        origin=origin,
    )
    index = SessionIndex.load(session, read_members(store, session))
    objects = Objects(info, Workspace(store), index, source, open_graph)
    inbox = Inbox.of_document(fields, notify)
    if is_cut:
        inbox.user_messages.append(CUT)
    if stored is None:
        private = begins.private or _is_private(store, parent, begins.started_by)
        _begin(objects, replace(begins, parent=parent, private=private))
    else:
        private = SessionDocument.is_private(fields)
    chat = Chat(
        info,
        store,
        log,
        _compactions(store, [session, *sorted(ancestors)]),
        turns=0 if stored is None else stored.fields.get("turn_count") or 0,
        private=private,
    )
    return Session(info, objects, chat, inbox, PromptFrame(version=_system_version(objects)))


def _compactions(store: Store, sessions: list[str]) -> dict[str, Fields]:
    heads = [head for id in sessions for head in store.query("compaction", {"session": id})]
    return {
        head.id: {**head.fields, "turns": []}
        for head in sorted(heads, key=lambda head: head.view(CompactionDocument).call)
    }


def _system_version(objects: Objects) -> VersionRef | None:
    ordinal = objects.index.by_object.get(system_prompt_id(objects.info.id))
    return None if ordinal is None else objects.index.entries[ordinal].newest


def _begin(objects: Objects, begins: Beginning) -> None:
    """A fork inherits its parent's index; the first request brings the system prompt."""
    session, parent = objects.info.id, begins.parent
    own_id = session_object_id(session)
    origin = Provenance(origin=session, generator="system")
    inherited = None if parent is None else objects.store.head(session_object_id(parent))
    chat = ChatDocument(id=chat_id(session), session_ref=own_id, provenance=origin).seal()
    wrapper = SessionDocument(
        id=own_id,
        harness=begins.harness,
        session_id=session,
        chat_ref=chat.id,
        system_prompt_ref=system_prompt_id(session),
        cwd=objects.info.cwd,
        host_file=begins.host_file,
        parent_session=parent,
        started_by=begins.started_by,
        begun_by=begins.begun_by,
        private=begins.private or None,
        observing_mode=None if inherited is None else inherited.fields.get("observing_mode"),
        provenance=origin,
    ).seal()
    for document in (wrapper, chat):
        objects.workspace.put(document)
    if parent is not None:
        _inherit(objects, parent)


def _is_private(store: Store, *sessions: str | None) -> bool:
    heads = store.heads(session_object_id(id) for id in sessions if id is not None)
    return any(SessionDocument.is_private(head.fields) for head in heads.values())


def _inherit(objects: Objects, parent: str) -> None:
    """Takes over a parent's handles, so that `@12` in its messages keeps its meaning."""
    index = SessionIndex.load(parent, read_members(objects.store, parent))
    for ordinal in sorted(index.entries):
        objects.workspace.put(objects.index.inherit(index.entries[ordinal]))


def _add_ancestors(log: CallLog, store: Store, parent: str | None) -> frozenset[str]:
    """Adds the calls of all ancestors, and returns their ids."""
    ids: set[str] = set()
    while parent is not None and parent not in ids:
        ids.add(parent)
        log.add_ancestor(CallLog.load(store.query("call", {"session": parent})))
        wrapper = store.head(session_object_id(parent))
        parent = None if wrapper is None else wrapper.fields.get("parent_session")
    return frozenset(ids)
