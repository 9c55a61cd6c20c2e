"""Finished work by session."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from foredeck.derived.layer import ABSENT_TABLE, Layer, brought_portions, note_absent
from foredeck.errors import Missing
from foredeck.model.messages import unpack
from foredeck.search.texts import Fetched
from foredeck.search.writing import encodable
from foredeck.store.protocol import Change, Head, LocalStore
from foredeck.worklog.done import FinishedWork, SessionWork, failed_run

MOST_DONE = 50
"""Older work is found by search."""

_TAKEN_IN = ("session", "toolcall", "task")

_STATEMENTS = (
    "CREATE TABLE folder (session TEXT PRIMARY KEY, cwd TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE taken (toolcall TEXT PRIMARY KEY) WITHOUT ROWID",
    "CREATE TABLE edited (session TEXT PRIMARY KEY, files TEXT NOT NULL) WITHOUT ROWID",
    """CREATE TABLE done (
        id INTEGER PRIMARY KEY, session TEXT NOT NULL, time_ms INTEGER NOT NULL,
        kind TEXT NOT NULL, what TEXT NOT NULL, how TEXT NOT NULL, files TEXT NOT NULL,
        project TEXT)""",
    "CREATE INDEX done_session ON done (session, id)",
    ABSENT_TABLE,
)

_ADD_DONE = (
    "INSERT INTO done (session, time_ms, kind, what, how, files, project)"
    " VALUES (?, ?, ?, ?, ?, ?, ?)"
)


class WorklogLayer(Layer):
    """The layer; its rows depend on several calls."""

    name = "worklog"
    version = 6
    tables = _STATEMENTS

    def apply(self, db: sqlite3.Connection, store: LocalStore, changes: Sequence[Change]) -> None:
        # A call that is had later counts from then on: what lies between is not read again.
        for heads in brought_portions(db, store, changes, _TAKEN_IN):
            fetched = Fetched(store, (head for head in heads if head.type == "toolcall"))
            for head in heads:
                _take(db, head, fetched)


def _take(db: sqlite3.Connection, head: Head, fetched: Fetched) -> None:
    fields = head.fields
    if head.type == "session":
        row = (fields["session_id"], fields.get("cwd") or "")
        db.execute("INSERT OR REPLACE INTO folder VALUES (?, ?)", row)
        return
    if head.type == "task":
        _take_task(db, head)
        return
    if not _session_of(head) or fields.get("parent_ref"):
        return
    # A call whose place or nickname changes has another version, and was still made once.
    if not db.execute("INSERT OR IGNORE INTO taken VALUES (?)", (head.id,)).rowcount:
        return
    try:
        arguments = unpack(fields.get("args") or {}, fetched.blob)
        output, time_ms = fetched.content(head), fetched.asked_ms(head)
    except Missing:
        db.execute("DELETE FROM taken WHERE toolcall = ?", (head.id,))
        note_absent(db, head)
        return
    except (LookupError, TypeError, ValueError):  # no call that anybody can read
        return
    if isinstance(arguments, dict):
        _take_call(db, head, arguments, output, time_ms)


def _take_task(db: sqlite3.Connection, head: Head) -> None:
    fields = head.fields
    db.execute("DELETE FROM done WHERE kind = 'task' AND how = ?", (head.id,))
    if fields.get("status") == "closed" and fields.get("close_reason") == "completed":
        time_ms = fields.get("closed_ms") or head.time_ms
        title, session = str(fields.get("title") or ""), str(fields.get("session") or "")
        finished = FinishedWork("task", " ".join(title.split()), head.id, (), session, time_ms)
        # People close tasks, too, in no session at all: a task knows its project.
        db.execute(_ADD_DONE, (*_done_row(finished), fields.get("project")))


def _take_call(
    db: sqlite3.Connection, head: Head, arguments: Mapping[str, Any], output: str, time_ms: int
) -> None:
    session, tool = _session_of(head), str(head.fields.get("tool") or "")
    failed = head.fields.get("status") == "fail"
    row = db.execute("SELECT files FROM edited WHERE session = ?", (session,)).fetchone()
    before = json.loads(row[0]) if row else []
    work = SessionWork(session, list(before))
    finished = work.take(tool, arguments, output, failed=failed, time_ms=time_ms)
    if work.edited != before:
        edited = (session, json.dumps(work.edited))
        db.execute("INSERT OR REPLACE INTO edited VALUES (?, ?)", edited)
    if failed and (run := failed_run(tool, arguments)) is not None:
        db.execute(
            "DELETE FROM done WHERE session = ? AND kind = 'tests' AND what = ?",
            (session, encodable(run)),
        )
    if (
        finished is not None and finished.kind != "task"
    ):  # `_take_task` has those, with their titles
        db.execute(_ADD_DONE, (*_done_row(finished), None))


def _session_of(call: Head) -> str:
    return str(call.fields.get("chat_ref") or "").removeprefix("chat:")


def _done_row(done: FinishedWork) -> tuple[object, ...]:
    return (
        done.session,
        done.time_ms,
        done.kind,
        encodable(done.what),
        encodable(done.how),
        json.dumps(done.files),
    )


LAYER = WorklogLayer()


def folders(db: sqlite3.Connection) -> dict[str, str]:
    """Working folders by session."""
    return dict(db.execute("SELECT session, cwd FROM folder").fetchall())


def done_by(
    db: sqlite3.Connection, sessions: Sequence[str], project: str | None = None, but: str = ""
) -> list[FinishedWork]:
    """What these sessions finished, oldest first; and anybody in a project but session `but`."""
    rows = db.execute(
        "SELECT kind, what, how, files, session, time_ms FROM done"
        " WHERE session IN (SELECT value FROM json_each(?))"
        " OR (project = ? AND (session = '' OR session != ?))"
        " ORDER BY time_ms DESC, id DESC LIMIT ?",
        (json.dumps(list(sessions)), project, but, MOST_DONE),
    ).fetchall()
    return [
        FinishedWork(kind, what, how, tuple(json.loads(files)), session, time_ms)
        for kind, what, how, files, session, time_ms in reversed(rows)
    ]
