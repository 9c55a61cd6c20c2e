"""`foredeck export` and `import`: a session with all that belongs to it, as a file."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import IO

from foredeck.cli.common import add_config_flags, add_json_flag, resolve_config
from foredeck.cli.files import STANDARD, file_errors, written_file
from foredeck.cli.output import print_json
from foredeck.cli.progress import Progress
from foredeck.cli.registry import Command
from foredeck.cli.stored import made_store, opened_store
from foredeck.lookup.texts import counted, short_count
from foredeck.memory.trust import renewed_word
from foredeck.memory.user import load_user
from foredeck.names.finding import find_session
from foredeck.store.portable import export_session, import_file


def _export(args: Namespace) -> int:
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


def _import(args: Namespace) -> int:
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


def _configure_export(parser: ArgumentParser) -> None:
    parser.add_argument("session", metavar="SESSION", help="id of a session, or the start of one")
    parser.add_argument("file", metavar="FILE", help="the file to write, - for stdout")
    add_json_flag(parser)
    add_config_flags(parser)


def _configure_import(parser: ArgumentParser) -> None:
    parser.add_argument(
        "file", metavar="FILE", help="a file that `export` has written, - for stdin"
    )
    parser.add_argument(
        "--as-new",
        action="store_true",
        help="give the session, its calls and its tool results fresh ids, beside those that are "
        "here",
    )
    add_json_flag(parser)
    add_config_flags(parser)


COMMANDS = {
    "export": Command(
        description=(
            "Write a session, with its objects and all their versions, to a file of JSON\n"
            "lines that can be read, searched, and imported into another store. The file\n"
            "holds what the model saw and what its tools returned: treat it as confidential.\n"
            "An existing file is replaced. If FILE is -, the summary goes to stderr."
        ),
        example="foredeck export 0199aaaa session.foredeck.jsonl",
        configure=_configure_export,
        run=_export,
    ),
    "import": Command(
        description=(
            "Import a session that `foredeck export` wrote. Every hash is checked before\n"
            "anything is stored; a damaged or forged file is refused (exit code 5). Data that\n"
            "is already here and identical is left alone. Data that contradicts what is here\n"
            "is refused, unless --as-new imports the session under fresh ids. The store is\n"
            "created if there is none."
        ),
        example="foredeck import session.foredeck.jsonl --as-new",
        configure=_configure_import,
        run=_import,
    ),
}
