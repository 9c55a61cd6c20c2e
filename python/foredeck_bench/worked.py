"""How often a command of recorded sessions failed as one before it had, and what is said then."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from foredeck.cli.arguments import add_json_flag
from foredeck.cli.output import Progress, print_json
from foredeck.cli.registry import Command
from foredeck.commands import command_of
from foredeck.histories.lines import opened_lines
from foredeck.histories.recordings import format_of, history_files
from foredeck.histories.records import HistoryMessage
from foredeck.model.messages import text_in
from foredeck.model.quoting import printable
from foredeck.worklog.lessons import (
    Lesson,
    Run,
    SessionLessons,
    as_typed,
    complaint,
    was_run,
    worked_as,
)


def measure_worked(paths: Iterable[Path], advance: Callable[[], None]) -> dict[str, Any]:
    """All sessions as those of one project, their commands in the order of time; the hits."""
    runs: list[Run] = []
    for path in history_files(paths):
        runs += commands_of(path)
        advance()
    runs.sort(key=lambda run: run.time_ms)
    lessons: list[Lesson] = []
    sessions: dict[str, SessionLessons] = {}
    hits: list[dict[str, Any]] = []
    shown: set[tuple[str, str]] = set()
    for run in runs:
        lesson = worked_as(run, lessons)
        if lesson is not None and (run.session, as_typed(lesson)) not in shown:
            shown.add((run.session, as_typed(lesson)))
            hits.append(_hit(run, lesson))
        lessons += sessions.setdefault(run.session, SessionLessons()).take(run)
    return {
        "commands": len(runs),
        "failed": sum(run.failed for run in runs),
        "complaints": sum(complaint(run.output, failed=run.failed) is not None for run in runs),
        "lessons": len(lessons),
        "hits": hits,
    }


def _hit(run: Run, lesson: Lesson) -> dict[str, Any]:
    said = complaint(run.output, failed=run.failed)
    return {
        "session": run.session,
        "time_ms": run.time_ms,
        "command": " ".join(run.command.split()),
        "complaint": said.line if said else "",
        "worked": as_typed(lesson),
        "worked_in": lesson.session,
        "worked_ms": lesson.time_ms,
    }


def commands_of(path: Path) -> Iterator[Run]:
    """The commands that the sessions of a file ran, in the order of their results."""
    known = format_of(path)
    if known is None:
        return
    asked: dict[str, str] = {}
    with opened_lines(path) as lines:
        for record in known.read(lines):
            if not isinstance(record, HistoryMessage):
                continue
            message = record.message
            if record.role == "assistant":
                for block in message.get("content") or ():
                    command = _command(block)
                    if command is not None:
                        asked[block["id"]] = command
            elif record.role == "toolResult" and message["toolCallId"] in asked:
                command = asked.pop(message["toolCallId"])
                output, time_ms = text_in(message["content"]), message.get("timestamp") or 0
                if was_run(output):
                    failed = bool(message.get("isError"))
                    yield Run(record.session, int(time_ms), command, output, failed)


def _command(block: Any) -> str | None:
    if not isinstance(block, dict) or block.get("type") != "toolCall":
        return None
    return command_of(str(block.get("name")), block.get("arguments") or {})


# The command


SHOWN_CHARS = 300


def _run(args: Namespace) -> int:
    with Progress("reading") as progress:
        found = measure_worked(args.path, progress.advance)
    if args.json:
        print_json(found)
        return 0
    for number, hit in enumerate(found["hits"], 1):
        print(f"{number}. {printable(hit['command'][:SHOWN_CHARS])}")
        print(f"   said:      {printable(hit['complaint'][:SHOWN_CHARS])}")
        print(f"   worked as: {printable(hit['worked'])}\n")
    counts = ("commands", "failed", "complaints", "lessons")
    run, failed, wrongly, cured = (f"{found[name]:,}" for name in counts)
    print(
        f"{run} commands, {failed} failed, {wrongly} called wrongly, {cured} worked in another "
        f"form soon after: {len(found['hits'])} lines"
    )
    return 0


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "path", metavar="PATH", nargs="+", type=Path, help="histories: files or folders"
    )
    add_json_flag(parser)


COMMAND = Command(
    description=(
        "Print what a failing command would have been answered: the form in which it had worked\n"
        "after it had failed before. All sessions count as of one project, in the order of time.\n"
        "The lines are there to be read: whether one is right is for people to say."
    ),
    example="foredeck bench worked ../shared/history",
    configure=_configure,
    run=_run,
)
