# Paths are strings here: not always UTF-8, thousands at a time.
# ruff: noqa: PTH100, PTH112, PTH113, PTH118
"""`foredeck index` and `renames`: files stored without an agent, and renames found afterwards."""

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
from foredeck.cli.output import Progress, answer, typed
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
from foredeck.sources.renames import lost_renames, tied, unclear_rename
from foredeck.sources.snapshots import FileSnapshot, Limits
from foredeck.store.protocol import Batch, Head, LocalStore, Store, portions

BATCH = 200
"""Files per transaction."""

ATTEMPTS = 5
GIT_S = 30.0
"""How long git may take to list a folder; then the folder is walked through."""

SKIPPED = frozenset({"node_modules", "__pycache__"})
"""Folders that are passed over where git does not say what to ignore, as all hidden ones are."""

Note = Callable[[str], None]
"""Called with the path of each file that was read."""


def run(args: Namespace) -> int:
    """`foredeck index`."""
    if args.renames:
        return _renames(args)
    if args.repair or not args.path:
        raise CommandRefused("--repair needs --renames" if args.repair else "which files?")
    names = [asked for asked in args.path if is_pointer(asked) and not Path(asked).exists()]
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
    value = {**asdict(done), "pointers": [asdict(pointer) for pointer in pointers]}
    lines = [
        f"{name(each.name)}: {each.said}{'' if each.new else ', known'}, {each.object}"
        for each in pointers
    ]
    return answer(args, value, [*lines, *(_counts(done) if paths else ())])


def _counts(done: Indexed) -> list[str]:
    parts = [f"{done.new:,} new", f"{done.changed:,} changed", f"{done.deleted:,} deleted"]
    parts += [f"{done.moved:,} of the new ones renamed"] if done.moved else []
    parts += [f"{done.unreadable:,} that could not be read"] if done.unreadable else []
    if done.outside:
        parts.append(f"{counted(done.outside, 'link')} to elsewhere left out")
    return [f"{counted(done.files, 'file')}: {', '.join(parts)}.", *done.unclear]


@dataclass(slots=True)
class Indexed:
    """How many files were read, and what was new among them.

    `moved` counts those among `new` that another file was renamed to, `outside` links that lead
    out of the repository or the folder: what is there was not asked for.
    """

    files: int = 0
    new: int = 0
    changed: int = 0
    deleted: int = 0
    moved: int = 0
    unreadable: int = 0
    outside: int = 0
    unclear: list[str] = field(default_factory=list)
    """Of files that are gone: that they may have been renamed to several others."""

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
    """Bring the store up to date with files, and all files in folders, as they are on the disk.

    Files that the store knows below the folders and that are gone are taken in as deleted, or as
    renamed where another holds the same bytes. Doing it again changes nothing. Raises
    `CommandRefused` before anything is written.
    """
    done = Indexed()
    files = list(islice(_files(paths, done), limit + 1))
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
        commit_snapshots(store, lambda: source.reconcile([*gone, *fresh]), done, note)
    for part in portions(files, BATCH):
        commit_snapshots(store, partial(_sight, source, part), done, note)
    return done


@dataclass(frozen=True, slots=True)
class IndexedPointer:
    """What came of a name such as `git:HEAD~3:src/a.py`. `name`: with the commit that was meant."""

    name: str
    object: str
    new: bool
    said: str


def index_pointers(config: Config, store: Store, names: Sequence[str]) -> list[IndexedPointer]:
    """Take in what names point to, as seen from the current folder. Raises `ToolError`."""
    cwd = os.getcwd()  # noqa: PTH109
    source = open_source(config, store, open_filesystems(config, cwd))
    done = []
    for asked in names:
        document = source.point(asked, cwd)
        known = store.head(document.id)
        if known is None:
            store.commit(Batch(puts=[document]))
        fields = document.model_dump(exclude={"content"})
        size = f"{fields['char_count']:,} characters" if document.content is not None else ""
        said = size or str(fields.get("state") or "pointed to")
        done.append(IndexedPointer(pointer_label(fields), document.id, known is None, said))
    return done


