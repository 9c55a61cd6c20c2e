"""Every command that reads, run on stores of earlier versions, and the matrix of what works.

`cd tests && python -m resume.reading` prints the matrix.
"""

from __future__ import annotations

import contextlib
import io
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from foredeck.cli.main import main
from foredeck.cli.output import table
from foredeck.lookup.prompts import prompt_at
from foredeck.replay.replayed_session import ReplayedSession
from foredeck.store.kind import open_store
from resume.recorded import (
    FIXTURES,
    FORMS,
    StoredSession,
    digest,
    stored_sessions,
    unpack_store,
)

SESSION = "small-window"
FILE = "/repo/small-window/0.ts"

READING = {
    "sessions": "sessions --size",
    "show": f"show {SESSION} --call 7",
    "cost": f"cost {SESSION}",
    "blame": f"blame {FILE}",
    "trace": f"trace turn {SESSION}",
    "history": f"history {FILE} 1 2",
    "cat": f"cat {SESSION}:@4",
    "search": "search turn",
    "tasks": "tasks list --project /tmp/project",
    "notes": "notes --all",
    "memory": "memory list",
    "working": "working",
    "observations": f"observations {SESSION}",
    "graph": f"graph {FILE}",
    "content": f"graph --content {FILE}",
    "export": f"export {SESSION} {{out}}/session.jsonl",
    "import": "import {out}/session.jsonl --home {out}/other",
    "backup": "backup {out}/backup.db --verify",
    "restore": "restore {out}/backup.db --home {out}/restored",
    "purge": "purge --text not-in-here --dry-run",
    "forget": f"forget {SESSION} --dry-run",
    "prune": "prune --dry-run",
    "vacuum": "doctor --vacuum",
    "migrate": "migrate sqlite sqlite:{out}/copy.db",
    "name": f"name {FILE} spoken-of",
    "renames": "index --renames",
}
"""Command lines by command, in an order in which each finds what it needs; `{out}` is a folder."""

OTHERS = frozenset(
    {"doctor", "config", "index", "ingest", "replay", "engine", "ui", "mcp", "eval", "proxy"}
)
"""Commands that look at the machine, take in something new, or serve others."""


def run_all(home: Path, out: Path) -> Iterator[tuple[str, int, str]]:
    """Command, exit code and what was printed, for each of READING."""
    os.environ["FOREDECK_HOME"] = str(home)
    for name, line in READING.items():
        printed = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            code = main(line.format(out=out).split())
        printed.seek(0)
        yield name, code, printed.read()


def _row(form: str, scratch: Path) -> list[str]:
    folder, home, out = FIXTURES / form, scratch / "home", scratch / "out"
    unpack_store(folder, home)
    out.mkdir()
    with closing(sqlite3.connect(home / "foredeck.db")) as db:
        (schema,) = db.execute("PRAGMA user_version").fetchone()
    sessions = list(stored_sessions(folder))
    shown = sum(_shown(home, stored) for stored in sessions)
    prompts = sum(stored.calls for stored in sessions)
    codes = [code for _, code, _ in run_all(home, out)]
    resumed = sum(_resumes(folder, home, stored, scratch) for stored in sessions)
    works = f"{codes.count(0)} of {len(codes)}"
    return [
        form,
        str(schema),
        f"{shown} of {prompts}",
        f"{resumed} of {len(sessions)}",
        works,
        FORMS[form],
    ]


def _shown(home: Path, stored: StoredSession) -> int:
    with closing(open_store(stored.options.config(home))) as store:
        shown = [digest(prompt_at(store, stored.id, n + 1).messages) for n in range(stored.calls)]
    return sum(map(str.__eq__, shown, stored.prompts))


def _resumes(folder: Path, home: Path, stored: StoredSession, scratch: Path) -> bool:
    """Whether today's engine answers every call that the session had after the store was kept."""
    transcript = stored.transcript(folder, scratch)
    session = ReplayedSession(home, transcript, stored.options)
    answered = [session.call(call)[0] for call in transcript.calls[stored.calls :]]
    session.close()
    return all(answered)


def matrix() -> str:
    """A row for each stored form."""
    head = ["form", "schema", "prompts", "resumed", "commands", "first with"]
    rows = []
    for form in FORMS:
        with tempfile.TemporaryDirectory() as scratch:
            rows.append(_row(form, Path(scratch)))
    return table([head, *rows])


if __name__ == "__main__":
    print(matrix())
