"""The work log's layer: what was done, and which forms of failing commands worked, by session.

Rows follow from the tool calls in the order in which they were stored.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from foredeck.commands import command_of
from foredeck.derived.layer import ABSENT_TABLE, Layer, brought_portions, note_absent
from foredeck.errors import Missing
from foredeck.model.messages import unpack
from foredeck.search.texts import Fetched
from foredeck.search.writing import encodable
from foredeck.store.protocol import Change, Head, LocalStore
from foredeck.worklog.done import FinishedWork, SessionWork, failed_run
from foredeck.worklog.lessons import (
    WITHIN_COMMANDS,
    Lesson,
    Run,
    SessionLessons,
    complaint,
    was_run,
)

MOST_LESSONS = 500
MOST_DONE = 50
"""The newest are enough: they are shown by the line, and older ones are found by searching."""

_TAKEN_IN = ("session", "toolcall", "task")

_STATEMENTS = (
    "CREATE TABLE folder (session TEXT PRIMARY KEY, cwd TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE taken (toolcall TEXT PRIMARY KEY) WITHOUT ROWID",
    """CREATE TABLE run (
        id INTEGER PRIMARY KEY, session TEXT NOT NULL, time_ms INTEGER NOT NULL,
        command TEXT NOT NULL, said TEXT NOT NULL, failed INTEGER NOT NULL)""",
    "CREATE INDEX run_session ON run (session, id)",
    "CREATE TABLE edited (session TEXT PRIMARY KEY, files TEXT NOT NULL) WITHOUT ROWID",
    """CREATE TABLE done (
        id INTEGER PRIMARY KEY, session TEXT NOT NULL, time_ms INTEGER NOT NULL,
        kind TEXT NOT NULL, what TEXT NOT NULL, how TEXT NOT NULL, files TEXT NOT NULL,
        project TEXT)""",
    "CREATE INDEX done_session ON done (session, id)",
    """CREATE TABLE lesson (
        id INTEGER PRIMARY KEY, session TEXT NOT NULL, time_ms INTEGER NOT NULL,
        program TEXT NOT NULL, complaint TEXT NOT NULL, failed TEXT NOT NULL,
        worked TEXT NOT NULL, typed TEXT NOT NULL, kept REAL NOT NULL)""",
    "CREATE INDEX lesson_session ON lesson (session, id)",
    ABSENT_TABLE,
)

_ADD_DONE = (
    "INSERT INTO done (session, time_ms, kind, what, how, files, project)"
    " VALUES (?, ?, ?, ?, ?, ?, ?)"
)


class WorklogLayer(Layer):
    """See `derived.layer.Layer`. Rows follow from the calls around one, too."""

    name = "worklog"
    version = 5
    tables = _STATEMENTS

    def apply(self, db: sqlite3.Connection, store: LocalStore, changes: Sequence[Change]) -> None:
        """See `Layer.apply`."""
        # A call that is had later counts from then on: what lies between is not learned again.
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
    session = str(fields.get("chat_ref") or "").removeprefix("chat:")
    if not session or fields.get("parent_ref"):
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
        call = _Call(db, session, str(fields.get("tool") or ""), arguments, time_ms)
        call.take(output, failed=fields.get("status") == "fail")


def _take_task(db: sqlite3.Connection, head: Head) -> None:
    """A version of a task: done as long as it is closed. Its row has the task's id as `how`."""
    fields = head.fields
    db.execute("DELETE FROM done WHERE kind = 'task' AND how = ?", (head.id,))
    if fields.get("status") == "closed" and fields.get("close_reason") == "completed":
        time_ms = fields.get("closed_ms") or head.time_ms
        title, session = str(fields.get("title") or ""), str(fields.get("session") or "")
        done = FinishedWork("task", " ".join(title.split()), head.id, (), session, time_ms)
        # People close tasks, too, in no session at all: a task knows its project.
        db.execute(_ADD_DONE, (*_done_row(done), fields.get("project")))


