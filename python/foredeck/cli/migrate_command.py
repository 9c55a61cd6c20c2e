"""`foredeck migrate`: everything from one store to another."""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from foredeck.cli.common import add_config_flags, add_json_flag, resolve_config
from foredeck.cli.delivering import deliver_first
from foredeck.cli.output import print_json
from foredeck.cli.progress import Progress
from foredeck.cli.registry import Command
from foredeck.errors import ConfigError, Corrupt, StoreUnavailable

if TYPE_CHECKING:
    from foredeck.config import Config
    from foredeck.store.copying import Totals
    from foredeck.store.whole import WholeStore

_PATIENCE_MS = 60_000
"""How long one request may take: nobody waits for it but the one who watches."""
_COUNTS = ("transactions", "objects", "versions", "blobs")


@dataclass(frozen=True, slots=True)
class Place:
    """One store: which kind, and where if that was said."""

    kind: str
    where: str

    @classmethod
    def of(cls, text: str) -> Place:
        """From `sqlite[:PATH]` or `xtdb[:URL]`. Raises `ConfigError` for anything else."""
        kind, colon, where = text.partition(":")
        if kind not in ("sqlite", "xtdb") or (colon and not where):
            raise ConfigError(f"{text!r} is no store: it is sqlite[:PATH] or xtdb[:URL]")
        if kind == "xtdb" and where and not where.startswith(("http://", "https://")):
            raise ConfigError(f"{text!r}: an address begins with http:// or https://")
        return cls(kind, where)

    def shown(self, config: Config) -> str:
        """Where it is, in full."""
        if self.kind == "sqlite":
            return f"sqlite:{self.file(config)}"
        where = self.where or config.xtdb.url or f"{config.home / 'xtdb'}"
        return f"xtdb:{where.rstrip('/')} ({config.xtdb.namespace})"

    def file(self, config: Config) -> Path:
        """The file of an SQLite store."""
        return Path(self.where).expanduser().absolute() if self.where else config.sqlite_file


def _run(args: Namespace) -> int:
    from foredeck.config import ensure_home

    config = resolve_config(args).config
    source, target = Place.of(args.source), Place.of(args.target)
    if source.shown(config) == target.shown(config):
        raise ConfigError(f"{args.source} and {args.target} are the same store")
    ensure_home(config.home)
    began = time.monotonic()
    with ExitStack() as stack:
        stack.callback(_look_anew, target, config)
        original = stack.enter_context(closing(_open(source, config, make=False)))
        copied = stack.enter_context(closing(_open(target, config, make=True)))
        new, found, later = _move(original, copied)
    told = {
        "from": source.shown(config),
        "to": target.shown(config),
        "new_transactions": new,
        **asdict(found),
        "later_transactions": later,
        "seconds": round(time.monotonic() - began, 1),
    }
    if args.json:
        print_json(told)
    else:
        _print_text(args, told, found)
    return 0


def _move(original: WholeStore, copied: WholeStore) -> tuple[int, Totals, int]:
    """How many transactions were new, what is in both now, and how many came in meanwhile."""
    from foredeck.store.copying import compare, copy, count_of
    from foredeck.store.whole import digests_of

    count, blobs = count_of(original), list(digests_of(original))
    with Progress("copying, transaction", total=count) as progress:
        new = copy(original, copied, progress.advance)
    with Progress("comparing, step") as progress:
        found = compare(original, copied, progress.advance, blobs)
    if not found.equal:
        raise Corrupt(f"the two stores are not equal: {found.differs} differs")
    return new, found.copy, count_of(original) - found.copy.transactions


def _print_text(args: Namespace, told: dict[str, object], found: Totals) -> None:
    counts = ", ".join(f"{getattr(found, name):,} {name}" for name in _COUNTS)
    print(
        f"{told['from']} -> {told['to']}: {told['new_transactions']:,} transactions were new "
        f"({told['seconds']} s).\n"
        f"Both hold {counts}, {found.blob_bytes:,} bytes of blobs; SHA-256 {found.sha256}"
    )
    if told["later_transactions"]:
        print(f"{told['later_transactions']:,} came in meanwhile: run it again to copy them, too.")
    print(f"FOREDECK_STORE={args.target.partition(':')[0]} makes foredeck use the copy.")


# Opening


def _open(place: Place, config: Config, *, make: bool) -> WholeStore:
    return (
        _open_sqlite(place, config, make) if place.kind == "sqlite" else _open_xtdb(place, config)
    )


def _open_sqlite(place: Place, config: Config, make: bool) -> WholeStore:
    from foredeck.store.sqlite.adapter import open_sqlite

    file = place.file(config)
    if not make and not file.exists():
        raise StoreUnavailable(f"there is nothing to copy: {file} does not exist")
    return open_sqlite(file, synchronous=config.sqlite.synchronous, busy_timeout_ms=_PATIENCE_MS)


def _open_xtdb(place: Place, config: Config) -> WholeStore:
    """The database itself. What waits for it in the local copy is delivered first."""
    from foredeck.stores import open_database

    meant = _meant(place, config)
    deliver_first(meant)
    return open_database(meant)


def _look_anew(target: Place, config: Config) -> None:
    """What was copied, also where that was interrupted, is not in the local copy of the target."""
    from foredeck.delivery import look_anew
    from foredeck.stores import copy_file

    if target.kind == "xtdb":
        look_anew([copy_file(_meant(target, config))])


def _meant(place: Place, config: Config) -> Config:
    xtdb = config.xtdb.model_copy(
        update={"url": place.where or config.xtdb.url, "timeout_ms": _PATIENCE_MS}
    )
    return config.model_copy(update={"xtdb": xtdb, "store": "xtdb"})


def _configure(parser: ArgumentParser) -> None:
    parser.add_argument("source", metavar="FROM", help="sqlite, sqlite:PATH, xtdb or xtdb:URL")
    parser.add_argument("target", metavar="TO", help="the same; empty, or a copy half done")
    add_json_flag(parser)
    add_config_flags(parser)


COMMAND = Command(
    description=(
        "Copy everything from one store to another: all objects with all versions, under the same\n"
        "tokens and times, so that whatever refers to a version finds it there. `sqlite` and\n"
        "`xtdb` are those of the configuration; a PATH or URL names another one, --set\n"
        "xtdb.token_file=FILE its token. The source is left as it is, and may be in use.\n\n"
        "An interrupted copy goes on where it was when the same command is run again, and a\n"
        "finished one is brought up to date. A target that holds anything else is refused. At the\n"
        "end every version and every byte is read from both stores and compared."
    ),
    example="foredeck migrate sqlite xtdb",
    configure=_configure,
    run=_run,
)
