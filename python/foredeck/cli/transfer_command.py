"""`foredeck export`, `import` and `migrate`: a session as a file, all of a store into another."""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import IO

from foredeck.cli.arguments import resolve_config
from foredeck.cli.files import STANDARD, file_errors, written_file
from foredeck.cli.output import Progress, answer, print_json
from foredeck.cli.stored import made_store, opened_store
from foredeck.config import Config, ensure_home
from foredeck.errors import ConfigError, Corrupt
from foredeck.memory.trust import load_user, renewed_word
from foredeck.model.figures import counted, short_count
from foredeck.names import find_session
from foredeck.store import STORES
from foredeck.store.copying import Totals, compare, copy, count_of
from foredeck.store.kind import StorePlace, store_kind
from foredeck.store.portable.export import export_session
from foredeck.store.portable.importing import import_file
from foredeck.store.protocol import Store, digests_of


def run_export(args: Namespace) -> int:
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


def run_import(args: Namespace) -> int:
    """`foredeck import`."""
    with (
        _source(args.file) as file,
        made_store(args) as store,
        Progress("importing, line") as progress,
    ):
        renew = renewed_word(load_user(resolve_config(args).config.home))
        lines = CountedLines(file, progress)
        summary = import_file(store, lines, as_new=args.as_new, renew=renew)
    said = (
        f"Session {summary.session}: {counted(summary.new_documents, 'version')} of "
        f"{summary.documents:,} were new; {counted(summary.blobs, 'blob')}"
        if summary.new_documents
        else f"Session {summary.session} is here already, and identical."
    )
    return answer(args, {**asdict(summary), "file": args.file}, said)


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


# From store to store


_COUNTS = ("transactions", "objects", "versions", "blobs")


def run_migrate(args: Namespace) -> int:
    """`foredeck migrate`."""
    config = resolve_config(args).config
    source, target = _place(args.source, config), _place(args.target, config)
    if source.describe() == target.describe():
        raise ConfigError(f"{args.source} and {args.target} are the same store")
    ensure_home(config.home)
    began = time.monotonic()
    with ExitStack() as stack:
        # Also where copying is interrupted: what has come by then is in the target.
        stack.callback(target.after_copy)
        original = stack.enter_context(closing(source.open(create=False)))
        copied = stack.enter_context(closing(target.open(create=True)))
        new, found, later = _move(original, copied)
    report = {
        "from": source.describe(),
        "to": target.describe(),
        "new_transactions": new,
        **asdict(found),
        "later_transactions": later,
        "seconds": round(time.monotonic() - began, 1),
    }
    use = _how_to_use(args.target, target.describe(), config)
    return answer(args, report, [*_lines(report, found), use])


def _how_to_use(address: str, target: str, config: Config) -> str:
    """What makes foredeck use the copy. `target`: the full form of its address."""
    name, _, where = address.partition(":")
    if _place(name, config).describe() == target:
        return f"FOREDECK_STORE={name} makes foredeck use the copy."
    if "://" in where:  # a server's, and only a node of XTDB is one
        return f"FOREDECK_XTDB_URL={where} makes foredeck use the copy."
    return f"`foredeck restore {where}` makes foredeck use the copy (--force keeps what is there)."


def _place(text: str, config: Config) -> StorePlace:
    """The store at an address, `NAME` or `NAME:WHERE`. Raises `ConfigError`."""
    name, colon, where = text.partition(":")
    if name not in STORES or (colon and not where):
        known = " or ".join(f"{name}[:{store.address}]" for name, store in STORES.items())
        raise ConfigError(f"{text!r} is not a store; name {known}")
    return store_kind(name).place(config, where)


def _move(original: Store, copied: Store) -> tuple[int, Totals, int]:
    """How many transactions were new, what is in both now, and how many came in meanwhile."""
    count, blobs = count_of(original), list(digests_of(original))
    with Progress("copying, transaction", total=count) as progress:
        new = copy(original, copied, progress.advance)
    with Progress("comparing, step") as progress:
        found = compare(original, copied, progress.advance, blobs)
    if not found.equal:
        raise Corrupt(f"the two stores differ: {found.differs} differs")
    return new, found.copy, count_of(original) - found.copy.transactions


def _lines(report: dict[str, object], found: Totals) -> Iterator[str]:
    counts = ", ".join(f"{getattr(found, name):,} {name}" for name in _COUNTS)
    yield (
        f"{report['from']} -> {report['to']}: {report['new_transactions']:,} transactions were new "
        f"({report['seconds']} s).\n"
        f"Both hold {counts}, {found.blob_bytes:,} bytes of blobs; SHA-256 {found.sha256}"
    )
    if later := report["later_transactions"]:
        yield f"{later:,} were added meanwhile: run the command again to copy them as well."
