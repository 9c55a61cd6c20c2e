"""`foredeck migrate`: all of a store into another."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import asdict

from foredeck.cli.arguments import resolve_config
from foredeck.cli.output import Progress, answer
from foredeck.config import Config, ensure_home
from foredeck.errors import ConfigError, Corrupt
from foredeck.store import STORES
from foredeck.store.copying import Totals, compare, copy, count_of
from foredeck.store.place import StorePlace, place_type
from foredeck.store.protocol import Copyable, digests_of

_COUNTS = ("transactions", "objects", "versions", "blobs")


def run(args: Namespace) -> int:
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
        original = stack.enter_context(closing(source.open_to_copy(create=False)))
        copied = stack.enter_context(closing(target.open_to_copy(create=True)))
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
    return place_type(name)(config, where)


def _move(original: Copyable, copied: Copyable) -> tuple[int, Totals, int]:
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