def _sight(source: DiskSource, paths: Sequence[str]) -> list[FileSnapshot]:
    return [source.sight(path, "read") for path in paths]


def commit_snapshots(
    store: Store, look: Callable[[], list[FileSnapshot]], done: Indexed, note: Note
) -> None:
    """Read files and store what is new; once more where another process stored some meanwhile."""
    for attempt in range(1, ATTEMPTS + 1):
        snapshots = look()  # again at each attempt: what is stored has changed, and files may have
        try:
            store_versions(store, snapshots)
            break
        except Conflict:
            if attempt == ATTEMPTS:
                raise
    for snapshot in snapshots:
        done.count(snapshot)
        note(snapshot.path)


def _known(store: Store, paths: Sequence[str]) -> list[str]:
    """Files below the given paths that are there as far as the store knows."""
    roots = [os.path.realpath(path) for path in paths]
    found = []
    for head in store.query("file"):
        path = path_of(head.fields) or ""
        below = any(is_within(path, root) for root in roots)
        if below and head.fields.get("state") != "deleted":
            found.append(path)
    return found


def _files(paths: Sequence[str], done: Indexed) -> Iterator[str]:
    """The files that are meant, each once; `done` counts links that are left out."""
    seen: set[str] = set()
    for path in paths:
        listed = _in_folder(os.path.abspath(path), done) if os.path.isdir(path) else [path]
        for file in listed:
            full = os.path.abspath(file)
            if full not in seen:
                seen.add(full)
                yield full


def _in_folder(folder: str, done: Indexed) -> Iterator[str]:
    """The files in a folder, which may hold links to anything."""
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
    """The repository's folder, and what git tracks or would track here; None where there is no
    git, or no repository."""
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


def _renames(args: Namespace) -> int:
    with opened_store(args) as store:
        if args.path:
            if len(args.path) != 2:
                raise ToolError("Give both names: `foredeck index --renames OLD NEW`.")
            old, new = (find_object(store, text, None).head for text in args.path)
            _tie(store, old, new)
            found = [(old, [new], True)]
        else:
            found = []
            for lost in list(lost_renames(store)):
                is_clear = len(lost.found) == 1
                if args.repair and is_clear:
                    _tie(store, lost.gone, lost.found[0])
                found.append((lost.gone, list(lost.found), args.repair and is_clear))
    renames = [
        {"from": name_of(old), "to": [name_of(new) for new in to], "tied": is_tied}
        for old, to, is_tied in found
    ]
    lines = [_line(old, to, tied=is_tied) for old, to, is_tied in found]
    if not found:
        lines.append("No unnoticed renames.")
    elif not all(is_tied for _, _, is_tied in found):
        lines.append(
            typed(
                "--repair records those with one new name, `foredeck index --renames OLD NEW` any."
            )
        )
    return answer(args, {"renames": renames}, lines)


def _tie(store: LocalStore, old: Head, new: Head) -> None:
    """Store that a file has become another one. Raises `ToolError` where it has not."""
    if old.fields.get("state") != "deleted":
        raise ToolError(f"{name(name_of(old))} still exists, so it was not renamed.")
    if new.type != "file" or new.id == old.id or new.fields.get("state") == "deleted":
        raise ToolError(f"{name(name_of(new))} is not an existing file.")
    commit_snapshots(store, lambda: tied(store, old, new), Indexed(), lambda _path: None)


def _line(old: Head, to: list[Head], *, tied: bool) -> str:
    names = ", ".join(name(name_of(new)) for new in to)
    if tied:
        return f"{name(name_of(old))} was renamed to {names}."
    may = "may have been renamed to" if len(to) == 1 else "may have been renamed to one of"
    return f"{name(name_of(old))} {may} {names}"
