"""The work log in words: short lines that the model reads."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from foredeck.model.quoting import name, one_line, quoted
from foredeck.search.secrets import mask_secrets
from foredeck.worklog.done import FinishedWork, newest

MOST_LINES = 4
MOST_TESTS = 2
MOST_FILES = 2
_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September"),
    *("October", "November", "December"),
)


def day(time_ms: int, seen_ms: int) -> str:
    """`3 May`, by universal time; `3 May 2025` where it is seen in another year."""
    then, seen = (datetime.fromtimestamp(ms / 1000, UTC) for ms in (time_ms, seen_ms))
    name = f"{then.day} {_MONTHS[then.month - 1]}"
    return name if then.year == seen.year else f"{name} {then.year}"


def describe(work: FinishedWork, cwd: str = "") -> str:
    """What was finished, in a few words: `committed "Add a parser" (src/parser.py)`."""
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
    named = [name(_short(file, cwd)) for file in files[-MOST_FILES:]]
    more = f" and {len(files) - MOST_FILES} more" if len(files) > MOST_FILES else ""
    return f" ({', '.join(named)}{more})"


def _short(file: str, cwd: str) -> str:
    """A path as one says it in this folder; of one that lies elsewhere the last part."""
    if not file.startswith("/"):
        return file
    inside = f"{cwd.rstrip('/')}/"
    return file.removeprefix(inside) if file.startswith(inside) else posixpath.basename(file)


@dataclass(frozen=True, slots=True)
class WorkLog:
    """The section of the head that says what the project's earlier sessions finished.

    A section as `context/head/section.py` describes it. It stays the same while the session is
    open: what the session does itself is in its chat, and then in the summary of that.
    """

    done: Sequence[FinishedWork]
    cwd: str
    name: str = "done in earlier sessions"

    def text(self, limit: int) -> str:
        """The newest pieces of work, a line each, the newest first: as many as fit."""
        lines: list[str] = []
        room = limit
        for each in _chosen(self.done):
            # A commit names the files; the test run beside it was about the same ones.
            shown = replace(each, files=()) if each.kind == "tests" else each
            line = f"{day(each.time_ms, self.done[-1].time_ms)}: {describe(shown, self.cwd)}"
            room -= len(line) + 1
            if room < -1:  # one less than nothing: no line break follows the last line
                break
            lines.append(line)
        return "\n".join(lines)


def _chosen(done: Sequence[FinishedWork]) -> list[FinishedWork]:
    """The newest pieces of work, the newest first; few test runs, which say less than commits."""
    chosen: list[FinishedWork] = []
    tests = 0
    for each in reversed(newest(done)):
        tests += each.kind == "tests"
        if each.kind != "tests" or tests <= MOST_TESTS:
            chosen.append(each)
    return chosen[:MOST_LINES]
