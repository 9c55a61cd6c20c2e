"""Opening a session: what the store has of it, or the documents that it begins with."""

from __future__ import annotations

from dataclasses import replace

from foredeck.context.state.call_log import CallLog
from foredeck.context.state.checkpoint import LogCheckpoint
from foredeck.context.state.index import SessionIndex
from foredeck.context.state.members import KeptMembers, read_members
from foredeck.context.state.pending import KnownTexts, PendingNotices, PendingWork
from foredeck.context.state.session import PromptFrame, Recall, Session
from foredeck.context.state.workspace import Workspace
from foredeck.model.documents import (
    ChatDocument,
    Fields,
    FileDocument,
    Provenance,
    SessionDocument,
    chat_id,
    session_object_id,
    system_prompt_id,
)
from foredeck.model.records import VersionRef
from foredeck.sources import FileSource, Pending, Sighting, ToolEvent, touched_paths
from foredeck.store.protocol import Store

CUT = (
    "Earlier calls of this session are missing from the store: foredeck begins anew with what the "
    "chat still holds."
)


def names_only(source: FileSource) -> Recall:
    """Looks up the files of old tool calls by name only: the disk no longer has what they held.

    A file that nothing has named before is found once in a transaction.
    """
    new: dict[tuple[str, str], FileDocument] = {}

    def recall(event: ToolEvent, pending: Pending) -> list[Sighting]:
        found = []
        # What a listing or a command merely names is not looked for: of a long history that
        # would be a fifth of the work.
        for touch in touched_paths(event, 0):
            name = (event.cwd, touch.path)
            # Nor are files looked at again and again, as a history names them.
            is_found = name in new and pending.get(new[name].id) is new[name]
            if touch.role not in ("read", "written") or is_found:
                continue
            sighting = source.sight(touch.path, "listed", cwd=event.cwd or None, pending=pending)
            if sighting.document is not None and sighting.head is None:
                new[name] = sighting.document
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
    begun_by: str | None = None,
    private: bool = False,
    checkpoint: LogCheckpoint | None = None,
    members: KeptMembers | None = None,
) -> Session:
    """Load a session, or begin it: its wrapper and chat objects are made then.

    `parent`: the session that a new one is a fork of; a stored one knows its own. `begun_by` and
    `private` are for a new one, too (`SessionDocument`); a fork of a private one is private.
    `checkpoint` and `members`: of an earlier process; without them every call record and every
    member is read.
    """
    wrapper = store.head(session_object_id(session))
    # Without it the session was erased, whatever an engine has written since.
    chat = None if wrapper is None else store.head(chat_id(session))
    if wrapper is not None:
        parent = wrapper.fields.get("parent_session")
    log = None
    if checkpoint is not None and parent is None:
        log = CallLog.resume(checkpoint, store, session)
    if log is None:
        log = CallLog.load(store.query("call", {"session": session}))
    ancestors = _add_ancestors(log, store, parent)
    is_cut = log.checkpoint is None and log.leave_out_cut()
    opened = Session(
        id=session,
        cwd=cwd,
        source=source,
        recall=recall or names_only(source),
        workspace=Workspace(store),
        index=SessionIndex.load(session, read_members(store, session, members).values()),
        log=log,
        ancestors=ancestors,
        is_live=recall is None,
        calls_at_opening=log.newest,
        turns=0 if chat is None else chat.fields.get("turn_count") or 0,
        compactions=_compactions(store, [session, *sorted(ancestors)]),
    )
    opened.index.kept = 0 if members is None else len(members.members)
    if chat is None:
        opened.private = private or _is_private(store, parent, started_by)
        _begin(opened, host_file, parent, started_by, begun_by)
    if wrapper is not None and chat is not None:
        opened.pending = PendingWork(
            notices=PendingNotices(wrapper.fields.get("untold")),
            behind=KnownTexts(wrapper.fields.get("behind")),
        )
        opened.private = SessionDocument.is_private(wrapper.fields)
        opened.was_read_in = bool(wrapper.fields.get("ingested"))
    if is_cut:
        opened.pending.user_messages.append(CUT)
    opened.frame = PromptFrame(version=_system_version(opened))
    return opened


def _compactions(store: Store, sessions: list[str]) -> dict[str, Fields]:
    """The compactions of these sessions, the oldest first, without the turns in them."""
    heads = [head for id in sessions for head in store.query("compaction", {"session": id})]
    return {
        head.id: {**head.fields, "turns": []}
        for head in sorted(heads, key=lambda head: head.fields["call"])
    }


def _system_version(session: Session) -> VersionRef | None:
    ordinal = session.index.by_object.get(system_prompt_id(session.id))
    return None if ordinal is None else session.index.entries[ordinal].newest


def _begin(
    session: Session,
    host_file: str | None,
    parent: str | None,
    started_by: str | None,
    begun_by: str | None,
) -> None:
    """The documents that a session begins with; a fork inherits its parent's index.

    The system prompt is not among them: its first version is what the host says (`take_system`).
    """
    own_id = session_object_id(session.id)
    origin = Provenance(origin=session.id, generator="system")
    inherited = None if parent is None else session.store.head(session_object_id(parent))
    chat = ChatDocument(id=chat_id(session.id), session_ref=own_id, provenance=origin).seal()
    wrapper = SessionDocument(
        id=own_id,
        session_id=session.id,
        chat_ref=chat.id,
        system_prompt_ref=system_prompt_id(session.id),
        cwd=session.cwd,
        host_file=host_file,
        parent_session=parent,
        started_by=started_by,
        begun_by=begun_by,
        private=session.private or None,
        observing_mode=None if inherited is None else inherited.fields.get("observing_mode"),
        provenance=origin,
    ).seal()
    for document in (wrapper, chat):
        session.workspace.put(document)
    if parent is not None:
        _inherit(session, parent)


def _is_private(store: Store, *sessions: str | None) -> bool:
    """Whether one of these keeps to itself what is said in it: a copy of it, and what its agent
    started, repeat that."""
    heads = store.heads(session_object_id(id) for id in sessions if id is not None)
    return any(SessionDocument.is_private(head.fields) for head in heads.values())


def _inherit(session: Session, parent: str) -> None:
    """Take over a parent's handles: in the messages of the fork `@12` means what it meant there."""
    index = SessionIndex.load(parent, read_members(session.store, parent).values())
    for ordinal in sorted(index.entries):
        session.workspace.put(session.index.inherit(index.entries[ordinal]))


def _add_ancestors(log: CallLog, store: Store, parent: str | None) -> frozenset[str]:
    """Let the calls before a fork be found: their prompts are this session's past, too.

    Returns the ids of the sessions that this one descends from.
    """
    seen: set[str] = set()
    while parent is not None and parent not in seen:
        seen.add(parent)
        log.add_ancestor(CallLog.load(store.query("call", {"session": parent})))
        wrapper = store.head(session_object_id(parent))
        parent = None if wrapper is None else wrapper.fields.get("parent_session")
    return frozenset(seen)
