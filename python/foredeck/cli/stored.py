"""The configured store, opened for a command."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import closing, contextmanager

from foredeck.cli.arguments import resolve_config
from foredeck.cli.output import Progress
from foredeck.config import Config, ensure_home
from foredeck.errors import StoreUnavailable
from foredeck.store.kind import nothing_stored, open_store, store_kind
from foredeck.store.protocol import LocalStore


@contextmanager
def opened_store(args: Namespace) -> Iterator[LocalStore]:
    """The configured store, which is never created here. Raises `StoreUnavailable`."""
    config = resolve_config(args).config
    kind = store_kind(config.store)
    if not kind.exists(config):
        raise StoreUnavailable(nothing_stored(config))
    with _opened(config) as store:
        yield store


@contextmanager
def store_if_any(args: Namespace) -> Iterator[LocalStore | None]:
    """Like `opened_store`, but None if nothing is stored yet."""
    config = resolve_config(args).config
    if not store_kind(config.store).exists(config):
        yield None
        return
    with _opened(config) as store:
        yield store


@contextmanager
def made_store(args: Namespace) -> Iterator[LocalStore]:
    """Like `opened_store`, but creates state folder and store."""
    config = resolve_config(args).config
    ensure_home(config.home)
    with _opened(config) as store:
        yield store


@contextmanager
def _opened(config: Config) -> Iterator[LocalStore]:
    with closing(open_store(config, notify=_print_notice, lazy=True)) as store:
        yield store


def _print_notice(level: str, text: str) -> None:
    print(f"foredeck: {level}: {text}", file=sys.stderr)


def fetch_others(store: LocalStore, progress: Progress) -> None:
    """Fetches what other machines wrote into a shared store, or says that its database is away."""
    if not store.fetch_all(progress.advance):
        print(
            "foredeck: XTDB does not answer: what other machines wrote since then is left out",
            file=sys.stderr,
        )
