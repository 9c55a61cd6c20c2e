"""Stored sessions as people know them, and their branches."""

from __future__ import annotations

import gc
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path, PurePath
from typing import Any

from foredeck.errors import NotFound
from foredeck.hosts.pi import session_name
from foredeck.model.calls import CallRecord, in_order
from foredeck.model.documents import SessionDocument, progress_in, session_object_id
from foredeck.model.figures import shortened
from foredeck.model.messages import MessageKey, load_message
from foredeck.model.records import call_id
from foredeck.names import short_ids
from foredeck.regular_files import read_text
from foredeck.search.texts import TITLE_CHARS, first_prompt
from foredeck.store.protocol import Head
from foredeck.store.store import Store
from foredeck.timeline.branches import users_words

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


def project_names(folders: Iterable[str]) -> dict[str, str]:
    """The last part of each folder, or the last two where others end alike."""
    paths = {folder: PurePath(folder) for folder in folders}
    alike = Counter(path.name for path in paths.values())
    return {
        folder: "/".join(path.parts[-1 if alike[path.name] == 1 else -2 :]) or "(no folder)"
        for folder, path in paths.items()
    }


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


def newest_call(store: Store, session: str) -> CallRecord | None:
    return newest_calls(store, [session])[session]


def count_calls(store: Store, session: str) -> int:
    newest = newest_call(store, session)
    return 0 if newest is None else newest.ordinal


def checked_call(store: Store, session: str, call: int | None) -> int:
    """A call's number, by default the last; 0 without calls.

    Raises `NotFound`.
    """
    calls = count_calls(store, session)
    if call is not None and not calls:
        raise NotFound(f"session {session} has made no call yet.")
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


# Branches


_ASKED_CHARS = 60


@dataclass(slots=True)
class StoredBranch:
    """`left_at`: the call where it leaves another branch; None: an empty start."""

    number: int
    left_at: int | None
    calls: list[int] = field(default_factory=list)
    """Its own calls by number, after `left_at`."""
    asked: str = ""
    """The beginning of its first user message."""


@dataclass(frozen=True, slots=True)
class Branches:
    """A session's branches in order of their beginnings."""

    all: tuple[StoredBranch, ...]
    times: tuple[int, ...]
    """When each call was stored, in ms."""

    def of_call(self, call: int) -> StoredBranch:
        for branch in self.all:
            if call in branch.calls:
                return branch
        raise KeyError(call)

    def at(self, time_ms: int) -> StoredBranch:
        return self.of_call(min(bisect_left(self.times, time_ms) + 1, len(self.times)))

    @property
    def current(self) -> StoredBranch:
        """The newest call's branch."""
        return self.of_call(len(self.times))


def branches_of(store: Store, session: str, calls: Sequence[Head] | None = None) -> Branches:
    """A session's branches; none without calls."""
    heads = store.query("call", {"session": session}) if calls is None else calls
    stored_ms = {head.id: head.time_ms for head in heads}
    records = in_order(head.fields for head in heads)
    tracer = _Tracer(store)
    for record in records:
        tracer.add(record)
    return Branches(tuple(tracer.branches), tuple(stored_ms[record.id] for record in records))


class _Tracer:
    """Assigns calls to branches in order."""

    def __init__(self, store: Store) -> None:
        self.branches: list[StoredBranch] = []
        self._store = store
        self._records: dict[str, CallRecord] = {}
        self._on: dict[str, StoredBranch] = {}
        self._newest: CallRecord | None = None

    def add(self, record: CallRecord) -> None:
        """The next call."""
        parent = self._records.get(record.parent or "") or self._compacted(record)
        if parent is None or self._leaves(parent, record):
            left_at = None if parent is None else parent.ordinal
            beginning = self._question(record.keys)
            self.branches.append(StoredBranch(len(self.branches) + 1, left_at, asked=beginning))
            self._on[record.id] = self.branches[-1]
        else:
            self._on[record.id] = self._on[parent.id]
        self._on[record.id].calls.append(record.ordinal)
        self._records[record.id] = self._newest = record

    def _compacted(self, record: CallRecord) -> CallRecord | None:
        first = next(record.addresses, None)
        if self._newest is None or first is None:
            return None
        # A list that begins with a summary shares no message with the call before it.
        is_summary = self._message(first).get("role") == "compactionSummary"
        return self._newest if is_summary else None

    def _leaves(self, parent: CallRecord, record: CallRecord) -> bool:
        """Whether a call leaves its parent's branch."""
        if self._on[parent.id].calls[-1] != parent.ordinal:
            return True
        if record.parent is None:
            return False
        # Where an edit has replaced messages, others that came after them are there still.
        gone = self._names_after(parent, record.shared)
        return bool(gone) and gone.isdisjoint(map(_name, record.keys))

    def _names_after(self, record: CallRecord | None, kept: int) -> set[str]:
        names_seen: set[str] = set()
        end = record.length if record else 0
        while record is not None and end > kept:
            first, keys = record.shared, record.keys
            names_seen.update(
                _name(key) for key in keys[max(0, kept - first) : max(0, end - first)]
            )
            end = min(end, first)
            record = self._records.get(record.parent or "")
        return names_seen

    def _question(self, keys: list[MessageKey]) -> str:
        for key in keys:
            if text := users_words(self._message(key.address)):
                return text[:_ASKED_CHARS]
        return ""

    def _message(self, address: str) -> dict[str, Any]:
        return load_message(address, self._store.blob)


def _name(key: MessageKey) -> str:
    return key.entry or key.address


def collect_seldom() -> None:
    """Looks for garbage only after hundreds of thousands of new objects."""
    # Reading a long session makes that many, all of which it needs, and looking took a third of
    # the time.
    gc.freeze()
    gc.set_threshold(500_000, 5, 5)
