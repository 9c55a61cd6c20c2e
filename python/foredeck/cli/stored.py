"""The configured store, opened for a command, and its indexes."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

from foredeck.cli.arguments import resolve_config
from foredeck.cli.output import Progress, answer
from foredeck.config import Config, ensure_home
from foredeck.derived import LAYERS
from foredeck.derived.follower import Follower
from foredeck.derived.layer import compact, layer_file
from foredeck.errors import StoreUnavailable
from foredeck.model.figures import counted, short_bytes
from foredeck.store.place import nothing_stored, open_store, store_file, store_place
from foredeck.store.store import Store, open_sqlite


@contextmanager
def opened_store(args: Namespace) -> Iterator[Store]:
    """The configured store, which is never created here. Raises `StoreUnavailable`."""
    config = resolve_config(args).config
    if not store_place(config).exists():
        raise StoreUnavailable(nothing_stored(config))
    with _opened(config) as store:
        yield store


@contextmanager
def store_if_any(args: Namespace) -> Iterator[Store | None]:
    """Like `opened_store`, but None if nothing is stored yet."""
    config = resolve_config(args).config
    if not store_place(config).exists():
        yield None
        return
    with _opened(config) as store:
        yield store


@contextmanager
def made_store(args: Namespace) -> Iterator[Store]:
    """Like `opened_store`, but creates state folder and store."""
    config = resolve_config(args).config
    ensure_home(config.home)
    with _opened(config) as store:
        yield store


@contextmanager
def _opened(config: Config) -> Iterator[Store]:
    with closing(open_store(config, notify=_print_notice, lazy=True)) as store:
        yield store


def _print_notice(level: str, text: str) -> None:
    print(f"foredeck: {level}: {text}", file=sys.stderr)


def fetch_others(store: Store, progress: Progress) -> None:
    """Fetches what other machines wrote into a shared store, or says that its database is away."""
    if not store.fetch_all(progress.advance):
        print(
            "foredeck: XTDB does not answer: what other machines wrote since then is left out",
            file=sys.stderr,
        )


# Indexes


def rebuild(args: Namespace) -> int:
    """`foredeck doctor --rebuild`."""
    home = resolve_config(args).config.home
    rows: list[dict[str, Any]] = []
    with opened_store(args) as store:
        with Progress("fetching, page") as progress:
            fetch_others(store, progress)
        for name in LAYERS if args.rebuild == "all" else [args.rebuild]:
            with Follower(store, name, home) as follower, Progress(f"{name}: batch") as progress:
                looked_at = follower.make_again(progress.advance)
                rows.append(
                    {
                        "layer": name,
                        "versions": looked_at,
                        "file": str(follower.path),
                        "bytes": follower.path.stat().st_size,
                    }
                )
    lines = [
        f"{layer['layer']}: {counted(layer['versions'], 'version')} looked at; "
        f"{layer['file']} ({short_bytes(layer['bytes'])})"
        for layer in rows
    ]
    return answer(args, {"layers": rows}, lines)


def vacuum(args: Namespace) -> int:
    """`foredeck doctor --vacuum`."""
    config = resolve_config(args).config
    with opened_store(args):  # raises where there is no store, which is not made for this
        pass
    file = store_file(config)
    with closing(open_sqlite(file)) as store:
        layers = [layer_file(config.home, name, store.lineage().id) for name in LAYERS]
        sizes = [(file, *store.vacuum())]
    sizes += [(path, *compact(path)) for path in layers if path.exists()]
    vacuumed = [{"file": str(f), "bytes_before": b, "bytes_after": a} for f, b, a in sizes]
    lines = [f"{f}: {short_bytes(b)}, now {short_bytes(a)}." for f, b, a in sizes]
    return answer(args, {**vacuumed[0], "layers": vacuumed[1:]}, lines)
