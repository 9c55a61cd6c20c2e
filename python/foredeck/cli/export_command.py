"""`foredeck export`: a session or a project as a file."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from posixpath import dirname
from typing import Any, NamedTuple

from foredeck.cli.arguments import asked_folder, check_project
from foredeck.cli.graph_command import opened_graph
from foredeck.cli.output import Progress, print_content, print_json
from foredeck.cli.person import STANDARD, named_or_chosen
from foredeck.cli.stored import opened_store
from foredeck.errors import CommandRefused, ForedeckError, NotFound
from foredeck.lookup.reader import note_rule
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
from foredeck.store.sessions import documents_of_project, private_sessions


class WrittenExport(NamedTuple):
    summary: ExportSummary
    value: dict[str, Any]
    name: str
    left_out: str = ""


def run(args: Namespace) -> int:
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
    with file_errors(name), private_draft(Path(name).absolute()) as file:
        yield lambda text: file.write(text.encode())


@contextmanager
def file_errors(name: str) -> Iterator[None]:
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
