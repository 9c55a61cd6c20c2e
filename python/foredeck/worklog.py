"""Finished work by session: commits, passing tests and closed tasks in tool results."""

from __future__ import annotations

import json
import posixpath
import re
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal

from foredeck.commands import ToolOutput, command_of, steps, test_facts
from foredeck.derived.layer import ABSENT_TABLE, Layer, brought_portions, note_absent
from foredeck.errors import Missing
from foredeck.model.figures import MONTHS, shortened
from foredeck.model.messages import unpack
from foredeck.model.quoting import name, one_line, quoted
from foredeck.search.secrets import mask_secrets
from foredeck.search.texts import Fetched
from foredeck.search.writing import encodable
from foredeck.sources.tool_calls import path_argument
from foredeck.store.protocol import Change, Head
from foredeck.store.store import Store

Kind = Literal["commit", "tests", "task"]
MAX_FILES = 20
"""The last edited ones."""
COMMAND_CHARS, SUBJECT_CHARS = 60, 72

_SILENT = frozenset(
    {"echo", "pwd", "export", "set", "true", "false", "sleep", "source", "printf", "exit"}
    | {".", ":", "for", "do", "done", "if", "then", "else", "fi", "while", "{", "}"}
    | {"test", "[", "[["}
)
"""Steps that do no work."""
_NOT_RUN = re.compile(
    r"<tool_use_error>|.{0,40}doesn't want to proceed with this tool use|\[Request interrupted"
    r"|\[foredeck\] No result|\s*(?:Command|Operation) aborted|\[removed\]"
)
"""Beginnings of results that no program printed."""
_SHOWING = frozenset(
    {"cat", "grep", "rg", "sed", "awk", "head", "tail", "less", "ls", "find", "git", "gh", "jq"}
    | {"curl", "diff", "tee", "wc", "cp", "mv", "rm", "mkdir", "ssh", "docker", "kubectl"}
)
_TESTING = re.compile(r"test|spec|check|verify|\bci\b")
_TASKS = "task-mutate"
_CLOSED = re.compile(r"Closed (\S+) \(completed\): (.+)")
"""How that tool's result begins."""
_WRITERS = frozenset({"edit", "write", "multiedit"})
_COMMITTED = re.compile(r"^\[[^\]\n]+ [0-9a-f]{7,40}\] (.+)$", re.MULTILINE)
_NOT_COMMITTED = re.compile(
    r"^(?:error|fatal): |\bto commit\b|^(?:Untracked files|Changes (?:to be|not staged)).*:$"
    r"|[Aa]borting commit|\b(?:[Ff]ailed|exited with)\b",
    re.MULTILINE,
)
"""What git and its hooks say of a failed commit."""
_MESSAGE = re.compile(
    r"(?:\s-\w*m|\s--message)[\s=]*(?:[\"']?\$\(cat <<-?\s*['\"]?\w+['\"]?\s*\n\s*)?"
    r"[\"']?([^\"'\n]+)"
)
_PASSED = re.compile(
    r"\b\d+ pass(?:ed|ing)\b|test result: ok|OK \(\d+|\b\d+ packages? ok\b|(?:#|ℹ) pass \d"
    r"|\b\d+ examples?, 0 failures"
)
_UNITTEST = re.compile(r"^(Ran [1-9]\d* tests?) in [\d.]+s\n\n(OK.*)$", re.MULTILINE)
_NOT_PASSED = re.compile(
    r"\b[1-9]\d* (?:failed|failing|failures?|errors?)\b|FAIL|(?:#|ℹ) fail [1-9]"
)

MOST_LINES = 4
MOST_TESTS = 2
MOST_FILES = 2


@dataclass(frozen=True, slots=True)
class FinishedWork:
    """Finished work: `commit`, `tests` or `task`.

    `what`: subject, command or title; `how`: summary of a test run, a task's id; `files`: edited
    for it.
    """

    kind: Kind
    what: str
    how: str
    files: tuple[str, ...]
    session: str
    time_ms: int


def newest(finished: Sequence[FinishedWork]) -> list[FinishedWork]:
    """Work without earlier runs of a command, and commits of a subject."""
    last = {(each.kind, each.what): each for each in finished}
    return [each for each in finished if last[each.kind, each.what] is each]


