"""Commits, passing tests and closed tasks in tool results."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal

from foredeck.commands import ToolOutput, command_of, steps, test_facts
from foredeck.model.figures import MONTHS, shortened
from foredeck.model.quoting import name, one_line, quoted
from foredeck.search.secrets import mask_secrets
from foredeck.sources.tool_calls import path_argument

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
