"""The layer's rows for one project: what its sessions have done, and what they have learned."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from foredeck.worklog.done import FinishedWork
from foredeck.worklog.lessons import Lesson

MOST_LESSONS = 500
MOST_DONE = 50
"""The newest are enough: they are shown by the line, and older ones are found by searching."""


@dataclass(frozen=True, slots=True)
class EarlierWork:
    """What the project's other sessions did and learned, as the layer had it at the opening."""

    lessons: Sequence[Lesson] = ()
    done: Sequence[FinishedWork] = ()


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
        Lesson(
            program,
            complaint,
            frozenset(json.loads(failed)),
            tuple(json.loads(worked)),
            *rest,
        )
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