@dataclass(frozen=True, slots=True)
class _Call:
    """One tool call into the tables."""

    db: sqlite3.Connection
    session: str
    tool: str
    arguments: Mapping[str, Any]
    time_ms: int

    def take(self, output: str, *, failed: bool) -> None:
        """Add what its output shows."""
        command = command_of(self.tool, self.arguments)
        if command is not None and was_run(output):
            self._learn(command, output, failed=failed)
        self._work(output, failed=failed)

    def _learn(self, command: str, output: str, *, failed: bool) -> None:
        rows = self.db.execute(
            "SELECT session, time_ms, command, said, failed FROM run WHERE session = ? ORDER BY id",
            (self.session,),
        ).fetchall()
        # Of an output only the complaint is kept, or its first letter: that there was one.
        found = complaint(output, failed=failed)
        said = found.line if found else output.strip()[:1]
        run = Run(self.session, self.time_ms, command, said, failed)
        learning = SessionLessons()
        for earlier, time_ms, line, heard, how in rows:
            learning.take(Run(earlier, time_ms, line, heard, bool(how)))
        self.db.executemany(
            "INSERT INTO lesson (session, time_ms, program, complaint, failed, worked, typed, kept)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            [_lesson_row(lesson) for lesson in learning.take(run)],
        )
        self.db.execute(
            "INSERT INTO run (session, time_ms, command, said, failed) VALUES (?, ?, ?, ?, ?)",
            (self.session, self.time_ms, encodable(command), encodable(said), failed),
        )
        # A lesson comes of commands that are close together: the last ones are enough.
        self.db.execute(
            "DELETE FROM run WHERE session = ?1 AND id NOT IN"
            " (SELECT id FROM run WHERE session = ?1 ORDER BY id DESC LIMIT ?2)",
            (self.session, WITHIN_COMMANDS),
        )

    def _work(self, output: str, *, failed: bool) -> None:
        row = self.db.execute(
            "SELECT files FROM edited WHERE session = ?", (self.session,)
        ).fetchone()
        before = json.loads(row[0]) if row else []
        work = SessionWork(self.session, list(before))
        time_ms = self.time_ms
        done = work.take(self.tool, self.arguments, output, failed=failed, time_ms=time_ms)
        if work.edited != before:
            kept = (self.session, json.dumps(work.edited))
            self.db.execute("INSERT OR REPLACE INTO edited VALUES (?, ?)", kept)
        if failed and (run := failed_run(self.tool, self.arguments)) is not None:
            self.db.execute(
                "DELETE FROM done WHERE session = ? AND kind = 'tests' AND what = ?",
                (self.session, encodable(run)),
            )
        if done is not None and done.kind != "task":  # `_take_task` has those, with their titles
            self.db.execute(_ADD_DONE, (*_done_row(done), None))


def _lesson_row(lesson: Lesson) -> tuple[object, ...]:
    return (
        lesson.session,
        lesson.time_ms,
        encodable(lesson.program),
        encodable(lesson.complaint),
        json.dumps(sorted(lesson.failed)),
        json.dumps(lesson.worked),
        encodable(lesson.text),
        lesson.kept,
    )


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
    """The folder in which each session works, by session."""
    return dict(db.execute("SELECT session, cwd FROM folder").fetchall())


def lessons_of(db: sqlite3.Connection, sessions: Sequence[str]) -> list[Lesson]:
    """The newest lessons of these sessions, the oldest of them first."""
    rows = db.execute(
        "SELECT program, complaint, failed, worked, typed, session, time_ms, kept FROM lesson"
        " WHERE session IN (SELECT value FROM json_each(?)) ORDER BY time_ms DESC, id DESC LIMIT ?",
        (json.dumps(list(sessions)), MOST_LESSONS),
    ).fetchall()
    return [
        Lesson(program, complaint, frozenset(json.loads(failed)), tuple(json.loads(worked)), *rest)
        for program, complaint, failed, worked, *rest in reversed(rows)
    ]


def done_by(
    db: sqlite3.Connection, sessions: Sequence[str], project: str | None = None, but: str = ""
) -> list[FinishedWork]:
    """What these sessions finished last, the oldest of it first; and what was finished in a
    project (by its id) by anybody but the session `but`."""
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
