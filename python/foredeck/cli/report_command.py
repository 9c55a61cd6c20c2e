"""`foredeck report`: what a session has cost and done, on one page that can be shown around."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foredeck.cli.common import add_config_flags, add_json_flag
from foredeck.cli.files import STANDARD, written_file
from foredeck.cli.output import print_json, table
from foredeck.cli.registry import Command
from foredeck.cli.stored import opened_store
from foredeck.lookup.texts import counted, short_count, when

if TYPE_CHECKING:
    from foredeck.accounting.report import ChangedFile, SessionReport
    from foredeck.store.protocol import Store

DIFF_LINES = 60
"""How many lines of each difference are printed without --full."""


def _run(args: Namespace) -> int:
    from foredeck.accounting.report import report_of
    from foredeck.lookup.finding import find_session, without_calls

    with opened_store(args) as store:
        session = find_session(store, args.session)
        if not store.query("call", {"session": session}, limit=1):
            raise without_calls(store, session)
        report = report_of(store, session)
        page = _snapshot(store, report, full=args.full) if args.html else None
    stream = sys.stderr if args.html == STANDARD else sys.stdout
    if page is not None:
        with written_file(args.html) as write:
            # What holds half a surrogate pair has no bytes of its own.
            write(page.encode(errors="replace").decode())
    if args.json:
        value = report.to_json()
        print_json(value if args.full else _redacted_json(value), stream)
    elif page is not None:
        calls, size = counted(report.calls, "call"), short_count(len(page.encode(errors="replace")))
        print(f"{args.html}: session {session}, {calls}, {size} bytes", file=stream)
    else:
        text = "\n\n".join(_parts(report, full=args.full))
        print(text if args.full else redacted(text))
    return 0


def _snapshot(store: Store, report: SessionReport, *, full: bool) -> str:
    # By name: the pages import this package.
    page: str = import_module("foredeck.ui.snapshot").snapshot(
        store,
        report,
        (lambda value: value) if full else _redacted_json,
        diff_lines=None if full else DIFF_LINES,
    )
    return page


def redacted(text: str) -> str:
    """Without keys and tokens of the usual shapes, and without the name of the home folder."""
    from foredeck.search.secrets import mask_secrets

    home = str(Path.home())
    shortened = text.replace(home, "~") if len(home) > 1 else text
    return mask_secrets(shortened)


def _redacted_json(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _redacted_json(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_redacted_json(each) for each in value]
    return redacted(value) if isinstance(value, str) else value


def _parts(report: SessionReport, *, full: bool) -> Iterator[str]:
    yield _title(report)
    yield f"{report.figure.sentence}."
    if report.files:
        yield "\n\n".join(["Files changed", *(_file(each, full=full) for each in report.files)])
    if report.unversioned:
        left = [(f"{count:,}", why) for why, count in report.unversioned.items()]
        yield "Files that commands changed, of which no versions were kept\n" + table(left)
    if report.failed:
        rows = [
            (f"call {f.call or '?'}", f.handle, f"{f.tool} {f.arguments}") for f in report.failed
        ]
        yield "Commands that failed\n" + table(rows)
    yield _folded(report)


def _title(report: SessionReport) -> str:
    models = ", ".join(report.models) or "an unknown model"
    return (
        f"Session {report.session}\n{report.folder}\n{models}, "
        f"{when(report.first_ms)} to {when(report.last_ms)}, {counted(report.calls, 'call')}"
    )


def _file(changed: ChangedFile, *, full: bool) -> str:
    lines = changed.diff.split("\n")
    shown = lines if full else lines[:DIFF_LINES]
    more = len(lines) - len(shown)
    name = f"{changed.path} ({changed.handle})" if changed.handle else changed.path
    head = (
        f"{name}: +{changed.added} -{changed.removed} lines in "
        f"{counted(changed.versions, 'version')}"
    )
    return "\n".join([head, *shown, *([f"({more} more lines: --full)"] if more > 0 else [])])


def _folded(report: SessionReport) -> str:
    lines = [f"Folded: {counted(report.folded, 'object')}"]
    for asked in report.asked_back:
        calls = ", ".join(map(str, asked.calls)) or "?"
        lines.append(f"  {asked.what} was asked for again at call {calls}")
    if not report.asked_back:
        lines.append("  none was asked for again")
    return "\n".join(lines)


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument("session", metavar="SESSION", help="id of a session, or the start of one")
    parser.add_argument(
        "--full",
        action="store_true",
        help="with whole differences, and nothing masked",
    )
    parser.add_argument(
        "--html",
        metavar="FILE",
        help="write the session's page with all of this as one HTML file (`-`: stdout)",
    )
    add_json_flag(parser)
    add_config_flags(parser)


COMMAND = Command(
    description=(
        "Say on one page what a session has cost beside plain Pi, which files its tools changed\n"
        "(with the differences), which of its commands failed, and what was folded and asked for\n"
        "again. To be shown around: keys and tokens of the usual shapes are masked, the home\n"
        "folder is shortened, and long differences are cut; --full leaves all as it is. What a\n"
        "person changed between two changes of the session is in the difference, too.\n"
        "How many files commands changed without versions being kept is said with the reason.\n"
        "--html FILE writes the page that `foredeck ui` has of the session, with all its prompts\n"
        "as charts and tables, into one file that any browser opens and that fetches nothing.\n"
        'JSON: {"session", "calls", "figure", "files": [{"path", "added", "removed",\n'
        '"diff"}], "unversioned", "failed", "folded", "asked_back"}.'
    ),
    example="foredeck report 0199",
    configure=_configure,
    run=_run,
)
