"""`foredeck export` and `import`: a session or a project as a file."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from posixpath import dirname
from typing import IO, Any, NamedTuple

from foredeck.cli.arguments import asked_folder, check_project, resolve_config
from foredeck.cli.notes_command import opened_graph
from foredeck.cli.output import Progress, answer, print_content, print_json
from foredeck.cli.person import STANDARD, check_person, named_or_chosen
from foredeck.cli.stored import made_store, opened_store
from foredeck.config import Config
from foredeck.errors import CommandRefused, ForedeckError, ImportRefused, NotFound
from foredeck.lookup.reader import note_rule
from foredeck.memory.entry import caps_of
from foredeck.memory.keeping import Memory
from foredeck.memory.trust import User, load_user, renewed_word
from foredeck.model.documents import SessionDocument
from foredeck.model.figures import counted, short_bytes
from foredeck.names import find_session
from foredeck.sources.filesystem import FilesystemMap, open_filesystems
from foredeck.sources.projects import Project, checkout_of, folders_of_project, project_of
from foredeck.store.location import private_draft
from foredeck.store.portable.export import (
    ExportSummary,
    ProjectPlace,
    export_project,
    export_session,
)
from foredeck.store.portable.importing import ImportSummary, import_file
from foredeck.store.portable.rewriting import Renew, same
from foredeck.store.sessions import documents_of_project, private_sessions


class WrittenExport(NamedTuple):
    summary: ExportSummary
    value: dict[str, Any]
    name: str
    left_out: str = ""


def run_export(args: Namespace) -> int:
    """`foredeck export`."""
    if args.project is None:
        args.session = named_or_chosen(args, args.session)
    elif args.session is not None:
        raise CommandRefused("which? Name a session, or with --project a project's folder.")
    done = _export_session(args) if args.project is None else _export_project(args)
    summary, report = done.summary, sys.stderr if args.file == STANDARD else sys.stdout
    if args.json:
        print_json({**done.value, **asdict(summary), "file": args.file}, report)
    else:
        print(
            f"{args.file}: {done.name}, {counted(summary.documents, 'version')} of its "
            f"objects in {counted(summary.transactions, 'transaction')}, "
            f"{counted(summary.blobs, 'blob')}, {short_bytes(summary.bytes)}{done.left_out}",
            file=report,
        )
    return 0


def _export_session(args: Namespace) -> WrittenExport:
    with opened_store(args) as store:
        session = find_session(store, args.session)
        with _lines_to(args.file) as line:
            summary = export_session(store, session, line)
    return WrittenExport(summary, {"session": session}, f"session {session}")


def _export_project(args: Namespace) -> WrittenExport:
    check_project(args)
    with opened_graph(args) as opened:
        store, folder = opened.store, str(asked_folder(args))
        filesystems, rule = open_filesystems(opened.config, folder), note_rule(opened.config)
        project = project_of(folder, filesystems)
        place = place_of(project, filesystems)
        documents = [head.view(SessionDocument) for head in store.query("session")]
        cwds = {document.session_id: document.cwd for document in documents}
        folders = set(folders_of_project(folder, set(cwds.values()), filesystems))
        there = [session for session, cwd in cwds.items() if cwd in folders]
        # Nothing of a private session goes beyond it by a command that does not name it.
        private = set(private_sessions(store)) & set(there)
        sessions = [session for session in there if session not in private]
        # Not those of another repository that lies within.
        own = (None, checkout_of(folder, filesystems))
        nodes = opened.graph.markdown()
        files = store.heads(node.id for node, _ in nodes)
        notes = [
            node.id
            for node, kind in nodes
            if node.id in files and place.holds(files[node.id].fields["source"])
            if node.path and rule.is_note(node.path, kind)
            if checkout_of(dirname(node.path), filesystems) in own
        ]
        if not sessions and not notes and not documents_of_project(store, project.id):
            raise NotFound(f"nothing is stored of the project {project.root}")
        with _lines_to(args.file) as line:
            summary = export_project(store, place, sessions, notes, line)
    value = {"project": project.root, "sessions": sessions, "private_sessions": len(private)}
    name = f"project {project.root}, {counted(len(sessions), 'session')}"
    left_out = f". Left out: {counted(len(private), 'private session')}" if private else ""
    return WrittenExport(summary, value, name, left_out)


def place_of(project: Project, filesystems: FilesystemMap) -> ProjectPlace:
    """The project as a file of an export names it."""
    source = filesystems.locate(project.root).source
    return ProjectPlace(project.id, project.root, source.filesystemId, source.path)


@contextmanager
def _written_file(name: str) -> Iterator[Callable[[str], object]]:
    """Opens stdout, or a private file that appears when it is whole. Raises `ForedeckError`."""
    if name == STANDARD:
        yield print_content
        return
    with _file_errors(name), private_draft(Path(name).absolute()) as file:
        yield lambda text: file.write(text.encode())


@contextmanager
def _file_errors(name: str) -> Iterator[None]:
    """Turns the system's errors into a `ForedeckError` that names the file."""
    try:
        yield
    except OSError as error:
        kind = NotFound if isinstance(error, FileNotFoundError) else ForedeckError
        raise kind(f"{name}: {error.strerror or error}") from error


@contextmanager
def _lines_to(name: str) -> Iterator[Callable[[str], None]]:
    with _written_file(name) as write, Progress("exporting, line") as progress:

        def line(text: str) -> None:
            write(text)
            progress.advance()

        yield line


# Importing


def run_import(args: Namespace) -> int:
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
                said.append(
                    f"{count} that you have not stated for you to accept or refuse: /memory."
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
    return renewed_word(user)


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
    with _file_errors(name):
        file = Path(name).open("rb")  # noqa: SIM115  (closed below)
    with file:
        yield file
