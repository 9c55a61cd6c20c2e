"""`foredeck import`: what `foredeck export` has written, into the store."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import IO

from foredeck.cli.arguments import asked_folder, check_project, resolve_config
from foredeck.cli.export_command import file_errors, place_of
from foredeck.cli.output import Progress, answer
from foredeck.cli.person import STANDARD, check_person
from foredeck.cli.stored import made_store
from foredeck.config import Config
from foredeck.errors import CommandRefused, ImportRefused
from foredeck.memory.entry import caps_of
from foredeck.memory.keeping import Memory
from foredeck.memory.trust import User, load_user
from foredeck.model.figures import counted
from foredeck.sources.filesystem import open_filesystems
from foredeck.sources.projects import project_of
from foredeck.store.portable.importing import ImportSummary, import_file
from foredeck.store.portable.rewriting import Renew, same


def run(args: Namespace) -> int:
    """`foredeck import`."""
    with (
        _source(args.file) as file,
        made_store(args) as store,
        Progress("importing, line") as progress,
    ):
        config = resolve_config(args).config
        check_project(args)
        folder = str(asked_folder(args))
        filesystems = open_filesystems(config, folder)
        user = load_user(config.home)
        try:
            summary = import_file(
                store,
                CountedLines(file, progress),
                as_new=args.as_new,
                into=place_of(project_of(folder, filesystems), filesystems),
                renew=_renewal(config, user),
            )
        except ImportRefused as refused:
            raise ImportRefused(f"{args.file} is not imported: {refused}") from refused
        value, said = {**asdict(summary), "file": args.file}, [_imported(summary)]
        left = len(summary.crowded)
        if summary.project is None:
            value = {"session": summary.session, **value}
        else:
            memory = Memory(store, user, caps_of(config))
            proposals, more = memory.propose_imported(summary.memory)
            left += more
            if proposals:
                count = counted(len(proposals), "decision")
                wait = "waits" if len(proposals) == 1 else "wait"
                said.append(
                    f"{count} that you have not stated {wait} for your answer: `foredeck memory`."
                )
        if left:
            said.append(
                f"{left:,} find no room in your inbox: answer some, and import the file again."
            )
    return answer(args, value, said)


def _renewal(config: Config, user: User) -> Renew:
    """Renews the user's word on imported entries, unless an agent may be importing them."""
    try:
        check_person(config.home, "Importing")
    except CommandRefused:
        return same
    return user.renew


def _imported(summary: ImportSummary) -> str:
    place = summary.project
    what = f"Session {summary.session}" if place is None else f"Project {place.root}"
    stays = " The page, notes and decisions that are here already stay." if summary.left_out else ""
    if not summary.new_documents:
        return f"{what} is here already{'.' if stays else ', and identical.'}{stays}"
    sessions = "" if place is None else f"{counted(len(summary.sessions), 'session')}, "
    return (
        f"{what}: {sessions}{counted(summary.new_documents, 'version')} of "
        f"{summary.documents:,} were new; {counted(summary.blobs, 'blob')}.{stays}"
    )


class CountedLines:
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
