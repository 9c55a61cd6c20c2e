"""Stored sessions as people know them: by a title, with how long they took and what was in them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePath

from foredeck.errors import NotFound
from foredeck.histories.progress import progress_in
from foredeck.hosts.pi import session_name
from foredeck.model.calls import CallRecord
from foredeck.model.documents import SessionDocument, session_object_id
from foredeck.model.figures import shortened
from foredeck.model.records import call_id
from foredeck.names import short_ids
from foredeck.regular_files import read_text
from foredeck.search.texts import TITLE_CHARS, first_prompt
from foredeck.store.protocol import Head, Store

_WORKTREES = re.compile(r"^(.+?)/(?:\.[\w-]+/)?\.?worktrees/[^/]+")
"""Where worktrees are kept inside their project: `app/.worktrees/1`, `app/.claude/worktrees/1`."""


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """One session, in figures. Times are in milliseconds since 1970.

    short_id    the start of the id, as long as it takes to be the only one
    project     the folder of the project: that of a worktree is the one it was made from
    messages    what people and other programs said, and answers of the model; no tool results
    calls       recorded model calls; none of a session that was read from a history
    started_by  the session whose agent started this one
    is_gone     Pi's own file of the session was deleted
    """

    id: str
    short_id: str
    title: str
    folder: str
    project: str
    first_ms: int
    last_ms: int
    messages: int
    tool_calls: int
    calls: int
    harness: str
    is_private: bool
    is_ingested: bool
    is_gone: bool
    parent: str | None
    started_by: str | None
    host_file: str | None

    @property
    def duration_ms(self) -> int:
        """From the first to the last call or message."""
        return self.last_ms - self.first_ms

    @property
    def project_name(self) -> str:
        """The last part of the project's folder."""
        return PurePath(self.project).name or self.project


def summaries(store: Store, heads: Sequence[Head]) -> list[SessionSummary]:
    """The sessions of these heads, in their order. Ids are shortened among all that are stored."""
    ids = [_id(head) for head in heads]
    newest = newest_calls(store, ids)
    firsts = store.heads(call_id(id, 1) for id in ids)
    short = short_ids([_id(head) for head in store.query("session")])
    projects: dict[str, str] = {}
    found = []
    for head in heads:
        id, fields = _id(head), head.fields
        folder = str(fields.get("cwd") or "")
        if folder not in projects:
            projects[folder] = project_folder(folder)
        read_in, last, file = progress_in(fields), newest[id], fields.get("host_file")
        times = [] if last is None else [last.time_ms]
        if (first := firsts.get(call_id(id, 1))) is not None:
            times.append(CallRecord(first.fields).time_ms)
        if read_in is not None:
            times += filter(None, (read_in.first_ms, read_in.last_ms))
        times = times or [head.time_ms]
        if read_in is not None and last is None:
            messages, tool_calls = read_in.messages, read_in.tool_calls
        else:
            messages, tool_calls = _counts(store, id)
        found.append(
            SessionSummary(
                id=id,
                short_id=short.get(id, id),
                title=title(store, head),
                folder=folder,
                project=projects[folder],
                first_ms=min(times),
                last_ms=max(times),
                messages=messages,
                tool_calls=tool_calls,
                calls=0 if last is None else last.ordinal,
                harness=str(fields.get("harness") or "pi"),
                is_private=SessionDocument.is_private(fields),
                is_ingested=read_in is not None,
                is_gone=file is not None and read_in is None and not Path(file).exists(),
                parent=fields.get("parent_session"),
                started_by=fields.get("started_by"),
                host_file=file,
            )
        )
    return found


def title(store: Store, session: Head) -> str:
    """Pi's name of a session, or what it was first asked, in short; empty where there is neither.
    `session`: the head of its document."""
    file = session.fields.get("host_file")
    named = _name_in(file) if (session.fields.get("harness") or "pi") == "pi" and file else ""
    return shortened(named.strip() or first_prompt(store, _id(session)), TITLE_CHARS)


def titles(store: Store, sessions: Iterable[str]) -> dict[str, str]:
    """The titles of the sessions with these ids, as far as they are stored."""
    heads = store.heads(map(session_object_id, sessions))
    return {_id(head): title(store, head) for head in heads.values()}


def project_folder(folder: str) -> str:
    """The project's main folder of a folder that may be in a worktree, which need not exist."""
    # No git is asked and nothing is looked up on the disk for folders of other machines.
    match = _WORKTREES.match(folder)
    if match is not None:
        return match[1]
    try:
        git = read_text(Path(folder) / ".git")
    except (OSError, ValueError):
        return folder
    main, mark, _ = git.removeprefix("gitdir:").strip().partition("/.git/worktrees/")
    return main if mark else folder


def newest_calls(store: Store, sessions: Sequence[str]) -> dict[str, CallRecord | None]:
    """The newest call of each session."""
    # By doubling, then halving: calls are numbered without gaps, and some sessions have thousands.
    low, high = dict.fromkeys(sessions, 0), dict.fromkeys(sessions, 1)
    found: dict[str, Head | None] = dict.fromkeys(sessions)
    searching = set(sessions)
    growing = set(sessions)
    while searching:
        at = {
            session: high[session] if session in growing else (low[session] + high[session]) // 2
            for session in searching
        }
        heads = store.heads(call_id(session, number) for session, number in at.items())
        for session, number in at.items():
            head = heads.get(call_id(session, number))
            if head is not None:
                low[session], found[session] = number, head
                if session in growing:
                    high[session] = number * 2
            else:
                high[session] = number
                growing.discard(session)
        searching = {s for s in searching if s in growing or high[s] - low[s] > 1}
    return {s: None if head is None else CallRecord(head.fields) for s, head in found.items()}


def count_calls(store: Store, session: str) -> int:
    """How many calls a session has made."""
    newest = newest_calls(store, [session])[session]
    return 0 if newest is None else newest.ordinal


def checked_call(store: Store, session: str, call: int | None) -> int:
    """The call of this number, by default the last one; 0 where the session has made none.

    Raises `NotFound` where it has not made as many.
    """
    calls = count_calls(store, session)
    if call is not None and not 1 <= call <= calls:
        raise NotFound(f"session {session} has no call {call}; its calls: 1 to {calls}.")
    return call or calls


def _id(head: Head) -> str:
    return head.view(SessionDocument).session_id


def _counts(store: Store, session: str) -> tuple[int, int]:
    """Messages and tool calls of a session's own turns."""
    turns = [head.fields for head in store.query("turn", {"session": session})]
    asked = len({fields["user"] for fields in turns if fields.get("user")})
    answers = sum(bool(fields.get("assistant")) for fields in turns)
    return asked + answers, sum(len(fields.get("toolcall_ids") or ()) for fields in turns)


def _name_in(file: str) -> str:
    try:
        status = Path(file).stat()
    except (OSError, ValueError):
        return ""
    return _name_in_state(file, status.st_size, status.st_mtime_ns)


# By size and time of change: a list of sessions is asked for again and again, and each file has to
# be read as a whole.
@lru_cache(maxsize=2_000)
def _name_in_state(file: str, _size: int, _changed_ns: int) -> str:
    return session_name(file)