@dataclass(slots=True)
class SessionWork:
    """Follows one session's tool calls in order."""

    session: str
    edited: list[str] = field(default_factory=list)
    """Files edited since the last commit, newest last."""

    def take(
        self, tool: str, arguments: Mapping[str, Any], output: str, *, failed: bool, time_ms: int
    ) -> FinishedWork | None:
        """What a tool call finished, if anything."""
        if failed or _NOT_RUN.match(output):
            return None
        if tool.lower() in _WRITERS:
            self._edit(path_argument(arguments))
            return None
        if tool == _TASKS:
            closed = _CLOSED.match(output)
            return closed and FinishedWork("task", closed[2], closed[1], (), self.session, time_ms)
        command = command_of(tool, arguments)
        if command is None:
            return None
        if (subject := _commit_of(command, output)) is not None:
            files, self.edited = tuple(self.edited), []
            return FinishedWork("commit", subject, "", files, self.session, time_ms)
        if (passed := _passed(output)) is not None and (run := _test_step(command)):
            return FinishedWork("tests", run, passed, tuple(self.edited), self.session, time_ms)
        return None

    def _edit(self, path: str | None) -> None:
        if path:
            # One fewer than may be kept, to leave room for this one.
            self.edited = [other for other in self.edited if other != path][1 - MAX_FILES :]
            self.edited.append(path)


def failed_run(tool: str, arguments: Mapping[str, Any]) -> str | None:
    command = command_of(tool, arguments)
    return None if command is None else _test_step(command) or None


def _commit_of(command: str, output: str) -> str | None:
    commits = [step for step in steps(command) if step.program == "git commit"]
    if not commits or all("--dry-run" in step.words for step in commits):
        return None
    # The last one, as an amended commit replaces the one before it.
    *_, match = None, *_COMMITTED.finditer(output)
    # git was told to be quiet, or its output went elsewhere: what the command says counts, unless
    # git or a hook refused it, which a pipe or `|| true` hides.
    if match is None and not _NOT_COMMITTED.search(output):
        match = _MESSAGE.search(command)
    return None if match is None else shortened(match[1], SUBJECT_CHARS)


def _passed(output: str) -> str | None:
    if (ran := _UNITTEST.search(output)) is not None:
        return f"{ran[1]}, {ran[2]}"
    for fact in test_facts(ToolOutput.of(output).body):
        if _PASSED.search(fact) and not _NOT_PASSED.search(fact):
            return shortened(fact, COMMAND_CHARS)
    return None


def _test_step(command: str) -> str:
    folder, work, tests = "", [], []
    for step in steps(command):
        if step.program == "cd":
            folder = step.text
        elif step.program not in _SILENT and step.program.partition(" ")[0] not in _SHOWING:
            work.append(step)
            if _TESTING.search(step.text) or _TESTING.search(folder):
                tests.append(step)
    last = (tests or work)[-1:]
    return shortened(" ".join(last[0].words), COMMAND_CHARS) if last else ""


@dataclass(frozen=True, slots=True)
class WorkLog:
    """Earlier sessions' work in the head; fixed while the session is open."""

    done: Sequence[FinishedWork]
    cwd: str
    name: str = "done in earlier sessions"

    def text(self, limit: int) -> str:
        lines: list[str] = []
        room = limit
        for each in _chosen(self.done):
            # A commit names the files; the test run beside it was about the same ones.
            listed = replace(each, files=()) if each.kind == "tests" else each
            line = f"{day(each.time_ms, self.done[-1].time_ms)}: {describe(listed, self.cwd)}"
            room -= len(line) + 1
            if room < -1:  # one less than nothing: no line break follows the last line
                break
            lines.append(line)
        return "\n".join(lines)


def _chosen(done: Sequence[FinishedWork]) -> list[FinishedWork]:
    chosen: list[FinishedWork] = []
    tests = 0
    for each in reversed(newest(done)):
        tests += each.kind == "tests"
        if each.kind != "tests" or tests <= MOST_TESTS:
            chosen.append(each)
    return chosen[:MOST_LINES]


def day(time_ms: int, seen_ms: int) -> str:
    """`3 May` in UTC; `3 May 2025` in another year."""
    then, reference = (datetime.fromtimestamp(ms / 1000, UTC) for ms in (time_ms, seen_ms))
    name = f"{then.day} {MONTHS[then.month - 1]}"
    return name if then.year == reference.year else f"{name} {then.year}"


def describe(work: FinishedWork, cwd: str = "") -> str:
    what = mask_secrets(work.what)
    match work.kind:
        case "commit":
            return f"committed {quoted(what)}{_files(work.files, cwd)}"
        case "task":
            return f"closed the task {quoted(what)}"
    return f"{one_line(f'{what}: {work.how}')}{_files(work.files, cwd)}"


def _files(files: Sequence[str], cwd: str) -> str:
    if not files:
        return ""
    short_names = [name(_short(file, cwd)) for file in files[-MOST_FILES:]]
    more = f" and {len(files) - MOST_FILES} more" if len(files) > MOST_FILES else ""
    return f" ({', '.join(short_names)}{more})"


def _short(file: str, cwd: str) -> str:
    """A path as said in this folder; elsewhere its last part."""
    if not file.startswith("/"):
        return file
    inside = f"{cwd.rstrip('/')}/"
    return file.removeprefix(inside) if file.startswith(inside) else posixpath.basename(file)


# The layer


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

    def apply(self, db: sqlite3.Connection, store: Store, changes: Sequence[Change]) -> None:
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
