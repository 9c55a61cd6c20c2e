"""`foredeck ingest`: histories of coding agents, read into the store."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from foredeck.cli.output import Progress, answer, typed
from foredeck.cli.person import can_ask, is_agreed
from foredeck.cli.stored import made_store, store_if_any
from foredeck.errors import NotFound
from foredeck.model.figures import counted, short_bytes
from foredeck_agents.histories.ingesting import Report, ingest_files
from foredeck_agents.histories.lines import lines_lost
from foredeck_agents.histories.recordings import UsualFolder, history_files, usual_folders
from foredeck_agents.histories.records import TranscriptError

MAX_LISTED = 20
"""Skipped files that are listed; the rest is counted."""


def run(args: Namespace) -> int:
    """`foredeck ingest`."""
    files = _named_files(args.paths)
    if not args.paths:
        folders = usual_folders()
        if not _agreed(folders, args):
            return 0
        files = [file for folder in folders for file in folder.files]
    opened = store_if_any if args.dry_run else made_store
    with opened(args) as store, Progress("reading file", total=len(files)) as progress:
        report = ingest_files(
            store,
            _each(files, progress),
            dry=args.dry_run,
            forgotten=args.forgotten,
            advance=lambda messages: progress.advance(0, note=f"{messages} new messages"),
        )
    value = report.as_fields() | {"dry_run": args.dry_run}
    # As of any command: the file that was named holds no session.
    is_none = args.paths and len(report.skipped) == len(files)
    return answer(
        args, value, _lines(report, dry=args.dry_run), TranscriptError.exit_code if is_none else 0
    )


def _each(files: Iterable[Path], progress: Progress) -> Iterator[Path]:
    for file in files:
        yield file
        progress.advance(note=file.name)


def _named_files(paths: Sequence[Path]) -> list[Path]:
    for path in paths:
        if not path.exists():
            raise NotFound(f"{path} does not exist.")
    files = list(history_files(paths))
    if paths and not files:
        raise NotFound(f"no history (*.jsonl, *.jsonl.gz) in {', '.join(map(str, paths))}.")
    return files


def _agreed(folders: list[UsualFolder], args: Namespace) -> bool:
    if not folders:
        print(
            "No history of Pi, Claude Code or Codex lies where they keep them; "
            "`foredeck ingest PATH...` reads files and folders anywhere.",
            file=sys.stderr,
        )
        return False
    for folder in folders:
        files = counted(len(folder.files), "file")
        size = short_bytes(folder.size)
        print(f"{folder.agent}: {files}, {size}, in {folder.path}", file=sys.stderr)
    if args.yes or args.dry_run:
        return True
    if not can_ask():
        print(
            "Nothing was read: `foredeck ingest --yes` reads these, `foredeck ingest PATH...` "
            "some of them, and with --dry-run either says what it would do.",
            file=sys.stderr,
        )
        return False
    return is_agreed("Read them into the store?")


def _lines(report: Report, *, dry: bool) -> Iterator[str]:
    would = "would be " if dry else ""
    of = ", ".join(f"{count:,} of {harness}" for harness, count in sorted(report.files.items()))
    yield (
        f"{counted(sum(report.files.values()), 'file')} {would}read{f' ({of})' if of else ''}, "
        f"{report.unchanged:,} with nothing new, {len(report.skipped):,} skipped"
    )
    yield (
        f"{counted(report.new, 'new session')}, {report.grown:,} with more in them; "
        f"{counted(report.messages, 'message')}, {counted(report.tool_calls, 'tool call')}"
    )
    if report.recorded:
        yield f"{counted(report.recorded, 'session')} skipped: foredeck recorded them itself"
    if report.forgotten:
        yield (
            f"{counted(report.forgotten, 'session')} skipped: you forgot them "
            "(--forgotten reads them again)"
        )
    lines = {"could not be read": report.unreadable, "have no messages in them": report.other}
    for what, counts in lines.items():
        if counts:
            reasons = ", ".join(f"{count:,} {reason}" for reason, count in counts.most_common())
            yield f"{counted(counts.total(), 'line')} {what}: {reasons}"
    for path, places in list(report.damaged.items())[:MAX_LISTED]:
        yield f"{path}: {lines_lost(places)}"
    if len(report.damaged) > MAX_LISTED:
        yield f"and {len(report.damaged) - MAX_LISTED:,} more files; --json lists all"
    for path, reason in list(report.skipped.items())[:MAX_LISTED]:
        yield f"skipped: {path} {reason}"
    if len(report.skipped) > MAX_LISTED:
        yield f"and {len(report.skipped) - MAX_LISTED:,} more; --json lists all"
    if dry and report.new + report.grown:
        yield "\nNothing was stored (--dry-run)."
    elif report.new + report.grown + report.unchanged:
        yield typed(
            "\nTry `foredeck sessions`, `foredeck search WORDS`, or `foredeck ui` to see them "
            "in the browser."
        )
