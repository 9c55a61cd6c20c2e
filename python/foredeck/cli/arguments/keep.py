"""The arguments of commands that add, keep and move what is stored."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path

from foredeck.cli.arguments import add_usual_flags, positive
from foredeck.cli.registry import Command, later


def _ingest(parser: ArgumentParser) -> None:
    parser.add_argument(
        "paths",
        metavar="PATH",
        nargs="*",
        type=Path,
        help="files, or folders with *.jsonl and *.jsonl.gz in them at any depth (default: what "
        "lies in ~/.pi/agent/sessions, ~/.claude/projects and ~/.codex/sessions, after asking)",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="say what would be read, and store nothing"
    )
    parser.add_argument(
        "--yes", action="store_true", help="without PATH: read what is found without asking"
    )
    parser.add_argument(
        "--forgotten",
        action="store_true",
        help="also read sessions that `foredeck forget` has erased",
    )
    add_usual_flags(parser)


INGEST = Command(
    description="""
    Read the sessions that coding agents have kept into the store, with their messages and tool
    calls. Formats: Pi, Claude Code and Codex, plain or gzipped. Nothing is read twice: of a file
    that has grown only what is new is read, and running the command again after an interruption
    continues it. Lines that cannot be read are counted. Sessions that foredeck recorded itself, and
    those that you have forgotten, are skipped.
    """,
    example="foredeck ingest ~/.claude/projects --dry-run",
    configure=_ingest,
    run=later("ingest_command"),
)


def _index(parser: ArgumentParser) -> None:
    parser.add_argument(
        "path",
        metavar="PATH",
        nargs="+",
        help="a file, or a folder with all in it; git:REV:FILE for a file as of a commit, "
        "git:BLOB, a URL, s3://BUCKET/KEY, or row:DATABASE/TABLE/KEY",
    )
    parser.add_argument(
        "--limit",
        metavar="N",
        type=positive,
        default=20_000,
        help="refuse more files than this (default: %(default)s)",
    )
    add_usual_flags(parser)


INDEX = Command(
    description="""
    Store files and folders without an agent, so that notes can be found and linked before any
    session has read them. In a git repository, ignored files are skipped; elsewhere, hidden folders
    (except .pi) and node_modules are. Files that no longer exist are recorded as deleted or
    renamed; unchanged files are not stored again. What a model sees does not change.

    A file at a commit is an object of its own, which never changes. URLs, S3 objects and database
    rows are only pointed to, and nothing is fetched. `activate` accepts all of these names, and
    `foredeck cat` the printed id.
    """,
    example="foredeck index notes/ README.md",
    configure=_index,
    run=later("index_command"),
)


def _export(parser: ArgumentParser) -> None:
    parser.add_argument("session", metavar="SESSION", help="id of a session, or the start of one")
    parser.add_argument("file", metavar="FILE", help="the file to write, - for stdout")
    add_usual_flags(parser)


EXPORT = Command(
    description="""
    Write a session, with its objects and all their versions, to a file of JSON lines that can be
    read, searched, and imported into another store. The file holds what the model saw and what its
    tools returned: treat it as confidential. An existing file is replaced. If FILE is -, the
    summary goes to stderr.
    """,
    example="foredeck export 0199aaaa session.foredeck.jsonl",
    configure=_export,
    run=later("transfer_command", "run_export"),
)


def _import(parser: ArgumentParser) -> None:
    parser.add_argument(
        "file", metavar="FILE", help="a file that `export` has written, - for stdin"
    )
    parser.add_argument(
        "--as-new",
        action="store_true",
        help="give the session, its calls and its tool results fresh ids, beside those that are "
        "here",
    )
    add_usual_flags(parser)


IMPORT = Command(
    description="""
    Import a session that `foredeck export` wrote. Every hash is checked before anything is stored;
    a damaged or forged file is refused (exit code 5). Data that is already here and identical is
    left alone. Data that contradicts what is here is refused, unless --as-new imports the session
    under fresh ids. The store is created if there is none.
    """,
    example="foredeck import session.foredeck.jsonl --as-new",
    configure=_import,
    run=later("transfer_command", "run_import"),
)


def _backup(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", type=Path, help="the file to write")
    parser.add_argument(
        "--verify",
        action="store_true",
        help="read every version and every byte from the backup and from the store, and compare",
    )
    add_usual_flags(parser)


BACKUP = Command(
    description="""
    Write the whole store to one file. Sessions may go on meanwhile: the backup holds the store as
    it was when the command started. It is checked before it replaces an earlier backup of the same
    name, and any SQLite can open it. It holds what your agents saw: treat it as confidential. With
    XTDB it is a tar file of the log and documents of your own node, which may be running.

    `foredeck restore FILE` restores it. Purging or forgetting something does not remove it from
    earlier backups. Indexes are left out; they are rebuilt from the store.
    """,
    example="foredeck backup ~/foredeck-monday.db",
    configure=_backup,
    run=later("backup_command"),
)


def _restore(parser: ArgumentParser) -> None:
    parser.add_argument(
        "what",
        metavar="WHAT",
        help="a file that `foredeck backup` has written; or, with --call or --undo, a session or "
        "the start of its id",
    )
    parser.add_argument(
        "--force",
        action="store_true",
        help="with a backup: even if there is a store already; it is renamed first",
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--call",
        metavar="N",
        type=positive,
        help="bring files to what they were when call N was made; one more than the last call "
        "is the newest state",
    )
    what.add_argument("--undo", action="store_true", help="undo the last restore")
    parser.add_argument(
        "--path",
        metavar="PATH",
        type=Path,
        action="append",
        help="only this file; may be repeated. Required for a session that was imported",
    )
    parser.add_argument(
        "--to",
        metavar="FOLDER",
        type=Path,
        help="write the files to this folder, and change no others",
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="show what would happen to each file, and change nothing",
    )
    parser.add_argument("--diff", action="store_true", help="with --dry-run: print the differences")
    parser.add_argument(
        "--overwrite",
        action="store_true",
        help="also restore files that a person or another session has changed since",
    )
    add_usual_flags(parser)


RESTORE = Command(
    description="""
    With a backup: replace the store by it. The backup is checked before anything is changed. An
    existing store is never overwritten; --force renames it first. Close Pi before.

    With a session and --call: bring the files that the session's tools changed back to what they
    were at that call, with bytes, permissions and links, also outside the working folder. Files
    that somebody else has changed since are listed and left alone, unless --overwrite is given.
    What was there before is kept, and --undo brings it back. An interrupted restore is finished by
    the next one. The exit code is 1 if files were left alone or could not be restored (they are
    listed), or if a command ran in a folder that could not be scanned. In Pi, /foredeck rewind does
    the same.
    """,
    example="foredeck restore ~/foredeck-monday.db",
    configure=_restore,
    run=later("restore_command"),
)


def _migrate(parser: ArgumentParser) -> None:
    parser.add_argument("source", metavar="FROM", help="sqlite, sqlite:PATH, xtdb or xtdb:URL")
    parser.add_argument("target", metavar="TO", help="the same; empty, or a copy half done")
    add_usual_flags(parser)


MIGRATE = Command(
    description="""
    Copy everything from one store to another: all objects and all their versions, under the same
    tokens and times, so that references to a version stay valid. `sqlite` and `xtdb` are the
    configured stores; a PATH or URL names another one, and --set xtdb.token_file=FILE its token.
    The source is not changed, and may be in use. Run the same command again to continue an
    interrupted copy, or to update a finished one. A target that holds anything else is refused. At
    the end, every version and every byte is read from both stores and compared.
    """,
    example="foredeck migrate sqlite xtdb",
    configure=_migrate,
    run=later("transfer_command", "run_migrate"),
)
