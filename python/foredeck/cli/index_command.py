# Paths are strings here: not always UTF-8, thousands at a time.
# ruff: noqa: PTH100, PTH112, PTH113, PTH118
"""`foredeck index`: files stored without an agent, and renames that a user tells of."""

from __future__ import annotations

import os
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path

from foredeck.cli.arguments import resolve_config
from foredeck.cli.output import Progress, answer
from foredeck.cli.stored import made_store, opened_store
from foredeck.config import Config
from foredeck.context.state.objects import store_versions
from foredeck.errors import CommandRefused, Conflict, NotFound, ToolError
from foredeck.model.figures import counted
from foredeck.model.quoting import name
from foredeck.model.sources import is_pointer, path_of, pointer_label
from foredeck.names import find_object, name_of
from foredeck.sources.disk import DiskSource, open_source
from foredeck.sources.filesystem import is_within, open_filesystems
from foredeck.sources.git_process import GitUnusable, opened_git
from foredeck.sources.renames import tied, unclear_rename
from foredeck.sources.snapshots import FileSnapshot, Limits
from foredeck.store.protocol import Batch, Head, portions, retry_on_conflict
from foredeck.store.store import Store

BATCH = 200
"""Files per transaction."""

GIT_S = 30.0
"""Seconds for git to list a folder, before it is walked."""

SKIPPED = frozenset({"node_modules", "__pycache__"})
"""Folders to skip, beside hidden ones, without git."""

Note = Callable[[str], None]


def run(args: Namespace) -> int:
    """`foredeck index`."""
    if args.renamed:
        return _renamed(args)
    if not args.path:
        raise CommandRefused("which files? Name files, or folders with all in them.")
    names = [asked for asked in args.path if is_pointer(asked) and not Path(asked).exists()]
    paths = [path for path in args.path if path not in names]
    for path in paths:
        if not Path(path).exists():
            raise NotFound(f"{path}: no such file or folder")
    config = resolve_config(args).config
    with made_store(args) as store, Progress("indexing") as progress:
        pointers = index_pointers(config, store, names)
        result = index_paths(
            config, store, paths, args.limit, lambda path: progress.advance(note=path)
        )
    value = {**asdict(result), "pointers": [asdict(pointer) for pointer in pointers]}
    lines = [
        f"{name(each.name)}: {each.said}{'' if each.new else ', known'}, {each.object}"
        for each in pointers
    ]
    return answer(args, value, [*lines, *(_counts(result) if paths else ())])


def _counts(done: Indexed) -> list[str]:
    parts = [f"{done.new:,} new", f"{done.changed:,} changed", f"{done.deleted:,} deleted"]
    parts += [f"{done.moved:,} of the new ones renamed"] if done.moved else []
    parts += [f"{done.unreadable:,} that could not be read"] if done.unreadable else []
    if done.outside:
        parts.append(f"{counted(done.outside, 'link')} to elsewhere left out")
    return [f"{counted(done.files, 'file')}: {', '.join(parts)}.", *done.unclear]


@dataclass(slots=True)
class Indexed:
    """Counts of files that were read.

    `moved`: other files were renamed to them; `outside`: links that lead out of the folder.
    """

    files: int = 0
    new: int = 0
    changed: int = 0
    deleted: int = 0
    moved: int = 0
    unreadable: int = 0
    outside: int = 0
    unclear: list[str] = field(default_factory=list)
    """Missing files that may have been renamed to several others."""

    def count(self, snapshot: FileSnapshot) -> None:
        """Count one look at a file."""
        self.files += 1
        document = snapshot.document
        if snapshot.candidates:
            self.unclear.append(unclear_rename(snapshot.path, snapshot.candidates))
        if document is None:
            self.unreadable += snapshot.state in ("missing", "unreadable", "unreachable")
        elif document.state == "deleted":
            self.deleted += 1
        elif snapshot.head is None or snapshot.head.fields.get("state") in ("listed", "deleted"):
            self.new += 1
            parents = document.provenance.parent_refs
            self.moved += any(ref.startswith("moved_from:") for ref in parents)
        else:
            self.changed += 1


def index_paths(
    config: Config, store: Store, paths: Sequence[str], limit: int, note: Note
) -> Indexed:
    """Updates the store with files, and all files in folders.

    Missing ones become deleted, or renamed if another has the same bytes. Raises `CommandRefused`
    before anything is written.
    """
    result = Indexed()
    files = list(islice(_files(paths, result), limit + 1))
    if len(files) > limit:
        raise CommandRefused(
            f"there are more than {limit:,} files: name folders that hold fewer, or raise --limit"
        )
    filesystems = open_filesystems(config, os.getcwd())  # noqa: PTH109
    limits = Limits(config.limits.max_file_bytes, max(len(files), 1))
    source = DiskSource(store, filesystems, limits)
    gone = [path for path in _known(store, paths) if not os.path.lexists(path)]
    if gone:
        # Only among files that are not known can a file that is gone have a new name.
        fresh = [path for path in files if store.head(source.identify(path)[0]) is None]
        commit_snapshots(store, lambda: source.reconcile([*gone, *fresh]), result, note)
    for part in portions(files, BATCH):
        commit_snapshots(store, partial(_sight, source, part), result, note)
    return result


