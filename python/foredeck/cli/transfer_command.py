"""`foredeck export` and `import`: a session with all that belongs to it, as a file."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import IO

from foredeck.cli.common import resolve_config
from foredeck.cli.files import STANDARD, file_errors, written_file
from foredeck.cli.output import print_json
from foredeck.cli.progress import Progress
from foredeck.cli.stored import made_store, opened_store
from foredeck.memory.trust import renewed_word
from foredeck.memory.user import load_user
from foredeck.model.figures import counted, short_count
from foredeck.names.finding import find_session
from foredeck.store.portable.export import export_session
from foredeck.store.portable.importing import import_file


def write_bundle(args: Namespace) -> int:
    """`foredeck export`."""
    with opened_store(args) as store, Progress("exporting, line") as progress:
        session = find_session(store, args.session)
        with written_file(args.file) as write:

            def line(text: str) -> None:
                write(text)
                progress.advance()

            summary = export_session(store, session, line)
    report = sys.stderr if args.file == STANDARD else sys.stdout
    if args.json:
        print_json({**asdict(summary), "file": args.file}, report)
    else:
        print(
            f"{args.file}: session {session}, {counted(summary.documents, 'version')} of its "
            f"objects in {counted(summary.transactions, 'transaction')}, "
            f"{counted(summary.blobs, 'blob')}, {short_count(summary.bytes)} bytes",
            file=report,
        )
    return 0


def read_bundle(args: Namespace) -> int:
    """`foredeck import`."""
    with (
        _source(args.file) as file,
        made_store(args) as store,
        Progress("importing, line") as progress,
    ):
        renew = renewed_word(load_user(resolve_config(args).config.home))
        lines = CountedLines(file, progress)
        summary = import_file(store, lines, as_new=args.as_new, renew=renew)
    if args.json:
        print_json({**asdict(summary), "file": args.file})
    elif summary.new_documents == 0:
        print(f"Session {summary.session} is here already, and identical.")
    else:
        print(
            f"Session {summary.session}: {counted(summary.new_documents, 'version')} of "
            f"{summary.documents:,} were new; {counted(summary.blobs, 'blob')}"
        )
    return 0


class CountedLines:
    """A file whose lines are counted as they are read."""

    def __init__(self, file: IO[bytes], progress: Progress) -> None:
        self._file = file
        self._progress = progress

    def readline(self, limit: int = -1) -> bytes:
        """One line, of at most `limit` bytes."""
        self._progress.advance()
        return self._file.readline(limit)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.readline, b"")


@contextmanager
def _source(name: str) -> Iterator[IO[bytes]]:
    if name == STANDARD:
        yield sys.stdin.buffer
        return
    with file_errors(name):
        file = Path(name).open("rb")  # noqa: SIM115  (closed below)
    with file:
        yield file
