"""`foredeck index`: files and folders into the store, without an agent."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import asdict
from pathlib import Path

from foredeck.cli.common import resolve_config
from foredeck.cli.indexing import index_paths, index_pointers
from foredeck.cli.output import print_json
from foredeck.cli.progress import Progress
from foredeck.cli.stored import made_store
from foredeck.errors import NotFound
from foredeck.lookup.texts import counted
from foredeck.model.quoting import name
from foredeck.model.sources import is_pointer


def run(args: Namespace) -> int:
    """`foredeck index`."""
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
