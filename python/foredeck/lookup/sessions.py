"""Stored sessions as people know them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePath

from foredeck.errors import NotFound
from foredeck.hosts.pi import session_name
from foredeck.model.calls import CallRecord
from foredeck.model.documents import SessionDocument, session_object_id
from foredeck.model.figures import shortened
from foredeck.model.history import progress_in
from foredeck.model.records import call_id
from foredeck.names import short_ids
from foredeck.regular_files import read_text
from foredeck.search.texts import TITLE_CHARS, first_prompt
from foredeck.store.protocol import Head, Store

_WORKTREES = re.compile(r"^(.+?)/(?:\.[\w-]+/)?\.?worktrees/[^/]+")
"""Worktree folders inside a project: `app/.worktrees/1`, `app/.claude/worktrees/1`."""


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """One session in figures; times in milliseconds since 1970.

    `messages`: without tool results; `is_gone`: Pi's own file was deleted.
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
        """Between the first and last call or message."""
        return self.last_ms - self.first_ms

    @property
    def project_name(self) -> str:
        """The last part of the project's folder."""
        return PurePath(self.project).name or self.project


def latest_sessions(store: Store) -> list[SessionSummary]:
    """All sessions, the one that was used last first."""
    sessions = summaries(store, store.query("session"))
    return sorted(sessions, key=lambda session: (session.last_ms, session.first_ms), reverse=True)


def summaries(store: Store, heads: Sequence[Head]) -> list[SessionSummary]:
    """Summaries of these sessions, in order, with ids shortened among all."""
    ids = [_id(head) for head in heads]
    newest = newest_calls(store, ids)
    firsts = store.heads(call_id(id, 1) for id in ids)
    short = short_ids([_id(head) for head in store.query("session")])
    projects: dict[str, str] = {}
    rows = []
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
        rows.append(
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
    return rows


def title(store: Store, session: Head) -> str:
    """Pi's name of a session, or its first question in short; may be empty."""
    file = session.fields.get("host_file")
    file_name = _name_in(file) if (session.fields.get("harness") or "pi") == "pi" and file else ""
    return shortened(file_name.strip() or first_prompt(store, _id(session)), TITLE_CHARS)


def titles(store: Store, sessions: Iterable[str]) -> dict[str, str]:
    """Titles of stored sessions by id."""
    heads = store.heads(map(session_object_id, sessions))
    return {_id(head): title(store, head) for head in heads.values()}


def project_folder(folder: str) -> str:
    """A project's main folder, given one perhaps in a worktree."""
    # No git is asked and nothing is looked up on the disk for folders of other machines.
    match = _WORKTREES.match(folder)
    if match is not None:
        return match[1]
    try:
        # An unknown folder is not this process's own.
        git = read_text(Path(folder) / ".git") if folder else ""
    except (OSError, ValueError):
        return folder
    main, mark, _ = git.removeprefix("gitdir:").strip().partition("/.git/worktrees/")
    return main if mark else folder


def newest_calls(store: Store, sessions: Sequence[str]) -> dict[str, CallRecord | None]:
    """The newest call of each session."""
    # By doubling, then halving: calls are numbered without gaps, and some sessions have thousands.
    low, high = dict.fromkeys(sessions, 0), dict.fromkeys(sessions, 1)
    by_session: dict[str, Head | None] = dict.fromkeys(sessions)
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
                low[session], by_session[session] = number, head
                if session in growing:
                    high[session] = number * 2
            else:
                high[session] = number
                growing.discard(session)
        searching = {s for s in searching if s in growing or high[s] - low[s] > 1}
    return {s: None if head is None else CallRecord(head.fields) for s, head in by_session.items()}


def count_calls(store: Store, session: str) -> int:
    newest = newest_calls(store, [session])[session]
    return 0 if newest is None else newest.ordinal


def checked_call(store: Store, session: str, call: int | None) -> int:
    """A call's number, by default the last; 0 without calls.

    Raises `NotFound`.
    """
    calls = count_calls(store, session)
    if call is not None and not 1 <= call <= calls:
        raise NotFound(f"session {session} has no call {call}; its calls: 1 to {calls}.")
    return call or calls


def _id(head: Head) -> str:
    return head.view(SessionDocument).session_id


def _counts(store: Store, session: str) -> tuple[int, int]:
    turns = [head.fields for head in store.query("turn", {"session": session})]
    questions = len({fields["user"] for fields in turns if fields.get("user")})
    answers = sum(bool(fields.get("assistant")) for fields in turns)
    return questions + answers, sum(len(fields.get("toolcall_ids") or ()) for fields in turns)


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