@dataclass(frozen=True, slots=True)
class IndexedPointer:
    """A stored pointer such as `git:HEAD~3:src/a.py`; `name` has the commit."""

    name: str
    object: str
    new: bool
    said: str


def index_pointers(config: Config, store: Store, names: Sequence[str]) -> list[IndexedPointer]:
    """Takes in what names point to, seen from the current folder. Raises `ToolError`."""
    cwd = os.getcwd()  # noqa: PTH109
    source = open_source(config, store, open_filesystems(config, cwd))
    results = []
    for target in names:
        document = source.point(target, cwd)
        head = store.head(document.id)
        if head is None:
            store.commit(Batch(puts=[document]))
        fields = document.model_dump(exclude={"content"})
        size = f"{fields['char_count']:,} characters" if document.content is not None else ""
        size_text = size or str(fields.get("state") or "pointed to")
        results.append(IndexedPointer(pointer_label(fields), document.id, head is None, size_text))
    return results


def _sight(source: DiskSource, paths: Sequence[str]) -> list[FileSnapshot]:
    return [source.sight(path, "read") for path in paths]


def commit_snapshots(
    store: Store, look: Callable[[], list[FileSnapshot]], done: Indexed, note: Note
) -> None:
    """Reads files and stores what is new."""

    def attempt() -> list[FileSnapshot]:
        snapshots = look()  # again at each attempt: what is stored has changed, and files may have
        store_versions(store, snapshots)
        return snapshots

    for snapshot in retry_on_conflict(attempt, Conflict("the files change all the time")):
        done.count(snapshot)
        note(snapshot.path)


def _known(store: Store, paths: Sequence[str]) -> list[str]:
    roots = [os.path.realpath(path) for path in paths]
    found = []
    for head in store.query("file"):
        path = path_of(head.fields) or ""
        below = any(is_within(path, root) for root in roots)
        if below and head.fields.get("state") != "deleted":
            found.append(path)
    return found


def _files(paths: Sequence[str], done: Indexed) -> Iterator[str]:
    paths_so_far: set[str] = set()
    for path in paths:
        listed = _in_folder(os.path.abspath(path), done) if os.path.isdir(path) else [path]
        for file in listed:
            full = os.path.abspath(file)
            if full not in paths_so_far:
                paths_so_far.add(full)
                yield full


def _in_folder(folder: str, done: Indexed) -> Iterator[str]:
    top, listed = _listed_by_git(folder) or (folder, _walked(folder))
    top = os.path.realpath(top)
    for path in listed:
        if not os.path.isfile(path):
            continue
        # A link may lead anywhere: what is there was not asked for.
        if is_within(os.path.realpath(path), top):
            yield path
        else:
            done.outside += 1


def _listed_by_git(folder: str) -> tuple[str, list[str]] | None:
    """The repository's folder, and what git tracks or would track here, if it can say."""
    end = time.monotonic() + GIT_S
    try:
        with opened_git(folder) as git:
            names = ("-z", "--cached", "--others", "--exclude-standard")
            answer = git.run("ls-files", *names, until=end)
            top = git.top
    except GitUnusable:
        return None
    if answer.code:
        return None
    found = filter(None, answer.out.split(b"\0"))
    return top, sorted(os.path.join(folder, os.fsdecode(name)) for name in found)


def _walked(folder: str) -> Iterator[str]:
    for here, folders, names in os.walk(folder):
        # Hidden folders hold settings and caches, but `.pi` is where notes may be.
        folders[:] = sorted(
            name
            for name in folders
            if name not in SKIPPED and (name == ".pi" or not name.startswith("."))
        )
        yield from (os.path.join(here, name) for name in sorted(names))


# Renames


def _renamed(args: Namespace) -> int:
    with opened_store(args) as store:
        old, new = (find_object(store, text, None).head for text in args.renamed)
        _tie(store, old, new)
    value = {"from": name_of(old), "to": name_of(new)}
    said = f"{name(name_of(old))} was renamed to {name(name_of(new))}."
    return answer(args, value, said)


def _tie(store: Store, old: Head, new: Head) -> None:
    """Stores that a file has become another one. Raises `ToolError` if it has not."""
    if old.fields.get("state") != "deleted":
        raise ToolError(f"{name(name_of(old))} still exists, so it was not renamed.")
    if new.type != "file" or new.id == old.id or new.fields.get("state") == "deleted":
        raise ToolError(f"{name(name_of(new))} is not an existing file.")
    commit_snapshots(store, lambda: tied(store, old, new), Indexed(), lambda _path: None)
