"""`foredeck cost --report`: what a session has cost and done, on one page to pass on."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from foredeck.accounting.report import ChangedFile, SessionReport, report_of
from foredeck.cli.files import STANDARD, written_file
from foredeck.cli.output import print_json, table
from foredeck.cli.prompts import NamedSession, with_prompts
from foredeck.model.figures import counted, short_count, when
from foredeck.search.secrets import mask_secrets
from foredeck.store.protocol import Store

DIFF_LINES = 60
"""How many lines of each difference are printed without --full."""


def print_report(named: NamedSession, args: Namespace) -> None:
    """Print the report of a session, or write its page."""
    with with_prompts(named, args) as (store, figure):
        report = report_of(store, named.session, files_in=named.store, figure=figure)
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
        print(f"{args.html}: session {named.session}, {calls}, {size} bytes", file=stream)
    else:
        text = "\n\n".join(_parts(report, full=args.full))
        print(text if args.full else redacted(text))


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
