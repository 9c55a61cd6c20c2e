"""`foredeck index`: files and folders into the store, without an agent."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import asdict
from pathlib import Path

from foredeck.cli.common import add_config_flags, add_json_flag, positive, resolve_config
from foredeck.cli.indexing import index_paths, index_pointers
from foredeck.cli.output import print_json
from foredeck.cli.progress import Progress
from foredeck.cli.registry import Command
from foredeck.cli.stored import made_store
from foredeck.errors import NotFound
from foredeck.lookup.texts import counted
from foredeck.model.quoting import name
from foredeck.sources.pointers import is_pointer


def _run(args: Namespace) -> int:
    names = [name for name in args.path if is_pointer(name) and not Path(name).exists()]
    paths = [path for path in args.path if path not in names]
    for path in paths:
        if not Path(path).exists():
            raise NotFound(f"{path}: no such file or folder")
    config = resolve_config(args).config
    with made_store(args) as store, Progress("indexing") as progress:
        pointers = index_pointers(config, store, names)
        done = index_paths(
            config, store, paths, args.limit, lambda path: progress.advance(note=path)
        )
    if args.json:
        print_json({**asdict(done), "pointers": [asdict(pointer) for pointer in pointers]})
        return 0
    for pointer in pointers:
        known = "" if pointer.new else ", known"
        print(f"{name(pointer.name)}: {pointer.said}{known}, {pointer.object}")
    if not paths:
        return 0
    parts = [f"{done.new:,} new", f"{done.changed:,} changed", f"{done.deleted:,} deleted"]
    parts += [f"{done.moved:,} of the new ones renamed"] if done.moved else []
    parts += [f"{done.unreadable:,} that could not be read"] if done.unreadable else []
    parts += (
        [f"{counted(done.outside, 'link')} left out that lead elsewhere"] if done.outside else []
    )
    print(f"{counted(done.files, 'file')}: {', '.join(parts)}.")
    for said in done.unclear:
        print(said)
    return 0


def _configure(parser: ArgumentParser) -> None:
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
    add_json_flag(parser)
    add_config_flags(parser)


COMMAND = Command(
    description=(
        "Store files and folders without an agent, so that notes can be found and linked before\n"
        "any session has read them. In a git repository, ignored files are skipped; elsewhere,\n"
        "hidden folders (except .pi) and node_modules are. Files that no longer exist are\n"
        "recorded as deleted or renamed; unchanged files are not stored again. What a model\n"
        "sees does not change.\n\n"
        "A file at a commit is an object of its own, which never changes. URLs, S3 objects and\n"
        "database rows are only pointed to, and nothing is fetched. `activate` accepts all of\n"
        "these names, and `foredeck cat` the printed id."
    ),
    example="foredeck index notes/ README.md",
    configure=_configure,
    run=_run,
)
